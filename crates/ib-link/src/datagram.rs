//! [`Datagram`]: a MAD with the addresses of both ends.

use ib_types::{PKey, QKey, Qpn, ServiceLevel};
use ib_wire::mad::smp::PERMISSIVE_LID;
use ib_wire::mad::{MAD_LENGTH, Mad};
use ib_wire::packet::Grh;

/// The address of the remote end: the destination of a sent datagram, or the source of a received
/// one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    /// The LID; 0xffff for a directed route.
    pub lid: u16,
    /// The QPN: 0 for SMPs, usually 1 for other classes.
    pub qpn: Qpn,
    /// The Q_Key; not used for QP0.
    pub q_key: QKey,
    /// The SL.
    pub sl: ServiceLevel,
    /// The P_Key; not used for QP0.
    pub p_key: PKey,
    /// The path bits: the lower LMC bits of the local LID. The local LID is the source of a sent
    /// datagram and the destination of a received datagram.
    pub path_bits: u8,
    /// The GRH, if the datagram has one.
    pub grh: Option<Grh>,
}

impl Remote {
    /// Returns the address of QP0 at a LID, for LID-routed SMPs.
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

    /// Returns the address of directed-route SMPs: QP0 and the permissive LID.
    #[must_use]
    pub fn directed() -> Self {
        Self::smi(PERMISSIVE_LID)
    }

    /// Returns the address of QP1 at a LID, for GMPs.
    #[must_use]
    pub fn gsi(lid: u16) -> Self {
        Self { qpn: Qpn::truncated(1), q_key: QKey::GSI, ..Self::smi(lid) }
    }
}

/// A MAD and the addresses of both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// The remote end.
    pub remote: Remote,
    /// The QPN of the local end.
    pub local_qpn: Qpn,
    /// The number of valid bytes. It is below 256 only if the link transmits the length, as ibsim's
    /// protocol and umad do for SA responses.
    pub length: u16,
    /// The MAD.
    pub mad: Mad,
}

impl Datagram {
    /// Creates a datagram whose local QPN equals its remote QPN.
    #[must_use]
    pub const fn new(remote: Remote, mad: Mad) -> Self {
        Self { remote, local_qpn: remote.qpn, length: MAD_LENGTH as u16, mad }
    }

    /// Returns the reply to a received datagram: `mad` with the addresses of the received datagram.
    #[must_use]
    pub const fn reply(&self, mad: Mad) -> Self {
        Self { remote: self.remote, local_qpn: self.local_qpn, length: MAD_LENGTH as u16, mad }
    }
}
