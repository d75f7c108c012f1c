use ib_types::{Guid, Lid, LinkSpeed, LinkWidth, NodeKind};

use crate::read::subnet_list;
use crate::{Fabric, ParseError};

const READER: fn(&str, &[u8]) -> Result<Fabric, ParseError> = subnet_list;

const GOOD: &str = r##"{ SW Ports:24 SystemGUID:0000000000000903 NodeGUID:0000000000000900 PortGUID:0000000000000900 VenID:0002C9 DevID:CF08 Rev:000000A0 {leaf} LID:0043 PN:01 } { CA Ports:02 SystemGUID:0000000000000a00 NodeGUID:0000000000000a00 PortGUID:0000000000000a01 VenID:000002C9 DevID:10130000 Rev:00000000 {host HCA-1} LID:0001 PN:01 } PHY=4x LOG=ACT SPD=25
{ CA Ports:02 SystemGUID:0000000000000a00 NodeGUID:0000000000000a00 PortGUID:0000000000000a01 VenID:0002C9 DevID:1013 Rev:00000000 {host HCA-1} LID:0001 PN:01 } { SW Ports:24 SystemGUID:0000000000000903 NodeGUID:0000000000000900 PortGUID:0000000000000900 VenID:000002C9 DevID:CF080000 Rev:000000A0 {leaf} LID:0043 PN:01 } PHY=4x LOG=ACT SPD=25
"##;

/// Replaces `from` with `to` in [`GOOD`], reads the result, and returns the error message.
fn refused(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "the valid file contains {from:?}");
    let text = GOOD.replacen(from, to, 1);
    READER("f", text.as_bytes()).expect_err(&text).to_string()
}

#[test]
fn malformed_and_contradicting_lines_are_refused() {
    let (_, second) = GOOD.split_once('\n').expect("the file has two lines");
    let cases = [
        ("{ SW", "{ ** ", "f:1:3: found `**`, expected a node type: one of `SW`, `CA`, `Rt`"),
        ("{ SW", "SW", "f:1:1: found `SW`, expected `{ `"),
        ("Ports:24 S", "Ports:FF S", "f:1:12: found `FF`, expected a number of ports, 01 to FE"),
        ("Ports:24 S", "Ports:00 S", "f:1:1: found Ports:00, expected 01 to FE"),
        (
            "NodeGUID:0000000000000900 P",
            "NodeGUID:x P",
            "f:1:52: found `x`, expected a GUID of up to 16 hexadecimal digits",
        ),
        (
            "NodeGUID:0000000000000900 P",
            "NodeGUID:00000000000000900 P",
            "f:1:52: found `00000000000000900`, expected a GUID of up to 16 hexadecimal digits",
        ),
        (
            "NodeGUID:0000000000000a00 P",
            "NodeGUID:0000000000000000 P",
            "f:1:156: found GUID zero for node \"H-0000000000000000\", expected another GUID",
        ),
        (
            "VenID:0002C9",
            "VenID:1000000",
            "f:1:101: found `1000000`, expected a vendor ID of 24 bits",
        ),
        (
            "DevID:CF08 ",
            "DevID:CF081234 ",
            "f:1:114: found `CF081234`, expected a device ID of 16 bits, in either half of 32",
        ),
        ("Rev:000000A0 {", "Rev:000000A0 ", "f:1:131: found `leaf}`, expected ` {`"),
        ("{leaf} LID", "{leaf LID", "f:1:322: found `PHY=4x`, expected `{ `"),
        ("LID:0043", "LID:C000", "f:1:143: found `C000`, expected a LID, 0000 to BFFF"),
        (
            "PN:01 } { CA",
            "PN:19 } { CA",
            "f:1:156: found port 1 of \"H-0000000000000a00\" linked to port 1 of \"S-0000000000000900\" (line 2), expected it to be linked to port 25 of \"S-0000000000000900\" as on this line",
        ),
        (
            "PN:01 } { CA",
            "PN:25 } { CA",
            "f:1:1: found port 25, expected 01 to 24 as the node has Ports:24",
        ),
        (
            "PN:01 } { CA",
            "PN:00 } { CA",
            "f:1:1: found port 00, expected 01 to 24 as the node has Ports:24",
        ),
        (
            "PHY=4x",
            "PHY=3x",
            "f:1:327: found `3x`, expected a width: one of 1x, 2x, 4x, 8x, 12x, ??",
        ),
        (
            "LOG=ACT",
            "LOG=UP",
            "f:1:334: found `UP`, expected a port state: one of ACT, ARM, INI, DWN",
        ),
        (
            "SPD=25",
            "SPD=26",
            "f:1:342: found `26`, expected a speed: one of 2.5, 5, 10, FDR10, 14, 25, 50, 100, 200, ??",
        ),
        (
            "SPD=25",
            "SPD=14",
            "f:1:1: found 4xFDR at one end and 4xEDR at the other for the link to port 1 of \"H-0000000000000a00\" (line 2), expected both ends to agree",
        ),
        (
            "PHY=4x",
            "PHY=1x",
            "f:1:1: found 1xEDR at one end and 4xEDR at the other for the link to port 1 of \"H-0000000000000a00\" (line 2), expected both ends to agree",
        ),
        ("SPD=25\n", "SPD=25 now\n", "f:1:345: found `now`, expected the end of the line"),
        (
            second,
            "",
            "f:1:156: found no line for port 1 of \"H-0000000000000a00\", expected one that links it to port 1 of \"S-0000000000000900\" as on this line",
        ),
        (
            second,
            &second.repeat(2),
            "f:3:1: found port 1 of \"H-0000000000000a00\" a second time, expected it only on line 2",
        ),
        (
            "{leaf}",
            "{spine}",
            "f:2:162: found description {leaf} for node 0x0000000000000900, expected {spine} as on line 1",
        ),
        (
            "DevID:CF08 ",
            "DevID:CF09 ",
            "f:2:162: found DevID CF08 for node 0x0000000000000900, expected CF09 as on line 1",
        ),
        (
            "Ports:24",
            "Ports:25",
            "f:2:162: found Ports 24 for node 0x0000000000000900, expected 25 as on line 1",
        ),
        (
            "LID:0043",
            "LID:0044",
            "f:2:162: found LID:0043 for port 0 of \"S-0000000000000900\", expected 0044 as on a line above",
        ),
        (
            "PortGUID:0000000000000a01",
            "PortGUID:0000000000000a02",
            "f:2:1: found PortGUID 0x0000000000000a01 for port 1 of \"H-0000000000000a00\", expected 0x0000000000000a02 as on a line above",
        ),
        (
            "SystemGUID:0000000000000903",
            "SystemGUID:0000000000000904",
            "f:2:162: found SystemGUID 0x0000000000000903 for node 0x0000000000000900, expected 0x0000000000000904 as on line 1",
        ),
        (
            "Rev:000000A0",
            "Rev:000000A1",
            "f:2:162: found Rev 000000A0 for node 0x0000000000000900, expected 000000A1 as on line 1",
        ),
        (
            "VenID:0002C9",
            "VenID:0002C8",
            "f:2:162: found VenID 0002C9 for node 0x0000000000000900, expected 0002C8 as on line 1",
        ),
        (
            "PortGUID:0000000000000a01",
            "PortGUID:0000000000000900",
            "f:1:156: found GUID 0x0000000000000900 for \"H-0000000000000a00\", expected one that \"S-0000000000000900\" does not have already",
        ),
        (" SPD=25\n{ CA", " SP", "f:1:338: found `SP`, expected `SPD=`"),
    ];
    for (from, to, expected) in cases {
        assert_eq!(refused(from, to), expected);
    }
}

fn read(text: &str) -> Fabric {
    READER("f", text.as_bytes()).expect("the file is valid")
}

#[test]
fn all_fields_of_the_list_are_read() {
    let fabric = read(GOOD);
    let leaf = fabric.find_name("S-0000000000000900").expect("a node has this name");
    let host = fabric.find_name("H-0000000000000a00").expect("a node has this name");
    let (switch, adapter) = (fabric.node(leaf), fabric.node(host));
    assert_eq!((switch.kind, switch.ports), (NodeKind::Switch, 36));
    assert_eq!((switch.guid, switch.system_guid), (Guid(0x900), Guid(0x903)));
    assert_eq!((switch.vendor_id, switch.device_id, switch.revision), (0x2c9, 0xcf08, 0xa0));
    // The first line has the HCA as its receiving end, so the HCA's device ID is in the upper half of 32 bits there.
    assert_eq!((adapter.vendor_id, adapter.device_id, adapter.revision), (0x2c9, 0x1013, 0));
    assert_eq!(adapter.description, "host HCA-1");
    let guids: Vec<_> = fabric.ports_of(host).map(|(_, port)| port.guid.0).collect();
    assert_eq!(guids, [0, 0xa01, 0xa02]);
    let port = fabric.port(fabric.find_port_guid(Guid(0xa01)).expect("port 1 has this GUID"));
    assert_eq!(port.lid.map(Lid::get), Some(1));
    let port0 = fabric.port(fabric.find_port_guid(Guid(0x900)).expect("port 0 has this GUID"));
    assert_eq!(port0.lid.map(Lid::get), Some(0x43));
    assert_eq!((port.rate.width, port.rate.speed), (LinkWidth::X4, LinkSpeed::Edr));
}

#[test]
fn every_width_and_speed_is_read() {
    let speeds = ["2.5", "5", "10", "FDR10", "14", "25", "50", "100", "200"];
    for (text, speed) in speeds.into_iter().zip([
        LinkSpeed::Sdr,
        LinkSpeed::Ddr,
        LinkSpeed::Qdr,
        LinkSpeed::Fdr10,
        LinkSpeed::Fdr,
        LinkSpeed::Edr,
        LinkSpeed::Hdr,
        LinkSpeed::Ndr,
        LinkSpeed::Xdr,
    ]) {
        for width in LinkWidth::ALL {
            let text = GOOD.replace("SPD=25", &format!("SPD={text}"));
            let fabric = read(&text.replace("PHY=4x", &format!("PHY={width}")));
            let (port, _) = fabric.links().next().expect("the fabric has a link");
            assert_eq!(fabric.port(port).rate.speed, speed);
            assert_eq!(fabric.port(port).rate.width, width);
        }
    }
}

#[test]
fn unnamed_speed_is_ndr_and_unnamed_width_is_2x() {
    let fabric = read(&GOOD.replace("SPD=25", "SPD=??").replace("PHY=4x", "PHY=??"));
    let (port, _) = fabric.links().next().expect("the fabric has a link");
    let rate = fabric.port(port).rate;
    assert_eq!((rate.width, rate.speed), (LinkWidth::X2, LinkSpeed::Ndr));
}

#[test]
fn port_of_the_subnet_manager_is_read() {
    let text = GOOD.replace("{ CA", "{ CA-SM").replace("{ SW", "{ SW-SM");
    assert_eq!(read(&text), read(GOOD));
}

#[test]
fn descriptions_may_hold_braces() {
    let fabric = read(&GOOD.replace("{leaf}", "{} {leaf} { LID:}"));
    let (_, node) = fabric.nodes().next().expect("the fabric has a node");
    assert_eq!(node.description, "} {leaf} { LID:");
}

#[test]
fn lid_zero_is_no_lid() {
    let fabric = read(&GOOD.replace("LID:0043", "LID:0000").replace("LID:0001", "LID:0000"));
    assert!(fabric.nodes().all(|(id, _)| fabric.ports_of(id).all(|(_, port)| port.lid.is_none())));
}

#[test]
fn routers_and_big_endian_device_ids_are_read() {
    let text = GOOD.replace("{ CA", "{ Rt").replace("DevID:10130000", "DevID:00001013");
    let fabric = read(&text);
    let router = fabric.find_name("R-0000000000000a00").expect("a node has this name");
    assert_eq!(fabric.node(router).device_id, 0x1013);
}
