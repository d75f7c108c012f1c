use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::config::{MAX_WARNINGS, Warning};

fn warnings(parsed: &Parsed<AddressFile>) -> Vec<String> {
    parsed.warnings.iter().map(Warning::to_string).collect()
}

fn line(line: usize, address: &str, device: &str, port: u8, p_key: u16) -> AddressLine {
    let address = Address::parse(address).unwrap();
    AddressLine { line, address, device: device.into(), port, p_key: PKey(p_key) }
}

/// Returns a copy of the contents of an address file in which all line numbers are 0.
fn bare(file: &AddressFile) -> AddressFile {
    let lines = file.lines.iter().map(|line| AddressLine { line: 0, ..line.clone() });
    AddressFile { lines: lines.collect() }
}

#[test]
fn line_has_an_address_of_an_endpoint() {
    let parsed = AddressFile::read(
        b"# name device port pkey\nNode-17 mlx5_0 1 default\r\n\n  node-17-2\tmlx5_1 2 0x8001 # second\n\
          10.1.2.17 mlx5_0 1 32769\nfd00::17 mlx5_0 255 DEFAULT",
    );
    assert_eq!(warnings(&parsed), [""; 0]);
    let lines = [
        line(2, "node-17", "mlx5_0", 1, 0xffff),
        line(4, "node-17-2", "mlx5_1", 2, 0x8001),
        line(5, "10.1.2.17", "mlx5_0", 1, 0x8001),
        line(6, "fd00::17", "mlx5_0", 255, 0xffff),
    ];
    assert_eq!(parsed.value.lines, lines);
    assert_eq!(parsed.value.in_use(false).count(), 2);
    assert_eq!(parsed.value.in_use(true).count(), 4);
}

#[test]
fn invalid_lines_cause_warnings() {
    let (name, device) = ("n".repeat(64), "d".repeat(64));
    let cases: &[(&str, &str, &str)] = &[
        ("node", "nothing", "a device name of 1 to 63 bytes"),
        ("node mlx5_0", "nothing", "a port, 1 to 255"),
        (
            "node mlx5_0 1",
            "nothing",
            "a P_Key: default, or a number whose lower 15 bits are not zero",
        ),
        ("node mlx5_0 0 default", "`0`", "a port, 1 to 255"),
        ("node mlx5_0 256 default", "`256`", "a port, 1 to 255"),
        ("node mlx5_0 +1 default", "`+1`", "a port, 1 to 255"),
        (
            &format!("node {device} 1 default"),
            &format!("`{device}`"),
            "a device name of 1 to 63 bytes",
        ),
        (
            &format!("{name} mlx5_0 1 default"),
            &format!("`{name}`"),
            "a name or an IP address (the name has 64 bytes: expected 1 to 63)",
        ),
    ];
    for (text, found, expected) in cases {
        let parsed = AddressFile::read(text.as_bytes());
        let message = format!("1: found {found}, expected {expected}; the line is ignored");
        assert_eq!(warnings(&parsed), [message]);
        assert_eq!(parsed.value.lines, []);
    }
    for key in ["0", "0x0", "0x8000", "0x10000", "65536", "all", "0x", "-1", "017", "0x+1"] {
        let parsed = AddressFile::read(format!("node mlx5_0 1 {key}").as_bytes());
        let found = format!("1: found `{key}`, expected a P_Key");
        assert!(warnings(&parsed)[0].starts_with(&found), "{key}");
    }
}

#[test]
fn superfluous_words_and_repeated_lines_cause_warnings() {
    let parsed = AddressFile::read(b"node mlx5_0 1 default more of it\nNODE mlx5_0 1 0xffff\n");
    assert_eq!(parsed.value.lines, [line(1, "node", "mlx5_0", 1, 0xffff)]);
    let expected = [
        "1: found `more of it`, expected the end of the line; the found text is ignored",
        "2: found `NODE mlx5_0 1 0xffff`, expected an address that no earlier line has; the line is ignored",
    ];
    assert_eq!(warnings(&parsed), expected);
}

#[test]
fn number_of_warnings_is_limited() {
    let parsed = AddressFile::read("x\n".repeat(MAX_WARNINGS + 7).as_bytes());
    assert_eq!((parsed.warnings.len(), parsed.more_warnings), (MAX_WARNINGS, 7));
}

#[test]
fn inexpressible_lines_are_written_as_comments() {
    let mut lines = vec![line(0, "node", "mlx5_0", 1, 0xffff)];
    let odd = |address: Address| AddressLine { address, ..lines[0].clone() };
    let mut all: Vec<_> = [
        Address::name("two words").unwrap(),
        Address::name("#hash").unwrap(),
        Address::name("10.0.0.1").unwrap(),
        Address::name("line\nfeed").unwrap(),
        Address::Lid(7),
    ]
    .map(odd)
    .into();
    all.extend([
        line(0, "node", "", 1, 0xffff),
        line(0, "node", "a b", 1, 0xffff),
        line(0, "node", "mlx5_0", 0, 0xffff),
        line(0, "node", "mlx5_0", 1, 0),
    ]);
    lines.extend(all);
    let text = AddressFile { lines: lines.clone() }.to_file();
    assert!(text.ends_with("# not expressible: node mlx5_0 1 0x0000\n"), "{text}");
    assert_eq!(text.matches("# not expressible: ").count(), 9);
    let again = AddressFile::read(text.as_bytes());
    assert_eq!((warnings(&again), bare(&again.value).lines), (Vec::new(), lines[..1].to_vec()));
}

proptest! {
    #[test]
    fn any_parsed_file_can_be_written_and_read_back(
        text in vec("([a-z.:#é]{1,9}|[0-9.:]{1,9}) +(mlx5_0|.) +[0-9]{1,3} +(default|0x[0-9a-f]{1,4})", 0..9),
        bytes in vec(any::<u8>(), 0..99),
    ) {
        let parsed = AddressFile::read(&[text.join("\n").as_bytes(), &bytes].concat());
        let again = AddressFile::read(parsed.value.to_file().as_bytes());
        prop_assert_eq!(again.warnings, []);
        prop_assert_eq!(bare(&again.value), bare(&parsed.value));
    }
}
