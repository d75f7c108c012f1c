//! Evidence: derives proofs from the results of probes and censuses, and lists the probes on which a verdict is based.

use ib_types::Guid;

use super::Tracer;
use crate::census;
use crate::fabric_model::{Entry, Link};
use crate::observation::{Observation, Probe, Witness};
use crate::path::{Hop, NodeNumber, PacketFate};
use crate::probes::{CombinedResult, CombinedRoute};
use crate::trace::AgentState;

impl Tracer {
    /// Returns the probes on which the verdict on a hop of a path to this LID depends, and what was observed.
    #[must_use]
    pub fn evidence(&self, hop: &Hop, lid: u16) -> Vec<(Probe, Observation)> {
        let base = self.model.end((hop.node, hop.enters)).map_or(lid, |end| end.lid);
        let counted = self.counted.get(&(hop.from, hop.out)).map(|&(_, lid)| lid);
        let mut lids = vec![base];
        lids.extend([Some(lid), counted].into_iter().flatten().filter(|&it| it != base));
        lids.dedup();
        let from = hop.from;
        let mut found = Vec::new();
        for lid in lids {
            let probes = [
                Probe::Agent { lid },
                Probe::Management { lid },
                Probe::CombinedRoute { from, lid },
                Probe::Counters { from, lid },
            ];
            for probe in probes {
                let Some(known) = self.observations.get(probe) else { continue };
                let mut known = known.clone();
                if let Probe::CombinedRoute { .. } = probe
                    && let Some((sent, control_sent, control_answered)) =
                        self.trials.counts((from, lid))
                {
                    known.sent += sent;
                    (known.control_sent, known.control_answered) = (control_sent, control_answered);
                }
                found.push((probe, known));
            }
        }
        found
    }

    /// Resumes the traces that wait for a combined-route probe, its trial or its census.
    pub(super) fn end_combined(&mut self, combined_route: CombinedRoute) {
        if let Some(CombinedResult::At(guid, port)) = self.probes.combined_result(combined_route) {
            self.note_arrival(combined_route.1, guid, port, Witness::CombinedRoute);
        }
        self.ready.extend(self.combined_routes_wanted.remove(&combined_route).unwrap_or_default());
    }

    /// Records which node responded to the probes of a LID, and which port of a switch these responses prove good.
    pub(super) fn note_probe(&mut self, lid: u16) {
        let Some(Some(seen)) = self.probes.get(lid) else { return };
        let (agent, node) = (seen.agent.clone(), seen.node);
        let expected =
            self.probes.path(lid).and_then(|path| path.hops.last()).map(|hop| hop.enters);
        // The response of an agent does not identify its node, so a response of the SMA is needed as well.
        let Some((guid, arrival)) = node else { return };
        match agent {
            AgentState::Port(port) if Some(port) == expected && [0, port].contains(&arrival) => {
                self.note_arrival(lid, guid, port, Witness::Agent);
            }
            _ => self.note_arrival(lid, guid, arrival, Witness::Management),
        }
    }

    /// Records that a probe to a LID arrived at this port of the node with this GUID. If a switch is at the other end
    /// of the port's cable, and its table routes the LID over this cable, the arrival proves that the switch does so.
    fn note_arrival(&mut self, lid: u16, guid: Guid, port: u8, witness: Witness) {
        let is_it = |&&(node, number): &&(NodeNumber, u8)| {
            self.model.node(node).guid == guid
                && (self.model.node(node).kind.is_switch() || number == port)
        };
        let mut nodes = self.model.claimants(lid).iter().filter(is_it);
        let (Some(&(node, _)), None) = (nodes.next(), nodes.next()) else { return };
        self.observations.identify(node, lid);
        if witness == Witness::CombinedRoute {
            self.observations.note_responder(node);
        }
        let Some(&Link::To(before, out, _)) = self.model.node(node).links.get(&port) else {
            return;
        };
        let is_switch = self.model.node(before).kind.is_switch();
        if is_switch && matches!(self.model.entry(before, lid), Entry::Port(port) if port == out) {
            self.observations.prove((before, out), lid, witness);
        }
    }

    /// Records the result of a census. If the census found the port in the forwarding table, this port is proven good.
    pub(super) fn note_census(&mut self, (from, lid): CombinedRoute) {
        let Some(census::Outcome::Known(left)) = self.censuses.get((from, lid)) else { return };
        let observation = self.observations.entry(Probe::Counters { from, lid });
        (observation.sent, observation.left) = (self.censuses.sent((from, lid)), left);
        if let Some(PacketFate::Sent(port)) = left
            && matches!(self.model.entry(from, lid), Entry::Port(expected) if expected == port)
        {
            self.observations.prove((from, port), lid, Witness::Counters);
        }
    }
}
