use ib_topology::Fabric;
use ib_topology::generate::{Kind, Options, generate};
use ib_types::ServiceLevel;

use super::lfts::Follow;
use super::*;
use crate::check::{CheckOptions, check_with};
use crate::engine::{Engine, RoutingOptions, minhop::MinHop, updn::UpDown};
use crate::layers::Layers;
use crate::lft::{Lfts, UnknownEntries};
use crate::lids::LidOptions;
use crate::subnet::SubnetOptions;

fn fabric() -> Fabric {
    let kind = Kind::parse("xgft", &["3,4", "1,3"]).expect("the kind and its arguments are valid");
    generate(&kind, &Options::default()).expect("the fabric can be generated")
}

fn subnet(fabric: &Fabric, lmc: u8) -> Subnet<'_> {
    let lids = LidOptions {
        lmc: ib_types::Lmc::new(lmc).expect("the LMC is at most 7"),
        ..Default::default()
    };
    Subnet::discover(fabric, &SubnetOptions { sm_port: None, lids })
        .expect("the fabric has a linked port")
}

fn text(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
    let mut bytes = Vec::new();
    write(&mut bytes).expect("memory accepts all writes");
    String::from_utf8(bytes).expect("the dump is UTF-8 text")
}

#[test]
fn written_dumps_are_read_back() {
    let fabric = fabric();
    for lmc in [0, 2] {
        let subnet = subnet(&fabric, lmc);
        let routing =
            UpDown.route(&subnet, &RoutingOptions::default()).expect("updn routes the tree");
        let dump = text(|out| lfts::write(out, &subnet, &routing.lfts));
        let read = lfts::read("x", dump.as_bytes(), &subnet, Follow::AllGuids)
            .expect("the written dump is valid");
        let value = lfts::ReadLfts { lfts: routing.lfts, unknown: UnknownEntries::default() };
        assert_eq!(read, Loaded { value, notes: Vec::new() });

        let dump = text(|out| lid_matrix::write(out, &subnet, &routing.hops));
        let read =
            lid_matrix::read("x", dump.as_bytes(), &subnet).expect("the written dump is valid");
        assert!(read.notes.is_empty());
        assert_eq!(text(|out| lid_matrix::write(out, &subnet, &read.value)), dump);

        let switches = subnet.switches().len();
        let levels = (0..switches * switches).map(|pair| (pair % 7) as u8).collect();
        let layers = Layers::per_pair(switches, levels);
        let dump = text(|out| levels::write(out, &subnet, &layers));
        assert_eq!(
            levels::read("x", dump.as_bytes(), &subnet).expect("the written dump is valid").value,
            layers
        );

        let dump = text(|out| lists::write_guid2lid(out, &subnet));
        let ranges = lists::read_guid2lid("x", dump.as_bytes()).expect("the written dump is valid");
        assert_eq!(ranges.len(), subnet.end_ports().len());
    }
}

#[test]
fn entries_follow_a_port_to_its_new_lid() {
    let fabric = fabric();
    let (old, new) = (subnet(&fabric, 0), subnet(&fabric, 3));
    let routing =
        MinHop.route(&old, &RoutingOptions::default()).expect("minhop routes every subnet");
    let dump = text(|out| lfts::write(out, &old, &routing.lfts));
    let read = lfts::read("x", dump.as_bytes(), &new, Follow::AllGuids)
        .expect("the written dump is valid")
        .value
        .lfts;
    for (before, after) in old.end_ports().iter().zip(new.end_ports()) {
        for switch in old.switch_ids() {
            let lid = after.base_lid.get() + before.base_lid.get() % after.lids;
            assert_eq!(
                read.port(switch, lid),
                routing.lfts.port(switch, before.base_lid.get()),
                "LID {lid}"
            );
        }
    }
}

#[test]
fn ibroute_output_is_read() {
    let fabric = fabric();
    let subnet = subnet(&fabric, 0);
    let guid = subnet.switches()[0].guid;
    let text = format!(
        "Unicast lids [0x0-0x13] of switch Lid 2 guid {guid} (leaf-0):\n  Lid  Out   Destination\n       \
         Port     Info \n0x0001 002 : (Channel Adapter portguid 0x0002c90000100001: 'host-00')\n\
         0x0002 000 : (Switch portguid {guid}: 'leaf-0')\n2 valid lids dumped \n"
    );
    let loaded = lfts::read("x", text.as_bytes(), &subnet, Follow::AllGuids)
        .expect("the text has the format of ibroute");
    assert_eq!(loaded.value.lfts.port(crate::SwitchId(0), 1), 2);
    let missing = subnet.switches().len() - 1;
    assert_eq!(
        loaded.notes,
        [format!("switches of the subnet without a block in the file: {missing}")]
    );
}

#[test]
fn malformed_dumps_are_refused_with_line_and_column() {
    let fabric = fabric();
    let subnet = subnet(&fabric, 0);
    let head =
        format!("Unicast lids [0-19] of switch Lid 2 guid {} ('a'):\n", subnet.switches()[0].guid);
    let cases = [
        ("0x0001 002\n".to_owned(), "x:1:1: found an entry, expected `Unicast lids` before it"),
        (format!("{head}0x0001 256\n"), "x:2:8: found `256`, expected an output port, 0 to 255"),
        (format!("{head}0xc000 002\n"), "x:2:3: found `c000`, expected a unicast LID, 0 to bfff"),
        (
            "Multicast mlids [0xc000-0xc3ff] of switch\n".to_owned(),
            "x:1:1: found `Multicast`, expected unicast tables",
        ),
        (
            "rubbish\n".to_owned(),
            "x:1:1: found `rubbish`, expected `Unicast lids`, a LID, or `lids dumped`",
        ),
    ];
    for (text, expected) in cases {
        let error = lfts::read("x", text.as_bytes(), &subnet, Follow::AllGuids).expect_err(&text);
        assert_eq!(error.to_string(), expected);
    }
}

/// Returns the tables of two switches as `ibroute` prints them, with the LIDs of the fabric.
fn ibroute_text(subnet: &Subnet<'_>, lfts: &Lfts) -> [String; 2] {
    [0, 1].map(|number| {
        let switch = crate::SwitchId(number);
        let guid = subnet.switch(switch).guid;
        let table = lfts.table(switch);
        let entries = table.iter().enumerate().filter(|(_, port)| **port != crate::NO_PATH);
        let lines: Vec<String> =
            entries.map(|(lid, port)| format!("{lid:#06x} {port:03} \n")).collect();
        format!(
            "Unicast lids [0x0-{:#x}] of switch Lid 2 guid {guid} (leaf):\n  Lid  Out   Destination\n       \
             Port     Info \n{}{} valid lids dumped \n",
            table.len() - 1,
            lines.concat(),
            lines.len()
        )
    })
}

#[test]
fn gaps_of_a_dump_are_reported_as_unknown() {
    let fabric = fabric();
    let subnet = subnet(&fabric, 0);
    let routing =
        MinHop.route(&subnet, &RoutingOptions::default()).expect("minhop routes every subnet");
    let [first, second] = ibroute_text(&subnet, &routing.lfts);
    let lines = |text: &str, count: usize| -> String {
        text.lines().take(count).map(|line| format!("{line}\n")).collect()
    };
    let all = first.lines().count();
    let lid = |line: usize| {
        let line = first.lines().nth(line).expect("the table has this line");
        u16::from_str_radix(&line[2..6], 16).expect("the line starts with a LID")
    };
    let last = routing.lfts.max_lid();
    let failed = "ibroute: iberror: failed: dump tables: linear forwarding table get failed\n";
    let again = first.lines().nth(4).expect("the table has this line").replace(" 0", " 1");
    let (four, three) = (lid(4), lid(3));
    let cases = [
        ("a table is truncated", lines(&first, 6) + failed, 7, (lid(5) + 1..=last).collect()),
        ("no entry at all", lines(&first, 3), 1, (0..=last).collect()),
        ("the last line is missing", lines(&first, all - 1), 1, Vec::new()),
        (
            "an entry is missing",
            first.replace(
                &format!("{}\n", first.lines().nth(3).expect("the table has this line")),
                "",
            ),
            all as u32 - 1,
            vec![0, three],
        ),
        (
            "a LID is listed twice",
            lines(&first, all - 1) + &again + "\n" + &format!("{} valid lids dumped\n", all - 3),
            all as u32,
            vec![four],
        ),
        (
            "a switch is listed twice",
            first.clone() + &lines(&first, 3) + &again + "\n1 valid lids dumped\n",
            all as u32 + 4,
            vec![four],
        ),
    ];
    for (what, text, line, unknown) in cases {
        let text = text + &second;
        let read = |follow| lfts::read("x", text.as_bytes(), &subnet, follow).expect(what);
        let judged = read(Follow::UnrecordedLids);
        let at = format!("line {line}: ");
        assert!(
            judged.notes.iter().any(|note| note.starts_with(&at)),
            "{what}: {:?}",
            judged.notes
        );
        let switch = crate::SwitchId(0);
        let found: Vec<u16> =
            (0..=last).filter(|&lid| judged.value.unknown.contains(switch, lid)).collect();
        assert_eq!(found, unknown, "{what}");
        assert!(unknown.iter().all(|&lid| judged.value.lfts.port(switch, lid) == crate::NO_PATH));
        if what.ends_with("twice") {
            let port = read(Follow::AllGuids).value.lfts.port(switch, four);
            assert_eq!(port, routing.lfts.port(switch, four) + 100, "{what}: last port is used");
        }
    }
}

#[test]
fn pairs_with_an_unknown_entry_are_unknown() {
    let fabric = fabric();
    let subnet = subnet(&fabric, 0);
    let routing =
        MinHop.route(&subnet, &RoutingOptions::default()).expect("minhop routes every subnet");
    let text = text(|out| lfts::write(out, &subnet, &routing.lfts));
    // The block of the last switch is cut off from the file.
    let cut = text.rfind("Unicast lids").expect("the dump has a block per switch");
    let read = lfts::read("x", &text.as_bytes()[..cut], &subnet, Follow::UnrecordedLids);
    let lfts::ReadLfts { lfts, unknown } = read.expect("the remaining blocks are complete").value;
    assert_eq!(unknown.switches().count(), 1);
    let options = CheckOptions { unknown: Some(&unknown), ..CheckOptions::default() };
    let reach = check_with(&subnet, &lfts, &routing.layers, &options).reach;
    assert_eq!((reach.unreachable, reach.unreachable_host_pairs), (0, 0));
    assert!(reach.unknown > 0 && !reach.first_unknown.is_empty());
    let reach = check_with(&subnet, &lfts, &routing.layers, &CheckOptions::default()).reach;
    assert!(reach.unreachable > 0 && reach.unknown == 0);
}

#[test]
fn malformed_line_of_a_cache_is_dropped() {
    let text =
        "0x1 0x0004 0x0004\n\njunk\n\n0x2 x 0x5\n0x3 0x0007 0x0006\n0x1 0x0009 0x0009\n0x4 8 8\n";
    let (ranges, errors) =
        lists::read_cached_guid2lid("g", text.as_bytes()).expect("the text is UTF-8");
    let expected = [(1, (4, 4)), (4, (8, 8))];
    assert_eq!(ranges, expected.map(|(guid, range)| (ib_types::Guid(guid), range)).into());
    let lines: Vec<usize> = errors.iter().map(|error| error.line).collect();
    assert_eq!(lines, [3, 5, 6, 7]);
}

#[test]
fn malformed_lists_are_refused_with_line_and_column() {
    let fabric = fabric();
    let subnet = subnet(&fabric, 0);
    let error =
        |result: Result<(), ib_topology::ParseError>| result.expect_err("refused").to_string();
    let guid2lid = |text: &str| error(lists::read_guid2lid("g", text.as_bytes()).map(|_| ()));
    assert_eq!(
        guid2lid("0x1 0xffff 2\n"),
        "g:1:5: found `0xffff`, expected the first LID, 0x0 to 0xbfff"
    );
    assert_eq!(guid2lid("0x1 2 c000\n"), "g:1:7: found `c000`, expected the last LID, 0 to 49151");
    assert_eq!(
        guid2lid("0x1 2 2\n0x1 3 3\n"),
        "g:2:1: found GUID 0x0000000000000001 again, expected one line per GUID"
    );
    let levels = |text: &str| error(levels::read("l", text.as_bytes(), &subnet).map(|_| ()));
    let pair = "0x0000000000000001 0x0000000000000002";
    assert_eq!(
        levels(&format!("{pair} 16\n")),
        "l:1:39: found `16`, expected a service level, 0 to 15"
    );
    assert_eq!(
        levels(&format!("{pair} 1\n")),
        format!(
            "l:2:1: found the end of the file, expected the levels of {} more pairs of switches of \
             this subnet",
            subnet.switches().len() * (subnet.switches().len() - 1)
        )
    );
    assert_eq!(
        levels("0x1 0x2 1\n"),
        "l:1:3: found `1`, expected the GUID of a switch of 16 hexadecimal digits"
    );
    let switch = subnet.switches()[0].guid;
    let matrix = |text: &str| error(lid_matrix::read("m", text.as_bytes(), &subnet).map(|_| ()));
    assert_eq!(
        matrix(&format!("Switch: guid {switch}\n0x0002: 00 01\n")),
        "m:2:1: found hops for 2 ports, expected 7: ports 0 to 6"
    );
    assert_eq!(
        matrix("0x0002: 00 01\n"),
        "m:1:1: found a row of hops, expected `Switch: guid` before it"
    );
}

#[test]
fn all_dumps_of_the_engine_are_written() {
    let fabric = fabric();
    let subnet = subnet(&fabric, 0);
    let routing = UpDown.route(&subnet, &RoutingOptions::default()).expect("updn routes the tree");
    let directory = tempfile::tempdir().expect("a temporary directory can be created");
    let names =
        write_all(directory.path(), &subnet, &routing, &|_| {}).expect("the directory is writable");
    assert!(names.contains(&"opensm-updn-roots.dump"));
    let mut found: Vec<String> = std::fs::read_dir(directory.path())
        .expect("the directory is readable")
        .map(|entry| {
            entry.expect("the entry is readable").file_name().to_string_lossy().into_owned()
        })
        .collect();
    found.sort();
    let mut expected = names;
    expected.sort_unstable();
    assert_eq!(found, expected, "no temporary file is left");
    let roots = std::fs::read_to_string(directory.path().join("opensm-updn-roots.dump"));
    assert_eq!(roots.expect("the file was written").lines().next(), Some("0x2c90000200004"));
}

#[test]
fn uniform_layers_have_one_level() {
    let layers = Layers::uniform(ServiceLevel::default());
    assert!(layers.is_uniform());
    assert_eq!(layers.count(), 1);
}
