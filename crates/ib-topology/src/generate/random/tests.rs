use proptest::prelude::*;

use super::connected_graph;
use crate::generate::tests::{connected, counts, degrees, make, switches};
use crate::generate::{Kind, Options, Random, generate};
use ib_types::rng::Rng;

#[test]
fn random_fabrics_have_the_requested_sizes() {
    for (words, expected) in [
        ("random switches=32 ports=24 hosts=8", (32, 256, 256 + 256)),
        ("random switches=32 ports=24 hosts=8 links=31", (32, 256, 31 + 256)),
        ("random switches=5 ports=4", (5, 5, 7 + 5)),
        ("random switches=1 ports=4", (1, 1, 1)),
        ("random switches=1 ports=4 hosts=4", (1, 4, 4)),
        ("random switches=2 ports=2", (2, 2, 1 + 2)),
        ("random switches=2 ports=9 hosts=2", (2, 4, 7 + 4)),
        ("random switches=1000 ports=4 links=999", (1_000, 1_000, 1_999)),
    ] {
        let fabric = make(words).expect("valid parameters");
        assert_eq!(counts(&fabric), expected, "{words}");
        assert!(connected(&fabric), "{words}");
    }
}

#[test]
fn graph_of_a_seed_never_changes() {
    let graph = connected_graph(6, 9, &mut Rng::new(1));
    let expected = [[3, 4], [4, 5], [3, 1], [1, 0], [4, 2], [1, 5], [2, 0], [3, 5], [2, 0]];
    assert_eq!(graph, expected);
}

#[test]
fn another_seed_gives_another_fabric() {
    let kind = Kind::Random(Random { switches: 16, ports: 8, hosts: 2, links: None });
    let links = [1, 2].map(|seed| {
        let fabric = generate(&kind, &Options { seed, ..Options::default() }).expect("valid kind");
        fabric.links().collect::<Vec<_>>()
    });
    assert_ne!(links[0], links[1]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_graph_is_connected_and_nearly_regular(
        switches_asked in 1_u32..40, free in 0_u32..8, hosts in 1_u32..4,
        share in 0.0..=1.0_f64, seed in any::<u64>(),
    ) {
        let least = switches_asked - 1;
        let most = if switches_asked == 1 { 0 } else { switches_asked * free / 2 };
        prop_assume!(least <= most);
        let links = least + (share * f64::from(most - least)).round() as u32;
        let kind = Random {
            switches: switches_asked, ports: hosts + free, hosts, links: Some(links),
        };
        let options = Options { seed, ..Options::default() };
        let fabric = generate(&Kind::Random(kind), &options).expect("valid parameters");
        prop_assert!(connected(&fabric));
        let ends = 2 * links as usize;
        let all = switches(&fabric);
        prop_assert_eq!(fabric.link_count(), ends / 2 + all.len() * hosts as usize);
        let (floor, ceil) = (ends / all.len(), ends.div_ceil(all.len()));
        for &switch in &all {
            let (to_switches, to_hosts) = degrees(&fabric, switch);
            prop_assert!(to_switches == floor || to_switches == ceil);
            prop_assert_eq!(to_hosts, hosts as usize);
            for (id, _) in fabric.ports_of(switch) {
                prop_assert!(fabric.peer(id).is_none_or(|peer| peer.node != switch));
            }
        }
    }
}
