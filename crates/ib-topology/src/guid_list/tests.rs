use ib_types::Guid;

use super::parse;

#[test]
fn malformed_lines_are_discarded_with_a_reason() {
    let list = parse(
        b"# roots\n0x0002c90200000001\n\n  2c90200000002 3 # port\n0x0002c90200000003#\n\
          leaf\n0x\n0x11112222333344445\n0x0\n\xff\n0X5\ta  b \r\n",
    );
    let entries: Vec<_> =
        list.entries.iter().map(|entry| (entry.line, entry.guid.0, entry.rest.as_str())).collect();
    assert_eq!(
        entries,
        [
            (2, 0x0002_c902_0000_0001, ""),
            (4, 0x0002_c902_0000_0002, "3"),
            (5, 0x0002_c902_0000_0003, ""),
            (11, 5, "a  b"),
        ]
    );
    assert_eq!(list.guids().last(), Some(Guid(5)));
    let discarded: Vec<_> = list
        .discarded
        .iter()
        .map(|line| format!("{}: {}: {}", line.line, line.text, line.reason))
        .collect();
    assert_eq!(
        discarded,
        [
            "6: leaf: found `leaf`, expected a GUID of 1 to 16 hexadecimal digits",
            "7: 0x: found `0x`, expected a GUID of 1 to 16 hexadecimal digits",
            "8: 0x11112222333344445: found `0x11112222333344445`, \
             expected a GUID of 1 to 16 hexadecimal digits",
            "9: 0x0: found `0x0`, expected a GUID other than zero",
            "10: \u{fffd}: found byte 0xff, expected UTF-8 text",
        ]
    );
}

#[test]
fn empty_file_is_an_empty_list() {
    assert_eq!(parse(b""), super::GuidList::default());
    assert_eq!(parse(b"\n# nothing\n"), super::GuidList::default());
}
