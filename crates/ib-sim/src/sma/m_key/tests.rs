use ib_link::{Incoming, Remote};
use ib_types::Instant;
use ib_wire::mad::sm::{Notice, PortInfo};
use ib_wire::mad::{AttributeId, MadStatus, TransactionId, smp};

use super::*;
use crate::lab::{self, port};
use crate::sim::{ClientId, Options};

const KEY: u64 = 0x1234_5678_9abc_def0;

/// Returns a row of h1, s1, h2 where h2 is guarded, and a manager at h1.
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

/// Reads or writes PortInfo of h2 with a key; returns the answer, if there is one.
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
    let mut came = lab::ask(sim, client, Remote::directed(), mad);
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
fn the_protection_decides_who_may_read_and_write() {
    // Protection, method, whether the key is right, whether there is an answer, whether it has the key.
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
fn a_key_of_zero_guards_nothing() {
    let (mut sim, client) = guarded(3, 0);
    let at = port(&sim, "h2.1");
    sim.port_mut(at).info.m_key = 0;
    assert!(touch(&mut sim, client, Method::SET, 77).is_some());
    assert!(touch(&mut sim, client, Method::GET, 77).is_some());
}

#[test]
fn violations_stop_at_their_maximum() {
    let (mut sim, client) = guarded(2, 0);
    let at = port(&sim, "h2.1");
    sim.port_mut(at).info.m_key_violations = 0xfffe;
    for _ in 0..3 {
        assert_eq!(touch(&mut sim, client, Method::GET, 1), None);
    }
    assert_eq!(sim.port_info(at).m_key_violations, 0xffff);
}

#[test]
fn a_lease_ends_the_protection_unless_somebody_with_the_key_comes() {
    let seconds = |n: u64| Instant::from_nanos(n * 1_000_000_000);
    let (mut sim, client) = guarded(2, 3);
    let at = port(&sim, "h2.1");
    assert_eq!(touch(&mut sim, client, Method::GET, 1), None);
    sim.run_until(seconds(2));
    // The lease is not prolonged by another violation, but by the right key.
    assert_eq!(touch(&mut sim, client, Method::GET, 1), None);
    assert!(touch(&mut sim, client, Method::GET, KEY).is_some());
    sim.run_until(seconds(4));
    assert_eq!(sim.port_info(at).m_key_protect, 2);
    assert_eq!(touch(&mut sim, client, Method::GET, 1), None);
    sim.run_until(seconds(6));
    assert_eq!(sim.port_info(at).m_key_protect, 2);
    sim.run_until(seconds(8));
    assert_eq!(sim.port_info(at).m_key_protect, 0);
    // Everybody can read the key now, and write with it.
    let info = touch(&mut sim, client, Method::GET, 1).unwrap();
    assert_eq!(info.m_key, KEY);
    assert_eq!(touch(&mut sim, client, Method::SET, 1), None);
    assert!(touch(&mut sim, client, Method::SET, KEY).is_some());
}

#[test]
fn a_violation_is_told_to_the_manager() {
    let (mut sim, client) = guarded(2, 0);
    let what = (AttributeId::PORT_INFO, 1);
    let mut mad = smp::directed_request(Method::GET, TransactionId(1), what, &[1, 4]);
    mad.set_m_key(0xbad);
    sim.submit(client, &ib_link::Datagram::new(Remote::directed(), mad));
    sim.settle(sim.now());
    let trap = std::iter::from_fn(|| sim.receive(client)).find_map(|incoming| match incoming {
        Incoming::Received(datagram) => Some(datagram),
        Incoming::Lost(_) => None,
    });
    let trap = trap.expect("a trap");
    assert_eq!(trap.mad.method(), Method::TRAP);
    assert_eq!(trap.remote.lid, lab::lid(&sim, "h2"));
    let notice: Notice = trap.mad.attribute().unwrap();
    assert_eq!((notice.trap, notice.issuer_lid), (TrapNumber::BAD_M_KEY, lab::lid(&sim, "h2")));
    let NoticeDetails::MKey(details) = notice.details() else { panic!("{notice:?}") };
    assert_eq!((details.m_key, details.method), (0xbad, Method::GET));
    assert_eq!(details.attribute_id, AttributeId::PORT_INFO);
    assert!(details.is_directed);
    // It came in by port 3 of s1 and port 1 of h2.
    assert_eq!((details.hops, details.return_path[..3].to_vec()), (2, vec![3, 1, 0]));
}
