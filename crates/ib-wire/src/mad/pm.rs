//! Performance management: counters of a port; IBTA volume 1, chapter 16.1.
//!
//! | module | holds |
//! |---|---|
//! | [`counters`] | PortCounters, PortCountersExtended and what selecting counters means |
//! | [`details`] | what stands behind some counters, counters by lane, samples |
//!
//! `Display` prints what perfquery prints.

use crate::mad::codes::masks;

pub mod counters;
pub mod details;

pub use counters::{CounterSelect, ExtendedSelect, PortCounters, PortCountersExtended};
pub use details::{
    PortExtSpeedsCounters, PortFlowCtlCounters, PortOpRcvCounters, PortRcvErrorDetails,
    PortSamplesControl, PortSamplesResult, PortVlOpData, PortVlOpPackets,
    PortVlXmitFlowCtlUpdateErrors, PortVlXmitWaitCounters, PortXmitDiscardDetails,
};

/// The port number that stands for all ports of a node.
pub const ALL_PORTS: u8 = 0xff;

masks! {
    /// ClassPortInfo:CapabilityMask of performance management.
    PmCapabilityMask(u16) {
        /// [`ALL_PORTS`] can be asked for.
        ALL_PORT_SELECT = 8 "AllPortSelect",
        /// PortCountersExtended has all its counters of packets.
        EXTENDED_WIDTH = 9 "ExtendedWidth",
        /// PortCountersExtended lacks the counters of unicast and multicast.
        EXTENDED_WIDTH_NO_IETF = 10 "ExtendedWidthNoIETF",
        /// PortXmitWait is counted.
        XMIT_WAIT = 12 "PortXmitWait",
        /// QP1Dropped is counted.
        QP1_DROPPED = 15 "QP1Dropped",
    }
}

#[cfg(test)]
mod goldens;
#[cfg(test)]
mod tests;
