//! The syndrome of an AETH: ACK with credits, RNR NAK with timer, NAK with code.

use std::fmt;

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
