//! NodeDescription, NodeInfo and GUIDInfo; IBTA volume 1, chapters 14.2.5.2, 14.2.5.3 and 14.2.5.5.

use std::borrow::Cow;
use std::fmt;

use ib_types::text::is_unsafe;
use ib_types::{Guid, NodeKind};

use crate::mad::attribute;
use crate::mad::codes::codes;

crate::layout! {
    /// The description (name) of a node.
    pub struct NodeDescription: 64 {
        /// UTF-8 text, padded with zeros. A text of 64 bytes has no terminating zero.
        pub text: [u8; 64] = bits(0, 0, 512),
    }
}

attribute!(NodeDescription = NODE_DESCRIPTION in SUBN_LID_ROUTED | SUBN_DIRECTED_ROUTE);

impl NodeDescription {
    /// Creates a description. Truncates text of more than 64 bytes at a character boundary.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut end = text.len().min(64);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let mut bytes = [0; 64];
        bytes[..end].copy_from_slice(&text.as_bytes()[..end]);
        Self { text: bytes }
    }

    /// Returns the text up to the first zero byte.
    ///
    /// Replaces invalid UTF-8 by U+FFFD. Replaces control characters by spaces, as infiniband-diags
    /// does.
    #[must_use]
    pub fn as_text(&self) -> Cow<'_, str> {
        let end = self.text.iter().position(|&byte| byte == 0).unwrap_or(64);
        let text = String::from_utf8_lossy(&self.text[..end]);
        if text.contains(is_unsafe) { text.replace(is_unsafe, " ").into() } else { text }
    }
}

impl fmt::Display for NodeDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.as_text())
    }
}

codes! {
    /// The type of a node.
    NodeType(u8) {
        /// A channel adapter.
        CHANNEL_ADAPTER = 1 "Channel Adapter",
        /// A switch.
        SWITCH = 2 "Switch",
        /// A router.
        ROUTER = 3 "Router",
    }
}

impl NodeType {
    /// Converts the code to a [`NodeKind`]; `None` if the code is unknown.
    #[must_use]
    pub const fn kind(self) -> Option<NodeKind> {
        match self {
            Self::CHANNEL_ADAPTER => Some(NodeKind::ChannelAdapter),
            Self::SWITCH => Some(NodeKind::Switch),
            Self::ROUTER => Some(NodeKind::Router),
            _ => None,
        }
    }
}

impl From<NodeKind> for NodeType {
    fn from(kind: NodeKind) -> Self {
        match kind {
            NodeKind::ChannelAdapter => Self::CHANNEL_ADAPTER,
            NodeKind::Switch => Self::SWITCH,
            NodeKind::Router => Self::ROUTER,
        }
    }
}

crate::layout! {
    /// Properties of a node, and of the port that has received the request.
    pub struct NodeInfo: 40 {
        /// The MAD base version: 1.
        pub base_version: u8 = bits(0, 0, 8),
        /// The class version of subnet management: 1.
        pub class_version: u8 = bits(1, 0, 8),
        /// The type of the node.
        pub node_type: NodeType = bits(2, 0, 8),
        /// The number of ports. Port 0 of a switch is not counted.
        pub num_ports: u8 = bits(3, 0, 8),
        /// The system image GUID, which all nodes of a system share; zero if unknown.
        pub system_image_guid: Guid = bits(4, 0, 64),
        /// The GUID of the node.
        pub node_guid: Guid = bits(12, 0, 64),
        /// The GUID of the port that has received the request; for a switch, the GUID of port 0.
        pub port_guid: Guid = bits(20, 0, 64),
        /// The number of entries in the P_Key table of each CA or router port, or of switch port 0.
        pub partition_cap: u16 = bits(28, 0, 16),
        /// The device ID that the vendor has assigned.
        pub device_id: u16 = bits(30, 0, 16),
        /// The revision of the device.
        pub revision: u32 = bits(32, 0, 32),
        /// The number of the port that has received the request.
        pub local_port: u8 = bits(36, 0, 8),
        /// The vendor ID: the IEEE OUI of the vendor.
        pub vendor_id: u32 = bits(37, 0, 24),
    }
}

attribute!(NodeInfo = NODE_INFO in SUBN_LID_ROUTED | SUBN_DIRECTED_ROUTE);

crate::layout! {
    /// A block of eight GUIDs of a port. The attribute modifier is the index of the block.
    pub struct GuidInfo: 64 {
        /// The GUIDs. Entry 0 of block 0 is the port GUID, and is read-only.
        pub guids: [Guid; 8] = bits(0, 0, 512),
    }
}

attribute!(GuidInfo = GUID_INFO in SUBN_LID_ROUTED | SUBN_DIRECTED_ROUTE);
