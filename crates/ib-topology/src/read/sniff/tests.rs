use super::format;
use crate::Format;

#[test]
fn first_unambiguous_line_decides_the_format() {
    let ibnetdiscover = [
        "#\n# Topology file: generated on Thu Jan  1 00:00:00 2026\n#\nwidth=3\n",
        "vendid=0x2c9\nswitchguid=0x1(1)\n",
        "caguid=0x1\nCa\t1 \"H-1\"\t\t# \"x\"\n[1](2) \t\"S-1\"[1]\t\t# lid 1 lmc 0 \"y\" lid 2 4xEDR\n",
        "switchguid=0x1\nSwitch\t1 \"S\"\t\t# \"x\"\n[1]\t\"H\"[1](2) \t\t# \"y\" lid 2 4xEDR\n",
        "DR path slid 0; dlid 0; 0 -> new Switch {0000000000000001} portnum 0 lid 0-0 \"\"\nwidth=3\n",
        "SW     1  1 0x0000000000000001 4x SDR                                    'x'\n",
        "caguid=0x1\nCa\t1 \"H-1\"\t\t# \"x\"\n[1]\t\"H-2\"[1] (2) \t\t# lid 1 lmc 0 \"y\" lid 2 4xEDR\n",
    ];
    for text in ibnetdiscover {
        assert_eq!(format(text), Format::Ibnetdiscover, "{text}");
    }
    let ibsim = [
        "",
        "# nothing\n",
        "Switch 2 \"a\"\n[1] \"b\"[1](5)\n",
        "switchguid=0x1\nSwitch 2 \"a\"\n[1] \"b\"[1] # \"odd](5)\"\n",
        "switchguid=0x1\nSwitch 2 \"](1\"\n[1] \"](1\"[2]\n[2] \"](1\"[1]\n",
        "hcaguids=0x5\nswitchguid=0x1(1)\n",
        "include \"x\"\nswitchguid=0x1(1)\n",
        "vendid=0x1\n@[1]\"up\"\nswitchguid=0x1(1)\n",
        "anything else",
    ];
    for text in ibsim {
        assert_eq!(format(text), Format::Ibsim, "{text}");
    }
    assert_eq!(format("\n  { SW Ports:24"), Format::SubnetList);
    assert_eq!(format("Switch 2 \"a\"\n{ SW Ports:24"), Format::Ibsim);
}
