//! Observations: which probes were sent, how many were answered, and where they arrived.
//!
//! An observation is a fact of the wire. Records of subnet administration are claims and are kept apart.

use std::collections::{BTreeMap, BTreeSet};

use ib_types::Guid;

use crate::atlas::NodeNumber;
use crate::trace::Left;

/// A kind of probe, and its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Probe {
    /// Requests to the agent at a LID, from the own port.
    Agent {
        /// The LID.
        lid: u16,
    },
    /// Subnet management to a LID, from the own port.
    Management {
        /// The LID.
        lid: u16,
    },
    /// Subnet management over a directed route to a switch and from there on by LID.
    Launch {
        /// The switch.
        from: NodeNumber,
        /// The LID.
        lid: u16,
    },
    /// Bursts of launches, counted at the ports of the switch or behind them.
    Counters {
        /// The switch.
        from: NodeNumber,
        /// The LID.
        lid: u16,
    },
}

/// What came of all probes of one kind and path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// How many were sent.
    pub sent: u32,
    /// How many were answered.
    pub answered: u32,
    /// How many directed-route controls over the same cables were sent beside them.
    pub control_sent: u32,
    /// How many of the controls were answered.
    pub control_answered: u32,
    /// The node that answered and the port by which the probe arrived there.
    pub arrival: Option<(Guid, u8)>,
    /// Where counters show that the probes left the switch.
    pub left: Option<Left>,
}

/// What proves that a switch forwards by the port of its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Witness {
    /// The agent of the next node, which was sent a request over this link.
    Agent,
    /// Subnet management that was sent from the own port and arrived over this link.
    Management,
    /// A launch that arrived over this link.
    Launch,
    /// The counters of the switch or of the ports behind it.
    Counters,
    /// A directed route over the cable: a channel adapter does not choose a port.
    Cable,
}

/// Everything that was observed of the forwarding of switches.
#[derive(Debug, Default)]
pub struct Observations {
    all: BTreeMap<Probe, Observation>,
    /// The ports of switches that were seen to send what their tables name the port for.
    proven: BTreeMap<(NodeNumber, u8), Witness>,
    /// The same for one LID each.
    arrived: BTreeMap<(NodeNumber, u8, u16), Witness>,
    /// Nodes that have answered on a LID.
    identified: BTreeSet<(NodeNumber, u16)>,
    /// Switches from which a launch was answered.
    relays: BTreeSet<NodeNumber>,
    /// Nodes that have answered a launch.
    responders: BTreeSet<NodeNumber>,
}

impl Observations {
    /// Returns what came of a probe.
    #[must_use]
    pub fn get(&self, probe: Probe) -> Option<&Observation> {
        self.all.get(&probe)
    }

    /// Returns what came of a probe, to be added to.
    pub(crate) fn entry(&mut self, probe: Probe) -> &mut Observation {
        self.all.entry(probe).or_default()
    }

    /// Notes that a probe to a LID was sent by a switch by the port that its table names.
    pub(crate) fn prove(&mut self, (switch, port): (NodeNumber, u8), lid: u16, witness: Witness) {
        let first = |known: &mut Witness| *known = (*known).min(witness);
        self.proven.entry((switch, port)).and_modify(first).or_insert(witness);
        // Counters show that a probe left, not that it arrived.
        if witness != Witness::Counters {
            self.arrived.entry((switch, port, lid)).and_modify(first).or_insert(witness);
        }
    }

    /// Returns what proves that a switch sends by a port what its table names the port for.
    pub(crate) fn proven(&self, place: (NodeNumber, u8)) -> Option<Witness> {
        self.proven.get(&place).copied()
    }

    /// Returns what proves that packets to a LID arrive behind a port.
    pub(crate) fn arrived(&self, (switch, port): (NodeNumber, u8), lid: u16) -> Option<Witness> {
        self.arrived.get(&(switch, port, lid)).copied()
    }

    /// Notes that a node has answered on a LID.
    pub(crate) fn identify(&mut self, node: NodeNumber, lid: u16) {
        self.identified.insert((node, lid));
    }

    /// Returns true if a node has answered on a LID.
    pub(crate) fn is_identified(&self, node: NodeNumber, lid: u16) -> bool {
        self.identified.contains(&(node, lid))
    }

    /// Notes that a launch from a switch was answered.
    pub(crate) fn note_relay(&mut self, switch: NodeNumber) {
        self.relays.insert(switch);
    }

    /// Returns true if a launch from a switch was answered: it passes on combined routes and gets answers.
    pub(crate) fn relays(&self, switch: NodeNumber) -> bool {
        self.relays.contains(&switch)
    }

    /// Notes that a node has answered a launch.
    pub(crate) fn note_responder(&mut self, node: NodeNumber) {
        self.responders.insert(node);
    }

    /// Returns true if a node has answered a launch. Some nodes discard combined routes.
    pub(crate) fn responds(&self, node: NodeNumber) -> bool {
        self.responders.contains(&node)
    }
}
