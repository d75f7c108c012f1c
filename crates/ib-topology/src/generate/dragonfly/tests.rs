use std::collections::BTreeMap;

use proptest::prelude::*;

use super::global_links;
use crate::generate::tests::{across, connected, counts, degrees, diameter, make, switches};

#[test]
fn canonical_dragonflies_have_their_sizes() {
    for (words, expected, hops) in [
        ("dragonfly a=4 p=2 h=2", (36, 72, 9 * 6 + 36 + 72), 3),
        ("dragonfly a=6 p=3 h=3", (114, 342, 19 * 15 + 171 + 342), 3),
        ("dragonfly a=4 p=2 h=2 g=9", (36, 72, 9 * 6 + 36 + 72), 3),
        ("dragonfly a=1 p=1 h=3", (4, 4, 6 + 4), 1),
        ("dragonfly a=2 p=1 h=1 g=2", (4, 4, 2 + 2 + 4), 2),
    ] {
        let fabric = make(words).expect("the arguments are valid");
        assert_eq!(counts(&fabric), expected, "{words}");
        assert!(connected(&fabric), "{words}");
        assert_eq!(diameter(&fabric), hops, "{words}");
    }
}

#[test]
fn ports_are_local_then_global_then_hosts() {
    let fabric = make("dragonfly a=4 p=2 h=2").expect("the arguments are valid");
    let at = |name: &str, port| across(&fabric, name, port).expect("linked");
    assert_eq!(at("group0-sw0", 3), ("group0-sw3".to_owned(), 1));
    assert_eq!(at("group8-sw2", 3), ("group8-sw3".to_owned(), 3));
    assert_eq!(at("group0-sw0", 4), ("group1-sw0".to_owned(), 4));
    assert_eq!(at("group0-sw0", 5), ("group2-sw0".to_owned(), 4));
    assert_eq!(at("group3-sw1", 4), ("group2-sw1".to_owned(), 4));
    assert_eq!(at("group3-sw1", 5), ("group4-sw1".to_owned(), 5));
    assert_eq!(at("group0-sw1", 6), ("host-02".to_owned(), 1));
    assert_eq!(at("group0-sw1", 7), ("host-03".to_owned(), 1));
}

#[test]
fn spare_channels_are_spread_evenly() {
    let links = global_links(5, 7);
    let mut pairs = BTreeMap::new();
    for ((a, _), (b, _)) in &links {
        *pairs.entry((a.min(b), a.max(b))).or_insert(0) += 1;
    }
    assert_eq!(links.len(), 15, "5 groups with 7 channels each: one channel per group is unused");
    assert_eq!(pairs.len(), 10);
    assert!(pairs.values().all(|&count| count == 1 || count == 2));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_channel_is_used_once(groups in 2_usize..20, more in 0_usize..60) {
        let channels = groups - 1 + more;
        let links = global_links(groups, channels);
        let mut used = vec![0; groups * channels];
        let mut pairs = BTreeMap::new();
        for (a, b) in links {
            prop_assert_ne!(a.0, b.0);
            used[a.0 * channels + a.1] += 1;
            used[b.0 * channels + b.1] += 1;
            *pairs.entry((a.0.min(b.0), a.0.max(b.0))).or_insert(0_usize) += 1;
        }
        prop_assert!(used.iter().all(|&times| times <= 1));
        let free = used.iter().filter(|&&times| times == 0).count();
        let odd = groups % 2 == 1 && channels % (groups - 1) % 2 == 1;
        prop_assert_eq!(free, if odd { groups } else { 0 });
        prop_assert_eq!(pairs.len(), groups * (groups - 1) / 2);
        let least = channels / (groups - 1);
        prop_assert!(pairs.values().all(|&count| count == least || count == least + 1));
    }

    #[test]
    fn every_switch_has_local_links_global_links_and_hosts(
        a in 1_usize..7, p in 1_usize..4, h in 1_usize..4, share in 0.0..1.0_f64,
    ) {
        let groups = 2 + (share * (a * h) as f64) as usize;
        let groups = groups.min(a * h + 1);
        let fabric = make(&format!("dragonfly a={a} p={p} h={h} g={groups}")).expect("valid values");
        prop_assert!(connected(&fabric));
        let all = switches(&fabric);
        prop_assert_eq!(all.len(), a * groups);
        let odd = groups % 2 == 1 && a * h % (groups - 1) % 2 == 1;
        for (index, &switch) in all.iter().enumerate() {
            let last = usize::from(odd && index % a == a - 1);
            prop_assert_eq!(degrees(&fabric, switch), (a - 1 + h - last, p));
        }
    }
}
