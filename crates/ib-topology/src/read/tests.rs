use super::{Format, read, read_as, read_with};

#[test]
fn binary_data_is_refused_with_line_and_column() {
    let cases: [(&[u8], &str); 5] = [
        (b"# a\n\n# b\xff\n", "f:3:4: found byte 0xff, expected UTF-8 text"),
        (b"# \xc3\xa9t\xc3", "f:1:6: found byte 0xc3, expected UTF-8 text"),
        (b"# a\0b\n", "f:1:4: found control character 0x00, expected text"),
        (b"# a\rb\n", "f:1:4: found control character 0x0d, expected text"),
        (b"# a\x7f\n", "f:1:4: found control character 0x7f, expected text"),
    ];
    for (bytes, expected) in cases {
        assert_eq!(read("f", bytes).expect_err("the file is not text").to_string(), expected);
    }
}

#[test]
fn description_that_is_not_utf_8_is_refused() {
    let text = b"Switch 2 \"a\" # \"caf\xe9\"\n";
    let error = read("f", text).expect_err("the file is not UTF-8");
    assert_eq!(error.to_string(), "f:1:20: found byte 0xe9, expected UTF-8 text");
}

#[test]
fn file_without_nodes_is_refused() {
    let expected = "f:1:1: found no node in the file, expected at least one";
    for text in ["", "\n\n", "# Topology file: generated on x\n", "# none\n"] {
        assert_eq!(read("f", text.as_bytes()).expect_err("no nodes").to_string(), expected);
    }
    for format in [Format::Ibnetdiscover, Format::Ibsim, Format::SubnetList] {
        assert_eq!(read_as(format, "f", b"").expect_err("no nodes").to_string(), expected);
    }
}

#[test]
fn formats_differ_in_port_guids() {
    let text = "switchguid=0x1000\nSwitch\t1 \"S\"\t\t# \"leaf\" base port 0 lid 1 lmc 0\n\
                [1]\t\"H\"[1](2000) \t\t# \"host\" lid 2 4xNDR\n\n\
                caguid=0x2000\nCa\t1 \"H\"\t\t# \"host\"\n\
                [1](2000) \t\"S\"[1]\t\t# lid 2 lmc 0 \"leaf\" lid 1 4xNDR\n";
    let port_guid = |format| {
        let fabric = read_as(format, "f", text.as_bytes()).expect("valid in both formats");
        let host = fabric.find_name("H").expect("node `H` exists");
        fabric.ports_of(host).nth(1).map(|(_, port)| port.guid.0)
    };
    assert_eq!(port_guid(Format::Ibnetdiscover), Some(0x2000));
    assert_eq!(port_guid(Format::Ibsim), Some(0x2001));
    let sniffed = read("f", text.as_bytes()).expect("the file is valid");
    assert_eq!(sniffed, read_as(Format::Ibnetdiscover, "f", text.as_bytes()).expect("valid file"));
}

#[test]
fn includes_need_a_resolver() {
    let text = b"include \"x\"\n";
    let error = read("f", text).expect_err("no resolver");
    assert_eq!(
        error.to_string(),
        "f:1:9: found an include, expected a file to read: the file \"x\" needs a resolver for includes"
    );
    let mut resolver = |_: &str, name: &str| {
        Ok(super::Included { name: name.to_owned(), bytes: b"Switch 2 \"a\"\n".to_vec() })
    };
    let fabric = read_with("f", text, &mut resolver).expect("found");
    assert_eq!(fabric.node_count(), 1);
}
