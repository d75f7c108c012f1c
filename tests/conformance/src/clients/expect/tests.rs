use super::*;
use crate::clients::fabrics::{FABRICS, hurt};

fn printed(fabric: &Fabric) -> String {
    let mut output = Vec::new();
    ib_topology::write(fabric, ib_topology::Format::Ibnetdiscover, &mut output).unwrap();
    String::from_utf8(output).unwrap()
}

#[test]
fn missing_links_are_reported() {
    for plan in FABRICS {
        let fabric = plan.fabric().unwrap();
        assert_eq!(discovered(&fabric, &printed(&fabric)), Vec::<String>::new(), "{}", plan.name());
        let mut changed = fabric.clone();
        hurt(&mut changed);
        assert_eq!(discovered(&fabric, &printed(&changed)).len(), 1, "{}", plan.name());
        assert_eq!(discovered(&changed, &printed(&fabric)).len(), 1, "{}", plan.name());
    }
}

#[test]
fn every_fabric_has_a_spare_link() {
    for plan in FABRICS {
        assert!(!spare_links(&plan.fabric().unwrap()).is_empty(), "{}", plan.name());
    }
}

#[test]
fn link_ends_are_counted_at_their_speed() {
    let line = "  0x1 24 1[  ] ==( 4X        53.125 Gbps Active/  LinkUp)==>  6 4[  ] \"leaf\"\n";
    assert_eq!(link_ends(&line.repeat(3), LinkSpeed::Hdr), 3);
    assert_eq!(link_ends(line, LinkSpeed::Ndr), 0);
}

#[test]
fn counters_are_parsed_by_name() {
    let text = "PortXmitData:....................257112\nPortXmitPkts:....................7\n";
    assert_eq!(counter(text, "PortXmitPkts"), Some(7));
    assert_eq!(counter(text, "PortRcvPkts"), None);
}

#[test]
fn fields_are_parsed_after_their_dots() {
    let text = "# Port info: DR path port 4\nLinkState:.......................Down\n\
                PhysLinkState:...................Disabled\n";
    assert_eq!(field(text, "LinkState"), Some("Down"));
    assert_eq!(field(text, "PhysLinkState"), Some("Disabled"));
    assert_eq!(field(text, "Lid"), None);
}

#[test]
fn rates_are_parsed_as_words() {
    let text = "\t\tPhysical state: LinkUp\n\t\tRate: 200\n\t\tBase lid: 1\n";
    assert_eq!(word(text, "Rate: "), Some(rate(LinkSpeed::Hdr).to_string().as_str()));
    assert_eq!(word(text, "Link layer: "), None);
}
