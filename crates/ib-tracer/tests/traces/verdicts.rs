//! Translates the verdicts of a trace to ports and nodes of the fabric.

use std::collections::BTreeSet;

use ib_tracer::{Component, Judgement, Stop, Tracer, Verdict};
use ib_types::Guid;

use crate::lab::Traced;

/// The judgement of a trace on its path, and the ports and nodes that the trace reports or suspects.
pub(crate) struct Judged {
    /// True if the path is proven good, false if it is proven bad, `None` if neither is proven.
    pub(crate) good: Option<bool>,
    /// The ports that are reported as faulty.
    pub(crate) ports: BTreeSet<(Guid, u8)>,
    /// The nodes that are reported as faulty.
    pub(crate) nodes: BTreeSet<Guid>,
    /// The suspected ports. If the port number is `None`, the whole node is suspected.
    pub(crate) suspects: BTreeSet<(Guid, Option<u8>)>,
}

pub(crate) fn judged(trace: &Traced, tracer: &Tracer) -> Judged {
    let mut judged = Judged {
        good: None,
        ports: BTreeSet::new(),
        nodes: BTreeSet::new(),
        suspects: BTreeSet::new(),
    };
    let model = tracer.model();
    let guid = |node| model.node(node).guid;
    let Ok(trace) = trace else { return judged };
    judged.good = match trace.judgement() {
        Judgement::ProvenGood => Some(true),
        Judgement::ProvenBad => Some(false),
        Judgement::NotProven => None,
    };
    for (hop, verdict) in &trace.hops {
        match verdict {
            Verdict::Misdirected { .. }
            | Verdict::Detour { .. }
            | Verdict::OtherLink { .. }
            | Verdict::OtherTable { .. } => {
                judged.ports.insert((guid(hop.from), hop.out));
            }
            Verdict::Inconsistent { .. } | Verdict::Duplicate { .. } => {
                judged.nodes.extend([guid(hop.node), guid(hop.from)]);
            }
            Verdict::Suspected(why) => {
                judged.suspects.extend(why.suspects.iter().map(|suspect| match *suspect {
                    Component::Forwarding(node, port) | Component::Cable(node, port) => {
                        (guid(node), Some(port))
                    }
                    Component::Identity(node)
                    | Component::Relay(node)
                    | Component::Responder(node) => (guid(node), None),
                }));
            }
            _ => {}
        }
    }
    if trace.first_bad().is_none() {
        match trace.stop {
            Stop::Unlinked { at, port, is_down: true, .. } | Stop::NotActive { at, port, .. } => {
                judged.ports.insert((guid(at), port));
            }
            Stop::Unlinked { at, port, .. } => drop(judged.suspects.insert((guid(at), Some(port)))),
            Stop::WrongPort { node, .. } => {
                judged.nodes.insert(guid(node));
                judged.nodes.extend(trace.hops.last().map(|(hop, _)| guid(hop.from)));
            }
            Stop::NoEntry { at } | Stop::NotHere { at } | Stop::NoSuchPort { at, .. } => {
                judged.nodes.insert(guid(at));
            }
            _ => {}
        }
    }
    judged
}
