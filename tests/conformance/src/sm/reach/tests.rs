use super::*;

/// Two switches with one host each, in the output format of `ibnetdiscover`.
const DISCOVERED: &str = "\
switchguid=0x2a(2a)
Switch\t2 \"S-000000000000002a\"\t\t# \"left\" base port 0 lid 3 lmc 0
[1]\t\"S-000000000000002b\"[1]\t\t# \"right\" lid 4 4xHDR
[2]\t\"H-000000000000001a\"[1](1b) \t\t# \"host-0\" lid 1 4xHDR
switchguid=0x2b(2b)
Switch\t2 \"S-000000000000002b\"\t\t# \"right\" base port 0 lid 4 lmc 0
[1]\t\"S-000000000000002a\"[1]\t\t# \"left\" lid 3 4xHDR
[2]\t\"H-000000000000001c\"[1](1d) \t\t# \"host-1\" lid 2 4xHDR
Ca\t1 \"H-000000000000001a\"\t\t# \"host-0\"
[1](1b) \t\"S-000000000000002a\"[2]\t\t# lid 1 lmc 0 \"left\" lid 3 4xHDR
Ca\t1 \"H-000000000000001c\"\t\t# \"host-1\"
[1](1d) \t\"S-000000000000002b\"[2]\t\t# lid 2 lmc 0 \"right\" lid 4 4xHDR
";

/// The switches' tables in the output format of `dump_fts`. `back` is the port on which the right switch sends to the
/// left host.
fn tables(back: u8) -> String {
    format!(
        "Unicast lids [0x0-0x4] of switch DR path slid 0; dlid 0; 0,1 guid 0x000000000000002a \
         (left):\n  Lid  Out   Destination\n       Port     Info\n\
         0x0001 002 : (Channel Adapter portguid 0x1b: 'host-0')\n\
         0x0002 001 : (Channel Adapter portguid 0x1d: 'host-1')\n\
         Unicast lids [0x0-0x4] of switch DR path slid 0; dlid 0; 0,1,1 guid \
         0x000000000000002b (right):\n\
         0x0001 00{back} : (Channel Adapter portguid 0x1b: 'host-0')\n\
         0x0002 002 : (Channel Adapter portguid 0x1d: 'host-1')\n"
    )
}

#[test]
fn pairs_are_walked_through_links_and_tables() {
    let truth = Truth::read(DISCOVERED, &tables(1));
    assert_eq!(truth.lids.values().copied().collect::<Vec<_>>(), [1, 2]);
    assert_eq!(truth.walk(), (2, Vec::new(), false));
    let (pairs, dead, _) = Truth::read(DISCOVERED, &tables(3)).walk();
    assert_eq!((pairs, dead.len()), (2, 1));
    assert!(dead[0].contains("port 3"), "{dead:?}");
    let (_, dead, _) = Truth::read(DISCOVERED, "").walk();
    assert_eq!(dead.len(), 2);
}
