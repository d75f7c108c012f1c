use crate::sim::Sim;
use ib_link::{Incoming, Remote};
use ib_wire::mad::pm::{CounterSelect, ExtendedSelect};

use super::*;
use crate::ids::ClientId;
use crate::lab::{self, lid, port};
use crate::options::Options;

fn made() -> (Sim, ClientId, Remote) {
    let mut sim = lab::ready(&lab::row(1), Options::default());
    let client = lab::client(&mut sim, "h1");
    let remote = Remote::gsi(lid(&sim, "s1"));
    (sim, client, remote)
}

fn read<A: ib_wire::mad::Attribute>(
    sim: &mut Sim,
    (client, remote): (ClientId, Remote),
    select: u8,
) -> (MadStatus, A) {
    let mut mad = lab::performance(Method::GET, A::ID);
    mad.data_mut()[1] = select;
    let mad = lab::answer(sim, client, remote, mad);
    (mad.status(), mad.attribute().unwrap())
}

fn write<A: ib_wire::mad::Attribute>(sim: &mut Sim, to: (ClientId, Remote), attribute: &A) -> A {
    let mut mad = lab::performance(Method::SET, A::ID);
    mad.set_attribute(attribute);
    let mad = lab::answer(sim, to.0, to.1, mad);
    assert_eq!(mad.status(), MadStatus::OK);
    mad.attribute().unwrap()
}

/// Sets all counters of a port to different values.
fn fill(sim: &mut Sim, name: &str, base: u64) {
    let at = port(sim, name);
    sim.port_mut(at).short_base = None;
    sim.port_mut(at).counters = Counters {
        xmit_data: base + 1,
        rcv_data: base + 2,
        xmit_packets: base + 3,
        rcv_packets: base + 4,
        unicast_xmit_packets: base + 5,
        unicast_rcv_packets: base + 6,
        multicast_xmit_packets: base + 7,
        multicast_rcv_packets: base + 8,
        xmit_wait: base + 9,
        rcv_errors: base + 10,
        rcv_remote_physical_errors: base + 11,
        rcv_switch_relay_errors: base + 12,
        xmit_discards: base + 13,
        xmit_constraint_errors: base + 14,
        rcv_constraint_errors: base + 15,
        symbol_errors: base + 16,
        link_recoveries: base + 17,
        link_downed: base + 18,
        local_link_integrity_errors: base + 19,
        excessive_buffer_overruns: base + 20,
        vl15_dropped: base + 21,
        qp1_dropped: base + 22,
        dlid_mapping_errors: base + 23,
        vl_mapping_errors: base + 24,
        looping_errors: base + 25,
        inactive_discards: base + 26,
        neighbor_mtu_discards: base + 27,
        hoq_life_discards: base + 28,
        lifetime_discards: base + 29,
        local_physical_errors: base + 30,
        malformed_packet_errors: base + 31,
        buffer_overrun_errors: base + 32,
    };
}

#[test]
fn counters_of_one_or_all_ports_are_read() {
    let (mut sim, client, remote) = made();
    let to = (client, remote);
    fill(&mut sim, "s1.1", 100);
    fill(&mut sim, "s1.2", 1000);
    let (_, one) = read::<PortCounters>(&mut sim, to, 1);
    assert_eq!((one.port_select, one.symbol_errors, one.xmit_wait), (1, 116, 109));
    assert_eq!((one.local_link_integrity_errors, one.link_downed), (15, 118));
    let (_, one) = read::<PortCounters>(&mut sim, to, 2);
    assert_eq!((one.link_downed, one.rcv_errors), (255, 1010), "8-bit counters saturate at 255");
    for name in ["s1.0", "s1.3"] {
        let at = port(&sim, name);
        sim.port_mut(at).counters = Counters::default();
    }
    let (_, all) = read::<PortCounters>(&mut sim, to, ALL_PORTS);
    assert_eq!((all.port_select, all.rcv_errors, all.symbol_errors), (ALL_PORTS, 1120, 1132));
    let (_, all) = read::<PortCountersExtended>(&mut sim, to, ALL_PORTS);
    assert_eq!((all.multicast_rcv_packets, all.link_downed), (1116, 1136));
    let (_, details) = read::<PortRcvErrorDetails>(&mut sim, to, 1);
    assert_eq!((details.dlid_mapping_errors, details.looping_errors), (123, 125));
    let (_, details) = read::<PortXmitDiscardDetails>(&mut sim, to, 2);
    assert_eq!((details.inactive_discards, details.switch_hoq_lifetime_discards), (1026, 1028));
    for select in [5, 254] {
        assert_eq!(read::<PortCounters>(&mut sim, to, select).0, MadStatus::BAD_FIELD);
    }
    let adapter = (client, Remote::gsi(lid(&sim, "h2")));
    assert_eq!(read::<PortCounters>(&mut sim, adapter, 0).0, MadStatus::BAD_FIELD);
    assert_eq!(read::<PortCounters>(&mut sim, adapter, 1).0, MadStatus::OK);
    lab::check_settled(&sim);
}

#[test]
fn short_counters_stop_at_their_maximum() {
    let (mut sim, client, remote) = made();
    fill(&mut sim, "s1.2", u64::from(u32::MAX) * 2);
    let (_, shown) = read::<PortCounters>(&mut sim, (client, remote), 2);
    assert_eq!(shown.symbol_errors, u16::MAX);
    assert_eq!(shown.link_downed, u8::MAX);
    assert_eq!(
        (shown.local_link_integrity_errors, shown.excessive_buffer_overrun_errors),
        (15, 15)
    );
    assert_eq!(
        (shown.xmit_data, shown.rcv_packets, shown.xmit_wait),
        (u32::MAX, u32::MAX, u32::MAX)
    );
    assert_eq!((shown.qp1_dropped, shown.vl15_dropped), (u16::MAX, u16::MAX));
    let (_, shown) = read::<PortCountersExtended>(&mut sim, (client, remote), 2);
    assert_eq!(shown.xmit_data, u64::from(u32::MAX) * 2 + 1);
}

#[test]
fn set_writes_only_selected_counters() {
    let (mut sim, client, remote) = made();
    let to = (client, remote);
    let at = port(&sim, "s1.2");
    for bit in 0..16 {
        fill(&mut sim, "s1.2", 10);
        let before = sim.fabric().short_counters(at, sim.now());
        let mut request = PortCounters::zeroed();
        request.port_select = 2;
        request.counter_select = CounterSelect(1 << bit);
        write(&mut sim, to, &request);
        let after = sim.fabric().short_counters(at, sim.now());
        assert_eq!(sim.counters(at), before, "the 64-bit counters are unchanged");
        let changed: Vec<_> =
            before.named().into_iter().zip(after.named()).filter(|(b, a)| b != a).collect();
        assert_eq!(changed.len(), 1, "bit {bit}: {changed:?}");
        assert_eq!(changed[0].1.1, 0, "bit {bit}");
    }
    for bit in 0..24u32 {
        fill(&mut sim, "s1.2", 10);
        let before = sim.counters(at);
        let mut request = PortCountersExtended::zeroed();
        request.port_select = 2;
        match bit {
            0..8 => request.counter_select = ExtendedSelect(1 << bit),
            _ => request.counter_select2 = 1 << (bit - 8),
        }
        write(&mut sim, to, &request);
        assert_eq!(sim.fabric().short_counters(at, sim.now()), before, "PortCounters is unchanged");
        let changed = before.named().into_iter().zip(sim.counters(at).named());
        let expected = usize::from(bit < 22);
        assert_eq!(changed.filter(|(b, a)| b != a).count(), expected, "bit {bit}");
    }
    // Sets the symbol error counter of all ports to 4 by one request.
    let mut request = PortCounters::zeroed();
    request.port_select = ALL_PORTS;
    request.counter_select = CounterSelect(1);
    request.symbol_errors = 4;
    let shown = write(&mut sim, to, &request);
    assert_eq!(shown.symbol_errors, 20, "the sum of 4 at each of five ports");
}

#[test]
fn short_counter_continues_from_the_written_value() {
    let (mut sim, client, remote) = made();
    let to = (client, remote);
    fill(&mut sim, "s1.2", 1000);
    let mut request = PortCounters::zeroed();
    request.port_select = 2;
    request.counter_select = CounterSelect(1);
    request.symbol_errors = 5000;
    assert_eq!(write(&mut sim, to, &request).symbol_errors, 5000);
    let at = port(&sim, "s1.2");
    sim.port_mut(at).counters.symbol_errors += 7;
    assert_eq!(read::<PortCounters>(&mut sim, to, 2).1.symbol_errors, 5007);
    assert_eq!(read::<PortCountersExtended>(&mut sim, to, 2).1.symbol_errors, 1023);
}

#[test]
fn error_details_are_cleared_by_their_selection_bits() {
    let (mut sim, client, remote) = made();
    let at = port(&sim, "s1.2");
    fill(&mut sim, "s1.2", 10);
    let mut request = PortRcvErrorDetails::zeroed();
    (request.port_select, request.counter_select) = (2, 1 << 4);
    write(&mut sim, (client, remote), &request);
    let all = sim.counters(at);
    assert_eq!((all.dlid_mapping_errors, all.vl_mapping_errors, all.looping_errors), (33, 0, 35));
    let mut request = PortXmitDiscardDetails::zeroed();
    (request.port_select, request.counter_select) = (2, 1 << 3);
    let shown = write(&mut sim, (client, remote), &request);
    assert_eq!(shown.switch_lifetime_discards, 39);
    let all = sim.counters(at);
    assert_eq!(
        (all.inactive_discards, all.neighbor_mtu_discards, all.hoq_life_discards),
        (36, 37, 0)
    );
    (request.port_select, request.counter_select) = (2, 1 << 2);
    write(&mut sim, (client, remote), &request);
    assert_eq!(sim.counters(at).lifetime_discards, 0);
}

#[test]
fn error_details_are_written_by_their_selection_bits() {
    let (mut sim, client, remote) = made();
    let at = port(&sim, "s1.2");
    let shown = |details: &PortRcvErrorDetails| {
        [
            details.local_physical_errors,
            details.malformed_packet_errors,
            details.buffer_overrun_errors,
            details.dlid_mapping_errors,
            details.vl_mapping_errors,
            details.looping_errors,
        ]
    };
    for bit in 0..6 {
        fill(&mut sim, "s1.2", 10);
        let mut request = PortRcvErrorDetails::zeroed();
        (request.port_select, request.counter_select) = (2, 1 << bit);
        let mut expected = [40, 41, 42, 33, 34, 35];
        expected[bit] = 0;
        assert_eq!(shown(&write(&mut sim, (client, remote), &request)), expected, "bit {bit}");
        assert_eq!(
            sim.counters(at).rcv_errors,
            20,
            "the counter of another attribute is unchanged"
        );
    }
    // Packets that a `Fault` command damages on the link are counted.
    let mut request = PortRcvErrorDetails::zeroed();
    (request.port_select, request.counter_select) = (2, 0xffff);
    assert_eq!(shown(&write(&mut sim, (client, remote), &request)), [0; 6]);
    sim.run(&"Fault h2[1] corrupt=1".parse().unwrap()).unwrap();
    let h2 = lab::client(&mut sim, "h2");
    let mad = lab::performance(Method::GET, AttributeId::PORT_COUNTERS);
    lab::query(&mut sim, h2, remote, mad);
    let at = port(&sim, "s1.4");
    let counters = sim.counters(at);
    assert_eq!((counters.rcv_errors, counters.local_physical_errors), (1, 1));
    // The counters of damaged packets also count packets that an `Error` command loses.
    sim.run(&"Fault h2[1] none".parse().unwrap()).unwrap();
    sim.run(&"Error s1[4] 100".parse().unwrap()).unwrap();
    lab::query(&mut sim, h2, remote, mad);
    let counters = sim.counters(at);
    assert_eq!((counters.rcv_errors, counters.local_physical_errors), (2, 2));
}

#[test]
fn unsupported_attributes_versions_methods_are_refused() {
    let (mut sim, client, remote) = made();
    let mad = lab::performance(Method::GET, AttributeId::CLASS_PORT_INFO);
    let answer = lab::answer(&mut sim, client, remote, mad);
    let info: ClassPortInfo = answer.attribute().unwrap();
    assert_eq!((info.class_version, info.capability_mask), (1, 0x1300));
    let mad = lab::performance(Method::SET, AttributeId::CLASS_PORT_INFO);
    assert_eq!(lab::answer(&mut sim, client, remote, mad).status().0, 0x0c);
    let mad = lab::performance(Method::GET, AttributeId(0x10));
    assert_eq!(lab::answer(&mut sim, client, remote, mad).status().0, 0x0c);
    let mad = lab::performance(Method(0x12), AttributeId::PORT_COUNTERS);
    assert_eq!(lab::answer(&mut sim, client, remote, mad).status().0, 0x08);
    let mut mad = lab::performance(Method::GET, AttributeId::PORT_COUNTERS);
    mad.0[2] = 2;
    assert_eq!(lab::answer(&mut sim, client, remote, mad).status().0, 0x04);
}

#[test]
fn unsupported_mads_are_not_answered_repeatedly() {
    let (mut sim, client, remote) = made();
    for method in [Method::SEND, Method::TRAP, Method::TRAP_REPRESS] {
        let mad = lab::performance(method, AttributeId::PORT_COUNTERS);
        for to in ["s1", "h1", "h2"] {
            let remote = Remote { lid: lid(&sim, to), ..remote };
            let hops = sim.stats().hops;
            let came = lab::query(&mut sim, client, remote, mad);
            assert!(!matches!(came, Some(Incoming::Received(_))), "{method}: {came:?}");
            assert!(sim.stats().hops <= hops + 2);
            lab::check_settled(&sim);
        }
    }
}
