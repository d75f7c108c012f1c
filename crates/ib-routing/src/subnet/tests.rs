use super::*;
use ib_topology::{LinkRate, NodeSpec};
use ib_types::NodeKind;

/// Returns two linked switches with one host each, and a third switch and host without a link to them.
fn split() -> Fabric {
    let mut fabric = Fabric::new();
    for pair in 0..3u64 {
        let switch = NodeSpec::new(NodeKind::Switch, format!("s{pair}"), Guid(0x20_0000 + pair), 4);
        let switch = fabric.add_node(switch).expect("the GUID is new");
        let guid = Guid(0x10_0000 + 2 * pair);
        let host = NodeSpec::new(NodeKind::ChannelAdapter, format!("h{pair}"), guid, 1);
        let host = fabric.add_node(host).expect("the GUID is new");
        fabric.set_port_guid(host, 1, Guid(guid.0 + 1)).expect("the GUID is new");
        fabric.connect((host, 1), (switch, 1), LinkRate::DEFAULT).expect("the ports are free");
    }
    let (a, b) =
        (fabric.find_name("s0").expect("s0 exists"), fabric.find_name("s1").expect("s1 exists"));
    fabric.connect((a, 4), (b, 3), LinkRate::DEFAULT).expect("the ports are free");
    fabric
}

#[test]
fn discovery_stops_at_the_edge_of_the_subnet() {
    let fabric = split();
    let subnet =
        Subnet::discover(&fabric, &SubnetOptions::default()).expect("the fabric has a linked host");
    assert_eq!(subnet.switches().len(), 2);
    assert_eq!(subnet.end_ports().len(), 4);
    let cut: Vec<_> = subnet.cut_off().iter().map(|&id| fabric.node(id).name.as_str()).collect();
    assert_eq!(cut, ["s2", "h2"]);
    assert_eq!(subnet.peers(SwitchId(0))[4], Peer::Switch(SwitchId(1), 3));
}

#[test]
fn sm_port_gets_the_first_lid() {
    let fabric = split();
    let sm_port = Some(Guid(0x10_0003));
    let subnet = Subnet::discover(&fabric, &SubnetOptions { sm_port, ..Default::default() });
    let subnet = subnet.expect("the fabric has a linked host");
    assert_eq!(subnet.end_port(subnet.sm_port()).base_lid.get(), 1);
    let order: Vec<_> = subnet.end_ports().iter().map(|port| port.guid.0).collect();
    assert_eq!(order, [0x20_0000, 0x10_0001, 0x20_0001, 0x10_0003]);
}

#[test]
fn missing_or_unlinked_sm_port_is_refused() {
    let fabric = split();
    let at = |guid| {
        Subnet::discover(&fabric, &SubnetOptions { sm_port: Some(guid), ..Default::default() })
            .err()
    };
    assert_eq!(at(Guid(5)), Some(SubnetError::NoSuchSmPort(Guid(5))));
    assert_eq!(
        Subnet::discover(&Fabric::new(), &SubnetOptions::default()).err(),
        Some(SubnetError::NoLinkedPort)
    );
}
