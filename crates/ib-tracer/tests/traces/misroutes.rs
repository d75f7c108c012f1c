//! Paths over misrouted ports.

use ib_tracer::{FactSource, Judgement, PacketFate, Target, Verdict};

use crate::lab::Lab;
use crate::{far_host, pairs, targets};

/// Misroutes the egress ports of the switches on a path, one at a time. The path is proven bad, and no other port is
/// reported.
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
                assert!(!trace.is_good(), "{kind} {name} port {port}->{other}: {trace:?}");
                let misrouted = lab.guid(node);
                let model = tracer.model();
                let (hop, verdict) = trace.first_bad().expect("a port is reported");
                assert_eq!(
                    (model.node(hop.from).guid, hop.out),
                    (misrouted, port),
                    "{kind} {trace:?}"
                );
                let Verdict::Misdirected { actual, left } = *verdict else {
                    panic!("{kind} {name} port {port}->{other}: {verdict:?}")
                };
                assert_ne!(actual, Some(hop.enters));
                caught += usize::from(actual.is_some());
                // The counters of the switch show the actual egress port.
                assert_eq!(left, lab.left(node, other), "{kind} {name} port {port}->{other}");
                lab.command(&format!("Misroute \"{name}\" none"));
            }
        }
        assert!(lab.trace_to(to).expect("the trace succeeds").is_validated());
    }
    assert!(caught > 0);
}

/// Misroutes all ports of all switches, one at a time. Only paths over the misrouted port are proven bad, and only at
/// this port. This holds with and without SA records.
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
                        // Every second port of the path, beginning with the first, is an egress port.
                        lab.truth(from, to).into_iter().step_by(2).any(|it| it == (node, port))
                    })
                    .collect();
                lab.command(&format!("Misroute \"{name}\" {port} {other}"));
                let (traces, tracer) = lab.trace_with(&targets(&all));
                lab.command(&format!("Misroute \"{name}\" none"));
                for ((&(from, to), uses), trace) in all.iter().zip(uses).zip(traces) {
                    let Ok(trace) = trace else { continue };
                    let what =
                        format!("{kind} {via:?} {name} port {port}->{other}, LID {from} to {to}");
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
    assert!(caught > 20 * missed, "{caught} bad paths reported, {missed} missed");
    // Some of the misrouted packets arrive nevertheless, over a parallel cable or another switch.
    assert!(detours > 10, "{detours} of {caught} bad paths arrive");
    // In fewer than a fifth of the bad verdicts, the actual egress port is unknown.
    assert!(caught > 5 * unnamed, "{caught} bad verdicts, {unnamed} with an unknown egress port");
}

/// With `exact`, the tracer reads the counters of each switch to check its egress port for the destination's LID, even
/// if agents or other probes prove the hop. A trace then needs more than twice as many MADs.
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
                "{kind} {via:?}: {combined_result} MADs with `exact`, {usual} without"
            );
        }
    }
}
