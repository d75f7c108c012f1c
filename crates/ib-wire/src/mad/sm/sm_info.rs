//! SMInfo: state and priority of a subnet manager; IBTA volume 1, chapter 14.2.5.13.

use std::fmt;

use ib_types::Guid;

use crate::mad::attribute;
use crate::mad::codes::codes;

codes! {
    /// The state of a subnet manager (SM). The names are those of sminfo.
    SmState(u8) {
        /// The SM is disabled.
        NOT_ACTIVE = 0 "SMINFO_NOTACT",
        /// The SM discovers the subnet.
        DISCOVERING = 1 "SMINFO_DISCOVER",
        /// The SM is standby: it monitors the master.
        STANDBY = 2 "SMINFO_STANDBY",
        /// The SM is the master: it manages the subnet.
        MASTER = 3 "SMINFO_MASTER",
    }
}

crate::layout! {
    /// The identity, priority and state of a subnet manager (SM).
    pub struct SmInfo: 21 {
        /// The GUID of the SM's port.
        pub guid: Guid = bits(0, 0, 64),
        /// The SM_Key; zero in a response to a requester that the SM does not trust.
        pub sm_key: u64 = bits(8, 0, 64),
        /// The activity counter, which increases while the SM runs.
        pub act_count: u32 = bits(16, 0, 32),
        /// The priority, 0 to 15. The SM with the highest priority becomes master. Of several such
        /// SMs, the SM with the lowest GUID becomes master.
        pub priority: u8 = bits(20, 0, 4),
        /// The state.
        pub state: SmState = bits(20, 4, 4),
    }
}

attribute!(SmInfo = SM_INFO in SUBN_LID_ROUTED | SUBN_DIRECTED_ROUTE);

/// Attribute modifiers of Set(SMInfo), which control state transitions; IBTA volume 1, table 200.
impl SmInfo {
    /// Hands over the subnet: the receiving SM becomes the master.
    pub const HANDOVER: u32 = 1;
    /// Acknowledges a handover.
    pub const ACKNOWLEDGE: u32 = 2;
    /// Disables the receiving SM: from standby it becomes not active.
    pub const DISABLE: u32 = 3;
    /// Enables the receiving SM: from not active it becomes standby.
    pub const STANDBY: u32 = 4;
    /// Starts discovery at the receiving SM: from standby it becomes discovering.
    pub const DISCOVER: u32 = 5;

    /// Returns true if this SM wins an election against `other`: its priority is higher, or the
    /// priorities are equal and its GUID is lower.
    #[must_use]
    pub const fn outranks(&self, other: &Self) -> bool {
        self.priority > other.priority
            || self.priority == other.priority && self.guid.0 < other.guid.0
    }
}

impl fmt::Display for SmInfo {
    /// Writes the part of sminfo's output after the LID, without a newline.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { guid, act_count, priority, state, .. } = self;
        write!(f, "sm guid 0x{guid:x}, activity count {act_count} ")?;
        write!(f, "priority {priority} state {} {}", state.0, state.name().unwrap_or("UNKNOWN"))
    }
}
