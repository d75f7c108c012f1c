use super::*;

fn two_switches() -> (Fabric, NodeId, NodeId) {
    let mut fabric = Fabric::new();
    let a = fabric.add_node(NodeSpec::new(NodeKind::Switch, "a", Guid(1), 4)).expect("a");
    let b = fabric.add_node(NodeSpec::new(NodeKind::Switch, "b", Guid(2), 4)).expect("b");
    (fabric, a, b)
}

#[test]
fn link_has_two_ends_and_counts_once() {
    let (mut fabric, a, b) = two_switches();
    fabric.connect((a, 1), (b, 3), LinkRate::DEFAULT).expect("both ports are free");
    let end = fabric.port_id(a, 1).expect("switch a has a port 1");
    let peer = fabric.peer(end).expect("port 1 is linked");
    assert_eq!((peer.node, peer.number), (b, 3));
    assert_eq!(fabric.link_count(), 1);
    assert_eq!(fabric.links().count(), 1);
    fabric.disconnect(end);
    assert_eq!(fabric.link_count(), 0);
    assert!(fabric.ports_of(b).all(|(_, port)| port.peer.is_none()));
}

#[test]
fn illegal_links_are_refused() {
    let (mut fabric, a, b) = two_switches();
    let rate = LinkRate::DEFAULT;
    fabric.connect((a, 1), (b, 1), rate).expect("both ports are free");
    assert!(matches!(
        fabric.connect((a, 1), (b, 2), rate),
        Err(FabricError::PortInUse { port: 1, peer_port: 1, .. })
    ));
    assert!(matches!(
        fabric.connect((a, 0), (b, 2), rate),
        Err(FabricError::PortZeroLinked { .. })
    ));
    assert!(matches!(fabric.connect((a, 5), (b, 2), rate), Err(FabricError::NoSuchPort { .. })));
    assert_eq!(fabric.link_count(), 1);
}

#[test]
fn only_switch_ports_may_have_loopback_plugs() {
    let (mut fabric, a, _) = two_switches();
    let spec = NodeSpec::new(NodeKind::ChannelAdapter, "host", Guid(9), 1);
    let host = fabric.add_node(spec).expect("name and GUID are new");
    let rate = LinkRate::DEFAULT;
    assert!(matches!(
        fabric.connect((host, 1), (host, 1), rate),
        Err(FabricError::SelfLink { port: 1, .. })
    ));
    fabric.connect((a, 2), (a, 2), rate).expect("the port is free");
    let plug = fabric.port_id(a, 2).expect("switch a has a port 2");
    assert_eq!(fabric.port(plug).peer, Some(plug));
    assert_eq!((fabric.link_count(), fabric.links().collect::<Vec<_>>()), (1, vec![(plug, plug)]));
    assert!(matches!(
        fabric.connect((a, 2), (a, 3), rate),
        Err(FabricError::PortInUse { port: 2, peer_port: 2, .. })
    ));
    fabric.disconnect(plug);
    assert_eq!((fabric.link_count(), fabric.port(plug).peer), (0, None));
}

#[test]
fn guids_and_names_are_unique() {
    let (mut fabric, _, _) = two_switches();
    let again = |name: &str, guid| NodeSpec::new(NodeKind::ChannelAdapter, name, Guid(guid), 1);
    assert!(matches!(fabric.add_node(again("a", 9)), Err(FabricError::DuplicateName { .. })));
    assert!(matches!(fabric.add_node(again("c", 1)), Err(FabricError::DuplicateGuid { .. })));
    assert!(matches!(fabric.add_node(again("c", 0)), Err(FabricError::ZeroGuid { .. })));
    let host = fabric.add_node(again("c", 9)).expect("name and GUID are new");
    assert!(matches!(
        fabric.set_port_guid(host, 1, Guid(1)),
        Err(FabricError::DuplicateGuid { .. })
    ));
    fabric.set_port_guid(host, 1, Guid(10)).expect("the GUID is new");
    assert_eq!(fabric.find_port_guid(Guid(10)), fabric.port_id(host, 1));
}

#[test]
fn switch_ports_share_the_node_guid() {
    let (mut fabric, a, _) = two_switches();
    fabric.set_port_guid(a, 0, Guid(77)).expect("the GUID is new");
    assert!(fabric.ports_of(a).all(|(_, port)| port.guid == Guid(77)));
    assert_eq!(fabric.find_port_guid(Guid(1)), None);
}
