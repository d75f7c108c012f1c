//! What happened, in words.

use std::fmt;

use ib_topology::{NodeId, PortId};
use ib_types::Instant;
use ib_wire::mad::Mad;
use ib_wire::mad::sm::{PortState, TrapNumber};

use crate::loss::Loss;
use crate::sim::{ClientId, Sim};

/// How much is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Nothing.
    #[default]
    Off,
    /// Clients that come and go, links, states of ports, traps, commands and packets that are lost.
    Events,
    /// Datagrams that are sent and delivered, too.
    Datagrams,
    /// Every packet at every port.
    Hops,
}

/// Something that happened.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Entry<'a> {
    Attached { client: ClientId, port: PortId },
    Detached { client: ClientId, port: PortId },
    Link { port: PortId, up: bool },
    State { port: PortId, from: PortState, to: PortState },
    Trap { port: PortId, number: TrapNumber, count: u32 },
    Lost { port: PortId, packet: u64, why: Loss },
    Sent { port: PortId, packet: u64, mad: &'a Mad },
    Delivered { port: PortId, packet: u64, mad: &'a Mad },
    Hop { port: PortId, packet: u64, lane: u8, dlid: u16, arrives: bool },
    Unanswered { client: ClientId },
    Power { node: NodeId, on: bool },
    Command { text: &'a str },
}

impl Entry<'_> {
    const fn level(&self) -> LogLevel {
        match self {
            Self::Sent { .. } | Self::Delivered { .. } => LogLevel::Datagrams,
            Self::Hop { .. } => LogLevel::Hops,
            _ => LogLevel::Events,
        }
    }
}

/// The lines that were not taken yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    pub(crate) level: LogLevel,
    lines: String,
}

impl Log {
    pub(crate) fn take(&mut self) -> String {
        std::mem::take(&mut self.lines)
    }
}

impl Sim {
    /// Writes a line when things of this kind are logged.
    #[inline]
    pub(crate) fn log(&mut self, entry: Entry<'_>) {
        if entry.level() <= self.log.level {
            self.write_log(entry);
        }
    }

    #[cold]
    fn write_log(&mut self, entry: Entry<'_>) {
        use fmt::Write as _;
        let now: Instant = self.now();
        let place = |port| PortName { sim: self, port };
        let line = match entry {
            Entry::Attached { client, port } => format!("{} client {client} attached", place(port)),
            Entry::Detached { client, port } => format!("{} client {client} left", place(port)),
            Entry::Link { port, up: true } => format!("{} link up", place(port)),
            Entry::Link { port, up: false } => format!("{} link down", place(port)),
            Entry::State { port, from, to } => format!("{} state {from} to {to}", place(port)),
            Entry::Trap { port, number, count } => {
                format!("{} trap {} ({number}), time {count}", place(port), number.0)
            }
            Entry::Lost { port, packet, why } => {
                format!("{} packet {packet} lost: {why}", place(port))
            }
            Entry::Sent { port, packet, mad } => {
                format!("{} packet {packet} sent: {mad}", place(port))
            }
            Entry::Delivered { port, packet, mad } => {
                format!("{} packet {packet} delivered: {mad}", place(port))
            }
            Entry::Hop { port, packet, lane, dlid, arrives } => {
                let what = if arrives { "arrives" } else { "leaves" };
                format!("{} packet {packet} {what} on lane {lane}, DLID {dlid}", place(port))
            }
            Entry::Unanswered { client } => format!("client {client} gets no answer"),
            Entry::Power { node, on } => {
                let state = if on { "on" } else { "off" };
                format!("{:?} power {state}", self.node(node).name)
            }
            Entry::Command { text } => format!("command {text}"),
        };
        writeln!(self.log.lines, "{now} {line}").expect("a string takes everything");
    }
}

/// A port as people call it: `"name"[number]`.
struct PortName<'a> {
    sim: &'a Sim,
    port: PortId,
}

impl fmt::Display for PortName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = self.sim.port(self.port);
        write!(f, "\"{}\"[{}]", self.sim.node(port.node).name, port.number)
    }
}
