use crate::sim::Sim;
use ib_link::{Datagram, Incoming, Remote};
use ib_wire::mad::{AttributeId, Method, TransactionId};

use super::*;
use crate::counters::Counters;
use crate::lab::{self, lid, node, port};
use crate::options::Options;

/// Sends a packet from h1 to a LID. Returns the reason of its loss; `None` if it is not lost.
fn send(sim: &mut Sim, dlid: u16) -> Option<&'static str> {
    let from = port(sim, "h1.1");
    let before = sim.stats().lost.clone();
    let packet = lab::data(sim, from, dlid, 0, 100);
    sim.send_packet(from, packet);
    while sim.net.clock.has_transit() {
        let next = sim.next_at().unwrap();
        lab::run_checked(sim, next);
    }
    lab::check_settled(sim);
    sim.stats().lost.iter().find(|(name, count)| before.get(*name) != Some(count)).map(|(n, _)| *n)
}

fn counters(sim: &Sim, name: &str) -> Counters {
    sim.counters(port(sim, name))
}

/// Returns the relay error counters of a port: total, DLID mapping, VL mapping and looping errors.
fn relay(sim: &Sim, name: &str) -> [u64; 4] {
    let all = counters(sim, name);
    [
        all.rcv_switch_relay_errors,
        all.dlid_mapping_errors,
        all.vl_mapping_errors,
        all.looping_errors,
    ]
}

#[test]
fn packet_reaches_its_dlid() {
    let mut sim = lab::ready(&lab::row(3), Options::default());
    let to = port(&sim, "h2.1");
    sim.open(to);
    let dlid = lid(&sim, "h2");
    assert_eq!(send(&mut sim, dlid), None);
    let packet = sim.receive_packet(to).unwrap();
    assert_eq!((packet.slid, packet.dlid), (lid(&sim, "h1"), dlid));
    assert_eq!(sim.receive_packet(to), None);
    for name in ["h1.1", "s1.2", "s2.2", "s3.4"] {
        assert_eq!(counters(&sim, name).xmit_packets, 1, "{name}");
        // The data consists of LRH, BTH, payload and ICRC; the unit is four bytes.
        assert_eq!(counters(&sim, name).xmit_data, (8 + 12 + 100 + 4) / 4, "{name}");
    }
    for name in ["s1.3", "s2.1", "s3.1", "h2.1"] {
        assert_eq!(counters(&sim, name).rcv_packets, 1, "{name}");
    }
    sim.close(to);
    assert_eq!(send(&mut sim, dlid), Some("no_receiver"));
}

#[test]
fn switch_drops_packets_without_valid_lft_entry() {
    let mut sim = lab::ready(&lab::row(2), Options::default());
    let (s1, s2, dlid) = (node(&sim, "s1"), node(&sim, "s2"), lid(&sim, "h2"));

    lab::set_route(&mut sim, s1, dlid, 0xff);
    assert_eq!(send(&mut sim, dlid), Some("no_route"));
    assert_eq!(relay(&sim, "s1.3"), [1, 1, 0, 0]);
    assert_eq!(send(&mut sim, 0xbff0), Some("no_route"), "the LID is above LinearFDBTop");
    assert_eq!(relay(&sim, "s1.3"), [2, 2, 0, 0]);

    lab::set_route(&mut sim, s1, dlid, 5);
    assert_eq!(send(&mut sim, dlid), Some("no_such_port"));
    assert_eq!(relay(&sim, "s1.3"), [3, 3, 0, 0]);

    lab::set_route(&mut sim, s1, dlid, 3);
    assert_eq!(send(&mut sim, dlid), Some("turns_back"));
    assert_eq!(relay(&sim, "s1.3"), [4, 3, 0, 1]);

    lab::set_route(&mut sim, s1, dlid, 0);
    assert_eq!(send(&mut sim, dlid), Some("misrouted"));
    assert_eq!(relay(&sim, "s1.3"), [5, 4, 0, 1]);

    lab::set_route(&mut sim, s1, dlid, 1);
    assert_eq!(send(&mut sim, dlid), Some("link_down"), "port 1 has no cable");
    let out = counters(&sim, "s1.1");
    assert_eq!((out.xmit_discards, out.inactive_discards), (1, 1));

    lab::set_route(&mut sim, s1, dlid, 2);
    lab::set_route(&mut sim, s2, dlid, 1);
    assert_eq!(
        send(&mut sim, dlid),
        Some("turns_back"),
        "two switches forward the packet to each other"
    );
    assert_eq!(relay(&sim, "s2.1"), [1, 0, 0, 1]);
}

#[test]
fn packet_in_a_forwarding_loop_is_dropped() {
    let fabric =
        lab::fabric(&[("h1", 1), ("s1", 3), ("s2", 3)], &["h1.1 s1.3", "s1.1 s2.1", "s1.2 s2.2"]);
    let mut sim = lab::ready(&fabric, Options::default());
    let (s1, s2) = (node(&sim, "s1"), node(&sim, "s2"));
    lab::set_route(&mut sim, s1, 77, 1);
    lab::set_route(&mut sim, s2, 77, 2);
    assert_eq!(send(&mut sim, 77), Some("too_many_hops"));
    let (one, other) = (relay(&sim, "s1.2"), relay(&sim, "s2.1"));
    assert_eq!(one[0] + other[0], 1);
    assert_eq!(one[3] + other[3], 1);
    assert_eq!(sim.stats().hops, 256);
}

#[test]
fn hca_accepts_only_its_own_lids() {
    let mut sim = lab::ready(&lab::row(1), Options::default());
    let s1 = node(&sim, "s1");
    lab::set_route(&mut sim, s1, 40, 4);
    assert_eq!(send(&mut sim, 40), Some("misrouted"));
    assert_eq!(counters(&sim, "h2.1").rcv_packets, 1);
    let to = port(&sim, "h2.1");
    sim.open(to);
    (sim.port_mut(to).info.lid, sim.port_mut(to).info.lmc) = (40, 2);
    for dlid in 40..44 {
        lab::set_route(&mut sim, s1, dlid, 4);
        assert_eq!(send(&mut sim, dlid), None);
    }
    lab::set_route(&mut sim, s1, 44, 4);
    assert_eq!(send(&mut sim, 44), Some("misrouted"));
}

#[test]
fn inactive_port_passes_no_data() {
    use ib_wire::mad::sm::PortState;
    let fabric = lab::row(2);
    for (name, state, why) in [
        ("h1.1", PortState::ARMED, Some("not_active")),
        ("s1.3", PortState::INIT, Some("not_active")),
        ("s1.2", PortState::ARMED, Some("not_active")),
        ("s2.1", PortState::INIT, Some("not_active")),
        ("s2.1", PortState::ARMED, None),
    ] {
        let mut sim = lab::ready(&fabric, Options::default());
        let (at, to) = (port(&sim, name), port(&sim, "h2.1"));
        sim.open(to);
        sim.port_mut(at).info.port_state = state;
        let dlid = lid(&sim, "h2");
        assert_eq!(send(&mut sim, dlid), why, "{name} {state}");
        let all = sim.counters(at);
        let sends = matches!(name, "h1.1" | "s1.2");
        assert_eq!(all.inactive_discards, u64::from(sends && why.is_some()), "{name}");
        assert_eq!(all.xmit_discards, all.inactive_discards, "{name}");
        assert_eq!(all.rcv_switch_relay_errors, 0, "{name}");
        if why.is_none() {
            // A data packet changes a port from Armed to Active.
            assert_eq!(sim.port_info(at).port_state, PortState::ACTIVE);
        }
    }
}

#[test]
fn packet_that_cannot_be_sent_is_lost_at_its_port() {
    let mut sim = lab::ready(&lab::row(1), Options::default());
    let (from, dlid) = (port(&sim, "h1.1"), lid(&sim, "h2"));
    let try_packet = |sim: &mut Sim, level, payload| {
        let packet = lab::data(sim, from, dlid, level, payload);
        sim.send_packet(from, packet);
        sim.settle(sim.now());
        lab::check_settled(sim);
        std::mem::take(&mut sim.net.stats.lost).into_keys().next()
    };
    assert_eq!(try_packet(&mut sim, 9, 4), Some("no_lane"), "there are only VLs 0 to 7");
    assert_eq!(try_packet(&mut sim, 0, 4096), Some("too_long"), "the MTU is 2048");
    assert_eq!(try_packet(&mut sim, 0, 1 << 23), Some("too_long"));
    assert_eq!(sim.counters(from).neighbor_mtu_discards, 2);
    assert_eq!(sim.counters(from).xmit_discards, 3);
    assert_eq!(try_packet(&mut sim, 0, 3), Some("malformed"));
    let mut short = lab::data(&sim, from, dlid, 0, 0);
    short.payload = Payload::Transport(vec![1, 2]);
    assert_eq!((short.p_key().0, short.queue_pairs().0.get()), (0, 0));
    sim.send_packet(from, short);
    assert_eq!(lab::lost(&sim, "malformed"), 1);
    sim.port_mut(from).info.lid = 0;
    assert_eq!(try_packet(&mut sim, 0, 4), Some("malformed"));
    assert_eq!(try_packet(&mut sim, 0, 4), Some("no_lid"));
}

#[test]
fn sl_without_vl_at_a_switch_is_a_relay_error() {
    use ib_types::VirtualLane;
    use ib_wire::mad::sm::VlCap;
    let mut sim = lab::ready(&lab::row(1), Options::default());
    let (out, dlid) = (port(&sim, "s1.4"), lid(&sim, "h2"));
    let kind = sim.node(node(&sim, "s1")).kind;
    let table = &mut sim.port_mut(out).tables_mut(kind, 4).sl_to_vl;
    table[3].lanes[0] = VirtualLane::new(15).unwrap();
    assert_eq!(send(&mut sim, dlid), Some("no_lane"));
    assert_eq!(relay(&sim, "s1.3"), [1, 0, 1, 0]);
    let table = &mut sim.port_mut(out).tables_mut(kind, 4).sl_to_vl;
    table[3].lanes[0] = VirtualLane::new(1).unwrap();
    sim.port_mut(out).info.operational_vls = VlCap::VL0;
    assert_eq!(send(&mut sim, dlid), None.or(Some("no_lane")), "there is only VL 0");
    assert_eq!(relay(&sim, "s1.3"), [2, 0, 2, 0]);
    sim.port_mut(out).info.operational_vls = VlCap::VL0_1;
    assert_eq!(send(&mut sim, dlid), Some("no_receiver"));
}

/// Returns a tree of three switches with four hosts.
fn tree() -> ib_topology::Fabric {
    lab::fabric(
        &[("h1", 1), ("h2", 1), ("h3", 1), ("h4", 1), ("s1", 20), ("s2", 20), ("s3", 20)],
        &["h1.1 s1.1", "h2.1 s1.18", "h3.1 s2.1", "h4.1 s3.1", "s1.2 s2.2", "s1.17 s3.2"],
    )
}

fn set_group(sim: &mut Sim, name: &str, ports: &[u8]) {
    let id = node(sim, name);
    let switch = sim.node_mut(id).switch.as_mut().unwrap();
    for position in 0..2u8 {
        let mask = ports
            .iter()
            .filter(|&&port| port / 16 == position)
            .fold(0, |mask, port| mask | 1 << (port % 16));
        let mut block = switch.multicast_block(0, position);
        block[5] = mask;
        switch.set_multicast_block(0, position, &block);
    }
}

#[test]
fn every_group_member_receives_one_copy() {
    let mut sim = lab::ready(&tree(), Options::default());
    set_group(&mut sim, "s1", &[1, 2, 17, 18]);
    set_group(&mut sim, "s2", &[1, 2]);
    set_group(&mut sim, "s3", &[1, 2]);
    let hosts = ["h1.1", "h2.1", "h3.1", "h4.1"].map(|name| port(&sim, name));
    for host in hosts {
        sim.open(host);
    }
    for from in hosts {
        let packet = lab::data(&sim, from, 0xc005, 0, 1000);
        sim.send_packet(from, packet.clone());
        lab::run_checked(&mut sim, ib_types::Instant::NEVER);
        for to in hosts {
            let expected = (to != from).then_some(&packet);
            assert_eq!(sim.receive_packet(to).as_ref(), expected, "{from:?} to {to:?}");
            assert_eq!(sim.receive_packet(to), None);
        }
    }
    lab::check_settled(&sim);
    assert_eq!(sim.stats().lost.len(), 0);
    let all = sim.counters(port(&sim, "s1.1"));
    assert_eq!((all.multicast_rcv_packets, all.unicast_rcv_packets), (1, 0));
    assert_eq!((all.multicast_xmit_packets, all.xmit_packets), (3, 3));
}

#[test]
fn group_without_mft_entry_uses_default_ports() {
    let mut sim = lab::ready(&tree(), Options::default());
    let hosts = ["h1.1", "h2.1"].map(|name| port(&sim, name));
    let (h3, s1) = (port(&sim, "h3.1"), node(&sim, "s1"));
    sim.open(hosts[0]);
    sim.open(hosts[1]);
    let send = |sim: &mut Sim, from| {
        let packet = lab::data(sim, from, 0xc007, 0, 4);
        sim.send_packet(from, packet);
        sim.settle(sim.now());
        lab::check_settled(sim);
        hosts.map(|host| sim.receive_packet(host).is_some())
    };
    assert_eq!(send(&mut sim, h3), [false; 2]);
    assert_eq!(
        relay(&sim, "s2.1"),
        [1, 1, 0, 0],
        "the switch has neither an MFT entry nor default multicast ports"
    );
    let switch = sim.node_mut(s1).switch.as_mut().unwrap();
    switch.info.default_multicast_primary_port = 1;
    switch.info.default_multicast_not_primary_port = 18;
    assert_eq!(
        send(&mut sim, hosts[1]),
        [true, false],
        "packets are forwarded out of the default multicast primary port"
    );
    assert_eq!(
        send(&mut sim, hosts[0]),
        [false, true],
        "packets from the primary port are forwarded out of the default multicast not-primary port"
    );
}

#[test]
fn group_without_other_members_is_no_relay_error() {
    let mut sim = lab::ready(&tree(), Options::default());
    set_group(&mut sim, "s1", &[1]);
    let from = port(&sim, "h1.1");
    let packet = lab::data(&sim, from, 0xc005, 0, 4);
    sim.send_packet(from, packet);
    lab::run_checked(&mut sim, ib_types::Instant::NEVER);
    lab::check_settled(&sim);
    assert_eq!(relay(&sim, "s1.1"), [0; 4]);
    assert_eq!(lab::lost(&sim, "turns_back"), 1);
}

/// Sends a directed-route SMP with LID-routed parts. Returns the GUID of the node that responds.
fn combined(
    sim: &mut Sim,
    (to, dr_slid, dr_dlid): (u16, u16, u16),
    path: &[u8],
) -> Option<ib_types::Guid> {
    let client = lab::client(sim, "h1");
    let mut mad = smp::directed_request(
        Method::GET,
        TransactionId(0x1234),
        (AttributeId::NODE_INFO, 0),
        path,
    );
    mad.set_dr_lids(dr_slid, dr_dlid);
    let remote = Remote { lid: to, ..Remote::directed() };
    sim.submit(client, &Datagram::new(remote, mad));
    sim.settle(sim.now());
    let came = sim.receive(client);
    sim.detach(client);
    lab::check_settled(sim);
    let Some(Incoming::Received(datagram)) = came else { return None };
    assert_eq!(datagram.mad.transaction_id(), TransactionId(0x1234));
    assert_eq!(datagram.mad.hop_pointer(), 0);
    assert!(datagram.mad.is_returning());
    datagram.mad.attribute::<ib_wire::mad::sm::NodeInfo>().map(|info| info.node_guid)
}

#[test]
fn directed_routes_may_have_lid_routed_parts() {
    const NONE: u16 = PERMISSIVE_LID;
    let mut sim = lab::ready(&lab::row(3), Options::default());
    let guid = |sim: &Sim, name| Some(sim.node(node(sim, name)).guid);
    let [h1, h2, s2, s3] = ["h1", "h2", "s2", "s3"].map(|name| lid(&sim, name));
    // The SMP leaves h1 by port 1 and s1 by port 2, and ends at s2.
    assert_eq!(combined(&mut sim, (NONE, NONE, NONE), &[1, 2]), guid(&sim, "s2"));
    // The SMP is routed by LID to s2, then leaves s2 by port 2 to s3, and leaves s3 by port 4 to
    // h2.
    assert_eq!(combined(&mut sim, (s2, h1, NONE), &[2]), guid(&sim, "s3"));
    assert_eq!(combined(&mut sim, (s2, h1, NONE), &[2, 4]), guid(&sim, "h2"));
    // The SMP has a directed route to s2, and is then routed by LID.
    assert_eq!(combined(&mut sim, (NONE, NONE, h2), &[1, 2]), guid(&sim, "h2"));
    assert_eq!(combined(&mut sim, (NONE, NONE, s3), &[1, 2]), guid(&sim, "s3"));
    assert_eq!(combined(&mut sim, (NONE, NONE, s2), &[1, 2]), guid(&sim, "s2"));
    // The SMP is routed by LID to s2, leaves s2 by port 2 to s3, and is then routed by LID.
    assert_eq!(combined(&mut sim, (s2, h1, h2), &[2]), guid(&sim, "h2"));
    // These SMPs have no directed hops.
    assert_eq!(combined(&mut sim, (s2, h1, NONE), &[]), guid(&sim, "s2"));
    assert_eq!(combined(&mut sim, (s2, h1, h2), &[]), guid(&sim, "h2"));
    assert_eq!(combined(&mut sim, (NONE, NONE, NONE), &[]), guid(&sim, "h1"));
    // The first LID-routed part has to end at a switch.
    assert_eq!(combined(&mut sim, (h2, h1, NONE), &[1]), None);
}

#[test]
fn lid_routed_smps_reach_inactive_ports() {
    let fabric = lab::row(2);
    let mut sim = lab::ready(&fabric, Options::default());
    for port in lab::all_ports(&sim).collect::<Vec<_>>() {
        if sim.port(port).is_up() {
            sim.port_mut(port).info.port_state = PortState::INIT;
        }
    }
    let client = lab::client(&mut sim, "h1");
    for (name, arrival) in [("h1", 1u8), ("s1", 3), ("s2", 1), ("h2", 1)] {
        let attribute = (AttributeId::NODE_INFO, 0);
        let mad = smp::lid_request(Method::GET, TransactionId(3), attribute);
        let remote = Remote::smi(lid(&sim, name));
        let info: ib_wire::mad::sm::NodeInfo =
            lab::answer(&mut sim, client, remote, mad).attribute().unwrap();
        assert_eq!(info.node_guid, sim.node(node(&sim, name)).guid, "{name}");
        assert_eq!(info.local_port, arrival, "{name}");
    }
    // An SMP with the permissive LID as its DLID reaches the node at the other end of the link.
    let mad = smp::lid_request(Method::GET, TransactionId(3), (AttributeId::NODE_INFO, 0));
    let info: ib_wire::mad::sm::NodeInfo =
        lab::answer(&mut sim, client, Remote::smi(PERMISSIVE_LID), mad).attribute().unwrap();
    assert_eq!((info.num_ports, info.local_port), (4, 3));
}
