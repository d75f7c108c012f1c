//! Traces through simulated fabrics with and without faults.

mod campaign;
mod hostile;
mod lab;
mod rows;
mod trials;
mod verdicts;

use std::collections::BTreeSet;

use ib_sm::SmConfig;
use ib_tracer::{
    BranchEnd, FactSource, Judgement, PacketFate, Reason, Stop, Target, Trace, TraceError, Verdict,
    Witness,
};
use ib_types::rng::Rng;
use ib_types::{Gid, Guid, Lmc, PKey, QKey, ServiceLevel};
use ib_wire::mad::sa::{ComponentMask, JoinState, MCMemberRecord};
use ib_wire::mad::{AttributeId, MadStatus};
use lab::Lab;

/// Returns at most `most` pairs of LIDs, evenly distributed over all pairs.
fn pairs(lids: &[u16], most: usize) -> Vec<(u16, u16)> {
    let all = lids.iter().flat_map(|&from| lids.iter().map(move |&to| (from, to)));
    let all: Vec<(u16, u16)> = all.filter(|(from, to)| from != to).collect();
    let step = all.len().div_ceil(most).max(1);
    all.into_iter().step_by(step).collect()
}

fn targets(pairs: &[(u16, u16)]) -> Vec<(Option<Target>, Target)> {
    pairs.iter().map(|&(from, to)| (Some(Target::Lid(from)), Target::Lid(to))).collect()
}

/// Checks that paths match the tables and that no fault is reported. Returns the number of
/// validated hops, and of those that were not validated because they have no link in common.
fn check_healthy(kind: &str, engine: &str, most: usize) -> (usize, usize) {
    let mut lab = Lab::new(kind, engine, |_| true);
    let pairs = pairs(&lab.host_lids(), most);
    let (traces, tracer) = lab.trace_with(&targets(&pairs));
    let (mut validated, mut own_route) = (0, 0);
    for (&(from, to), trace) in pairs.iter().zip(&traces) {
        let trace = trace.as_ref().unwrap_or_else(|error| panic!("{kind} {engine}: {error}"));
        assert!(trace.is_good(), "{kind} {engine} {from} to {to}: {trace:?}");
        let truth: Vec<_> = lab
            .truth(from, to)
            .into_iter()
            .map(|(node, port)| {
                let end = lab.sim.end_port(node).expect("the node has a port with LIDs");
                (lab.sim.node_info(end).node_guid, port)
            })
            .collect();
        // Egress and ingress ports, alternating.
        let guid = |number| tracer.model().node(number).guid;
        let hops = trace
            .hops
            .iter()
            .flat_map(|(hop, _)| [(guid(hop.from), hop.out), (guid(hop.node), hop.enters)]);
        assert_eq!(hops.collect::<Vec<_>>(), truth, "{kind} {engine} {from} to {to}");
        for (hop, verdict) in &trace.hops {
            match verdict {
                Verdict::Validated => validated += 1,
                Verdict::Observed {
                    by: Witness::CombinedRoute | Witness::Counters | Witness::Agent,
                } => {
                    own_route += 1;
                }
                Verdict::Observed { .. } | Verdict::Own => {}
                other => panic!("{kind} {engine} {from} to {to}: {hop:?} {other:?}"),
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

/// Returns the LID of the last host, which is at another leaf switch.
fn far_host(lab: &Lab) -> u16 {
    *lab.host_lids().last().expect("hosts")
}

/// Misroutes every port of every switch in turn. Paths over the port are proven bad, and no other
/// port is reported.
#[test]
fn misrouted_switch_ports_are_proven_bad() {
    let mut caught = 0;
    for kind in ["fat-tree 4", "mesh 3x2 hosts=2", "torus 3x3 hosts=1"] {
        let mut lab = Lab::new(kind, "minhop", |_| true);
        let to = far_host(&lab);
        let path: Vec<_> = lab.truth(lab.host_lids()[0], to);
        for (node, port) in path.into_iter().step_by(2) {
            if !lab.sim.is_switch(node) {
                continue;
            }
            let name = lab.sim.node_name(node).to_owned();
            for other in 1..=lab.ports(node) {
                if other == port {
                    continue;
                }
                lab.command(&format!("Misroute \"{name}\" {port} {other}"));
                let (traces, tracer) = lab.trace_with(&[(None, Target::Lid(to))]);
                let trace = traces[0].as_ref().expect("the tables can be read");
                assert!(!trace.is_good(), "{kind} {name} {port} {other}: {trace:?}");
                let misrouted = lab.guid(node);
                let model = tracer.model();
                let (hop, verdict) = trace.first_bad().expect("a port is reported");
                assert_eq!(
                    (model.node(hop.from).guid, hop.out),
                    (misrouted, port),
                    "{kind} {trace:?}"
                );
                let Verdict::Misdirected { actual, left } = *verdict else {
                    panic!("{kind} {name} {port} {other}: {verdict:?}")
                };
                assert_ne!(actual, Some(hop.enters));
                caught += usize::from(actual.is_some());
                // If its counters can be read, the actual egress port is reported.
                assert_eq!(left, lab.left(node, other), "{kind} {name} {port} {other}");
                lab.command(&format!("Misroute \"{name}\" none"));
            }
        }
        assert!(lab.trace_to(to).expect("a path").is_validated());
    }
    assert!(caught > 0);
}

/// SA records are compared with the behaviour of packets.
#[test]
fn swapped_cables_differ_from_the_sa_records() {
    let mut lab = Lab::new("fat-tree 4", "minhop", |_| true);
    let to = far_host(&lab);
    let path = lab.truth(lab.host_lids()[0], to);
    // The cable of the first switch on the path, and another of its upward cables.
    let (node, port) = path[2];
    let name = lab.sim.node_name(node).to_owned();
    let up = |&other: &u8| {
        let peer = lab.sim.find_port(node, other).and_then(|port| lab.sim.peer(port));
        other != port && peer.is_some_and(|peer| lab.sim.is_switch(lab.sim.place(peer).0))
    };
    let other = (1..=lab.ports(node)).find(up).expect("another upward port");
    lab.drop_traps();
    lab.command(&format!("Swap \"{name}\"[{port}] \"{name}\"[{other}]"));
    // Cables that are not Active carry no data.
    let trace = lab.trace_to(to).expect("a trace");
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
    // The SM routes around a link further up. The leaf acknowledges the write, but keeps its table.
    lab.command(&format!("Unlink \"{spine}\"[{down}]"));
    lab.settle();
    lab.configure(|config| config.via = FactSource::SaRecords);
    let (traces, tracer) = lab.trace_with(&[(None, Target::Lid(to))]);
    let trace = traces[0].as_ref().expect("the SA has the path");
    assert_ne!(trace.hops[1].0.out, port, "the SA records have another path");
    let (hop, verdict) = trace.first_bad().expect("the fault is reported");
    assert_eq!(tracer.model().node(hop.from).guid, lab.guid(node));
    assert_eq!(*verdict, Verdict::OtherTable { holds: port });
    // The nodes themselves report the path of packets.
    lab.configure(|config| config.via = FactSource::DirectedRoutes);
    let trace = lab.trace_to(to).expect("a path");
    assert!(trace.is_good() && trace.hops[1].0.out == port, "{trace:?}");
}

#[test]
fn hops_without_agent_do_not_affect_others() {
    let mut lab = Lab::new("fat-tree 4", "minhop", |number| number % 2 == 0);
    let pairs: Vec<_> = lab.host_lids().into_iter().map(|lid| (None, Target::Lid(lid))).collect();
    let mut tally = (0, 0);
    for trace in lab.trace(&pairs) {
        let trace = trace.expect("a path");
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
        assert!(trace.as_ref().expect("a path").is_good(), "{trace:?}");
    }
    assert!(lab.counters.traffic.retries > 0, "{:?}", lab.counters);
    assert_eq!(lab.counters.timeouts, 0, "{:?}", lab.counters);
}

/// Loss on every link: a misrouted port is still distinguished from random loss.
#[test]
fn loss_on_all_links_changes_no_judgement() {
    let mut lab = Lab::new("xgft 3,3 1,3", "minhop", |_| true);
    let all = targets(&pairs(&lab.host_lids(), 100));
    let sound: Vec<_> = lab.trace(&all).into_iter().map(|it| it.expect("a path").hops).collect();
    for name in lab.switch_names() {
        let node = lab.node(&name);
        for port in 1..=lab.ports(node) {
            lab.command(&format!("Fault \"{name}\"[{port}] loss=0.1"));
        }
    }
    lab.configure(|config| config.timing.retries = 1);
    let hops = |traces: Vec<lab::Traced>| -> Vec<_> {
        traces.into_iter().map(|it| it.expect("a path").hops).collect()
    };
    let lossy = lab.trace(&all);
    assert!(lab.counters.traffic.retries > 50, "{:?}", lab.counters);
    assert!(lab.counters.timeouts > 2, "{:?}", lab.counters);
    // The witness may differ if a response was lost, but the judgement is the same.
    let judged = |hops: &[Vec<(_, Verdict)>]| -> Vec<Judgement> {
        hops.iter().flatten().map(|(_, verdict)| verdict.judgement()).collect()
    };
    assert_eq!(judged(&hops(lossy)), judged(&sound));
    // The misrouted switch is not on the path of responses to the own port.
    let name = lab.switch_names()[1].clone();
    lab.command(&format!("Misroute \"{name}\" 1 2"));
    let (traces, tracer) = lab.trace_with(&all);
    let misrouted = lab.guid(lab.node(&name));
    let bad: Vec<_> =
        traces.iter().filter_map(|it| it.as_ref().expect("a path").first_bad()).collect();
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
    // All switches of the ring forward in the same direction.
    for name in &names {
        lab.write_entry(name, to, 1);
    }
    let trace = lab.trace_to(to).expect("a trace");
    let Stop::Loop { first } = trace.stop else { panic!("{trace:?}") };
    assert!(trace.hops.len() - first >= 2, "{trace:?}");
}

#[test]
fn wrong_and_malformed_responses_are_reported() {
    let mut lab = Lab::new("fat-tree 4", "minhop", |_| true);
    let to = far_host(&lab);
    // The source route in the response differs from the request.
    lab.corrupt(|datagram| {
        if datagram.mad.attribute_id() == AttributeId::SOURCE_ROUTE {
            datagram.mad.data_mut()[3] ^= 0x40;
        }
        true
    });
    let trace = lab.trace_to(to).expect("a path");
    assert!(matches!(trace.first_bad(), Some((_, Verdict::Inconsistent { .. }))), "{trace:?}");
    // The bare code 7 reports an unexpected port as well. The SMA reports the expected port.
    lab.corrupt(|datagram| {
        if datagram.mad.attribute_id() == AttributeId::SOURCE_ROUTE {
            datagram.mad.set_status(MadStatus(7));
            datagram.mad.data_mut()[0] = 33;
        }
        true
    });
    let trace = lab.trace_to(to).expect("a path");
    let bad = trace.first_bad().map(|(_, verdict)| verdict);
    assert!(matches!(bad, Some(Verdict::Inconsistent { .. })), "{trace:?}");
    // The lowest bit of code 7 is not the Busy bit.
    assert_eq!(lab.counters.traffic.retries, 0, "{:?}", lab.counters);
    // An agent that does not know the port.
    lab.corrupt(|datagram| {
        if datagram.mad.attribute_id() == AttributeId::SOURCE_ROUTE {
            datagram.mad.data_mut()[0] = ib_tracer::UNKNOWN_PORT;
        }
        true
    });
    let trace = lab.trace_to(to).expect("a path");
    assert!(trace.is_good() && !trace.is_validated(), "{trace:?}");
    let is_seen = |verdict: &&Verdict| matches!(verdict, Verdict::Observed { .. });
    assert!(verdicts(&trace).iter().all(is_seen), "{trace:?}");
}

#[test]
fn each_lid_of_a_port_has_its_own_path() {
    let lmc = Lmc::new(2).expect("an LMC");
    let mut lab = Lab::with("fat-tree 4", "minhop", |_| true, |it| it.routing.lids.lmc = lmc);
    let (from, base) = (lab.host_lids()[0], far_host(&lab));
    let mut paths = BTreeSet::new();
    for lid in base..base + 4 {
        let (traces, tracer) = lab.trace_with(&[(None, Target::Lid(lid))]);
        let trace = traces[0].as_ref().expect("a path");
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
    let trace = lab.trace_to(base + 4).expect("a trace");
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
    assert!(lab.trace_to(to).expect("a path").is_validated());
}

#[test]
fn dropped_service_level_differs_from_a_missing_agent() {
    let mut lab = Lab::new("fat-tree 4", "minhop", |_| true);
    let to = far_host(&lab);
    let path = lab.truth(lab.host_lids()[0], to);
    // The first switch drops service level 3 on the path upwards.
    let (came_in, out) = (path[1].1, path[2].1);
    lab.drop_level(&[path[0].1], (came_in, out), 3);
    lab.configure(|config| config.sl = ServiceLevel::new(3).expect("a level"));
    let trace = lab.trace_to(to).expect("a path");
    assert_eq!(trace.judgement(), Judgement::NotProven, "{trace:?}");
    let last = trace.hops.last().map(|hop| &hop.1);
    assert!(
        matches!(last, Some(Verdict::Suspected(why)) if why.reason == Reason::OtherLevel),
        "{trace:?}"
    );
    lab.configure(|config| config.sl = ServiceLevel::new(2).expect("a level"));
    assert!(lab.trace_to(to).expect("a path").is_validated());
}

/// Joins hosts to a new group. Returns its multicast LID.
fn group(lab: &mut Lab, hosts: &[usize]) -> u16 {
    let mut wanted = MCMemberRecord {
        q_key: QKey(0x1234),
        p_key: PKey::DEFAULT,
        join_state: JoinState::FULL_MEMBER,
        scope: 2,
        ..MCMemberRecord::zeroed()
    };
    for &host in hosts {
        wanted.port_gid = lab.host_gid(host);
        let new = wanted.mgid == Gid(0);
        let named: &[u8] = if new { &[1, 2, 6, 7, 12, 13, 15, 16] } else { &[0, 1, 16] };
        let answer = lab.join(host, ComponentMask::of(named), &wanted);
        (wanted.mgid, wanted.mlid) = (answer.mgid, answer.mlid);
    }
    lab.settle();
    wanted.mlid
}

#[test]
fn multicast_tree_reaches_each_member_once() {
    for kind in ["fat-tree 4", "torus 3x3 hosts=1"] {
        let mut lab = Lab::new(kind, "minhop", |_| true);
        let members = [0, 2, 5, 7];
        let mlid = group(&mut lab, &members);
        let (tree, tracer) = lab.trace_tree(mlid);
        let tree = tree.expect("a tree");
        let found: Vec<Guid> = tree.deliveries(tracer.model()).into_keys().collect();
        let mut expected: Vec<Guid> =
            members[1..].iter().map(|&host| lab.host_gid(host).guid()).collect();
        expected.sort_unstable();
        assert_eq!(found, expected, "{kind}");
        assert!(tree.deliveries(tracer.model()).values().all(|&count| count == 1));
        assert_eq!(tree.duplicates().count(), 0);
        for branch in &tree.branches {
            let known = matches!(branch.verdict, Verdict::Validated | Verdict::Observed { .. });
            assert!(known, "{kind} {branch:?}");
        }
    }
}

#[test]
fn wrong_multicast_tables_are_detected() {
    let mut lab = Lab::new("torus 3x3 hosts=1", "minhop", |_| true);
    let mlid = group(&mut lab, &[0, 4, 8]);
    let (tree, tracer) = lab.trace_tree(mlid);
    let whole = tree.expect("a tree");
    let before = whole.deliveries(tracer.model());
    assert_eq!(before.len(), 2);
    // The first switch sends by all its ports, so that rings of switches receive duplicates.
    let switch = whole.branches[0].hop.node;
    let guid = tracer.model().node(switch).guid;
    lab.corrupt(move |datagram| {
        if datagram.mad.attribute_id() == AttributeId::MULTICAST_FORWARDING {
            datagram.mad.data_mut()[..64].fill(0xff);
        }
        true
    });
    let (tree, _) = lab.trace_tree(mlid);
    assert!(tree.expect("a tree").duplicates().count() > 0, "{guid}");
    // The switch sends by no port.
    lab.corrupt(move |datagram| {
        if datagram.mad.attribute_id() == AttributeId::MULTICAST_FORWARDING {
            datagram.mad.data_mut()[..64].fill(0);
        }
        true
    });
    let (tree, tracer) = lab.trace_tree(mlid);
    let tree = tree.expect("a tree");
    assert!(tree.deliveries(tracer.model()).is_empty());
    assert_eq!(tree.branches.len(), 1);
    assert_eq!(tree.branches[0].end, BranchEnd::Sent(Vec::new()));
}

#[test]
fn paths_beyond_63_hops_are_reported() {
    let mut lab = Lab::new("mesh 70x1 hosts=1", "minhop", |_| true);
    // The SM itself reaches 63 hops at most.
    let to = lab.host_lids()[50];
    assert!(lab.trace_to(to).expect("a path").is_validated());
    lab.drop_traps();
    let names = lab.switch_names();
    let managed = lab.host_lids().iter().filter(|&&lid| lid != 0).count();
    for pair in names[50..=managed + 1].windows(2) {
        let port = lab.port_to(&pair[0], &pair[1]);
        lab.write_entry(&pair[0], to, port);
    }
    let trace = lab.trace_to(to).expect("a trace");
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
                // The transaction ID is kept, because a response without a request is ignored.
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

/// For any misrouted port of a switch, only paths over this port are proven bad, at this port, with and without SA
/// records.
#[test]
fn only_paths_over_a_misrouted_port_are_bad() {
    let (mut caught, mut missed, mut unnamed, mut detours) = (0, 0, 0, 0);
    for (kind, via) in [
        ("xgft 3,3 1,3", FactSource::DirectedRoutes),
        ("xgft 3,3 1,3", FactSource::SaRecords),
        ("torus 3x3 hosts=1", FactSource::DirectedRoutes),
        ("mesh 3x2 hosts=2", FactSource::DirectedRoutes),
        ("xgft 2,3,2 1,2,2", FactSource::DirectedRoutes),
        ("fat-tree 8 parallel=2", FactSource::DirectedRoutes),
        ("fat-tree 8 parallel=2", FactSource::SaRecords),
    ] {
        let mut lab = Lab::new(kind, "minhop", |number| number % 3 != 1);
        lab.drop_traps();
        lab.configure(|config| config.via = via);
        for name in lab.switch_names() {
            let node = lab.node(&name);
            for port in 1..=lab.ports(node) {
                let other = if port == 1 { 2 } else { port - 1 };
                let all = pairs(&lab.host_lids(), 30);
                let uses: Vec<bool> = all
                    .iter()
                    .map(|&(from, to)| {
                        // Every other port on the path is an egress port.
                        lab.truth(from, to).into_iter().step_by(2).any(|it| it == (node, port))
                    })
                    .collect();
                lab.command(&format!("Misroute \"{name}\" {port} {other}"));
                let (traces, tracer) = lab.trace_with(&targets(&all));
                lab.command(&format!("Misroute \"{name}\" none"));
                for ((&(from, to), uses), trace) in all.iter().zip(uses).zip(traces) {
                    let Ok(trace) = trace else { continue };
                    let what = format!("{kind} {via:?} {name} {port}->{other} {from} to {to}");
                    let Some((hop, verdict)) = trace.first_bad() else {
                        assert!(
                            !uses || trace.judgement() == Judgement::NotProven,
                            "{what}: {trace:?}"
                        );
                        missed += usize::from(uses);
                        continue;
                    };
                    caught += 1;
                    let guid = |number| tracer.model().node(number).guid;
                    let misrouted = (lab.guid(node), port);
                    match *verdict {
                        Verdict::Misdirected { left: Some(left), .. } => {
                            let (PacketFate::Sent(by)
                            | PacketFate::Discarded(by)
                            | PacketFate::Dropped(by)) = left;
                            assert_eq!(by, other, "{what}: {trace:?}");
                        }
                        Verdict::Detour { by } => {
                            assert_eq!(by, other, "{what}: {trace:?}");
                            detours += 1;
                        }
                        Verdict::Misdirected { left: None, .. } => unnamed += 1,
                        _ => {}
                    }
                    assert!(uses, "{what}: {trace:?}");
                    assert_eq!(misrouted, (guid(hop.from), hop.out), "{what}: {trace:?}");
                }
            }
        }
    }
    assert!(caught > 20 * missed, "{caught} caught, {missed} missed");
    // Packets that arrive nevertheless, over a parallel cable or by another switch.
    assert!(detours > 10, "{detours} of {caught} arrive");
    // Cases in which not even the counters of neighbours can be read.
    assert!(caught > 5 * unnamed, "{caught} caught, {unnamed} by an unknown port");
}

/// With `exact`, the port for the destination's own LID is proven, independently of agents and other LIDs.
#[test]
fn exact_traces_prove_the_port_of_the_lid() {
    for kind in ["fat-tree 8 parallel=2", "torus 3x3 hosts=1", "xgft 2,3,2 1,2,2"] {
        for via in [FactSource::DirectedRoutes, FactSource::SaRecords] {
            let mut lab = Lab::new(kind, "minhop", |_| true);
            lab.configure(|config| (config.via, config.exact) = (via, true));
            let all = pairs(&lab.host_lids(), 40);
            let (traces, tracer) = lab.trace_with(&targets(&all));
            for trace in traces {
                let trace = trace.expect("the tables can be read");
                assert!(trace.is_good(), "{kind} {via:?}: {trace:?}");
            }
            let combined_result = tracer.counters().traffic.sent;
            lab.configure(|config| (config.via, config.exact) = (via, false));
            let (_, tracer) = lab.trace_with(&targets(&all));
            let usual = tracer.counters().traffic.sent;
            assert!(
                combined_result > 2 * usual,
                "{kind} {via:?}: {combined_result} probes with `exact`, {usual} without"
            );
        }
    }
}
