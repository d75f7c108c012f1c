//! Observations: the probes that were sent, the number of responses, and the arrival ports.
//!
//! An observation is a measured fact. SA records are claims and are stored separately.

use std::collections::{BTreeMap, BTreeSet};

use ib_types::Guid;

use crate::path::{NodeNumber, PacketFate};

/// A kind of probe, and its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Probe {
    /// Requests to the agent at a LID, from the local port.
    Agent {
        /// The LID.
        lid: u16,
    },
    /// LID-routed SMPs to a LID, from the local port.
    Management {
        /// The LID.
        lid: u16,
    },
    /// Combined-route probes: SMPs over a directed route to a switch, routed by LID from there.
    CombinedRoute {
        /// The switch.
        from: NodeNumber,
        /// The LID.
        lid: u16,
    },
    /// Bursts of combined-route probes, counted at the ports of the switch or behind them.
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
    /// Number of control probes sent over the same cables by directed route.
    pub control_sent: u32,
    /// Number of control probes answered.
    pub control_answered: u32,
    /// The node that responded, and the port by which the probe arrived there.
    pub arrival: Option<(Guid, u8)>,
    /// Fate of the probes in the switch, by its counters.
    pub left: Option<PacketFate>,
}

/// Proof that a switch forwards by the port of its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Witness {
    /// The agent of the next node, which was sent a request over this link.
    Agent,
    /// A LID-routed SMP from the local port that arrived over this link.
    Management,
    /// A combined-route probe that arrived over this link.
    CombinedRoute,
    /// The counters of the switch or of the ports behind it.
    Counters,
    /// A directed route over the cable. A channel adapter (CA) does not choose a port.
    Cable,
}

/// All observations of how switches forward.
#[derive(Debug, Default)]
pub struct Observations {
    all: BTreeMap<Probe, Observation>,
    /// Switch ports that packets have left as the tables specify.
    proven: BTreeMap<(NodeNumber, u8), Witness>,
    /// Switch ports by which packets to a LID have arrived at the next node.
    arrived: BTreeMap<(NodeNumber, u8, u16), Witness>,
    /// Nodes that responded at a LID.
    identified: BTreeSet<(NodeNumber, u16)>,
    /// Switches through which a combined-route probe was answered.
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

    /// Returns the observation of a probe for update.
    pub(crate) fn entry(&mut self, probe: Probe) -> &mut Observation {
        self.all.entry(probe).or_default()
    }

    /// Records that a switch sent a probe to a LID by the port of its table.
    pub(crate) fn prove(&mut self, (switch, port): (NodeNumber, u8), lid: u16, witness: Witness) {
        let first = |known: &mut Witness| *known = (*known).min(witness);
        self.proven.entry((switch, port)).and_modify(first).or_insert(witness);
        // Counters show that a probe left, not that it arrived.
        if witness != Witness::Counters {
            self.arrived.entry((switch, port, lid)).and_modify(first).or_insert(witness);
        }
    }

    /// Returns the proof that a switch sends by a port as its table specifies.
    pub(crate) fn proven(&self, place: (NodeNumber, u8)) -> Option<Witness> {
        self.proven.get(&place).copied()
    }

    /// Returns the proof that packets to a LID arrive behind a port.
    pub(crate) fn arrived(&self, (switch, port): (NodeNumber, u8), lid: u16) -> Option<Witness> {
        self.arrived.get(&(switch, port, lid)).copied()
    }

    /// Records that a node responded at a LID.
    pub(crate) fn identify(&mut self, node: NodeNumber, lid: u16) {
        self.identified.insert((node, lid));
    }

    /// Returns true if a node has responded at a LID.
    pub(crate) fn is_identified(&self, node: NodeNumber, lid: u16) -> bool {
        self.identified.contains(&(node, lid))
    }

    /// Records that a combined-route probe through a switch was answered.
    pub(crate) fn note_relay(&mut self, switch: NodeNumber) {
        self.relays.insert(switch);
    }

    /// Returns true if a switch relays combined routes: a probe through the switch was answered.
    pub(crate) fn relays(&self, switch: NodeNumber) -> bool {
        self.relays.contains(&switch)
    }

    /// Records that a node has answered a combined-route probe.
    pub(crate) fn note_responder(&mut self, node: NodeNumber) {
        self.responders.insert(node);
    }

    /// Returns true if a node has answered a combined-route probe. Some nodes discard combined routes.
    pub(crate) fn responds(&self, node: NodeNumber) -> bool {
        self.responders.contains(&node)
    }
}
