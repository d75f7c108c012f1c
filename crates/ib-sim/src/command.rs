//! Console and script commands of a simulated fabric.
//!
//! The commands from `Link` to `Baselid` have the same names and semantics as in ibsim. The commands
//! from `Fault` to `Swap` are extensions. A port is written `"name"[number]`, a node
//! `"name"`. Quotes are optional for names without blanks. A quote inside a quoted name is doubled.
//! Keywords are case-insensitive. Commands that only print, such as `Dump`, are executed by the
//! daemon.
//!
//! | command | effect |
//! |---|---|
//! | `Link "a"[n] "b"[m]` | plugs a cable into two free ports |
//! | `Unlink "a"`, `Unlink "a"[n]` | pulls the cables of a node, or of a port; fails if no cable is plugged in |
//! | `ReLink "a"`, `ReLink "a"[n]` | plugs pulled cables back in |
//! | `Clear "a"`, `Clear "a"[n]` | pulls cables, which `ReLink` cannot plug back in; removes faults, and resets settings and counters |
//! | `Guid "a" guid`, `Guid "a"[n] guid` | changes the GUID of a port, or of a node and its ports (port n of an HCA gets the GUID + n) |
//! | `Error "a" rate`, `Error "a"[n] rate [attribute]` | loses `rate` per cent of the requests to the port, or only of those for the attribute. Without an attribute, also loses `rate` per cent of the packets that enter the port; these count as PortRcvErrors |
//! | `PerformanceSet "a"[n] PortCounters.field=value` | sets a counter in both PortCounters and PortCountersExtended |
//! | `Baselid "a"[n] lid [lmc]` | changes the LID of a port |
//! |---|---|
//! | `Fault "a"[n] kind=value …`, `Fault "a"[n] none` | sets or removes faults for the packets that the port sends: the probabilities `loss`, `corrupt`, `duplicate` and `reorder`, and the times `held` (the longest delay that `reorder` adds) and `delay` |
//! | `Flap "a"[n] down up times` | takes the link down and up; `times` is the number of repetitions, at least 1 |
//! | `Power "a" on\|off` | a node without power neither responds nor forwards, and loses its configuration |
//! | `MKey "a"[n] key [protect]` | sets the M_Key, which the subnet manager then does not know |
//! | `Misroute "a" p q`, `Misroute "a" none` | the switch forwards packets out of port q if their LFT entry is p |
//! | `IgnoreLft "a" all\|none\|block …` | the switch acknowledges writes of LFT blocks and ignores them |
//! | `Swap "a"[n] "b"[m]` | exchanges the cables of two ports |

use std::time::Duration;

use ib_types::Guid;
use ib_wire::mad::AttributeId;

pub(crate) mod active_faults;
mod check;
mod display;
mod parse;
mod run;
mod target;

pub(crate) use check::check;
pub(crate) use display::DisplayDuration;
pub use parse::ParseCommandError;
pub(crate) use parse::closing;
pub use parse::duration as parse_duration;
pub(crate) use run::run;

/// The name of a node or of one of its ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The name of the node.
    pub node: String,
    /// The port number; `None` for the node itself.
    pub port: Option<u8>,
}

/// A console command.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Command {
    /// Plugs a cable into two ports.
    Link(Target, Target),
    /// Pulls the cables of a node or port.
    Unlink(Target),
    /// Plugs pulled cables back in.
    Relink(Target),
    /// Pulls cables, which `Relink` cannot plug back in. Removes the faults, and resets the node or port.
    Clear(Target),
    /// Changes the GUID of a node or port.
    Guid(Target, Guid),
    /// Loses a percentage of the requests to a port, or only of requests for the given attribute.
    /// Without an attribute, also loses packets that enter the port.
    Error(Target, f64, Option<AttributeId>),
    /// Sets the counter with this name in both `PortCounters` and `PortCountersExtended`.
    PerformanceSet(Target, String, u64),
    /// Changes the LID and LMC of an end port.
    BaseLid(Target, u16, u8),
    /// Sets faults for the packets that a port sends. Faults that are not listed are unchanged; an
    /// empty list removes all faults.
    Fault(Target, Vec<Fault>),
    /// Takes a link down and up repeatedly. The values are the time down, the time up, and the
    /// number of repetitions.
    Flap(Target, Duration, Duration, u32),
    /// Switches the power of a node on or off.
    Power(Target, bool),
    /// Sets the M_Key of a port and its protection level.
    MKey(Target, u64, u8),
    /// Makes a switch forward packets out of the second port if their LFT entry is the first port.
    /// `None` restores forwarding by the LFT.
    Misroute(Target, Option<(u8, u8)>),
    /// Makes a switch ignore writes of LFT blocks.
    IgnoreLft(Target, Ignored),
    /// Exchanges the cables of two ports.
    Swap(Target, Target),
}

/// A fault that affects the packets that a port sends.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Fault {
    /// Probability that a packet is lost on the link.
    Loss(f64),
    /// Probability that a packet is corrupted on the link.
    Corruption(f64),
    /// Probability that a packet is duplicated.
    Duplication(f64),
    /// Probability that a packet is delayed so that later packets overtake it.
    Reordering(f64),
    /// Maximum delay of reordered packets. If it is unset or zero, the maximum is the transmission
    /// time of eight packets of the link's MTU.
    HeldBack(Duration),
    /// Additional latency of every packet.
    Delay(Duration),
}

/// LFT blocks whose writes are ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ignored {
    /// All blocks.
    All,
    /// No block.
    None,
    /// The blocks with these numbers.
    Blocks(Vec<u16>),
}

/// Error of running a command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The fabric has no node of this name.
    #[error("there is no node {0:?}: expected the name or description of a node")]
    NoSuchNode(String),
    /// The node has no such port.
    #[error("node {node:?} has no port {port}: expected {first} to {last}")]
    NoSuchPort {
        /// The name of the node.
        node: String,
        /// The port number.
        port: u8,
        /// The lowest port number.
        first: u8,
        /// The highest port number.
        last: u8,
    },
    /// The command needs a port, but its target is a node.
    #[error("found {0:?} without a port number, expected a port such as {0:?}[1]")]
    NeedsPort(String),
    /// The command needs a switch, but its target is another kind of node.
    #[error("node {0:?} is not a switch: expected a switch")]
    NotASwitch(String),
    /// The port already has a cable.
    #[error("port {node:?}[{port}] has a cable already: expected a free port")]
    Linked {
        /// The name of the node.
        node: String,
        /// The port number.
        port: u8,
    },
    /// The port has no cable.
    #[error("port {node:?}[{port}] has no cable: expected a port with a cable")]
    NotLinked {
        /// The name of the node.
        node: String,
        /// The port number.
        port: u8,
    },
    /// No cable is plugged into the target.
    #[error("{0} has no cable to pull: expected a target with a cable")]
    NothingToPull(String),
    /// No cable of the target was pulled.
    #[error("no cable of {0} was pulled: expected a target with a pulled cable")]
    NothingPulled(String),
    /// A value is invalid.
    #[error("found {found}, expected {expected}")]
    Value {
        /// The value in the command.
        found: String,
        /// The values that the command accepts.
        expected: &'static str,
    },
}

#[cfg(test)]
mod tests;
