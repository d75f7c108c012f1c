//! Service levels (SLs) and virtual lanes (VLs).

use std::fmt;

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
