use ib_types::NodeKind;
use proptest::prelude::*;

use super::*;

mod errors;
mod support;

pub(super) use support::*;

/// Returns one line for each node and link of a fabric, with all attributes that fabric files contain.
fn listing(fabric: &Fabric) -> Vec<String> {
    let nodes = fabric.nodes().map(|(_, node)| {
        format!("{} {} {} {} {}", node.kind, node.name, node.guid, node.ports, node.description)
    });
    let end = |id| {
        let port = fabric.port(id);
        format!("{}[{}]", fabric.node(port.node).name, port.number)
    };
    let links = fabric.links().map(|(a, b)| {
        let rate = fabric.port(a).rate;
        format!("{} {} {}{}", end(a), end(b), rate.width, rate.speed)
    });
    nodes.chain(links).collect()
}

fn some_kind() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "xgft 3,4,6 1,3,2",
        "xgft 4,6 2,3",
        "torus 3x4x2 hosts=2",
        "mesh 5x4",
        "hypercube 5 hosts=3",
        "fat-tree 8 2 oversubscription=3:1",
        "fat-tree 6 3",
        "k-ary-n-tree 3 3",
        "dragonfly a=4 p=2 h=2",
        "random switches=20 ports=9 hosts=3",
    ])
}

fn parsed(words: &str) -> Kind {
    let words: Vec<&str> = words.split(' ').collect();
    Kind::parse(words[0], &words[1..]).expect("valid arguments")
}

fn switch_links(fabric: &Fabric) -> usize {
    let all = switches(fabric);
    all.iter().map(|&switch| degrees(fabric, switch).0).sum::<usize>() / 2
}

/// A regular expression that generates arguments. Most of them are accepted by at least one kind.
const WORD: &str = "((a|p|h|g|hosts|switches|ports|links|parallel|leaves|spines|pods|cores\
    |oversubscription)=)?([0-9]{1,2}|[0-9]{0,11})([,x:][0-9]{1,3}){0,4}";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn dropping_links_removes_the_rounded_fraction(
        words in some_kind(), seed in any::<u64>(), drop_links in 0.0..=1.0_f64,
    ) {
        let kind = parsed(words);
        let whole = generate(&kind, &Options::default()).expect("valid parameters");
        let options = Options { seed, drop_links, ..Options::default() };
        let broken = generate(&kind, &options).expect("valid parameters");
        // For the kind `random`, the seeds of `whole` and `broken` give the same number of links, but different links.
        let dropped = (drop_links * switch_links(&whole) as f64).round() as usize;
        prop_assert_eq!(switch_links(&broken), switch_links(&whole) - dropped);
        prop_assert_eq!(broken.link_count(), whole.link_count() - dropped);
        prop_assert_eq!(broken.node_count(), whole.node_count());
    }

    #[test]
    fn dropped_switch_changes_no_other_node(
        words in some_kind(), seed in any::<u64>(), drop_switches in 0.0..=0.6_f64,
    ) {
        let kind = parsed(words);
        let whole = generate(&kind, &Options { seed, ..Options::default() }).expect("valid");
        let options = Options { seed, drop_switches, ..Options::default() };
        let broken = match generate(&kind, &options) {
            Ok(broken) => broken,
            Err(GenerateError::NothingLeft { .. }) => return Ok(()),
            Err(error) => panic!("{error}"),
        };
        let all = whole.count(NodeKind::Switch);
        let dropped = (drop_switches * all as f64).round() as usize;
        prop_assert_eq!(broken.count(NodeKind::Switch), all - dropped);
        let before: std::collections::BTreeSet<_> = listing(&whole).into_iter().collect();
        prop_assert!(listing(&broken).into_iter().all(|line| before.contains(&line)));
        for (id, node) in broken.nodes() {
            let (switches, hosts) = degrees(&broken, id);
            prop_assert!(node.kind.is_switch() || (switches > 0 && hosts == 0));
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_fabric(words in some_kind(), seed in any::<u64>()) {
        let options =
            Options { seed, drop_links: 0.2, drop_switches: 0.1, ..Options::default() };
        let twice = [0, 1].map(|_| generate(&parsed(words), &options).map(|f| listing(&f)));
        prop_assert_eq!(&twice[0], &twice[1]);
    }

    #[test]
    fn parse_and_generate_never_panic(
        name in prop::sample::select(Kind::names().collect::<Vec<_>>()),
        words in prop::collection::vec(WORD, 0..6),
    ) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        if let Ok(kind) = Kind::parse(name, &words) {
            let _ = kind.plan(0);
        }
    }
}

#[test]
fn kind_is_displayed_as_its_arguments() {
    for words in [
        "fat-tree 36 2",
        "fat-tree 36 3 oversubscription=2:1 parallel=2 pods=4",
        "fat-tree 36 3 parallel=1,18 hosts=18 leaves=18 spines=18 pods=2 cores=18",
        "xgft 3,4 1,2",
        "xgft 3,4 1,2 1,2",
        "k-ary-n-tree 4 3",
        "torus 3x4 hosts=2",
        "hypercube 3 hosts=1",
        "dragonfly a=4 p=2 h=2",
        "dragonfly a=4 p=2 h=2 g=5",
        "random switches=8 ports=6 hosts=2",
        "random switches=8 ports=6 hosts=2 links=12",
    ] {
        assert_eq!(parsed(words).to_string(), words);
    }
    assert_eq!(parsed("mesh hosts=3 4x4").to_string(), "mesh 4x4 hosts=3");
}

#[test]
fn names_guids_and_order_are_fixed() {
    let fabric = make("xgft 2,2 2,1").expect("valid parameters");
    let nodes: Vec<String> = fabric
        .nodes()
        .map(|(_, node)| format!("{} {} {}", node.name, node.description, node.ports))
        .collect();
    insta::assert_snapshot!(nodes.join("\n"), @r#"
    S-0002c90000200000 leaf-0 3
    S-0002c90000200001 leaf-1 3
    S-0002c90000200002 leaf-2 3
    S-0002c90000200003 leaf-3 3
    S-0002c90000200004 spine-0 2
    S-0002c90000200005 spine-1 2
    H-0002c90000100000 host-0 2
    H-0002c90000100003 host-1 2
    H-0002c90000100006 host-2 2
    H-0002c90000100009 host-3 2
    "#);
    for (id, node) in fabric.nodes() {
        for (_, port) in fabric.ports_of(id).skip(1) {
            let offset = if node.kind.is_switch() { 0 } else { u64::from(port.number) };
            assert_eq!(port.guid.0, node.guid.0 + offset);
            assert_eq!(port.lid, None);
        }
    }
}

#[test]
fn larger_fraction_drops_a_superset_of_the_links() {
    let links = |drop_links| {
        let options = Options { seed: 9, drop_links, ..Options::default() };
        listing(&generate(&parsed("torus 4x4"), &options).expect("valid parameters"))
    };
    let (few, many) = (links(0.1), links(0.4));
    assert!(many.iter().all(|line| few.contains(line)));
}

#[test]
fn dropped_links_and_switches_never_change() {
    let options = Options { seed: 42, drop_links: 0.25, drop_switches: 0.2, ..Options::default() };
    let fabric = generate(&parsed("mesh 3x3"), &options).expect("valid parameters");
    insta::assert_snapshot!(listing(&fabric).join("\n"), @r#"
    Switch S-0002c90000200000 0x0002c90000200000 5 sw-x0y0
    Switch S-0002c90000200002 0x0002c90000200002 5 sw-x2y0
    Switch S-0002c90000200003 0x0002c90000200003 5 sw-x0y1
    Switch S-0002c90000200004 0x0002c90000200004 5 sw-x1y1
    Switch S-0002c90000200005 0x0002c90000200005 5 sw-x2y1
    Switch S-0002c90000200006 0x0002c90000200006 5 sw-x0y2
    Switch S-0002c90000200008 0x0002c90000200008 5 sw-x2y2
    Channel Adapter H-0002c90000100000 0x0002c90000100000 1 host-0
    Channel Adapter H-0002c90000100004 0x0002c90000100004 1 host-2
    Channel Adapter H-0002c90000100006 0x0002c90000100006 1 host-3
    Channel Adapter H-0002c90000100008 0x0002c90000100008 1 host-4
    Channel Adapter H-0002c9000010000a 0x0002c9000010000a 1 host-5
    Channel Adapter H-0002c9000010000c 0x0002c9000010000c 1 host-6
    Channel Adapter H-0002c90000100010 0x0002c90000100010 1 host-8
    S-0002c90000200000[3] S-0002c90000200003[4] 4xNDR
    S-0002c90000200000[5] H-0002c90000100000[1] 4xNDR
    S-0002c90000200002[3] S-0002c90000200005[4] 4xNDR
    S-0002c90000200002[5] H-0002c90000100004[1] 4xNDR
    S-0002c90000200003[1] S-0002c90000200004[2] 4xNDR
    S-0002c90000200003[3] S-0002c90000200006[4] 4xNDR
    S-0002c90000200003[5] H-0002c90000100006[1] 4xNDR
    S-0002c90000200004[5] H-0002c90000100008[1] 4xNDR
    S-0002c90000200005[5] H-0002c9000010000a[1] 4xNDR
    S-0002c90000200006[5] H-0002c9000010000c[1] 4xNDR
    S-0002c90000200008[5] H-0002c90000100010[1] 4xNDR
    "#);
}
