use ib_types::{Guid, Lid, LinkSpeed, LinkWidth, NodeKind};

use crate::read::ibsim;
use crate::{Fabric, LinkRate, ParseError};

const READER: fn(&str, &[u8]) -> Result<Fabric, ParseError> = ibsim;

const GOOD: &str = r##"# A net file.
Switch	4 "leaf"	# "the leaf" enhanced port 0 lid 1 lmc 0
[1]	"host"[1]	# lid 2 4xHDR
[2]	"host"[2] w=3 s=7

caguid=0x500
vendid=0x2c9
Hca	2 "host"
[1]	"leaf"[1]	# lid 2 lmc 0 "leaf" lid 1 4xHDR
[2]	"leaf"[2] w=3 s=7
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
            "# A net file.",
            "A net file.",
            "f:1:1: found `A`, expected `Switch`, `Hca`, `Ca`, `Rt`, a port like `[1]`, one of `switchguid=`, `caguid=`, `hcaguids=`, `rtguid=`, `vendid=`, `devid=`, `sysimgguid=`, `width=`, `speed=`, `extspeed=`, `module=`, `include`, or a comment",
        ),
        (
            "# A net file.",
            " Switch 4 \"x\"",
            "f:1:2: found `Switch`, expected a line that starts in column 1",
        ),
        (
            "# A net file.",
            "do Unlink \"leaf\"[1]",
            "f:1:1: found `do`, expected no `do` line: ibsim commands in net files are not supported",
        ),
        (
            "# A net file.",
            "include \"other.net\"",
            "f:1:9: found an include, expected a file to read: the file \"other.net\" needs a resolver for includes",
        ),
        (
            "# A net file.",
            "include other.net",
            "f:1:9: found `other.net`, expected the name of a file in quotes",
        ),
        ("# A net file.", "width=32", "f:1:7: found `32`, expected a mask of widths, 1 to 31"),
        ("# A net file.", "width", "f:1:6: found the end of the line, expected `=`"),
        ("# A net file.", "speed=0", "f:1:7: found `0`, expected a mask of speeds, 1 to 7"),
        (
            "# A net file.",
            "extspeed=16",
            "f:1:10: found `16`, expected a mask of extended speeds, 0 to 15",
        ),
        (
            "# A net file.",
            "module=\"a-name-of-22-characters\"",
            "f:1:8: found `\"a-name-of-22-characters\"`, expected a module's name of up to 20 bytes",
        ),
        (
            "# A net file.",
            "module=\"a#b\"",
            "f:1:8: found `\"a#b\"`, expected a name without `#` and `@`, which ibsim reserves",
        ),
        (
            "# A net file.",
            "vendid=0x1000000",
            "f:1:8: found `0x1000000`, expected a vendor ID of 24 bits",
        ),
        (
            "# A net file.",
            "devid=65536",
            "f:1:7: found `65536`, expected a device ID of 16 bits, 0 to 65535",
        ),
        (
            "# A net file.",
            "switchguid 0x500",
            "f:1:12: found `0x500`, expected `=` and a GUID, or `+` and an offset",
        ),
        (
            "# A net file.",
            "switchguid=0xfffffffffffffffff",
            "f:1:12: found `0xfffffffffffffffff`, expected a GUID of 64 bits",
        ),
        (
            "# A net file.",
            "caguid=0xffffffffffffffff\nhcaguids+1",
            "f:2:10: found `1`, expected an offset that stays within 64 bits of 0xffffffffffffffff",
        ),
        (
            "# A net file.",
            "pdebug=on",
            "f:1:8: found `on`, expected a debug level, 0 to 4294967295",
        ),
        (
            "# A net file.",
            "[1] \"leaf\"[3]",
            "f:1:1: found `[1]`, expected a node before its ports",
        ),
        (
            "# A net file.",
            "Rt 1 \"gate\"\n",
            "f:1:1: found node \"gate\" with GUID zero, expected a GUID from a line `rtguid=`",
        ),
        (
            "# A net file.",
            "switchguid=0x501",
            "f:6:8: found GUID 0x0000000000000501 for \"host\", expected one that \"leaf\" does not have already (port 1 of a node with GUID 0x0000000000000500 has this GUID in ibsim)",
        ),
        (
            "caguid=0x500",
            "caguid=0xffffffffffffffff",
            "f:6:8: found GUID zero for node \"host\", expected another GUID (port 1 of a node with GUID 0xffffffffffffffff has this GUID in ibsim)",
        ),
        (
            "Hca\t2 \"host\"",
            "Hca\t255 \"host\"",
            "f:8:5: found `255`, expected a number of ports, 1 to 254",
        ),
        (
            "Hca\t2 \"host\"",
            "Hca\t2",
            "f:8:6: found the end of the line, expected a node's name in quotes",
        ),
        (
            "Hca\t2 \"host\"",
            "Hca2 \"host\"",
            "f:8:4: found `2`, expected a blank and a number of ports",
        ),
        (
            "Hca\t2 \"host\"",
            "Hca\t2 \"leaf\"",
            "f:8:7: found node \"leaf\" a second time, expected every node once",
        ),
        (
            "Hca\t2 \"host\"",
            "Hca\t2 \"ho@st\"",
            "f:8:7: found `\"ho@st\"`, expected a name without `#` and `@`, which ibsim reserves",
        ),
        (
            "Hca\t2 \"host\"",
            "Hca\t2 \"host\" twice",
            "f:8:14: found `twice`, expected a comment or the end of the line",
        ),
        (
            "Hca\t2 \"host\"",
            "Hca\t2 \"host\" # \"host\" lid 5",
            "f:8:23: found `lid`, expected the end of the line",
        ),
        (
            "Hca\t2 \"host\"",
            "Hca\t2 \"hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh\"",
            "f:8:7: found `\"hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh…`, expected a name of up to 64 bytes, including the module: ibsim truncates longer ones",
        ),
        (
            "Hca\t2 \"host\"",
            "Hca\t2 \"host\" # a description of sixty-four bytes, which are more than ibsim can keep",
            "f:8:16: found `a`, expected a description of up to 63 bytes: ibsim truncates longer ones",
        ),
        (
            "Hca\t2 \"host\"",
            "Hca\t2 \"host\" # xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "f:8:255: found a line of 265 bytes, expected at most 254: ibsim truncates longer ones",
        ),
        (
            "[2]\t\"host\"[2] w=3 s=7\n\n",
            "[2]\t\"host\"[2] w=3 s=7\n",
            "f:5:1: found `caguid=0x500`, expected an empty line after the ports of \"leaf\": ibsim skips the line that ends them",
        ),
        ("lid 1 lmc 0\n", "lid 1 lmc 9\n", "f:2:56: found `9`, expected an LMC, 0 to 7"),
        (
            "lid 1 lmc 0\n",
            "lid 1 lmc 0 more\n",
            "f:2:58: found `more`, expected `enhanced port 0`, `base port 0`, `lid`, `lmc` or the end of the line",
        ),
        (
            "[2]\t\"leaf\"[2] w=3 s=7\n",
            "[2]\t\"leaf\" [2] w=3 s=7\n",
            "f:10:12: found `[2]`, expected the port number directly after the name: otherwise ibsim reads port 1",
        ),
        (
            "[2]\t\"leaf\"[2] w=3 s=7\n",
            "[2]\t\"leaf\"[2] w=0 s=7\n",
            "f:10:17: found `0`, expected a mask of widths, 1 to 31",
        ),
        (
            "[2]\t\"leaf\"[2] w=3 s=7\n",
            "[2]\t\"leaf\"[2] s=8\n",
            "f:10:17: found `8`, expected a mask of speeds, 0 to 7",
        ),
        (
            "[2]\t\"leaf\"[2] w=3 s=7\n",
            "[2]\t\"leaf\"[2] e=16\n",
            "f:10:17: found `16`, expected a mask of extended speeds, 0 to 15",
        ),
        (
            "[2]\t\"leaf\"[2] w=3 s=7\n",
            "[2]\t\"leaf\"[2] v=4\n",
            "f:10:15: found `v=4`, expected one of the options `w=`, `s=` and `e=`, or a comment",
        ),
        (
            "[2]\t\"leaf\"[2] w=3 s=7\n",
            "[2]\t\"leaf\"[2] w=3s=7\n",
            "f:10:18: found `s=7`, expected a blank after an option",
        ),
        (
            "[2]\t\"leaf\"[2] w=3 s=7\n",
            "[2]\t\"leaf\"[2] w=16\n",
            "f:4:1: found width masks 3 and 16 for the link to port 2 of \"host\" (line 10), expected a common width",
        ),
        (
            "[2]\t\"leaf\"[2] w=3 s=7\n",
            "[2]\t\"leaf\"[2] s=1 # rows=9\n",
            "f:10:26: found `9`, expected a mask of speeds, 0 to 7: ibsim takes `s=` in a comment for an option",
        ),
        (
            "[2]\t\"leaf\"[2] w=3 s=7\n",
            "[2]\t\"leaf\"[3]\n",
            "f:4:5: found port 2 of \"host\" linked to port 3 of \"leaf\" (line 10), expected it to be linked to port 2 of \"leaf\" as on this line",
        ),
        (
            "[2]\t\"leaf\"[2] w=3 s=7\n",
            "[2]\t\"spine\"[2]\n",
            "f:10:5: found a link to \"spine\", expected the name of a node in the file",
        ),
        (
            "[2]\t\"leaf\"[2] w=3 s=7\n",
            "[2]\t\"leaf\"[7]\n",
            "f:10:5: found a link to port 7 of \"leaf\", expected 1 to 4",
        ),
        (
            "[2]\t\"leaf\"[2] w=3 s=7\n",
            "[2]\t\"leaf\"\n",
            "f:4:5: found port 2 of \"host\" linked to port 1 of \"leaf\" (line 10), expected it to be linked to port 2 of \"leaf\" as on this line",
        ),
        (
            "[2]\t\"leaf\"[2] w=3 s=7\n",
            "[1]\t\"leaf\"[2]\n",
            "f:10:1: found port 1 of \"host\" a second time, expected it only on line 9",
        ),
        (
            "[2]\t\"leaf\"[2] w=3 s=7\n",
            "[3]\t\"leaf\"[2]\n",
            "f:10:2: found `3]`, expected a port of this node, 1 to 2",
        ),
        (
            "[2]\t\"leaf\"[2] w=3 s=7\n",
            "[2]\t\"host\"[2]\n",
            "f:4:5: found port 2 of \"host\" linked to port 2 of \"host\" (line 10), expected it to be linked to port 2 of \"leaf\" as on this line",
        ),
        (
            "[2]\t\"leaf\"[2] w=3 s=7\n",
            "[2]\t\"leaf\"[2",
            "f:10:13: found the end of the line, expected `]`",
        ),
        (
            "[2]\t\"leaf\"[2] w=3 s=7\n",
            "[2]\t\"lea",
            "f:10:9: found the end of the line, expected the quote that closes the name of the node at the other end",
        ),
        (
            "[2]\t\"leaf\"[2] w=3 s=7\n",
            "",
            "f:4:5: found no line for port 2 of \"host\", expected one that links it to port 2 of \"leaf\" as on this line",
        ),
        (
            "[2]\t\"leaf\"[2] w=3 s=7\n",
            "@[2]\t\"here\"\n",
            "f:4:5: found port 2 of \"host\" linked by an alias (line 10), expected it to be linked to port 2 of \"leaf\" as on this line",
        ),
        (
            "[2]\t\"leaf\"[2] w=3 s=7\n",
            "[2]\t\"@nowhere\"\n",
            "f:10:5: found `\"@nowhere\"`, expected an alias defined on a line above",
        ),
        (
            "[2]\t\"leaf\"[2] w=3 s=7\n",
            "@[2]\t\"he#re\"\n",
            "f:10:6: found `\"he#re\"`, expected a name without `#` and `@`, which ibsim reserves",
        ),
        (
            "[2]\t\"leaf\"[2] w=3 s=7\n",
            "@[2]\t\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"\n",
            "f:10:6: found `\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…`, expected an alias of up to 39 bytes, including the module: ibsim truncates longer ones",
        ),
        (
            "[2]\t\"leaf\"[2] w=3 s=7\n",
            "[2]\t\"leaf\"[2] w=3 s=7\n\nSwitch 2 \"s\"\n@[1] \"x\"\n@[2] \"x\"\n",
            "f:14:6: found `\"x\"`, expected an alias that port 1 of \"s\" does not have already",
        ),
        (
            "[2]\t\"leaf\"[2] w=3 s=7\n",
            "[2]\t\"leaf\"[2] w=3 s=7\n\nSwitch 2 \"s\"\n@[1] \"x\"\n\nSwitch 2 \"t\"\n[1] \"@x\"\n[2] \"@x\"\n",
            "f:17:5: found a second link to this alias, expected only that from \"t\" port 1",
        ),
        (
            "[2]\t\"leaf\"[2] w=3 s=7\n",
            "[2]\t\"leaf\"[2] w=3 s=7\n\nSwitch 2 \"s\"\n@[1] \"x\"\n\nSwitch 2 \"t\"\n[1] \"@x\"[1]\n",
            "f:16:9: found `[1]`, expected no port number: an alias stands for one port",
        ),
        (
            "[2]\t\"leaf\"[2] w=3 s=7\n",
            "[2]\t\"leaf\"[2] w=3 s=7\n\nSwitch 2 \"s\"\n@[1] \"x\"\n\nSwitch 2 \"t\"\n[1] \"s\"[1]\n",
            "f:16:5: found port 1 of \"s\" linked by an alias (line 13), expected it to be linked to port 1 of \"t\" as on this line",
        ),
        (
            "[2]\t\"leaf\"[2] w=3 s=7\n",
            "[2]\t\"leaf\"[2] w=3 s=7\n\nSwitch 2 \"s\"\n@[1] \"x\"\n\nSwitch 2 \"t\"\n[1] \"@x\"\n\nSwitch 2 \"u\"\n[1] \"t\"[1]\n",
            "f:19:5: found port 1 of \"t\" linked by an alias (line 16), expected it to be linked to port 1 of \"u\" as on this line",
        ),
        (
            "lid 1 4xHDR\n",
            "lid 1 4xH\n",
            "f:9:44: found `H`, expected a link speed: one of SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR, XDR",
        ),
        (
            "lid 1 4xHDR\n",
            "lid 1 4x\n",
            "f:9:44: found the end of the line, expected a link speed: one of SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR, XDR",
        ),
        (
            "lid 1 4xHDR\n",
            "lid 1 16xHDR\n",
            "f:9:42: found `16xHDR`, expected a link width and speed like `4xHDR`, the width one of 1x, 2x, 4x, 8x, 12x",
        ),
        ("lid 1 4xHDR\n", "lid 70000 4xHDR\n", "f:9:40: found `70000`, expected a LID, 0 to 49151"),
        (
            "[2]\t\"leaf\"[2] w=3 s=7\n",
            "[2]\t\"leaf\"[2] w=3 s=7\n\nsysimgguid=0x5\n",
            "f:12:1: found identifier lines at the end of the file, expected the node that they describe",
        ),
        (
            "# A net file.",
            "Ca 1 \"a\"\n\nhcaguids=0x100000\nCa 1 \"b\"\n",
            "f:3:10: found GUID 0x0000000000100000 for \"b\", expected one that \"a\" does not have already",
        ),
        ("# A net file.", "width=08", "f:1:7: found `08`, expected a mask of widths, 1 to 31"),
    ];
    for (from, to, expected) in cases {
        assert_eq!(refused(from, to), expected);
    }
}

fn read(text: &str) -> Fabric {
    READER("f", text.as_bytes()).expect("the file is valid")
}

fn guids(fabric: &Fabric) -> Vec<(String, u64, u64)> {
    let first = |id| fabric.ports_of(id).nth(1).map_or(0, |(_, port)| port.guid.0);
    fabric.nodes().map(|(id, node)| (node.name.clone(), node.guid.0, first(id))).collect()
}

/// Returns the rates of all links, in the order of the links' first ports.
fn rates(fabric: &Fabric) -> Vec<String> {
    let rate = |port| {
        let rate: LinkRate = fabric.port(port).rate;
        format!("{}{}", rate.width, rate.speed)
    };
    fabric.links().map(|(port, _)| rate(port)).collect()
}

/// Returns a net file with the linked switches `a` and `b`. The arguments `a` and `b` are appended to their port lines.
fn link(defaults: &str, a: &str, b: &str) -> String {
    format!("{defaults}\nSwitch 2 \"a\"\n[1] \"b\"[1] {a}\n\nSwitch 2 \"b\"\n[1] \"a\"[1] {b}\n")
}

// The expected GUIDs are those that ibsim 0.10 assigns.
#[test]
fn nodes_without_a_guid_are_numbered() {
    let fabric = read(
        "Hca 2 \"h1\"\n\nSwitch 8 \"s1\"\n\nCa 3 \"h2\"\n\ncaguid=0x500\nCa 1 \"h3\"\n\nCa 1 \"h4\"\n\n\
         hcaguids+0x40\nCa 1 \"h5\"\n\nCa 1 \"h6\"\n\nSwitch 8 \"s2\"\n\nswitchguid=0x900(901)\nSwitch 2 \"s3\"\n\n\
         Switch 2 \"s4\"\n\nrtguid = 0x77\nRt 2 \"r1\"\n\nRt 1 \"r2\"\n",
    );
    let expected = [
        ("h1", 0x10_0000, 0x10_0001),
        ("s1", 0x20_0000, 0x20_0000),
        ("h2", 0x10_0003, 0x10_0004),
        ("h3", 0x500, 0x501),
        ("h4", 0x502, 0x503),
        ("h5", 0x540, 0x541),
        ("h6", 0x542, 0x543),
        ("s2", 0x20_0001, 0x20_0001),
        ("s3", 0x900, 0x900),
        ("s4", 0x901, 0x901),
        ("r1", 0x77, 0x78),
        ("r2", 0x7a, 0x7b),
    ];
    assert_eq!(guids(&fabric), expected.map(|(name, node, port)| (name.to_owned(), node, port)));
}

#[test]
fn port_guid_in_parentheses_is_skipped() {
    let text = GOOD.replace("\n[1]\t\"leaf\"[1]", "\n[1](abc)\t\"leaf\"[1](def)");
    assert_ne!(text, GOOD);
    assert_eq!(read(&text), read(GOOD));
}

#[test]
fn vendor_applies_to_one_node_and_device_to_all_later() {
    let fabric = read(
        "vendid=0x8f1\ndevid=0x1234\nsysimgguid=0xabc\nSwitch 2 \"a\"\n\nSwitch 2 \"b\"\n\ndevid=010\nSwitch 2 \"c\"\n",
    );
    let found: Vec<_> = fabric
        .nodes()
        .map(|(_, node)| (node.vendor_id, node.device_id, node.system_guid.0))
        .collect();
    assert_eq!(found, [(0x8f1, 0x1234, 0xabc), (0, 0x1234, 0x20_0001), (0, 8, 0x20_0002)]);
}

#[test]
fn links_run_at_the_highest_common_width_and_speed() {
    let cases = [
        (("", "", ""), "4xSDR"),
        (("width=3\nspeed=7", "", ""), "4xQDR"),
        (("width=3\nspeed=7", "w=1", ""), "1xQDR"),
        (("width=31", "", ""), "12xSDR"),
        (("", "w=16", "w=17"), "2xSDR"),
        (("", "w=4", "w=12"), "8xSDR"),
        (("", "s=3", "s=7"), "4xDDR"),
        (("", "s=0", "s=7"), "4xQDR"),
        (("", "s=7 e=3", "s=7 e=1"), "4xFDR"),
        (("", "s=7 e=2", "s=7 e=1"), "4xQDR"),
        (("extspeed=15", "", ""), "4xNDR"),
        (("", "# lid 0 2xHDR", "# lid 0 2xEDR"), "2xEDR"),
        (("", "# lid 0 12xFDR10", "# lid 0 12xFDR"), "12xFDR10"),
        (("", "# lid 0 4xXDR", "# lid 0 4xXDR"), "4xXDR"),
        (("", "s=7 e=7 # lid 0 4xNDR", "s=7 e=7 # lid 0 4xNDR"), "4xNDR"),
        (("", "s=7 e=7 # lid 0 4xNDR", "s=7 e=7"), "4xHDR"),
        // A speed of at most QDR in a comment does not change the enabled extended speeds.
        (("extspeed=7", "# lid 3 8xQDR", "# lid 3 8xSDR"), "8xHDR"),
        // An option in a comment applies, too. A rate after the option overrides it.
        (("", "# w=1", "w=3 # up"), "1xSDR"),
        (("", "# w=1 \"x\" lid 0 4xDDR", "# lid 0 4xDDR"), "4xDDR"),
        (("", "# speed=7", "# speed=7"), "4xSDR"),
        (("", "# nodes=7", "# rows=7"), "4xQDR"),
        (("", "# node=7", "# core=6"), "4xHDR"),
        // Other text in comments is ignored.
        (("", "# to the second lid", "# lid of a box"), "4xSDR"),
    ];
    for ((defaults, a, b), expected) in cases {
        assert_eq!(rates(&read(&link(defaults, a, b))), [expected], "{defaults} {a} {b}");
    }
}

#[test]
fn missing_port_number_means_port_1() {
    let fabric = read("Switch 2 \"a\"\n[2] \"b\"\n\nSwitch 2 \"b\"\n[1] \"a\"[2]\n");
    assert_eq!(fabric.link_count(), 1);
}

#[test]
fn quotes_of_descriptions_are_optional() {
    let cases = [
        ("", "x", false, None),
        ("# \"\"", "x", false, None),
        ("# \"two words\"", "two words", false, None),
        ("#\"tight\"", "tight", false, None),
        ("#   no quotes ", "no quotes ", false, None),
        ("# a \"big\" one enhanced port 0 lid 9 lmc 0", "a \"big\" one", true, Some(9)),
        ("# one lid 9", "one", false, Some(9)),
        ("# \"one\" base port 0 lid 9 lmc 2", "one", false, Some(9)),
        ("# \"one\" enhanced port 0", "one", true, None),
        ("# \"one\" base port 0 lid 0 lmc 0", "one", false, None),
        // ibsim skips blanks after `#`, and then detects `base port` only after a blank. So the description
        // is `base port 0`.
        ("# base port 0 lid 9", "base port 0", false, Some(9)),
    ];
    for (comment, description, enhanced, lid) in cases {
        let fabric = read(&format!("Switch 2 \"x\" {comment}\n"));
        let (id, node) = fabric.nodes().next().expect("the fabric has a node");
        let port0 = fabric.ports_of(id).next().and_then(|(_, port)| port.lid);
        assert_eq!(node.description, description, "{comment}");
        assert_eq!((node.enhanced_port0, port0.map(Lid::get)), (enhanced, lid), "{comment}");
    }
}

#[test]
fn hca_port_has_the_lid_before_the_quotes() {
    let text = GOOD.replace("[2]\t\"leaf\"[2] w=3 s=7", "[2]\t\"leaf\"[2] w=3 s=7 # lid 8 lmc 2");
    let fabric = read(&text);
    let host = fabric.find_name("host").expect("node `host` exists");
    let lids: Vec<_> =
        fabric.ports_of(host).map(|(_, port)| (port.lid.map(Lid::get), port.lmc.get())).collect();
    assert_eq!(lids, [(None, 0), (Some(2), 0), (Some(8), 2)]);
}

#[test]
fn node_with_all_port_lines_needs_no_empty_line() {
    let fabric = read("Ca 1 \"h\"\n[1] \"s\"[1]\nSwitch 1 \"s\"\n# why not\n[1] \"h\"[1]\n");
    assert_eq!(fabric.link_count(), 1);
}

#[test]
fn aliases_stand_for_ports() {
    let fabric = read(
        "module=\"rack1\"\nSwitch 4 \"leaf\"\n@[2]\"up\" w=3\n@[3] \"spare\"\n\n\
         module=\"rack2\"\nSwitch 4 \"leaf\"\n@[1] \"in\"\n[2] \"rack1@up\"\n[3] \"@in\"\n",
    );
    let links: Vec<_> = fabric
        .links()
        .map(|ends| {
            <[_; 2]>::from(ends).map(|end| {
                let port = fabric.port(end);
                format!("{} {}", fabric.node(port.node).name, port.number)
            })
        })
        .collect();
    assert_eq!(links, [["rack1#leaf 2", "rack2#leaf 2"], ["rack2#leaf 1", "rack2#leaf 3"]]);
}

#[test]
fn modules_prefix_names() {
    let fabric = read(
        "module=\"m\"\nSwitch 2 \"a\"\n[1] \"b\"\n[2] \"n#a\"\n\nSwitch 2 \"b\"\n[1] \"a\"\n\n\
         module=\"n\"\nSwitch 2 \"a\"\n[1] \"m#a\"[2]\n\nmodule=\"\"\nSwitch 1 \"a\"\n",
    );
    let names: Vec<_> = fabric.nodes().map(|(_, node)| node.name.as_str()).collect();
    assert_eq!(names, ["m#a", "m#b", "n#a", "a"]);
    assert_eq!(fabric.link_count(), 2);
}

#[test]
fn routers_are_read_like_hcas() {
    let text = link("", "", "").replace("Switch 2 \"b\"", "rtguid=0x77\nRt 2 \"b\"");
    let fabric = read(&text.replace("[1] \"a\"[1]", "[1] \"a\"[1] # lid 5 lmc 1 \"\" lid 0 4xSDR"));
    let gate = fabric.find_name("b").expect("node `b` exists");
    assert_eq!(fabric.node(gate).kind, NodeKind::Router);
    let port = fabric.find_port_guid(Guid(0x78)).expect("port 1 of `b` has this GUID");
    assert_eq!(fabric.port(port).lid.map(Lid::get), Some(5));
    let rate = fabric.port(port).rate;
    assert_eq!((rate.width, rate.speed), (LinkWidth::X4, LinkSpeed::Sdr));
}
