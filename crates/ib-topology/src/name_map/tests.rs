use std::collections::BTreeMap;

use ib_types::{Guid, NodeKind};

use super::parse;
use crate::{Fabric, NodeSpec};

#[test]
fn names_with_and_without_quotes_are_read() {
    let text = "# spines\n\n0x0008f104003f125c \"IB1 (Rack 11 slot 1   ) \"\n  8f104003f125d\tleaf-2 # second\n";
    let names = parse("names", text.as_bytes()).expect("the map is valid");
    let expected = [
        (Guid(0x0008_f104_003f_125c), "IB1 (Rack 11 slot 1   ) ".to_owned()),
        (Guid(0x0008_f104_003f_125d), "leaf-2".to_owned()),
    ];
    assert_eq!(names, BTreeMap::from(expected));
}

#[test]
fn names_replace_descriptions_of_listed_nodes() {
    let mut fabric = Fabric::new();
    for (name, guid) in [("a", 1), ("b", 2)] {
        fabric.add_node(NodeSpec::new(NodeKind::Switch, name, Guid(guid), 2)).expect("new");
    }
    let names = parse("names", b"0x2 \"beta\"\n0x3 \"gamma\"\n").expect("the map is valid");
    assert_eq!(fabric.rename(&names), 1);
    let descriptions: Vec<_> = fabric.nodes().map(|(_, node)| node.description.as_str()).collect();
    assert_eq!(descriptions, ["a", "beta"]);
}

#[test]
fn malformed_lines_are_refused_with_line_and_column() {
    let cases = [
        (
            "0x1 \"a\"\nx \"b\"\n",
            "f:2:1: found `x`, expected a GUID of up to 16 hexadecimal digits",
        ),
        ("0x1 \"a\"\n0x1 \"b\"\n", "f:2:1: found `0x1`, expected a GUID that is not named above"),
        ("0x0 \"a\"\n", "f:1:1: found `0x0`, expected a GUID other than zero"),
        ("0x1\n", "f:1:4: found the end of the line, expected a name in quotes"),
        ("0x1 \"a\n", "f:1:7: found the end of the line, expected the quote that closes a name"),
        ("0x1 \"a\" b\n", "f:1:9: found `b`, expected the end of the line"),
        ("0x1 \"\"\n", "f:1:5: found `\"\"`, expected a name that is not empty"),
        (
            "0x11112222333344445 \"a\"\n",
            "f:1:1: found `0x11112222333344445`, expected a GUID of up to 16 hexadecimal digits",
        ),
        ("0x1 a\"b\"\n", "f:1:6: found `\"b\"`, expected the end of the line"),
    ];
    for (text, expected) in cases {
        assert_eq!(parse("f", text.as_bytes()).expect_err(text).to_string(), expected);
    }
}

#[test]
fn name_that_is_not_utf_8_is_refused() {
    let error = parse("f", b"0x1 \"a\"\n0x2 \"\xff\"\n").expect_err("the name is not UTF-8");
    assert_eq!(error.to_string(), "f:2:6: found byte 0xff, expected UTF-8 text");
}
