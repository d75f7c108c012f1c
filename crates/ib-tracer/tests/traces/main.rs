//! Traces through simulated fabrics: healthy ones, where nobody may be accused, and lying ones.

mod lab;

use ib_tracer::{Stop, Target, Trace, Verdict};
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

/// Checks that ways are those of the tables and that nobody is accused; returns how many hops were
/// validated, and how many were not for want of a common link.
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
        let hops = trace.hops.iter().flat_map(|(hop, _)| {
            [(guid(hop.from), hop.out), (guid(hop.node), hop.enters)]
        });
        assert_eq!(hops.collect::<Vec<_>>(), truth, "{kind} {engine} {from} to {to}");
        for (hop, verdict) in &trace.hops {
            match verdict {
                Verdict::Validated => validated += 1,
                Verdict::OwnRouteOnly { .. } | Verdict::Own => own_route += 1,
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
    for kind in ["fat-tree 4", "torus 3x3 hosts=1", "mesh 3x2 hosts=2", "xgft 3,4 1,2"] {
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

#[test]
fn a_switch_that_forwards_otherwise_than_its_table_says_is_caught() {
    let mut lab = Lab::new("fat-tree 4", "minhop", |_| true);
    println!("{:?}", lab.lids());
    let to = *lab.host_lids().last().expect("hosts");
    let good = lab.trace_to(to).expect("a way");
    assert!(good.is_validated(), "{good:?}");
    println!("{:?}", verdicts(&good));
    assert_eq!(good.stop, Stop::Arrived);
}
