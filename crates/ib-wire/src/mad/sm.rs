//! Attributes of subnet management; IBTA volume 1, chapter 14.2.5.
//!
//! | module | contents |
//! |---|---|
//! | [`node`] | NodeDescription, NodeInfo, `GUIDInfo` |
//! | [`switch`] | SwitchInfo, blocks of LFT and MFT |
//! | [`port`] | PortInfo, PortInfoExtended, `MlnxExtPortInfo` |
//! | [`link`] | codes and masks of link width, speed, state and MTU |
//! | [`capability`] | capability masks of ports |
//! | [`tables`] | P_Key tables, SL-to-VL mapping, VL arbitration |
//! | [`sm_info`] | SMInfo |
//! | [`notice`] | notices and the details of traps |

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
mod tests;
