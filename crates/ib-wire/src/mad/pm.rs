//! Performance management: port counters; IBTA volume 1, chapter 16.1.
//!
//! | module | contents |
//! |---|---|
//! | [`counters`] | PortCounters, PortCountersExtended, and their counter selection |
//! | [`details`] | errors and discards by cause, and counter sampling |

use crate::mad::codes::masks;

pub mod counters;
pub mod details;

pub use counters::{CounterSelect, ExtendedSelect, PortCounters, PortCountersExtended};
pub use details::{
    PortExtSpeedsCounters, PortRcvErrorDetails, PortSamplesControl, PortSamplesResult,
    PortXmitDiscardDetails,
};

/// The port number that selects all ports of a node (`AllPortSelect`).
pub const ALL_PORTS: u8 = 0xff;

masks! {
    /// ClassPortInfo:CapabilityMask of performance management.
    PmCapabilityMask(u16) {
        /// [`ALL_PORTS`] is supported.
        ALL_PORT_SELECT = 8 "AllPortSelect",
        /// PortCountersExtended is supported, with unicast and multicast counters.
        EXTENDED_WIDTH = 9 "ExtendedWidth",
        /// PortCountersExtended is supported, without unicast and multicast counters.
        EXTENDED_WIDTH_NO_IETF = 10 "ExtendedWidthNoIETF",
        /// PortXmitWait is supported.
        XMIT_WAIT = 12 "PortXmitWait",
        /// QP1Dropped is supported.
        QP1_DROPPED = 15 "QP1Dropped",
    }
}

#[cfg(test)]
mod tests;
