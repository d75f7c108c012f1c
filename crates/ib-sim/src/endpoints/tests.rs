use std::time::Duration;

use ib_link::{Datagram, Incoming, Remote};
use ib_types::Mtu;
use ib_wire::mad::sm::{MtuCode, PortState};
use ib_wire::mad::{Mad, Method, MgmtClass, TransactionId};

use crate::client::ClientOptions;
use crate::lab::{self, data, lid, port, row, two_switches};
use crate::network::link::LOW_WATERMARK;
use crate::options::Options;
use crate::packet::Payload;
use crate::sim::Sim;

#[test]
fn next_open_returns_ports_with_arrived_packets() {
    let mut sim = two_switches();
    let (from, to) = (port(&sim, "h1.1"), port(&sim, "h2.1"));
    let there = lid(&sim, "h2");
    sim.open(to);
    assert_eq!(sim.next_open(), None);
    for _ in 0..3 {
        sim.send_packet(from, data(&sim, from, there, 0, 100));
    }
    sim.settle(sim.now());
    assert_eq!(sim.next_open(), Some(to));
    assert_eq!(sim.next_open(), None, "the port is returned once");
    let arrived: Vec<_> = std::iter::from_fn(|| sim.receive_packet(to)).collect();
    assert_eq!(arrived.len(), 3);
    sim.send_packet(from, data(&sim, from, there, 0, 100));
    sim.settle(sim.now());
    sim.close(to);
    assert_eq!(sim.next_open(), None, "the port is closed");
}

#[test]
fn next_open_returns_ports_with_free_output_queues() {
    let mut sim = two_switches();
    let from = port(&sim, "h1.1");
    let there = lid(&sim, "h2");
    sim.open(from);
    for number in 0..20 {
        // The link is idle when the first packet is sent, so this packet never waits in the queue.
        assert_eq!(sim.waiting(from), if number == 0 { 0 } else { number - 1 });
        sim.send_packet(from, data(&sim, from, there, 0, 2000));
    }
    assert_eq!(sim.next_open(), None);
    while sim.waiting(from) > LOW_WATERMARK {
        assert_eq!(sim.next_open(), None);
        assert!(sim.run_step(ib_types::Instant::NEVER));
    }
    assert_eq!(sim.next_open(), Some(from));
    sim.settle(sim.now());
    assert_eq!(sim.waiting(from), 0);
}

#[test]
fn packets_not_taken_block_later_packets() {
    let mut sim = two_switches();
    let (from, to) = (port(&sim, "h1.1"), port(&sim, "h2.1"));
    let there = lid(&sim, "h2");
    sim.open_held(to);
    // The VL buffer of h2 has 16 KiB. When the buffer is full, the switch queues further packets.
    for _ in 0..20 {
        sim.send_packet(from, data(&sim, from, there, 0, 2000));
    }
    let soon = sim.now() + Duration::from_micros(50);
    sim.run_until(soon);
    let mut taken = 0;
    while let Some(packet) = sim.receive_packet(to) {
        assert!(matches!(packet.payload, Payload::Transport(_)));
        taken += 1;
    }
    assert!((4..=8).contains(&taken), "{taken}");
    sim.run_until(soon + Duration::from_micros(50));
    let more = std::iter::from_fn(|| sim.receive_packet(to)).count();
    assert!((4..=8).contains(&more), "{more}");
    sim.settle(sim.now());
    sim.close(to);
    sim.settle(sim.now());
    lab::check_settled(&sim);
}

#[test]
fn held_link_is_down() {
    let mut sim = two_switches();
    let to = port(&sim, "h2.1");
    let peer = sim.peer(to).unwrap();
    let state = |sim: &Sim| [to, peer].map(|port| sim.port_info(port).port_state);
    assert_eq!(state(&sim), [PortState::ACTIVE; 2]);
    sim.hold_down(to);
    sim.hold_down(to);
    assert_eq!(state(&sim), [PortState::DOWN; 2]);
    sim.release_hold(to);
    assert_eq!(state(&sim), [PortState::DOWN; 2]);
    sim.release_hold(to);
    assert_eq!(state(&sim), [PortState::INIT; 2]);
    sim.release_hold(to);
    sim.hold_down(to);
    assert_eq!(state(&sim), [PortState::DOWN; 2]);
}

#[test]
fn lost_packets_free_the_output_queue() {
    let mut sim = two_switches();
    let from = port(&sim, "h1.1");
    let there = lid(&sim, "h2");
    sim.open(from);
    for _ in 0..20 {
        sim.send_packet(from, data(&sim, from, there, 0, 2000));
    }
    lab::run(&mut sim, "Unlink \"h1\"[1]");
    assert_eq!(sim.waiting(from), 0);
    assert_eq!(sim.next_open(), Some(from));
}

#[test]
fn payload_buffers_are_recycled() {
    let mut sim = two_switches();
    let from = port(&sim, "h1.1");
    assert!(sim.take_buffer().is_empty());
    sim.give_buffer(vec![7; 4096]);
    assert_eq!(sim.take_buffer().len(), 4096);
    sim.give_buffer(vec![7; 16]);
    assert!(sim.take_buffer().is_empty(), "short vectors are not recycled");
    let there = lid(&sim, "h2");
    sim.send_packet(from, data(&sim, from, there, 0, 2000));
    sim.settle(sim.now());
    assert_eq!(lab::lost(&sim, "no_receiver"), 1);
    assert_eq!(sim.take_buffer().len(), 2012, "payloads of lost packets are recycled");
}

#[test]
fn class_mads_go_to_the_registered_client() {
    let mut sim = two_switches();
    let from = port(&sim, "h1.1");
    let to = port(&sim, "h2.1");
    let class = Some(MgmtClass::COMMUNICATION);
    let asker = sim.attach(from, ClientOptions::default()).unwrap();
    let manager = lab::manager(&mut sim, "h2");
    let other =
        sim.attach(to, ClientOptions { queue_pair: 7, ..ClientOptions::default() }).unwrap();
    let responder = sim.attach(to, ClientOptions { class, ..ClientOptions::default() }).unwrap();
    let late = sim.attach(to, ClientOptions { class, ..ClientOptions::default() }).unwrap();
    let send = |sim: &mut Sim, class| {
        let remote = Remote::gsi(lid(sim, "h2"));
        let mad = Mad::new(class, Method::SEND, TransactionId(5));
        sim.submit(asker, &Datagram::new(remote, mad));
        sim.settle(sim.now());
        let clients = [manager, other, responder, late];
        clients.map(|client| matches!(sim.receive(client), Some(Incoming::Received(_))))
    };
    let is_cm = MgmtClass::COMMUNICATION;
    assert_eq!(send(&mut sim, is_cm), [false, false, true, false]);
    assert_eq!(send(&mut sim, MgmtClass::SUBN_ADM), [true, false, false, false]);
    sim.detach(responder);
    assert_eq!(send(&mut sim, is_cm), [false, false, false, true]);
    sim.detach(late);
    assert_eq!(send(&mut sim, is_cm), [true, false, false, false], "no client has this class");
    lab::check_settled(&sim);
}

#[test]
fn next_open_returns_ports_with_client_input() {
    let mut sim = two_switches();
    let (from, to) = (port(&sim, "h1.1"), port(&sim, "h2.1"));
    sim.open(to);
    let class = Some(MgmtClass::COMMUNICATION);
    let responder = sim.attach(to, ClientOptions { class, ..ClientOptions::default() }).unwrap();
    let asker = sim.attach(from, ClientOptions::default()).unwrap();
    let mad = Mad::new(MgmtClass::COMMUNICATION, Method::SEND, TransactionId(5));
    let remote = Remote::gsi(lid(&sim, "h2"));
    sim.submit(asker, &Datagram::new(remote, mad));
    sim.settle(sim.now());
    assert_eq!((sim.next_open(), sim.next_woken()), (Some(to), Some(responder)));
}

#[test]
fn mtu_capability_follows_the_options() {
    for (mtu_cap, code) in [(Mtu::B2048, MtuCode::MTU_2048), (Mtu::B4096, MtuCode::MTU_4096)] {
        let mut sim = lab::ready(&row(1), Options { mtu_cap, ..Options::default() });
        let (from, to) = (port(&sim, "h1.1"), port(&sim, "h2.1"));
        for name in ["h1.1", "s1.3"] {
            assert_eq!(sim.port_info(port(&sim, name)).mtu_cap, code);
        }
        let own = sim.end_port(lab::node(&sim, "s1")).unwrap();
        assert_eq!(
            sim.port_info(own).mtu_cap,
            MtuCode::MTU_1024,
            "port 0 has an MTU capability of its own"
        );
        sim.open(to);
        let packet = data(&sim, from, lid(&sim, "h2"), 0, 4096);
        sim.send_packet(from, packet);
        sim.settle(sim.now());
        let arrived = sim.receive_packet(to).map(|packet| packet.payload);
        let length = arrived.map(|payload| match payload {
            Payload::Transport(bytes) => bytes.len(),
            Payload::Mad(_) => 0,
        });
        assert_eq!(length, (mtu_cap == Mtu::B4096).then_some(4108));
        lab::run(&mut sim, "Clear \"h1\"");
        assert_eq!(sim.port_info(from).mtu_cap, code, "a reset keeps the MTU capability");
    }
}
