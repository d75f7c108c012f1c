use crate::sim::Sim;
use ib_link::{Datagram, Incoming, Remote};
use ib_types::PKey;
use ib_wire::mad::AttributeId;
use ib_wire::mad::Mad;
use ib_wire::mad::Method;
use ib_wire::mad::TransactionId;
use ib_wire::mad::sm::CapabilityMask;
use ib_wire::mad::sm::NoticeDetails;
use ib_wire::mad::sm::notice::LinkStateDetails;
use ib_wire::mad::smp;

use super::*;
use crate::ids::ClientId;
use crate::lab::{self, lid, port};
use crate::options::Options;

/// Returns a chain h1, s1, s2, h2 with an SM at h1. No trap is pending.
fn made() -> (Sim, ClientId) {
    let mut sim = lab::ready(&lab::row(2), Options::default());
    let manager = lab::manager(&mut sim, "h1");
    sim.settle(sim.now());
    for (_, datagram) in traps(&mut sim, manager) {
        repress(&mut sim, manager, &datagram);
    }
    (sim, manager)
}

/// Returns the traps that the SM has received.
fn traps(sim: &mut Sim, manager: ClientId) -> Vec<(Notice, Datagram)> {
    std::iter::from_fn(|| sim.receive(manager))
        .filter_map(|incoming| match incoming {
            Incoming::Received(datagram) if datagram.mad.method() == Method::TRAP => {
                Some((datagram.mad.attribute().unwrap(), datagram))
            }
            _ => None,
        })
        .collect()
}

fn repress(sim: &mut Sim, manager: ClientId, trap: &Datagram) {
    let mut mad = trap.mad;
    mad.set_method(Method::TRAP_REPRESS);
    sim.submit(manager, &trap.reply(mad));
    sim.settle(sim.now());
}

fn run(sim: &mut Sim, command: &str) {
    sim.run(&command.parse().unwrap()).unwrap();
    sim.settle(sim.now());
}

#[test]
fn both_switches_send_link_state_traps() {
    let (mut sim, manager) = made();
    run(&mut sim, "Unlink s2[4]");
    let came = traps(&mut sim, manager);
    assert_eq!(came.len(), 1);
    let (notice, datagram) = came[0];
    assert_eq!((notice.trap, notice.producer), (TrapNumber::LINK_STATE_CHANGE, 2));
    assert_eq!(
        notice.details(),
        NoticeDetails::LinkState(LinkStateDetails { lid: lid(&sim, "s2") })
    );
    assert_eq!((datagram.remote.lid, notice.issuer_lid), (lid(&sim, "s2"), lid(&sim, "s2")));
    assert_eq!(datagram.mad.transaction_id().0 >> 48, 0);
    repress(&mut sim, manager, &datagram);
    run(&mut sim, "Relink s2[4]");
    assert_eq!(traps(&mut sim, manager).len(), 1);
    assert!(sim.node(lab::node(&sim, "s2")).switch.as_ref().unwrap().info.port_state_change);
}

#[test]
fn trap_is_repeated_until_repressed() {
    let (mut sim, manager) = made();
    run(&mut sim, "Unlink s2[4]");
    // The SM has set SubnetTimeOut 18, which means 4.096 us * 2^18.
    let pace = Duration::from_nanos(4096 << 18);
    let start = sim.now();
    for repetition in 1..OFTEN {
        assert_eq!(traps(&mut sim, manager).len(), 1, "{repetition}");
        sim.run_until(start + pace * repetition);
        sim.run_until(sim.now() + Duration::from_millis(1));
    }
    assert_eq!(traps(&mut sim, manager).len(), 1);
    for minute in 1..=500 {
        sim.run_until(start + (pace * (OFTEN - 1) + LONG_PAUSE * minute - pace));
        assert_eq!(traps(&mut sim, manager).len(), 0, "{minute}");
        sim.run_until(sim.now() + 2 * pace);
        assert_eq!(traps(&mut sim, manager).len(), 1, "{minute}");
    }
    sim.run_until(sim.now() + LONG_PAUSE);
    let (_, last) = traps(&mut sim, manager).pop().unwrap();
    repress(&mut sim, manager, &last);
    sim.run_until(sim.now() + 2 * LONG_PAUSE);
    assert_eq!(traps(&mut sim, manager).len(), 0);
    assert_eq!(sim.next_at(), None);
    lab::check_settled(&sim);
}

#[test]
#[should_panic(expected = "a fabric cannot run until `Instant::NEVER`")]
fn run_until_never_is_refused() {
    let (mut sim, _) = made();
    run(&mut sim, "Unlink s2[4]");
    sim.run_until(ib_types::Instant::NEVER);
}

#[test]
fn endless_traps_do_not_block_a_waiting_client() {
    let mut sim = lab::ready(&lab::row(2), Options::default());
    // The ports' SM LID is that of h1, where no SM is attached.
    run(&mut sim, "Unlink s2[4]");
    let far = ib_types::Instant::from_nanos(u64::MAX - 1_000_000_000_000);
    sim.repeat(sim.steps(), far);
    let other = sim.end_port(lab::node(&sim, "h1")).unwrap();
    let mut link =
        crate::SimLink::attach(&mut sim, other, crate::ClientOptions::default()).unwrap();
    ib_link::MadLink::wait(&mut link, ib_types::Instant::NEVER).unwrap();
    assert!(link.sim().now() >= far);
}

#[test]
fn traps_do_not_contain_the_m_key() {
    let (mut sim, manager) = made();
    run(&mut sim, "MKey s2 0x55 2");
    run(&mut sim, "Unlink s2[4]");
    let came = traps(&mut sim, manager);
    assert_eq!((came.len(), came[0].1.mad.m_key()), (1, 0));
}

#[test]
fn trap_interval_is_subnet_timeout_or_one_second() {
    let nanos = |sent, timeout| pause(sent, timeout).as_nanos();
    for timeout in 0..=17 {
        assert_eq!((nanos(1, timeout), nanos(10, timeout)), (1_000_000_000, 60_000_000_000));
    }
    assert_eq!((nanos(1, 18), nanos(9, 19)), (1_073_741_824, 2_147_483_648));
    assert_eq!((nanos(1, 31), nanos(10, 31)), (8_796_093_022_208, 8_796_093_022_208));
}

#[test]
fn change_during_a_pending_trap_is_sent_after_repress() {
    let (mut sim, manager) = made();
    run(&mut sim, "Unlink s2[4]");
    run(&mut sim, "Relink s2[4]");
    run(&mut sim, "Unlink s2[4]");
    let first = traps(&mut sim, manager);
    assert_eq!(first.len(), 1, "no second trap is sent while the first is pending");
    repress(&mut sim, manager, &first[0].1);
    let second = traps(&mut sim, manager);
    assert_eq!(second.len(), 1);
    assert_ne!(second[0].1.mad.transaction_id(), first[0].1.mad.transaction_id());
    repress(&mut sim, manager, &second[0].1);
    assert_eq!(traps(&mut sim, manager).len(), 0);
}

#[test]
fn is_sm_change_sends_a_trap() {
    let (mut sim, manager) = made();
    let other = lab::manager(&mut sim, "h2");
    sim.settle(sim.now());
    let came = traps(&mut sim, manager);
    assert_eq!(came.len(), 1);
    let NoticeDetails::LocalChange(details) = came[0].0.details() else { panic!("{came:?}") };
    assert_eq!((came[0].0.trap, details.lid), (TrapNumber::LOCAL_CHANGES, lid(&sim, "h2")));
    assert!(details.capability_mask.contains(CapabilityMask::SM));
    repress(&mut sim, manager, &came[0].1);
    sim.set_is_sm(other, true);
    sim.settle(sim.now());
    assert_eq!(traps(&mut sim, manager).len(), 0, "IsSM was already set");
    sim.detach(other);
    sim.settle(sim.now());
    let came = traps(&mut sim, manager);
    let NoticeDetails::LocalChange(details) = came[0].0.details() else { panic!("{came:?}") };
    assert!(!details.capability_mask.contains(CapabilityMask::SM));
    let info = sim.port_info(port(&sim, "h2.1"));
    assert!(!info.capability_mask.contains(CapabilityMask::SM));
}

#[test]
fn p_key_violation_drops_the_packet_and_sends_a_trap() {
    let (mut sim, manager) = made();
    let mut remote = Remote::gsi(lid(&sim, "h2"));
    remote.p_key = PKey(0x8777);
    let mad = lab::performance(Method::GET, AttributeId::PORT_COUNTERS);
    sim.submit(manager, &Datagram::new(remote, mad));
    sim.settle(sim.now());
    let came = traps(&mut sim, manager);
    assert_eq!(came.len(), 1);
    let NoticeDetails::Key(details) = came[0].0.details() else { panic!("{came:?}") };
    assert_eq!(came[0].0.trap, TrapNumber::BAD_P_KEY);
    assert_eq!(
        (details.key.0, details.lid1, details.lid2),
        (0x8777, lid(&sim, "h1"), lid(&sim, "h2"))
    );
    assert_eq!((details.qp1.get(), details.qp2.get()), (1, 1));
    assert_eq!(sim.port_info(port(&sim, "h2.1")).p_key_violations, 1);
    assert_eq!(lab::lost(&sim, "partition"), 1);
}

#[test]
fn enforcing_switch_drops_packets_and_sends_traps() {
    for (name, inbound) in [("s1.3", true), ("s1.2", false)] {
        let (mut sim, manager) = made();
        let at = port(&sim, name);
        let info = &mut sim.port_mut(at).info;
        info.partition_enforcement_inbound = inbound;
        info.partition_enforcement_outbound = !inbound;
        let mut remote = Remote::gsi(lid(&sim, "h2"));
        remote.p_key = PKey(0x8777);
        let mad = lab::performance(Method::GET, AttributeId::PORT_COUNTERS);
        sim.submit(manager, &Datagram::new(remote, mad));
        sim.settle(sim.now());
        let came = traps(&mut sim, manager);
        let NoticeDetails::SwitchKey(details) = came[0].0.details() else { panic!("{came:?}") };
        assert_eq!((details.switch_lid, details.p_key), (lid(&sim, "s1"), PKey(0x8777)));
        assert_eq!(details.port, sim.place(at).1);
        assert_eq!(
            details.valid.0, 0xfc00,
            "all fields are valid except the GIDs, which only a GRH contains"
        );
        // The expected bytes of the notice data, in the form in which OpenSM logs them.
        let mut bytes = [0; 54];
        let [from, to, switch] = ["h1", "h2", "s1"].map(|name| lid(&sim, name) as u8);
        bytes[..8].copy_from_slice(&[0xfc, 0, 0, from, 0, to, 0x87, 0x77]);
        (bytes[11], bytes[15]) = (1, 1);
        bytes[48..51].copy_from_slice(&[0, switch, details.port]);
        assert_eq!(came[0].0.data, bytes);
        let counters = sim.counters(at);
        let expected = if inbound { (1, 0) } else { (0, 1) };
        assert_eq!((counters.rcv_constraint_errors, counters.xmit_constraint_errors), expected);
        lab::check_settled(&sim);
    }
}

/// Writes a P_Key table with one key to a port.
fn set_key(sim: &mut Sim, name: &str, key: PKey) {
    use crate::port::Tables;
    let at = port(sim, name);
    let node = sim.node(sim.place(at).0);
    let (kind, ports) = (node.kind, node.ports);
    let state = sim.port_mut(at);
    let number = state.number;
    let tables = state.tables.get_or_insert_with(|| Box::new(Tables::new(kind, number, ports)));
    tables.p_keys[0] = key;
}

#[test]
fn limited_member_reaches_only_full_members() {
    let (full, limited) = (PKey(0x8123), PKey(0x0123));
    for (other, heard) in [(full, true), (limited, false)] {
        let (mut sim, manager) = made();
        // A switch port has the same P_Key table as the HCA at its link.
        for (end, at, key) in [("h1.1", "s1.3", limited), ("h2.1", "s2.4", other)] {
            set_key(&mut sim, end, key);
            set_key(&mut sim, at, key);
            let at = port(&sim, at);
            let info = &mut sim.port_mut(at).info;
            info.partition_enforcement_inbound = true;
            info.partition_enforcement_outbound = true;
        }
        let h2 = lab::manager(&mut sim, "h2");
        sim.settle(sim.now());
        traps(&mut sim, manager);
        let remote = Remote { p_key: limited, ..Remote::gsi(lid(&sim, "h2")) };
        let mad = lab::performance(Method::GET, AttributeId::PORT_COUNTERS);
        let came = lab::query(&mut sim, manager, remote, mad);
        let Some(Incoming::Received(answer)) = came.filter(|_| heard) else {
            assert!(!heard);
            assert_eq!(sim.counters(port(&sim, "s2.4")).xmit_constraint_errors, 1);
            continue;
        };
        assert_eq!(answer.mad.method(), Method::GET_RESP);
        assert_eq!(
            answer.remote.p_key, limited,
            "the response has the P_Key of the responding port"
        );
        // A client receives each GMP with the P_Key of the port at which the client is attached.
        // The response of the client contains this P_Key.
        let mad = Mad::new(ib_wire::mad::MgmtClass::SUBN_ADM, Method::GET, TransactionId(3));
        sim.submit(manager, &Datagram::new(remote, mad));
        sim.settle(sim.now());
        let asked = std::iter::from_fn(|| sim.receive(h2)).find_map(|incoming| match incoming {
            Incoming::Received(asked) if asked.mad.class() == mad.class() => Some(asked),
            _ => None,
        });
        assert_eq!(asked.map(|asked| asked.remote.p_key), Some(full));
    }
}

#[test]
fn flood_of_violations_does_not_block_other_traps() {
    let (mut sim, manager) = made();
    run(&mut sim, "MKey s2 0x55 2");
    let violations = 500;
    for key in 0..violations {
        let what = (AttributeId::PORT_INFO, 1);
        let mut mad = smp::directed_request(Method::GET, TransactionId(key), what, &[1, 2]);
        mad.set_m_key(key + 1000);
        sim.submit(manager, &Datagram::new(Remote::directed(), mad));
        sim.settle(sim.now());
    }
    let key = |notice: &Notice| match notice.details() {
        NoticeDetails::MKey(details) => details.m_key,
        other => panic!("{other:?}"),
    };
    let first = traps(&mut sim, manager);
    assert_eq!(first.len(), 1);
    assert_eq!(key(&first[0].0), 1000);
    run(&mut sim, "MKey s2 0 0");
    run(&mut sim, "Unlink s2[4]");
    let came = traps(&mut sim, manager);
    assert_eq!(came.len(), 1);
    assert_eq!(came[0].0.trap, TrapNumber::LINK_STATE_CHANGE);
    assert_eq!(sim.node(lab::node(&sim, "s2")).traps.pending.len(), 2);
    repress(&mut sim, manager, &first[0].1);
    let last = traps(&mut sim, manager);
    assert_eq!(last.len(), 1);
    assert_eq!(key(&last[0].0), 1000 + violations - 1);
}

#[test]
fn each_port_has_one_pending_trap_per_number() {
    let nodes = [("h1", 1), ("h2", 2), ("s1", 3)];
    let fabric = lab::fabric(&nodes, &["h1.1 s1.1", "h2.1 s1.2", "h2.2 s1.3"]);
    let mut sim = lab::ready(&fabric, Options::default());
    let manager = lab::manager(&mut sim, "h1");
    sim.settle(sim.now());
    for (_, datagram) in traps(&mut sim, manager) {
        repress(&mut sim, manager, &datagram);
    }
    let ends = ["h2.1", "h2.2"].map(|name| port(&sim, name));
    for at in ends {
        let options = crate::ClientOptions { is_sm: true, ..crate::ClientOptions::default() };
        sim.attach(at, options).unwrap();
    }
    sim.settle(sim.now());
    let came = traps(&mut sim, manager);
    let issuers: Vec<u16> = came.iter().map(|(notice, _)| notice.issuer_lid).collect();
    assert_eq!(issuers, ends.map(|at| sim.port_info(at).lid));
}

#[test]
fn latest_capabilities_are_reported() {
    let (mut sim, manager) = made();
    let other = lab::manager(&mut sim, "h2");
    sim.settle(sim.now());
    sim.set_is_sm(other, false);
    sim.settle(sim.now());
    for is_sm in [true, false] {
        let came = traps(&mut sim, manager);
        assert_eq!(came.len(), 1);
        let NoticeDetails::LocalChange(details) = came[0].0.details() else { panic!("{came:?}") };
        assert_eq!(details.capability_mask.contains(CapabilityMask::SM), is_sm);
        repress(&mut sim, manager, &came[0].1);
    }
    assert_eq!(traps(&mut sim, manager).len(), 0);
}

#[test]
fn no_trap_is_sent_without_lid_or_sm() {
    let mut sim = Sim::new(&lab::row(2), Options::default());
    let manager = lab::manager(&mut sim, "h1");
    run(&mut sim, "Unlink s2[4]");
    assert_eq!(sim.next_at(), None);
    assert_eq!(sim.client_report(manager).received, 0);
}
