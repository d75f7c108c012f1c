//! The network: nodes and links, packets in flight, clients and open ports.
//!
//! | file | contents |
//! |---|---|
//! | `network` | loss of packets, changes of port states |
//! | `link` | output queues, transmission, credits, link faults |
//! | `forward` | directed routes, LFTs, multicast |
//! | `endpoint` | sending and receiving by clients and open ports |
//! | `cable` | links that go up and down |
//! | `notify` | traps to the subnet manager |
//!
//! The agents of nodes are not part of the network. A packet for an agent is returned as a
//! [`Delivery`].

use std::time::Duration;

use ib_topology::{Fabric, PortId};
use ib_types::Instant;
use ib_types::rng::Rng;
use ib_wire::mad::sm::PortState;

use crate::client::Clients;
use crate::clock::Clock;
use crate::fabric::FabricState;
use crate::flight::{BLOCK, Flights};
use crate::log::{Entry, Log};
use crate::loss::Loss;
use crate::loss::Stats;
use crate::open_port::OpenPorts;
use crate::options::{LogLevel, Options};
use crate::packet::Payload;
use crate::tap::Tap;

mod cable;
mod endpoint;
mod forward;
pub(crate) mod link;
mod notify;

/// A packet that has reached its destination node, and the port at which it has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Delivery {
    /// An SMP. `port` is the port at which it has arrived at the node.
    Smp { port: PortId, key: u32 },
    /// A multicast SMP, or any packet that is not an SMP. `port` is the end port at which it has
    /// arrived.
    Data { port: PortId, key: u32 },
}

/// Nodes, links and packets in flight.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) clock: Clock,
    pub(crate) fabric: FabricState,
    pub(crate) flights: Flights,
    pub(crate) clients: Clients,
    pub(crate) open_ports: OpenPorts,
    pub(crate) stats: Stats,
    pub(crate) log: Log,
    pub(crate) tap: Tap,
    /// Random number generator for faults.
    pub(crate) rng: Rng,
    limits: Limits,
}

/// Limits that the options specify.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Latency between the ports at both ends of a link.
    latency: Duration,
    /// Buffer size of each VL of a port, in blocks.
    vl_blocks: u32,
    /// Maximum number of SMPs in the output queue of a port.
    management_buffer: usize,
    /// Time limit for the response to a request, from its delivery to a client or agent.
    answer_within: Duration,
}

impl Network {
    pub(crate) fn new(fabric: &Fabric, options: &Options) -> Self {
        Self {
            clock: Clock::new(),
            fabric: FabricState::new(fabric, options),
            flights: Flights::default(),
            clients: Clients::default(),
            open_ports: OpenPorts::default(),
            stats: Stats::default(),
            log: Log::new(options.log),
            tap: Tap::new(options.tap),
            rng: Rng::stream(options.seed, 0x51_4d),
            limits: Limits {
                latency: options.latency,
                vl_blocks: options.vl_buffer / BLOCK as u32,
                management_buffer: options.management_buffer,
                answer_within: options.answer_within,
            },
        }
    }

    /// Returns the buffer size of each VL of a port, in blocks.
    #[cfg(test)]
    pub(crate) const fn vl_blocks(&self) -> u32 {
        self.limits.vl_blocks
    }

    #[inline]
    pub(crate) const fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Logs an entry if its level is enabled.
    #[inline]
    pub(crate) fn log(&mut self, entry: Entry<'_>) {
        if self.log.has(entry.level()) {
            self.log.write(self.clock.now(), &self.fabric, entry);
        }
    }

    /// Counts and logs the delivery of a packet.
    pub(crate) fn note_delivery(&mut self, port: PortId, key: u32) {
        self.stats.delivered += 1;
        if self.log.has(LogLevel::Datagrams) {
            let flight = self.flights.get(key);
            if let Some(mad) = flight.packet.mad() {
                let entry = Entry::Delivered { port, packet: flight.number, mad };
                self.log.write(self.clock.now(), &self.fabric, entry);
            }
        }
    }

    /// Drops a packet at a port, for the given reason.
    pub(crate) fn lose(&mut self, port: PortId, key: u32, why: Loss) {
        let flight = self.land(key);
        self.fabric.port_mut(port).dropped += 1;
        self.stats.lose(why);
        self.log(Entry::Lost { port, packet: flight.number, why });
        let now = self.now();
        self.tap.keep(now, port, &flight.packet, flight.vl, Some(why));
        if self.fabric.port(flight.from).has_lid(flight.packet.slid) {
            self.open_ports.note_loss(now, port, &flight, why);
        }
        if let Some(request) = flight.request {
            self.clients.fail(request, &mut self.open_ports);
        }
        if let Payload::Transport(bytes) = flight.packet.payload {
            self.flights.give_buffer(bytes);
        }
        self.notify_free_space(port);
    }

    /// Drops a packet that a port cannot send, and counts a `PortXmitDiscard`.
    pub(crate) fn discard(&mut self, port: PortId, key: u32, why: Loss) {
        let counters = &mut self.fabric.port_mut(port).counters;
        counters.xmit_discards += 1;
        match why {
            Loss::LinkDown | Loss::LinkWentDown | Loss::NotActive => {
                counters.inactive_discards += 1;
            }
            Loss::TooLong => counters.neighbor_mtu_discards += 1,
            Loss::LifeTime(_) => counters.lifetime_discards += 1,
            Loss::HeadOfQueue(_) => counters.hoq_life_discards += 1,
            _ => {}
        }
        self.lose(port, key, why);
    }

    /// Sets `PortState` of a port, and logs the change.
    pub(crate) fn set_state(&mut self, port: PortId, to: PortState) {
        if let Some(from) = self.fabric.set_state(port, to, self.clock.now()) {
            self.log(Entry::State { port, from, to });
            self.open_ports.wake(port);
        }
    }
}
