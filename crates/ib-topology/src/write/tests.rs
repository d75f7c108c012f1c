use ib_types::{Guid, Lid, LinkSpeed, LinkWidth, Lmc, NodeKind};
use proptest::prelude::*;

use super::write;
use crate::read::{Format, read, read_as};
use crate::{Fabric, LinkRate, NodeId, NodeSpec};

fn text(fabric: &Fabric, format: Format) -> Result<String, String> {
    let mut output = Vec::new();
    write(fabric, format, &mut output).map_err(|error| error.to_string())?;
    Ok(String::from_utf8(output).expect("all formats are text"))
}

fn rate(width: LinkWidth, speed: LinkSpeed) -> LinkRate {
    LinkRate { width, speed }
}

fn lid(lid: u32) -> Option<Lid> {
    Some(Lid::unicast(lid).expect("the LID is unicast"))
}

/// Returns a switch that is linked to a host, a router and another switch. All nodes except the other switch have LIDs.
fn small() -> Fabric {
    let mut fabric = Fabric::new();
    let leaf = NodeSpec {
        description: "the leaf".to_owned(),
        vendor_id: 0x2c9,
        device_id: 0xd2f2,
        system_guid: Guid(0x1003),
        enhanced_port0: true,
        ..NodeSpec::new(NodeKind::Switch, "leaf", Guid(0x1000), 4)
    };
    let leaf = fabric.add_node(leaf).expect("new");
    let spine = NodeSpec::new(NodeKind::Switch, "spine", Guid(0x1100), 4);
    let spine = fabric.add_node(spine).expect("new");
    let host = NodeSpec::new(NodeKind::ChannelAdapter, "host", Guid(0x2000), 2);
    let host = fabric.add_node(host).expect("new");
    let gate = NodeSpec::new(NodeKind::Router, "gate", Guid(0x3000), 1);
    let gate = fabric.add_node(gate).expect("new");
    for (node, number, guid) in [(host, 1, 0x2001), (host, 2, 0x2002), (gate, 1, 0x3001)] {
        fabric.set_port_guid(node, number, Guid(guid)).expect("free");
    }
    let links = [
        ((leaf, 1), (spine, 1), rate(LinkWidth::X4, LinkSpeed::Ndr)),
        ((leaf, 2), (spine, 2), LinkRate::DEFAULT),
        ((leaf, 3), (host, 1), rate(LinkWidth::X4, LinkSpeed::Hdr)),
        ((gate, 1), (spine, 3), rate(LinkWidth::X12, LinkSpeed::Xdr)),
    ];
    for (a, b, rate) in links {
        fabric.connect(a, b, rate).expect("the ports are free");
    }
    fabric.set_lid(leaf, 0, lid(7), Lmc::ZERO).expect("a switch has port 0");
    fabric.set_lid(host, 1, lid(8), Lmc::new(1).expect("legal")).expect("port 1 exists");
    fabric
}

#[test]
fn ibsim_file_is_written_as_expected() {
    insta::assert_snapshot!(text(&small(), Format::Ibsim).expect("written"));
}

#[test]
fn ibnetdiscover_file_is_written_as_expected() {
    insta::assert_snapshot!(text(&small(), Format::Ibnetdiscover).expect("written"));
}

#[test]
fn subnet_list_is_written_as_expected() {
    insta::assert_snapshot!(text(&small(), Format::SubnetList).expect("written"));
}

#[test]
fn small_fabric_is_read_back() {
    let fabric = small();
    for format in [Format::Ibnetdiscover, Format::Ibsim] {
        let written = text(&fabric, format).expect("written");
        assert_eq!(read("f", written.as_bytes()), Ok(fabric.clone()), "{written}");
    }
}

#[test]
fn ibsim_modules_are_read_back() {
    let mut fabric = Fabric::new();
    let ids = ["m#a", "m#b", "n#a", "lone"].map(|name| {
        let guid = Guid(fabric.node_count() as u64 + 1);
        fabric.add_node(NodeSpec::new(NodeKind::Switch, name, guid, 3)).expect("new")
    });
    fabric.connect((ids[0], 1), (ids[1], 1), LinkRate::DEFAULT).expect("free");
    fabric.connect((ids[0], 2), (ids[2], 2), LinkRate::DEFAULT).expect("free");
    let written = text(&fabric, Format::Ibsim).expect("written");
    assert_eq!(read("f", written.as_bytes()), Ok(fabric.clone()), "{written}");
    fabric.connect((ids[1], 3), (ids[3], 3), LinkRate::DEFAULT).expect("free");
    assert_eq!(
        text(&fabric, Format::Ibsim),
        Err("node \"m#b\" cannot be written: found a link to \"lone\", which has no module, \
             expected a link to a node with a module"
            .to_owned())
    );
}

#[test]
fn descriptions_with_quotes_are_written_unquoted() {
    let written = |kind: NodeKind, enhanced_port0, description: &str| {
        let mut spec = NodeSpec::new(kind, "a", Guid(5), 1);
        spec.description = description.to_owned();
        spec.enhanced_port0 = enhanced_port0;
        let mut fabric = Fabric::new();
        let id = fabric.add_node(spec).expect("new");
        if !kind.is_switch() {
            fabric.set_port_guid(id, 1, Guid(6)).expect("free");
        }
        let written = text(&fabric, Format::Ibsim)?;
        assert_eq!(read("f", written.as_bytes()), Ok(fabric), "{written}");
        Ok(())
    };
    let refused = |description: &str| {
        Err(format!(
            "node \"a\" cannot be written: found the description `{description}`, \
             expected one that ibsim can read without quotes around it"
        ))
    };
    let (switch, adapter) = (NodeKind::Switch, NodeKind::ChannelAdapter);
    for description in ["a \"big\" one", "big\"", "a\" lid", "a\" base port"] {
        assert_eq!(written(switch, false, description), Ok(()));
        assert_eq!(written(adapter, false, description), Ok(()));
    }
    // For a switch, ` base port ` or ` enhanced port ` follows the description. ibsim searches for these before ` lid `
    // and ` lmc `, so it reads the whole description.
    for description in ["a \"big\" lid ", "a\" lmc 5 lid 3"] {
        assert_eq!(written(switch, false, description), Ok(()));
        assert_eq!(written(switch, true, description), Ok(()));
        assert_eq!(written(adapter, false, description), refused(description));
    }
    for description in ["\"big\" one", " a \"big\" one", "a\" enhanced port 1"] {
        assert_eq!(written(switch, false, description), refused(description));
        assert_eq!(written(switch, true, description), refused(description));
    }
}

#[test]
fn unrepresentable_attributes_are_refused() {
    let written = |format, change: &dyn Fn(&mut NodeSpec)| {
        let mut spec = NodeSpec::new(NodeKind::Switch, "a", Guid(5), 2);
        change(&mut spec);
        let mut fabric = Fabric::new();
        fabric.add_node(spec).expect("new");
        text(&fabric, format).map(|_| ())
    };
    let long = "x".repeat(65);
    let all = [Format::Ibnetdiscover, Format::Ibsim, Format::SubnetList];
    for format in all {
        assert_eq!(written(format, &|_| ()), Ok(()));
        for control in ["\n", "\r", "\0", "\u{7f}"] {
            let found = written(format, &|spec| spec.description = control.to_owned());
            assert!(found.expect_err("the text is invalid").contains("control character"));
            let found = written(format, &|spec| spec.name = control.to_owned());
            assert!(found.expect_err("the text is invalid").contains("control character"));
        }
        assert!(written(format, &|spec| spec.vendor_id = 0x100_0000).is_err());
        assert_eq!(written(format, &|spec| spec.vendor_id = 0xff_ffff), Ok(()));
    }
    let ibsim = |change: &dyn Fn(&mut NodeSpec)| written(Format::Ibsim, change);
    for name in ["", "a\"b", "a@b", "#b", "a#", "a#b#c", long.as_str(), "a-module-of-22-letters#a"]
    {
        let error = ibsim(&|spec| spec.name = name.to_owned()).expect_err(name);
        assert!(error.contains("found its name"), "{error}");
    }
    assert_eq!(ibsim(&|spec| spec.name = long[1..].to_owned()), Ok(()));
    assert!(ibsim(&|spec| spec.description = long[1..].to_owned()).is_err());
    assert_eq!(ibsim(&|spec| spec.description = long[2..].to_owned()), Ok(()));
    for name in ["", "a\"b"] {
        assert!(written(Format::Ibnetdiscover, &|spec| spec.name = name.to_owned()).is_err());
    }
    assert!(written(Format::SubnetList, &|spec| spec.description = "} LID:".to_owned()).is_err());
}

#[test]
fn linked_port_without_guid_is_refused() {
    let mut fabric = Fabric::new();
    let host = NodeSpec::new(NodeKind::ChannelAdapter, "host", Guid(5), 1);
    let host = fabric.add_node(host).expect("new");
    let leaf = fabric.add_node(NodeSpec::new(NodeKind::Switch, "leaf", Guid(9), 1)).expect("new");
    fabric.connect((host, 1), (leaf, 1), LinkRate::DEFAULT).expect("free");
    let expected = "node \"host\" cannot be written: found its port 1 linked without a GUID, expected a port GUID";
    assert_eq!(text(&fabric, Format::Ibnetdiscover), Err(expected.to_owned()));
    assert_eq!(text(&fabric, Format::SubnetList), Err(expected.to_owned()));
    assert!(text(&fabric, Format::Ibsim).is_ok(), "ibsim assigns port GUIDs itself");
}

#[test]
fn node_guids_without_gap_for_port_guids_are_refused() {
    let mut fabric = Fabric::new();
    for (name, guid) in [("a", 5), ("b", 6)] {
        let spec = NodeSpec::new(NodeKind::ChannelAdapter, name, Guid(guid), 2);
        fabric.add_node(spec).expect("new");
    }
    assert_eq!(
        text(&fabric, Format::Ibsim),
        Err("node \"b\" cannot be written: found port GUID 0x0000000000000007 by ibsim's numbering, \
             which a port of \"a\" has as well, expected node GUIDs that leave room for the ports"
            .to_owned())
    );
}

/// Random attributes of a node.
#[derive(Clone, Debug)]
struct AnyNode {
    kind: NodeKind,
    ports: u8,
    name: String,
    description: String,
    vendor: u32,
    device: u16,
    system: Option<u64>,
    enhanced_port0: bool,
    lid: u32,
    lmc: u8,
    guid_shift: u64,
}

fn any_node() -> impl Strategy<Value = AnyNode> {
    let kind =
        prop_oneof![Just(NodeKind::Switch), Just(NodeKind::ChannelAdapter), Just(NodeKind::Router)];
    let text = ("[ -!$-?A-~éß]{0,20}", "[ -!#-~éß\t]{1,30}");
    let numbers = (0..0x100_0000u32, any::<u16>(), any::<Option<u64>>(), any::<bool>());
    let lids = (0..49_000u32, 0..8u8, 0..3u64);
    (kind, 1..12u8, text, numbers, lids).prop_map(|(kind, ports, text, numbers, lids)| AnyNode {
        kind,
        ports,
        name: text.0,
        description: text.1,
        vendor: numbers.0,
        device: numbers.1,
        system: numbers.2.filter(|&guid| guid != 0),
        enhanced_port0: numbers.3 && kind.is_switch(),
        lid: lids.0,
        lmc: lids.1,
        guid_shift: lids.2,
    })
}

/// A link: its two ports, each as the index of a node and a port number, and its width and speed as indexes into
/// [`LinkWidth::ALL`] and [`LinkSpeed::ALL`]. A link is left out if a port does not exist or is not free.
type AnyLink = ((usize, u8), (usize, u8), (usize, usize));

fn any_link() -> impl Strategy<Value = AnyLink> {
    ((0..12usize, 1..12u8), (0..12usize, 1..12u8), (0..5usize, 0..9usize))
}

/// Builds a fabric from random nodes, and from the links whose ports exist and are free.
///
/// If `numbered` is true, ports have the GUIDs that ibsim would assign.
fn fabric(nodes: &[AnyNode], links: &[AnyLink], numbered: bool) -> Fabric {
    let mut fabric = Fabric::new();
    for (index, node) in nodes.iter().enumerate() {
        let guid = Guid(0x2000 + 0x40 * index as u64);
        let spec = NodeSpec {
            description: node.description.clone(),
            vendor_id: node.vendor,
            device_id: node.device,
            system_guid: node.system.map_or(guid, Guid),
            enhanced_port0: node.enhanced_port0,
            ..NodeSpec::new(node.kind, format!("{}.{index}", node.name), guid, node.ports)
        };
        let id = fabric.add_node(spec).expect("names and GUIDs are unique");
        if !node.kind.is_switch() {
            for number in 1..=node.ports {
                let guid = Guid(guid.0 + u64::from(number));
                fabric.set_port_guid(id, number, guid).expect("the GUID is unique");
            }
        } else if !numbered {
            fabric
                .set_port_guid(id, 0, Guid(guid.0 + node.guid_shift))
                .expect("the GUID is unique");
        }
    }
    for &((a, port_a), (b, port_b), (width, speed)) in links {
        let [a, b] = [a, b].map(|index| NodeId((index % nodes.len()) as u32));
        let rate = rate(LinkWidth::ALL[width], LinkSpeed::ALL[speed]);
        let _refused = fabric.connect((a, port_a), (b, port_b), rate);
    }
    for (index, node) in nodes.iter().enumerate() {
        let id = NodeId(index as u32);
        let lmc = Lmc::new(node.lmc).expect("the LMC is below 8");
        let base = (node.lid > 0).then(|| lid(node.lid)).flatten();
        if node.kind.is_switch() {
            fabric.set_lid(id, 0, base, lmc).expect("a switch has port 0");
            continue;
        }
        for number in 1..=node.ports {
            let port = fabric.port_id(id, number).expect("the node has this port");
            if fabric.port(port).peer.is_some() {
                fabric.set_lid(id, number, base, lmc).expect("the node has this port");
                if !numbered {
                    let guid = Guid(0x20 + node.guid_shift + fabric.port(port).guid.0);
                    fabric.set_port_guid(id, number, guid).expect("the GUID is unique");
                }
            }
        }
    }
    fabric
}

fn any_fabric() -> impl Strategy<Value = (Vec<AnyNode>, Vec<AnyLink>)> {
    (prop::collection::vec(any_node(), 1..12), prop::collection::vec(any_link(), 0..40))
}

proptest! {
    #[test]
    fn any_fabric_is_read_back_from_an_ibsim_net_file((nodes, links) in any_fabric()) {
        let fabric = fabric(&nodes, &links, true);
        let written = text(&fabric, Format::Ibsim).expect("written");
        prop_assert!(written.lines().all(|line| line.len() <= 254));
        let again = read("f", written.as_bytes());
        prop_assert!(again == Ok(fabric), "{again:?}\n{written}");
    }

    #[test]
    fn any_fabric_is_read_back_from_ibnetdiscover_output((nodes, links) in any_fabric()) {
        let fabric = fabric(&nodes, &links, false);
        let written = text(&fabric, Format::Ibnetdiscover).expect("written");
        let again = read("f", written.as_bytes());
        prop_assert!(again == Ok(fabric), "{again:?}\n{written}");
    }

    #[test]
    fn linked_nodes_are_read_back_from_a_subnet_list((nodes, links) in any_fabric()) {
        let fabric = fabric(&nodes, &links, false);
        let written = text(&fabric, Format::SubnetList).expect("written");
        prop_assume!(fabric.link_count() > 0);
        let again = read("f", written.as_bytes()).expect("read");
        prop_assert_eq!(again.link_count(), fabric.link_count());
        for (a, b) in fabric.links() {
            let end = |fabric: &Fabric, id| {
                let port = fabric.port(id);
                let node = fabric.node(port.node);
                let spec = NodeSpec { name: String::new(), enhanced_port0: false, ..NodeSpec::clone(node) };
                (spec, port.number, port.guid, super::lid_of(fabric, port), port.rate)
            };
            let a_again = again.find_guid(fabric.node(fabric.port(a).node).guid).expect("the node was read");
            let a_again = again.port_id(a_again, fabric.port(a).number).expect("the port was read");
            let b_again = again.port(a_again).peer.expect("the link was read");
            prop_assert_eq!(end(&again, a_again), end(&fabric, a));
            prop_assert_eq!(end(&again, b_again), end(&fabric, b));
        }
    }

    #[test]
    fn truncated_file_never_adds_nodes_or_links((nodes, links) in any_fabric(), at in 0.0..1.0f64) {
        let fabric = fabric(&nodes, &links, true);
        for format in [Format::Ibnetdiscover, Format::Ibsim, Format::SubnetList] {
            let written = text(&fabric, format).expect("written");
            let cut = (written.len() as f64 * at) as usize;
            let Some(part) = written.get(..cut) else { continue };
            // A reader must refuse a truncated file, or return a fabric that only has complete nodes of the original
            // one.
            if let Ok(again) = read_as(format, "f", part.as_bytes()) {
                prop_assert!(again.node_count() <= fabric.node_count());
                for (id, node) in again.nodes() {
                    let original = fabric.find_guid(node.guid).expect("the fabric has this node");
                    let linked = |fabric: &Fabric, id| {
                        fabric.ports_of(id).filter(|(_, port)| port.peer.is_some()).count()
                    };
                    if id.index() + 1 < again.node_count() {
                        prop_assert_eq!(linked(&again, id), linked(&fabric, original));
                    }
                }
            }
        }
    }
}
