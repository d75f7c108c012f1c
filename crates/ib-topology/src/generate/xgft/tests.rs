use proptest::prelude::*;

use crate::generate::tests::{across, connected, counts, degrees, diameter, error, make, switches};

#[test]
fn full_trees_of_common_switches_have_known_sizes() {
    for (words, expected, radix) in [
        ("xgft 18,18,36 1,18,18", (1_620, 11_664, 3 * 11_664), 36),
        ("xgft 24,24,48 1,24,24", (2_880, 27_648, 3 * 27_648), 48),
        ("xgft 12,12,24 1,12,12", (720, 3_456, 3 * 3_456), 24),
        ("xgft 4 1", (1, 4, 4), 4),
    ] {
        let fabric = make(words).expect("valid parameters");
        assert_eq!(counts(&fabric), expected, "{words}");
        let full = |&switch: &_| {
            let (switches, hosts) = degrees(&fabric, switch);
            (fabric.node(switch).ports, switches + hosts) == (radix, usize::from(radix))
        };
        assert!(switches(&fabric).iter().all(full), "{words}");
    }
}

#[test]
fn lower_leaf_ports_lead_to_hosts_upper_to_parents() {
    let fabric = make("xgft 18,18,36 1,18,18").expect("valid parameters");
    let mut levels = std::collections::BTreeMap::new();
    for switch in switches(&fabric) {
        let (level, _) = fabric.node(switch).description.split_once('-').expect("level-number");
        *levels.entry((level, degrees(&fabric, switch))).or_insert(0) += 1;
    }
    let expected = [(("core", (36, 0)), 324), (("leaf", (18, 18)), 648), (("spine", (36, 0)), 648)];
    assert_eq!(Vec::from_iter(levels), expected);
    assert_eq!(across(&fabric, "host-00037", 1), Some(("leaf-002".to_owned(), 2)));
    assert_eq!(across(&fabric, "leaf-002", 19), Some(("spine-000".to_owned(), 3)));
    assert_eq!(across(&fabric, "leaf-020", 36), Some(("spine-035".to_owned(), 3)));
    assert_eq!(across(&fabric, "spine-035", 19), Some(("core-017".to_owned(), 2)));
    assert_eq!(across(&fabric, "spine-035", 20), Some(("core-035".to_owned(), 2)));
}

#[test]
fn switches_are_four_hops_apart_in_three_levels() {
    let fabric = make("xgft 4,4,8 1,4,4").expect("valid parameters");
    assert_eq!(diameter(&fabric), 4);
}

#[test]
fn first_width_is_the_number_of_host_ports() {
    let fabric = make("xgft 3,2 2,1").expect("valid parameters");
    assert_eq!(across(&fabric, "host-4", 1), Some(("leaf-2".to_owned(), 2)));
    assert_eq!(across(&fabric, "host-4", 2), Some(("leaf-3".to_owned(), 2)));
    assert_eq!(error("xgft 2 255"), "W1 is 255: expected 1 to 254");
}

#[test]
fn parallel_links_alternate_between_parents() {
    let fabric = make("xgft 2,2 1,3 1,2").expect("valid parameters");
    let ups = (3..=8).map(|port| across(&fabric, "leaf-1", port).expect("the port is linked"));
    let expected = [(0, 2), (1, 2), (2, 2), (0, 4), (1, 4), (2, 4)];
    let expected = expected.map(|(spine, port)| (format!("spine-{spine}"), port));
    assert_eq!(ups.collect::<Vec<_>>(), expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_node_has_the_right_children_and_parents(
        levels in prop::collection::vec((1_u32..5, 1_u32..4, 1_u32..3), 1..5),
    ) {
        let [m, w, p] = [0, 1, 2].map(|list| {
            let pick = |level: &(u32, u32, u32)| [level.0, level.1, level.2][list].to_string();
            levels.iter().map(pick).collect::<Vec<_>>().join(",")
        });
        let fabric = make(&format!("xgft {m} {w} {p}")).expect("valid parameters");
        let hosts: u32 = levels.iter().map(|level| level.0).product();
        prop_assert_eq!(counts(&fabric).1, hosts as usize);
        prop_assert!(connected(&fabric));
        for (id, node) in fabric.nodes() {
            let (switches, hosts) = degrees(&fabric, id);
            prop_assert_eq!(switches + hosts, usize::from(node.ports));
        }
    }
}
