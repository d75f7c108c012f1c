//! Events of the simulation, and their queue.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use ib_topology::{NodeId, PortId};
use ib_types::Instant;

use crate::ids::RequestKey;

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A packet arrives at a port.
    Arrive { port: PortId, flight: u32, epoch: u32 },
    /// A port has finished sending a packet, and other packets are waiting in its output queue.
    Sent { port: PortId, epoch: u32 },
    /// Credits arrive at the sender: buffer blocks at the other end of the link are free again.
    Credit { port: PortId, vl: u8, blocks: u16, epoch: u32 },
    /// A timer expires.
    Timer(Timer),
}

impl Event {
    /// Returns true if the event is a timer, which does not depend on packets in flight.
    #[inline]
    pub(crate) const fn is_timer(&self) -> bool {
        matches!(self, Self::Timer(_))
    }
}

/// A timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// The packet at the head of a VL exceeds its lifetime.
    HeadOfQueue { port: PortId, vl: u8, epoch: u32 },
    /// The time limit for the response to a client's request expires.
    Answer { request: RequestKey },
    /// It is time to repeat a trap.
    Trap { node: NodeId, transaction: u32 },
    /// The M_Key lease of a port ends.
    Lease { port: PortId },
    /// The time has come at which an agent has requested a wake-up.
    Agent { agent: u32 },
    /// It is time to run a step of the script.
    Script { step: u32 },
    /// A flapping link goes up or down.
    Flap { flap: u32 },
}

/// A queue of events.
///
/// Events with equal times are returned in the order in which they were added, so that runs are
/// reproducible.
#[derive(Clone, Debug)]
pub(crate) struct EventQueue<E> {
    /// The earliest event; `None` if the earliest event is in the heap. If only one packet is in
    /// flight, its events are therefore never put into the heap.
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
    /// Compares in reverse order, because the heap returns the greatest entry first.
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
        // The new event is ordered after all events with the same time.
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

    /// Returns the time of the next event.
    #[inline]
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.first.as_ref().or_else(|| self.heap.peek()).map(|entry| entry.at)
    }

    /// Takes the next event, if it is due by the given time. Events at [`Instant::NEVER`] are never
    /// due.
    pub(crate) fn pop_by(&mut self, time: Instant) -> Option<(Instant, E)> {
        let at = self.next_at()?;
        if at > time || at == Instant::NEVER {
            return None;
        }
        self.first.take().or_else(|| self.heap.pop()).map(|entry| (entry.at, entry.event))
    }
}

#[cfg(test)]
mod tests;
