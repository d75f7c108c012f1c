//! The attributes of subnet management; IBTA volume 1, chapter 14.2.5.
//!
//! | module | holds |
//! |---|---|
//! | [`node`] | NodeDescription, NodeInfo, `GUIDInfo` |
//! | [`switch`] | SwitchInfo and the forwarding tables |
//! | [`port`] | PortInfo, the extended information of ports |
//! | [`link`] | the masks and codes of link width, speed, state and MTU |
//! | [`capability`] | capability masks |
//! | [`tables`] | `P_Keys`, service levels to virtual lanes, arbitration |
//! | [`sm_info`] | `SMInfo` |
//! | [`notice`] | notices and the details of traps |
//!
//! `Display` of NodeInfo, PortInfo, SwitchInfo and `SMInfo` prints what smpquery and sminfo print.

pub mod capability;
pub mod link;
pub mod node;
pub mod notice;
pub mod port;
pub mod sm_info;
pub mod switch;
pub mod tables;

pub use capability::{CapabilityMask, CapabilityMask2};
pub use link::{
    LinkSpeedExt2Mask, LinkSpeedExtMask, LinkSpeedMask, LinkWidthMask, MlnxSpeedMask, MtuCode,
    PhysState, PortState, SpeedSet, VlCap,
};
pub use node::{GuidInfo, NodeDescription, NodeInfo, NodeType};
pub use notice::{Notice, NoticeDetails, TrapNumber};
pub use port::{MlnxExtPortInfo, PortInfo, PortInfoExtended};
pub use sm_info::{SmInfo, SmState};
pub use switch::{LinearForwardingBlock, MulticastForwardingBlock, SwitchInfo};
pub use tables::{PKeyTable, SlToVl, VlArbitration, VlArbitrationEntry};

#[cfg(test)]
mod goldens;
#[cfg(test)]
mod tests;
