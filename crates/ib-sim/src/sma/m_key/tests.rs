use crate::sim::Sim;
use ib_link::{Datagram, Incoming, Remote};
use ib_types::Instant;
use ib_wire::mad::sm::{Notice, PortInfo};
use ib_wire::mad::{MadStatus, TransactionId, smp};

use super::*;
use crate::ids::ClientId;
use crate::lab::{self, port};
use crate::options::Options;

const KEY: u64 = 0x1234_5678_9abc_def0;

/// Returns a chain h1, s1, h2. The port of h2 has an M_Key, and an SM is at h1.
fn guarded(protect: u8, lease: u16) -> (Sim, ClientId) {
    let mut sim = lab::ready(&lab::row(1), Options::default());
    let manager = lab::manager(&mut sim, "h1");
    let at = port(&sim, "h2.1");
    let info = &mut sim.port_mut(at).info;
    (info.m_key, info.m_key_protect, info.m_key_lease_period) = (KEY, protect, lease);
    sim.settle(sim.now());
    while sim.receive(manager).is_some() {}
    (sim, manager)
}

/// Sends a Get or Set of h2's PortInfo with the given M_Key. Returns the response; `None` if there
/// is none.
fn touch(sim: &mut Sim, client: ClientId, method: Method, key: u64) -> Option<PortInfo> {
    let what = (AttributeId::PORT_INFO, 1);
    let mut mad = smp::directed_request(method, TransactionId(1), what, &[1, 4]);
    let now = sim.port_info(port(sim, "h2.1"));
    mad.set_attribute(&PortInfo {
        port_state: ib_wire::mad::sm::PortState::NO_CHANGE,
        phys_state: ib_wire::mad::sm::PhysState::NO_CHANGE,
        ..now
    });
    mad.set_m_key(key);
    let mut came = lab::query(sim, client, Remote::directed(), mad);
    while let Some(incoming) = came {
        match incoming {
            Incoming::Received(answer) if answer.mad.method() == Method::GET_RESP => {
                assert_eq!(answer.mad.status(), MadStatus::OK);
                assert_eq!(answer.mad.m_key(), 0);
                return answer.mad.attribute();
            }
            _ => came = sim.receive(client),
        }
    }
    None
}

#[test]
fn protection_level_decides_on_reads_and_writes() {
    // Each case: protection level, method, whether the M_Key is right, whether a response is
    // expected, whether it contains the M_Key.
    for (protect, method, right, answered, shown) in [
        (0, Method::GET, false, true, true),
        (0, Method::GET, true, true, true),
        (0, Method::SET, false, false, false),
        (0, Method::SET, true, true, true),
        (1, Method::GET, false, true, false),
        (1, Method::GET, true, true, true),
        (1, Method::SET, false, false, false),
        (1, Method::SET, true, true, true),
        (2, Method::GET, false, false, false),
        (2, Method::GET, true, true, true),
        (2, Method::SET, false, false, false),
        (2, Method::SET, true, true, true),
        (3, Method::GET, false, false, false),
        (3, Method::GET, true, true, true),
        (3, Method::SET, false, false, false),
        (3, Method::SET, true, true, true),
    ] {
        let (mut sim, client) = guarded(protect, 0);
        let key = if right { KEY } else { 1 };
        let info = touch(&mut sim, client, method, key);
        let case = format!("{protect} {method} {right}");
        assert_eq!(info.is_some(), answered, "{case}");
        assert_eq!(info.is_some_and(|info| info.m_key == KEY), shown, "{case}");
        let violations = sim.port_info(port(&sim, "h2.1")).m_key_violations;
        assert_eq!(violations, u16::from(!answered), "{case}");
        assert_eq!(lab::lost(&sim, "m_key"), u64::from(!answered), "{case}");
        lab::check_settled(&sim);
    }
}

#[test]
fn m_key_zero_protects_nothing() {
    let (mut sim, client) = guarded(3, 0);
    let at = port(&sim, "h2.1");
    sim.port_mut(at).info.m_key = 0;
    assert!(touch(&mut sim, client, Method::SET, 77).is_some());
    assert!(touch(&mut sim, client, Method::GET, 77).is_some());
}

#[test]
fn violation_counter_saturates() {
    let (mut sim, client) = guarded(2, 0);
    let at = port(&sim, "h2.1");
    sim.port_mut(at).info.m_key_violations = 0xfffe;
    for _ in 0..3 {
        assert_eq!(touch(&mut sim, client, Method::GET, 1), None);
    }
    assert_eq!(sim.port_info(at).m_key_violations, 0xffff);
}

#[test]
fn lease_ends_the_protection_unless_the_right_key_arrives() {
    let seconds = |n: u64| Instant::from_nanos(n * 1_000_000_000);
    let (mut sim, client) = guarded(2, 3);
    let at = port(&sim, "h2.1");
    assert_eq!(touch(&mut sim, client, Method::GET, 1), None);
    sim.run_until(seconds(2));
    // Another violation does not prolong the lease; a request with the right M_Key cancels it.
    assert_eq!(touch(&mut sim, client, Method::GET, 1), None);
    assert!(touch(&mut sim, client, Method::GET, KEY).is_some());
    sim.run_until(seconds(4));
    assert_eq!(sim.port_info(at).m_key_protect, 2);
    assert_eq!(touch(&mut sim, client, Method::GET, 1), None);
    sim.run_until(seconds(6));
    assert_eq!(sim.port_info(at).m_key_protect, 2);
    sim.run_until(seconds(8));
    assert_eq!(sim.port_info(at).m_key_protect, 0);
    // After the lease has ended, all clients can read the M_Key, and can write if they use this
    // M_Key.
    let info = touch(&mut sim, client, Method::GET, 1).unwrap();
    assert_eq!(info.m_key, KEY);
    assert_eq!(touch(&mut sim, client, Method::SET, 1), None);
    assert!(touch(&mut sim, client, Method::SET, KEY).is_some());
}

/// Sends a request with a wrong M_Key to h2. Returns the trap that h2 sends.
fn violate(sim: &mut Sim, client: ClientId, remote: Remote, mut mad: Mad) -> Datagram {
    mad.set_m_key(0xbad);
    sim.submit(client, &Datagram::new(remote, mad));
    sim.settle(sim.now());
    let came = std::iter::from_fn(|| sim.receive(client));
    let mut datagrams = came.filter_map(|incoming| match incoming {
        Incoming::Received(datagram) => Some(datagram),
        Incoming::Lost(_) => None,
    });
    datagrams.find(|datagram| datagram.mad.method() == Method::TRAP).expect("h2 sends a trap")
}

#[test]
fn violation_is_reported_by_a_trap() {
    let (mut sim, client) = guarded(2, 0);
    let what = (AttributeId::PORT_INFO, 1);
    let mad = smp::directed_request(Method::GET, TransactionId(1), what, &[1, 4]);
    let trap = violate(&mut sim, client, Remote::directed(), mad);
    assert_eq!(trap.remote.lid, lab::lid(&sim, "h2"));
    let notice: Notice = trap.mad.attribute().unwrap();
    assert_eq!((notice.trap, notice.issuer_lid), (TrapNumber::BAD_M_KEY, lab::lid(&sim, "h2")));
    // The request has arrived at port 3 of s1 and at port 1 of h2.
    let mut expected = [0; 54];
    expected[2..14].copy_from_slice(&[0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0x15, 0, 0, 0, 1]);
    expected[14..22].copy_from_slice(&0xbad_u64.to_be_bytes());
    expected[23..26].copy_from_slice(&[0x80 | 2, 3, 1]);
    assert_eq!(notice.data, expected);
}

#[test]
fn violation_by_lid_is_reported_with_the_slid() {
    let (mut sim, client) = guarded(2, 0);
    let what = (AttributeId::PORT_INFO, 1);
    let mad = smp::lid_request(Method::SET, TransactionId(1), what);
    let remote = Remote::smi(lab::lid(&sim, "h2"));
    let trap = violate(&mut sim, client, remote, mad);
    let notice: Notice = trap.mad.attribute().unwrap();
    let mut expected = [0; 54];
    let lid = lab::lid(&sim, "h1") as u8;
    expected[2..14].copy_from_slice(&[0, lid, 0, 0, 2, 0, 0, 0x15, 0, 0, 0, 1]);
    expected[14..22].copy_from_slice(&0xbad_u64.to_be_bytes());
    assert_eq!(notice.data, expected);
}

#[test]
fn long_return_path_is_truncated() {
    let what = (AttributeId::PORT_INFO, 1);
    for (hops, shown, truncated) in [(29, 29, false), (30, 30, false), (31, 30, true)] {
        let path = vec![1; hops];
        let mut mad = smp::directed_request(Method::GET, TransactionId(1), what, &path);
        for hop in 0..64 {
            mad.0[192 + hop] = hop as u8;
        }
        let details = violation(0xffff, &mad);
        assert_eq!((details.hops, details.path_truncated), (shown, truncated));
        let last = usize::from(shown) - 1;
        assert_eq!((details.return_path[0], details.return_path[last]), (1, shown));
    }
}

/// Returns a fabric in which HCA `h2` has a port at each of two switches. Its second port is
/// protected by an M_Key. An SM is at h1, which is at the first switch.
fn two_ports(protect: u8) -> (Sim, ClientId) {
    let nodes = [("h1", 1), ("h2", 2), ("s1", 2), ("s2", 2)];
    let fabric = lab::fabric(&nodes, &["h1.1 s1.1", "h2.1 s1.2", "h2.2 s2.1"]);
    let mut sim = lab::ready(&fabric, Options::default());
    let client = lab::manager(&mut sim, "h1");
    let at = port(&sim, "h2.2");
    let info = &mut sim.port_mut(at).info;
    (info.m_key, info.m_key_protect) = (KEY, protect);
    sim.settle(sim.now());
    while sim.receive(client).is_some() {}
    (sim, client)
}

/// Sends a Get or Set for the protected port to the HCA's other port. Returns the response; `None`
/// if there is none.
fn touch_other(
    sim: &mut Sim,
    client: ClientId,
    (method, what): (Method, (AttributeId, u32)),
    key: u64,
) -> Option<Mad> {
    let mut mad = smp::directed_request(method, TransactionId(1), what, &[1, 2]);
    let now = sim.port_info(port(sim, "h2.2"));
    if what.0 == AttributeId::PORT_INFO {
        mad.set_attribute(&PortInfo {
            lid: 0x77,
            port_state: ib_wire::mad::sm::PortState::NO_CHANGE,
            phys_state: ib_wire::mad::sm::PhysState::NO_CHANGE,
            ..now
        });
    }
    mad.set_m_key(key);
    sim.submit(client, &Datagram::new(Remote::directed(), mad));
    sim.settle(sim.now());
    let came = std::iter::from_fn(|| sim.receive(client));
    let mut answers = came.filter_map(|incoming| match incoming {
        Incoming::Received(answer) => Some(answer.mad),
        Incoming::Lost(_) => None,
    });
    answers.find(|answer| answer.method() == Method::GET_RESP)
}

#[test]
fn port_is_protected_by_its_own_m_key_at_every_port() {
    let info = (AttributeId::PORT_INFO, 2);
    for protect in 0..4 {
        for right in [false, true] {
            let (mut sim, client) = two_ports(protect);
            let at = port(&sim, "h2.2");
            let (before, key) = (sim.port_info(at), if right { KEY } else { 1 });
            let case = format!("{protect} {right}");
            let seen = touch_other(&mut sim, client, (Method::GET, info), key);
            let seen = seen.map(|mad| mad.attribute::<PortInfo>().unwrap().m_key);
            let expected = match (right, protect) {
                (true, _) | (false, 0) => Some(KEY),
                (false, 1) => Some(0),
                (false, _) => None,
            };
            assert_eq!(seen, expected, "{case}");
            for id in [AttributeId::MLNX_EXT_PORT_INFO, AttributeId::PORT_INFO] {
                let answer = touch_other(&mut sim, client, (Method::SET, (id, 2)), key);
                assert_eq!(answer.is_some(), right, "{case}");
            }
            let arbitration = (AttributeId::VL_ARBITRATION, 1 << 16 | 2);
            let answer = touch_other(&mut sim, client, (Method::SET, arbitration), key);
            assert_eq!(answer.is_some(), right, "{case}");
            assert_eq!(sim.port(at).tables.is_some(), right, "{case}");
            let after = sim.port_info(at);
            assert_eq!(after.lid, if right { 0x77 } else { before.lid }, "{case}");
            let refused = if right { 0 } else { 3 + u16::from(expected.is_none()) };
            assert_eq!(after.m_key_violations, refused, "{case}");
            assert_eq!(sim.port_info(port(&sim, "h2.1")).m_key_violations, 0, "{case}");
        }
    }
}

#[test]
fn trap_repress_needs_the_right_m_key() {
    for protect in 0..4 {
        let (mut sim, client) = guarded(protect, 0);
        let at = port(&sim, "h2.1");
        sim.net.trap_capabilities(at);
        sim.settle(sim.now());
        let Some(Incoming::Received(trap)) = sim.receive(client) else { panic!("no trap") };
        for (key, left) in [(1, true), (0, true), (KEY, false)] {
            let mut mad = trap.mad;
            mad.set_method(Method::TRAP_REPRESS);
            mad.set_m_key(key);
            sim.submit(client, &trap.reply(mad));
            sim.settle(sim.now());
            assert_eq!(
                sim.fabric().node_of(at).traps.is_pending(at, TrapNumber::LOCAL_CHANGES),
                left,
                "{protect}"
            );
        }
        assert_eq!(sim.port_info(at).m_key_violations, 2, "{protect}");
        assert_eq!(lab::lost(&sim, "m_key"), 2, "{protect}");
        lab::check_settled(&sim);
    }
}
