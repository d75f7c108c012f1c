//! Messages between ACM services: address resolution by multicast, 256 bytes over a UD QP.
//!
//! The first 16 bytes have the same layout as in the common MAD header. Address types and lengths
//! follow, in place of attribute ID and modifier:
//!
//! ```text
//!   0 BaseVersion, class 0x2c, ClassVersion 1, method
//!   4 status (2)    6 control (2)    8 transaction (8)
//!  16 destination type, length     18 source type, length
//!  20 GID count, responder resources, initiator depth, reserved
//!  24 destination (64)             88 source (64)
//! 152 GIDs of multicast groups (6 × 16), least preferred first
//! ```

use ib_types::{Gid, PKey};

use super::sa::RateCode;
use super::sm::MtuCode;
use crate::mad::codes::codes;
use crate::mad::{MadStatus, Method, MgmtClass, TransactionId};

codes! {
    /// The type of an address.
    AddressType(u8) {
        /// No address.
        NONE = 0 "none",
        /// A name.
        NAME = 1 "name",
        /// An IPv4 address.
        IPV4 = 2 "IPv4",
        /// An IPv6 address.
        IPV6 = 3 "IPv6",
        /// A GID.
        GID = 4 "GID",
        /// A LID.
        LID = 5 "LID",
    }
}

crate::layout! {
    /// A request or a response of ACM address resolution.
    pub struct AcmMessage: 256 {
        /// The base version: 1.
        pub base_version: u8 = bits(0, 0, 8),
        /// The class: [`MgmtClass::ACM`].
        pub class: MgmtClass = bits(1, 0, 8),
        /// The class version: 1.
        pub class_version: u8 = bits(2, 0, 8),
        /// The method: Get in a request, GetResp in a response.
        pub method: Method = bits(3, 0, 8),
        /// The status; always zero.
        pub status: MadStatus = bits(4, 0, 16),
        /// The operation: [`AcmMessage::RESOLVE`].
        pub control: u16 = bits(6, 0, 16),
        /// The transaction ID. The response repeats it.
        pub transaction_id: TransactionId = bits(8, 0, 64),
        /// The type of the destination address ([`AcmMessage::destination`]).
        pub destination_type: AddressType = bits(16, 0, 8),
        /// The length of the destination field: 64.
        pub destination_length: u8 = bits(17, 0, 8),
        /// The type of the source address ([`AcmMessage::source`]).
        pub source_type: AddressType = bits(18, 0, 8),
        /// The length of the source field: 64.
        pub source_length: u8 = bits(19, 0, 8),
        /// The number of valid multicast GIDs in [`AcmMessage::gids`].
        pub gid_count: u8 = bits(20, 0, 8),
        /// Responder resources; zero.
        pub responder_resources: u8 = bits(21, 0, 8),
        /// Initiator depth; zero.
        pub initiator_depth: u8 = bits(22, 0, 8),
        /// The address to resolve, padded with zeros.
        pub destination: [u8; 64] = bits(24, 0, 512),
        /// The address of the requester, padded with zeros.
        pub source: [u8; 64] = bits(88, 0, 512),
        /// In a request: the multicast groups of the requester, least preferred first. In a
        /// response: the selected group.
        pub gids: [Gid; 6] = bits(152, 0, 768),
    }
}

impl AcmMessage {
    /// The value of [`AcmMessage::control`] for address resolution.
    pub const RESOLVE: u16 = 1;

    /// Returns the valid multicast GIDs, at most six.
    #[must_use]
    pub fn groups(&self) -> &[Gid] {
        &self.gids[..usize::from(self.gid_count).min(6)]
    }
}

/// Returns the GID of the ACM multicast group for this partition, type of service, rate and MTU.
///
/// In the GID, the full-membership bit of the P_Key is always set.
#[must_use]
pub const fn group_gid(p_key: PKey, type_of_service: u8, rate: RateCode, mtu: MtuCode) -> Gid {
    let [high, low] = (p_key.0 | 0x8000).to_be_bytes();
    let start = [0xff, 0x15, 0x40, 0x01, high, low, type_of_service, rate.0, mtu.0];
    let mut bytes = [0; 16];
    let mut index = 0;
    while index < start.len() {
        bytes[index] = start[index];
        index += 1;
    }
    Gid::from_bytes(bytes)
}

#[cfg(test)]
mod tests;
