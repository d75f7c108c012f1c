use crate::generate::tests::{across, connected, counts, degrees, diameter, make, switches};

#[test]
fn trees_have_the_sizes_of_the_definition() {
    for (k, n) in [(2_usize, 1), (2, 4), (3, 3), (4, 2), (18, 2), (8, 3)] {
        let fabric = make(&format!("k-ary-n-tree {k} {n}")).expect("valid parameters");
        let (hosts, level) = (k.pow(n), k.pow(n - 1));
        let n = n as usize;
        assert_eq!(counts(&fabric), (n * level, hosts, n * hosts), "{k}-ary {n}-tree");
        assert!(connected(&fabric));
        assert_eq!(diameter(&fabric), 2 * (n - 1));
        for (index, &switch) in switches(&fabric).iter().enumerate() {
            let (to_switches, to_hosts) = degrees(&fabric, switch);
            let top = index >= (n - 1) * level;
            assert_eq!(usize::from(fabric.node(switch).ports), 2 * k);
            assert_eq!(to_switches + to_hosts, if top { k } else { 2 * k });
            assert_eq!(to_hosts, if index < level { k } else { 0 });
        }
    }
}

#[test]
fn top_switches_use_only_their_lower_ports() {
    let fabric = make("k-ary-n-tree 2 3").expect("valid parameters");
    assert_eq!(across(&fabric, "core-3", 2), Some(("spine-3".to_owned(), 4)));
    assert_eq!(across(&fabric, "core-3", 3), None);
}
