//! Options of packet traces: recorded packets and payload bytes, triggers, traced queue pairs.

use ib_link::{Direction, Route};
use ib_types::{Gid, Instant, Qpn};
use ib_wire::packet::Opcode;

/// Maximum number of recorded payload bytes of a message.
const MOST_PAYLOAD: u16 = 4096;

/// Valid sizes of a ring in bytes.
const RING: std::ops::RangeInclusive<usize> = 64 << 10..=1 << 30;

/// Options of a packet trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketTrace {
    /// Number of payload bytes recorded per message, 0 to 4096. Headers are always recorded.
    pub payload: u16,
    /// Size of the ring in bytes: a power of two from 64 KiB to 1 GiB.
    pub ring_bytes: usize,
    /// Filter that selects the recorded packets.
    pub filter: PacketFilter,
    /// Event that ends the trace, and number of packets recorded after the event. After the end of the trace, the ring
    /// holds the packets before and after the event.
    pub trigger: Option<(Trigger, u32)>,
    /// Time after which no packet is recorded; [`Instant::NEVER`] for no limit.
    pub until: Instant,
}

impl Default for PacketTrace {
    /// Default: 4096 bytes of payload, a ring of 4 MiB, all packets, no trigger, no end time.
    fn default() -> Self {
        let filter = PacketFilter::default();
        let (trigger, until) = (None, Instant::NEVER);
        Self { payload: MOST_PAYLOAD, ring_bytes: 4 << 20, filter, trigger, until }
    }
}

/// Event that ends a packet trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The queue pair enters the error state.
    Error,
    /// A packet is retransmitted.
    Retransmission,
    /// A received packet is dropped.
    Drop,
}

/// Filter of packets: a packet is included if it matches all fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketFilter {
    /// Direction; `None` for both.
    pub direction: Option<Direction>,
    /// Opcodes; empty for all.
    pub opcodes: Vec<Opcode>,
    /// Remote ports; empty for all.
    pub peers: Vec<Peer>,
}

/// A remote port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Peer {
    /// GID of the port. On RoCE, this is the IP address of the port in the form of a GID.
    Gid(Gid),
    /// LID of the port.
    Lid(u16),
}

impl Peer {
    /// Returns true if the destination of a route is this remote port.
    #[must_use]
    pub fn is_at(self, route: &Route) -> bool {
        match self {
            Self::Gid(gid) => route.destination == gid,
            Self::Lid(lid) => route.dlid == lid,
        }
    }
}

impl PacketFilter {
    /// Returns true if the filter includes a packet.
    #[must_use]
    pub fn includes(&self, direction: Direction, route: &Route, opcode: Opcode) -> bool {
        self.direction.is_none_or(|only| only == direction)
            && (self.opcodes.is_empty() || self.opcodes.contains(&opcode))
            && (self.peers.is_empty() || self.peers.iter().any(|peer| peer.is_at(route)))
    }

    /// Returns true if the filter includes all packets.
    pub(crate) fn includes_all(&self) -> bool {
        self.direction.is_none() && self.opcodes.is_empty() && self.peers.is_empty()
    }
}

/// Selection of queue pairs to trace. A queue pair is included if it matches all fields; an empty field matches all
/// queue pairs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Queue pair numbers; 1 for the queue pair of MADs.
    pub qpns: Vec<Qpn>,
    /// Ports to which the queue pairs are connected. All UD queue pairs match, but only their packets to and from these
    /// ports are recorded.
    pub peers: Vec<Peer>,
    /// Service IDs to which the queue pairs are connected.
    pub services: Vec<u64>,
    /// Options of the packet traces.
    pub trace: PacketTrace,
}

/// ID of a selection within its HCA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SelectionId(pub(crate) u64);

impl Selection {
    /// Returns true if the selection includes queue pair 1.
    pub(crate) fn includes_gsi(&self) -> bool {
        self.services.is_empty() && (self.qpns.is_empty() || self.qpns.contains(&Qpn::GSI))
    }
}

/// Status of a selection: how many of the included queue pairs are traced for it, and how many are not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SelectionStatus {
    /// Number of queue pairs that are traced for the selection.
    pub own: usize,
    /// True if queue pair 1 is traced for the selection.
    pub has_gsi: bool,
    /// True if the selection can include only queue pair 1.
    pub is_gsi_only: bool,
    /// Number of included queue pairs that are traced for another selection or by ID.
    pub taken: usize,
    /// The other selections for which some of the `taken` queue pairs are traced.
    pub holders: Vec<SelectionId>,
}

impl SelectionStatus {
    /// Counts a traced queue pair that selection `own` includes. `holder` is the selection for which the queue pair is
    /// traced; `None` if the queue pair is traced by ID.
    pub(crate) fn count(&mut self, own: SelectionId, holder: Option<SelectionId>) {
        if holder == Some(own) {
            self.own += 1;
            return;
        }
        self.taken += 1;
        if let Some(holder) = holder.filter(|it| !self.holders.contains(it)) {
            self.holders.push(holder);
        }
    }
}

/// Error of starting, changing or ending a packet trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The queue pair does not exist.
    #[error("the queue pair does not exist")]
    NoSuchQp,
    /// The queue pair has a packet trace already.
    #[error("the queue pair already has a packet trace: end it before starting another")]
    Traced,
    /// The queue pair or selection has no packet trace.
    #[error("the queue pair or selection has no packet trace")]
    NotTraced,
    /// The number of recorded payload bytes exceeds its maximum.
    #[error("the number of recorded payload bytes is {0}: expected 0 to {MOST_PAYLOAD}")]
    Payload(u16),
    /// The size of the ring is invalid.
    #[error("the ring of the packet trace has {0} bytes: expected a power of two from {least} to {most}", least = RING.start(), most = RING.end())]
    Ring(usize),
    /// The system has no memory for the ring.
    #[error("no memory for a packet trace with a ring of {0} bytes: expected a smaller ring")]
    OutOfMemory(usize),
}

impl PacketTrace {
    /// Returns the options with the maximum number of recorded payload bytes.
    pub(crate) fn with_whole_payload(self) -> Self {
        // A configured value above the maximum is not lowered, so that `check` refuses it.
        let payload = self.payload.max(MOST_PAYLOAD);
        Self { payload, ..self }
    }

    pub(crate) fn check(&self) -> Result<(), TraceError> {
        if self.payload > MOST_PAYLOAD {
            return Err(TraceError::Payload(self.payload));
        }
        if !RING.contains(&self.ring_bytes) || !self.ring_bytes.is_power_of_two() {
            return Err(TraceError::Ring(self.ring_bytes));
        }
        Ok(())
    }
}
