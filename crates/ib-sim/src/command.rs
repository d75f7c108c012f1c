//! What a console or a script can tell a fabric to do.
//!
//! ibsim's commands keep their names and meaning; those below the line are new. A port is written
//! `"name"[number]`, a node `"name"`; the quotes can be left out where the name has no blank, and a
//! quote that is part of a quoted name stands twice. Words are read without regard to case.
//!
//! | command | effect |
//! |---|---|
//! | `Link "a"[n] "b"[m]` | plugs a cable into two free ports |
//! | `Unlink "a"`, `Unlink "a"[n]` | pulls the cables of a node, or of a port; fails where there is none |
//! | `ReLink "a"`, `ReLink "a"[n]` | plugs what was pulled back in |
//! | `Clear "a"`, `Clear "a"[n]` | unlinks, for good, mends faults, and resets what was set and counted |
//! | `Guid "a" guid`, `Guid "a"[n] guid` | changes the GUID of a node, and of its ports to match (port n of an HCA: GUID + n), or of a port |
//! | `Error "a" rate`, `Error "a"[n] rate [attribute]` | loses so many per cent of requests that the port should answer; without an attribute also of packets that enter it, each a PortRcvErrors |
//! | `PerformanceSet "a"[n] PortCounters.field=value` | sets a counter, in PortCounters and PortCountersExtended |
//! | `Baselid "a"[n] lid [lmc]` | changes the LID of a port |
//! |---|---|
//! | `Fault "a"[n] what=value …`, `Fault "a"[n] none` | sets or mends `loss`, `corrupt`, `duplicate`, `reorder` with probabilities, `held` (of what `reorder` holds back) and `delay` with times, for packets that the port sends |
//! | `Flap "a"[n] down up times` | takes the link down and up, once at least |
//! | `Power "a" on\|off` | a node without power neither answers nor forwards, and forgets what it was told |
//! | `MKey "a"[n] key [protect]` | sets a key that the manager does not know |
//! | `Misroute "a" p q`, `Misroute "a" none` | the switch sends by q what its table has for p |
//! | `IgnoreLft "a" all\|none\|block …` | the switch acknowledges writes of its table and does nothing |
//! | `Swap "a"[n] "b"[m]` | exchanges two cables |

use std::time::Duration;

use ib_types::Guid;
use ib_wire::mad::AttributeId;

mod check;
mod display;
pub(crate) mod in_force;
mod parse;
mod run;
mod target;

pub(crate) use check::check;
pub(crate) use display::Time;
pub use parse::ParseCommandError;
pub(crate) use parse::closing;
pub use parse::duration as parse_duration;
pub(crate) use run::run;

/// A node, or one of its ports, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The name of the node.
    pub node: String,
    /// The number of the port; `None` where the node is meant.
    pub port: Option<u8>,
}

/// A command.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Command {
    /// Plugs a cable in.
    Link(Target, Target),
    /// Pulls cables.
    Unlink(Target),
    /// Plugs pulled cables back in.
    Relink(Target),
    /// Pulls cables for good, and resets the ports.
    Clear(Target),
    /// Changes a GUID.
    Guid(Target, Guid),
    /// Loses a part of requests, and without an attribute of packets that enter the port, too: per
    /// cent, and the attribute that is meant.
    Error(Target, f64, Option<AttributeId>),
    /// Sets a counter by its name, in `PortCounters` and in `PortCountersExtended`.
    PerformanceSet(Target, String, u64),
    /// Changes LID and LMC.
    BaseLid(Target, u16, u8),
    /// Sets the faults of what a port sends; those not named stay as they are, none at all mends
    /// them.
    Fault(Target, Vec<Fault>),
    /// Takes a link down and up: for how long each, how often.
    Flap(Target, Duration, Duration, u32),
    /// Switches a node on or off.
    Power(Target, bool),
    /// Sets an M_Key and how much it protects.
    MKey(Target, u64, u8),
    /// Has a switch send by the second port what its table has for the first; `None` has it obey.
    Misroute(Target, Option<(u8, u8)>),
    /// Has a switch ignore writes of its linear forwarding table.
    IgnoreLft(Target, Ignored),
    /// Exchanges the cables of two ports.
    Swap(Target, Target),
}

/// A fault of a port and its size.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Fault {
    /// The probability that a packet vanishes.
    Loss(f64),
    /// The probability that a bit flips.
    Corruption(f64),
    /// The probability that a packet arrives twice.
    Duplication(f64),
    /// The probability that a packet is held back.
    Reordering(f64),
    /// How long packets are held back at most; without it, and with zero, as long as eight packets of
    /// the link's MTU take.
    HeldBack(Duration),
    /// How much longer every packet takes.
    Delay(Duration),
}

/// Which blocks of a table are not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ignored {
    /// All.
    All,
    /// None.
    None,
    /// These.
    Blocks(Vec<u16>),
}

/// Why a command could not be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// There is no such node.
    #[error("there is no node {0:?}: expected the name or the description of one")]
    NoSuchNode(String),
    /// The node has no such port.
    #[error("node {node:?} has no port {port}: expected {first} to {last}")]
    NoSuchPort {
        /// The node.
        node: String,
        /// The port.
        port: u8,
        /// The lowest number.
        first: u8,
        /// The highest number.
        last: u8,
    },
    /// A port is needed and only a node was named.
    #[error("expected a port: {0:?}[number]")]
    NeedsPort(String),
    /// A switch is needed.
    #[error("node {0:?} is no switch: expected one")]
    NotASwitch(String),
    /// The port has a cable already.
    #[error("port {node:?}[{port}] has a cable already: expected a free port")]
    Linked {
        /// The node.
        node: String,
        /// The port.
        port: u8,
    },
    /// The port has no cable.
    #[error("port {node:?}[{port}] has no cable: expected a port with one")]
    NotLinked {
        /// The node.
        node: String,
        /// The port.
        port: u8,
    },
    /// There is no cable that could be pulled.
    #[error("{0} has no cable: expected one that can be pulled")]
    NothingToPull(String),
    /// No cable was pulled that could be plugged back in.
    #[error("no cable of {0} was pulled: expected one that can be plugged back in")]
    NothingPulled(String),
    /// A value does not fit.
    #[error("found {found}, expected {expected}")]
    Value {
        /// What was given.
        found: String,
        /// What it should be.
        expected: &'static str,
    },
}

#[cfg(test)]
mod tests;
