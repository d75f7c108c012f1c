//! The virtual clock of a fabric and its event queue.

use ib_types::Instant;

use crate::event::{Event, EventQueue};

/// Virtual clock and its queue of events. The time advances only when an event is taken, and by
/// [`Self::advance`].
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    now: Instant,
    /// Number of events that were taken from the queue since the clock was created.
    steps: u64,
    events: EventQueue<Event>,
    /// Number of queued events about packets and credits on links; timers are not counted.
    in_transit: usize,
}

impl Clock {
    pub(crate) const fn new() -> Self {
        Self { now: Instant::ZERO, steps: 0, events: EventQueue::new(), in_transit: 0 }
    }

    #[inline]
    pub(crate) const fn now(&self) -> Instant {
        self.now
    }

    /// Returns the number of events that were taken from the queue since the clock was created.
    pub(crate) const fn steps(&self) -> u64 {
        self.steps
    }

    /// Returns true if packets or credits are on a link.
    pub(crate) const fn has_transit(&self) -> bool {
        self.in_transit > 0
    }

    /// Returns the time of the next event.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.events.next_at()
    }

    /// Adds an event that will happen at the time `at`.
    #[inline]
    pub(crate) fn schedule(&mut self, at: Instant, event: Event) {
        self.in_transit += usize::from(!event.is_timer());
        self.events.push(at, event);
    }

    /// Takes the next event, if it is due by the given time. Sets the clock to the time of the
    /// event.
    #[inline]
    pub(crate) fn pop_by(&mut self, time: Instant) -> Option<Event> {
        let (at, event) = self.events.pop_by(time)?;
        self.steps += 1;
        self.now = self.now.max(at);
        self.in_transit -= usize::from(!event.is_timer());
        Some(event)
    }

    /// Advances the clock to the given time. A time in the past has no effect.
    pub(crate) fn advance(&mut self, time: Instant) {
        self.now = self.now.max(time);
    }

    /// Returns all events in no particular order.
    #[cfg(test)]
    pub(crate) fn events(&self) -> impl Iterator<Item = &Event> {
        self.events.iter()
    }

    #[cfg(test)]
    pub(crate) const fn in_transit(&self) -> usize {
        self.in_transit
    }
}

#[cfg(test)]
mod tests;
