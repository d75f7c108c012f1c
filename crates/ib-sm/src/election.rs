//! Which of several subnet managers manages; IBTA volume 1, chapter 14.4.
//!
//! ```text
//!               nobody else, or nobody better
//!  DISCOVERING ------------------------------> MASTER
//!     |  ^                                     |  ^
//!     |  | the master is silent, or is none    |  | HANDOVER
//!     |  | any more; DISCOVER                  |  |
//!     v  |                                     v  |
//!    STANDBY <---------------------------------   |
//!     |  ^      handed over to a better one       |
//!     |  +----------------------------------------+
//!     v  |
//!  NOT ACTIVE   DISABLE from a master, back by STANDBY
//! ```

use ib_wire::mad::MadStatus;
use ib_wire::mad::sm::{SmInfo, SmState};

use crate::found::{Found, Place};

/// What a manager does after it has explored the subnet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is the master and goes on.
    Master,
    /// It waits for the manager at a port, which is or becomes the master.
    Standby(Place),
    /// It is the master and gives the subnet to a better manager.
    HandOver(Place),
}

/// Decides what a manager does after it has explored the subnet.
pub(crate) fn decide(own: &SmInfo, found: &Found) -> Outcome {
    let others = || found.managers.iter().filter(|(_, info)| info.state != SmState::NOT_ACTIVE);
    let best_master = best(others().filter(|(_, info)| info.state == SmState::MASTER));
    if own.state == SmState::MASTER {
        // One that explores finds that there is a master, and waits then.
        let waits = others().filter(|(_, info)| info.state != SmState::DISCOVERING);
        // Of two masters the worse one gives way; the better one waits until it has.
        return match (best_master, best(waits.filter(|(_, info)| info.outranks(own)))) {
            (_, Some((&place, _))) => Outcome::HandOver(place),
            (Some((&place, _)), None) => Outcome::Standby(place),
            (None, None) => Outcome::Master,
        };
    }
    match (best_master, best(others().filter(|(_, info)| info.outranks(own)))) {
        (Some((&place, _)), _) | (None, Some((&place, _))) => Outcome::Standby(place),
        (None, None) => Outcome::Master,
    }
}

/// Returns true when a better manager explores the subnet: once it has seen that there is a master it
/// waits to be given the subnet.
pub(crate) fn better_is_coming(own: &SmInfo, found: &Found) -> bool {
    found.managers.values().any(|info| info.state == SmState::DISCOVERING && info.outranks(own))
}

/// Returns the manager that beats the others.
fn best<'a>(
    managers: impl Iterator<Item = (&'a Place, &'a SmInfo)>,
) -> Option<(&'a Place, &'a SmInfo)> {
    managers.reduce(|one, other| if other.1.outranks(one.1) { other } else { one })
}

/// What an SM does because the master has sent it a Set(SMInfo).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Nothing.
    Nothing,
    /// It becomes the master.
    TakeOver,
    /// It becomes inactive.
    Disable,
    /// It waits.
    Standby,
    /// It explores the subnet.
    Discover,
}

/// Decides what becomes of a Set(SMInfo): what the sender says of itself, and the attribute modifier.
///
/// # Errors
/// Fails with the status of the answer when the order cannot be followed in this state.
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
