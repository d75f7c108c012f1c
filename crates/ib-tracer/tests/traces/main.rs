//! Traces through simulated fabrics with and without faults.

mod campaign;
mod hostile;
mod lab;
mod misroutes;
mod multicast;
mod rows;
mod trials;
mod verdicts;

use std::collections::BTreeSet;

use ib_sm::SmConfig;
use ib_tracer::{
    FactSource, Judgement, PacketFate, Reason, Stop, Target, Trace, TraceError, Verdict, Witness,
};
use ib_types::rng::Rng;
use ib_types::{Lmc, ServiceLevel};
use ib_wire::mad::{AttributeId, MadStatus};
use lab::Lab;

/// Returns at most `most` pairs of LIDs, which are evenly distributed among all pairs.
fn pairs(lids: &[u16], most: usize) -> Vec<(u16, u16)> {
    let all = lids.iter().flat_map(|&from| lids.iter().map(move |&to| (from, to)));
    let all: Vec<(u16, u16)> = all.filter(|(from, to)| from != to).collect();
    let step = all.len().div_ceil(most).max(1);
    all.into_iter().step_by(step).collect()
}

fn targets(pairs: &[(u16, u16)]) -> Vec<(Option<Target>, Target)> {
    pairs.iter().map(|&(from, to)| (Some(Target::Lid(from)), Target::Lid(to))).collect()
}

/// Checks that traced paths match the tables, and that no fault is reported. Returns the number of hops with the
/// verdict `Validated`. Also returns the number of hops with the verdict `Observed` by an agent, a combined-route probe
/// or counters.
fn check_healthy(kind: &str, engine: &str, most: usize) -> (usize, usize) {
    let mut lab = Lab::new(kind, engine, |_| true);
    let pairs = pairs(&lab.host_lids(), most);
    let (traces, tracer) = lab.trace_with(&targets(&pairs));
    let (mut validated, mut own_route) = (0, 0);
    for (&(from, to), trace) in pairs.iter().zip(&traces) {
        let trace = trace.as_ref().unwrap_or_else(|error| panic!("{kind} {engine}: {error}"));
        assert!(trace.is_good(), "{kind} {engine} LID {from} to LID {to}: {trace:?}");
        let truth: Vec<_> = lab
            .truth(from, to)
            .into_iter()
            .map(|(node, port)| {
                let end = lab.sim.end_port(node).expect("the node has a port with LIDs");
                (lab.sim.node_info(end).node_guid, port)
            })
            .collect();
        // `truth` contains egress and ingress ports alternately, so each hop is converted to two ports in this order.
        let guid = |number| tracer.model().node(number).guid;
        let hops = trace
            .hops
            .iter()
            .flat_map(|(hop, _)| [(guid(hop.from), hop.out), (guid(hop.node), hop.enters)]);
        assert_eq!(hops.collect::<Vec<_>>(), truth, "{kind} {engine} LID {from} to LID {to}");
        for (hop, verdict) in &trace.hops {
            match verdict {
                Verdict::Validated => validated += 1,
                Verdict::Observed {
                    by: Witness::CombinedRoute | Witness::Counters | Witness::Agent,
                } => {
                    own_route += 1;
                }
                Verdict::Observed { .. } | Verdict::Own => {}
                other => panic!("{kind} {engine} LID {from} to LID {to}: {hop:?} {other:?}"),
            }
        }
    }
    (validated, own_route)
}

#[test]
fn healthy_fabrics_have_good_paths_along_the_tables() {
    let engines = ["minhop", "updn", "ftree", "dor", "lash"];
    let mut total = (0, 0);
    for kind in [
        "fat-tree 4",
        "torus 3x3 hosts=1",
        "mesh 3x2 hosts=2",
        "xgft 3,4 1,2",
        "fat-tree 8 parallel=2",
    ] {
        for engine in engines {
            let (validated, own_route) = check_healthy(kind, engine, 200);
            total = (total.0 + validated, total.1 + own_route);
        }
    }
    assert!(total.0 > 0 && total.1 > 0, "{total:?}");
}

fn verdicts(trace: &Trace) -> Vec<&Verdict> {
    trace.hops.iter().map(|(_, verdict)| verdict).collect()
}

/// Returns the LID of the last host. This host is at another leaf switch than the local port.
fn far_host(lab: &Lab) -> u16 {
    *lab.host_lids().last().expect("the fabric has hosts")
}

/// The tracer compares SA records with the paths that packets take.
#[test]
fn swapped_cables_differ_from_the_sa_records() {
    let mut lab = Lab::new("fat-tree 4", "minhop", |_| true);
    let to = far_host(&lab);
    let path = lab.truth(lab.host_lids()[0], to);
    // Swaps two upward cables of the first switch. One of them is on the path.
    let (node, port) = path[2];
    let name = lab.sim.node_name(node).to_owned();
    let up = |&other: &u8| {
        let peer = lab.sim.find_port(node, other).and_then(|port| lab.sim.peer(port));
        other != port && peer.is_some_and(|peer| lab.sim.is_switch(lab.sim.place(peer).0))
    };
    let other = (1..=lab.ports(node)).find(up).expect("the switch has another upward port");
    lab.drop_traps();
    lab.command(&format!("Swap \"{name}\"[{port}] \"{name}\"[{other}]"));
    // A link that is not Active carries no data, so the path ends there.
    let trace = lab.trace_to(to).expect("the path is traced");
    let Stop::NotActive { port: stopped, .. } = trace.stop else { panic!("{trace:?}") };
    assert_eq!(stopped, port);
    for (near, far) in [(port, lab.peer_port(node, port)), (other, lab.peer_port(node, other))] {
        lab.activate(&[1], near);
        lab.activate(&[1, near], far);
    }
    lab.configure(|config| config.via = FactSource::SaRecords);
    let (traces, tracer) = lab.trace_with(&[(None, Target::Lid(to))]);
    let trace = traces[0].as_ref().expect("the SA has the path");
    let (hop, verdict) = trace.first_bad().expect("the fault is reported");
    assert_eq!((tracer.model().node(hop.from).guid, hop.out), (lab.guid(node), port));
    assert!(matches!(verdict, Verdict::OtherLink { .. }), "{trace:?}");
}

#[test]
fn ignored_table_write_differs_from_the_sa_records() {
    let mut lab = Lab::new("fat-tree 4", "minhop", |_| true);
    let to = far_host(&lab);
    let path = lab.truth(lab.host_lids()[0], to);
    let (node, port) = path[2];
    let (leaf, up) = (lab.sim.node_name(node).to_owned(), path[3]);
    let spine = lab.sim.node_name(up.0).to_owned();
    let (_, down) = path[4];
    lab.command(&format!("IgnoreLft \"{leaf}\" all"));
    // The link from the path's spine to the destination's leaf fails, and the SM routes around it. The first switch on
    // the path acknowledges its new table, but keeps the old one.
    lab.command(&format!("Unlink \"{spine}\"[{down}]"));
    lab.settle();
    lab.configure(|config| config.via = FactSource::SaRecords);
    let (traces, tracer) = lab.trace_with(&[(None, Target::Lid(to))]);
    let trace = traces[0].as_ref().expect("the SA has the path");
    assert_ne!(trace.hops[1].0.out, port, "the SA records have another path");
    let (hop, verdict) = trace.first_bad().expect("the fault is reported");
    assert_eq!(tracer.model().node(hop.from).guid, lab.guid(node));
    assert_eq!(*verdict, Verdict::OtherTable { holds: port });
    // With the nodes themselves as the source of facts, the trace shows the path that packets take.
    lab.configure(|config| config.via = FactSource::DirectedRoutes);
    let trace = lab.trace_to(to).expect("the path is traced");
    assert!(trace.is_good() && trace.hops[1].0.out == port, "{trace:?}");
}

#[test]
fn hops_without_agent_do_not_affect_others() {
    let mut lab = Lab::new("fat-tree 4", "minhop", |number| number % 2 == 0);
    let pairs: Vec<_> = lab.host_lids().into_iter().map(|lid| (None, Target::Lid(lid))).collect();
    let mut tally = (0, 0);
    for trace in lab.trace(&pairs) {
        let trace = trace.expect("the path is traced");
        assert!(trace.is_good(), "{trace:?}");
        for verdict in verdicts(&trace) {
            match verdict {
                Verdict::Validated => tally.0 += 1,
                Verdict::Observed { .. } => tally.1 += 1,
                Verdict::Own => {}
                other => panic!("{other:?}"),
            }
        }
    }
    assert!(tally.0 > 10 && tally.1 > 10, "{tally:?}");
}

#[test]
fn loss_causes_retries_only() {
    let mut lab = Lab::new("fat-tree 4", "minhop", |_| true);
    let port = lab.sim.node_name(lab.node_of_first_host()).to_owned();
    lab.command(&format!("Fault \"{port}\"[1] loss=0.1"));
    lab.configure(|config| config.timing.retries = 8);
    let pairs: Vec<_> = lab.host_lids().into_iter().map(|lid| (None, Target::Lid(lid))).collect();
    for trace in lab.trace(&pairs) {
        assert!(trace.as_ref().expect("the path is traced").is_good(), "{trace:?}");
    }
    assert!(lab.counters.traffic.retries > 0, "{:?}", lab.counters);
    assert_eq!(lab.counters.timeouts, 0, "{:?}", lab.counters);
}

/// Every link loses packets. The tracer still distinguishes a misrouted port from random loss.
#[test]
fn loss_on_all_links_changes_no_judgement() {
    let mut lab = Lab::new("xgft 3,3 1,3", "minhop", |_| true);
    let all = targets(&pairs(&lab.host_lids(), 100));
    let sound: Vec<_> =
        lab.trace(&all).into_iter().map(|it| it.expect("the path is traced").hops).collect();
    for name in lab.switch_names() {
        let node = lab.node(&name);
        for port in 1..=lab.ports(node) {
            lab.command(&format!("Fault \"{name}\"[{port}] loss=0.1"));
        }
    }
    lab.configure(|config| config.timing.retries = 1);
    let hops = |traces: Vec<lab::Traced>| -> Vec<_> {
        traces.into_iter().map(|it| it.expect("the path is traced").hops).collect()
    };
    let lossy = lab.trace(&all);
    assert!(lab.counters.traffic.retries > 50, "{:?}", lab.counters);
    assert!(lab.counters.timeouts > 2, "{:?}", lab.counters);
    // If a response was lost, a hop may be proven by another kind of probe, but the judgement is the same.
    let judged = |hops: &[Vec<(_, Verdict)>]| -> Vec<Judgement> {
        hops.iter().flatten().map(|(_, verdict)| verdict.judgement()).collect()
    };
    assert_eq!(judged(&hops(lossy)), judged(&sound));
    // Port 1 of this switch leads to a host. Responses to the local port do not take it, so none of them is misrouted.
    let name = lab.switch_names()[1].clone();
    lab.command(&format!("Misroute \"{name}\" 1 2"));
    let (traces, tracer) = lab.trace_with(&all);
    let misrouted = lab.guid(lab.node(&name));
    let bad: Vec<_> = traces
        .iter()
        .filter_map(|it| it.as_ref().expect("the path is traced").first_bad())
        .collect();
    assert!(!bad.is_empty());
    for (hop, verdict) in bad {
        assert_eq!((tracer.model().node(hop.from).guid, hop.out), (misrouted, 1), "{verdict:?}");
        assert!(
            matches!(verdict, Verdict::Misdirected { left: Some(PacketFate::Sent(2)), .. }),
            "{verdict:?}"
        );
    }
}

#[test]
fn forwarding_loop_is_reported() {
    let mut lab = Lab::new("torus 5 hosts=1", "minhop", |_| true);
    let to = lab.host_lids()[2];
    let names: Vec<String> = lab.switch_names();
    lab.drop_traps();
    // All switches of the ring forward packets in the same direction, so the packets loop.
    for name in &names {
        lab.write_entry(name, to, 1);
    }
    let trace = lab.trace_to(to).expect("the path is traced");
    let Stop::Loop { first } = trace.stop else { panic!("{trace:?}") };
    assert!(trace.hops.len() - first >= 2, "{trace:?}");
}

#[test]
fn wrong_and_malformed_responses_are_reported() {
    let mut lab = Lab::new("fat-tree 4", "minhop", |_| true);
    let to = far_host(&lab);
    // The source route in the response differs from the source route in the request.
    lab.corrupt(|datagram| {
        if datagram.mad.attribute_id() == AttributeId::SOURCE_ROUTE {
            datagram.mad.data_mut()[3] ^= 0x40;
        }
        true
    });
    let trace = lab.trace_to(to).expect("the path is traced");
    assert!(matches!(trace.first_bad(), Some((_, Verdict::Inconsistent { .. }))), "{trace:?}");
    // The agent returns field code 7 at bit 0 of the status, not at the position of the field code. It reports an
    // unexpected arrival port, but the SMA reports the expected one.
    lab.corrupt(|datagram| {
        if datagram.mad.attribute_id() == AttributeId::SOURCE_ROUTE {
            datagram.mad.set_status(MadStatus(7));
            datagram.mad.data_mut()[0] = 33;
        }
        true
    });
    let trace = lab.trace_to(to).expect("the path is traced");
    let bad = trace.first_bad().map(|(_, verdict)| verdict);
    assert!(matches!(bad, Some(Verdict::Inconsistent { .. })), "{trace:?}");
    // The lowest bit of status 7 is not meant as the Busy bit, so the tracer must not retry the request.
    assert_eq!(lab.counters.traffic.retries, 0, "{:?}", lab.counters);
    // The changed response states that the agent does not know the port at which the request arrived.
    lab.corrupt(|datagram| {
        if datagram.mad.attribute_id() == AttributeId::SOURCE_ROUTE {
            datagram.mad.data_mut()[0] = ib_tracer::UNKNOWN_PORT;
        }
        true
    });
    let trace = lab.trace_to(to).expect("the path is traced");
    assert!(trace.is_good() && !trace.is_validated(), "{trace:?}");
    let is_seen = |verdict: &&Verdict| matches!(verdict, Verdict::Observed { .. });
    assert!(verdicts(&trace).iter().all(is_seen), "{trace:?}");
}

#[test]
fn each_lid_of_a_port_has_its_own_path() {
    let lmc = Lmc::new(2).expect("the LMC is at most 7");
    let mut lab = Lab::with("fat-tree 4", "minhop", |_| true, |it| it.routing.lids.lmc = lmc);
    let (from, base) = (lab.host_lids()[0], far_host(&lab));
    let mut paths = BTreeSet::new();
    for lid in base..base + 4 {
        let (traces, tracer) = lab.trace_with(&[(None, Target::Lid(lid))]);
        let trace = traces[0].as_ref().expect("the path is traced");
        assert!(trace.is_validated(), "{trace:?}");
        let path: Vec<_> = trace
            .hops
            .iter()
            .flat_map(|(hop, _)| [(hop.from, hop.out), (hop.node, hop.enters)])
            .map(|(node, port)| (tracer.model().node(node).guid, port))
            .collect();
        let truth: Vec<_> =
            lab.truth(from, lid).into_iter().map(|(node, port)| (lab.guid(node), port)).collect();
        assert_eq!(path, truth, "{lid}");
        paths.insert(path);
    }
    assert!(paths.len() > 1, "the LIDs of a port have several paths");
    let trace = lab.trace_to(base + 4).expect("the path is traced");
    assert_ne!(trace.stop, Stop::Arrived);
}

#[test]
fn m_key_is_required_for_protected_nodes() {
    let key = |it: &mut SmConfig| (it.m_key, it.m_key_protection_level) = (0x1234, 2);
    let mut lab = Lab::with("fat-tree 4", "minhop", |_| true, key);
    let to = far_host(&lab);
    let error = lab.trace_to(to).expect_err("the M_Key hides PortInfo");
    assert!(matches!(&error, TraceError::NoOwnPort(why) if why.contains("--mkey")), "{error}");
    lab.configure(|config| config.m_key = 0x1234);
    assert!(lab.trace_to(to).expect("the path is traced").is_validated());
}

#[test]
fn dropped_service_level_differs_from_a_missing_agent() {
    let mut lab = Lab::new("fat-tree 4", "minhop", |_| true);
    let to = far_host(&lab);
    let path = lab.truth(lab.host_lids()[0], to);
    // The first switch on the path drops packets with service level 3, but only towards the destination.
    let (came_in, out) = (path[1].1, path[2].1);
    lab.drop_level(&[path[0].1], (came_in, out), 3);
    lab.configure(|config| config.sl = ServiceLevel::new(3).expect("the SL is at most 15"));
    let trace = lab.trace_to(to).expect("the path is traced");
    assert_eq!(trace.judgement(), Judgement::NotProven, "{trace:?}");
    let last = trace.hops.last().map(|hop| &hop.1);
    assert!(
        matches!(last, Some(Verdict::Suspected(why)) if why.reason == Reason::OtherLevel),
        "{trace:?}"
    );
    lab.configure(|config| config.sl = ServiceLevel::new(2).expect("the SL is at most 15"));
    assert!(lab.trace_to(to).expect("the path is traced").is_validated());
}

#[test]
fn paths_beyond_63_hops_are_reported() {
    let mut lab = Lab::new("mesh 70x1 hosts=1", "minhop", |_| true);
    // The SM discovers nodes up to 63 hops away, such as this host.
    let to = lab.host_lids()[50];
    assert!(lab.trace_to(to).expect("the path is traced").is_validated());
    lab.drop_traps();
    let names = lab.switch_names();
    let managed = lab.host_lids().iter().filter(|&&lid| lid != 0).count();
    for pair in names[50..=managed + 1].windows(2) {
        let port = lab.port_to(&pair[0], &pair[1]);
        lab.write_entry(&pair[0], to, port);
    }
    let trace = lab.trace_to(to).expect("the path is traced");
    assert!(matches!(trace.stop, Stop::TooFar { .. } | Stop::Unlinked { .. }), "{:?}", trace.stop);
    assert!(trace.hops.len() >= 62, "{}", trace.hops.len());
}

#[test]
fn random_responses_end_all_traces() {
    for seed in 0..60 {
        let mut lab = Lab::new("mesh 2x2 hosts=2", "minhop", |_| true);
        let mut rng = Rng::new(seed);
        lab.configure(|config| {
            config.timing.retries = 1;
            config.via =
                if seed % 2 == 0 { FactSource::DirectedRoutes } else { FactSource::SaRecords };
        });
        lab.corrupt(move |datagram| {
            for _ in 0..rng.below(4) {
                // The transaction ID is not changed, because the tracer ignores a response whose transaction ID belongs
                // to no request.
                let at = 24 + rng.below(232);
                datagram.mad.0[at] = rng.below(256) as u8;
            }
            true
        });
        let lids = lab.host_lids();
        let traces = lab.trace(&targets(&pairs(&lids, 60)));
        assert_eq!(traces.len(), pairs(&lids, 60).len());
        let _ = lab.trace_tree(0xc000);
    }
}
