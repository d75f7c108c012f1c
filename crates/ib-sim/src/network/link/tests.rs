use ib_topology::{Fabric, LinkRate};
use ib_types::{LinkSpeed, LinkWidth};

use super::*;
use crate::lab::{self, MAD_PACKET, lid, port};
use crate::options::Options;

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

/// Returns a fabric of two hosts that are joined by a cable of the given rate.
fn pair(rate: LinkRate) -> Fabric {
    let mut fabric = lab::fabric(&[("h1", 1), ("h2", 1)], &[]);
    let [one, other] = ["h1", "h2"].map(|name| fabric.find_name(name).unwrap());
    fabric.connect((one, 1), (other, 1), rate).unwrap();
    fabric
}

mod waiting;

#[test]
fn packet_takes_its_transmission_time_and_the_latency() {
    for (width, speed, picos) in [
        (LinkWidth::X1, LinkSpeed::Sdr, 4_000),
        (LinkWidth::X4, LinkSpeed::Sdr, 1_000),
        (LinkWidth::X4, LinkSpeed::Qdr, 250),
        (LinkWidth::X4, LinkSpeed::Edr, 80),
        (LinkWidth::X12, LinkSpeed::Sdr, 333),
    ] {
        let mut sim = lab::ready(&pair(LinkRate { width, speed }), Options::default());
        let from = port(&sim, "h1.1");
        let packet = lab::data(&sim, from, 2, 0, 1000);
        sim.send_packet(from, packet);
        // The packet has an LRH, a BTH, 1000 bytes of payload and an ICRC.
        let arrives = (1024u64 * picos).div_ceil(1000) + 200;
        assert_eq!(sim.next_at(), Some(at(arrives)), "{width} {speed}");
    }
}

#[test]
fn packets_are_sent_at_the_rate_of_the_link() {
    let mut sim = lab::ready(&lab::row(1), Options::default());
    let (from, to, dlid) = (port(&sim, "h1.1"), port(&sim, "h2.1"), lid(&sim, "h2"));
    sim.open(to);
    for _ in 0..3 {
        let packet = lab::data(&sim, from, dlid, 0, 1000);
        sim.send_packet(from, packet);
    }
    // On each of the two links, a packet has 1024 ns of transmission time and 200 ns of latency.
    for (number, arrives) in [(1, 2448), (2, 3472), (3, 4496)] {
        lab::run_checked(&mut sim, at(arrives - 1));
        assert_eq!(sim.counters(to).rcv_packets, number - 1);
        lab::run_checked(&mut sim, at(arrives));
        assert_eq!(sim.counters(to).rcv_packets, number);
    }
}

/// Returns a fabric in which the link from s1 to h2 has a quarter of the rate of the link from h1
/// to s1.
fn slow_end() -> Fabric {
    let mut fabric = lab::fabric(&[("h1", 1), ("h2", 1), ("s1", 4)], &["h1.1 s1.3"]);
    let [h2, s1] = ["h2", "s1"].map(|name| fabric.find_name(name).unwrap());
    let rate = LinkRate { width: LinkWidth::X1, speed: LinkSpeed::Sdr };
    fabric.connect((h2, 1), (s1, 4), rate).unwrap();
    fabric
}

#[test]
fn sender_waits_for_credits() {
    let options = Options { vl_buffer: 4224, ..Options::default() };
    let mut sim = lab::ready(&slow_end(), options);
    let (from, to, dlid) = (port(&sim, "h1.1"), port(&sim, "h2.1"), lid(&sim, "h2"));
    sim.open(to);
    for _ in 0..40 {
        let packet = lab::data(&sim, from, dlid, 0, 1000);
        sim.send_packet(from, packet);
    }
    // Four packets of 16 blocks fit into 66 blocks. The fifth packet waits until the first has left
    // the switch. The first packet arrives at 1224 ns and needs 4096 ns to leave; the credits need
    // 200 ns.
    lab::run_checked(&mut sim, at(4096));
    assert_eq!(sim.counters(from).xmit_packets, 4);
    lab::run_checked(&mut sim, at(1224 + 4096 + 200 - 1));
    assert_eq!(sim.counters(from).xmit_packets, 4);
    assert_eq!(sim.counters(from).xmit_wait, (1224 + 4096 + 200 - 1 - 4096) / 8);
    lab::run_checked(&mut sim, at(1224 + 4096 + 200));
    assert_eq!(sim.counters(from).xmit_packets, 5);
    lab::run_checked(&mut sim, Instant::NEVER);
    assert_eq!(sim.counters(to).rcv_packets, 40);
    lab::check_settled(&sim);
    // Each of the 36 packets after the first four waits for credits. The wait takes 4096 ns minus
    // the transmission time of 1024 ns.
    let wait = sim.counters(from).xmit_wait * 8;
    assert!((36 * 3072 - 3000..=36 * 3072).contains(&wait), "{wait}");
}

#[test]
fn dropped_packets_return_their_credits_once() {
    let options = Options { vl_buffer: 4224, ..Options::default() };
    let mut sim = lab::ready(&slow_end(), options);
    let (from, out, dlid) = (port(&sim, "h1.1"), port(&sim, "s1.4"), lid(&sim, "h2"));
    for command in [
        "Fault h1[1] loss=0.2 corrupt=0.2 duplicate=0.3 reorder=0.3 held=3us delay=1us",
        "Fault s1[4] loss=0.3 corrupt=0.2 duplicate=0.2",
        "Fault h2[1] loss=0.5",
    ] {
        sim.run(&command.parse().unwrap()).unwrap();
    }
    for round in 0..300u64 {
        let level = (round % 3) as u8;
        let dlid = if round % 7 == 0 { 99 } else { dlid };
        let packet = lab::data(&sim, from, dlid, level, 1000);
        sim.send_packet(from, packet);
        if round % 50 == 20 {
            // The link goes down and up while packets are on the link and in the queue.
            sim.net.retrain(out);
            lab::check(&sim);
            for end in [out, port(&sim, "h2.1")] {
                sim.net.set_state(end, ib_wire::mad::sm::PortState::ACTIVE);
            }
        }
        let until = sim.now() + Duration::from_nanos(900);
        lab::run_checked(&mut sim, until);
    }
    // The switch repeats its link state traps indefinitely, because no subnet manager represses
    // them. So `settle` is called, which stops when no packet is in flight.
    sim.settle(sim.now());
    lab::check_settled(&sim);
    assert!(lab::lost(&sim, "link_went_down") > 5, "{:?}", sim.stats());
    assert!(lab::lost(&sim, "fault") > 20 && lab::lost(&sim, "damaged") > 20);
}

#[test]
fn multicast_copies_share_buffer_space() {
    let options = Options { vl_buffer: 4224, ..Options::default() };
    let mut fabric =
        lab::fabric(&[("h1", 1), ("h2", 1), ("h3", 1), ("s1", 4)], &["h1.1 s1.1", "h2.1 s1.2"]);
    let [h3, s1] = ["h3", "s1"].map(|name| fabric.find_name(name).unwrap());
    let rate = LinkRate { width: LinkWidth::X1, speed: LinkSpeed::Sdr };
    fabric.connect((h3, 1), (s1, 3), rate).unwrap();
    let mut sim = lab::ready(&fabric, options);
    let switch = sim.node_mut(s1).switch.as_mut().unwrap();
    let mut masks = [0; 32];
    masks[0] = 0b1110;
    switch.set_multicast_block(0, 0, &masks);
    let from = port(&sim, "h1.1");
    for _ in 0..20 {
        let packet = lab::data(&sim, from, 0xc000, 0, 1000);
        sim.send_packet(from, packet);
    }
    lab::run_checked(&mut sim, at(1224 + 4096 + 200 - 1));
    assert_eq!(
        sim.counters(from).xmit_packets,
        4,
        "the slow member of the group delays the others"
    );
    assert_eq!(sim.counters(port(&sim, "h2.1")).rcv_packets, 3, "the fourth packet is in flight");
    lab::run_checked(&mut sim, Instant::NEVER);
    assert_eq!(sim.counters(port(&sim, "h2.1")).rcv_packets, 20);
    assert_eq!(sim.counters(port(&sim, "h3.1")).rcv_packets, 20);
    lab::check_settled(&sim);
}

#[test]
fn smps_pass_while_data_is_blocked() {
    let options = Options { vl_buffer: 4224, ..Options::default() };
    let mut sim = lab::ready(&slow_end(), options);
    let (from, dlid) = (port(&sim, "h1.1"), lid(&sim, "h2"));
    for _ in 0..40 {
        let packet = lab::data(&sim, from, dlid, 0, 1000);
        sim.send_packet(from, packet);
    }
    lab::run_checked(&mut sim, at(4200));
    assert!(sim.port(from).queues.as_ref().unwrap().waiting() != 0, "data is blocked");
    let client = lab::client(&mut sim, "h1");
    let attribute = (ib_wire::mad::AttributeId::NODE_INFO, 0);
    let mad = ib_wire::mad::smp::directed_request(
        ib_wire::mad::Method::GET,
        ib_wire::mad::TransactionId(1),
        attribute,
        &[1],
    );
    sim.submit(client, &ib_link::Datagram::new(ib_link::Remote::directed(), mad));
    lab::run_checked(&mut sim, at(4200 + 2 * (MAD_PACKET + 200)));
    assert!(sim.receive(client).is_some());
    assert_eq!(sim.counters(from).xmit_packets, 5, "four data packets and one SMP");
}

#[test]
fn smp_queue_drops_surplus_packets() {
    let options = Options { management_buffer: 5, ..Options::default() };
    let mut sim = lab::ready(&lab::row(1), options);
    let client = lab::client(&mut sim, "h1");
    for number in 0..10 {
        let mad = ib_wire::mad::smp::directed_request(
            ib_wire::mad::Method::GET,
            ib_wire::mad::TransactionId(number),
            (ib_wire::mad::AttributeId::NODE_INFO, 0),
            &[1],
        );
        sim.submit(client, &ib_link::Datagram::new(ib_link::Remote::directed(), mad));
    }
    lab::run_checked(&mut sim, at(1_000_000));
    // One SMP is being sent and five are queued, so the other four are dropped. None of them
    // arrived over a link, so `vl15_dropped` does not count them.
    let counters = sim.counters(port(&sim, "h1.1"));
    assert_eq!((counters.vl15_dropped, counters.xmit_discards), (0, 4));
    assert_eq!(lab::lost(&sim, "management_overflow"), 4);
    let report = sim.client_report(client);
    assert_eq!((report.sent, report.received, report.lost), (10, 6, 4));
    lab::check_settled(&sim);
}

#[test]
fn dropped_smp_is_counted_at_the_port_of_arrival() {
    let options = Options { management_buffer: 5, ..Options::default() };
    let mut sim = lab::ready(&slow_end(), options);
    let client = lab::client(&mut sim, "h1");
    for number in 0..12 {
        let mad = ib_wire::mad::smp::directed_request(
            ib_wire::mad::Method::GET,
            ib_wire::mad::TransactionId(number),
            (ib_wire::mad::AttributeId::NODE_INFO, 0),
            &[1, 4],
        );
        sim.submit(client, &ib_link::Datagram::new(ib_link::Remote::directed(), mad));
        // The client submits one SMP per transmission time of the first link. The second link is
        // slower, so SMPs queue up at the switch.
        lab::run_checked(&mut sim, at((number + 1) * MAD_PACKET));
    }
    lab::run_checked(&mut sim, at(1_000_000));
    let dropped = |name| sim.counters(port(&sim, name)).vl15_dropped;
    assert!(dropped("s1.3") > 0);
    assert_eq!(dropped("s1.3"), lab::lost(&sim, "management_overflow"));
    assert_eq!((dropped("s1.4"), dropped("h1.1")), (0, 0));
    let client = lab::client(&mut sim, "h1");
    let mut mad = lab::performance(
        ib_wire::mad::Method::GET,
        ib_wire::mad::AttributeId::PORT_RCV_ERROR_DETAILS,
    );
    mad.data_mut()[1] = 3;
    let remote = ib_link::Remote::gsi(lid(&sim, "s1"));
    let mad = lab::answer(&mut sim, client, remote, mad);
    let details: ib_wire::mad::pm::PortRcvErrorDetails = mad.attribute().unwrap();
    assert_eq!(details.buffer_overrun_errors, 0, "dropped SMPs are not counted as buffer overruns");
}
