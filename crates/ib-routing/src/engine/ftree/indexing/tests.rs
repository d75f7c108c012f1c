use super::super::tests::net::{Net, subnet, switches, two_leaves, whole};
use super::super::{Groups, Ranks, RoutingOptions, adapters};
use super::*;
use ib_topology::Fabric;

fn indexed(fabric: &Fabric, from_roots: bool) -> Result<Vec<String>, EngineError> {
    indexed_with(fabric, &RoutingOptions::default(), from_roots)
}

fn indexed_with(
    fabric: &Fabric,
    options: &RoutingOptions,
    from_roots: bool,
) -> Result<Vec<String>, EngineError> {
    let subnet = subnet(fabric);
    let ports = adapters::collect(&subnet, options, &mut Vec::new()).unwrap();
    let ranks = Ranks::new(&subnet, &ports, options, &mut Vec::new()).unwrap();
    let mut groups = Groups::new(&subnet, &ranks);
    let leaves = index(&subnet, &ranks, &ports, &mut groups, from_roots)?;
    Ok(leaves.order.iter().map(|&id| subnet.switch_node(id).description.clone()).collect())
}

#[test]
fn leaves_are_ordered_by_subtree() {
    let fabric = whole(&["1,2,3", "1,2,2"]);
    let expected = ["leaf-0", "leaf-1", "leaf-2", "leaf-3", "leaf-4", "leaf-5"];
    assert_eq!(indexed(&fabric, false).unwrap(), expected);
    assert_eq!(indexed(&fabric, true).unwrap(), expected);
}

#[test]
fn search_follows_the_order_of_ports() {
    let mut net = Net::default();
    net.switches(&["leaf0", "leaf1", "leaf2", "root"]).hosts(&["h0", "h1", "h2"]);
    net.link("root", &["leaf2", "leaf0", "leaf1"]);
    net.link("leaf0", &["h0"]).link("leaf1", &["h1"]).link("leaf2", &["h2"]);
    // leaf0 has the lowest GUID, so the search starts there, goes up to the root, and then down in the order of the
    // root's ports.
    assert_eq!(indexed(&net.build(), false).unwrap(), ["leaf0", "leaf2", "leaf1"]);
    assert_eq!(indexed(&net.build(), true).unwrap(), ["leaf2", "leaf0", "leaf1"]);
}

#[test]
fn leaves_without_compute_nodes_keep_their_position() {
    let mut net = two_leaves();
    net.switches(&["leaf2", "leaf3"]).link("leaf2", &["root0", "root1"]);
    net.link("leaf3", &["root0", "root1"]).hosts(&["h4"]).link("leaf3", &["h4"]);
    net.switches(&["leaf4"]).link("leaf4", &["root0", "root1"]);
    let fabric = net.build();
    let root_guids = Some(switches(&fabric, "root"));
    let options = RoutingOptions { root_guids, ..RoutingOptions::default() };
    let order = indexed_with(&fabric, &options, false).unwrap();
    assert_eq!(order, ["leaf0", "leaf1", "leaf2", "leaf3"]);
}

#[test]
fn single_leaf_is_refused() {
    let fabric = whole(&["3,1", "1,2"]);
    assert_eq!(
        indexed(&fabric, false).unwrap_err().to_string(),
        "ftree: all compute nodes are on switch `leaf-0` (0x0002c90000200000); expected at least \
         2 leaves"
    );
}

/// A digit has 255 values. Switches that get no value come after all others, in the order of their [`SwitchId`]s.
#[test]
fn leaves_beyond_the_digit_are_last() {
    let names: Vec<&'static str> =
        (0..300).map(|index| &*Box::leak(format!("leaf{index}").into_boxed_str())).collect();
    let hosts: Vec<&'static str> =
        (0..300).map(|index| &*Box::leak(format!("h{index}").into_boxed_str())).collect();
    let mut net = Net::default();
    net.switches(&["root0", "root1"]).switches(&names).hosts(&hosts);
    for (index, (leaf, host)) in names.iter().zip(&hosts).enumerate() {
        net.link(leaf, &[host]);
        if index < 200 {
            net.link(leaf, &["root0"]);
        }
        if index >= 100 {
            net.link(leaf, &["root1"]);
        }
    }
    // In the order of byte-swapped GUIDs, leaf254 (GUID 0x300) is the first leaf. The search goes up from there to
    // root1, down to the other leaves of root1, and then up to root0. Only 55 leaves of root0 get an index.
    let order = indexed(&net.build(), false).unwrap();
    let rest = (100..300).filter(|&index| index != 254).chain(0..100);
    let expected: Vec<&str> = [254].into_iter().chain(rest).map(|index| names[index]).collect();
    assert_eq!(order, expected);
}
