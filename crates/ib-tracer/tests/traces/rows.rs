//! Regression tests: combinations of faults, loss and inconsistent nodes that once led to a wrong verdict.

use ib_tracer::{FactSource, Judgement, Target, Trace, Tracer, Verdict};
use ib_types::Lmc;
use ib_wire::mad::sm::{NodeInfo, PortInfo};
use ib_wire::mad::{AttributeId, MadStatus};

use crate::lab::Lab;
use crate::{far_host, pairs, targets};

/// Traces at most `most` paths. Returns the traces that succeeded.
fn trace_all(lab: &mut Lab, most: usize) -> (Vec<(u16, u16, Trace)>, Tracer) {
    let all = pairs(&lab.host_lids(), most);
    let (traces, tracer) = lab.trace_with(&targets(&all));
    let traces = all.into_iter().zip(traces);
    (traces.filter_map(|((from, to), trace)| Some((from, to, trace.ok()?))).collect(), tracer)
}

/// Returns true if, according to the tables, a path leaves a switch through one of the given ports.
fn crosses(lab: &Lab, (from, to): (u16, u16), places: &[(String, u8)]) -> bool {
    let hops = lab.truth(from, to);
    hops.into_iter().step_by(2).any(|(node, port)| {
        places.iter().any(|(name, number)| lab.node(name) == node && *number == port)
    })
}

/// Checks that no path over the given ports is good, and that no other port is reported as faulty.
/// Returns the number of paths that are proven bad.
fn check(lab: &mut Lab, places: &[(String, u8)], most: usize) -> usize {
    let (traces, tracer) = trace_all(lab, most);
    let mut bad = 0;
    for (from, to, trace) in traces {
        if crosses(lab, (from, to), places) {
            assert_ne!(
                trace.judgement(),
                Judgement::ProvenGood,
                "LID {from} to LID {to}: {trace:?}"
            );
        }
        bad += usize::from(trace.judgement() == Judgement::ProvenBad);
        for (hop, verdict) in trace.hops.iter().filter(|(_, verdict)| verdict.is_bad()) {
            let guid = tracer.model().node(hop.from).guid;
            let is_guilty = places
                .iter()
                .any(|(name, port)| lab.guid(lab.node(name)) == guid && *port == hop.out);
            assert!(is_guilty, "LID {from} to LID {to} reports {hop:?}: {verdict:?}");
        }
    }
    bad
}

#[test]
fn several_misrouted_ports_of_a_switch_are_never_good() {
    for seed in 0..12_u8 {
        let mut lab = Lab::new("xgft 3,3 1,3", "minhop", |_| true);
        lab.drop_traps();
        let name = lab.switch_names()[usize::from(seed) % 6].clone();
        let ports = lab.ports(lab.node(&name));
        let mut places = Vec::new();
        for port in (1..=ports).filter(|port| (port + seed) % 3 != 0) {
            lab.command(&format!("Misroute \"{name}\" {port} {}", port % ports + 1));
            places.push((name.clone(), port));
        }
        check(&mut lab, &places, 80);
    }
}

#[test]
fn spine_that_misroutes_all_ports_is_never_good() {
    let mut lab = Lab::new("xgft 3,3,4 1,2,2", "minhop", |_| true);
    lab.drop_traps();
    let name = "core-0".to_owned();
    let names = lab.switch_names();
    let name = names
        .iter()
        .find(|it| **it == name)
        .or(names.last())
        .expect("the fabric has switches")
        .clone();
    let ports = lab.ports(lab.node(&name));
    let mut places = Vec::new();
    for port in 1..=ports {
        lab.command(&format!("Misroute \"{name}\" {port} {}", port % ports + 1));
        places.push((name.clone(), port));
    }
    let all = pairs(&lab.host_lids(), 2000);
    assert!(all.iter().any(|&pair| crosses(&lab, pair, &places)), "{name}");
    assert!(check(&mut lab, &places, 2000) > 0);
}

#[test]
fn unrelated_loss_does_not_hide_a_misrouted_port() {
    for loss in ["0.1", "0.5"] {
        for seed in 0..10 {
            let mut lab = Lab::new("xgft 3,3 1,3", "minhop", |_| true);
            lab.drop_traps();
            let hosts: Vec<String> = lab
                .sim
                .node_ids()
                .filter(|&node| !lab.sim.is_switch(node))
                .map(|node| lab.sim.node_name(node).to_owned())
                .collect();
            lab.command(&format!("Fault \"{}\"[1] loss={loss}", hosts[2 + seed % 6]));
            // The leaf switch of the local port sends packets for one of its uplinks out of a host port.
            let name = lab.switch_names()[0].clone();
            lab.command(&format!("Misroute \"{name}\" {} {}", 4 + seed % 3, 1 + seed % 3));
            let places = [(name, 4 + (seed % 3) as u8)];
            assert!(check(&mut lab, &places, 80) > 0, "loss {loss}, {places:?}");
        }
    }
}

#[test]
fn slight_loss_everywhere_does_not_hide_a_misrouted_port() {
    let mut lab = Lab::new("xgft 3,3 1,3", "minhop", |_| true);
    lab.drop_traps();
    for name in lab.switch_names() {
        for port in 1..=lab.ports(lab.node(&name)) {
            lab.command(&format!("Fault \"{name}\"[{port}] loss=0.001"));
        }
    }
    let name = lab.switch_names()[1].clone();
    lab.command(&format!("Misroute \"{name}\" 1 2"));
    assert!(check(&mut lab, &[(name, 1)], 200) > 0);
}

#[test]
fn pulled_cable_reports_no_healthy_port_by_records() {
    for port in 4..=6 {
        let mut lab = Lab::new("xgft 3,3 1,3", "minhop", |_| true);
        lab.drop_traps();
        let name = lab.switch_names()[1].clone();
        let node = lab.node(&name);
        let other = lab
            .sim
            .peer(lab.sim.find_port(node, port).expect("the switch has the port"))
            .expect("the port has a cable");
        let (next, enters) = lab.sim.place(other);
        let ends = [(lab.guid(node), port), (lab.guid(next), enters)];
        lab.configure(|config| config.via = FactSource::SaRecords);
        lab.command(&format!("Unlink \"{name}\"[{port}]"));
        let (traces, tracer) = trace_all(&mut lab, 200);
        let mut bad = 0;
        for (from, to, trace) in traces {
            for (hop, verdict) in trace.hops.iter().filter(|(_, verdict)| verdict.is_bad()) {
                let place = (tracer.model().node(hop.from).guid, hop.out);
                assert!(ends.contains(&place), "LID {from} to LID {to}: {hop:?} {verdict:?}");
                bad += 1;
            }
        }
        assert!(bad > 0);
    }
}

#[test]
fn missing_records_are_not_proof() {
    let mut lab = Lab::new("xgft 3,3 1,3", "minhop", |_| true);
    lab.configure(|config| config.via = FactSource::SaRecords);
    lab.corrupt(|datagram| {
        if datagram.mad.attribute_id() == AttributeId::LINK_RECORD {
            datagram.mad.set_status(MadStatus::SA_NO_RECORDS);
        }
        true
    });
    let (traces, _) = trace_all(&mut lab, 60);
    assert!(!traces.is_empty());
    for (from, to, trace) in traces {
        assert_eq!(trace.judgement(), Judgement::NotProven, "LID {from} to LID {to}: {trace:?}");
        assert!(trace.first_bad().is_none(), "{trace:?}");
    }
}

#[test]
fn duplicate_switch_guid_is_named() {
    for via in [FactSource::DirectedRoutes, FactSource::SaRecords] {
        let mut lab = Lab::new("xgft 3,3 1,3", "minhop", |_| true);
        lab.drop_traps();
        lab.configure(|config| config.via = via);
        let names = lab.switch_names();
        let guid = lab.guid(lab.node(&names[4]));
        lab.command(&format!("Guid \"{}\" {guid}", names[3]));
        let (traces, tracer) = trace_all(&mut lab, 200);
        let mut named = 0;
        for (from, to, trace) in traces {
            for (hop, verdict) in trace.hops.iter().filter(|(_, verdict)| verdict.is_bad()) {
                let ends = [hop.from, hop.node].map(|node| tracer.model().node(node).guid);
                assert!(ends.contains(&guid), "LID {from} to LID {to}: {hop:?} {verdict:?}");
                named += usize::from(
                    matches!(verdict, Verdict::Duplicate { what } if what.contains(&guid.to_string())),
                );
            }
        }
        assert!(named > 0, "{via:?}");
    }
}

#[test]
fn misrouted_ports_in_two_switches_report_no_third_port() {
    for (one, other) in [(0, 4), (1, 5), (2, 4), (3, 5)] {
        for port in 1..=3 {
            let mut lab = Lab::new("xgft 3,4 1,2 1,2", "minhop", |_| true);
            lab.drop_traps();
            let names = lab.switch_names();
            let places = [(names[one].clone(), port + 3), (names[other].clone(), port)];
            for (name, port) in &places {
                lab.command(&format!("Misroute \"{name}\" {port} {}", port + 1));
            }
            check(&mut lab, &places, 150);
        }
    }
}

#[test]
fn status_7_and_another_route_are_never_good() {
    for kind in 0..2 {
        let mut lab = Lab::new("xgft 3,3 1,3", "minhop", |_| true);
        let (switch, guid) = {
            let node = lab.node(&lab.switch_names()[4]);
            (
                lab.sim.link_port(lab.sim.end_port(node).expect("a switch has a port 0")).lid,
                lab.guid(node),
            )
        };
        lab.corrupt(move |datagram| {
            let is_it = datagram.remote.lid == switch;
            if is_it && datagram.mad.attribute_id() == AttributeId::SOURCE_ROUTE {
                if kind == 0 {
                    datagram.mad.set_status(MadStatus(7));
                    datagram.mad.data_mut()[0] = 99;
                } else {
                    datagram.mad.data_mut()[5] ^= 1;
                }
            }
            true
        });
        let (traces, tracer) = trace_all(&mut lab, 200);
        let mut found = 0;
        for (from, to, trace) in traces {
            let over = trace.hops.iter().any(|(hop, _)| tracer.model().node(hop.node).guid == guid);
            assert_eq!(
                over,
                trace.judgement() == Judgement::ProvenBad,
                "LID {from} to LID {to} {trace:?}"
            );
            for (hop, verdict) in trace.hops.iter().filter(|(_, verdict)| verdict.is_bad()) {
                assert_eq!(tracer.model().node(hop.node).guid, guid);
                assert!(matches!(verdict, Verdict::Inconsistent { .. }), "{verdict:?}");
                found += 1;
            }
        }
        assert!(found > 0);
    }
}

#[test]
fn inconsistent_node_is_reported_and_not_the_switch_before() {
    for kind in 0..3 {
        let mut lab = Lab::new("xgft 3,3 1,3", "minhop", |_| kind != 2);
        let node = lab.node(&lab.switch_names()[4]);
        let guid = lab.guid(node);
        let lid = lab.sim.link_port(lab.sim.end_port(node).expect("a switch has a port 0")).lid;
        let foreign = far_host(&lab);
        lab.corrupt(move |datagram| {
            let is_routed = datagram.remote.lid == lid;
            let mad = &mut datagram.mad;
            if !mad.class().is_smp() {
                return true;
            }
            match mad.attribute_id() {
                AttributeId::NODE_INFO if kind == 0 || kind == 2 && is_routed => {
                    let Some(mut info) = mad.attribute::<NodeInfo>() else { return true };
                    if info.node_guid == guid {
                        info.local_port = info.local_port % info.num_ports + 1;
                        mad.set_attribute(&info);
                    }
                }
                AttributeId::PORT_INFO if kind == 1 => {
                    let Some(mut info) = mad.attribute::<PortInfo>() else { return true };
                    if info.lid == lid {
                        info.lid = foreign;
                        mad.set_attribute(&info);
                    }
                }
                _ => {}
            }
            true
        });
        let (traces, tracer) = trace_all(&mut lab, 200);
        for (from, to, trace) in traces {
            for (hop, verdict) in trace.hops.iter().filter(|(_, verdict)| verdict.is_bad()) {
                let is_identity =
                    matches!(verdict, Verdict::Inconsistent { .. } | Verdict::Duplicate { .. });
                assert!(is_identity, "{kind} LID {from} to LID {to}: {hop:?} {verdict:?}");
                let node = tracer.model().node(hop.node);
                let is_claimed = kind == 1 && to == foreign;
                assert!(
                    node.guid == guid || is_claimed,
                    "{kind} LID {from} to LID {to}: {verdict:?}"
                );
            }
        }
    }
}

#[test]
fn lost_combined_route_probes_alone_are_not_proof() {
    // The fabric discards combined-route probes, like ibsim.
    let mut lab = Lab::new("xgft 3,3 1,3", "minhop", |_| false);
    let name = lab.switch_names()[4].clone();
    let silent = lab.lid(lab.node(&name));
    lab.corrupt(move |datagram| {
        let mad = &datagram.mad;
        let is_combined = mad.class().is_smp() && mad.dr_dlid() != 0xffff && mad.dr_dlid() != 0;
        // The switch responds to requests by directed route, but not to requests by LID. The ibsim command
        // `Error "spine"[0] 100` has the same effect.
        let is_silent = datagram.remote.lid == silent;
        !(is_combined && mad.dr_slid() == 0xffff || is_silent)
    });
    let (traces, tracer) = trace_all(&mut lab, 100);
    let guid = lab.guid(lab.node(&name));
    for (from, to, trace) in traces {
        let over = trace.hops.iter().any(|(hop, _)| tracer.model().node(hop.node).guid == guid);
        assert!(!over || !trace.is_good(), "LID {from} to LID {to}: {trace:?}");
        assert!(trace.first_bad().is_none(), "LID {from} to LID {to}: {trace:?}");
    }
}

#[test]
fn all_lids_of_a_healthy_fabric_are_good_by_records() {
    let lmc = Lmc::new(2).expect("2 is a valid LMC");
    let mut lab = Lab::with("fat-tree 4", "minhop", |_| true, |it| it.routing.lids.lmc = lmc);
    lab.configure(|config| config.via = FactSource::SaRecords);
    let base = far_host(&lab);
    for lid in base..base + 4 {
        let trace = lab.trace(&[(None, Target::Lid(lid))]).remove(0).expect("the trace succeeds");
        assert!(trace.is_good(), "{trace:?}");
    }
}

#[test]
fn duplicate_lid_reports_no_port_as_misrouted() {
    for switch in 1..8 {
        let mut lab = Lab::new("random switches=8 ports=6 hosts=2", "updn", |_| true);
        lab.drop_traps();
        let names = lab.switch_names();
        let end = lab.sim.end_port(lab.node(&names[0])).expect("a switch has a port 0");
        let lid = lab.sim.link_port(end).lid;
        lab.command(&format!("Baselid \"{}\"[0] {lid}", names[switch]));
        let (traces, _) = trace_all(&mut lab, 300);
        for (from, to, trace) in traces {
            for (hop, verdict) in &trace.hops {
                let is_misrouted =
                    matches!(verdict, Verdict::Misdirected { .. } | Verdict::Detour { .. });
                assert!(!is_misrouted, "LID {from} to LID {to}: {hop:?} {verdict:?}");
            }
        }
    }
}
