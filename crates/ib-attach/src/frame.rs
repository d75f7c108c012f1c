//! Contents of a ring's slot: a header of 128 bytes, followed by a packet or a MAD.

use ib_link::{Datagram, Remote, Route};
use ib_types::{Gid, PKey, QKey, Qpn, ServiceLevel};
use ib_wire::mad::{MAD_LENGTH, Mad};
use ib_wire::packet::Grh;

/// Length in bytes of the header of a ring slot.
pub(super) const HEADER: usize = 128;

/// Maximum number of bytes after the header: the size of the largest packet, from its BTH on.
pub(super) const MAX_PAYLOAD: usize = ib_hca::MAX_PACKET;

/// Length in bytes of a ring slot, including its header.
pub(super) const SLOT: usize = 4352;

const _: () = assert!(HEADER + MAX_PAYLOAD <= SLOT && HEADER + MAD_LENGTH <= SLOT);

/// The kind of data in a slot, and the addresses of the packet or MAD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A packet, from the BTH to the end of the payload, without ICRC.
    Packet {
        /// Source LID.
        slid: u16,
        /// Destination LID.
        dlid: u16,
        /// The service level.
        sl: ServiceLevel,
        /// GRH, if the packet has one.
        grh: Option<Grh>,
    },
    /// A packet of an Ethernet port, from the BTH to the end of the padding, without the ICRC.
    Ethernet {
        /// Route from the HCA to its peer: the route of a sent packet, or the route of a response to a received packet.
        route: Route,
    },
    /// Report that a packet of the HCA was lost. The frame is followed by the data of
    /// [`Frame::loss_report`].
    Lost {
        /// Source LID of the lost packet.
        slid: u16,
        /// Destination LID of the lost packet.
        dlid: u16,
        /// Service level of the lost packet.
        sl: ServiceLevel,
        /// GRH of the lost packet, if it had one.
        grh: Option<Grh>,
    },
    /// A MAD.
    Datagram {
        /// Address of the peer: the destination of a sent MAD, or the source of a received one.
        remote: Remote,
        /// The local queue pair: 0 or 1.
        local_qpn: Qpn,
        /// Number of valid bytes of the MAD.
        length: u16,
    },
}

/// Codes of the kinds of frames.
const PACKET: u8 = 1;
const DATAGRAM: u8 = 2;
const LOST: u8 = 3;
const ETHERNET: u8 = 4;

/// Maximum sizes of the two parts of a loss report, in bytes: the reason, and the start of the
/// packet.
const MAX_REASON: usize = 512;
const MAX_HEADERS: usize = 512;

impl Frame {
    /// Returns the frame for a MAD. The caller puts the 256 bytes of the MAD after the frame's
    /// header.
    #[must_use]
    pub const fn from_datagram(datagram: &Datagram) -> Self {
        let Datagram { remote, local_qpn, length, .. } = *datagram;
        Self::Datagram { remote, local_qpn, length }
    }

    /// Returns the MAD of the frame; `None` if the frame is not a valid MAD. `bytes` are the bytes after the frame's
    /// header.
    #[must_use]
    pub fn datagram(&self, bytes: &[u8]) -> Option<Datagram> {
        let &Self::Datagram { remote, local_qpn, length } = self else { return None };
        let mad = Mad(*bytes.first_chunk().filter(|_| bytes.len() == MAD_LENGTH)?);
        Some(Datagram { remote, local_qpn, length, mad })
    }

    /// Returns the data of a loss report. `why` is the place and reason of the loss. `packet` contains the first bytes
    /// of the packet from its BTH on. `length` is the length of the whole packet from its BTH on, in bytes.
    #[must_use]
    pub fn loss_report(why: &str, packet: &[u8], length: usize) -> Vec<u8> {
        let why = &why[..why.floor_char_boundary(MAX_REASON)];
        let packet = &packet[..packet.len().min(MAX_HEADERS)];
        let lengths = [why.len() as u16, length as u16].map(u16::to_ne_bytes);
        [lengths.as_flattened(), why.as_bytes(), packet].concat()
    }

    /// Parses the data of a loss report into the reason, the first bytes of the packet, and the
    /// packet's length.
    #[must_use]
    pub fn parse_loss_report(bytes: &[u8]) -> Option<(&str, &[u8], usize)> {
        let (why, rest) = bytes.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (why, packet) = rest.split_at_checked(u16::from_ne_bytes(*why).into())?;
        Some((std::str::from_utf8(why).ok()?, packet, u16::from_ne_bytes(*length).into()))
    }

    /// Returns the header of the frame. `length` is the number of bytes after the header.
    pub(super) fn to_bytes(self, length: usize) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(0, &(length as u32).to_ne_bytes());
        let (kind, sl, grh) = match self {
            Self::Packet { slid, dlid, sl, grh } | Self::Lost { slid, dlid, sl, grh } => {
                put(8, &slid.to_ne_bytes());
                put(10, &dlid.to_ne_bytes());
                (if matches!(self, Self::Lost { .. }) { LOST } else { PACKET }, sl, grh)
            }
            Self::Datagram { remote, local_qpn, length } => {
                put(7, &[remote.path_bits]);
                put(10, &remote.lid.to_ne_bytes());
                put(12, &remote.qpn.get().to_ne_bytes());
                put(16, &remote.q_key.0.to_ne_bytes());
                put(20, &local_qpn.get().to_ne_bytes());
                put(24, &remote.p_key.0.to_ne_bytes());
                put(26, &length.to_ne_bytes());
                (DATAGRAM, remote.sl, remote.grh)
            }
            Self::Ethernet { route } => {
                put(7, &[u8::from(route.is_weak)]);
                put(8, &route.source_port.to_ne_bytes());
                put(10, &[route.traffic_class, route.hop_limit]);
                put(12, &route.flow_label.to_ne_bytes());
                put(28, &route.source.0.to_ne_bytes());
                put(44, &route.destination.0.to_ne_bytes());
                (ETHERNET, ServiceLevel::default(), None)
            }
        };
        put(4, &[kind, u8::from(grh.is_some()), sl.get()]);
        if let Some(grh) = grh {
            let mut header = [0; Grh::LENGTH];
            grh.emit(&mut header);
            put(28, &header);
        }
        bytes
    }

    /// Parses a header. Returns the frame and the number of bytes that follow the header; `None` if
    /// the header is invalid.
    pub(super) fn parse(bytes: &[u8; HEADER]) -> Option<(Self, usize)> {
        let two = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        let four = |at: usize| {
            u32::from_ne_bytes(*bytes[at..].first_chunk().expect("the field is within the header"))
        };
        let length = four(0) as usize;
        let sl = ServiceLevel::new(bytes[6])?;
        let grh = match bytes[5] {
            0 => None,
            1 => Some(Grh::parse(bytes[28..].first_chunk()?)),
            _ => return None,
        };
        let frame = match bytes[4] {
            PACKET if length <= MAX_PAYLOAD => {
                Self::Packet { slid: two(8), dlid: two(10), sl, grh }
            }
            LOST if length <= MAX_PAYLOAD => Self::Lost { slid: two(8), dlid: two(10), sl, grh },
            DATAGRAM if length == MAD_LENGTH && usize::from(two(26)) <= MAD_LENGTH => {
                let remote = Remote {
                    lid: two(10),
                    qpn: Qpn::truncated(four(12)),
                    q_key: QKey(four(16)),
                    sl,
                    p_key: PKey(two(24)),
                    path_bits: bytes[7],
                    grh,
                };
                Self::Datagram { remote, local_qpn: Qpn::truncated(four(20)), length: two(26) }
            }
            ETHERNET if length <= MAX_PAYLOAD => {
                let gid = |at: usize| {
                    let bytes = bytes[at..].first_chunk();
                    Gid(u128::from_ne_bytes(*bytes.expect("the field is within the header")))
                };
                let route = Route {
                    source: gid(28),
                    destination: gid(44),
                    is_global: true,
                    traffic_class: bytes[10],
                    flow_label: four(12),
                    hop_limit: bytes[11],
                    source_port: two(8),
                    is_weak: bytes[7] != 0,
                    ..Route::default()
                };
                Self::Ethernet { route }
            }
            _ => return None,
        };
        Some((frame, length))
    }
}

#[cfg(test)]
mod tests;
