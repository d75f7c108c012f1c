use ib_types::{Guid, LinkSpeed, LinkWidth, NodeKind};

use crate::read::{ibnetdiscover, read};

/// Output of `ibnetdiscover -sp`. One of the switches has a loopback plug at port 5.
const GOOD: &str = "\
DR path slid 0; dlid 0; 0 -> new Switch {0000000000200000} portnum 0 lid 0-0 \"\"
DR path slid 0; dlid 0; 0,1 -> new Channel Adapter {0000000000100004} portnum 1 lid 0-0 \"\"
CA     5  2 0x0000000000100006 4x EDR - SW     3  1 0x0000000000200001 ( 'host's' - 'leaf 2' )
SW     3  3 0x0000000000200001 4x SDR                                    'leaf 2'
SW     3  2 0x0000000000200001 2x ??? - SW     1  4 0x0000000000200000 ( 'leaf 2' - 'leaf 1' )
SW     3  1 0x0000000000200001 4x EDR - CA     5  2 0x0000000000100006 ( 'leaf 2' - 'host's' )
SW     1  5 0x0000000000200000 4x SDR - SW     1  5 0x0000000000200000 ( 'leaf 1' - 'leaf 1' )
SW     1  4 0x0000000000200000 2x ??? - SW     3  2 0x0000000000200001 ( 'leaf 1' - 'leaf 2' )
";

#[test]
fn port_list_describes_the_fabric() {
    let fabric = read("ports", GOOD.as_bytes()).expect("the list is complete");
    assert_eq!((fabric.node_count(), fabric.link_count()), (3, 3));
    let host = fabric.find_guid(Guid(0x10_0006)).expect("the adapter's port is listed");
    assert_eq!(fabric.node(host).kind, NodeKind::ChannelAdapter);
    assert_eq!(fabric.node(host).description, "host's");
    let port = fabric.find_port_guid(Guid(0x10_0006)).expect("the adapter's port has its GUID");
    assert_eq!(fabric.port(port).number, 2);
    assert_eq!(fabric.port(port).lid.map(ib_types::Lid::get), Some(5));
    assert_eq!(fabric.port(port).rate.speed, LinkSpeed::Edr);
    let leaf = fabric.find_guid(Guid(0x20_0001)).expect("the switch is listed");
    assert_eq!(
        (fabric.node(leaf).ports, fabric.node(leaf).name.as_str()),
        (3, "S-0000000000200001")
    );
    let trunk = fabric.port_id(leaf, 2).expect("port 2 exists");
    assert_eq!(fabric.port(trunk).rate.width, LinkWidth::X2);
    let idle = fabric.port_id(leaf, 3).expect("port 3 exists");
    assert_eq!(fabric.port(idle).peer, None);
    let spine = fabric.find_guid(Guid(0x20_0000)).expect("the switch is listed");
    let plug = fabric.port_id(spine, 5).expect("port 5 exists");
    assert_eq!(fabric.port(plug).peer, Some(plug));
    assert_eq!(ibnetdiscover("ports", GOOD.as_bytes()).as_ref(), Ok(&fabric));
}

#[test]
fn contradicting_port_lists_are_refused() {
    for (from, to, expected) in [
        ("CA     5  2", "CX     5  2", "f:3:1: "),
        ("CA     5  2", "CA     5  0", "f:3:11: "),
        ("CA     5  2", "CA 49152  2", "f:3:4: "),
        ("4x EDR", "5x EDR", "f:3:32: "),
        ("EDR - SW", "DDR - SW", "f:3:1: "),
        ("SW     3  1", "SW     4  1", "f:3:41: "),
        ("SW     3  1", "SW     3  9", "f:3:41: "),
        ("200001 ( 'host", "200002 ( 'host", "f:3:41: "),
        ("( 'host's'", "( 'host's", "f:3:"),
        ("'leaf 2'\nSW", "'leaf 3'\nSW", "f:5:1: "),
        ("'leaf 2'\n", "'leaf 2\n", "f:4:"),
    ] {
        assert!(GOOD.contains(from), "{from}");
        let text = GOOD.replacen(from, to, 1);
        let error = read("f", text.as_bytes()).expect_err(&text).to_string();
        assert!(error.starts_with(expected), "{from} -> {to}: {error}");
    }
}
