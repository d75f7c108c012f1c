//! Agents that nodes host for management classes other than those of the built-in agents.

use std::collections::BTreeMap;

use ib_link::{Arrival, Datagram, NodeAgent};
use ib_topology::NodeId;
use ib_types::Instant;
use ib_wire::mad::MgmtClass;

/// A hosted agent of a node.
struct Slot {
    node: NodeId,
    agent: Box<dyn NodeAgent>,
    /// The time of the agent's scheduled wake-up; `None` if none is scheduled.
    wakes: Option<Instant>,
}

/// All hosted agents, by number.
#[derive(Default)]
pub(crate) struct HostedAgents {
    slots: Vec<Slot>,
    by_class: BTreeMap<(NodeId, u8), u32>,
}

impl HostedAgents {
    /// Adds an agent of a node. For its management classes, the agent replaces earlier agents of
    /// the node. Returns the agent's number.
    pub(crate) fn add(&mut self, node: NodeId, agent: Box<dyn NodeAgent>) -> u32 {
        let number = self.slots.len() as u32;
        for class in agent.classes() {
            self.by_class.insert((node, class.0), number);
        }
        self.slots.push(Slot { node, agent, wakes: None });
        number
    }

    /// Returns the number of a node's agent for a management class.
    pub(crate) fn find(&self, node: NodeId, class: MgmtClass) -> Option<u32> {
        self.by_class.get(&(node, class.0)).copied()
    }

    /// Passes a MAD to an agent.
    pub(crate) fn handle(
        &mut self,
        number: u32,
        now: Instant,
        arrival: Arrival,
        datagram: &Datagram,
    ) {
        self.slots[number as usize].agent.handle(now, arrival, datagram);
    }

    /// Runs an agent if its timer has expired. Returns false if the timer has not expired.
    pub(crate) fn wake(&mut self, number: u32, now: Instant) -> bool {
        let slot = &mut self.slots[number as usize];
        let is_due = slot.wakes.is_some_and(|at| at <= now);
        if is_due {
            slot.wakes = None;
            slot.agent.handle_timeout(now);
        }
        is_due
    }

    /// Returns the next MAD that an agent sends, and the node of the agent.
    pub(crate) fn poll_transmit(
        &mut self,
        number: u32,
        now: Instant,
    ) -> Option<(NodeId, Datagram)> {
        let slot = &mut self.slots[number as usize];
        Some((slot.node, slot.agent.poll_transmit(now)?))
    }

    /// Returns the wake-up time of an agent if the caller has to start a new timer for it. Returns
    /// `None` if the agent needs no wake-up, or if a running timer expires no later.
    pub(crate) fn poll_timer(&mut self, number: u32) -> Option<Instant> {
        let slot = &mut self.slots[number as usize];
        let at = slot.agent.poll_timeout()?;
        let is_new = slot.wakes.is_none_or(|earlier| at < earlier);
        is_new.then(|| *slot.wakes.insert(at))
    }

    /// Returns the scheduled wake-up time of an agent.
    #[cfg(test)]
    pub(crate) fn wakes(&self, number: u32) -> Option<Instant> {
        self.slots[number as usize].wakes
    }
}

#[cfg(test)]
mod tests;
