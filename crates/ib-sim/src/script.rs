//! Scripts: console commands that are run at given times.
//!
//! Each line contains a virtual time, counted from the creation of the fabric, and a command:
//!
//! ```text
//! # A link fails for a while.
//! at 10ms unlink "S-0002c90300a1b2c0"[3]
//! at 1.5s relink "S-0002c90300a1b2c0"[3]
//! ```
//!
//! Empty lines and lines that start with `#` are skipped.

use std::fmt;
use std::time::Duration;

use ib_topology::PortId;
use ib_types::Instant;

pub use crate::command::parse_duration;
use crate::command::{Command, CommandError, DisplayDuration};
use crate::event::{Event, Timer};
use crate::network::Network;

/// A flapping link remains in each state for at least this time, so that virtual time advances.
const SHORTEST_PAUSE: Duration = Duration::from_micros(1);

/// A command, and the time at which it is run.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The virtual time at which the command is run. A fabric is created at time zero.
    pub at: Duration,
    /// The command.
    pub command: Command,
    /// The line number in the script, counted from 1; `None` if the step is not from a script.
    pub line: Option<usize>,
}

/// A step that has failed when it was run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FailedStep {
    /// The time of the failure.
    pub at: Instant,
    /// The step.
    pub step: Step,
    /// The reason of the failure.
    pub error: CommandError,
}

/// Error of a step that [`Sim::check`](crate::Sim::check) refuses before the script is scheduled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
#[non_exhaustive]
pub struct StepError {
    /// The line number of the step in the script.
    pub line: Option<usize>,
    /// The reason why the step is refused.
    pub error: CommandError,
}

impl fmt::Display for Step {
    /// Writes the step as a line of a script.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {} {}", DisplayDuration(self.at), self.command)
    }
}

/// Callback for failed steps.
type OnFailedStep = Box<dyn FnMut(&FailedStep) + Send>;

/// The loaded steps, and the flapping links.
#[derive(Default)]
pub(crate) struct Script {
    steps: Vec<Step>,
    on_failed: Option<OnFailedStep>,
    flaps: Vec<Flap>,
}

/// A flapping link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flap {
    port: PortId,
    pub(crate) down: Duration,
    pub(crate) up: Duration,
    /// Number of times that the link will still go down.
    left: u32,
    is_down: bool,
}

impl Flap {
    /// Returns the number of times that the link will still go down, plus one if it is down now.
    pub(crate) const fn times(&self) -> u32 {
        self.left.saturating_add(self.is_down as u32)
    }
}

impl Script {
    /// Adds a step. Returns the number of the step.
    pub(crate) fn add(&mut self, step: Step) -> u32 {
        self.steps.push(step);
        self.steps.len() as u32 - 1
    }

    pub(crate) fn step(&self, number: u32) -> &Step {
        &self.steps[number as usize]
    }

    /// Sets the callback for failed steps.
    pub(crate) fn on_failed(&mut self, call: OnFailedStep) {
        self.on_failed = Some(call);
    }

    pub(crate) fn report_failed(&mut self, failed: &FailedStep) {
        if let Some(call) = &mut self.on_failed {
            call(failed);
        }
    }

    /// Starts to take the link of a port down and up repeatedly, `times` times in all.
    pub(crate) fn start_flap(
        &mut self,
        net: &mut Network,
        port: PortId,
        down: Duration,
        up: Duration,
        times: u32,
    ) {
        let flap = self.flaps.len() as u32;
        self.flaps.push(Flap { port, down, up, left: times, is_down: false });
        net.clock.schedule(net.clock.now(), Event::Timer(Timer::Flap { flap }));
    }

    /// Takes a flapping link down or up.
    pub(crate) fn flap(&mut self, net: &mut Network, index: u32) {
        let flap = &mut self.flaps[index as usize];
        if !flap.is_down && flap.left == 0 {
            return;
        }
        flap.is_down = !flap.is_down;
        flap.left -= u32::from(flap.is_down);
        let pause = if flap.is_down { flap.down } else { flap.up };
        // While the flap is down, its hold keeps the link down, whatever the subnet manager and other flaps do.
        net.hold_down(flap.port, flap.is_down);
        let at = net.now() + pause.max(SHORTEST_PAUSE);
        net.clock.schedule(at, Event::Timer(Timer::Flap { flap: index }));
    }

    /// Returns the flaps that were started at a port.
    pub(crate) fn flaps_at(&self, port: PortId) -> impl Iterator<Item = &Flap> {
        self.flaps.iter().filter(move |flap| flap.port == port)
    }
}

/// Error of parsing a script or an address file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}:{line}:{column}: found {found}, expected {expected}")]
pub struct ScriptError {
    /// The name of the file.
    pub name: String,
    /// The line number, counted from 1.
    pub line: usize,
    /// The column of the error, counted from 1.
    pub column: usize,
    /// The text that was found in this column.
    pub found: String,
    /// The text that is expected in this column.
    pub expected: String,
}

/// Parses a script. `name` is the name of the file in errors.
///
/// # Errors
/// Fails on the first malformed line.
pub fn read_script(name: &str, text: &str) -> Result<Vec<Step>, ScriptError> {
    let mut steps = Vec::new();
    for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        let start = line.len() - line.trim_start().len();
        let failed = |column: usize, found: String, expected: &str| ScriptError {
            name: name.to_owned(),
            line: index + 1,
            column,
            found,
            expected: expected.to_owned(),
        };
        let column_at = |byte: usize| line[..byte].chars().count() + 1;
        let mut words = trimmed.split_whitespace();
        let first = words.next().unwrap_or_default();
        if !first.eq_ignore_ascii_case("at") {
            return Err(failed(column_at(start), format!("{first:?}"), "at TIME COMMAND"));
        }
        const TIME: &str = "a time such as 250us, 10ms or 1.5s";
        let after = start + first.len();
        let blanks = line[after..].len() - line[after..].trim_start().len();
        let at_byte = after + blanks;
        let Some(word) = words.next() else {
            return Err(failed(column_at(line.len()), "the end of the line".into(), TIME));
        };
        let Some(at) = parse_duration(word) else {
            return Err(failed(column_at(at_byte), format!("{word:?}"), TIME));
        };
        let rest = at_byte + word.len();
        let command = line[rest..].trim_end().parse::<Command>().map_err(|error| {
            failed(column_at(rest) + error.column - 1, error.found, &error.expected)
        })?;
        steps.push(Step { at, command, line: Some(index + 1) });
    }
    Ok(steps)
}

#[cfg(test)]
mod tests;
