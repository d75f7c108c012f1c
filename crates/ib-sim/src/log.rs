//! The event log, as text.

use std::fmt;

use ib_topology::{NodeId, PortId};
use ib_types::Instant;
use ib_wire::mad::Mad;
use ib_wire::mad::sm::{PortState, TrapNumber};

use crate::fabric::FabricState;
use crate::ids::ClientId;
use crate::loss::Loss;
use crate::options::LogLevel;

/// An event to log.
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
    Hop { port: PortId, packet: u64, vl: u8, dlid: u16, arrives: bool },
    Unanswered { client: ClientId },
    Power { node: NodeId, on: bool },
    Command { text: &'a str },
}

impl Entry<'_> {
    #[inline]
    pub(crate) const fn level(&self) -> LogLevel {
        match self {
            Self::Sent { .. } | Self::Delivered { .. } => LogLevel::Datagrams,
            Self::Hop { .. } => LogLevel::Hops,
            _ => LogLevel::Events,
        }
    }
}

/// The log lines since [`Self::take`] was last called.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    pub(crate) level: LogLevel,
    lines: String,
}

impl Log {
    pub(crate) const fn new(level: LogLevel) -> Self {
        Self { level, lines: String::new() }
    }

    /// Returns the log lines since the last call.
    pub(crate) fn take(&mut self) -> String {
        std::mem::take(&mut self.lines)
    }
}

impl Log {
    /// Returns true if entries of this level are logged.
    #[inline]
    pub(crate) const fn has(&self, level: LogLevel) -> bool {
        level as u8 <= self.level as u8
    }

    #[cold]
    pub(crate) fn write(&mut self, now: Instant, fabric: &FabricState, entry: Entry<'_>) {
        use fmt::Write as _;
        let name = |port| PortName { fabric, port };
        let line = match entry {
            Entry::Attached { client, port } => format!("{} client {client} attached", name(port)),
            Entry::Detached { client, port } => format!("{} client {client} detached", name(port)),
            Entry::Link { port, up: true } => format!("{} link up", name(port)),
            Entry::Link { port, up: false } => format!("{} link down", name(port)),
            Entry::State { port, from, to } => format!("{} state {from} to {to}", name(port)),
            Entry::Trap { port, number, count } => {
                format!("{} trap {} ({number}), time {count}", name(port), number.0)
            }
            Entry::Lost { port, packet, why } => {
                format!("{} packet {packet} lost: {why}", name(port))
            }
            Entry::Sent { port, packet, mad } => {
                format!("{} packet {packet} sent: {mad}", name(port))
            }
            Entry::Delivered { port, packet, mad } => {
                format!("{} packet {packet} delivered: {mad}", name(port))
            }
            Entry::Hop { port, packet, vl, dlid, arrives } => {
                let verb = if arrives { "arrives" } else { "leaves" };
                format!("{} packet {packet} {verb} on VL {vl}, DLID {dlid}", name(port))
            }
            Entry::Unanswered { client } => format!("client {client} gets no response"),
            Entry::Power { node, on } => {
                let state = if on { "on" } else { "off" };
                format!("{:?} power {state}", fabric.node(node).name)
            }
            Entry::Command { text } => format!("command {text}"),
        };
        writeln!(self.lines, "{now} {line}").expect("writing to a string does not fail");
    }
}

/// Displays a port as `"name"[number]`.
struct PortName<'a> {
    fabric: &'a FabricState,
    port: PortId,
}

impl fmt::Display for PortName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = self.fabric.port(self.port);
        write!(f, "\"{}\"[{}]", self.fabric.node(port.node).name, port.number)
    }
}
