//! Traces through simulated fabrics: healthy ones, without any reported fault, and misrouted ones.

mod campaign;
mod hostile;
mod lab;
mod rows;
mod trials;
mod verdicts;

use std::collections::BTreeSet;

use ib_sm::SmConfig;
use ib_tracer::{
    BranchEnd, Judgement, Left, Reason, Stop, Target, Trace, TraceError, Verdict, Via, Witness,
};
use ib_types::rng::Rng;
use ib_types::{Gid, Guid, Lmc, PKey, QKey, ServiceLevel};
use ib_wire::mad::sa::{ComponentMask, JoinState, MCMemberRecord};
use ib_wire::mad::{AttributeId, MadStatus};
use lab::Lab;

/// Pairs of LIDs: all of them if they are few, else some of each.
fn pairs(lids: &[u16], most: usize) -> Vec<(u16, u16)> {
    let all = lids.iter().flat_map(|&from| lids.iter().map(move |&to| (from, to)));
    let all: Vec<(u16, u16)> = all.filter(|(from, to)| from != to).collect();
    let step = all.len().div_ceil(most).max(1);
    all.into_iter().step_by(step).collect()
}

fn targets(pairs: &[(u16, u16)]) -> Vec<(Option<Target>, Target)> {
    pairs.iter().map(|&(from, to)| (Some(Target::Lid(from)), Target::Lid(to))).collect()
}

/// Checks that paths match the tables and that no fault is reported. Returns the number of validated hops, and
/// of those that were not validated for lack of a common link.
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
                let end = lab.sim.end_port(node).expect("it has LIDs");
                (lab.sim.node_info(end).node_guid, port)
            })
            .collect();
        // The ports that the way leaves by and those that it enters by, in turn.
        let guid = |number| tracer.atlas().node(number).guid;
        let hops = trace
            .hops
            .iter()
            .flat_map(|(hop, _)| [(guid(hop.from), hop.out), (guid(hop.node), hop.enters)]);
        assert_eq!(hops.collect::<Vec<_>>(), truth, "{kind} {engine} {from} to {to}");
        for (hop, verdict) in &trace.hops {
            match verdict {
                Verdict::Validated => validated += 1,
                Verdict::Seen { by: Witness::Launch | Witness::Counters | Witness::Agent } => {
                    own_route += 1;
                }
                Verdict::Seen { .. } | Verdict::Own => {}
                other => panic!("{kind} {engine} {from} to {to}: {hop:?} {other:?}"),
            }
        }
    }
    (validated, own_route)
}

#[test]
fn healthy_fabrics_are_never_accused_and_ways_are_those_of_the_tables() {
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

/// Returns the way to the last host, which is on another leaf switch: names of its switches.
fn far_host(lab: &Lab) -> u16 {
    *lab.host_lids().last().expect("hosts")
}

/// Misroutes every port of every switch in turn. Paths over the port are proven bad, and no other port is
/// reported.
#[test]
fn a_switch_that_forwards_otherwise_than_its_table_says_is_caught() {
    let mut caught = 0;
    for kind in ["fat-tree 4", "mesh 3x2 hosts=2", "torus 3x3 hosts=1"] {
        let mut lab = Lab::new(kind, "minhop", |_| true);
        let to = far_host(&lab);
        let way: Vec<_> = lab.truth(lab.host_lids()[0], to);
        for (node, port) in way.into_iter().step_by(2) {
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
                let liar = lab.guid(node);
                let atlas = tracer.atlas();
                let (hop, verdict) = trace.first_bad().expect("somebody is named");
                assert_eq!((atlas.node(hop.from).guid, hop.out), (liar, port), "{kind} {trace:?}");
                let Verdict::Misdirected { actual, left } = *verdict else {
                    panic!("{kind} {name} {port} {other}: {verdict:?}")
                };
                assert_ne!(actual, Some(hop.enters));
                caught += usize::from(actual.is_some());
                // Where its counters can be had the port that it lies with is named.
                assert_eq!(left, lab.left(node, other), "{kind} {name} {port} {other}");
                lab.command(&format!("Misroute \"{name}\" none"));
            }
        }
        assert!(lab.trace_to(to).expect("a way").is_validated());
    }
    assert!(caught > 0);
}

/// SA records are compared with the behaviour of packets.
#[test]
fn cables_that_were_swapped_are_caught_by_what_the_manager_believes() {
    let mut lab = Lab::new("fat-tree 4", "minhop", |_| true);
    let to = far_host(&lab);
    let way = lab.truth(lab.host_lids()[0], to);
    // The first switch's cable on the way, and another one of its cables upwards.
    let (node, port) = way[2];
    let name = lab.sim.node_name(node).to_owned();
    let up = |&other: &u8| {
        let peer = lab.sim.find_port(node, other).and_then(|port| lab.sim.peer(port));
        other != port && peer.is_some_and(|peer| lab.sim.is_switch(lab.sim.place(peer).0))
    };
    let other = (1..=lab.ports(node)).find(up).expect("another way up");
    lab.deafen();
    lab.command(&format!("Swap \"{name}\"[{port}] \"{name}\"[{other}]"));
    // While nobody has brought the cables into service nothing passes them.
    let trace = lab.trace_to(to).expect("a trace");
    let Stop::NotActive { port: stopped, .. } = trace.stop else { panic!("{trace:?}") };
    assert_eq!(stopped, port);
    for (near, far) in [(port, lab.peer_port(node, port)), (other, lab.peer_port(node, other))] {
        lab.activate(&[1], near);
        lab.activate(&[1, near], far);
    }
    lab.configure(|config| config.via = Via::Administration);
    let (traces, tracer) = lab.trace_with(&[(None, Target::Lid(to))]);
    let trace = traces[0].as_ref().expect("records tell the way");
    let (hop, verdict) = trace.first_bad().expect("it is found out");
    assert_eq!((tracer.atlas().node(hop.from).guid, hop.out), (lab.guid(node), port));
    assert!(matches!(verdict, Verdict::OtherLink { .. }), "{trace:?}");
}

#[test]
fn a_table_that_was_acknowledged_and_not_written_is_caught() {
    let mut lab = Lab::new("fat-tree 4", "minhop", |_| true);
    let to = far_host(&lab);
    let way = lab.truth(lab.host_lids()[0], to);
    let (node, port) = way[2];
    let (leaf, up) = (lab.sim.node_name(node).to_owned(), way[3]);
    let spine = lab.sim.node_name(up.0).to_owned();
    let (_, down) = way[4];
    lab.command(&format!("IgnoreLft \"{leaf}\" all"));
    // The manager sends around a link further up, and the leaf says that it does, too.
    lab.command(&format!("Unlink \"{spine}\"[{down}]"));
    lab.settle();
    lab.configure(|config| config.via = Via::Administration);
    let (traces, tracer) = lab.trace_with(&[(None, Target::Lid(to))]);
    let trace = traces[0].as_ref().expect("records tell the way");
    assert_ne!(trace.hops[1].0.out, port, "the manager believes in another way");
    let (hop, verdict) = trace.first_bad().expect("it is found out");
    assert_eq!(tracer.atlas().node(hop.from).guid, lab.guid(node));
    assert_eq!(*verdict, Verdict::OtherTable { holds: port });
    // The nodes themselves tell which way packets go.
    lab.configure(|config| config.via = Via::DirectedRoutes);
    let trace = lab.trace_to(to).expect("a way");
    assert!(trace.is_good() && trace.hops[1].0.out == port, "{trace:?}");
}

#[test]
fn the_rest_is_validated_where_agents_are_missing() {
    let mut lab = Lab::new("fat-tree 4", "minhop", |number| number % 2 == 0);
    let pairs: Vec<_> = lab.host_lids().into_iter().map(|lid| (None, Target::Lid(lid))).collect();
    let mut tally = (0, 0);
    for trace in lab.trace(&pairs) {
        let trace = trace.expect("a way");
        assert!(trace.is_good(), "{trace:?}");
        for verdict in verdicts(&trace) {
            match verdict {
                Verdict::Validated => tally.0 += 1,
                Verdict::Seen { .. } => tally.1 += 1,
                Verdict::Own => {}
                other => panic!("{other:?}"),
            }
        }
    }
    assert!(tally.0 > 10 && tally.1 > 10, "{tally:?}");
}

#[test]
fn loss_costs_retries_and_no_answers() {
    let mut lab = Lab::new("fat-tree 4", "minhop", |_| true);
    let port = lab.sim.node_name(lab.node_of_first_host()).to_owned();
    lab.command(&format!("Fault \"{port}\"[1] loss=0.1"));
    lab.configure(|config| config.timing.retries = 8);
    let pairs: Vec<_> = lab.host_lids().into_iter().map(|lid| (None, Target::Lid(lid))).collect();
    for trace in lab.trace(&pairs) {
        assert!(trace.as_ref().expect("a way").is_good(), "{trace:?}");
    }
    assert!(lab.counters.traffic.retries > 0, "{:?}", lab.counters);
    assert_eq!(lab.counters.timeouts, 0, "{:?}", lab.counters);
}

/// Loss on every link: a misrouted port is still distinguished from random loss.
#[test]
fn loss_everywhere_changes_no_verdict() {
    let mut lab = Lab::new("xgft 3,3 1,3", "minhop", |_| true);
    let all = targets(&pairs(&lab.host_lids(), 100));
    let sound: Vec<_> = lab.trace(&all).into_iter().map(|it| it.expect("a way").hops).collect();
    for name in lab.switch_names() {
        let node = lab.node(&name);
        for port in 1..=lab.ports(node) {
            lab.command(&format!("Fault \"{name}\"[{port}] loss=0.1"));
        }
    }
    lab.configure(|config| config.timing.retries = 1);
    let hops = |traces: Vec<lab::Traced>| -> Vec<_> {
        traces.into_iter().map(|it| it.expect("a way").hops).collect()
    };
    let lossy = lab.trace(&all);
    assert!(lab.counters.traffic.retries > 50, "{:?}", lab.counters);
    assert!(lab.counters.timeouts > 2, "{:?}", lab.counters);
    // Another witness may have been lost, but the proof is the same.
    let judged = |hops: &[Vec<(_, Verdict)>]| -> Vec<Judgement> {
        hops.iter().flatten().map(|(_, verdict)| verdict.judgement()).collect()
    };
    assert_eq!(judged(&hops(lossy)), judged(&sound));
    // The liar is not on the way of answers to the own port.
    let name = lab.switch_names()[1].clone();
    lab.command(&format!("Misroute \"{name}\" 1 2"));
    let (traces, tracer) = lab.trace_with(&all);
    let liar = lab.guid(lab.node(&name));
    let bad: Vec<_> =
        traces.iter().filter_map(|it| it.as_ref().expect("a way").first_bad()).collect();
    assert!(!bad.is_empty());
    for (hop, verdict) in bad {
        assert_eq!((tracer.atlas().node(hop.from).guid, hop.out), (liar, 1), "{verdict:?}");
        assert!(
            matches!(verdict, Verdict::Misdirected { left: Some(Left::By(2)), .. }),
            "{verdict:?}"
        );
    }
}

#[test]
fn a_loop_in_the_tables_is_named() {
    let mut lab = Lab::new("torus 5 hosts=1", "minhop", |_| true);
    let to = lab.host_lids()[2];
    let names: Vec<String> = lab.switch_names();
    lab.deafen();
    // Everybody sends the same way round.
    for name in &names {
        lab.write_entry(name, to, 1);
    }
    let trace = lab.trace_to(to).expect("a trace");
    let Stop::Loop { first } = trace.stop else { panic!("{trace:?}") };
    assert!(trace.hops.len() - first >= 2, "{trace:?}");
}

#[test]
fn answers_of_wrong_nodes_and_malformed_ones_are_told() {
    let mut lab = Lab::new("fat-tree 4", "minhop", |_| true);
    let to = far_host(&lab);
    // The route in the answer is not the one that was asked.
    lab.spoil(|datagram| {
        if datagram.mad.attribute_id() == AttributeId::SOURCE_ROUTE {
            datagram.mad.data_mut()[3] ^= 0x40;
        }
        true
    });
    let trace = lab.trace_to(to).expect("a way");
    assert!(matches!(trace.first_bad(), Some((_, Verdict::Inconsistent { .. }))), "{trace:?}");
    // The bare code 7 is the error sign as well. Subnet management reports the expected port.
    lab.spoil(|datagram| {
        if datagram.mad.attribute_id() == AttributeId::SOURCE_ROUTE {
            datagram.mad.set_status(MadStatus(7));
            datagram.mad.data_mut()[0] = 33;
        }
        true
    });
    let trace = lab.trace_to(to).expect("a way");
    let bad = trace.first_bad().map(|(_, verdict)| verdict);
    assert!(matches!(bad, Some(Verdict::Inconsistent { .. })), "{trace:?}");
    // Its lowest bit does not mean that the agent is busy.
    assert_eq!(lab.counters.traffic.retries, 0, "{:?}", lab.counters);
    // An agent that does not know the port.
    lab.spoil(|datagram| {
        if datagram.mad.attribute_id() == AttributeId::SOURCE_ROUTE {
            datagram.mad.data_mut()[0] = ib_tracer::UNKNOWN_PORT;
        }
        true
    });
    let trace = lab.trace_to(to).expect("a way");
    assert!(trace.is_good() && !trace.is_validated(), "{trace:?}");
    let is_seen = |verdict: &&Verdict| matches!(verdict, Verdict::Seen { .. });
    assert!(verdicts(&trace).iter().all(is_seen), "{trace:?}");
}

#[test]
fn all_lids_of_a_port_are_traced_each_on_its_way() {
    let lmc = Lmc::new(2).expect("an LMC");
    let mut lab = Lab::with("fat-tree 4", "minhop", |_| true, |it| it.routing.lids.lmc = lmc);
    let (from, base) = (lab.host_lids()[0], far_host(&lab));
    let mut ways = BTreeSet::new();
    for lid in base..base + 4 {
        let (traces, tracer) = lab.trace_with(&[(None, Target::Lid(lid))]);
        let trace = traces[0].as_ref().expect("a way");
        assert!(trace.is_validated(), "{trace:?}");
        let way: Vec<_> = trace
            .hops
            .iter()
            .flat_map(|(hop, _)| [(hop.from, hop.out), (hop.node, hop.enters)])
            .map(|(node, port)| (tracer.atlas().node(node).guid, port))
            .collect();
        let truth: Vec<_> =
            lab.truth(from, lid).into_iter().map(|(node, port)| (lab.guid(node), port)).collect();
        assert_eq!(way, truth, "{lid}");
        ways.insert(way);
    }
    assert!(ways.len() > 1, "an LMC gives more than one way");
    let trace = lab.trace_to(base + 4).expect("a trace");
    assert_ne!(trace.stop, Stop::Arrived);
}

#[test]
fn nodes_that_ask_for_a_key_are_traced_with_it_and_told_without() {
    let key = |it: &mut SmConfig| (it.m_key, it.m_key_protection_level) = (0x1234, 2);
    let mut lab = Lab::with("fat-tree 4", "minhop", |_| true, key);
    let to = far_host(&lab);
    let error = lab.trace_to(to).expect_err("nothing is told");
    assert!(matches!(&error, TraceError::NoOwnPort(why) if why.contains("--mkey")), "{error}");
    lab.configure(|config| config.m_key = 0x1234);
    assert!(lab.trace_to(to).expect("a way").is_validated());
}

#[test]
fn a_level_that_does_not_get_there_is_told_from_a_missing_agent() {
    let mut lab = Lab::new("fat-tree 4", "minhop", |_| true);
    let to = far_host(&lab);
    let way = lab.truth(lab.host_lids()[0], to);
    // The first switch drops level 3 on the way up.
    let (came_in, out) = (way[1].1, way[2].1);
    lab.drop_level(&[way[0].1], (came_in, out), 3);
    lab.configure(|config| config.sl = ServiceLevel::new(3).expect("a level"));
    let trace = lab.trace_to(to).expect("a way");
    assert_eq!(trace.judgement(), Judgement::NotProven, "{trace:?}");
    let last = trace.hops.last().map(|hop| &hop.1);
    assert!(
        matches!(last, Some(Verdict::Suspected(why)) if why.reason == Reason::OtherLevel),
        "{trace:?}"
    );
    lab.configure(|config| config.sl = ServiceLevel::new(2).expect("a level"));
    assert!(lab.trace_to(to).expect("a way").is_validated());
}

/// Joins hosts to a new group; returns its LID and its GID.
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
fn the_tree_of_a_group_reaches_its_members_once() {
    for kind in ["fat-tree 4", "torus 3x3 hosts=1"] {
        let mut lab = Lab::new(kind, "minhop", |_| true);
        let members = [0, 2, 5, 7];
        let mlid = group(&mut lab, &members);
        let (tree, tracer) = lab.trace_tree(mlid);
        let tree = tree.expect("a tree");
        let found: Vec<Guid> = tree.deliveries(tracer.atlas()).into_keys().collect();
        let mut expected: Vec<Guid> =
            members[1..].iter().map(|&host| lab.host_gid(host).guid()).collect();
        expected.sort_unstable();
        assert_eq!(found, expected, "{kind}");
        assert!(tree.deliveries(tracer.atlas()).values().all(|&count| count == 1));
        assert_eq!(tree.doubles().count(), 0);
        for branch in &tree.branches {
            let known = matches!(branch.verdict, Verdict::Validated | Verdict::Seen { .. });
            assert!(known, "{kind} {branch:?}");
        }
    }
}

#[test]
fn members_that_a_spoilt_tree_misses_or_reaches_twice_are_seen() {
    let mut lab = Lab::new("torus 3x3 hosts=1", "minhop", |_| true);
    let mlid = group(&mut lab, &[0, 4, 8]);
    let (tree, tracer) = lab.trace_tree(mlid);
    let whole = tree.expect("a tree");
    let before = whole.deliveries(tracer.atlas());
    assert_eq!(before.len(), 2);
    // The first switch sends by all its ports: rings of switches get packets twice.
    let switch = whole.branches[0].hop.node;
    let guid = tracer.atlas().node(switch).guid;
    lab.spoil(move |datagram| {
        if datagram.mad.attribute_id() == AttributeId::MULTICAST_FORWARDING {
            datagram.mad.data_mut()[..64].fill(0xff);
        }
        true
    });
    let (tree, _) = lab.trace_tree(mlid);
    assert!(tree.expect("a tree").doubles().count() > 0, "{guid}");
    // It sends by none.
    lab.spoil(move |datagram| {
        if datagram.mad.attribute_id() == AttributeId::MULTICAST_FORWARDING {
            datagram.mad.data_mut()[..64].fill(0);
        }
        true
    });
    let (tree, tracer) = lab.trace_tree(mlid);
    let tree = tree.expect("a tree");
    assert!(tree.deliveries(tracer.atlas()).is_empty());
    assert_eq!(tree.branches.len(), 1);
    assert_eq!(tree.branches[0].end, BranchEnd::Sent(Vec::new()));
}

#[test]
fn ways_that_are_too_long_are_not_followed_for_ever() {
    let mut lab = Lab::new("mesh 70x1 hosts=1", "minhop", |_| true);
    // The manager itself comes no further than 63 hops.
    let to = lab.host_lids()[50];
    assert!(lab.trace_to(to).expect("a way").is_validated());
    lab.deafen();
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
fn whatever_is_answered_traces_end() {
    for seed in 0..60 {
        let mut lab = Lab::new("mesh 2x2 hosts=2", "minhop", |_| true);
        let mut rng = Rng::new(seed);
        lab.configure(|config| {
            config.timing.retries = 1;
            config.via = if seed % 2 == 0 { Via::DirectedRoutes } else { Via::Administration };
        });
        lab.spoil(move |datagram| {
            for _ in 0..rng.below(4) {
                // Not the transaction, which would only make it an answer to nobody.
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
fn only_ways_over_a_lying_port_are_accused() {
    let (mut caught, mut missed, mut unnamed, mut detours) = (0, 0, 0, 0);
    for (kind, via) in [
        ("xgft 3,3 1,3", Via::DirectedRoutes),
        ("xgft 3,3 1,3", Via::Administration),
        ("torus 3x3 hosts=1", Via::DirectedRoutes),
        ("mesh 3x2 hosts=2", Via::DirectedRoutes),
        ("xgft 2,3,2 1,2,2", Via::DirectedRoutes),
        ("fat-tree 8 parallel=2", Via::DirectedRoutes),
        ("fat-tree 8 parallel=2", Via::Administration),
    ] {
        let mut lab = Lab::new(kind, "minhop", |number| number % 3 != 1);
        lab.deafen();
        lab.configure(|config| config.via = via);
        for name in lab.switch_names() {
            let node = lab.node(&name);
            for port in 1..=lab.ports(node) {
                let other = if port == 1 { 2 } else { port - 1 };
                let all = pairs(&lab.host_lids(), 30);
                let uses: Vec<bool> = all
                    .iter()
                    .map(|&(from, to)| {
                        // Every other port is one that the way leaves by.
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
                    let guid = |number| tracer.atlas().node(number).guid;
                    let liar = (lab.guid(node), port);
                    match *verdict {
                        Verdict::Misdirected { left: Some(left), .. } => {
                            let (Left::By(by) | Left::Discarded(by) | Left::Dropped(by)) = left;
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
                    assert_eq!(liar, (guid(hop.from), hop.out), "{what}: {trace:?}");
                }
            }
        }
    }
    assert!(caught > 20 * missed, "{caught} caught, {missed} missed");
    // What arrives all the same, over a parallel cable or by another switch.
    assert!(detours > 10, "{detours} of {caught} arrive nevertheless");
    // Where even the counters of neighbours are out of reach.
    assert!(caught > 5 * unnamed, "{caught} caught, {unnamed} by an unknown port");
}

/// With `exact`, the port for the destination's own LID is proven, independently of agents and other LIDs.
#[test]
fn ways_are_proved_exactly_where_that_is_wanted() {
    for kind in ["fat-tree 8 parallel=2", "torus 3x3 hosts=1", "xgft 2,3,2 1,2,2"] {
        for via in [Via::DirectedRoutes, Via::Administration] {
            let mut lab = Lab::new(kind, "minhop", |_| true);
            lab.configure(|config| (config.via, config.exact) = (via, true));
            let all = pairs(&lab.host_lids(), 40);
            let (traces, tracer) = lab.trace_with(&targets(&all));
            for trace in traces {
                let trace = trace.expect("the tables can be read");
                assert!(trace.is_good(), "{kind} {via:?}: {trace:?}");
            }
            let launched = tracer.counters().traffic.sent;
            lab.configure(|config| (config.via, config.exact) = (via, false));
            let (_, tracer) = lab.trace_with(&targets(&all));
            let usual = tracer.counters().traffic.sent;
            assert!(launched > 2 * usual, "{kind} {via:?}: {launched} beside {usual}");
        }
    }
}
