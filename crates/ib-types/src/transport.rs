//! Transport layer: queue pair numbers, packet sequence numbers, P_Keys, Q_Keys, MTUs, service levels and VLs.

use std::fmt;

/// A queue pair number (QPN), 24 bits.
///
/// QP0 is the subnet management interface (SMI) and QP1 the general services interface (GSI).
/// 0xFFFFFF is the destination of multicast packets. Source: IBTA volume 1, chapter 9.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Qpn(u32);

/// A packet sequence number (PSN), 24 bits, which wraps around to zero.
///
/// The type does not implement `Ord`, because PSNs wrap around. [`Psn::is_before`] compares PSNs that are less than
/// 2^23 apart. Source: IBTA volume 1, chapter 9.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Psn(u32);

/// Implements a type for 24-bit numbers with wrapping arithmetic.
macro_rules! u24 {
    ($name:ident) => {
        impl $name {
            /// The highest value, 2^24 − 1.
            pub const MAX: Self = Self(0xff_ffff);

            /// Creates the value from a number below 2^24; `None` for larger numbers.
            #[must_use]
            pub const fn new(value: u32) -> Option<Self> {
                if value <= Self::MAX.0 { Some(Self(value)) } else { None }
            }

            /// Creates the value from the lower 24 bits of a number.
            #[must_use]
            pub const fn truncated(value: u32) -> Self {
                Self(value & Self::MAX.0)
            }

            /// Returns the number.
            #[must_use]
            pub const fn get(self) -> u32 {
                self.0
            }

            /// Returns the value plus `count`, modulo 2^24.
            #[must_use]
            pub const fn wrapping_add(self, count: u32) -> Self {
                Self::truncated(self.0.wrapping_add(count))
            }

            /// Returns the value minus `count`, modulo 2^24.
            #[must_use]
            pub const fn wrapping_sub(self, count: u32) -> Self {
                Self::truncated(self.0.wrapping_sub(count))
            }
        }

        impl fmt::Display for $name {
            /// Writes `0x` and six hexadecimal digits.
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

u24!(Qpn);
u24!(Psn);

impl Qpn {
    /// QP0, the subnet management interface.
    pub const SMI: Self = Self(0);

    /// QP1, the general services interface.
    pub const GSI: Self = Self(1);

    /// The destination QP of multicast packets, 0xFFFFFF.
    pub const MULTICAST: Self = Self::MAX;
}

impl Psn {
    /// Returns the signed distance of `self` after `earlier`, −2^23 to 2^23 − 1. It is negative if
    /// `self` comes before `earlier`.
    #[must_use]
    pub const fn distance_from(self, earlier: Self) -> i32 {
        // Extends the sign of the 24-bit difference: shifts it to the top of an i32, and back.
        ((self.0.wrapping_sub(earlier.0) << 8) as i32) >> 8
    }

    /// Returns true if `self` comes before `other` by at most 2^23 packets.
    #[must_use]
    pub const fn is_before(self, other: Self) -> bool {
        self.distance_from(other) < 0
    }
}

/// A partition key (P_Key), 16 bits. It names a partition and the kind of membership in it.
///
/// The upper bit is set for full members and clear for limited members. The other 15 bits are the number of the
/// partition. Source: IBTA volume 1, chapter 10.9.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PKey(pub u16);

impl PKey {
    /// Full membership of the default partition.
    pub const DEFAULT: Self = Self(0xffff);

    /// Limited membership of the default partition.
    pub const DEFAULT_LIMITED: Self = Self(0x7fff);

    /// Returns the number of the partition, 0 to 0x7FFF. Zero is not a valid partition.
    #[must_use]
    pub const fn partition(self) -> u16 {
        self.0 & 0x7fff
    }

    /// Returns true if the key belongs to a full member.
    #[must_use]
    pub const fn is_full_member(self) -> bool {
        self.0 & 0x8000 != 0
    }

    /// Returns true if a port with one of the keys accepts packets with the other key: both keys name the same
    /// partition, and at least one belongs to a full member.
    ///
    /// Source: IBTA volume 1, chapter 10.9.3.
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

/// A queue key (Q_Key), 32 bits. A UD QP drops datagrams whose Q_Key differs from the QP's.
///
/// Source: IBTA volume 1, chapter 10.2.5.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QKey(pub u32);

impl QKey {
    /// The Q_Key of QP1 on all ports.
    pub const GSI: Self = Self(0x8001_0000);

    /// Returns true if the Q_Key is controlled, that is, if its upper bit is set.
    ///
    /// If a work request specifies a controlled Q_Key, the datagram carries the Q_Key of the sending QP instead.
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

/// The path MTU: the maximum payload of a packet. The discriminants are the codes of IBTA volume
/// 1, chapter 9.8.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Mtu {
    /// 256 bytes.
    B256 = 1,
    /// 512 bytes.
    B512 = 2,
    /// 1,024 bytes, the largest MTU that fits Ethernet frames of 1,500 bytes.
    #[default]
    B1024 = 3,
    /// 2,048 bytes.
    B2048 = 4,
    /// 4,096 bytes.
    B4096 = 5,
}

impl Mtu {
    /// All MTUs in ascending order.
    pub const ALL: [Self; 5] = [Self::B256, Self::B512, Self::B1024, Self::B2048, Self::B4096];

    /// Returns the MTU with the given code, 1 to 5; `None` for other codes.
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

    /// Returns the code, 1 to 5.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Returns the size in bytes, 256 to 4,096.
    #[must_use]
    pub const fn bytes(self) -> usize {
        128 << self as u8
    }

    /// Returns the largest MTU that is not larger than `bytes`; `None` if `bytes` is below 256.
    #[must_use]
    pub fn within(bytes: usize) -> Option<Self> {
        Self::ALL.into_iter().rev().find(|mtu| mtu.bytes() <= bytes)
    }
}

/// The service level (SL) of a packet, 0 to 15. It is the same on all hops of the packet.
///
/// Each hop maps the SL to a VL. Source: IBTA volume 1, chapter 7.6.5.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceLevel(u8);

/// The virtual lane (VL) of a packet on one link, 0 to 15.
///
/// VL15 carries only subnet management packets and has no flow control. Source: IBTA volume 1,
/// chapter 7.6.4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VirtualLane(u8);

/// Implements a type for 4-bit numbers, which are displayed with a prefix.
macro_rules! u4 {
    ($name:ident, $prefix:literal) => {
        impl $name {
            /// Creates the value from a number of 0 to 15; `None` for larger numbers.
            #[must_use]
            pub const fn new(value: u8) -> Option<Self> {
                if value <= 15 { Some(Self(value)) } else { None }
            }

            /// Returns the number, 0 to 15.
            #[must_use]
            pub const fn get(self) -> u8 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

u4!(ServiceLevel, "SL");
u4!(VirtualLane, "VL");

#[cfg(test)]
mod tests;
