//! Responses to congestion control requests, as in ibsim.
//!
//! ibsim has no congestion control. It handles congestion control requests like SMPs with the same
//! attribute ID, and returns them with a status and unchanged data. Tools such as `ibccquery`
//! therefore show zeros.

use ib_wire::mad::{AttributeId, Mad, MadStatus, Method};

/// ibsim responds to class versions up to this one.
const HIGHEST_VERSION: u8 = 2;

/// IDs of attributes that only switches have in ibsim: 0x12 is `CongestionKeyInfo`, and in the SM
/// class SwitchInfo. In the SM class, 0x19 and 0x1b are the LFT and the MFT.
const OF_SWITCHES: [u16; 3] = [0x12, 0x19, 0x1b];

/// IDs of attributes that all nodes have in ibsim: 0x10 is NodeDescription in the SM class. The
/// others are `CongestionInfo`, `SwitchCongestionSetting`, `SwitchPortCongestionSetting`,
/// `CACongestionSetting` and `CongestionControlTable`.
const OF_ALL: [u16; 6] = [0x10, 0x11, 0x14, 0x15, 0x16, 0x17];

/// Attribute ID of Timestamp, and of `VLArbitrationTable` in the SM class. ibsim finds no table for
/// the modifier of the request, and responds with [`MadStatus::BAD_FIELD`].
const TIMESTAMP: u16 = 0x18;

/// Returns true if ibsim responds to a request. ibsim drops other requests.
pub(crate) fn is_answered(mad: &Mad) -> bool {
    let AttributeId(id) = mad.attribute_id();
    matches!(mad.method(), Method::GET | Method::SET)
        && mad.class_version() <= HIGHEST_VERSION
        && (OF_ALL.contains(&id) || OF_SWITCHES.contains(&id) || id == TIMESTAMP)
}

/// Returns the status of the response to a congestion control request. A Set is refused, unlike in
/// ibsim, which writes the SM attribute with the same ID.
pub(crate) fn answer(is_switch: bool, mad: &Mad) -> MadStatus {
    let AttributeId(id) = mad.attribute_id();
    match mad.method() {
        Method::GET if id == TIMESTAMP => MadStatus::BAD_FIELD,
        Method::GET if is_switch || !OF_SWITCHES.contains(&id) => MadStatus::OK,
        _ => MadStatus::BAD_METHOD_ATTRIBUTE,
    }
}

#[cfg(test)]
mod tests;
