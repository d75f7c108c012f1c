//! Numbers of the transport layer: queue pairs, sequence numbers and the keys that guard them.

use std::fmt;

/// The number of a queue pair, 24 bits.
///
/// IBTA volume 1, chapter 9.2: 0 is the subnet management interface, 1 the general services
/// interface, 0xFFFFFF the destination of multicast packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Qpn(u32);

/// A packet sequence number, 24 bits, after whose highest value zero comes again.
///
/// IBTA volume 1, chapter 9.2. There is no first and no last, hence no `Ord`: which of two comes
/// earlier is what [`Psn::distance_from`] tells of those within 2^23 of each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Psn(u32);

macro_rules! three_bytes {
    ($name:ident) => {
        impl $name {
            /// The highest value, 2^24 − 1.
            pub const MAX: Self = Self(0xff_ffff);

            /// Makes the value from a number below 2^24; `None` above that.
            #[must_use]
            pub const fn new(value: u32) -> Option<Self> {
                if value <= Self::MAX.0 { Some(Self(value)) } else { None }
            }

            /// Makes the value from the lower 24 bits of a number.
            #[must_use]
            pub const fn truncated(value: u32) -> Self {
                Self(value & Self::MAX.0)
            }

            /// Returns the number.
            #[must_use]
            pub const fn get(self) -> u32 {
                self.0
            }

            /// Returns the value that comes `count` later, modulo 2^24.
            #[must_use]
            pub const fn wrapping_add(self, count: u32) -> Self {
                Self::truncated(self.0.wrapping_add(count))
            }

            /// Returns the value that came `count` earlier, modulo 2^24.
            #[must_use]
            pub const fn wrapping_sub(self, count: u32) -> Self {
                Self::truncated(self.0.wrapping_sub(count))
            }
        }

        impl fmt::Display for $name {
            /// Writes six hexadecimal digits after 0x.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "0x{:06x}", self.0)
            }
        }

        impl fmt::LowerHex for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::LowerHex::fmt(&self.0, f)
            }
        }
    };
}

three_bytes!(Qpn);
three_bytes!(Psn);

impl Qpn {
    /// The subnet management interface, QP0.
    pub const SMI: Self = Self(0);

    /// The general services interface, QP1.
    pub const GSI: Self = Self(1);

    /// The destination of every multicast packet.
    pub const MULTICAST: Self = Self::MAX;
}

impl Psn {
    /// Returns how many packets this one comes after `earlier`: −2^23 to 2^23 − 1, negative when
    /// it comes before.
    #[must_use]
    pub const fn distance_from(self, earlier: Self) -> i32 {
        // The sign of a 24-bit difference is moved to where a 32-bit number has it, and back.
        ((self.0.wrapping_sub(earlier.0) << 8) as i32) >> 8
    }

    /// Returns true when this one comes before `other`, by at most 2^23 packets.
    #[must_use]
    pub const fn is_before(self, other: Self) -> bool {
        self.distance_from(other) < 0
    }
}

/// A partition key, 16 bits: who may talk to whom.
///
/// IBTA volume 1, chapter 10.9: the upper bit tells full from limited members, the other 15 are the
/// partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PKey(pub u16);

impl PKey {
    /// Full membership of the default partition.
    pub const DEFAULT: Self = Self(0xffff);

    /// Limited membership of the default partition.
    pub const DEFAULT_LIMITED: Self = Self(0x7fff);

    /// Returns the number of the partition, 0 to 0x7FFF; zero is none.
    #[must_use]
    pub const fn partition(self) -> u16 {
        self.0 & 0x7fff
    }

    /// Returns true for a full member.
    #[must_use]
    pub const fn is_full_member(self) -> bool {
        self.0 & 0x8000 != 0
    }

    /// Returns true when ports with these keys may talk: one partition, at least one full member.
    ///
    /// IBTA volume 1, chapter 10.9.3.
    #[must_use]
    pub const fn matches(self, other: Self) -> bool {
        self.partition() != 0
            && self.partition() == other.partition()
            && (self.is_full_member() || other.is_full_member())
    }
}

impl Default for PKey {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Display for PKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:04x}", self.0)
    }
}

/// A queue key, 32 bits: what a datagram must carry to be received.
///
/// IBTA volume 1, chapter 10.2.5.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QKey(pub u32);

impl QKey {
    /// The key of every QP1.
    pub const GSI: Self = Self(0x8001_0000);

    /// Returns true for a controlled key: one that a work request cannot ask for, so that the queue
    /// pair's own key is sent instead.
    #[must_use]
    pub const fn is_controlled(self) -> bool {
        self.0 & 0x8000_0000 != 0
    }
}

impl fmt::Display for QKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:08x}", self.0)
    }
}

/// The most bytes of payload in a packet, by the codes of IBTA volume 1, chapter 9.8.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Mtu {
    /// 256 bytes.
    B256 = 1,
    /// 512 bytes.
    B512 = 2,
    /// 1,024 bytes, which a usual Ethernet carries.
    #[default]
    B1024 = 3,
    /// 2,048 bytes.
    B2048 = 4,
    /// 4,096 bytes.
    B4096 = 5,
}

impl Mtu {
    /// All of them, the smallest first.
    pub const ALL: [Self; 5] = [Self::B256, Self::B512, Self::B1024, Self::B2048, Self::B4096];

    /// Returns the MTU of a code, 1 to 5.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::B256),
            2 => Some(Self::B512),
            3 => Some(Self::B1024),
            4 => Some(Self::B2048),
            5 => Some(Self::B4096),
            _ => None,
        }
    }

    /// Returns the code.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Returns the bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        128 << self as u8
    }

    /// Returns the largest one of at most so many bytes; `None` below 256.
    #[must_use]
    pub fn within(bytes: usize) -> Option<Self> {
        Self::ALL.into_iter().rev().find(|mtu| mtu.bytes() <= bytes)
    }
}

#[cfg(test)]
mod tests;
