//! Translates the result of a trace to ports and nodes of the simulator.

use ib_topology::NodeId;
use ib_tracer::{Hop, Judgement, NodeNumber, Stop, Tracer, Verdict};

use super::faults::peer;
use crate::lab::{Lab, Traced};

/// The verdict on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judged {
    Good,
    Bad,
    NotProven,
}

/// Both ends of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ports {
    pub(crate) from: (NodeId, u8),
    pub(crate) to: Option<(NodeId, u8)>,
}

/// A report of a fault by kind, with the port or node that is reported as faulty.
#[derive(Clone, Debug)]
pub(crate) enum Report {
    Forwarding { link: Ports },
    Inconsistent { link: Ports },
    Duplicate { link: Ports, what: String },
    Record { link: Ports },
    Cable { from: (NodeId, u8) },
    Table,
    Lid { node: NodeId },
}

/// The verdict and the fault reports of a trace, with the ports and nodes of the simulator.
pub(crate) struct Reading {
    pub(crate) called: Judged,
    pub(crate) reported: Vec<Report>,
}

/// Returns the node of the simulator to which the directed route of a traced node leads.
fn place(lab: &Lab, tracer: &Tracer, node: NodeNumber) -> NodeId {
    let route = &tracer.model().node(node).route;
    let own = lab.node_of_first_host();
    route.iter().fold(own, |node, &port| peer(lab, (node, port)).map_or(node, |(node, _)| node))
}

fn ports(lab: &Lab, tracer: &Tracer, hop: &Hop) -> Ports {
    let from = (place(lab, tracer, hop.from), hop.out);
    Ports { from, to: peer(lab, from) }
}

/// Translates the result of a trace to the ports and nodes of the simulator.
pub(crate) fn called(lab: &Lab, trace: &Traced, tracer: &Tracer) -> Reading {
    let Ok(trace) = trace else {
        return Reading { called: Judged::NotProven, reported: Vec::new() };
    };
    let called = match trace.judgement() {
        Judgement::ProvenGood => Judged::Good,
        Judgement::ProvenBad => Judged::Bad,
        Judgement::NotProven => Judged::NotProven,
    };
    let mut reported = Vec::new();
    for (hop, verdict) in &trace.hops {
        let link = ports(lab, tracer, hop);
        match verdict {
            Verdict::Misdirected { .. } | Verdict::Detour { .. } => {
                reported.push(Report::Forwarding { link });
            }
            Verdict::OtherLink { .. } | Verdict::OtherTable { .. } => {
                reported.push(Report::Record { link });
            }
            Verdict::Inconsistent { .. } => reported.push(Report::Inconsistent { link }),
            Verdict::Duplicate { what } => {
                reported.push(Report::Duplicate { link, what: what.clone() });
            }
            _ => {}
        }
    }
    match trace.stop {
        Stop::Unlinked { at, port, is_down: true, .. } | Stop::NotActive { at, port, .. } => {
            reported.push(Report::Cable { from: (place(lab, tracer, at), port) });
        }
        Stop::NoEntry { .. }
        | Stop::NotHere { .. }
        | Stop::NoSuchPort { .. }
        | Stop::Loop { .. } => {
            reported.push(Report::Table);
        }
        Stop::WrongPort { node, .. } => {
            reported.push(Report::Lid { node: place(lab, tracer, node) });
        }
        _ => {}
    }
    Reading { called, reported }
}
