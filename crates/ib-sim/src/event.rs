//! What happens next: events in the order of their time, and of their making where times are equal.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use ib_topology::{NodeId, PortId};
use ib_types::Instant;

use crate::ids::RequestKey;

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A packet arrives at a port.
    Arrive { port: PortId, flight: u32, epoch: u32 },
    /// A port has sent a packet and something waits behind it.
    Sent { port: PortId, epoch: u32 },
    /// Blocks of a buffer at the other end of a port's link are free again.
    Credit { port: PortId, vl: u8, blocks: u16, epoch: u32 },
    /// Something that waits for its time.
    Timer(Timer),
}

impl Event {
    /// Returns true for an event that waits for its time, however quiet the links are.
    #[inline]
    pub(crate) const fn is_timer(&self) -> bool {
        matches!(self, Self::Timer(_))
    }
}

/// What happens when it is time, however quiet the fabric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// A packet has been at the head of a VL for as long as it may.
    HeadOfQueue { port: PortId, vl: u8, epoch: u32 },
    /// Nobody has answered a request that a client was to answer.
    Answer { request: RequestKey },
    /// A trap was not repressed.
    Trap { node: NodeId, transaction: u32 },
    /// The lease of a port's M_Key ends.
    Lease { port: PortId },
    /// An agent wants to be called.
    Agent { agent: u32 },
    /// A step of the script is due.
    Script { step: u32 },
    /// A link that flaps goes up or down.
    Flap { flap: u32 },
}

/// A queue of events of a kind.
///
/// Two events of the same moment come out in the order in which they went in, so that a run does not
/// depend on how the queue is built.
#[derive(Clone, Debug)]
pub(crate) struct EventQueue<E> {
    /// The earliest event, when it is known without the heap: where one packet is under way, its
    /// events never enter the heap.
    first: Option<Entry<E>>,
    heap: BinaryHeap<Entry<E>>,
    made: u64,
}

#[derive(Clone, Debug)]
struct Entry<E> {
    at: Instant,
    number: u64,
    event: E,
}

impl<E> Entry<E> {
    const fn key(&self) -> (Instant, u64) {
        (self.at, self.number)
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    /// The earliest entry is the greatest, since the heap hands out the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl<E> EventQueue<E> {
    pub(crate) const fn new() -> Self {
        Self { first: None, heap: BinaryHeap::new(), made: 0 }
    }

    pub(crate) fn push(&mut self, at: Instant, event: E) {
        self.made += 1;
        let entry = Entry { at, number: self.made, event };
        // What is pushed now comes after everything of the same moment.
        match &self.first {
            Some(first) if first.at <= at => self.heap.push(entry),
            Some(_) => self.heap.extend(self.first.replace(entry)),
            None if self.heap.peek().is_some_and(|next| next.at <= at) => self.heap.push(entry),
            None => self.first = Some(entry),
        }
    }

    /// Returns all events in no particular order.
    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &E> {
        self.first.iter().chain(&self.heap).map(|entry| &entry.event)
    }

    /// Returns when the next event is due.
    #[inline]
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.first.as_ref().or_else(|| self.heap.peek()).map(|entry| entry.at)
    }

    /// Takes the next event when it is due by a moment. What is due at [`Instant::NEVER`] never is.
    pub(crate) fn pop_by(&mut self, moment: Instant) -> Option<(Instant, E)> {
        let at = self.next_at()?;
        if at > moment || at == Instant::NEVER {
            return None;
        }
        self.first.take().or_else(|| self.heap.pop()).map(|entry| (entry.at, entry.event))
    }
}

#[cfg(test)]
mod tests;
