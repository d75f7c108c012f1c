use crate::sim::Sim;
use ib_link::{Incoming, Remote};
use ib_types::{Guid, PKey, VirtualLane};
use ib_wire::mad::sm::SlToVl;
use ib_wire::mad::sm::SwitchInfo;
use ib_wire::mad::sm::VlArbitration;
use ib_wire::mad::sm::{
    CapabilityMask2, MlnxExtPortInfo, NodeDescription, NodeInfo, PhysState, PortInfo, PortState,
    VlArbitrationEntry,
};
use ib_wire::mad::smp;
use ib_wire::mad::{MgmtClass, TransactionId};

use super::*;
use crate::ids::ClientId;
use crate::lab::{self, node, port};
use crate::options::Options;

/// Returns a fabric in which s1 has 20 ports, and h1 has two ports that are both linked to s1.
fn made() -> (Sim, ClientId) {
    let fabric =
        lab::fabric(&[("h1", 2), ("h2", 1), ("s1", 20)], &["h1.1 s1.1", "h1.2 s1.2", "h2.1 s1.3"]);
    let mut sim = Sim::new(&fabric, Options::default());
    let client = lab::client(&mut sim, "h1");
    (sim, client)
}

const SWITCH: &[u8] = &[1];
const HCA: &[u8] = &[1, 3];

#[test]
fn invalid_modifiers_and_attributes_are_refused() {
    let (mut sim, client) = made();
    const OK: u16 = 0;
    const NO: u16 = 0x0c;
    const BAD: u16 = 0x1c;
    // Each case: attribute, modifier, status in the switch's response, status in the HCA's
    // response.
    let cases = [
        (AttributeId::NODE_DESCRIPTION, 0, OK, OK),
        (AttributeId::NODE_INFO, 0, OK, OK),
        (AttributeId::SWITCH_INFO, 0, OK, NO),
        (AttributeId::GUID_INFO, 0, OK, OK),
        (AttributeId::GUID_INFO, 1, BAD, OK),
        (AttributeId::GUID_INFO, 3, BAD, OK),
        (AttributeId::GUID_INFO, 4, BAD, BAD),
        (AttributeId::GUID_INFO, 0x2000_0000, BAD, BAD),
        (AttributeId::GUID_INFO, u32::MAX, BAD, BAD),
        (AttributeId::PORT_INFO, 0, OK, OK),
        (AttributeId::PORT_INFO, 1, OK, OK),
        (AttributeId::PORT_INFO, 2, OK, BAD),
        (AttributeId::PORT_INFO, 20, OK, BAD),
        (AttributeId::PORT_INFO, 21, BAD, BAD),
        (AttributeId::PORT_INFO, 255, BAD, BAD),
        (AttributeId::PORT_INFO, 1 << 31, OK, OK),
        (AttributeId::MLNX_EXT_PORT_INFO, 1, OK, OK),
        (AttributeId::MLNX_EXT_PORT_INFO, 21, BAD, BAD),
        (AttributeId::P_KEY_TABLE, 0, OK, OK),
        (AttributeId::P_KEY_TABLE, 1, BAD, OK),
        (AttributeId::P_KEY_TABLE, 2, BAD, BAD),
        (AttributeId::P_KEY_TABLE, 0xffff, BAD, BAD),
        (AttributeId::P_KEY_TABLE, 20 << 16 | 1, OK, OK),
        (AttributeId::P_KEY_TABLE, 20 << 16 | 2, BAD, BAD),
        (AttributeId::P_KEY_TABLE, 21 << 16, BAD, OK),
        (AttributeId::SL_TO_VL, 0, OK, OK),
        (AttributeId::SL_TO_VL, 20 << 8 | 20, OK, OK),
        (AttributeId::SL_TO_VL, 21 << 8 | 1, BAD, OK),
        (AttributeId::SL_TO_VL, 1 << 8 | 21, BAD, OK),
        (AttributeId::SL_TO_VL, 1 << 16, BAD, OK),
        (AttributeId::VL_ARBITRATION, 0, BAD, BAD),
        (AttributeId::VL_ARBITRATION, 1 << 16 | 1, OK, OK),
        (AttributeId::VL_ARBITRATION, 2 << 16 | 1, BAD, BAD),
        (AttributeId::VL_ARBITRATION, 3 << 16 | 1, OK, OK),
        (AttributeId::VL_ARBITRATION, 4 << 16 | 1, BAD, BAD),
        (AttributeId::VL_ARBITRATION, 5 << 16 | 1, BAD, BAD),
        (AttributeId::VL_ARBITRATION, 1 << 16 | 21, BAD, BAD),
        (AttributeId::LINEAR_FORWARDING, 0, OK, NO),
        (AttributeId::LINEAR_FORWARDING, 767, OK, NO),
        (AttributeId::LINEAR_FORWARDING, 768, BAD, NO),
        (AttributeId::LINEAR_FORWARDING, u32::MAX, BAD, NO),
        (AttributeId::MULTICAST_FORWARDING, 0, OK, NO),
        (AttributeId::MULTICAST_FORWARDING, 31, OK, NO),
        (AttributeId::MULTICAST_FORWARDING, 32, BAD, NO),
        (AttributeId::MULTICAST_FORWARDING, 1 << 28, OK, NO),
        (AttributeId::MULTICAST_FORWARDING, 2 << 28, BAD, NO),
        (AttributeId(0x1a), 0, NO, NO),
        (AttributeId(0x31), 0, NO, NO),
        (AttributeId(0xff13), 0, NO, NO),
    ];
    for (id, modifier, switch, adapter) in cases {
        for (path, expected) in [(SWITCH, switch), (HCA, adapter)] {
            let (status, mad) = lab::get(&mut sim, client, path, (id, modifier));
            assert_eq!(status.0, expected, "Get {id} {modifier:#x} by {path:?}");
            // A Set of the value that the Get has returned gets the same status as the Get, except
            // for read-only attributes.
            let mut mad = mad;
            if let Some(mut info) = mad.attribute::<PortInfo>() {
                (info.port_state, info.phys_state) = (PortState::NO_CHANGE, PhysState::NO_CHANGE);
                mad.set_attribute(&info);
            }
            let read_only = id == AttributeId::NODE_INFO;
            let no_description = id == AttributeId::NODE_DESCRIPTION;
            let expected = if read_only || no_description { NO } else { expected };
            mad.set_status(MadStatus::OK);
            mad.set_method(Method::SET);
            mad.set_returning(false);
            mad.set_hop_pointer(0);
            let set = lab::answer(&mut sim, client, Remote::directed(), mad);
            assert_eq!(set.status().0, expected, "Set {id} {modifier:#x} by {path:?}");
        }
    }
    lab::check_settled(&sim);
}

#[test]
fn node_attributes_describe_the_node() {
    let (mut sim, client) = made();
    for (path, name, kind, ports, arrival) in
        [(SWITCH, "s1", 2, 20, 1), (HCA, "h2", 1, 1, 1), (&[], "h1", 1, 2, 1)]
    {
        let (_, mad) = lab::get(&mut sim, client, path, (AttributeId::NODE_INFO, 0));
        let info: NodeInfo = mad.attribute().unwrap();
        let own = node(&sim, name);
        assert_eq!((info.node_type.0, info.num_ports, info.local_port), (kind, ports, arrival));
        assert_eq!(info.node_guid, sim.node(own).guid);
        let (_, mad) = lab::get(&mut sim, client, path, (AttributeId::NODE_DESCRIPTION, 0));
        assert_eq!(mad.attribute::<NodeDescription>().unwrap().as_text(), name);
        let (_, mad) = lab::get(&mut sim, client, path, (AttributeId::PORT_INFO, 0));
        assert_eq!(mad.attribute::<PortInfo>().unwrap().local_port, arrival);
        let (_, mad) = lab::get(&mut sim, client, path, (AttributeId::GUID_INFO, 0));
        let guids = mad.attribute::<GuidInfo>().unwrap().guids;
        assert_eq!(guids[0], info.port_guid);
    }
    // A client at port 1 of h1 cannot send out of port 2.
    let path: &[u8] = &[2];
    let what = (AttributeId::NODE_INFO, 0);
    let mad = smp::directed_request(Method::GET, TransactionId(1), what, path);
    let came = lab::query(&mut sim, client, Remote::directed(), mad);
    assert!(matches!(came, Some(Incoming::Lost(_))), "{came:?}");
    let other = sim.attach(port(&sim, "h1.2"), crate::ClientOptions::default()).unwrap();
    let (_, mad) = lab::get(&mut sim, other, path, what);
    assert_eq!(mad.attribute::<NodeInfo>().unwrap().local_port, 2);
}

#[test]
fn written_attributes_are_read_back() {
    let (mut sim, client) = made();
    let again = |sim: &mut Sim, path: &[u8], what| lab::get(sim, client, path, what).1;

    let mut keys = PKeyTable { keys: [PKey(0); 32] };
    keys.keys[0] = PKey(0xffff);
    keys.keys[31] = PKey(0x8123);
    for (path, modifier) in [(SWITCH, 7 << 16 | 1), (HCA, 1)] {
        assert_eq!(lab::set(&mut sim, client, path, (&keys, modifier)), (MadStatus::OK, keys));
        let mad = again(&mut sim, path, (AttributeId::P_KEY_TABLE, modifier));
        assert_eq!(mad.attribute(), Some(keys));
    }
    assert_eq!(sim.port(port(&sim, "s1.7")).p_key(63), PKey(0x8123));
    assert_eq!(sim.port(port(&sim, "s1.7")).p_key(0), PKey::DEFAULT, "block 0 is unchanged");

    let table = SlToVl { lanes: [VirtualLane::new(3).unwrap(); 16] };
    let modifier = SlToVl::modifier(3, 1);
    assert_eq!(lab::set(&mut sim, client, SWITCH, (&table, modifier)), (MadStatus::OK, table));
    let mad = again(&mut sim, SWITCH, (AttributeId::SL_TO_VL, SlToVl::modifier(2, 1)));
    assert_eq!(
        mad.attribute(),
        Some(crate::port::default_sl_to_vl()),
        "another ingress port is unchanged"
    );

    let mut arbitration = VlArbitration::zeroed();
    arbitration.entries[5] = VlArbitrationEntry { lane: VirtualLane::new(6).unwrap(), weight: 77 };
    let set = lab::set(&mut sim, client, SWITCH, (&arbitration, 3 << 16 | 9));
    assert_eq!(set, (MadStatus::OK, arbitration));
    let mad = again(&mut sim, SWITCH, (AttributeId::VL_ARBITRATION, 1 << 16 | 9));
    assert_ne!(mad.attribute(), Some(arbitration), "the low-priority table is unchanged");

    let block = LinearForwardingBlock { ports: std::array::from_fn(|index| index as u8) };
    assert_eq!(lab::set(&mut sim, client, SWITCH, (&block, 767)), (MadStatus::OK, block));
    let mad = again(&mut sim, SWITCH, (AttributeId::LINEAR_FORWARDING, 766));
    let empty = LinearForwardingBlock { ports: [0xff; 64] };
    assert_eq!(mad.attribute(), Some(empty));

    let mut masks = MulticastForwardingBlock { masks: [0; 32] };
    masks.masks[3] = 0b10;
    let modifier = MulticastForwardingBlock::modifier(2, 1);
    assert_eq!(lab::set(&mut sim, client, SWITCH, (&masks, modifier)), (MadStatus::OK, masks));
    let switch = sim.node(node(&sim, "s1")).switch.as_ref().unwrap();
    assert_eq!(switch.multicast_ports(0xc000 + 64 + 3).collect::<Vec<_>>(), [17]);
    let none = MulticastForwardingBlock { masks: [0; 32] };
    lab::set(&mut sim, client, SWITCH, (&none, modifier));
    assert!(sim.node(node(&sim, "s1")).switch.as_ref().unwrap().multicast.is_empty());

    let guids = GuidInfo { guids: std::array::from_fn(|index| Guid(index as u64 + 100)) };
    let (status, set) = lab::set(&mut sim, client, HCA, (&guids, 0));
    assert_eq!(status, MadStatus::OK);
    assert_eq!(
        set.guids[0],
        sim.port(port(&sim, "h2.1")).guid,
        "the first GUID remains the port GUID"
    );
    assert_eq!(set.guids[1..], guids.guids[1..]);
    assert_eq!(lab::set(&mut sim, client, HCA, (&guids, 3)), (MadStatus::OK, guids));
    assert_eq!(
        lab::set(&mut sim, client, SWITCH, (&guids, 0)).1.guids[1],
        Guid(0),
        "the GUID table of a switch has one entry"
    );

    let mut mellanox = MlnxExtPortInfo::zeroed();
    (mellanox.state_change_enable, mellanox.link_speed_enabled) =
        (1, ib_wire::mad::sm::MlnxSpeedMask(1));
    lab::set(&mut sim, client, SWITCH, (&mellanox, 5));
    let mad = again(&mut sim, SWITCH, (AttributeId::MLNX_EXT_PORT_INFO, 5));
    assert_eq!(mad.attribute::<MlnxExtPortInfo>().unwrap().link_speed_enabled.0, 1);
}

#[test]
fn node_description_is_read_only() {
    let (mut sim, client) = made();
    for at in lab::all_ports(&sim) {
        let mask = sim.port_info(at).capability_mask2;
        assert!(!mask.contains(CapabilityMask2::SET_NODE_DESCRIPTION));
    }
    let description = NodeDescription::new("anew");
    for path in [SWITCH, HCA] {
        let refused = lab::set(&mut sim, client, path, (&description, 0)).0;
        assert_eq!(refused, MadStatus::BAD_METHOD_ATTRIBUTE);
    }
    assert_eq!(sim.find_node("anew"), None);
}

#[test]
fn switch_info_keeps_writable_fields() {
    let (mut sim, client) = made();
    let (_, mad) = lab::get(&mut sim, client, SWITCH, (AttributeId::SWITCH_INFO, 0));
    let info: SwitchInfo = mad.attribute().unwrap();
    assert!(info.port_state_change && info.linear_fdb_cap == 49_152);
    let mut to = info;
    to.linear_fdb_top = 49_151;
    to.life_time = 18;
    to.default_multicast_primary_port = 20;
    to.default_multicast_not_primary_port = 0xff;
    (to.linear_fdb_cap, to.port_state_change) = (5, false);
    let (status, kept) = lab::set(&mut sim, client, SWITCH, (&to, 0));
    assert_eq!(status, MadStatus::OK);
    let expected = SwitchInfo { linear_fdb_cap: 49_152, port_state_change: true, ..to };
    assert_eq!(kept, expected);
    to.port_state_change = true;
    assert!(
        !lab::set(&mut sim, client, SWITCH, (&to, 0)).1.port_state_change,
        "a Set of 1 clears PortStateChange"
    );
    for wrong in [
        SwitchInfo { linear_fdb_top: 49_152, ..to },
        SwitchInfo { default_multicast_primary_port: 21, ..to },
        SwitchInfo { default_multicast_not_primary_port: 0xfe, ..to },
    ] {
        assert_eq!(lab::set(&mut sim, client, SWITCH, (&wrong, 0)).0, MadStatus::BAD_FIELD);
    }
}

#[test]
fn unsupported_versions_classes_methods_are_refused() {
    let (mut sim, client) = made();
    for at in [0, 2] {
        let mut mad = smp::directed_request(
            Method::GET,
            TransactionId(1),
            (AttributeId::NODE_INFO, 0),
            SWITCH,
        );
        mad.0[at] = 2;
        let answer = lab::answer(&mut sim, client, Remote::directed(), mad);
        assert_eq!(answer.status(), MadStatus::BAD_VERSION);
    }
    for method in [0x12, 0x14, 0x15, 0x7f, 0x05, 0x06] {
        let mad = smp::directed_request(
            Method(method),
            TransactionId(1),
            (AttributeId::NODE_INFO, 0),
            SWITCH,
        );
        let came = lab::query(&mut sim, client, Remote::directed(), mad);
        let told = matches!(came, Some(Incoming::Lost(_)));
        assert!(told || sim.stats().lost.contains_key("no_receiver"), "{method:#x}: {came:?}");
    }
    // QP 0 accepts only the subnet management classes.
    for (class, id) in [
        (MgmtClass::PERFORMANCE, AttributeId::PORT_COUNTERS),
        (MgmtClass(3), AttributeId::NODE_INFO),
        (MgmtClass(0x41), AttributeId::PORT_INFO),
    ] {
        for method in [Method::GET, Method::SET] {
            let mut mad = Mad::new(class, method, TransactionId(1));
            mad.set_attribute_id(id);
            let came = lab::query(&mut sim, client, Remote::smi(smp::PERMISSIVE_LID), mad);
            assert!(matches!(came, Some(Incoming::Lost(_))), "{class} {method}: {came:?}");
        }
    }
    lab::check_settled(&sim);
}
