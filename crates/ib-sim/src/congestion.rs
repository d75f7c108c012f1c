//! Requests of congestion control, answered as ibsim answers them.
//!
//! ibsim has no congestion control. It looks such requests up among the attributes of subnet
//! management that have the same numbers, and returns them with a status and their data unchanged, so
//! that tools such as `ibccquery` show zeros.

use ib_topology::PortId;
use ib_wire::mad::{AttributeId, Mad, MadStatus, Method};

use crate::sim::Sim;

/// The highest class version that ibsim answers.
const HIGHEST_VERSION: u8 = 2;

/// `CongestionKeyInfo`, which has the number of SwitchInfo, and two numbers of forwarding tables.
const OF_SWITCHES: [u16; 3] = [0x12, 0x19, 0x1b];

/// `CongestionInfo`, `SwitchCongestionSetting`, `SwitchPortCongestionSetting`, `CACongestionSetting` and
/// `CongestionControlTable`; 0x10 is none, but NodeDescription has the number.
const OF_ALL: [u16; 6] = [0x10, 0x11, 0x14, 0x15, 0x16, 0x17];

/// Timestamp, which has the number of `VLArbitrationTable`: its modifier names no table.
const TIMESTAMP: u16 = 0x18;

/// Returns true for a request that is answered; ibsim drops the others.
pub(crate) fn is_answered(mad: &Mad) -> bool {
    let AttributeId(id) = mad.attribute_id();
    matches!(mad.method(), Method::GET | Method::SET)
        && mad.class_version() <= HIGHEST_VERSION
        && (OF_ALL.contains(&id) || OF_SWITCHES.contains(&id) || id == TIMESTAMP)
}

impl Sim {
    /// Answers a request of congestion control that was sent to an end port. Nothing can be set: ibsim
    /// would write the attribute of subnet management with the same number.
    pub(crate) fn congestion_control(&mut self, port: PortId, mad: &mut Mad) -> MadStatus {
        let AttributeId(id) = mad.attribute_id();
        let is_switch = self.is_switch(self.port(port).node);
        match mad.method() {
            Method::GET if id == TIMESTAMP => MadStatus::BAD_FIELD,
            Method::GET if is_switch || !OF_SWITCHES.contains(&id) => MadStatus::OK,
            _ => MadStatus::BAD_METHOD_ATTRIBUTE,
        }
    }
}

#[cfg(test)]
mod tests;
