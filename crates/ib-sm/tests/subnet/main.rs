//! Subnet managers on simulated fabrics, in virtual time.

mod campaign;
mod capabilities;
mod features;
mod groups;
mod hostile;
mod lab;
mod opensm_rules;
mod reach;
mod sa_queries;
mod vls;
mod walk;

use std::time::Duration;

use ib_routing::SwitchId;
use ib_sm::{Fault, SmConfig};
use ib_wire::mad::sm::{PortState, SmState};

use lab::Lab;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn fabrics_come_up() {
    for kind in ["torus 3x3 hosts=1", "xgft 2,2,4 1,2,2", "hypercube 3 hosts=2", "mesh 1x2"] {
        let mut lab = Lab::managed(kind);
        lab.run_while(|lab| lab.sms[0].reports.is_empty());
        let sm = &lab.sms[0];
        assert_eq!(sm.faults, [], "{kind}");
        assert_eq!(sm.states, [SmState::MASTER]);
        assert_eq!(sm.last().written.cleared, 0, "no entry was cleared");
        lab.check();
        assert!(
            lab.sim.now().as_nanos() < 1_000_000_000,
            "without packet loss the subnet is up within a second"
        );
    }
}

#[test]
fn unchanged_attributes_are_not_written() {
    let mut lab = Lab::managed("torus 3x3 hosts=1");
    lab.run_while(|lab| lab.sms[0].reports.is_empty());
    let now = lab.sim.now();
    lab.sms[0].manager.sweep(now);
    lab.run_while(|lab| lab.sms[0].reports.len() < 2);
    let written = lab.sms[0].last().written;
    assert_eq!((written.ports, written.lft_blocks), (0, 0), "{written:?}");
    lab.check();
}

#[test]
fn restarted_sm_keeps_the_tables() {
    let mut lab = Lab::managed("torus 3x3 hosts=1");
    lab.run_while(|lab| lab.sms[0].reports.is_empty());
    lab.kill(0);
    lab.add(0, SmConfig::default());
    lab.run_while(|lab| lab.sms[0].reports.is_empty());
    let written = lab.sms[0].last().written;
    assert_eq!(written.lft_blocks, 0, "{written:?}");
    lab.check();
}

#[test]
fn failed_link_changes_only_the_necessary_entries() {
    let mut lab = Lab::managed("xgft 2,2,4 1,2,2");
    lab.run_while(|lab| lab.sms[0].reports.is_empty());
    let leaf = lab.sim.peer(lab.host(0)).unwrap();
    let (leaf, _) = lab.sim.place(leaf);
    let up = (1..=20).find(|&number| {
        let port = lab.sim.find_port(leaf, number).and_then(|port| lab.sim.peer(port));
        port.is_some_and(|port| lab.sim.is_switch(lab.sim.place(port).0))
    });
    let name = lab.sim.node_name(leaf).to_owned();
    lab.command(&format!("unlink \"{name}\"[{}]", up.unwrap()));
    lab.run_while(|lab| lab.sms[0].reports.len() < 2);
    lab.check();
    let sm = &lab.sms[0];
    assert!(sm.traps > 0, "a trap reported the change");
    let (before, after) = (&sm.reports[0].plan, &sm.reports[1].plan);
    let mut changed = 0;
    for (row, &guid) in (0..).map(SwitchId).zip(&before.switches) {
        assert_eq!(after.switches[row.index()], guid);
        for lid in 1..=before.max_lid {
            let (old, new) =
                (before.routing.lfts.port(row, lid), after.routing.lfts.port(row, lid));
            if old != new {
                changed += 1;
                let (at, to) = (lab.find_switch(guid), lab.owner(lid));
                let shortest = lab.hops(at, to).expect("the switch is reachable");
                let by_old = lab.sim.find_port(at, old).and_then(|port| lab.live_peer(port));
                let by_old = by_old.and_then(|peer| lab.hops(lab.sim.place(peer).0, to));
                assert_ne!(
                    by_old.map(|hops| hops + 1),
                    Some(shortest),
                    "needless change of LID {lid} at {guid}"
                );
            }
        }
    }
    assert!(changed > 0);
    assert_eq!(sm.last().written.lft_entries, changed);
    lab.command(&format!("relink \"{name}\"[{}]", up.unwrap()));
    lab.run_while(|lab| lab.sms[0].reports.len() < 3);
    lab.run_for(SECOND);
    lab.check();
}

#[test]
fn restarted_host_keeps_its_lid() {
    let mut lab = Lab::managed("torus 3x3 hosts=1");
    lab.run_while(|lab| lab.sms[0].reports.is_empty());
    let lid = lab.lid(4);
    let name = lab.sim.node_name(lab.sim.place(lab.host(4)).0).to_owned();
    lab.command(&format!("power \"{name}\" off"));
    lab.run_while(|lab| lab.sms[0].reports.len() < 2);
    assert_eq!(lab.sms[0].last().nodes, 17);
    lab.command(&format!("power \"{name}\" on"));
    lab.run_while(|lab| lab.sms[0].last().nodes < 18);
    lab.run_for(SECOND);
    lab.check();
    assert_eq!(lab.lid(4), lid);
}

#[test]
fn subnet_is_handed_over_and_taken_back() {
    let mut lab = Lab::managed("torus 3x3 hosts=1");
    lab.run_while(|lab| lab.sms[0].reports.is_empty());
    lab.add(5, SmConfig { sm_priority: 9, ..SmConfig::default() });
    lab.run_while(|lab| lab.sms[1].reports.is_empty());
    assert_eq!(lab.sms[0].states, [SmState::MASTER, SmState::STANDBY]);
    assert_eq!(lab.sms[1].states, [SmState::STANDBY, SmState::MASTER]);
    lab.check();
    let better = lab.lid(5);
    assert_eq!(lab.sim.port_info(lab.sms[0].port()).master_sm_lid, better);
    // The SM with the higher priority fails.
    let before = lab.sms[0].reports.len();
    lab.kill(1);
    lab.run_while(|lab| lab.sms[0].reports.len() == before);
    let states = &lab.sms[0].states;
    assert_eq!(states[2..], [SmState::DISCOVERING, SmState::MASTER]);
    lab.check();
    assert_eq!(lab.sim.port_info(lab.host(5)).master_sm_lid, lab.lid(0));
}

#[test]
fn port_with_another_m_key_is_reported_and_unchanged() {
    for level in [1, 2, 3] {
        let mut lab = Lab::new("torus 3x3 hosts=1");
        let host = lab.host(4);
        let name = lab.sim.node_name(lab.sim.place(host).0).to_owned();
        lab.command(&format!("mkey \"{name}\" 0x1234 {level}"));
        lab.add(0, SmConfig::default());
        lab.run_while(|lab| lab.sms[0].reports.is_empty());
        let sm = &lab.sms[0];
        assert!(!sm.faults.is_empty());
        for fault in &sm.faults {
            assert!(matches!(fault, Fault::NoAnswer { .. }), "{fault}");
            assert!(fault.to_string().contains("route 0,"), "{fault}");
        }
        assert_eq!(lab.sim.port_info(host).port_state, PortState::INIT, "level {level}");
        let others = lab.sim.node_ids().filter(|&node| !lab.sim.is_switch(node));
        let active = others.filter(|&node| {
            let port = lab.sim.end_port(node).unwrap();
            lab.sim.port_info(port).port_state == PortState::ACTIVE
        });
        assert_eq!(active.count(), 8, "level {level}");
    }
}

#[test]
fn sm_with_another_sm_key_is_reported_and_ignored() {
    let mut lab = Lab::new("torus 3x3 hosts=1");
    lab.add(0, SmConfig { sm_key: 0x1111, sm_priority: 3, ..SmConfig::default() });
    lab.run_while(|lab| lab.sms[0].reports.is_empty());
    lab.add(5, SmConfig { sm_key: 0x2222, sm_priority: 9, ..SmConfig::default() });
    let now = lab.sim.now();
    lab.sms[0].manager.sweep(now);
    lab.run_for(5 * SECOND);
    assert_eq!(lab.sms[0].states, [SmState::MASTER]);
    let faults: Vec<String> = lab.sms[0].faults.iter().map(ToString::to_string).collect();
    assert!(faults.iter().any(|fault| fault.contains("another SM_Key")), "{faults:?}");
}
