//! What stands in a slot: a header of 128 bytes, and the bytes behind it.

use ib_link::{Datagram, Remote};
use ib_types::{PKey, QKey, Qpn, ServiceLevel};
use ib_wire::mad::{MAD_LENGTH, Mad};
use ib_wire::packet::Grh;

/// The length of a header.
pub(super) const HEADER: usize = 128;

/// The longest bytes behind a header: a packet from its BTH on.
pub(super) const MOST: usize = ib_hca::MAX_PACKET;

/// The length of a slot.
pub(super) const SLOT: usize = 4352;

const _: () = assert!(HEADER + MOST <= SLOT && HEADER + MAD_LENGTH <= SLOT);

/// The addresses of what a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A packet of the transport, from its BTH to before its ICRC.
    Packet {
        /// The LID that it comes from.
        slid: u16,
        /// The LID that it goes to.
        dlid: u16,
        /// The service level.
        sl: ServiceLevel,
        /// The global route header, when there is one.
        grh: Option<Grh>,
    },
    /// The news that a packet which the HCA has sent is lost: [`Frame::news`] stand behind it.
    Lost {
        /// The LID that it came from.
        slid: u16,
        /// The LID that it was to go to.
        dlid: u16,
        /// The service level.
        sl: ServiceLevel,
        /// The global route header, when there is one.
        grh: Option<Grh>,
    },
    /// A management datagram.
    Datagram {
        /// The other end.
        remote: Remote,
        /// The own queue pair.
        local_qpn: Qpn,
        /// How many bytes of it count.
        length: u16,
    },
}

/// The kinds of frames.
const PACKET: u8 = 1;
const DATAGRAM: u8 = 2;
const LOST: u8 = 3;

/// How long the reason of a loss may be, and how much of the packet is told.
const MOST_REASON: usize = 512;
const MOST_TOLD: usize = 512;

impl Frame {
    /// Returns the frame of a datagram, whose 256 bytes stand behind it.
    #[must_use]
    pub const fn of(datagram: &Datagram) -> Self {
        let Datagram { remote, local_qpn, length, .. } = *datagram;
        Self::Datagram { remote, local_qpn, length }
    }

    /// Returns the datagram that a frame and the bytes behind it are.
    #[must_use]
    pub fn datagram(&self, bytes: &[u8]) -> Option<Datagram> {
        let &Self::Datagram { remote, local_qpn, length } = self else { return None };
        let mad = Mad(*bytes.first_chunk().filter(|_| bytes.len() == MAD_LENGTH)?);
        Some(Datagram { remote, local_qpn, length, mad })
    }

    /// Returns what stands behind the news of a loss: where and why, the packet's headers from its BTH on, and how long
    /// it was with its payload.
    #[must_use]
    pub fn news(why: &str, packet: &[u8], length: usize) -> Vec<u8> {
        let why = &why[..why.floor_char_boundary(MOST_REASON)];
        let packet = &packet[..packet.len().min(MOST_TOLD)];
        let lengths = [why.len() as u16, length as u16].map(u16::to_ne_bytes);
        [lengths.as_flattened(), why.as_bytes(), packet].concat()
    }

    /// Returns where and why a packet was lost, its headers, and how long it was, from what stands behind the news.
    #[must_use]
    pub fn news_in(bytes: &[u8]) -> Option<(&str, &[u8], usize)> {
        let (why, rest) = bytes.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (why, packet) = rest.split_at_checked(u16::from_ne_bytes(*why).into())?;
        Some((std::str::from_utf8(why).ok()?, packet, u16::from_ne_bytes(*length).into()))
    }

    /// Returns the header of a frame with so many bytes behind it.
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
        };
        put(4, &[kind, u8::from(grh.is_some()), sl.get()]);
        if let Some(grh) = grh {
            let mut header = [0; Grh::LENGTH];
            grh.emit(&mut header);
            put(28, &header);
        }
        bytes
    }

    /// Returns the frame of a header, and how many bytes are behind it; `None` for what is no header.
    pub(super) fn parse(bytes: &[u8; HEADER]) -> Option<(Self, usize)> {
        let two = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        let four = |at: usize| u32::from_ne_bytes(*bytes[at..].first_chunk().expect("4 bytes"));
        let length = four(0) as usize;
        let sl = ServiceLevel::new(bytes[6])?;
        let grh = match bytes[5] {
            0 => None,
            1 => Some(Grh::parse(bytes[28..].first_chunk()?)),
            _ => return None,
        };
        let frame = match bytes[4] {
            PACKET if length <= MOST => Self::Packet { slid: two(8), dlid: two(10), sl, grh },
            LOST if length <= MOST => Self::Lost { slid: two(8), dlid: two(10), sl, grh },
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
            _ => return None,
        };
        Some((frame, length))
    }
}

#[cfg(test)]
mod tests;
