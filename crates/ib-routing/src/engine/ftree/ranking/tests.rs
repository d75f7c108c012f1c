use ib_types::Guid;

use super::super::tests::net::{Net, subnet, switches, two_leaves, whole};
use super::super::{EngineError, Ranks, RoutingOptions, adapters};
use ib_topology::Fabric;

fn ranks(fabric: &Fabric, root_guids: Option<Vec<Guid>>) -> Result<(Ranks, Vec<String>), String> {
    let subnet = subnet(fabric);
    let options = RoutingOptions { root_guids, ..RoutingOptions::default() };
    let mut notes = Vec::new();
    let ports = adapters::collect(&subnet, &options, &mut notes).unwrap();
    match Ranks::new(&subnet, &ports, &options, &mut notes) {
        Ok(ranks) => Ok((ranks, notes)),
        Err(EngineError::Unsuitable(text)) => Err(text),
        Err(other) => panic!("{other}"),
    }
}

/// Returns the rank of each switch, in the order of the switches.
fn list(fabric: &Fabric, root_guids: Option<Vec<Guid>>) -> Vec<u16> {
    let (ranks, _) = ranks(fabric, root_guids).unwrap();
    subnet(fabric).switch_ids().map(|id| ranks.of(id)).collect()
}

#[test]
fn roots_are_farthest_from_the_hosts() {
    // The tree has four leaves, four spines and four cores.
    let fabric = whole(&["2,2,2", "1,2,2"]);
    assert_eq!(list(&fabric, None), [2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0]);
    assert_eq!(ranks(&fabric, None).unwrap().0.leaf, 2);
}

#[test]
fn hosts_above_the_leaves_change_the_roots() {
    let mut net = two_leaves();
    net.hosts(&["h4"]).link("root0", &["h4"]);
    let error = ranks(&net.build(), None).unwrap_err();
    assert_eq!(
        error,
        "ftree: compute node `h0` (port GUID 0x0000000000001001) is on switch `leaf0` \
         (0x0000000000000202) of rank 1; expected all compute nodes on leaves, which are of rank 2"
    );
}

#[test]
fn listed_roots_determine_the_ranks() {
    let fabric = two_leaves().build();
    assert_eq!(list(&fabric, Some(vec![Guid(0x200)])), [0, 2, 1, 1]);
    let (ranks, _) = ranks(&fabric, Some(vec![Guid(0x200)])).unwrap();
    assert!(ranks.has_root_list);
    assert_eq!(ranks.roots(&subnet(&fabric)).len(), 1);
}

#[test]
fn channel_adapter_guid_selects_its_switch_as_root() {
    let mut net = two_leaves();
    net.hosts(&["manager"]).link("root1", &["manager"]);
    let fabric = net.build();
    let (node, port) = (Guid(0x1040), Guid(0x1041));
    let cn_guids = Some((0..4).map(|host| Guid(0x1001 + 0x10 * host)).collect());
    for guid in [node, port] {
        let options = RoutingOptions {
            root_guids: Some(vec![Guid(0x200), guid]),
            cn_guids: cn_guids.clone(),
            ..RoutingOptions::default()
        };
        let subnet = subnet(&fabric);
        let ports = adapters::collect(&subnet, &options, &mut Vec::new()).unwrap();
        let ranks = Ranks::new(&subnet, &ports, &options, &mut Vec::new()).unwrap();
        let list: Vec<u16> = subnet.switch_ids().map(|id| ranks.of(id)).collect();
        assert_eq!(list, [0, 0, 1, 1]);
    }
}

#[test]
fn missing_roots_are_replaced_by_the_farthest() {
    let fabric = two_leaves().build();
    let (ranks, notes) = ranks(&fabric, Some(vec![Guid(0xdead)])).unwrap();
    assert!(ranks.has_root_list);
    assert_eq!(ranks.roots(&subnet(&fabric)).len(), 2);
    assert_eq!(
        notes,
        [
            "root GUID 0x000000000000dead is not in the subnet; it is skipped",
            "none of the root GUIDs is in the subnet; the switches farthest from the channel \
             adapters are the roots"
        ]
    );
}

#[test]
fn flat_fabric_is_refused() {
    let mut net = Net::default();
    net.switches(&["a", "b"]).hosts(&["h0", "h1"]).link("a", &["h0", "b"]).link("b", &["h1"]);
    assert_eq!(
        ranks(&net.build(), None).unwrap_err(),
        "ftree: all 2 switches are at rank 0; expected leaves at a rank below the roots"
    );
}

#[test]
fn hosts_on_the_roots_are_refused() {
    let fabric = two_leaves().build();
    let error = ranks(&fabric, Some(switches(&fabric, "leaf"))).unwrap_err();
    assert_eq!(
        error,
        "ftree: the tree has 1 ranks of switches from the roots to the leaves; expected 2 to 8"
    );
}

#[test]
fn too_many_ranks_are_refused() {
    let ones = "1,1,1,1,1,1,1,1,1";
    let fabric = whole(&["2,1,1,1,1,1,1,1,2", ones]);
    assert_eq!(
        ranks(&fabric, None).unwrap_err(),
        "ftree: the tree has 9 ranks of switches from the roots to the leaves; expected 2 to 8"
    );
    let fabric = whole(&["2,1,1,1,1,1,1,2", &ones[..15]]);
    assert_eq!(ranks(&fabric, None).unwrap().0.leaf, 7);
}
