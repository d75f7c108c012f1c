//! Observations: the probes that were sent, the number of responses, and the arrival ports.
//!
//! An observation is a measured fact. SA records are only claims, and are stored separately.

use std::collections::{BTreeMap, BTreeSet};

use ib_types::Guid;

use crate::path::{NodeNumber, PacketFate};

/// A kind of probe, and its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Probe {
    /// Requests from the local port to the agent at a LID.
    Agent {
        /// The LID.
        lid: u16,
    },
    /// LID-routed SMPs from the local port to a LID.
    Management {
        /// The LID.
        lid: u16,
    },
    /// Combined-route probes: SMPs that take a directed route to a switch, and are routed by LID from there.
    CombinedRoute {
        /// The switch.
        from: NodeNumber,
        /// The LID.
        lid: u16,
    },
    /// Bursts of combined-route probes in a port census. The ports of the switch, or the ports at the other ends of its
    /// cables, count the probes.
    Counters {
        /// The switch.
        from: NodeNumber,
        /// The LID.
        lid: u16,
    },
}

/// Results of all probes of one kind and path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// Number of probes sent.
    pub sent: u32,
    /// Number of probes answered.
    pub answered: u32,
    /// Number of control probes: SMPs by directed route over the cables that the combined-route probe and its response
    /// take.
    pub control_sent: u32,
    /// Number of control probes answered.
    pub control_answered: u32,
    /// The node that responded, and its port at which the probe arrived.
    pub arrival: Option<(Guid, u8)>,
    /// Fate of the probes in the switch, as its counters show.
    pub left: Option<PacketFate>,
}

/// The evidence by which a hop is proven good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Witness {
    /// A request to the agent of the next node arrived over the link.
    Agent,
    /// A LID-routed SMP from the local port arrived over the link.
    Management,
    /// A combined-route probe arrived over the link.
    CombinedRoute,
    /// The counters of the switch, or of the ports at the other ends of its cables, show the packets.
    Counters,
    /// A directed-route SMP passed the cable of a CA. This is sufficient, because all packets from
    /// this port of the CA take the cable.
    Cable,
}

/// All observations, and what they prove about the nodes.
#[derive(Debug, Default)]
pub struct Observations {
    all: BTreeMap<Probe, Observation>,
    /// By switch port: the evidence that packets with this egress port in the switch's forwarding table leave by this
    /// port. Of several kinds of evidence, the first in the order of [`Witness`]. Ports without evidence are absent.
    proven: BTreeMap<(NodeNumber, u8), Witness>,
    /// By switch port and LID: the evidence that packets to the LID have left the port and arrived at the next node.
    /// Of several kinds of evidence, the first in the order of [`Witness`].
    arrived: BTreeMap<(NodeNumber, u8, u16), Witness>,
    /// Nodes that have responded to a probe, and the destination LID of the probe.
    identified: BTreeSet<(NodeNumber, u16)>,
    /// Switches that have relayed a combined-route probe that was answered.
    relays: BTreeSet<NodeNumber>,
    /// Nodes that have answered a combined-route probe.
    responders: BTreeSet<NodeNumber>,
}

impl Observations {
    /// Returns the observation of a probe.
    #[must_use]
    pub fn get(&self, probe: Probe) -> Option<&Observation> {
        self.all.get(&probe)
    }

    /// Returns the observation of a probe for an update. If the probe has no observation, inserts an empty one.
    pub(crate) fn entry(&mut self, probe: Probe) -> &mut Observation {
        self.all.entry(probe).or_default()
    }

    /// Records that a switch sent a probe to a LID out of `port`, which is the port in its table.
    pub(crate) fn prove(&mut self, (switch, port): (NodeNumber, u8), lid: u16, witness: Witness) {
        let first = |known: &mut Witness| *known = (*known).min(witness);
        self.proven.entry((switch, port)).and_modify(first).or_insert(witness);
        // Counters show that the probe left the switch, but not that it arrived at the next node.
        if witness != Witness::Counters {
            self.arrived.entry((switch, port, lid)).and_modify(first).or_insert(witness);
        }
    }

    /// Returns the evidence that a switch sends packets out of a port as its table specifies; `None` without evidence.
    pub(crate) fn proven(&self, place: (NodeNumber, u8)) -> Option<Witness> {
        self.proven.get(&place).copied()
    }

    /// Returns the evidence that packets to a LID leave a port and arrive at the next node; `None` without evidence.
    pub(crate) fn arrived(&self, (switch, port): (NodeNumber, u8), lid: u16) -> Option<Witness> {
        self.arrived.get(&(switch, port, lid)).copied()
    }

    /// Records that a node responded to a probe to a LID.
    pub(crate) fn identify(&mut self, node: NodeNumber, lid: u16) {
        self.identified.insert((node, lid));
    }

    /// Returns true if a node has responded to a probe to a LID.
    pub(crate) fn is_identified(&self, node: NodeNumber, lid: u16) -> bool {
        self.identified.contains(&(node, lid))
    }

    /// Records that a switch relays combined-route probes, because one of them was answered.
    pub(crate) fn note_relay(&mut self, switch: NodeNumber) {
        self.relays.insert(switch);
    }

    /// Returns true if a switch is known to relay combined-route probes, because one of them was answered.
    pub(crate) fn relays(&self, switch: NodeNumber) -> bool {
        self.relays.contains(&switch)
    }

    /// Records that a node has answered a combined-route probe.
    pub(crate) fn note_responder(&mut self, node: NodeNumber) {
        self.responders.insert(node);
    }

    /// Returns true if a node has answered a combined-route probe. Some nodes discard such probes.
    pub(crate) fn responds(&self, node: NodeNumber) -> bool {
        self.responders.contains(&node)
    }
}
