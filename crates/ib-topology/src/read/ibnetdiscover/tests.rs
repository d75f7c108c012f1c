use ib_types::{Guid, Lid, LinkSpeed, LinkWidth, NodeKind};

use crate::read::ibnetdiscover;
use crate::{Fabric, ParseError};

const READER: fn(&str, &[u8]) -> Result<Fabric, ParseError> = ibnetdiscover;

const GOOD: &str = r##"#
# Topology file: generated on Thu Jan  1 00:00:00 2026
#

vendid=0x2c9
devid=0xc738
sysimgguid=0x1003
switchguid=0x1000(1000)
Switch	4 "S-1000"		# "leaf" enhanced port 0 lid 1 lmc 0
[1]	"H-2000"[1](2001) 		# "host" lid 2 4xQDR
[2]	"H-2000"[2](2002) 		# "host" lid 4 4xHDR

vendid=0x2c9
devid=0x1013
sysimgguid=0x2000
caguid=0x2000
Ca	2 "H-2000"		# "host"
[1](2001) 	"S-1000"[1]		# lid 2 lmc 1 "leaf" lid 1 4xQDR
[2](2002) 	"S-1000"[2]		# lid 4 lmc 0 "leaf" lid 1 4xHDR
"##;

/// Replaces `from` with `to` in [`GOOD`], reads the result, and returns the error message.
fn refused(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "the valid file contains {from:?}");
    let text = GOOD.replacen(from, to, 1);
    READER("f", text.as_bytes()).expect_err(&text).to_string()
}

#[test]
fn malformed_and_contradicting_lines_are_refused() {
    let cases = [
        (
            "vendid=0x2c9\ndevid=0xc738",
            "vendid=0x1000000\ndevid=0xc738",
            "f:5:8: found `0x1000000`, expected a vendor ID of 24 bits",
        ),
        (
            "devid=0xc738",
            "devid=0x10000",
            "f:6:7: found `0x10000`, expected a device ID of 16 bits",
        ),
        (
            "switchguid=0x1000(1000)",
            "switchguid=0x10000000000000000(1000)",
            "f:8:12: found `0x10000000000000000(1000)`, expected a GUID of 64 bits",
        ),
        (
            "switchguid=0x1000(1000)",
            "switchguid=0x1000(1000",
            "f:8:23: found the end of the line, expected `)`",
        ),
        (
            "switchguid=0x1000(1000)",
            "switchguid=0x1000(0)",
            "f:8:19: found `0)`, expected a port GUID other than zero",
        ),
        (
            "switchguid=0x1000(1000)\n",
            "",
            "f:8:1: found node \"S-1000\" without a GUID, expected a line `switchguid=` before it",
        ),
        (
            "switchguid=0x1000(1000)",
            "caguid=0x1000",
            "f:9:1: found node \"S-1000\" after the GUID of a Channel Adapter (line 8), expected a line `switchguid=` before it",
        ),
        (
            "switchguid=0x1000(1000)",
            "switchguid=0x0",
            "f:8:12: found GUID zero for node \"S-1000\", expected another GUID",
        ),
        (
            "caguid=0x2000",
            "caguid=0x1000",
            "f:16:8: found GUID 0x0000000000001000 for \"H-2000\", expected one that \"S-1000\" does not have already",
        ),
        (
            "sysimgguid=0x2000",
            "sysimgguid=0x2000 junk",
            "f:15:19: found `junk`, expected the end of the line",
        ),
        (
            "Ca\t2 \"H-2000\"",
            "Cb\t2 \"H-2000\"",
            "f:17:1: found `Cb`, expected `Switch`, `Ca`, `Rt`, a port like `[1]`, one of `vendid=`, `devid=`, `sysimgguid=`, `switchguid=`, `caguid=`, `rtguid=`, or a comment",
        ),
        ("Switch\t4", "Switch\t255", "f:9:8: found `255`, expected a number of ports, 1 to 254"),
        ("Switch\t4", "Switch\t0", "f:9:8: found `0`, expected a number of ports, 1 to 254"),
        (
            "Switch\t4",
            "Switch\t99999999999999999999",
            "f:9:8: found `99999999999999999999`, expected a number of ports, 1 to 254",
        ),
        (
            "Switch\t4 \"S-1000\"",
            "Switch\t4 \"\"",
            "f:9:10: found `\"\"`, expected a node's name that is not empty",
        ),
        (
            "Ca\t2 \"H-2000\"",
            "Ca\t2 \"S-1000\"",
            "f:17:6: found node \"S-1000\" a second time, expected every node once",
        ),
        (
            "enhanced port 0",
            "big port 0",
            "f:9:29: found `big`, expected `enhanced port 0` or `base port 0`",
        ),
        ("lid 1 lmc 0\n", "lid 1 lmc 8\n", "f:9:55: found `8`, expected an LMC, 0 to 7"),
        ("lid 1 lmc 0\n", "lid 49152 lmc 0\n", "f:9:49: found `49152`, expected a LID, 0 to 49151"),
        (
            "lid 2 lmc 1",
            "lid 49151 lmc 1",
            "f:18:27: found LID 49151 with LMC 1, expected the port's highest LID to be at most 49151",
        ),
        (
            "\"host\"\n[1]",
            "\"host\n[1]",
            "f:17:23: found the end of the line, expected the quote that closes a node's description",
        ),
        (
            "[2](2002) \t\"S",
            "[3](2002) \t\"S",
            "f:19:2: found `3](2002)`, expected a port of this node, 1 to 2",
        ),
        (
            "[2](2002) \t\"S",
            "[1](2002) \t\"S",
            "f:19:1: found port 1 of \"H-2000\" a second time, expected it only on line 18",
        ),
        (
            "[2](2002) \t\"S",
            "[](2002) \t\"S",
            "f:19:2: found `](2002)`, expected a port of this node, 1 to 2",
        ),
        (
            "[2](2002) \t\"S",
            "[2](2003) \t\"S",
            "f:11:5: found port GUID 0x0000000000002002 for \"H-2000\" port 2, expected 0x0000000000002003 as in the record of that port",
        ),
        (
            "[2](2002) \t\"S",
            "[2](2001) \t\"S",
            "f:19:1: found GUID 0x0000000000002001 for \"H-2000\", expected one that \"H-2000\" does not have already",
        ),
        (
            "\"S-1000\"[2]\t\t# lid 4",
            "\"S-1001\"[2]\t\t# lid 4",
            "f:19:12: found a link to \"S-1001\", expected the name of a node in the file",
        ),
        (
            "\"S-1000\"[2]\t\t# lid 4",
            "\"S-1000\"[9]\t\t# lid 4",
            "f:19:12: found a link to port 9 of \"S-1000\", expected 1 to 4",
        ),
        (
            "\"S-1000\"[2]\t\t# lid 4",
            "\"S-1000\"[3]\t\t# lid 4",
            "f:11:5: found port 2 of \"H-2000\" linked to port 3 of \"S-1000\" (line 19), expected it to be linked to port 2 of \"S-1000\" as on this line",
        ),
        (
            "\"S-1000\"[2]\t\t# lid 4",
            "\"H-2000\"[2]\t\t# lid 4",
            "f:11:5: found port 2 of \"H-2000\" linked to port 2 of \"H-2000\" (line 19), expected it to be linked to port 2 of \"S-1000\" as on this line",
        ),
        (
            "\"S-1000\"[2]\t\t# lid 4",
            "\"S-1000\"[1]\t\t# lid 4",
            "f:11:5: found port 2 of \"H-2000\" linked to port 1 of \"S-1000\" (line 19), expected it to be linked to port 2 of \"S-1000\" as on this line",
        ),
        (
            "[2](2002) \t\"S-1000\"[2]\t\t# lid 4 lmc 0 \"leaf\" lid 1 4xHDR\n",
            "",
            "f:11:5: found no line for port 2 of \"H-2000\", expected one that links it to port 2 of \"S-1000\" as on this line",
        ),
        (
            "lid 4 4xHDR",
            "lid 4 4xNDR",
            "f:11:1: found 4xNDR at one end and 4xHDR at the other for the link to port 2 of \"H-2000\" (line 19), expected both ends to agree",
        ),
        (
            "lid 4 4xHDR",
            "lid 4 3xHDR",
            "f:11:40: found `3xHDR`, expected a link width and speed like `4xHDR`, the width one of 1x, 2x, 4x, 8x, 12x",
        ),
        (
            "lid 4 4xHDR",
            "lid 4 4xZDR",
            "f:11:42: found `ZDR`, expected a link speed: one of SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR, XDR",
        ),
        (
            "lid 4 4xHDR",
            "lid 5 4xHDR",
            "f:11:5: found LID 5 for \"H-2000\" port 2, expected 4 as in the record of that port",
        ),
        ("lid 4 4xHDR", "lid 4 4xHDR now", "f:11:46: found `now`, expected the end of the line"),
        (
            "\"leaf\" lid 1 4xHDR\n",
            "\"leaf\" lid 1 4xH",
            "f:19:54: found `H`, expected a link speed: one of SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR, XDR",
        ),
        (
            "\"leaf\" lid 1 4xHDR\n",
            "\"leaf",
            "f:19:44: found the end of the line, expected the quote that closes the description of the node at the other end",
        ),
        (
            "[2](2002) \t\"S-1000\"[2]\t\t# lid 4 lmc 0 \"leaf\" lid 1 4xHDR\n",
            "\n[2](2002) \t\"S-1000\"[2]\t\t# lid 4 lmc 0 \"leaf\" lid 1 4xHDR\n",
            "f:20:1: found `[2](2002)`, expected a node before its ports",
        ),
        (
            "[2](2002) \t\"S-1000\"[2]\t\t# lid 4 lmc 0 \"leaf\" lid 1 4xHDR\n",
            "[2](2002) \t\"S-1000\"[2]\t\t# lid 4 lmc 0 \"leaf\" lid 1 4xHDR\ncaguid=0x3000\n",
            "f:20:1: found identifier lines at the end of the file, expected the node that they describe",
        ),
        (
            "Ca\t2 \"H-2000\"",
            " Ca\t2 \"H-2000\"",
            "f:17:2: found `Ca`, expected a line that starts in column 1",
        ),
        (
            "\"leaf\" enh",
            "\"le\u{7}af\" enh",
            "f:9:25: found control character 0x07, expected text",
        ),
        (
            "[1]\t\"H-2000\"[1](2001) \t\t# \"host\" lid 2 4xQDR",
            "[1]\t\"H-2000\"[1](2001) \t\t# \"host\" lid 2 4xQDR s=4 w=2 v=x",
            "f:10:56: found `x`, expected a number, 0 to 4294967295",
        ),
    ];
    for (from, to, expected) in cases {
        assert_eq!(refused(from, to), expected);
    }
}

fn read(text: &str) -> Fabric {
    READER("f", text.as_bytes()).expect("the file is valid")
}

#[test]
fn all_fields_of_the_output_are_read() {
    let fabric = read(GOOD);
    let leaf = fabric.find_name("S-1000").expect("node `S-1000` exists");
    let host = fabric.find_name("H-2000").expect("node `H-2000` exists");
    let (switch, adapter) = (fabric.node(leaf), fabric.node(host));
    assert_eq!(switch.kind, NodeKind::Switch);
    assert_eq!((switch.guid, switch.system_guid), (Guid(0x1000), Guid(0x1003)));
    assert_eq!((switch.vendor_id, switch.device_id, switch.ports), (0x2c9, 0xc738, 4));
    assert_eq!((switch.description.as_str(), switch.enhanced_port0), ("leaf", true));
    assert_eq!((adapter.description.as_str(), adapter.enhanced_port0), ("host", false));
    let ports: Vec<_> = fabric
        .ports_of(host)
        .map(|(_, port)| (port.guid, port.lid.map(Lid::get), port.lmc.get()))
        .collect();
    let none = (Guid::ZERO, None, 0);
    assert_eq!(ports, [none, (Guid(0x2001), Some(2), 1), (Guid(0x2002), Some(4), 0)]);
    let port0 = fabric.port(fabric.port_id(leaf, 0).expect("port 0 exists"));
    assert_eq!(port0.lid.map(Lid::get), Some(1));
    let rates: Vec<_> = fabric.links().map(|(port, _)| fabric.port(port).rate.speed).collect();
    assert_eq!(rates, [LinkSpeed::Qdr, LinkSpeed::Hdr]);
}

#[test]
fn every_width_and_speed_is_read() {
    for width in LinkWidth::ALL {
        for speed in LinkSpeed::ALL {
            let fabric = read(&GOOD.replace("4xHDR", &format!("{width}{speed}")));
            let (port, _) = fabric.links().last().expect("the fabric has links");
            let rate = fabric.port(port).rate;
            assert_eq!((rate.width, rate.speed), (width, speed));
        }
    }
}

#[test]
fn unnamed_speed_is_ndr_and_unnamed_width_is_2x() {
    let fabric = read(&GOOD.replace("4xHDR", "?????"));
    let (port, _) = fabric.links().last().expect("the fabric has links");
    let rate = fabric.port(port).rate;
    assert_eq!((rate.width, rate.speed), (LinkWidth::X2, LinkSpeed::Ndr));
}

#[test]
fn output_of_options_f_and_g_is_skipped() {
    let text = GOOD
        .replace(
            "vendid=0x2c9\ndevid=0xc738",
            "Chassis 1 (guid 0x5)\nHostname: x\n\n# Spine Nodes\nvendid=0x2c9\ndevid=0xc738",
        )
        .replace("0x1003", "0x1003\t\t# Chassis 1 (x) slot 2")
        .replace("(1000)", "(1000)\t# ISR9024 spine 1")
        .replace("[1]\t\"H-2000\"[1]", "[1][ext 3]\t\"H-2000\"[1][ext 1]")
        .replace("[1](2001) \t\"S-1000\"[1]", "[1](2001) \t\"S-1000\"[1][ext 3]")
        .replace("4xHDR", "4xHDR s=4 w=2 v=8 slot 3")
        .replace("\t\t# \"host\"\n", "\t\t# \"host\" (scp)\n")
        .replace(
            "\nvendid=0x2c9\ndevid=0x1013",
            "\nNon-Chassis Nodes\n\nvendid=0x2c9\ndevid=0x1013",
        );
    assert_eq!(read(&text), read(GOOD));
}

#[test]
fn descriptions_may_hold_quotes_and_braces() {
    let text = GOOD.replace("\"leaf\"", "\"a \"leaf\", {1} # [2]\"").replace("\"host\"", "\"\"");
    let fabric = read(&text);
    let descriptions: Vec<_> = fabric.nodes().map(|(_, node)| node.description.as_str()).collect();
    assert_eq!(descriptions, ["a \"leaf\", {1} # [2]", ""]);
}

#[test]
fn crlf_line_ends_are_accepted() {
    assert_eq!(read(&GOOD.replace('\n', "\r\n")), read(GOOD));
    assert_eq!(read(GOOD.trim_end()), read(GOOD));
}

#[test]
fn port_without_guid_gets_node_guid_plus_number() {
    let text = GOOD.replace("Ca\t2", "Ca\t4").replace("caguid=0x2000", "caguid=0x2010");
    let fabric = read(&text);
    let host = fabric.find_name("H-2000").expect("node `H-2000` exists");
    let guids: Vec<_> = fabric.ports_of(host).skip(1).map(|(_, port)| port.guid.0).collect();
    assert_eq!(guids, [0x2001, 0x2002, 0x2013, 0x2014]);
}

#[test]
fn declared_port_guid_overrides_an_assumed_one() {
    let text = GOOD.replace("(2002)", "(2003)").replace("Ca\t2", "Ca\t3");
    let fabric = read(&text);
    let host = fabric.find_name("H-2000").expect("node `H-2000` exists");
    let guids: Vec<_> = fabric.ports_of(host).skip(1).map(|(_, port)| port.guid.0).collect();
    assert_eq!(guids, [0x2001, 0x2003, 0]);
    assert!(GOOD.contains("(2002)"));
}

#[test]
fn port_guid_is_read_from_the_line_of_the_peer() {
    let fabric =
        read(&GOOD.replace("[1](2001) \t\"S", "[1]\t\"S").replace("[1](2001)", "[1](20ff)"));
    assert!(fabric.find_port_guid(Guid(0x20ff)).is_some());
    assert!(fabric.find_port_guid(Guid(0x2001)).is_none());
}

#[test]
fn switch_port_guid_may_differ_from_node_guid() {
    let fabric = read(&GOOD.replace("(1000)", "(1001)"));
    let port = fabric.find_port_guid(Guid(0x1001)).expect("port 0 has this GUID");
    assert_eq!(fabric.port(port).number, 0);
    assert!(fabric.find_guid(Guid(0x1000)).is_some());
}

/// If stderr is redirected to the file, messages of `ibnetdiscover` can be before, in and between the records.
#[test]
fn messages_among_the_lines_are_skipped() {
    let message = "ibwarn: [917] mad_rpc: _do_madrpc failed; dport (DR path slid 0; 0,1,3)";
    let location = "src/query_smp.c:197; umad (DR path slid 0; 0,1,3 Attr 0x11:0) bad status 110";
    let ports = "\
CA     5  1 0x0000000000100005 4x EDR - SW     3  1 0x0000000000200001 ( 'host' - 'leaf' )
SW     3  1 0x0000000000200001 4x EDR - CA     5  1 0x0000000000100005 ( 'leaf' - 'host' )
";
    for text in [GOOD, ports] {
        let expected = crate::read("net", text.as_bytes()).expect("the file is valid");
        for number in 0..=text.lines().count() {
            let mut lines: Vec<&str> = text.lines().collect();
            lines.splice(number..number, [message, location]);
            let found = crate::read("net", lines.join("\n").as_bytes()).expect("the file is valid");
            assert_eq!(found.node_count(), expected.node_count(), "line {number}");
            assert!(found.links().eq(expected.links()), "line {number}");
        }
    }
}
