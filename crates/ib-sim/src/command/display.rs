//! Formats commands as text that can be parsed again.

use std::fmt;
use std::time::Duration;

use super::{Command, Fault, Ignored, Target};

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A quote inside the name is doubled.
        write!(f, "\"{}\"", self.node.replace('"', "\"\""))?;
        self.port.map_or(Ok(()), |port| write!(f, "[{port}]"))
    }
}

impl fmt::Display for Command {
    /// Writes the command in its parseable form.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link(one, other) => write!(f, "Link {one} {other}"),
            Self::Unlink(target) => write!(f, "Unlink {target}"),
            Self::Relink(target) => write!(f, "ReLink {target}"),
            Self::Clear(target) => write!(f, "Clear {target}"),
            Self::Guid(target, guid) => write!(f, "Guid {target} {guid}"),
            Self::Error(target, rate, attribute) => {
                write!(f, "Error {target} {rate}")?;
                attribute.map_or(Ok(()), |attribute| write!(f, " {}", attribute.0))
            }
            Self::PerformanceSet(target, field, value) => {
                // PortCountersExtended is used because its counters have room for every value.
                write!(f, "PerformanceSet {target} PortCountersExtended.{field}={value}")
            }
            Self::BaseLid(target, lid, lmc) => write!(f, "Baselid {target} {lid} {lmc}"),
            Self::Fault(target, faults) if faults.is_empty() => write!(f, "Fault {target} none"),
            Self::Fault(target, faults) => {
                write!(f, "Fault {target}")?;
                faults.iter().try_for_each(|fault| write!(f, " {fault}"))
            }
            Self::Flap(target, down, up, times) => {
                write!(
                    f,
                    "Flap {target} {} {} {times}",
                    DisplayDuration(*down),
                    DisplayDuration(*up)
                )
            }
            Self::Power(target, true) => write!(f, "Power {target} on"),
            Self::Power(target, false) => write!(f, "Power {target} off"),
            Self::MKey(target, key, protect) => write!(f, "MKey {target} {key:#x} {protect}"),
            Self::Misroute(target, None) => write!(f, "Misroute {target} none"),
            Self::Misroute(target, Some((from, to))) => write!(f, "Misroute {target} {from} {to}"),
            Self::IgnoreLft(target, ignored) => write!(f, "IgnoreLft {target} {ignored}"),
            Self::Swap(one, other) => write!(f, "Swap {one} {other}"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loss(probability) => write!(f, "loss={probability}"),
            Self::Corruption(probability) => write!(f, "corrupt={probability}"),
            Self::Duplication(probability) => write!(f, "duplicate={probability}"),
            Self::Reordering(probability) => write!(f, "reorder={probability}"),
            Self::HeldBack(time) => write!(f, "held={}", DisplayDuration(*time)),
            Self::Delay(time) => write!(f, "delay={}", DisplayDuration(*time)),
        }
    }
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Blocks(blocks) if !blocks.is_empty() => {
                let words: Vec<String> = blocks.iter().map(u16::to_string).collect();
                f.write_str(&words.join(" "))
            }
            Self::None | Self::Blocks(_) => f.write_str("none"),
        }
    }
}

/// A duration that is displayed as an integer, in the greatest possible unit: s, ms, us or ns.
pub(crate) struct DisplayDuration(pub(crate) Duration);

impl fmt::Display for DisplayDuration {
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

#[cfg(test)]
mod tests;
