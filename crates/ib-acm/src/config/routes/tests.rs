use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::config::Warning;

const GUID: Guid = Guid(0x0002_c903_00a1_b2c3);

fn lid(number: u32) -> Lid {
    Lid::unicast(number).unwrap()
}

fn read(bytes: &[u8]) -> Parsed<Routes> {
    Routes::read("routes", bytes, GUID, lid(1)).unwrap()
}

fn warnings(parsed: &Parsed<Routes>) -> Vec<String> {
    parsed.warnings.iter().map(Warning::to_string).collect()
}

fn route(dlid: u32, sl: u8, mtu: u8, rate: u8) -> Route {
    let (sl, mtu) = (ServiceLevel::new(sl).unwrap(), Mtu::from_code(mtu).unwrap());
    Route { dlid: lid(dlid), sl, mtu, rate: RateCode(rate) }
}

const TEXT: &str = "\
# from OpenSM
Switch 0x0002c90200400000, base LID 3, \"spine, the first\", port 0
# LID  : SL : MTU : RATE
0x0001 : 7  : 4   : 3
this is not a line of a block

Channel Adapter 0x0002c90300a1b2c3, base LID 1, \"node-1 \u{e9}\", port 1
# LID  : SL : MTU : RATE
0x0001 : 0  : 5   : 16
2 : 1 : 4 : 3
0x0003:UNREACHABLE
0x0004 2 5 21
Router 0x0002c90300a1b2c5, base LID 0x5
0x0001 : 9  : 4   : 3
";

#[test]
fn only_the_block_of_the_port_is_read() {
    let parsed = read(TEXT.as_bytes());
    let routes = Routes {
        found: true,
        routes: vec![route(1, 0, 5, 16), route(2, 1, 4, 3), route(4, 2, 5, 21)],
        unreachable: vec![lid(3)],
        ports: vec![
            (lid(1), GUID),
            (lid(3), Guid(0x0002_c902_0040_0000)),
            (lid(5), Guid(0x0002_c903_00a1_b2c5)),
        ],
    };
    assert_eq!(parsed.value, routes);
    let expected = "5: found `this is not a line of a block`, expected \
                    Channel Adapter, Switch or Router, a GUID and a base LID; \
                    this line and the lines of its block are ignored";
    assert_eq!(warnings(&parsed), [expected]);
}

#[test]
fn missing_block_of_the_port_causes_a_warning() {
    let parsed = read(b"");
    let expected = "expected a block of 0x0002c90300a1b2c3, base LID 1; no routes are preloaded";
    assert_eq!(warnings(&parsed), [format!("1: found nothing, {expected}")]);
    assert_eq!(parsed.value, Routes::default());

    let text = TEXT.replace("base LID 1,", "base LID 9,");
    let parsed = read(text.as_bytes());
    let old = "7: found `Channel Adapter 0x0002c90300a1b2c3, base LID 9, \"node-1 \u{e9}\", port 1`, \
               expected base LID 1, which the port has now; the block is ignored";
    assert_eq!(warnings(&parsed)[1..], [old.to_owned(), format!("14: found nothing, {expected}")]);
    assert!(!parsed.value.found && parsed.value.routes.is_empty());
    assert_eq!(parsed.value.ports.len(), 3);
}

#[test]
fn invalid_lines_cause_warnings() {
    let cases = [
        ("0", "a LID, 1 to 49151"),
        ("0x10000 : 0 : 4 : 3", "a LID, 1 to 49151"),
        ("0xc000 : 0 : 4 : 3", "a LID, 1 to 49151"),
        ("017 : 0 : 4 : 3", "a LID, 1 to 49151"),
        ("2", "UNREACHABLE or a service level, 0 to 15"),
        ("2 : 16 : 4 : 3", "UNREACHABLE or a service level, 0 to 15"),
        ("2 : x : 4 : 3", "UNREACHABLE or a service level, 0 to 15"),
        ("2 : 0 : 6 : 3", "an MTU code, 1 to 5"),
        ("2 : 0 : 4", "a rate code, 2 to 24"),
        ("2 : 0 : 4 : 1", "a rate code, 2 to 24"),
    ];
    let head = "Channel Adapter 0x0002c90300a1b2c3, base LID 1, \"\", port 1\n";
    for (line, expected) in cases {
        let parsed = read(format!("{head}{line}\n3 : 0 : 4 : 3\n").as_bytes());
        let message = format!("2: found `{line}`, expected {expected}; the line is ignored");
        assert_eq!(warnings(&parsed), [message]);
        assert_eq!(parsed.value.routes, [route(3, 0, 4, 3)]);
    }
    let parsed = read(format!("{head}2 : 0 : 4 : 3 : 1 # hop\n2 UNREACHABLE\n").as_bytes());
    let expected = [
        "2: found `1`, expected the end of the line; the found text is ignored",
        "3: found `2 UNREACHABLE`, expected a LID that no earlier line has; this line overrides the earlier one",
    ];
    assert_eq!(warnings(&parsed), expected);
    assert_eq!((parsed.value.routes.len(), parsed.value.unreachable), (0, vec![lid(2)]));
}

#[test]
fn lines_below_an_invalid_header_are_ignored() {
    let own = "Channel Adapter 0x0002c90300a1b2c3, base LID 1\n2 : 0 : 4 : 3\n";
    let damaged = [
        "Chanel Adapter 0x7, base LID 7",
        "Switch 0x0, base LID 7",
        "Switch 0x7",
        "Switch 0x7, LID 7",
        "Switch 0x7, base LID 0",
        "Switch7, base LID 7",
        // Another node has the LID of the port.
        "Router 0x7, base LID 1",
    ];
    for head in damaged {
        let parsed = read(format!("{own}{head}\n3 : 0 : 4 : 3\n").as_bytes());
        assert_eq!(parsed.value.routes, [route(2, 0, 4, 3)], "{head}");
        assert_eq!(parsed.value.ports, [(lid(1), GUID)]);
        assert_eq!(parsed.warnings.len(), 1);
        assert_eq!(parsed.warnings[0].so, "this line and the lines of its block are ignored");
    }
}

#[test]
fn long_lines_are_truncated_with_a_warning() {
    let long = "x".repeat(100_000);
    let text = format!(
        "# {long}\nChannel Adapter 0x0002c90300a1b2c3, base LID 1, \"{long}\"\n2 : 0 : 4 : 3\n"
    );
    let parsed = read(text.as_bytes());
    assert_eq!(parsed.value.routes, [route(2, 0, 4, 3)]);
    assert_eq!(parsed.warnings.len(), 1);
    let message = warnings(&parsed).remove(0);
    assert!(
        message.ends_with("a line of at most 1024 bytes; the rest of the line is ignored"),
        "{message}"
    );
}

#[test]
fn unreadable_file_is_an_error() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is gone"))
        }
    }
    let input = io::BufReader::new(b"# a comment\n".chain(Broken));
    let error = Routes::read("routes", input, GUID, lid(1)).unwrap_err();
    assert_eq!(error.to_string(), "routes:2: the disk is gone");
}

#[test]
fn blocks_have_the_format_of_dump_pr() {
    let block = Block {
        kind: NodeKind::ChannelAdapter,
        guid: GUID,
        base_lid: lid(1),
        description: "node-1 \"HCA\n1\"",
        port: 1,
    };
    let rows = [Row::Route(route(2, 10, 4, 16)), Row::Unreachable(lid(0xbfff))];
    let expected = "\
Channel Adapter 0x0002c90300a1b2c3, base LID 1, \"node-1 .HCA.1.\", port 1
# LID  : SL : MTU : RATE
0x0002 : 10 : 4   : 16
0xbfff : UNREACHABLE

";
    assert_eq!(block.to_text(rows), expected);
}

fn route_strategy() -> impl Strategy<Value = Option<(u8, u8, u8)>> {
    let rates: Vec<_> = RateCode::RATES.iter().map(|(code, _)| code.0).collect();
    proptest::option::of((0..16u8, 1..6u8, select(rates)))
}

proptest! {
    #[test]
    fn written_file_is_read_back(
        rows in btree_map(1..=0xbfffu32, route_strategy(), 0..50),
        description in ".{0,64}",
        kind in select(vec![NodeKind::ChannelAdapter, NodeKind::Switch, NodeKind::Router]),
    ) {
        let block = |guid, base_lid| Block { kind, guid, base_lid, description: &description, port: 1 };
        let written = |(&dlid, &path): (&u32, &Option<(u8, u8, u8)>)| match path {
            Some((sl, mtu, rate)) => Row::Route(route(dlid, sl, mtu, rate)),
            None => Row::Unreachable(lid(dlid)),
        };
        let rows: Vec<_> = rows.iter().map(written).collect();
        let other = block(Guid(9), lid(9)).to_text(rows.clone());
        let own = block(GUID, lid(1)).to_text(rows.clone());
        let parsed = read(format!("{other}{own}{}", other.replace("LID 9", "LID 10")).as_bytes());
        prop_assert_eq!(&parsed.warnings, &[]);
        prop_assert!(parsed.value.found && parsed.value.ports.len() == 3);
        let routes = parsed.value.routes.into_iter().map(|route| (route.dlid, Row::Route(route)));
        let none = parsed.value.unreachable.into_iter().map(|lid| (lid, Row::Unreachable(lid)));
        let again: BTreeMap<_, _> = routes.chain(none).collect();
        prop_assert_eq!(again.into_values().collect::<Vec<_>>(), rows);
    }

    #[test]
    fn any_bytes_can_be_parsed(
        lines in vec("(Switch 0x[1-9],base LID [0-9]|[0-9]{1,3} : [0-9]{1,2}|.{0,20})", 0..9),
        bytes in vec(any::<u8>(), 0..99),
    ) {
        read(&[lines.join("\n").as_bytes(), &bytes].concat());
    }
}
