use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::config::Warning;

fn warnings(parsed: &Parsed<HostFile>) -> Vec<String> {
    parsed.warnings.iter().map(Warning::to_string).collect()
}

fn line(line: usize, address: &str, gid: &str) -> HostLine {
    HostLine { line, address: Address::parse(address).unwrap(), gid: gid.parse().unwrap() }
}

/// Returns a copy of the contents of a hosts file in which all line numbers are 0.
fn bare(file: &HostFile) -> HostFile {
    HostFile { lines: file.lines.iter().map(|line| HostLine { line: 0, ..line.clone() }).collect() }
}

#[test]
fn line_has_an_address_and_a_gid() {
    let parsed = HostFile::read(
        b"# hosts\nNode-1 fe80::2:c903:a1:b2c3\n\n10.1.2.1\tfe80::2:c903:a1:b2c3 # the same\r\n\
          fd00::1 fe80:0:0:0:2:c903:a1:b2c4",
    );
    assert_eq!(warnings(&parsed), [""; 0]);
    let lines = [
        line(2, "node-1", "fe80::2:c903:a1:b2c3"),
        line(4, "10.1.2.1", "fe80::2:c903:a1:b2c3"),
        line(5, "fd00::1", "fe80::2:c903:a1:b2c4"),
    ];
    assert_eq!(parsed.value.lines, lines);
}

#[test]
fn invalid_lines_cause_warnings() {
    let expected = "expected the GID of a port, such as fe80::2:c903:a1:b2c3; the line is ignored";
    let cases = [
        ("node", "nothing"),
        ("node 10.1.2.3", "`10.1.2.3`"),
        ("node ::", "`::`"),
        ("node ff12::1", "`ff12::1`"),
        ("node 0x12", "`0x12`"),
    ];
    for (text, found) in cases {
        let parsed = HostFile::read(text.as_bytes());
        assert_eq!(warnings(&parsed), [format!("1: found {found}, {expected}")]);
        assert_eq!(parsed.value.lines, []);
    }
    let parsed = HostFile::read(b"node\xff fe80::1\nnode fe80::1 fe80::2");
    assert_eq!(parsed.value.lines, [line(2, "node", "fe80::1")]);
    let expected = [
        "1: found `node\u{fffd} fe80::1`, expected UTF-8 text; the line is ignored",
        "2: found `fe80::2`, expected the end of the line; the found text is ignored",
    ];
    assert_eq!(warnings(&parsed), expected);
}

#[test]
fn later_line_of_an_address_replaces_the_earlier_one() {
    let parsed = HostFile::read(b"node fe80::1\nother fe80::3\nNODE fe80::2\n");
    assert_eq!(parsed.value.lines, [line(3, "node", "fe80::2"), line(2, "other", "fe80::3")]);
    let expected = "3: found `NODE`, expected an address other than that of line 1; this line overrides the earlier one";
    assert_eq!(warnings(&parsed), [expected]);
}

#[test]
fn inexpressible_lines_are_written_as_comments() {
    let odd = |address: Address, gid: u128| HostLine { line: 0, address, gid: Gid(gid) };
    let lines = vec![
        odd(Address::name("two words").unwrap(), 1),
        odd(Address::name("::1").unwrap(), 1),
        odd(Address::Gid(Gid(1)), 1),
        odd(Address::name("node").unwrap(), 0),
    ];
    let text = HostFile { lines }.to_file();
    assert_eq!(text.matches("\n# not expressible: ").count(), 4, "{text}");
    assert_eq!(HostFile::read(text.as_bytes()), Parsed::default());
}

proptest! {
    #[test]
    fn any_parsed_file_can_be_written_and_read_back(
        text in vec("([a-z#é]{1,3}|[0-9.:]{1,9}) +(fe80::[0-9a-f]{1,4}|[0-9a-f:]{2,9})", 0..9),
        bytes in vec(any::<u8>(), 0..99),
    ) {
        let parsed = HostFile::read(&[text.join("\n").as_bytes(), &bytes].concat());
        let again = HostFile::read(parsed.value.to_file().as_bytes());
        prop_assert_eq!(again.warnings, []);
        prop_assert_eq!(bare(&again.value), bare(&parsed.value));
    }
}
