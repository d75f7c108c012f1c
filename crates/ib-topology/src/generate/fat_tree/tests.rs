use proptest::prelude::*;

use crate::generate::tests::{
    across, connected, counts, degrees, diameter, distances, make, switches,
};
use crate::generate::{GenerateError, Kind};

#[test]
fn trees_have_the_requested_sizes() {
    for (words, expected) in [
        ("fat-tree 36", (36 + 18, 648, 2 * 648)),
        ("fat-tree 36 3", (1_620, 11_664, 3 * 11_664)),
        ("fat-tree 36 2 oversubscription=2:1", (36 + 12, 36 * 24, 36 * 36)),
        ("fat-tree 40 2 oversubscription=6:3", (40 + 13, 40 * 26, 40 * 39)),
        ("fat-tree 36 2 parallel=2", (18 + 9, 324, 2 * 324)),
        ("fat-tree 36 2 parallel=4", (9 + 4, 9 * 16, 9 * 32)),
        ("fat-tree 36 leaves=16 spines=8 hosts=12 parallel=2", (24, 192, 192 + 256)),
        ("fat-tree 36 hosts=20", (36 + 16, 720, 36 * 36)),
        ("fat-tree 36 spines=4 parallel=3", (12 + 4, 12 * 24, 12 * 36)),
        ("fat-tree 36 hosts=20 oversubscription=5:2", (36 + 8, 720, 36 * 28)),
        ("fat-tree 36 spines=4 oversubscription=5:2", (36 + 4, 360, 36 * 14)),
        ("fat-tree 4 3", (8 + 8 + 4, 16, 48)),
        ("fat-tree 5 3", (10 + 10 + 4, 20, 60)),
        ("fat-tree 36 3 pods=2 parallel=1,18", (72 + 18, 648, 3 * 648)),
        ("fat-tree 8 3 pods=4 leaves=2 spines=2 hosts=6 cores=4", (8 + 8 + 4, 48, 80)),
        ("fat-tree 36 3 oversubscription=2:1 pods=2", (36 + 24 + 216, 864, 864 + 2 * 432)),
        ("fat-tree 6 3 leaves=4", (24 + 18 + 6, 72, 72 + 72 + 36)),
        ("fat-tree 6 3 cores=6", (24 + 18 + 6, 72, 72 + 72 + 36)),
    ] {
        let fabric = make(words).expect("the arguments are valid");
        assert_eq!(counts(&fabric), expected, "{words}");
        assert!(connected(&fabric), "{words}");
    }
}

#[test]
fn any_two_leaves_share_a_top_switch() {
    assert_eq!(diameter(&make("fat-tree 8").expect("valid arguments")), 2);
    assert_eq!(diameter(&make("fat-tree 6 3").expect("valid arguments")), 4);
}

#[test]
fn parallel_links_join_the_same_two_switches() {
    let fabric = make("fat-tree 36 leaves=4 spines=2 parallel=3 hosts=6").expect("valid arguments");
    let ups = (7..=12).map(|port| across(&fabric, "leaf-1", port).expect("linked"));
    let expected = [(0, 2), (1, 2), (0, 6), (1, 6), (0, 10), (1, 10)];
    let expected = expected.map(|(spine, port)| (format!("spine-{spine}"), port));
    assert_eq!(ups.collect::<Vec<_>>(), expected);
    assert_eq!(across(&fabric, "leaf-1", 13), None);
    assert!(switches(&fabric).iter().all(|&switch| fabric.node(switch).ports == 36));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn accepted_parameters_are_respected(
        radix in 2_u32..24,
        levels in 2_u32..4,
        ratio in prop::option::of((1_usize..5, 1_usize..4)),
        parallel in (1_u32..4, 1_u32..4),
        counts in prop::collection::vec(prop::option::weighted(0.3, 1_u32..13), 5),
    ) {
        let mut words = format!("fat-tree {radix} {levels} parallel={}", parallel.0);
        if levels == 3 {
            words += &format!(",{}", parallel.1);
        }
        if let Some((d, u)) = ratio {
            words += &format!(" oversubscription={d}:{u}");
        }
        let keys = ["hosts", "leaves", "spines", "pods", "cores"];
        for (key, count) in keys.iter().zip(&counts).filter_map(|(key, count)| Some((key, (*count)?))) {
            words += &format!(" {key}={count}");
        }
        let fabric = match make(&words) {
            Ok(fabric) => fabric,
            Err(GenerateError::Contradiction { .. } | GenerateError::OutOfRange { .. }) => return Ok(()),
            Err(error) => panic!("{words}: {error}"),
        };
        prop_assert!(Kind::parse("fat-tree", &words.split(' ').skip(1).collect::<Vec<_>>()).is_ok());
        prop_assert!(connected(&fabric));
        let all = switches(&fabric);
        let of_level = |name: &str| {
            let is = |&&switch: &&_| fabric.node(switch).description.starts_with(name);
            all.iter().filter(is).count()
        };
        let pods = if levels == 3 {
            let pod = distances(&fabric, all[0]).into_iter().filter(|&(node, hops)| {
                hops == 2 && fabric.node(node).description.starts_with("leaf")
            });
            of_level("leaf") / (pod.count() + 1)
        } else {
            1
        };
        let leaf = degrees(&fabric, all[0]);
        let found = [leaf.1, of_level("leaf") / pods, of_level("spine") / pods, pods, of_level("core")];
        for (found, count) in found.into_iter().zip(counts) {
            prop_assert!(count.is_none_or(|count| count as usize == found), "{words}: {found}");
        }
        for &switch in &all {
            let (switches, hosts) = degrees(&fabric, switch);
            prop_assert!(switches + hosts <= radix as usize);
            prop_assert_eq!(u32::from(fabric.node(switch).ports), radix);
            if let (Some((d, u)), true) = (ratio, hosts > 0) {
                prop_assert_eq!(hosts * u, switches * d);
            }
        }
    }
}
