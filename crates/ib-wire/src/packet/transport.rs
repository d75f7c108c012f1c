//! Layouts of the BTH and of the extended transport headers, and syndromes of the AETH.
//!
//! Source: IBTA volume 1, chapters 9.2 and 9.3. The structs have no fields for reserved bits.

use std::fmt;

use ib_types::{PKey, Psn, QKey, Qpn};

use crate::packet::opcode::Opcode;

crate::field!(Opcode(u8), Syndrome(u8));

crate::layout! {
    /// The base transport header (BTH). All packets except for raw packets have a BTH.
    ///
    /// ```text
    ///  0            8 9  10  12     16                  31
    /// +------------+-+-+----+------+-------------------+
    /// |   opcode   |S|M|pad | TVer |       P_Key       |
    /// +-+-+--------+-+-+----+------+-------------------+
    /// |F|B|  rsvd  |          destination QP           |
    /// +-+-+--------+-----------------------------------+
    /// |A|   rsvd   |      packet sequence number       |
    /// +-+----------+-----------------------------------+
    /// ```
    ///
    /// IBTA volume 1, chapter 9.2.
    pub struct Bth: 12 {
        /// The opcode.
        pub opcode: Opcode = bits(0, 0, 8),
        /// SE: true if the packet requests a solicited event at the responder.
        pub solicited_event: bool = bits(1, 0, 1),
        /// MigReq: true if the path migration state of the sending QP is Migrated.
        pub migration: bool = bits(1, 1, 1),
        /// PadCnt: the number of pad bytes after the payload, 0 to 3.
        pub pad_count: u8 = bits(1, 2, 2),
        /// `TVer`: the version of the transport headers, 0.
        pub transport_version: u8 = bits(1, 4, 4),
        /// The P_Key.
        pub p_key: PKey = bits(2, 0, 16),
        /// FECN: true if the packet has passed a congested port.
        pub fecn: bool = bits(4, 0, 1),
        /// BECN: true if a packet in the opposite direction has passed a congested port.
        pub becn: bool = bits(4, 1, 1),
        /// The destination QP.
        pub destination: Qpn = bits(5, 0, 24),
        /// AckReq: true if the packet requests an acknowledgement.
        pub ack_request: bool = bits(8, 0, 1),
        /// The packet sequence number.
        pub psn: Psn = bits(9, 0, 24),
    }
}

impl Default for Bth {
    /// Returns a header with opcode RC SEND only, the default P_Key, destination QP0, PSN 0, and no
    /// flags.
    fn default() -> Self {
        Self {
            opcode: Opcode::RC_SEND_ONLY,
            solicited_event: false,
            migration: false,
            pad_count: 0,
            transport_version: 0,
            p_key: PKey::DEFAULT,
            fecn: false,
            becn: false,
            destination: Qpn::SMI,
            ack_request: false,
            psn: Psn::default(),
        }
    }
}

crate::layout! {
    /// The reliable datagram extended transport header (RDETH); IBTA volume 1, chapter 9.3.1.
    pub struct Rdeth: 4 {
        /// The end-to-end context, 24 bits.
        pub ee_context: u32 = bits(1, 0, 24),
    }
}

crate::layout! {
    /// The datagram extended transport header (DETH); IBTA volume 1, chapter 9.3.2.
    pub struct Deth: 8 {
        /// The Q_Key, which must match the Q_Key of the destination QP.
        pub q_key: QKey = bits(0, 0, 32),
        /// The source QP.
        pub source: Qpn = bits(5, 0, 24),
    }
}

crate::layout! {
    /// The extended reliable connection header (XRCETH); IBTA volume 1, annex A14.
    pub struct XrcEth: 4 {
        /// The number of the destination XRC SRQ, 24 bits.
        pub receive_queue: u32 = bits(1, 0, 24),
    }
}

crate::layout! {
    /// The RDMA extended transport header (RETH); IBTA volume 1, chapter 9.3.3.
    pub struct Reth: 16 {
        /// The virtual address in the remote memory region.
        pub virtual_address: u64 = bits(0, 0, 64),
        /// The R_Key of the remote memory region.
        pub r_key: u32 = bits(8, 0, 32),
        /// The length of the message in bytes, 0 to 2^31.
        pub dma_length: u32 = bits(12, 0, 32),
    }
}

crate::layout! {
    /// The atomic extended transport header (AtomicETH); IBTA volume 1, chapter 9.3.4.
    pub struct AtomicEth: 28 {
        /// The virtual address in the remote memory region, a multiple of 8.
        pub virtual_address: u64 = bits(0, 0, 64),
        /// The R_Key of the remote memory region.
        pub r_key: u32 = bits(8, 0, 32),
        /// The swap operand of compare and swap, or the add operand of fetch and add.
        pub swap_or_add: u64 = bits(12, 0, 64),
        /// The compare operand of compare and swap.
        pub compare: u64 = bits(20, 0, 64),
    }
}

crate::layout! {
    /// The ACK extended transport header (AETH); IBTA volume 1, chapter 9.3.5.
    pub struct Aeth: 4 {
        /// The syndrome: ACK, RNR NAK or NAK.
        pub syndrome: Syndrome = bits(0, 0, 8),
        /// The message sequence number (MSN), 24 bits: the number of messages that the responder
        /// has completed.
        pub msn: u32 = bits(1, 0, 24),
    }
}

crate::layout! {
    /// The atomic ACK extended transport header (AtomicAckETH); IBTA volume 1, chapter 9.3.5.3.
    pub struct AtomicAckEth: 8 {
        /// The value in memory before the atomic operation.
        pub original: u64 = bits(0, 0, 64),
    }
}

crate::layout! {
    /// The immediate data header (ImmDt); IBTA volume 1, chapter 9.3.6.
    pub struct ImmDt: 4 {
        /// The immediate data as a big-endian number.
        pub data: u32 = bits(0, 0, 32),
    }
}

crate::layout! {
    /// The invalidate extended transport header (IETH); IBTA volume 1, chapter 9.3.7.
    pub struct Ieth: 4 {
        /// The R_Key to invalidate.
        pub r_key: u32 = bits(0, 0, 32),
    }
}

/// The syndrome field of an AETH, one byte.
///
/// Bit 7 is reserved. Bits 6 and 5 are the kind of acknowledgement: ACK, RNR NAK, reserved or NAK. Bits 4 to 0 are the
/// credit count, the RNR timer or the NAK code. Source: IBTA volume 1, chapter 9.7.5.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Syndrome(pub u8);

/// A decoded [`Syndrome`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Acknowledgement {
    /// ACK with the end-to-end credit count.
    Ack(Credits),
    /// RNR NAK with the RNR timer: the responder has no receive buffer. The requester retries when
    /// the timer has expired.
    RnrNak(RnrTimer),
    /// The reserved kind of acknowledgement, with the lower five bits of the syndrome.
    Reserved(u8),
    /// NAK with the error code.
    Nak(NakCode),
}

/// The end-to-end credit count of an ACK, encoded in five bits. Source: IBTA volume 1, chapter
/// 9.7.7.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Credits(u8);

/// The RNR timer, encoded in five bits: the minimum time before the requester retries.
///
/// Source: IBTA volume 1, chapter 9.7.5.2.8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RnrTimer(u8);

/// The error code of a NAK, which has five bits. Source: IBTA volume 1, chapter 9.7.5.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NakCode(u8);

impl Syndrome {
    /// ACK without end-to-end flow control.
    pub const ACK: Self = Self(0x1f);

    /// Encodes an acknowledgement, with a reserved bit of zero.
    #[must_use]
    pub const fn new(acknowledgement: Acknowledgement) -> Self {
        Self(match acknowledgement {
            Acknowledgement::Ack(credits) => credits.0,
            Acknowledgement::RnrNak(timer) => 0x20 | timer.0,
            Acknowledgement::Reserved(value) => 0x40 | (value & 0x1f),
            Acknowledgement::Nak(code) => 0x60 | code.0,
        })
    }

    /// Decodes the syndrome, and ignores the reserved bit 7.
    #[must_use]
    pub const fn decode(self) -> Acknowledgement {
        let value = self.0 & 0x1f;
        match self.0 >> 5 & 3 {
            0 => Acknowledgement::Ack(Credits(value)),
            1 => Acknowledgement::RnrNak(RnrTimer(value)),
            2 => Acknowledgement::Reserved(value),
            _ => Acknowledgement::Nak(NakCode(value)),
        }
    }
}

macro_rules! five_bits {
    ($name:ident) => {
        impl $name {
            /// Creates the value from a code, 0 to 31; `None` for larger codes.
            #[must_use]
            pub const fn new(code: u8) -> Option<Self> {
                if code <= 31 { Some(Self(code)) } else { None }
            }

            /// Returns the code, 0 to 31.
            #[must_use]
            pub const fn code(self) -> u8 {
                self.0
            }
        }
    };
}

five_bits!(Credits);
five_bits!(RnrTimer);
five_bits!(NakCode);

impl Credits {
    /// Code 31: end-to-end flow control is not used.
    pub const UNLIMITED: Self = Self(31);

    /// Returns the number of receives that the responder has posted, 0 to 32,768; `None` if
    /// end-to-end flow control is not used.
    #[must_use]
    pub const fn count(self) -> Option<u16> {
        match self.0 {
            31 => None,
            code @ 0..=3 => Some(code as u16),
            // From code 4 on, the count doubles every two codes: 4, 6, 8, 12, 16, 24 …
            code => Some((2 + (code as u16 & 1)) << (code / 2 - 1)),
        }
    }
}

impl RnrTimer {
    /// Returns the time in nanoseconds, from 10,000 (code 1, 10 µs) to 655,360,000 (code 0, 655.36
    /// ms).
    #[must_use]
    pub const fn nanoseconds(self) -> u64 {
        let hundredths_of_milliseconds = match self.0 {
            0 => 65_536,
            code @ 1..=4 => code as u64,
            // From code 5 on, the time doubles every two codes: 0.06 ms, 0.08, 0.12, 0.16, 0.24 …
            code => (2 + (code as u64 & 1)) << (code / 2 - 1),
        };
        hundredths_of_milliseconds * 10_000
    }
}

impl NakCode {
    /// PSN sequence error: packets before the received packet are missing.
    pub const SEQUENCE: Self = Self(0);
    /// Invalid request: the responder's QP does not support the request.
    pub const INVALID_REQUEST: Self = Self(1);
    /// Remote access error: R_Key, address or access rights are wrong.
    pub const REMOTE_ACCESS: Self = Self(2);
    /// Remote operational error: the responder failed to execute the request.
    pub const REMOTE_OPERATIONAL: Self = Self(3);
    /// Invalid reliable datagram (RD) request.
    pub const INVALID_RD_REQUEST: Self = Self(4);
}

impl fmt::Display for Acknowledgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ack(credits) => match credits.count() {
                Some(count) => write!(f, "ACK with {count} credits"),
                None => f.write_str("ACK"),
            },
            Self::RnrNak(timer) => {
                let microseconds = timer.nanoseconds() / 1_000;
                let (whole, rest) = (microseconds / 1_000, microseconds % 1_000 / 10);
                write!(f, "RNR NAK, {whole}.{rest:02} ms")
            }
            Self::Reserved(value) => write!(f, "reserved syndrome 0x{:02x}", 0x40 | value),
            Self::Nak(code) => write!(f, "NAK, {code}"),
        }
    }
}

impl fmt::Display for NakCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Self::SEQUENCE => "PSN sequence error",
            Self::INVALID_REQUEST => "invalid request",
            Self::REMOTE_ACCESS => "remote access error",
            Self::REMOTE_OPERATIONAL => "remote operational error",
            Self::INVALID_RD_REQUEST => "invalid RD request",
            Self(code) => return write!(f, "code {code}"),
        })
    }
}

#[cfg(test)]
mod tests;
