//! Tests with misleading observations: other traffic, tables that change, nodes that do not answer
//! combined-route probes, and agents that repeat the expected port.

use std::collections::BTreeSet;
use std::time::Duration;

use ib_link::Datagram;
use ib_topology::NodeId;
use ib_tracer::{Judgement, Target, Trace, Tracer, Verdict};
use ib_wire::mad::sm::LinearForwardingBlock;
use ib_wire::mad::vendor::SourceRoute;
use ib_wire::mad::{AttributeId, MadStatus, MgmtClass, smp};

use crate::lab::Lab;
use crate::{far_host, pairs, targets};

fn trace_all(lab: &mut Lab, most: usize) -> (Vec<Trace>, Tracer) {
    let all = pairs(&lab.host_lids(), most);
    let (traces, tracer) = lab.trace_with(&targets(&all));
    (traces.into_iter().filter_map(Result::ok).collect(), tracer)
}

/// Returns the hops that are reported as faulty: node name, egress port, and verdict.
fn reported(lab: &Lab, (traces, tracer): &(Vec<Trace>, Tracer)) -> BTreeSet<(String, u8, String)> {
    let name = |guid| {
        let mut nodes = lab.sim.node_ids();
        let node = nodes.find(|&node| lab.guid(node) == guid);
        node.map_or_else(String::new, |node| lab.sim.node_name(node).to_owned())
    };
    let hops = traces.iter().flat_map(|trace| &trace.hops);
    hops.filter(|(_, verdict)| verdict.is_bad())
        .map(|(hop, verdict)| {
            (name(tracer.model().node(hop.from).guid), hop.out, format!("{verdict:?}"))
        })
        .collect()
}

/// Returns the LID to which a combined-route probe was sent, for a response to such a probe. Returns `None` for other
/// datagrams.
fn combined_result(datagram: &Datagram) -> Option<u16> {
    let mad = &datagram.mad;
    let is_combined = mad.class() == MgmtClass::SUBN_DIRECTED_ROUTE
        && mad.dr_slid() == smp::PERMISSIVE_LID
        && mad.dr_dlid() != smp::PERMISSIVE_LID;
    is_combined.then(|| mad.dr_dlid())
}

fn host(lab: &Lab, number: usize) -> NodeId {
    let mut hosts = lab.sim.node_ids().filter(|&node| !lab.sim.is_switch(node));
    hosts.nth(number).expect("the fabric has a host with this number")
}

/// In this fabric, one switch does not respond to combined-route probes.
#[test]
fn node_without_combined_route_responses_is_not_a_switch_fault() {
    for silent in 0..6 {
        let mut lab = Lab::new("xgft 3,3 1,3", "minhop", |_| false);
        let node = lab.node(&lab.switch_names()[silent]);
        let lid = lab.lid(node);
        lab.corrupt(move |datagram| {
            combined_result(datagram) != Some(lid) && datagram.mad.class() != MgmtClass::PERFORMANCE
        });
        let found = trace_all(&mut lab, 100);
        assert_eq!(reported(&lab, &found), BTreeSet::new());
    }
}

/// A switch misroutes packets for the destination to another host that has the same LID.
#[test]
fn destination_is_proven_by_its_guid() {
    let mut lab = Lab::new("xgft 3,3 1,3", "minhop", |_| true);
    lab.drop_traps();
    let (near, other) = (host(&lab, 4), host(&lab, 5));
    let lid = lab.lid(near);
    let names = [near, other].map(|node| lab.sim.node_name(node).to_owned());
    let leaf = lab.sim.place(
        lab.sim
            .peer(lab.sim.end_port(near).expect("the host has a port"))
            .expect("the port has a cable"),
    );
    let leaf_name = lab.sim.node_name(leaf.0).to_owned();
    let to = lab.port_to(&leaf_name, &names[1]);
    lab.command(&format!("Baselid \"{}\"[1] {lid}", names[1]));
    lab.command(&format!("Misroute \"{leaf_name}\" {} {to}", leaf.1));
    let trace = lab.trace_to(lid).expect("the path is traced");
    assert_ne!(trace.judgement(), Judgement::ProvenGood, "{trace:?}");
}

/// An agent puts the expected port into its response, no matter at which port the request arrived.
#[test]
fn agent_that_repeats_the_expected_port_does_not_validate() {
    let mut found = 0;
    for (port, other) in (2..=5).flat_map(|port| (2..=5).map(move |other| (port, other))) {
        if port == other {
            continue;
        }
        let mut lab = Lab::new("torus 3x3 hosts=1", "minhop", |_| true);
        lab.drop_traps();
        lab.corrupt(|datagram| {
            let mad = &mut datagram.mad;
            if mad.class() == MgmtClass::TRACER
                && mad.attribute_id() == AttributeId::SOURCE_ROUTE
                && let Some(mut route) = mad.attribute::<SourceRoute>()
            {
                route.incoming_port = route.ports[usize::from(route.hop_count.max(1)) - 1];
                mad.set_status(MadStatus::OK);
                mad.set_attribute(&route);
            }
            true
        });
        let first = lab.switch_names()[0].clone();
        if !lab.try_command(&format!("Misroute \"{first}\" {port} {other}")) {
            continue;
        }
        let guid = lab.guid(lab.node(&first));
        let (traces, tracer) = trace_all(&mut lab, 100);
        for trace in traces {
            let over = trace
                .hops
                .iter()
                .any(|(hop, _)| (tracer.model().node(hop.from).guid, hop.out) == (guid, port));
            assert!(!over || !trace.is_good(), "port {port}->{other}: {trace:?}");
            let named = |verdict: &Verdict| matches!(verdict, Verdict::Inconsistent { .. });
            found += trace.hops.iter().filter(|(_, verdict)| named(verdict)).count();
        }
    }
    assert!(found > 0);
}

/// The SM changes a forwarding table after the tracer has read it.
#[test]
fn table_changed_during_a_trace_is_not_reported_as_a_fault() {
    for number in 0..6 {
        let mut lab = Lab::new("xgft 3,3 1,3", "minhop", |_| true);
        let name = lab.switch_names()[number].clone();
        let route: Vec<u8> = match number {
            0 => vec![1],
            number if number < 3 => vec![1, 4, number as u8 + 1],
            number => vec![1, number as u8 + 1],
        };
        let mut reads = 0;
        lab.corrupt(move |datagram| {
            let mad = &mut datagram.mad;
            let is_it = mad.attribute_id() == AttributeId::LINEAR_FORWARDING
                && mad.class() == MgmtClass::SUBN_DIRECTED_ROUTE
                && mad.initial_path()[1..=usize::from(mad.hop_count())] == route;
            if is_it {
                reads += 1;
                if reads == 1
                    && let Some(mut block) = mad.attribute::<LinearForwardingBlock>()
                {
                    // The first response contains the table with permuted upward ports, 4 to 6. Later responses
                    // contain the actual table.
                    for port in &mut block.ports {
                        if (4..=6).contains(port) {
                            *port = (*port - 3) % 3 + 4;
                        }
                    }
                    mad.set_attribute(&block);
                }
            }
            true
        });
        let found = trace_all(&mut lab, 100);
        assert_eq!(reported(&lab, &found), BTreeSet::new(), "{name}");
        for trace in &found.0 {
            assert_ne!(trace.judgement(), Judgement::ProvenBad, "{name}: {trace:?}");
        }
    }
}

/// While the tracer reads port counters, other traffic passes these ports, steadily or in bursts.
#[test]
fn other_traffic_is_not_reported_as_a_port_fault() {
    let mut checked = 0;
    for seed in 0..36_usize {
        let kind = ["xgft 3,3 1,3", "fat-tree 8 parallel=2 leaves=4", "mesh 3x2 hosts=2"][seed % 3];
        let mut lab = Lab::new(kind, "minhop", |number| number % 3 == 0);
        lab.drop_traps();
        let hosts = lab.host_lids();
        let (from, to) =
            (host(&lab, 1 + seed % (hosts.len() - 1)), hosts[(seed * 7 + 3) % hosts.len()]);
        let (period, counts): (u64, &[u32]) =
            [(9, &[60, 0, 0, 160][..]), (2, &[9, 9, 9]), (20, &[30, 400, 1]), (5, &[1, 30, 70])]
                [seed / 3 % 4];
        lab.send_traffic((from, to), Duration::from_millis(period), counts);
        // The responses of one switch to combined-route probes are dropped, so the tracer has to read counters.
        let lids: Vec<u16> = lab.switch_names().iter().map(|it| lab.lid(lab.node(it))).collect();
        let silent = lids[seed % lids.len()];
        if seed % 2 == 0 {
            lab.corrupt(move |datagram| combined_result(datagram) != Some(silent));
        }
        let found = trace_all(&mut lab, 60);
        assert_eq!(reported(&lab, &found), BTreeSet::new(), "seed {seed}, {kind}");
        checked += found.0.len();
    }
    assert!(checked > 0);
}

/// A switch, whose 64-bit counters cannot be read, misroutes the packets for one of its ports. Other traffic must not
/// make this port appear good.
#[test]
fn other_traffic_proves_no_port_good() {
    for seed in 0..4_u8 {
        let mut lab = Lab::new("fat-tree 8 parallel=2 leaves=4", "minhop", |_| false);
        lab.drop_traps();
        let names = lab.switch_names();
        let name = names[usize::from(seed) % names.len()].clone();
        let node = lab.node(&name);
        let ports = lab.ports(node);
        let port = seed % ports + 1;
        let hosts = lab.host_lids();
        // The switch sends packets for `port` out of the next port. It does not answer requests for
        // PortCountersExtended.
        lab.command(&format!("Misroute \"{name}\" {port} {}", port % ports + 1));
        lab.command(&format!("Error \"{name}\"[0] 100 PortCountersExtended"));
        let from = host(&lab, 3);
        lab.send_traffic((from, hosts[5]), Duration::from_millis(9), &[60, 0, 0, 200]);
        let guid = lab.guid(node);
        let (traces, tracer) = trace_all(&mut lab, 60);
        for trace in traces {
            let over = trace
                .hops
                .iter()
                .any(|(hop, _)| (tracer.model().node(hop.from).guid, hop.out) == (guid, port));
            assert!(!over || !trace.is_good(), "seed {seed}: {trace:?}");
            for (hop, verdict) in trace.hops.iter().filter(|(_, verdict)| verdict.is_bad()) {
                let place = (tracer.model().node(hop.from).guid, hop.out);
                assert_eq!(place, (guid, port), "seed {seed}: {verdict:?}");
            }
        }
    }
}

/// The last hop of a good path is proven by the agent of the destination.
#[test]
fn status_of_a_good_path_rests_on_its_destination() {
    let mut lab = Lab::new("fat-tree 4", "minhop", |_| true);
    let to = far_host(&lab);
    let trace = lab.trace(&[(None, Target::Lid(to))]).remove(0).expect("the path is traced");
    assert!(matches!(trace.hops.last(), Some((_, Verdict::Validated))));
}
