use ib_topology::Fabric;
use ib_topology::generate::{Kind, Options, generate};

use super::*;
use crate::subnet::SubnetOptions;

fn fabric() -> Fabric {
    let kind = Kind::parse("xgft", &["2,2", "1,2"]).expect("the kind and its arguments are valid");
    generate(&kind, &Options::default()).expect("the fabric can be generated")
}

fn vl(map: &Sl2Vl, from: u8, out: u8, level: u8) -> u8 {
    let level = ServiceLevel::new(level).expect("the service level is at most 15");
    map.vl(SwitchId(0), from, out, level).get()
}

/// Returns a block of the subnet's first switch that contains the given lines.
fn block(subnet: &Subnet<'_>, lines: &str) -> String {
    let guid = subnet.switch(SwitchId(0)).guid;
    format!("Switch {guid}, base LID 4, \"x\"\n#in out : 0  1\n{lines}\n#------\n\n")
}

#[test]
fn pairs_of_ports_have_their_own_vls() {
    let fabric = fabric();
    let subnet =
        Subnet::discover(&fabric, &SubnetOptions::default()).expect("the fabric has a linked port");
    // All pairs of ports except two have the same table.
    let tables: String = subnet
        .switches()
        .iter()
        .map(|switch| {
            let ports = usize::from(switch.ports) + 1;
            let pairs = (0..ports * ports).map(|pair| match (pair / ports, pair % ports) {
                (0, 1) => "0   1   : 7 6 5 4 3 2 1 0 0 0 0 0 0 0 0 15\n".to_owned(),
                (2, 1) => "2   1   : 0 0 0 0 0 0 0 0 1 1 1 1 1 1 1 1 \n".to_owned(),
                (from, out) => format!("{from} {out} : 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\n"),
            });
            let lines: String = pairs.collect();
            format!("Switch {}, base LID 4, \"x\"\n#in out : 0  1\n{lines}#------\n\n", switch.guid)
        })
        .collect();
    let adapter = "Channel Adapter 0x0000000000000099, base LID 1, \"h\"\n\
                   0   0   : 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7\n";
    let loaded = read("f", format!("{tables}{adapter}").as_bytes(), &subnet)
        .expect("the tables are well formed");
    let map = &loaded.value;
    assert_eq!((vl(map, 0, 1, 0), vl(map, 0, 1, 15), vl(map, 2, 1, 9)), (7, 15, 1));
    assert_eq!(vl(map, 1, 2, 9), 9);
    assert_eq!(loaded.notes, [""; 0]);
    let cut = tables.rfind("2 2 :").expect("the file has a line for ports 2 and 2");
    let error = read("f", &tables.as_bytes()[..cut], &subnet)
        .expect_err("the file is truncated")
        .to_string();
    assert!(
        error.contains("expected a line for input port 2 and output port 2 of switch"),
        "{error}"
    );
}

#[test]
fn malformed_lines_are_refused_with_their_line() {
    let fabric = fabric();
    let subnet =
        Subnet::discover(&fabric, &SubnetOptions::default()).expect("the fabric has a linked port");
    let fault = |text: &str| {
        let error = read("f", text.as_bytes(), &subnet).expect_err("a fault");
        (error.line, error.column, error.to_string())
    };
    let line = "0 1 : 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7";
    let (at, _, message) = fault(&format!("# x\n{line}\n"));
    assert!(at == 2 && message.contains("expected `Switch`"), "{message}");
    let (at, column, message) = fault(&block(&subnet, &line.replace(" 7 ", " 16 ")));
    assert!((at, column) == (3, 21) && message.contains("a VL, 0 to 15"), "{message}");
    let (.., message) = fault(&block(&subnet, "0 1 : 0 1 2"));
    assert!(message.contains("found the end of the line, expected a VL"), "{message}");
    let (.., message) = fault(&block(&subnet, &line.replacen('1', "9", 1)));
    assert!(message.contains("an output port of the switch, 0 to 4"), "{message}");
    let (at, _, message) = fault(&block(&subnet, &format!("{line}\n{line}")));
    assert!(at == 4 && message.contains("one line for them"), "{message}");
    let twice = block(&subnet, line).repeat(2);
    assert!(fault(&twice).2.contains("one block per switch"));
    assert!(fault("Bridge 0x1\n").2.contains("`Switch`"));
}
