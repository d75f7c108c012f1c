//! The election of the master among several subnet managers. Source: IBTA volume 1, section 14.4.
//!
//! ```text
//!                  no other SM, or all others lose
//!       DISCOVERING ------------------------------> MASTER
//!        |  ^                                     |  ^
//!        |  | the master fails or resigns;        |  | HANDOVER
//!        |  | DISCOVER                            |  |
//!        v  |                                     v  |
//!       STANDBY <---------------------------------   |
//!        |  ^      hands over to an SM that wins     |
//!        |  +----------------------------------------+
//!        v  |
//!    NOT ACTIVE   by DISABLE from the master, back by STANDBY
//! ```

use ib_wire::mad::MadStatus;
use ib_wire::mad::sm::{SmInfo, SmState};

use crate::discovered_subnet::{DiscoveredSubnet, PortIndex};

/// The role of this SM after a discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// This SM is the master.
    Master,
    /// This SM is a standby SM. The SM at the given port is the master, or will become the master.
    Standby(PortIndex),
    /// This SM is the master, and must hand the subnet over to the SM at the given port.
    HandOver(PortIndex),
}

/// Decides the role of this SM after a discovery.
pub(crate) fn decide(own: &SmInfo, found: &DiscoveredSubnet) -> Outcome {
    let others = || found.managers.iter().filter(|(_, info)| info.state != SmState::NOT_ACTIVE);
    let best_master = best(others().filter(|(_, info)| info.state == SmState::MASTER));
    if own.state == SmState::MASTER {
        // SMs in the state DISCOVERING are left out, because they will find the master and become standby SMs.
        let waits = others().filter(|(_, info)| info.state != SmState::DISCOVERING);
        // If there are two masters, the loser of the election hands the subnet over. The winner is a standby SM until
        // it receives the handover.
        return match (best_master, best(waits.filter(|(_, info)| info.outranks(own)))) {
            (_, Some((&port_index, _))) => Outcome::HandOver(port_index),
            (Some((&port_index, _)), None) => Outcome::Standby(port_index),
            (None, None) => Outcome::Master,
        };
    }
    match (best_master, best(others().filter(|(_, info)| info.outranks(own)))) {
        (Some((&port_index, _)), _) | (None, Some((&port_index, _))) => {
            Outcome::Standby(port_index)
        }
        (None, None) => Outcome::Master,
    }
}

/// Returns true if an SM in state Discovering outranks this SM. The other SM becomes a standby SM first, and this master
/// hands the subnet over to it.
pub(crate) fn better_is_coming(own: &SmInfo, found: &DiscoveredSubnet) -> bool {
    found.managers.values().any(|info| info.state == SmState::DISCOVERING && info.outranks(own))
}

/// Returns the SM that wins the election against all others.
fn best<'a>(
    managers: impl Iterator<Item = (&'a PortIndex, &'a SmInfo)>,
) -> Option<(&'a PortIndex, &'a SmInfo)> {
    managers.reduce(|one, other| if other.1.outranks(one.1) { other } else { one })
}

/// The action that another SM requests by a Set(SMInfo). The attribute modifier of the request selects the action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// The attribute modifier ACKNOWLEDGE requests no action.
    Nothing,
    /// By HANDOVER, the SM becomes the master.
    TakeOver,
    /// By DISABLE, the SM enters the state NOT-ACTIVE.
    Disable,
    /// By STANDBY, the SM leaves the state NOT-ACTIVE and starts a discovery.
    Standby,
    /// By DISCOVER, the standby SM starts a discovery.
    Discover,
}

/// Returns the action for a Set(SMInfo) with the given attribute and attribute modifier.
///
/// # Errors
/// If the request is not valid in the state `own`, fails with the MAD status for the response.
pub(crate) fn order(own: SmState, sender: &SmInfo, modifier: u32) -> Result<Order, MadStatus> {
    let from_master = sender.state == SmState::MASTER;
    let from_standby = sender.state == SmState::STANDBY;
    match modifier {
        SmInfo::HANDOVER if from_master && own != SmState::NOT_ACTIVE => Ok(Order::TakeOver),
        SmInfo::ACKNOWLEDGE if from_standby => Ok(Order::Nothing),
        SmInfo::DISABLE if from_master && own == SmState::STANDBY => Ok(Order::Disable),
        SmInfo::STANDBY if from_master && own == SmState::NOT_ACTIVE => Ok(Order::Standby),
        SmInfo::DISCOVER if from_master && own == SmState::STANDBY => Ok(Order::Discover),
        _ => Err(MadStatus::BAD_FIELD),
    }
}

#[cfg(test)]
mod tests;
