use super::*;

#[test]
fn pairs_are_limited() {
    let few: Vec<Address> = (1..=4).map(|lid| (lid, lid)).collect();
    assert_eq!(pairs(&few, 200).len(), 12);
    // 50 ports with two LIDs each: 1 and 2, 3 and 4, and so on. An `Address` is a port's base LID and one of its LIDs.
    let many: Vec<Address> = (0..100).map(|port| (1 + port / 2 * 2, 1 + port)).collect();
    let chosen = pairs(&many, 200);
    assert_eq!(chosen.len(), 200);
    assert!(chosen.iter().all(|(from, to)| from.0 != to.0), "no pair contains the same port twice");
    assert!(chosen.contains(&((1, 1), (99, 100))), "LIDs 1 and 100 are a pair");
    assert_eq!(chosen, pairs(&many, 200));
}

#[test]
fn only_complete_paths_are_counted() {
    let text = "\
From ca {0x0002c90000100000} portnum 1 lid 1-1 \"host-0\"
[1] -> switch port {0x0002c90000200000}[1] lid 2-2 \"leaf-0\"
[2] -> ca port {0x0002c90000100003}[1] lid 4-5 \"host-1\"
To ca {0x0002c90000100002} portnum 1 lid 4-5 \"host-1\"
From ca {0x0002c90000100000} portnum 1 lid 1-1 \"host-0\"
[1] -> switch port {0x0002c90000200000}[1] lid 2-2 \"leaf-0\"
";
    assert_eq!(traced(text), BTreeMap::from([((1, 4), 1)]));
}
