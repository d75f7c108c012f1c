use super::*;

const OPENSM: &str = "\
Unicast lids [0-16] of switch Lid 4 guid 0x0000000000200002 ('leaf 1'):
0x0001 030 # Channel Adapter portguid 0x0000000000100001: 'host1'
0x0002 UNREACHABLE
16 lids dumped
";
const DUMP_LFTS: &str = "\
Unicast lids [0x0-0x18] of switch DR path slid 0; dlid 0; 0,1 guid 0x0000000000200002 (leaf 1):
  Lid  Out   Destination
       Port     Info
0x0001 030 : (Channel Adapter portguid 0x0000000000100001: 'host1')
0x0002 255 : (path #1 out of 2)
2 valid lids dumped
";

#[test]
fn both_formats_are_parsed_equally() {
    let tables = parse(OPENSM);
    assert_eq!(tables, BTreeMap::from([(Guid(0x20_0002), BTreeMap::from([(1, 30)]))]));
    assert_eq!(parse(DUMP_LFTS), tables);
    assert_eq!(differences(&tables, &parse(DUMP_LFTS)), "");
}

#[test]
fn wrong_ports_and_missing_switches_are_reported() {
    let wrong = parse(&DUMP_LFTS.replace("030", "031"));
    assert!(differences(&parse(OPENSM), &wrong).contains("port 30, the simulator 31"));
    assert!(differences(&parse(OPENSM), &Tables::new()).contains("only OpenSM has the switch"));
    assert!(differences(&Tables::new(), &wrong).contains("only the simulator"));
}
