//! Which packets of a queue pair are kept, and how much of them.

use ib_link::{Direction, Route};
use ib_types::{Gid, Instant, Qpn};
use ib_wire::packet::Opcode;

/// The most payload that is kept of a message, in bytes.
const MOST_PAYLOAD: u16 = 4096;

/// How large a ring may be, in bytes.
const RING: std::ops::RangeInclusive<usize> = 64 << 10..=1 << 30;

/// How the packets of a queue pair are traced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketTrace {
    /// How many bytes of the payload of each message are kept, 0 to 4096; headers are kept in full.
    pub payload: u16,
    /// How many bytes the ring has, 64 KiB to 1 GiB, a power of two; it is there while packets are traced.
    pub ring_bytes: usize,
    /// Which packets are kept.
    pub filter: PacketFilter,
    /// What ends the trace, and after how many more packets: then the ring holds what was before.
    pub trigger: Option<(Trigger, u32)>,
    /// Time after which no packet is traced; [`Instant::NEVER`] for no limit.
    pub until: Instant,
}

impl Default for PacketTrace {
    /// 4096 bytes of payload, a ring of 4 MiB, all packets, until it is ended.
    fn default() -> Self {
        let filter = PacketFilter::default();
        let (trigger, until) = (None, Instant::NEVER);
        Self { payload: MOST_PAYLOAD, ring_bytes: 4 << 20, filter, trigger, until }
    }
}

/// What a trace can wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The queue pair goes into its error state.
    Error,
    /// A packet is sent again.
    Retransmission,
    /// A packet that came in has no effect.
    Drop,
}

/// Which packets are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketFilter {
    /// Those of one direction only.
    pub direction: Option<Direction>,
    /// Those with these operation codes only; all where there is none.
    pub opcodes: Vec<Opcode>,
    /// Those to and from these ports only; all where there is none.
    pub peers: Vec<Peer>,
}

/// A port at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Peer {
    /// By its GID, on Ethernet that of its address.
    Gid(Gid),
    /// By its LID.
    Lid(u16),
}

impl Peer {
    /// Returns whether a route leads to the port.
    #[must_use]
    pub fn is_at(self, route: &Route) -> bool {
        match self {
            Self::Gid(gid) => route.destination == gid,
            Self::Lid(lid) => route.dlid == lid,
        }
    }
}

impl PacketFilter {
    /// Returns whether a packet is kept.
    #[must_use]
    pub fn takes(&self, direction: Direction, route: &Route, opcode: Opcode) -> bool {
        self.direction.is_none_or(|only| only == direction)
            && (self.opcodes.is_empty() || self.opcodes.contains(&opcode))
            && (self.peers.is_empty() || self.peers.iter().any(|peer| peer.is_at(route)))
    }

    /// Returns whether nothing is left out.
    pub(crate) fn takes_all(&self) -> bool {
        self.direction.is_none() && self.opcodes.is_empty() && self.peers.is_empty()
    }
}

/// Which queue pairs are traced: those that fit all of what is asked for. Without anything all are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Those with these numbers, 1 for management datagrams.
    pub qpns: Vec<Qpn>,
    /// Those that are connected to these ports. Of datagrams, which go to many, those to and from them.
    pub peers: Vec<Peer>,
    /// Those that are connected to these services, by the numbers of the connection manager.
    pub services: Vec<u64>,
    /// How their packets are traced.
    pub trace: PacketTrace,
}

/// The name of a selection within its adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SelectionId(pub(crate) u64);

impl Selection {
    /// Returns true if the selection includes queue pair 1.
    pub(crate) fn includes_gsi(&self) -> bool {
        self.services.is_empty() && (self.qpns.is_empty() || self.qpns.contains(&Qpn::GSI))
    }
}

/// The queue pairs that a selection includes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SelectionStatus {
    /// Number of queue pairs that are traced for the selection.
    pub own: usize,
    /// True if queue pair 1 is one of them.
    pub has_gsi: bool,
    /// True if the selection names no other queue pair than queue pair 1.
    pub is_gsi_only: bool,
    /// Number of included queue pairs that are traced for other selections or readers.
    pub taken: usize,
    /// The selections that they are traced for.
    pub holders: Vec<SelectionId>,
}

impl SelectionStatus {
    /// Counts a queue pair that a selection would choose, and that is traced for one.
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

/// Why packets are not traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// There is no such queue pair.
    #[error("there is no such queue pair")]
    NoSuchQp,
    /// Its packets are traced by somebody else.
    #[error("the packets of the queue pair are traced already")]
    Traced,
    /// Its packets are not traced.
    #[error("the packets of the queue pair are not traced")]
    NotTraced,
    /// No message has so much payload to keep.
    #[error("{0} bytes of payload: expected 0 to {MOST_PAYLOAD}")]
    Payload(u16),
    /// A ring cannot have such a length.
    #[error("a ring of {0} bytes: expected a power of two from {least} to {most}", least = RING.start(), most = RING.end())]
    Ring(usize),
    /// There is no memory for the ring.
    #[error("no {0} bytes of memory are left for the ring")]
    OutOfMemory(usize),
}

impl PacketTrace {
    /// Returns the same with all of the payload.
    pub(crate) fn whole(self) -> Self {
        // What cannot be is refused as it is.
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
