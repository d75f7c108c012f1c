//! What subnet managers say of themselves; IBTA volume 1, chapter 14.2.5.13.

use std::fmt;

use ib_types::Guid;

use crate::mad::attribute;
use crate::mad::codes::codes;

codes! {
    /// The state of a subnet manager, as sminfo names it.
    SmState(u8) {
        /// It does nothing.
        NOT_ACTIVE = 0 "SMINFO_NOTACT",
        /// It explores the subnet.
        DISCOVERING = 1 "SMINFO_DISCOVER",
        /// It waits for the master to fail.
        STANDBY = 2 "SMINFO_STANDBY",
        /// It configures the subnet.
        MASTER = 3 "SMINFO_MASTER",
    }
}

crate::layout! {
    /// A subnet manager.
    pub struct SmInfo: 21 {
        /// The GUID of its port.
        pub guid: Guid = bits(0, 0, 64),
        /// The key that it shares with other managers; zero when it does not trust the asker.
        pub sm_key: u64 = bits(8, 0, 64),
        /// A counter that shows that it lives.
        pub act_count: u32 = bits(16, 0, 32),
        /// Its priority, 0 to 15; the higher one wins, then the lower GUID.
        pub priority: u8 = bits(20, 0, 4),
        /// Its state.
        pub state: SmState = bits(20, 4, 4),
    }
}

attribute!(SmInfo = SM_INFO in SUBN_LID_ROUTED | SUBN_DIRECTED_ROUTE);

/// Modifiers of Set(SMInfo): what one manager tells another; IBTA volume 1, table 200.
impl SmInfo {
    /// The receiver becomes the master.
    pub const HANDOVER: u32 = 1;
    /// The sender has heard the handover.
    pub const ACKNOWLEDGE: u32 = 2;
    /// The receiver becomes inactive.
    pub const DISABLE: u32 = 3;
    /// An inactive receiver becomes standby.
    pub const STANDBY: u32 = 4;
    /// A standby receiver starts to explore.
    pub const DISCOVER: u32 = 5;

    /// Returns true when this manager wins an election against the other.
    #[must_use]
    pub const fn beats(&self, other: &Self) -> bool {
        self.priority > other.priority
            || self.priority == other.priority && self.guid.0 < other.guid.0
    }
}

impl fmt::Display for SmInfo {
    /// Writes what sminfo prints behind the LID, without the end of the line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { guid, act_count, priority, state, .. } = self;
        write!(f, "sm guid 0x{guid:x}, activity count {act_count} ")?;
        write!(f, "priority {priority} state {} {}", state.0, state.name().unwrap_or("UNKNOWN"))
    }
}
