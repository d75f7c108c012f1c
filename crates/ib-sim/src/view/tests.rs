use std::time::Duration;

use ib_wire::mad::MadStatus;
use ib_wire::mad::sm::{LinearForwardingBlock, SwitchInfo};

use super::*;
use crate::lab::{self, port};
use crate::options::Options;

#[test]
fn route_changes_are_counted() {
    let mut sim = lab::two_switches();
    let client = lab::client(&mut sim, "h1");
    let (one, other) = (port(&sim, "s1.2"), port(&sim, "s2.1"));
    assert!(sim.is_active(one, other) && sim.is_active(other, one));
    assert!(!sim.is_active(one, port(&sim, "h2.1")), "the cable leads to another port");
    let before = sim.route_changes();
    let mut table = LinearForwardingBlock { ports: [0xff; 64] };
    table.ports[..5].copy_from_slice(sim.forwarding_table(lab::node(&sim, "s1")));
    let asked = lab::set(&mut sim, client, &[1], (&table, 0));
    assert_eq!(asked.0, MadStatus::OK);
    assert_eq!(sim.route_changes(), before, "the LFT has not changed");
    table.ports[4] = 1;
    lab::set(&mut sim, client, &[1], (&table, 0));
    assert_eq!(sim.route_changes(), before + 1);
    // LFT entries above `LinearFDBTop` are not used, so a change of `LinearFDBTop` changes routes.
    let (_, mad) = lab::get(&mut sim, client, &[1], (ib_wire::mad::AttributeId::SWITCH_INFO, 0));
    let info: SwitchInfo = mad.attribute().expect("the response has a SwitchInfo");
    lab::set(&mut sim, client, &[1], (&SwitchInfo { linear_fdb_top: 2, ..info }, 0));
    assert_eq!(sim.route_changes(), before + 2);
    lab::run(&mut sim, "Unlink \"s1\"[2]");
    assert_eq!(sim.route_changes(), before + 4, "both ports of the cable change their state");
    assert!(!sim.is_active(one, other));
    lab::run(&mut sim, "ReLink \"s1\"[2]");
    assert!(!sim.is_active(one, other), "no SM has activated the link");
    let before = sim.route_changes();
    lab::run(&mut sim, "Power \"s2\" off");
    assert!(sim.route_changes() > before);
}

#[test]
fn links_report_since_when_they_are_inactive() {
    let seconds = |count| Instant::ZERO + Duration::from_secs(count);
    let mut sim = lab::two_switches();
    let (one, other) = (port(&sim, "s1.2"), port(&sim, "s2.1"));
    assert_eq!(sim.inactive_since(one, other), None);
    sim.run_until(seconds(5));
    lab::run(&mut sim, "Unlink \"s1\"[2]");
    assert_eq!(sim.inactive_since(one, other), Some(seconds(5)));
    sim.run_until(seconds(9));
    lab::run(&mut sim, "ReLink \"s1\"[2]");
    assert_eq!(sim.inactive_since(other, one), Some(seconds(5)), "no SM has activated the link");
    let unmanaged = Sim::new(&lab::row(2), Options::default());
    assert_eq!(unmanaged.inactive_since(one, other), Some(Instant::ZERO));
}

#[test]
fn sent_bytes_and_vls_of_ports_are_returned() {
    let mut sim = lab::two_switches();
    let (host, switch) = (port(&sim, "h1.1"), port(&sim, "s1.2"));
    let packet = lab::data(&sim, host, lab::lid(&sim, "h2"), 0, 100);
    sim.send_packet(host, packet);
    sim.settle(sim.now());
    let sent = sim.counters(host).xmit_data * 4;
    assert!(sent > 100 && sim.sent_bytes(host) == sent && sim.sent_bytes(switch) == sent);
    assert_eq!(sim.sent_bytes(port(&sim, "h2.1")), 0);
    let level = |level| ServiceLevel::new(level).expect("the SL is below 16");
    let vls = sim.port(switch).data_vls();
    assert_eq!(sim.vl(3, switch, level(0)), Some(0));
    assert_eq!(sim.vl(3, switch, level(vls - 1)), Some(vls - 1));
    assert_eq!(sim.vl(3, switch, level(vls)), None);
}

#[test]
fn log_level_can_be_changed_at_any_time() {
    let mut sim = lab::ready(&lab::row(1), Options::default());
    lab::run(&mut sim, "Unlink \"h1\"");
    assert_eq!(sim.take_log(), "");
    sim.set_log(LogLevel::Events);
    lab::run(&mut sim, "ReLink \"h1\"");
    let log = sim.take_log();
    assert!(log.contains("command ReLink \"h1\"") && !log.contains("Unlink"), "{log}");
}
