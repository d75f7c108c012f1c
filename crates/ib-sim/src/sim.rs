//! The event loop of a simulated fabric.

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

/// A simulated fabric. The caller advances its virtual time.
pub struct Sim {
    pub(crate) net: Network,
    pub(crate) agents: HostedAgents,
    pub(crate) script: Script,
}

impl Sim {
    /// Creates an unconfigured fabric: all links are up, and no port has a LID.
    ///
    /// # Panics
    /// Panics if the buffer of a VL is smaller than a packet of 4,096 bytes.
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

    /// Returns the virtual time.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.net.now()
    }

    /// Processes all events up to the given time, and sets the clock to this time.
    ///
    /// # Panics
    /// Panics if the time is [`Instant::NEVER`]. Some events repeat indefinitely, such as a trap
    /// that no SM represses, so the call would never return. [`Sim::settle`] runs a fabric until no
    /// packet is in flight.
    pub fn run_until(&mut self, moment: Instant) {
        assert!(moment < Instant::NEVER, "a fabric cannot run until `Instant::NEVER`");
        while let Some(event) = self.net.clock.pop_by(moment) {
            self.step(event);
        }
        self.net.clock.advance(moment);
    }

    /// Processes the next event that is due by the given time. Returns false if there is none.
    ///
    /// With [`Instant::NEVER`], repeated calls can return true indefinitely, because some events
    /// repeat, such as a trap that no SM represses.
    pub fn run_step(&mut self, moment: Instant) -> bool {
        let event = self.net.clock.pop_by(moment);
        event.map(|event| self.step(event)).is_some()
    }

    /// Processes all events up to the given time, and further events until no packet is in flight.
    ///
    /// Virtual time can run ahead of `moment`. Thus a simulator that serves clients in real time
    /// responds at once: it does not wait for packets in flight, but only for timers.
    pub fn settle(&mut self, moment: Instant) {
        loop {
            let clock = &mut self.net.clock;
            let until = if clock.has_transit() { Instant::NEVER } else { clock.now().max(moment) };
            let Some(event) = clock.pop_by(until) else { break };
            self.step(event);
        }
        self.net.clock.advance(moment);
    }

    /// Processes events in real time like [`Sim::settle`], but limits their number and how far
    /// virtual time runs ahead.
    ///
    /// Virtual time runs ahead of `moment` by at most [`Sim::AHEAD`], and at most [`Sim::BATCH`]
    /// events are processed. Later calls process the rest; [`Sim::due`] returns the time of the
    /// next call. Thus a server returns to its sockets, however many packets are in flight.
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

    /// Returns the time at which [`Sim::keep_up`] has to be called next; `None` if no event is
    /// queued.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        let at = self.net.clock.next_at()?;
        let ahead = if self.net.clock.has_transit() { Self::AHEAD } else { Duration::ZERO };
        Some(Instant::from_nanos(at.as_nanos().saturating_sub(ahead.as_nanos() as u64)))
    }

    /// While packets are in flight, virtual time can be ahead of real time by at most this
    /// duration.
    pub const AHEAD: Duration = Duration::from_millis(1);

    /// Maximum number of events that one call of [`Sim::keep_up`] processes.
    pub const BATCH: usize = 10_000;

    /// Returns the number of events that were processed since the fabric was created.
    ///
    /// To repeat a run exactly, call each method after as many processed events, and at the same virtual time, as
    /// the original run did.
    #[must_use]
    pub const fn steps(&self) -> u64 {
        self.net.clock.steps()
    }

    /// Processes events until [`Sim::steps`] has reached `steps`, then sets the clock to `moment`.
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
