//! The syndrome of an AETH: acknowledgements, credits, timers and errors.

use std::fmt;

/// The syndrome of an AETH, one byte.
///
/// Bit 7 is reserved, bits 6 and 5 are the kind and the others its value; IBTA volume 1, chapter
/// 9.7.5.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Syndrome(pub u8);

/// What a [`Syndrome`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Acknowledgement {
    /// All is well.
    Ack(Credits),
    /// The receiver is not ready: try again after the time.
    RnrNak(RnrTimer),
    /// The kind that is reserved, with its five bits.
    Reserved(u8),
    /// The request was refused.
    Nak(NakCode),
}

/// The credits that an ACK grants, five bits; IBTA volume 1, chapter 9.7.7.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Credits(u8);

/// The code of the time before which nothing shall be sent again, five bits; IBTA volume 1,
/// chapter 9.7.5.2.8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RnrTimer(u8);

/// The reason of a NAK, five bits; IBTA volume 1, chapter 9.7.5.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NakCode(u8);

impl Syndrome {
    /// An ACK without flow control by credits.
    pub const ACK: Self = Self(0x1f);

    /// Makes the byte of what it says; the reserved bit is zero.
    #[must_use]
    pub const fn new(acknowledgement: Acknowledgement) -> Self {
        Self(match acknowledgement {
            Acknowledgement::Ack(credits) => credits.0,
            Acknowledgement::RnrNak(timer) => 0x20 | timer.0,
            Acknowledgement::Reserved(value) => 0x40 | (value & 0x1f),
            Acknowledgement::Nak(code) => 0x60 | code.0,
        })
    }

    /// Returns what the byte says; the reserved bit is ignored.
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
            /// Makes the value from a code of 0 to 31; `None` above that.
            #[must_use]
            pub const fn new(code: u8) -> Option<Self> {
                if code <= 31 { Some(Self(code)) } else { None }
            }

            /// Returns the code.
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
    /// The code that says that credits are not used.
    pub const UNLIMITED: Self = Self(31);

    /// Returns how many receives are posted, 0 to 32,768; `None` when credits are not used.
    #[must_use]
    pub const fn count(self) -> Option<u16> {
        match self.0 {
            31 => None,
            code @ 0..=3 => Some(code as u16),
            // From 4 on, two steps double the count: 4, 6, 8, 12, 16, 24 …
            code => Some((2 + (code as u16 & 1)) << (code / 2 - 1)),
        }
    }
}

impl RnrTimer {
    /// Returns the time in nanoseconds, 10,000 (10 µs) to 655,360,000 (655.36 ms, code 0).
    #[must_use]
    pub const fn nanoseconds(self) -> u64 {
        let hundredths_of_milliseconds = match self.0 {
            0 => 65_536,
            code @ 1..=4 => code as u64,
            // From 5 on, two steps double the time: 0.06 ms, 0.08, 0.12, 0.16, 0.24 …
            code => (2 + (code as u64 & 1)) << (code / 2 - 1),
        };
        hundredths_of_milliseconds * 10_000
    }
}

impl NakCode {
    /// A packet is missing.
    pub const SEQUENCE: Self = Self(0);
    /// The request is not one that the queue pair takes.
    pub const INVALID_REQUEST: Self = Self(1);
    /// The remote key, the address or the rights do not fit.
    pub const REMOTE_ACCESS: Self = Self(2);
    /// The responder failed.
    pub const REMOTE_OPERATIONAL: Self = Self(3);
    /// The reliable datagram does not fit.
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
