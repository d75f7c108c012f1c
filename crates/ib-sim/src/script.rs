//! Commands that wait for their time.
//!
//! A script has one command per line after the moment at which it is run, counted from the start:
//!
//! ```text
//! # A link fails for a while.
//! at 10ms unlink "S-0002c90300a1b2c0"[3]
//! at 1.5s relink "S-0002c90300a1b2c0"[3]
//! ```
//!
//! Empty lines, and what follows a `#` at the start of a line, say nothing.

use std::fmt;
use std::time::Duration;

use ib_topology::PortId;
use ib_types::Instant;

pub use crate::command::parse_duration;
use crate::command::{Command, CommandError, Time};
use crate::event::{Event, Timer};
use crate::network::Network;

/// How long a link that flaps stays as it is at least, so that time goes on.
const SHORTEST_PAUSE: Duration = Duration::from_micros(1);

/// A moment and what is to be done then.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// When, from the start.
    pub at: Duration,
    /// What.
    pub command: Command,
    /// The line of the script in which it stands, from 1; `None` for one that is of no script.
    pub line: Option<usize>,
}

/// A step that could not be done when its time had come.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FailedStep {
    /// When it was tried.
    pub at: Instant,
    /// The step.
    pub step: Step,
    /// Why it could not be done.
    pub error: CommandError,
}

/// A step that no moment could do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
#[non_exhaustive]
pub struct StepError {
    /// The line of the script in which the step stands.
    pub line: Option<usize>,
    /// Why it cannot be done.
    pub error: CommandError,
}

impl fmt::Display for Step {
    /// Writes the step as a line of a script.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {} {}", Time(self.at), self.command)
    }
}

/// Called with every step that fails.
type OnFailedStep = Box<dyn FnMut(&FailedStep) + Send>;

/// The steps that a fabric was told of, and the links that flap.
#[derive(Default)]
pub(crate) struct Script {
    steps: Vec<Step>,
    on_failed: Option<OnFailedStep>,
    flaps: Vec<Flap>,
}

/// A link that goes down and up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flap {
    port: PortId,
    pub(crate) down: Duration,
    pub(crate) up: Duration,
    /// How often it still goes down.
    left: u32,
    is_down: bool,
}

impl Flap {
    /// Returns how often the link goes down, the time included that has begun when it is down.
    pub(crate) const fn times(&self) -> u32 {
        self.left.saturating_add(self.is_down as u32)
    }
}

impl Script {
    /// Adds a step; returns its number.
    pub(crate) fn add(&mut self, step: Step) -> u32 {
        self.steps.push(step);
        self.steps.len() as u32 - 1
    }

    pub(crate) fn step(&self, number: u32) -> &Step {
        &self.steps[number as usize]
    }

    /// Has a function called with every step that fails.
    pub(crate) fn on_failed(&mut self, call: OnFailedStep) {
        self.on_failed = Some(call);
    }

    pub(crate) fn report_failed(&mut self, failed: &FailedStep) {
        if let Some(call) = &mut self.on_failed {
            call(failed);
        }
    }

    /// Has the link of a port go down and up, from now on.
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

    /// A link that flaps goes up or down.
    pub(crate) fn flap(&mut self, net: &mut Network, index: u32) {
        let flap = &mut self.flaps[index as usize];
        if !flap.is_down && flap.left == 0 {
            return;
        }
        flap.is_down = !flap.is_down;
        flap.left -= u32::from(flap.is_down);
        let pause = if flap.is_down { flap.down } else { flap.up };
        // Another flap, and the manager, may want the link down as well.
        net.hold_down(flap.port, flap.is_down);
        let at = net.now() + pause.max(SHORTEST_PAUSE);
        net.clock.schedule(at, Event::Timer(Timer::Flap { flap: index }));
    }

    /// Returns the flaps of the link of a port.
    pub(crate) fn flaps_at(&self, port: PortId) -> impl Iterator<Item = &Flap> {
        self.flaps.iter().filter(move |flap| flap.port == port)
    }
}

/// Why a script cannot be read or run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}:{line}:{column}: found {found}, expected {expected}")]
pub struct ScriptError {
    /// The file.
    pub name: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// What stands there.
    pub found: String,
    /// What should.
    pub expected: String,
}

/// Reads a script; `name` is what errors call it.
///
/// # Errors
/// Fails at the first line that is no step.
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
