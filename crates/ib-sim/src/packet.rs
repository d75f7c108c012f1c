//! Packets on links.

use ib_types::{PKey, QKey, Qpn, ServiceLevel, VirtualLane};
use ib_wire::crc;
use ib_wire::mad::Mad;
use ib_wire::packet::{Bth, Deth, Grh, LinkNextHeader, Lrh, Opcode};

/// The VL of SMPs.
pub(crate) const MANAGEMENT_VL: u8 = 15;

/// A packet, from the start of its LRH to the end of its payload.
///
/// The VL is not a field, because every port chooses the VL. The checksums are not fields, because
/// [`Packet::to_bytes`] computes them. If a packet is damaged on a link, it is marked and dropped
/// at the end of the link, as if its VCRC were wrong. All other packets arrive with a valid ICRC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The source LID.
    pub slid: u16,
    /// The destination LID.
    pub dlid: u16,
    /// The service level.
    pub sl: ServiceLevel,
    /// The global route header, if present.
    pub grh: Option<Grh>,
    /// The part of the packet after the LRH and GRH.
    pub payload: Payload,
}

/// The part of a packet from the BTH to the end of the payload.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all packets are MADs, which are not allocated separately"
)]
pub enum Payload {
    /// A MAD.
    Mad(MadPayload),
    /// The bytes of any other packet from the BTH to the end of the payload. Their number is a
    /// multiple of four.
    Transport(Vec<u8>),
}

/// A MAD with the fields of its BTH and DETH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MadPayload {
    /// The destination QP: 0 for SMPs, usually 1 for GMPs.
    pub destination_qpn: Qpn,
    /// The source QP.
    pub source_qpn: Qpn,
    /// The Q_Key of the destination QP.
    pub q_key: QKey,
    /// The P_Key.
    pub p_key: PKey,
    /// Length of the MAD that the sender has specified, in bytes. All 256 bytes are on the wire.
    pub length: u16,
    /// The MAD.
    pub mad: Mad,
}

/// Length of a packet with a MAD in bytes: LRH, BTH, DETH, MAD and ICRC.
const MAD_PACKET: usize = Lrh::LENGTH + Bth::LENGTH + Deth::LENGTH + 256 + 4;

impl Packet {
    /// Returns the length in bytes from the LRH to the ICRC. `PortXmitData` and `PortRcvData` count
    /// this length.
    #[must_use]
    pub fn length(&self) -> usize {
        let grh = if self.grh.is_some() { Grh::LENGTH } else { 0 };
        grh + match &self.payload {
            Payload::Mad(_) => MAD_PACKET,
            Payload::Transport(bytes) => Lrh::LENGTH + bytes.len() + 4,
        }
    }

    /// Returns true if the destination is a multicast group.
    #[must_use]
    pub const fn is_multicast(&self) -> bool {
        matches!(self.dlid, 0xc000..=0xfffe)
    }

    /// Returns true if the packet is an SMP, which uses VL 15.
    #[must_use]
    pub fn is_smp(&self) -> bool {
        matches!(&self.payload, Payload::Mad(mad) if mad.destination_qpn.get() == 0)
    }

    /// Returns the MAD; `None` for other packets.
    #[must_use]
    pub const fn mad(&self) -> Option<&Mad> {
        match &self.payload {
            Payload::Mad(payload) => Some(&payload.mad),
            Payload::Transport(_) => None,
        }
    }

    /// Returns the P_Key of the packet; zero if the payload is shorter than a BTH.
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

    /// Returns the destination QP and the source QP. The source QP is zero if the packet is not a
    /// MAD.
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

    /// Returns all bytes of the packet on the wire, with valid checksums.
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
    /// Returns the bytes from the BTH to the end of the payload.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.emit(&mut bytes);
        bytes
    }

    /// Appends the bytes from the BTH to the end of the payload.
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
