//! A management datagram with the addresses that it travels by.

use ib_types::{PKey, QKey, Qpn, ServiceLevel};
use ib_wire::mad::smp::PERMISSIVE_LID;
use ib_wire::mad::{MAD_LENGTH, Mad};
use ib_wire::packet::Grh;

/// The other end of a datagram: where it goes when it is sent, where it came from when it was
/// received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    /// The LID; 0xffff for a directed route.
    pub lid: u16,
    /// The queue pair: 0 for subnet management, 1 for the other classes.
    pub qpn: Qpn,
    /// The key of the queue pair; of no meaning for queue pair 0.
    pub q_key: QKey,
    /// The service level.
    pub sl: ServiceLevel,
    /// The partition; of no meaning for queue pair 0.
    pub p_key: PKey,
    /// The bits of the own LID below its LMC that are used: the source when sent, the destination
    /// when received.
    pub path_bits: u8,
    /// The global route header, when there is one.
    pub grh: Option<Grh>,
}

impl Remote {
    /// Returns queue pair 0 of a port, for subnet management by LID.
    #[must_use]
    pub fn smi(lid: u16) -> Self {
        Self {
            lid,
            qpn: Qpn::truncated(0),
            q_key: QKey(0),
            sl: ServiceLevel::default(),
            p_key: PKey::DEFAULT,
            path_bits: 0,
            grh: None,
        }
    }

    /// Returns where a directed route starts: queue pair 0, and a LID that says nothing.
    #[must_use]
    pub fn directed() -> Self {
        Self::smi(PERMISSIVE_LID)
    }

    /// Returns queue pair 1 of a port, for all other classes.
    #[must_use]
    pub fn gsi(lid: u16) -> Self {
        Self { qpn: Qpn::truncated(1), q_key: QKey::GSI, ..Self::smi(lid) }
    }
}

/// A management datagram and the two ends of its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// The other end.
    pub remote: Remote,
    /// The own queue pair.
    pub local_qpn: Qpn,
    /// How many bytes of the datagram count: 256, or less where the link can tell, as ibsim's
    /// protocol and umad do with answers of subnet administration.
    pub length: u16,
    /// The datagram.
    pub mad: Mad,
}

impl Datagram {
    /// Returns a datagram between equal queue pairs, as those of management mostly are.
    #[must_use]
    pub const fn new(remote: Remote, mad: Mad) -> Self {
        Self { remote, local_qpn: remote.qpn, length: MAD_LENGTH as u16, mad }
    }

    /// Returns the answer to a received datagram: the same ends, with another content.
    #[must_use]
    pub const fn reply(&self, mad: Mad) -> Self {
        Self { remote: self.remote, local_qpn: self.local_qpn, length: MAD_LENGTH as u16, mad }
    }
}
