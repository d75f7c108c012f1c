//! Commands in words that can be read again.

use std::fmt;
use std::time::Duration;

use super::{Command, Fault, Ignored};

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link(one, other) => write!(f, "Link {one} {other}"),
            Self::Unlink(target) => write!(f, "Unlink {target}"),
            Self::Relink(target) => write!(f, "ReLink {target}"),
            Self::Clear(target) => write!(f, "Clear {target}"),
            Self::Guid(target, guid) => write!(f, "Guid {target} {:#018x}", guid.0),
            Self::Error(target, rate, attribute) => {
                write!(f, "Error {target} {rate}")?;
                attribute.map_or(Ok(()), |attribute| write!(f, " {attribute}"))
            }
            Self::PerformanceSet(target, field, value) => {
                // The attribute with room for every value that can be read.
                write!(f, "PerformanceSet {target} PortCountersExtended.{field}={value}")
            }
            Self::BaseLid(target, lid, lmc) => write!(f, "Baselid {target} {lid} {lmc}"),
            Self::Fault(target, faults) => {
                write!(f, "Fault {target}")?;
                if faults.is_empty() {
                    return f.write_str(" none");
                }
                faults.iter().try_for_each(|fault| write!(f, " {fault}"))
            }
            Self::Flap(target, down, up, times) => {
                write!(f, "Flap {target} {} {} {times}", Time(*down), Time(*up))
            }
            Self::Power(target, on) => {
                write!(f, "Power {target} {}", if *on { "on" } else { "off" })
            }
            Self::MKey(target, key, protect) => write!(f, "MKey {target} {key:#x} {protect}"),
            Self::Misroute(target, None) => write!(f, "Misroute {target} none"),
            Self::Misroute(target, Some((from, to))) => write!(f, "Misroute {target} {from} {to}"),
            Self::IgnoreLft(target, Ignored::All) => write!(f, "IgnoreLft {target} all"),
            Self::IgnoreLft(target, Ignored::None) => write!(f, "IgnoreLft {target} none"),
            Self::IgnoreLft(target, Ignored::Blocks(blocks)) => {
                write!(f, "IgnoreLft {target}")?;
                blocks.iter().try_for_each(|block| write!(f, " {block}"))
            }
            Self::Swap(one, other) => write!(f, "Swap {one} {other}"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Loss(probability) => write!(f, "loss={probability}"),
            Self::Corruption(probability) => write!(f, "corrupt={probability}"),
            Self::Duplication(probability) => write!(f, "duplicate={probability}"),
            Self::Reordering(probability) => write!(f, "reorder={probability}"),
            Self::HeldBack(time) => write!(f, "held={}", Time(time)),
            Self::Delay(time) => write!(f, "delay={}", Time(time)),
        }
    }
}

/// A time in the greatest unit in which it is a whole number.
struct Time(Duration);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        match [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")]
            .into_iter()
            .find(|(unit, _)| nanos.is_multiple_of(*unit))
        {
            Some((unit, name)) => write!(f, "{}{name}", nanos / unit),
            None => write!(f, "{nanos}ns"),
        }
    }
}
