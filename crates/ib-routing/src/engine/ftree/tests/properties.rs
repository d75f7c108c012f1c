//! Properties of the routes on all trees, whole or degraded.

use ib_topology::generate::{Kind, Options, generate};
use ib_topology::{LinkRate, NodeId, NodeSpec};
use proptest::prelude::*;

use super::net::{subnet, switches, xgft};
use super::*;
use crate::lft::NO_PATH;
use crate::subnet::{Attachment, Peer};

/// Returns trees of two to four levels.
fn shapes() -> impl Strategy<Value = (Vec<u32>, Vec<u32>, Vec<u32>)> {
    (2usize..=4).prop_flat_map(|levels| {
        let most = if levels == 4 { 2u32 } else { 4 };
        let down = proptest::collection::vec(1..=most, levels - 2);
        let ups = proptest::collection::vec(1..=most, levels - 1);
        let parallel = proptest::collection::vec(1u32..=2, levels - 1);
        (1u32..=3, down, 2..=most, 1u32..=2, ups, parallel).prop_map(
            |(hosts, down, top, host_ports, ups, parallel)| {
                let down = [vec![hosts], down, vec![top]].concat();
                let up = [vec![host_ports], ups].concat();
                (down, up, [vec![1], parallel].concat())
            },
        )
    })
}

fn words(lists: &[&Vec<u32>]) -> Vec<String> {
    let join =
        |list: &&Vec<u32>| list.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    lists.iter().map(join).collect()
}

/// Returns the ranks that the engine uses.
fn ranks(subnet: &Subnet<'_>, options: &RoutingOptions) -> Vec<u16> {
    let ports = adapters::collect(subnet, options, &mut Vec::new()).unwrap();
    let ranks = Ranks::new(subnet, &ports, options, &mut Vec::new()).unwrap();
    subnet.switch_ids().map(|id| ranks.of(id)).collect()
}

/// Returns the switches from which packets can reach a target by going up and then down.
fn connected(subnet: &Subnet<'_>, ranks: &[u16], to: SwitchId) -> Vec<bool> {
    // The search starts at the target. It goes up only as long as it has not gone down.
    let mut seen = vec![[false; 2]; ranks.len()];
    let mut stack = vec![(to, false)];
    while let Some((at, down)) = stack.pop() {
        if std::mem::replace(&mut seen[at.index()][usize::from(down)], true) {
            continue;
        }
        for (_, other, _) in subnet.switch_links(at) {
            let goes_down = ranks[other.index()] > ranks[at.index()];
            if goes_down || !down {
                stack.push((other, goes_down));
            }
        }
    }
    seen.into_iter().map(|[up, down]| up || down).collect()
}

/// Follows the LFT entries for a LID, and returns the switches on the path; `None` if the switch `from` has no entry.
fn follow(subnet: &Subnet<'_>, lfts: &Lfts, from: SwitchId, lid: u16) -> Option<Vec<SwitchId>> {
    let owner = subnet.lid_owner(lid).unwrap();
    let mut path = vec![from];
    loop {
        let at = *path.last().unwrap();
        let port = lfts.port(at, lid);
        if port == NO_PATH {
            assert_eq!(path.len(), 1, "the path to LID {lid} is incomplete");
            return None;
        }
        if port == 0 {
            assert_eq!(subnet.end_port(owner).attachment, Attachment::Management(at));
            return Some(path);
        }
        match subnet.peers(at)[usize::from(port)] {
            Peer::EndPort(id) => {
                assert_eq!(id, owner, "LID {lid} is delivered to another port");
                return Some(path);
            }
            Peer::Switch(next, _) => path.push(next),
            Peer::None => panic!("LID {lid} has an unlinked egress port"),
        }
        assert!(path.len() <= 32, "LID {lid} has a forwarding loop");
    }
}

fn check(fabric: &Fabric, options: &RoutingOptions) -> Result<(), TestCaseError> {
    let subnet = subnet(fabric);
    let Ok(routing) = FatTree.route(&subnet, options) else { return Ok(()) };
    let ranks = ranks(&subnet, options);
    for end_port in subnet.end_ports() {
        let to = end_port.attachment.switch().unwrap();
        let connected = connected(&subnet, &ranks, to);
        for from in subnet.switch_ids() {
            let lid = end_port.base_lid.get();
            let Some(path) = follow(&subnet, &routing.lfts, from, lid) else {
                prop_assert!(!connected[from.index()], "no route from {from:?} to LID {lid}");
                continue;
            };
            let steps = path.windows(2).map(|pair| ranks[pair[1].index()] > ranks[pair[0].index()]);
            prop_assert!(steps.is_sorted(), "the path to LID {lid} goes up after it went down");
        }
    }
    Ok(())
}

/// Returns a fabric with the given links between switches. `hosts` has the switches to which the two ports of each host
/// are linked; the second port can be unlinked.
fn tangle(switches: u8, links: &[(u8, u8)], hosts: &[(u8, Option<u8>)]) -> Fabric {
    let mut fabric = Fabric::new();
    let mut add = |kind, name: String, guid, ports| {
        fabric.add_node(NodeSpec::new(kind, name, Guid(guid), ports)).unwrap()
    };
    let switch_ids: Vec<NodeId> = (0..switches)
        .map(|index| add(NodeKind::Switch, format!("s{index}"), 0x200 + u64::from(index), 100))
        .collect();
    let host_ids: Vec<NodeId> = (0..hosts.len() as u64)
        .map(|index| add(NodeKind::ChannelAdapter, format!("h{index}"), 0x1000 + index * 0x10, 2))
        .collect();
    let mut used = vec![0u8; usize::from(switches)];
    let mut next = |index: u8| {
        let index = usize::from(index % switches);
        used[index] += 1;
        (switch_ids[index], used[index])
    };
    for &(a, b) in links {
        fabric.connect(next(a), next(b), LinkRate::DEFAULT).unwrap();
    }
    for (&id, &(first, second)) in host_ids.iter().zip(hosts) {
        for (port, switch) in (1..).zip([Some(first), second]) {
            let guid = Guid(fabric.node(id).guid.0 + u64::from(port));
            fabric.set_port_guid(id, port, guid).unwrap();
            if let Some(switch) = switch {
                fabric.connect((id, port), next(switch), LinkRate::DEFAULT).unwrap();
            }
        }
    }
    fabric
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn tangles_are_refused_or_routed_without_loops(
        switches in 2u8..10,
        links in proptest::collection::vec(any::<(u8, u8)>(), 1..30),
        hosts in proptest::collection::vec(any::<(u8, Option<u8>)>(), 1..8),
        roots in proptest::option::of(proptest::collection::vec(0u64..10, 0..4)),
        compute_nodes in proptest::option::of(proptest::collection::vec(0u64..8, 0..8)),
        io_nodes in proptest::option::of(proptest::collection::vec(0u64..8, 0..8)),
        max_reverse_hops in 0u8..4,
        (quasi_ftree_indexing, connect_roots) in any::<(bool, bool)>(),
    ) {
        let fabric = tangle(switches, &links, &hosts);
        let ports = |list: Option<Vec<u64>>| {
            list.map(|list| list.into_iter().map(|host| Guid(0x1001 + host * 0x10)).collect())
        };
        let options = RoutingOptions {
            root_guids: roots.map(|list| list.into_iter().map(|id| Guid(0x200 + id)).collect()),
            cn_guids: ports(compute_nodes),
            io_guids: ports(io_nodes),
            max_reverse_hops,
            quasi_ftree_indexing,
            connect_roots,
            ..RoutingOptions::default()
        };
        let subnet = subnet(&fabric);
        if let Ok(routing) = FatTree.route(&subnet, &options) {
            for end_port in subnet.end_ports() {
                for from in subnet.switch_ids() {
                    follow(&subnet, &routing.lfts, from, end_port.base_lid.get());
                }
            }
        }
    }

    #[test]
    fn whole_trees_connect_everything((down, up, parallel) in shapes(), quasi: bool) {
        let words = words(&[&down, &up, &parallel]);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let fabric = xgft(&words, &Options::default());
        let subnet = subnet(&fabric);
        let options =
            RoutingOptions { quasi_ftree_indexing: quasi, ..RoutingOptions::default() };
        if let Ok(routing) = FatTree.route(&subnet, &options) {
            // If hosts have two ports, the fabric has two trees. The subnet is the tree of the SM's port.
            for end_port in subnet.end_ports().iter().filter(|end_port| !end_port.is_switch()) {
                for leaf in subnet.end_ports().iter().filter(|end_port| !end_port.is_switch()) {
                    let from = leaf.attachment.switch().unwrap();
                    let path = follow(&subnet, &routing.lfts, from, end_port.base_lid.get());
                    prop_assert!(path.is_some());
                }
            }
        }
        check(&fabric, &options)?;
    }

    #[test]
    fn degraded_trees_connect_what_up_and_down_can(
        (down, up, parallel) in shapes(),
        seed: u64,
        drop_links in 0.0..0.3f64,
        drop_switches in 0.0..0.2f64,
        quasi: bool,
    ) {
        let words = words(&[&down, &up, &parallel]);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let whole = xgft(&words, &Options::default());
        let top = if down.len() > 2 { "core" } else { "spine" };
        let options = RoutingOptions {
            root_guids: Some(switches(&whole, top)),
            quasi_ftree_indexing: quasi,
            ..RoutingOptions::default()
        };
        let generated = Options { seed, drop_links, drop_switches, ..Options::default() };
        // If no host is left, `generate` fails, and there are no routes to check.
        let degraded = generate(&Kind::parse("xgft", &words).unwrap(), &generated);
        prop_assume!(degraded.is_ok());
        check(&degraded.unwrap(), &options)?;
    }
}
