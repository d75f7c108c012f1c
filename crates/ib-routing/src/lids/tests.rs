use ib_topology::{Fabric, LinkRate, NodeSpec};
use ib_types::{Guid, Lid, Lmc, NodeKind};

use super::*;
use crate::subnet::{Peer, Subnet, SubnetError, SubnetOptions, SwitchId};

/// Returns a switch with GUID 0x200 and a host on each port. The port GUIDs of the hosts are 0x101, 0x103, 0x105 and so
/// on.
fn star(hosts: u8) -> Fabric {
    let mut fabric = Fabric::new();
    let switch = NodeSpec::new(NodeKind::Switch, "switch", Guid(0x200), hosts);
    let switch = fabric.add_node(switch).expect("the GUID is new");
    for index in 0..hosts {
        let guid = Guid(0x100 + 2 * u64::from(index));
        let host = NodeSpec::new(NodeKind::ChannelAdapter, format!("host{index}"), guid, 1);
        let host = fabric.add_node(host).expect("the GUID is new");
        fabric.set_port_guid(host, 1, Guid(guid.0 + 1)).expect("the GUID is new");
        fabric
            .connect((host, 1), (switch, index + 1), LinkRate::DEFAULT)
            .expect("the ports are free");
    }
    fabric
}

fn found_with(fabric: &mut Fabric, node: &str, port: u8, lid: u32, lmc: u8) {
    let node = fabric.find_name(node).expect("the fabric has the node");
    let lid = Lid::unicast(lid).expect("the LID is unicast");
    fabric
        .set_lid(node, port, Some(lid), Lmc::new(lmc).expect("the LMC is at most 7"))
        .expect("the node has the port");
}

/// Returns the LID range of each port, by port GUID, and the notes.
fn assigned(fabric: &Fabric, lids: LidOptions) -> (BTreeMap<u64, (u16, u16)>, Vec<String>) {
    let subnet = Subnet::discover(fabric, &SubnetOptions { sm_port: None, lids })
        .expect("the LIDs suffice for all ports");
    let ranges = subnet
        .end_ports()
        .iter()
        .map(|port| (port.guid.0, (port.base_lid.get(), port.base_lid.get() + port.lids - 1)));
    (ranges.collect(), subnet.lid_notes().to_vec())
}

fn lmc(value: u8) -> LidOptions {
    LidOptions { lmc: Lmc::new(value).expect("the LMC is at most 7"), ..Default::default() }
}

#[test]
fn sm_port_gets_the_first_lid_then_wire_order() {
    let (ranges, notes) = assigned(&star(3), lmc(0));
    // In the order of byte-swapped GUIDs, 0x200 precedes 0x101, because its last byte is smaller.
    assert_eq!(ranges, [(0x101, (1, 1)), (0x103, (3, 3)), (0x105, (4, 4)), (0x200, (2, 2))].into());
    assert!(notes.is_empty());
}

#[test]
fn lmc_aligns_hosts_but_not_the_switch() {
    let (ranges, _) = assigned(&star(3), lmc(2));
    assert_eq!(
        ranges,
        [(0x101, (4, 7)), (0x103, (12, 15)), (0x105, (16, 19)), (0x200, (8, 8))].into()
    );
}

#[test]
fn found_lids_are_kept_unless_reassigned() {
    let mut fabric = star(2);
    found_with(&mut fabric, "host1", 1, 40, 0);
    found_with(&mut fabric, "switch", 0, 7, 0);
    let (ranges, _) = assigned(&fabric, lmc(0));
    assert_eq!(ranges, [(0x101, (1, 1)), (0x103, (40, 40)), (0x200, (7, 7))].into());
    let (ranges, _) = assigned(&fabric, LidOptions { reassign: true, ..lmc(0) });
    assert_eq!(ranges, [(0x101, (1, 1)), (0x103, (3, 3)), (0x200, (2, 2))].into());
}

#[test]
fn duplicate_lid_goes_to_the_first_port() {
    let mut fabric = star(2);
    found_with(&mut fabric, "host0", 1, 9, 0);
    found_with(&mut fabric, "host1", 1, 9, 0);
    let (ranges, notes) = assigned(&fabric, lmc(0));
    assert_eq!(ranges[&0x101], (9, 9));
    assert_ne!(ranges[&0x103], (9, 9));
    assert_eq!(notes.len(), 1, "{notes:?}");
}

#[test]
fn misaligned_lid_is_replaced() {
    let mut fabric = star(1);
    found_with(&mut fabric, "host0", 1, 5, 0);
    let (ranges, notes) = assigned(&fabric, lmc(1));
    assert_eq!(ranges[&0x101].0 % 2, 0);
    assert_eq!(notes.len(), 1, "{notes:?}");
}

#[test]
fn guid2lid_overrides_discovered_lids() {
    let mut fabric = star(2);
    found_with(&mut fabric, "host0", 1, 9, 0);
    let guid2lid = [(Guid(0x101), (30, 30)), (Guid(0x999), (1, 1)), (Guid(0x103), (0, 0))].into();
    let (ranges, notes) = assigned(&fabric, LidOptions { guid2lid, ..lmc(0) });
    assert_eq!(ranges[&0x101], (30, 30));
    // LID 1 is reserved for a port that is missing and may return.
    assert_eq!(ranges[&0x200], (2, 2));
    assert!(notes.iter().any(|note| note.contains("0x0000000000000103")), "{notes:?}");
}

#[test]
fn running_out_of_lids_names_the_port() {
    let mut fabric = Fabric::new();
    let mut previous = None;
    for index in 0..100u64 {
        let spec =
            NodeSpec::new(NodeKind::Switch, format!("s{index}"), Guid(0x10_0000 + index), 254);
        let switch = fabric.add_node(spec).expect("the GUID is new");
        for port in 1..=250u8 {
            let guid = Guid(0x20_0000 + (index * 256 + u64::from(port)) * 2);
            let host = NodeSpec::new(NodeKind::ChannelAdapter, format!("h{}", guid.0), guid, 1);
            let host = fabric.add_node(host).expect("the GUID is new");
            fabric.set_port_guid(host, 1, Guid(guid.0 + 1)).expect("the GUID is new");
            fabric
                .connect((host, 1), (switch, port), LinkRate::DEFAULT)
                .expect("the ports are free");
        }
        if let Some(previous) = previous.replace(switch) {
            fabric
                .connect((previous, 254), (switch, 253), LinkRate::DEFAULT)
                .expect("the ports are free");
        }
    }
    let options = SubnetOptions { sm_port: None, lids: lmc(1) };
    let error = Subnet::discover(&fabric, &options).expect_err("more than 50,000 LIDs are needed");
    assert!(
        matches!(error, SubnetError::Lids(LidError::Exhausted { ports: 25_100, .. })),
        "{error}"
    );
    let options = SubnetOptions { sm_port: None, lids: lmc(0) };
    assert!(Subnet::discover(&fabric, &options).is_ok());
}

#[test]
fn lids_stay_within_the_limit() {
    let mut fabric = star(5);
    found_with(&mut fabric, "host4", 1, 40, 0);
    let limited = LidOptions { max_lid: Some(6), ..lmc(0) };
    let (ranges, _) = assigned(&fabric, limited.clone());
    assert_eq!(ranges.len(), 6);
    assert!(ranges.values().all(|&(_, last)| last <= 6), "{ranges:?}");
    // There are five LIDs for six ports.
    let limited = LidOptions { max_lid: Some(5), ..limited };
    let options = SubnetOptions { sm_port: None, lids: limited.clone() };
    let error = Subnet::discover(&fabric, &options).expect_err("no shortage is allowed");
    assert!(matches!(error, SubnetError::Lids(LidError::Exhausted { limit: 5, .. })), "{error}");
    let lids = LidOptions { allow_shortage: true, ..limited };
    let subnet = Subnet::discover(&fabric, &SubnetOptions { sm_port: None, lids })
        .expect("a shortage of LIDs is allowed");
    assert_eq!((subnet.end_ports().len(), subnet.max_lid()), (5, 5));
    let without: Vec<Guid> =
        subnet.without_lid().iter().map(|&port| fabric.port(port).guid).collect();
    assert_eq!(without, [Guid(0x109)]);
    assert!(subnet.find_end_port(Guid(0x109)).is_none());
    assert_eq!(subnet.peers(SwitchId(0))[5], Peer::None);
}

#[test]
fn switches_get_lids_before_hosts_when_lids_run_out() {
    // The hosts have the LIDs 1 to 4, and the switch has none. The highest LID is then limited to 3.
    let mut fabric = star(4);
    for (host, lid) in ["host0", "host1", "host2", "host3"].into_iter().zip(1..) {
        found_with(&mut fabric, host, 1, lid, 0);
    }
    let lids = LidOptions { max_lid: Some(3), allow_shortage: true, ..lmc(0) };
    let subnet = Subnet::discover(&fabric, &SubnetOptions { sm_port: None, lids })
        .expect("a shortage of LIDs is allowed");
    assert!(subnet.find_end_port(Guid(0x200)).is_some(), "the switch has a LID");
    assert!(subnet.find_end_port(Guid(0x101)).is_some(), "the subnet manager has a LID");
    assert_eq!((subnet.end_ports().len(), subnet.without_lid().len()), (3, 2));
}
