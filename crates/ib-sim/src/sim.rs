//! The fabric: what happens in it, and when.

use std::time::Duration;

use ib_topology::Fabric;
use ib_types::Instant;

use crate::event::{Event, Timer};
use crate::fabric::FabricState;
use crate::hosted::HostedAgents;
use crate::network::Network;
use crate::options::Options;
use crate::script::Script;
use crate::sma;

/// A fabric whose time runs when it is told to.
pub struct Sim {
    pub(crate) net: Network,
    pub(crate) agents: HostedAgents,
    pub(crate) script: Script,
}

impl Sim {
    /// Makes a fabric as a file describes it: all links up, no LIDs, nothing configured.
    ///
    /// # Panics
    /// Panics when the buffer of a VL holds no packet of 4,096 bytes.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "options are made for one fabric")]
    pub fn new(fabric: &Fabric, options: Options) -> Self {
        assert!(options.vl_buffer >= 4224, "a VL holds at least a packet of 4,096 bytes");
        Self {
            net: Network::new(fabric, &options),
            agents: HostedAgents::default(),
            script: Script::default(),
        }
    }

    /// Returns the time.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.net.now()
    }

    /// Processes all events up to a time, which is the current time afterwards.
    ///
    /// # Panics
    /// Panics if the time is [`Instant::NEVER`]. Events may repeat indefinitely, such as a trap that no SM
    /// represses, and such a run would never return. [`Sim::settle`] runs a fabric until no packet is in flight.
    pub fn run_until(&mut self, moment: Instant) {
        assert!(moment < Instant::NEVER, "a fabric cannot run until a moment that never comes");
        while let Some(event) = self.net.clock.pop_by(moment) {
            self.step(event);
        }
        self.net.clock.advance(moment);
    }

    /// Lets the next thing happen that happens by a moment; returns false when there is none. By
    /// [`Instant::NEVER`] that may be true indefinitely: see [`Sim::run_until`].
    pub fn run_step(&mut self, moment: Instant) -> bool {
        let event = self.net.clock.pop_by(moment);
        event.map(|event| self.step(event)).is_some()
    }

    /// Lets everything happen that happens by a moment, and then lets the clock run ahead of it
    /// until no packet is on its way any more.
    ///
    /// With that, a simulator that serves the real world answers at once: what takes microseconds
    /// in the fabric is not waited for, but what waits for seconds is.
    pub fn settle(&mut self, moment: Instant) {
        loop {
            let clock = &mut self.net.clock;
            let until = if clock.has_transit() { Instant::NEVER } else { clock.now().max(moment) };
            let Some(event) = clock.pop_by(until) else { break };
            self.step(event);
        }
        self.net.clock.advance(moment);
    }

    /// Lets happen what happens by a moment of the real world's clock, as [`Sim::settle`] does, but
    /// packets run ahead of that clock by no more than [`Sim::AHEAD`], and no more than
    /// [`Sim::BATCH`] things happen. What is left happens with the next calls; see [`Sim::due`].
    ///
    /// With that, whoever serves others comes back to them however much is going on in the fabric.
    pub fn keep_up(&mut self, moment: Instant) {
        let ahead = moment + Self::AHEAD;
        for _ in 0..Self::BATCH {
            let clock = &mut self.net.clock;
            let until = if clock.has_transit() { ahead } else { moment };
            let Some(event) = clock.pop_by(until) else {
                clock.advance(moment);
                return;
            };
            self.step(event);
        }
    }

    /// Returns when [`Sim::keep_up`] has something to do; `None` when it will not until somebody does
    /// something.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        let at = self.net.clock.next_at()?;
        let ahead = if self.net.clock.has_transit() { Self::AHEAD } else { Duration::ZERO };
        Some(Instant::from_nanos(at.as_nanos().saturating_sub(ahead.as_nanos() as u64)))
    }

    /// How far the fabric's clock runs ahead of the real one while packets are on their way.
    pub const AHEAD: Duration = Duration::from_millis(1);

    /// How much happens in one call of [`Sim::keep_up`] at most.
    pub const BATCH: usize = 10_000;

    /// Returns how many things have happened. What was told a fabric is told it again in the same
    /// state when as many have happened and the clock shows the same.
    #[must_use]
    pub const fn steps(&self) -> u64 {
        self.net.clock.steps()
    }

    /// Lets things happen until so many have in all, and sets the clock forward to a moment.
    pub fn repeat(&mut self, steps: u64, moment: Instant) {
        while self.steps() < steps
            && let Some(event) = self.net.clock.pop_by(Instant::NEVER)
        {
            self.step(event);
        }
        self.net.clock.advance(moment);
    }

    fn step(&mut self, event: Event) {
        match event {
            Event::Arrive { port, flight, epoch } => {
                let delivery = self.net.arrive(port, flight, epoch);
                self.deliver(delivery);
            }
            Event::Sent { port, epoch } => self.net.sent(port, epoch),
            Event::Credit { port, vl, blocks, epoch } => self.net.credit(port, vl, blocks, epoch),
            Event::Timer(timer) => self.timer(timer),
        }
    }

    fn timer(&mut self, timer: Timer) {
        match timer {
            Timer::HeadOfQueue { port, vl, epoch } => self.net.head_of_queue(port, vl, epoch),
            Timer::Answer { request } => self.net.no_answer(request),
            Timer::Trap { node, transaction } => self.net.send_trap(node, transaction),
            Timer::Lease { port } => sma::lease_ends(&mut self.net, port),
            Timer::Agent { agent } => self.wake_agent(agent),
            Timer::Script { step } => self.run_step_of_script(step),
            Timer::Flap { flap } => self.script.flap(&mut self.net, flap),
        }
    }

    pub(crate) const fn fabric(&self) -> &FabricState {
        &self.net.fabric
    }
}

#[cfg(test)]
mod tests;
