use super::*;
use crate::lab::{self, port};

#[test]
fn pulled_cable_is_remembered_at_both_ends() {
    let mut sim = lab::two_switches();
    let ends = [port(&sim, "s1.2"), port(&sim, "s2.1")];
    let fabric = &mut sim.net.fabric;
    fabric.remember_pulled(ends[0], ends[1]);
    assert_eq!(ends.map(|end| fabric.pulled(end)), [Some(ends[1]), Some(ends[0])]);
    assert_eq!(fabric.forget_pulled(ends[1]), Some(ends[0]));
    assert_eq!(ends.map(|end| fabric.pulled(end)), [None, None]);
}

#[test]
fn port_number_zero_selects_the_arrival_port_of_hcas() {
    let sim = lab::two_switches();
    let fabric = sim.fabric();
    let (adapter, switch) = (port(&sim, "h1.1"), port(&sim, "s1.3"));
    assert_eq!(fabric.selected_port(adapter, 0), Ok(adapter));
    assert_eq!(fabric.selected_port(switch, 0), Ok(port(&sim, "s1.0")));
    assert_eq!(fabric.selected_port(switch, 5), Err(MadStatus::BAD_FIELD));
    assert_eq!(fabric.selected_port(switch, 256), Err(MadStatus::BAD_FIELD));
}

#[test]
fn only_state_changes_count_as_route_changes() {
    let mut sim = lab::two_switches();
    let at = port(&sim, "s1.2");
    let fabric = &mut sim.net.fabric;
    let now = Instant::from_nanos(7);
    let before = fabric.route_changes();
    assert_eq!(fabric.set_state(at, PortState::ACTIVE, now), None);
    assert_eq!(fabric.route_changes(), before);
    assert_eq!(fabric.set_state(at, PortState::INIT, now), Some(PortState::ACTIVE));
    assert_eq!((fabric.route_changes(), fabric.port(at).inactive_since), (before + 1, now));
}
