use std::collections::{BTreeMap, VecDeque};

use ib_types::NodeKind;
use proptest::prelude::*;

use super::*;
use crate::fabric::NodeId;

/// Generates what a command line would.
pub(super) fn make(words: &str) -> Result<Fabric, GenerateError> {
    let words: Vec<&str> = words.split(' ').filter(|word| !word.is_empty()).collect();
    generate(&Kind::parse(words[0], &words[1..])?, &Options::default())
}

/// Returns the text of the error that a command line meets.
pub(super) fn error(words: &str) -> String {
    make(words).expect_err("bad parameters").to_string()
}

/// Returns the numbers of switches, hosts and links.
pub(super) fn counts(fabric: &Fabric) -> (usize, usize, usize) {
    let (switches, hosts) = (NodeKind::Switch, NodeKind::ChannelAdapter);
    (fabric.count(switches), fabric.count(hosts), fabric.link_count())
}

/// Returns the number of links at a node, to switches and to hosts.
pub(super) fn degrees(fabric: &Fabric, node: NodeId) -> (usize, usize) {
    let peers: Vec<bool> = fabric
        .ports_of(node)
        .filter_map(|(id, _)| fabric.peer(id))
        .map(|peer| fabric.node(peer.node).kind.is_switch())
        .collect();
    let switches = peers.iter().filter(|&&switch| switch).count();
    (switches, peers.len() - switches)
}

/// Returns the switches.
pub(super) fn switches(fabric: &Fabric) -> Vec<NodeId> {
    fabric.nodes().filter(|(_, node)| node.kind.is_switch()).map(|(id, _)| id).collect()
}

/// Returns the hops from a node to every node that it reaches.
pub(super) fn distances(fabric: &Fabric, from: NodeId) -> BTreeMap<NodeId, usize> {
    let mut found = BTreeMap::from([(from, 0)]);
    let mut queue = VecDeque::from([from]);
    while let Some(node) = queue.pop_front() {
        let hops = found[&node] + 1;
        for peer in fabric.ports_of(node).filter_map(|(id, _)| fabric.peer(id)) {
            if !found.contains_key(&peer.node) {
                found.insert(peer.node, hops);
                queue.push_back(peer.node);
            }
        }
    }
    found
}

/// Returns true when every node reaches every other.
pub(super) fn connected(fabric: &Fabric) -> bool {
    distances(fabric, NodeId(0)).len() == fabric.node_count()
}

/// Returns the greatest distance between two switches, each of which must reach all others.
pub(super) fn diameter(fabric: &Fabric) -> usize {
    let all = switches(fabric);
    let reach = |&from| {
        let found = distances(fabric, from);
        all.iter().map(|to| found[to]).max().expect("a switch")
    };
    all.iter().map(reach).max().expect("a switch")
}

/// Returns the description of what a switch's port is linked to, and the port there.
pub(super) fn across(fabric: &Fabric, description: &str, port: u8) -> Option<(String, u8)> {
    let node = fabric.nodes().find(|(_, node)| node.description == description);
    let id = fabric.port_id(node.expect("the node").0, port).expect("the port");
    fabric.peer(id).map(|peer| (fabric.node(peer.node).description.clone(), peer.number))
}

/// Returns all that a fabric file would show of a fabric.
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
    ])
}

fn parsed(words: &str) -> Kind {
    let words: Vec<&str> = words.split(' ').collect();
    Kind::parse(words[0], &words[1..]).expect("good words")
}

fn trunks(fabric: &Fabric) -> usize {
    let all = switches(fabric);
    all.iter().map(|&switch| degrees(fabric, switch).0).sum::<usize>() / 2
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn dropping_links_removes_the_rounded_share_between_switches(
        words in some_kind(), seed in any::<u64>(), drop_links in 0.0..=1.0_f64,
    ) {
        let kind = parsed(words);
        let whole = generate(&kind, &Options::default()).expect("good parameters");
        let options = Options { seed, drop_links, ..Options::default() };
        let broken = generate(&kind, &options).expect("good parameters");
        // A random fabric of another seed has as many links, if not the same ones.
        let dropped = (drop_links * trunks(&whole) as f64).round() as usize;
        prop_assert_eq!(trunks(&broken), trunks(&whole) - dropped);
        prop_assert_eq!(broken.link_count(), whole.link_count() - dropped);
        prop_assert_eq!(broken.node_count(), whole.node_count());
    }

    #[test]
    fn a_dropped_switch_takes_its_hosts_and_leaves_the_rest_as_it_was(
        words in some_kind(), seed in any::<u64>(), drop_switches in 0.0..=0.6_f64,
    ) {
        let kind = parsed(words);
        let whole = generate(&kind, &Options { seed, ..Options::default() }).expect("good");
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
    fn no_words_make_it_panic(
        name in prop::sample::select(Kind::names().collect::<Vec<_>>()),
        words in prop::collection::vec("([a-z]{1,8}=)?[0-9]{0,11}([,x:][0-9]{0,6}){0,6}", 0..5),
    ) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        if let Ok(kind) = Kind::parse(name, &words) {
            let _ = kind.plan(0);
        }
    }
}

#[test]
fn a_kind_is_displayed_as_the_words_that_make_it() {
    for words in ["xgft 3,4 1,2", "xgft 3,4 1,2 1,2", "torus 3x4 hosts=2", "hypercube 3 hosts=1"] {
        assert_eq!(parsed(words).to_string(), words);
    }
    assert_eq!(parsed("mesh hosts=3 4x4").to_string(), "mesh 4x4 hosts=3");
}

#[test]
fn names_guids_and_order_are_fixed() {
    let fabric = make("xgft 2,2 2,1").expect("a tree");
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
fn a_greater_share_drops_the_same_links_and_more() {
    let links = |drop_links| {
        let options = Options { seed: 9, drop_links, ..Options::default() };
        listing(&generate(&parsed("torus 4x4"), &options).expect("a torus"))
    };
    let (few, many) = (links(0.1), links(0.4));
    assert!(many.iter().all(|line| few.contains(line)));
}

#[test]
fn what_is_dropped_is_pinned() {
    let options = Options { seed: 42, drop_links: 0.25, drop_switches: 0.2, ..Options::default() };
    let fabric = generate(&parsed("mesh 3x3"), &options).expect("a mesh");
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

#[test]
fn errors_say_what_was_found_and_expected() {
    let errors = [
        "ring 4",
        "torus",
        "torus 4x4 5",
        "torus 4x4 host=5",
        "torus 4x4 hosts=5 hosts=6",
        "torus 4x-4",
        "torus 4x",
        "torus 4x99999999999",
        "torus 4x0",
        "torus 4x4 hosts=0",
        "torus 4x4 hosts=251",
        "torus 300x300",
        "torus 49151x49151x49151x49151x49151x49151",
        "hypercube 15",
        "hypercube 14 hosts=3",
        "xgft 4,4",
        "xgft 4,4 1",
        "xgft 4,4 1,2 1,2,3",
        "xgft 4,0 1,2",
        "xgft 4,4 1,255",
        "xgft 200,4 1,100",
        "xgft 200,200,200 1,1,1",
    ];
    let texts: Vec<String> = errors.map(|words| format!("{words}\n  {}", error(words))).into();
    insta::assert_snapshot!(texts.join("\n"), @r#"
    ring 4
      `ring` is not a kind of fabric: expected one of xgft, torus, mesh, hypercube
    torus
      X1xX2x..xXd is missing: expected `torus X1xX2x..xXd [hosts=N]`
    torus 4x4 5
      `5` is one word too many: expected `torus X1xX2x..xXd [hosts=N]`
    torus 4x4 host=5
      `host=` is unknown here: expected `torus X1xX2x..xXd [hosts=N]`
    torus 4x4 hosts=5 hosts=6
      `hosts=` is given twice: expected it once
    torus 4x-4
      `4x-4` does not read as X1xX2x..xXd: expected decimal numbers below 2^32 with `x` between them
    torus 4x
      `4x` does not read as X1xX2x..xXd: expected decimal numbers below 2^32 with `x` between them
    torus 4x99999999999
      `4x99999999999` does not read as X1xX2x..xXd: expected decimal numbers below 2^32 with `x` between them
    torus 4x0
      side X2 is 0: expected 1 to 49151
    torus 4x4 hosts=0
      hosts is 0: expected 1 to 254
    torus 4x4 hosts=251
      a switch of this fabric needs 255 ports: expected at most 254
    torus 300x300
      the fabric needs 180000 LIDs (90000 host ports and 90000 switches): expected at most 49151
    torus 49151x49151x49151x49151x49151x49151
      the fabric needs 2^64 or more LIDs (2^64 or more host ports and 2^64 or more switches): expected at most 49151
    hypercube 15
      D is 15: expected 1 to 14
    hypercube 14 hosts=3
      the fabric needs 65536 LIDs (49152 host ports and 16384 switches): expected at most 49151
    xgft 4,4
      W1,W2,..,Wh is missing: expected `xgft M1,M2,..,Mh W1,W2,..,Wh [P1,P2,..,Ph]`
    xgft 4,4 1
      the list W1,..,Wh has length 1: expected 2, one number for each level
    xgft 4,4 1,2 1,2,3
      the list P1,..,Ph has length 3: expected 2, one number for each level
    xgft 4,0 1,2
      M2 is 0: expected 1 to 254
    xgft 4,4 1,255
      W2 is 255: expected 1 to 254
    xgft 200,4 1,100
      a switch of this fabric needs 300 ports: expected at most 254
    xgft 200,200,200 1,1,1
      the fabric needs 8040201 LIDs (8000000 host ports and 40201 switches): expected at most 49151
    "#);
}

#[test]
fn fractions_must_be_fractions() {
    let fraction = |drop_links, drop_switches| {
        let options = Options { drop_links, drop_switches, ..Options::default() };
        generate(&parsed("torus 4x4"), &options).expect_err("a bad share").to_string()
    };
    assert_eq!(fraction(-0.1, 0.0), "the fraction of links to drop is -0.1: expected 0 to 1");
    assert_eq!(fraction(0.0, f64::NAN), "the fraction of switches to drop is NaN: expected 0 to 1");
    assert_eq!(
        fraction(0.0, 1.0),
        "no host is left when 16 of 16 switches are dropped: expected to drop fewer"
    );
}
