use super::*;

const FOUND: &str = "\
#
# Topology file: generated on Sat Nov 21 12:00:00 2026
vendid=0x0
Switch\t5 \"S-0002c90000200000\"\t\t# \"leaf-0\" enhanced port 0 lid 2 lmc 0
[1]\t\"H-0002c90000100000\"[1](2c90000100001) \t\t# \"host-0\" lid 7 4xHDR
Ca\t1 \"H-0002c90000100000\"\t\t# \"host-0\"
[1](2c90000100001) \t\"S-0002c90000200000\"[1]\t\t# lid 7 lmc 1 \"leaf-0\" lid 2 4xHDR
";

#[test]
fn lids_are_parsed_from_lines_of_ports() {
    let lids = read_lids(FOUND);
    let expected =
        BTreeMap::from([(Guid(0x0002_c900_0020_0000), 2), (Guid(0x0002_c900_0010_0001), 7)]);
    assert_eq!(lids, expected);
}
