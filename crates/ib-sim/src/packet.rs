//! What travels over a link.

use ib_types::{PKey, QKey, Qpn, ServiceLevel, VirtualLane};
use ib_wire::crc;
use ib_wire::mad::Mad;
use ib_wire::packet::{Bth, Deth, Grh, LinkNextHeader, Lrh, Opcode};

/// The VL of subnet management.
pub(crate) const MANAGEMENT_VL: u8 = 15;

/// A packet: what stands between the start of its LRH and its ICRC.
///
/// The VL is chosen anew on every link and the checksums are made when somebody looks at the
/// bytes, so neither is here. A packet that a link damages is marked and dropped at the link's end, as
/// its VCRC would have it; one that arrives has the ICRC that it was sent with, which nobody has to
/// check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The LID that it comes from.
    pub slid: u16,
    /// The LID that it goes to.
    pub dlid: u16,
    /// The service level.
    pub sl: ServiceLevel,
    /// The global route header, when there is one.
    pub grh: Option<Grh>,
    /// What comes after it.
    pub payload: Payload,
}

/// The part of a packet from the BTH on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all packets are datagrams, and none allocates"
)]
pub enum Payload {
    /// A management datagram.
    Mad(MadPayload),
    /// Any packet: from the BTH to before the ICRC, a multiple of four bytes.
    Transport(Vec<u8>),
}

/// A management datagram with the fields of its BTH and DETH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MadPayload {
    /// The queue pair that it goes to: 0 for subnet management, mostly 1 for the rest.
    pub destination_qpn: Qpn,
    /// The queue pair that it comes from.
    pub source_qpn: Qpn,
    /// The key of the destination's queue pair.
    pub q_key: QKey,
    /// The partition.
    pub p_key: PKey,
    /// How many bytes of the datagram its sender means; all 256 are on the wire.
    pub length: u16,
    /// The datagram.
    pub mad: Mad,
}

/// The length of LRH, BTH, DETH, datagram and ICRC.
const MAD_PACKET: usize = Lrh::LENGTH + Bth::LENGTH + Deth::LENGTH + 256 + 4;

impl Packet {
    /// Returns the length in bytes from the LRH to the end of the ICRC, as counters count it.
    #[must_use]
    pub fn length(&self) -> usize {
        let grh = if self.grh.is_some() { Grh::LENGTH } else { 0 };
        grh + match &self.payload {
            Payload::Mad(_) => MAD_PACKET,
            Payload::Transport(bytes) => Lrh::LENGTH + bytes.len() + 4,
        }
    }

    /// Returns true when it goes to a multicast group.
    #[must_use]
    pub const fn is_multicast(&self) -> bool {
        matches!(self.dlid, 0xc000..=0xfffe)
    }

    /// Returns true for subnet management, which has a VL of its own.
    #[must_use]
    pub fn is_smp(&self) -> bool {
        matches!(&self.payload, Payload::Mad(mad) if mad.destination_qpn.get() == 0)
    }

    /// Returns the datagram; `None` when the packet is none.
    #[must_use]
    pub const fn mad(&self) -> Option<&Mad> {
        match &self.payload {
            Payload::Mad(payload) => Some(&payload.mad),
            Payload::Transport(_) => None,
        }
    }

    /// Returns the partition; zero when the payload is too short to tell.
    #[must_use]
    pub fn p_key(&self) -> PKey {
        match &self.payload {
            Payload::Mad(payload) => payload.p_key,
            Payload::Transport(bytes) => {
                let key = bytes.get(2..4).and_then(<[u8]>::first_chunk);
                PKey(key.map_or(0, |&key| u16::from_be_bytes(key)))
            }
        }
    }

    /// Returns the queue pairs that it goes to and comes from; the latter is zero where the packet
    /// does not tell it.
    #[must_use]
    pub fn queue_pairs(&self) -> (Qpn, Qpn) {
        match &self.payload {
            Payload::Mad(payload) => (payload.destination_qpn, payload.source_qpn),
            Payload::Transport(bytes) => {
                let word = bytes.get(4..8).and_then(<[u8]>::first_chunk);
                let destination = word.map_or(0, |&word| u32::from_be_bytes(word));
                (Qpn::truncated(destination & 0xff_ffff), Qpn::truncated(0))
            }
        }
    }

    /// Returns all bytes as they are on a link, checksums included, which are those of an
    /// undamaged packet.
    #[must_use]
    pub fn to_bytes(&self, vl: VirtualLane) -> Vec<u8> {
        let length = self.length();
        let mut bytes = Vec::with_capacity(length + 2);
        let lrh = Lrh {
            vl,
            link_version: 0,
            sl: self.sl,
            next_header: if self.grh.is_some() {
                LinkNextHeader::GLOBAL
            } else {
                LinkNextHeader::LOCAL
            },
            dlid: self.dlid,
            length: (length / 4) as u16,
            slid: self.slid,
        };
        bytes.extend(lrh.to_bytes());
        if let Some(mut grh) = self.grh {
            grh.payload_length = (length - Lrh::LENGTH - Grh::LENGTH) as u16;
            grh.next_header = Grh::NEXT_IS_BTH;
            bytes.extend(grh.to_bytes());
        }
        self.payload.emit(&mut bytes);
        let icrc = crc::icrc_native(&bytes);
        bytes.extend(icrc.to_be_bytes());
        let vcrc = crc::vcrc(&bytes);
        bytes.extend(vcrc.to_be_bytes());
        bytes
    }
}

impl Payload {
    /// Returns the bytes from the BTH to before the ICRC.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.emit(&mut bytes);
        bytes
    }

    /// Adds the bytes from the BTH to before the ICRC to others.
    fn emit(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Mad(payload) => {
                let bth = Bth {
                    opcode: Opcode::UD_SEND_ONLY,
                    p_key: payload.p_key,
                    destination: payload.destination_qpn,
                    ..Bth::default()
                };
                bytes.extend(bth.to_bytes());
                let deth = Deth { q_key: payload.q_key, source: payload.source_qpn };
                bytes.extend(deth.to_bytes());
                bytes.extend(payload.mad.0);
            }
            Self::Transport(transport) => bytes.extend(transport),
        }
    }
}
