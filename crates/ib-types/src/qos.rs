//! Service levels and virtual lanes.

use std::fmt;

/// The service level that a packet carries from end to end, 0 to 15.
///
/// IBTA volume 1, chapter 7.6.5. Switches map it to a virtual lane per hop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceLevel(u8);

/// The virtual lane that a packet uses on one link, 0 to 15.
///
/// IBTA volume 1, chapter 7.6.4. Lane 15 carries subnet management only and has no flow control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VirtualLane(u8);

macro_rules! four_bits {
    ($name:ident, $what:literal) => {
        impl $name {
            /// Makes the value from a number of 0 to 15; `None` above that.
            #[must_use]
            pub const fn new(value: u8) -> Option<Self> {
                if value <= 15 { Some(Self(value)) } else { None }
            }

            /// Returns the number.
            #[must_use]
            pub const fn get(self) -> u8 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($what, "{}"), self.0)
            }
        }
    };
}

four_bits!(ServiceLevel, "SL");
four_bits!(VirtualLane, "VL");
