use crate::sim::Sim;
use ib_types::LinkWidth;
use ib_wire::mad::AttributeId;
use ib_wire::mad::sm::MtuCode;

use super::*;
use crate::ids::ClientId;
use crate::lab::{self, port};
use crate::options::Options;

/// Returns a chain h1, s1, h2, a client at h1, and the PortInfo of s1's port 4, which leads to h2.
fn made() -> (Sim, ClientId, PortInfo) {
    let mut sim = Sim::new(&lab::row(1), Options::default());
    let client = lab::client(&mut sim, "h1");
    let info = read(&mut sim, client, 4);
    (sim, client, info)
}

fn read(sim: &mut Sim, client: ClientId, number: u8) -> PortInfo {
    lab::get(sim, client, &[1], (AttributeId::PORT_INFO, number.into())).1.attribute().unwrap()
}

fn write(sim: &mut Sim, client: ClientId, to: &PortInfo) -> (MadStatus, PortInfo) {
    lab::set(sim, client, &[1], (to, 4))
}

/// Returns a PortInfo with the states set to "no change".
fn unchanged(info: PortInfo) -> PortInfo {
    PortInfo { port_state: PortState::NO_CHANGE, phys_state: PhysState::NO_CHANGE, ..info }
}

/// The state of a port before a Set.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Start {
    Disabled,
    /// The port is enabled, but the port at the other end of the link is disabled.
    Polling,
    Init,
    Armed,
    Active,
}

#[test]
fn every_state_transition_matches_the_table() {
    const STARTS: [Start; 5] =
        [Start::Disabled, Start::Polling, Start::Init, Start::Armed, Start::Active];
    // A row for each state before the Set, and a column for each requested port state, 0 to 5. True
    // if a Set without a physical state may request the port state.
    let allowed = [
        [true, true, false, false, false, false],
        [true, true, false, false, false, false],
        [true, true, false, true, false, false],
        [true, true, false, true, true, false],
        [true, true, false, false, true, false],
    ];
    let down = |phys| (PortState::DOWN, phys);
    let up = |state| (state, PhysState::LINK_UP);
    for (start, allowed) in STARTS.into_iter().zip(allowed) {
        for state in 0..6u8 {
            for phys in 0..8u8 {
                let (mut sim, client, info) = made();
                let (here, there) = (port(&sim, "s1.4"), port(&sim, "h2.1"));
                let before = match start {
                    Start::Disabled | Start::Polling => {
                        let end = if start == Start::Disabled { here } else { there };
                        sim.port_mut(end).info.phys_state = PhysState::DISABLED;
                        sim.net.update_link(end);
                        down(if start == Start::Disabled {
                            PhysState::DISABLED
                        } else {
                            PhysState::POLLING
                        })
                    }
                    Start::Init => up(PortState::INIT),
                    Start::Armed => up(PortState::ARMED),
                    Start::Active => up(PortState::ACTIVE),
                };
                sim.port_mut(here).info.port_state = before.0;
                let fits = allowed[usize::from(state)] && phys <= 3 && (phys == 0 || state <= 1);
                let after = match (start, state, phys) {
                    _ if !fits => before,
                    (_, _, 3) | (Start::Disabled, _, 0) => down(PhysState::DISABLED),
                    (Start::Polling, _, _) => down(PhysState::POLLING),
                    // The link is retrained.
                    (_, _, 1 | 2) | (_, 1, _) => up(PortState::INIT),
                    (_, 3, _) => up(PortState::ARMED),
                    (_, 4, _) => up(PortState::ACTIVE),
                    _ => before,
                };
                let to =
                    PortInfo { port_state: PortState(state), phys_state: PhysState(phys), ..info };
                let (status, shown) = write(&mut sim, client, &to);
                let case = format!("{start:?}, Set {state} {phys}");
                assert_eq!(status == MadStatus::OK, fits, "{case}: {status}");
                assert!(fits || status == MadStatus::BAD_FIELD, "{case}: {status}");
                let own = sim.port_info(here);
                assert_eq!((own.port_state, own.phys_state), after, "{case}");
                if fits {
                    assert_eq!((shown.port_state, shown.phys_state), after, "{case}");
                }
                assert_eq!(
                    sim.port_info(there).port_state >= PortState::INIT,
                    after.0 >= PortState::INIT,
                    "{case}"
                );
                lab::check_settled(&sim);
            }
        }
    }
}

#[test]
fn values_out_of_range_change_nothing() {
    let (mut sim, client, info) = made();
    let good = unchanged(info);
    let wrong = [
        PortInfo { neighbor_mtu: MtuCode(6), ..good },
        PortInfo { neighbor_mtu: MtuCode::MTU_4096, ..good },
        PortInfo { operational_vls: VlCap::VL0_14, ..good },
        PortInfo { operational_vls: VlCap(6), ..good },
        PortInfo { link_down_default_state: PhysState::DISABLED, ..good },
        PortInfo { link_width_enabled: LinkWidthMask(0x40), ..good },
        PortInfo { link_speed_enabled: LinkSpeedMask(8), ..good },
        PortInfo { link_speed_ext_enabled: LinkSpeedExtMask(16), ..good },
    ];
    for to in wrong {
        let to = PortInfo { vl_high_limit: 99, ..to };
        assert_eq!(write(&mut sim, client, &to).0, MadStatus::BAD_FIELD, "{to:?}");
        assert_eq!(read(&mut sim, client, 4), info);
    }
    for to in [PortInfo { lid: 0xc000, ..good }, PortInfo { master_sm_lid: 0xffff, ..good }] {
        assert_eq!(lab::set(&mut sim, client, &[1, 4], (&to, 0)).0, MadStatus::BAD_FIELD);
        assert_eq!(
            write(&mut sim, client, &to).0,
            MadStatus::OK,
            "LIDs are ignored because the port is not an end port"
        );
    }
}

#[test]
fn end_port_keeps_the_values_of_its_sm() {
    let (mut sim, client, _) = made();
    let (_, mad) = lab::get(&mut sim, client, &[1, 4], (AttributeId::PORT_INFO, 0));
    let info: PortInfo = mad.attribute().unwrap();
    let to = PortInfo {
        m_key: 5,
        gid_prefix: 0xfe80 << 48,
        lid: 9,
        lmc: 3,
        master_sm_lid: 4,
        master_sm_sl: 6,
        m_key_lease_period: 60,
        m_key_protect: 0,
        subnet_timeout: 18,
        vl_high_limit: 4,
        neighbor_mtu: MtuCode::MTU_1024,
        operational_vls: VlCap::VL0_1,
        hoq_life: 16,
        overrun_errors: 8,
        local_phy_errors: 7,
        ..unchanged(info)
    };
    let (status, shown) = lab::set(&mut sim, client, &[1, 4], (&to, 1));
    let states = (info.port_state, info.phys_state);
    let expected = PortInfo { port_state: states.0, phys_state: states.1, ..to };
    assert_eq!((status, shown), (MadStatus::OK, expected));
    // In a Set, zero in these fields requests no change.
    let none = PortInfo {
        neighbor_mtu: MtuCode(0),
        operational_vls: VlCap(0),
        link_width_enabled: LinkWidthMask(0),
        link_speed_enabled: LinkSpeedMask(0),
        link_down_default_state: PhysState::NO_CHANGE,
        ..to
    };
    let mut mad = ib_wire::mad::smp::directed_request(
        ib_wire::mad::Method::SET,
        ib_wire::mad::TransactionId(1),
        (AttributeId::PORT_INFO, 1),
        &[1, 4],
    );
    mad.set_attribute(&none);
    mad.set_m_key(5);
    let answer = lab::answer(&mut sim, client, ib_link::Remote::directed(), mad);
    assert_eq!(answer.attribute(), Some(expected));
}

#[test]
fn link_trains_to_the_best_common_rate() {
    let (mut sim, client, info) = made();
    assert_eq!(info.link_width_active, LinkWidth::X4.into());
    let enable = PortInfo { link_width_enabled: LinkWidth::X1.into(), ..unchanged(info) };
    let (status, shown) = write(&mut sim, client, &enable);
    assert_eq!(
        (status, shown.link_width_active),
        (MadStatus::OK, LinkWidth::X4.into()),
        "the link is not retrained yet"
    );
    let downed = sim.counters(port(&sim, "s1.4")).link_downed;
    let again = PortInfo { port_state: PortState::DOWN, ..enable };
    let (_, shown) = write(&mut sim, client, &again);
    assert_eq!(shown.link_width_active, LinkWidth::X1.into());
    assert_eq!(shown.port_state, PortState::INIT);
    assert_eq!(sim.port_info(port(&sim, "h2.1")).link_width_active, LinkWidth::X1.into());
    assert_eq!(sim.counters(port(&sim, "s1.4")).link_downed, downed + 1);
    assert_eq!(sim.port(port(&sim, "s1.4")).picos_per_byte, 4000);
    // The ports at both ends of the link have no common width, so the link remains down.
    let peer = port(&sim, "h2.1");
    sim.port_mut(peer).info.link_width_enabled = LinkWidth::X12.into();
    let (_, shown) = write(&mut sim, client, &again);
    assert_eq!(shown.port_state, PortState::DOWN);
    // Enables all supported widths, as in the initial state.
    sim.port_mut(peer).info.link_width_enabled = LinkWidth::X4.into();
    let all = PortInfo { link_width_enabled: LinkWidthMask::ALL_SUPPORTED, ..again };
    let (_, shown) = write(&mut sim, client, &all);
    assert_eq!(shown.link_width_enabled, info.link_width_supported);
    assert_eq!(
        (shown.link_width_active, shown.port_state),
        (LinkWidth::X4.into(), PortState::INIT)
    );
    // A link does not become faster than its initial rate.
    let peer = port(&sim, "h2.1");
    sim.port_mut(peer).info.link_speed_enabled = LinkSpeedMask(7);
    let fast = PortInfo { link_speed_enabled: LinkSpeedMask(15), ..all };
    let (_, shown) = write(&mut sim, client, &fast);
    assert_eq!(
        (shown.link_speed_enabled, shown.link_speed_active),
        (info.link_speed_supported, info.link_speed_active)
    );
}

#[test]
fn power_loss_resets_port_info() {
    let (mut sim, client, info) = made();
    let slow = PortInfo {
        link_width_enabled: LinkWidth::X1.into(),
        port_state: PortState::DOWN,
        phys_state: PhysState::NO_CHANGE,
        ..info
    };
    write(&mut sim, client, &slow);
    sim.run(&"Power s1 off".parse().unwrap()).unwrap();
    assert_eq!(sim.port_info(port(&sim, "h2.1")).port_state, PortState::DOWN);
    sim.run(&"Power s1 on".parse().unwrap()).unwrap();
    assert_eq!(read(&mut sim, client, 4), info);
    // Power loss also resets a disabled port.
    let off =
        PortInfo { phys_state: PhysState::DISABLED, port_state: PortState::NO_CHANGE, ..info };
    write(&mut sim, client, &off);
    sim.run(&"Power s1 off".parse().unwrap()).unwrap();
    sim.run(&"Power s1 on".parse().unwrap()).unwrap();
    assert_eq!(read(&mut sim, client, 4), info);
}

#[test]
fn link_without_common_rate_reports_down() {
    use ib_link::Incoming;
    use ib_wire::mad::Method;
    let mut sim = lab::ready(&lab::row(1), Options::default());
    let manager = lab::manager(&mut sim, "h1");
    sim.settle(sim.now());
    while sim.receive(manager).is_some() {}
    let (here, there) = (port(&sim, "s1.4"), port(&sim, "h2.1"));
    sim.port_mut(here).info.link_width_enabled = LinkWidth::X1.into();
    sim.port_mut(there).info.link_width_enabled = LinkWidth::X4.into();
    let s1 = lab::node(&sim, "s1");
    sim.node_mut(s1).switch.as_mut().unwrap().info.port_state_change = false;
    let to = PortInfo {
        port_state: PortState::NO_CHANGE,
        phys_state: PhysState::POLLING,
        ..sim.port_info(here)
    };
    let mut mad = ib_wire::mad::smp::directed_request(
        Method::SET,
        ib_wire::mad::TransactionId(1),
        (AttributeId::PORT_INFO, 4),
        &[1],
    );
    mad.set_attribute(&to);
    sim.submit(manager, &ib_link::Datagram::new(ib_link::Remote::directed(), mad));
    sim.settle(sim.now());
    assert_eq!(sim.port_info(here).port_state, PortState::DOWN);
    assert!(sim.node(s1).switch.as_ref().unwrap().info.port_state_change);
    let came: Vec<Method> = std::iter::from_fn(|| sim.receive(manager))
        .filter_map(|incoming| match incoming {
            Incoming::Received(datagram) => Some(datagram.mad.method()),
            Incoming::Lost(_) => None,
        })
        .collect();
    assert!(came.contains(&Method::TRAP), "{came:?}");
}

#[test]
fn set_takes_a_link_down_once() {
    for (state, phys) in [
        (PortState::DOWN, PhysState::POLLING),
        (PortState::DOWN, PhysState::SLEEP),
        (PortState::DOWN, PhysState::NO_CHANGE),
        (PortState::NO_CHANGE, PhysState::POLLING),
        (PortState::DOWN, PhysState::DISABLED),
    ] {
        let (mut sim, client, info) = made();
        let to = PortInfo { port_state: state, phys_state: phys, ..info };
        assert_eq!(write(&mut sim, client, &to).0, MadStatus::OK);
        for end in ["s1.4", "h2.1"] {
            assert_eq!(sim.counters(port(&sim, end)).link_downed, 1, "{end} {state} {phys}");
        }
    }
}
