//! Fault model: the components that the response to a combined-route probe depends on.
//!
//! A combined-route probe is answered if
//!
//! * the cables carry SMPs in both directions,
//! * every switch on the path of the request and of the response forwards by its table,
//! * the destination node and the switch that is reached by directed route have the LIDs that they report,
//! * this switch relays combined-route probes, and
//! * the destination node answers combined-route probes.
//!
//! Packet loss is not modelled here; see [`trial`](crate::trial).

use std::collections::BTreeSet;

use crate::fabric_model::Fact;
use crate::fabric_model::{FabricModel, WalkResult};
use crate::observation::Observations;
use crate::path::{Hop, Stop};
use crate::probes::CombinedRoute;
use crate::trace::Component;

/// The components of which at least one is faulty if a combined-route probe is not answered.
#[derive(Debug, Default)]
pub(crate) struct Conflict {
    /// The components on which the probe and its response depend, except those that are proven good.
    pub(crate) members: BTreeSet<Component>,
    /// The hops of the response that leave a switch, each with its [`Component::Forwarding`].
    pub(crate) answer: Vec<(Component, Hop)>,
}

/// Returns the conflict of a probe that is not answered. Fails with a fact that has to be queried first.
pub(crate) fn conflict(
    model: &FabricModel,
    observations: &Observations,
    (from, lid): CombinedRoute,
) -> Result<Conflict, Fact> {
    let mut conflict = Conflict::default();
    let walk = |start, lid| match model.walk(start, lid) {
        WalkResult::Needs(fact) => Err(fact),
        WalkResult::Ended(path) => Ok(path),
    };
    let question = walk((from, 0), lid)?;
    let links = question.hops.iter().filter(|hop| model.node(hop.from).kind.is_switch());
    conflict.members.extend(links.map(|hop| Component::Forwarding(hop.from, hop.out)));
    if !observations.relays(from) {
        conflict.members.insert(Component::Relay(from));
    }
    let own = model.end((from, 0)).map_or(0, |end| end.lid);
    if !observations.is_identified(from, own) {
        conflict.members.insert(Component::Identity(from));
    }
    if let Some(last) = question.hops.last() {
        if !observations.is_identified(last.node, lid) {
            conflict.members.insert(Component::Identity(last.node));
        }
        if !observations.responds(last.node) {
            conflict.members.insert(Component::Responder(last.node));
        }
        let answer = walk((last.node, last.enters), own)?;
        let arrives_at = answer.hops.last().map_or(last.node, |hop| hop.node);
        if answer.stop != Stop::Arrived || arrives_at != from {
            // According to the tables no response can arrive, perhaps because a second node has the LID of the switch.
            // So the identity of the switch is a suspect, and the missing response proves no other component faulty.
            conflict.members.insert(Component::Identity(from));
        }
        for hop in answer.hops {
            if model.node(hop.from).kind.is_switch() {
                conflict.answer.push((Component::Forwarding(hop.from, hop.out), hop));
            }
        }
    }
    conflict.members.extend(conflict.answer.iter().map(|(component, _)| *component));
    conflict.members.retain(|component| match *component {
        Component::Forwarding(node, port) => observations.proven((node, port)).is_none(),
        Component::Identity(_)
        | Component::Relay(_)
        | Component::Responder(_)
        | Component::Cable(..) => true,
    });
    Ok(conflict)
}
