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

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use ib_topology::{Fabric, PortId};
use ib_types::Instant;
use ib_types::rng::Rng;

pub use crate::command::parse_duration;
use crate::command::{Command, CommandError, Fault, Ignored, Target, Time};
use crate::event::{Event, Timer};
use crate::log::Entry;
use crate::sim::Sim;

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

/// The steps that a fabric was told of, and the links that flap.
#[derive(Default)]
pub(crate) struct Script {
    steps: Vec<Step>,
    /// Who is told of steps that fail.
    tell: Option<Tell>,
    pub(crate) flaps: Vec<Flap>,
}

type Tell = Box<dyn FnMut(&FailedStep) + Send>;

/// A link that goes down and up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flap {
    pub(crate) port: PortId,
    pub(crate) down: Duration,
    pub(crate) up: Duration,
    /// How often it still goes down.
    pub(crate) left: u32,
    pub(crate) is_down: bool,
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

impl Sim {
    /// Has steps run at their moments; those of the past are run at once.
    ///
    /// # Errors
    /// Fails at the first step that [`check`](Self::check) refuses, and takes none then.
    pub fn load_script(&mut self, steps: &[Step]) -> Result<(), StepError> {
        for Step { command, line, .. } in steps {
            self.check(command).map_err(|error| StepError { line: *line, error })?;
        }
        for step in steps {
            let number = self.script.steps.len() as u32;
            self.script.steps.push(step.clone());
            let at = (Instant::ZERO + step.at).max(self.now());
            self.schedule(at, Event::Timer(Timer::Script { step: number }));
        }
        Ok(())
    }

    /// Has somebody told of every step that cannot be done when its time has come, such as one that
    /// plugs a cable into a port that has one by then. [`Stats`](crate::Stats) count them as well.
    pub fn on_failed_step(&mut self, tell: impl FnMut(&FailedStep) + Send + 'static) {
        self.script.tell = Some(Box::new(tell));
    }

    /// A step of the script is due.
    pub(crate) fn script_step(&mut self, step: u32) {
        let step = self.script.steps[step as usize].clone();
        if let Err(error) = self.run(&step.command) {
            self.stats.failed_steps += 1;
            self.log(Entry::Command { text: &format!("failed: {error}") });
            let failed = FailedStep { at: self.now(), step, error };
            if let Some(tell) = &mut self.script.tell {
                tell(&failed);
            }
        }
    }
}

/// Returns faults at random moments of a time: links that fail and come back or flap, nodes without
/// power, packets that are lost, late, doubled or damaged, keys that nobody knows, switches that lie;
/// and two cables that are swapped from the start.
///
/// The same seed gives the same faults for the same fabric. The first host and its cables are left
/// alone, so that there is somebody to look at what is left; only the power of the switch at their
/// other end may fail, and keys and lies may be its. Everything is mended at the end of the time: keys are
/// zero then, as those of a fresh port are, and switches are true. What a lie has kept out of a table
/// stays out until somebody writes it again.
#[must_use]
pub fn random_faults(fabric: &Fabric, seed: u64, (time, count): (Duration, usize)) -> Vec<Step> {
    let mut rng = Rng::stream(seed, 0xfa_17);
    let first = fabric.nodes().find(|(_, node)| !node.kind.is_switch()).map(|(id, _)| id);
    let spared = |port: PortId| Some(fabric.port(port).node) == first;
    let links: Vec<_> = fabric
        .links()
        .filter(|&(one, other)| !spared(one) && !spared(other))
        .map(|(port, _)| port)
        .collect();
    let switches: Vec<_> = fabric.nodes().filter(|(_, node)| node.kind.is_switch()).collect();
    let target = |port: PortId| {
        let port = fabric.port(port);
        Target { node: fabric.node(port.node).name.clone(), port: Some(port.number) }
    };
    let node_target = |name: &str| Target { node: name.to_owned(), port: None };
    let (mut steps, mut swap) = (Vec::new(), None);
    if links.is_empty() {
        return steps;
    }
    let mut pulled = BTreeSet::new();
    let nanos = time.as_nanos().max(1) as usize;
    for _ in 0..count {
        let at = Duration::from_nanos(rng.below(nanos) as u64);
        let port = links[rng.below(links.len())];
        let link = target(port);
        let probability = (rng.below(50) + 1) as f64 / 100.0;
        let short = Duration::from_nanos(rng.below(nanos / 10 + 1) as u64);
        let others = !switches.is_empty();
        let (command, mended) = match rng.below(if others { 11 } else { 8 }) {
            // A cable can be pulled once; the next time it loses packets.
            0 if !pulled.insert(port) => {
                let fault = vec![Fault::Loss(probability)];
                (Command::Fault(link.clone(), fault), Some(Command::Fault(link, Vec::new())))
            }
            0 => (Command::Unlink(link.clone()), Some(Command::Relink(link))),
            1 => {
                // Three times down and up again before the end.
                let pause = short.min((time - at) / 6);
                (Command::Flap(link, pause, pause, 3), None)
            }
            2 => {
                let node = node_target(&fabric.node(fabric.port(port).node).name);
                (Command::Power(node.clone(), false), Some(Command::Power(node, true)))
            }
            kind @ 3..=6 => {
                let fault = match kind {
                    3 => vec![Fault::Loss(probability)],
                    4 => vec![Fault::Corruption(probability)],
                    5 => vec![Fault::Duplication(probability)],
                    _ => vec![
                        Fault::Reordering(probability),
                        Fault::HeldBack(short),
                        Fault::Delay(short),
                    ],
                };
                (Command::Fault(link.clone(), fault), Some(Command::Fault(link, Vec::new())))
            }
            7 => {
                // Cables that are in their places when they are swapped, and when they are put back,
                // whatever else happens to them.
                let other = links[rng.below(links.len())];
                if swap.is_none() && other != port {
                    swap = Some(Command::Swap(link, target(other)));
                }
                continue;
            }
            kind => {
                let (_, switch) = &switches[rng.below(switches.len())];
                let node = node_target(&switch.name);
                let ports = usize::from(switch.ports);
                match kind {
                    8 => {
                        let (key, protect) = (rng.next_u64() | 1, rng.below(4) as u8);
                        let set = Command::MKey(node.clone(), key, protect);
                        (set, Some(Command::MKey(node, 0, 0)))
                    }
                    9 => {
                        if ports < 2 {
                            continue;
                        }
                        // Another port than the first one.
                        let from = rng.below(ports);
                        let to = (from + 1 + rng.below(ports - 1)) % ports;
                        let pair = (from as u8 + 1, to as u8 + 1);
                        let lie = Command::Misroute(node.clone(), Some(pair));
                        (lie, Some(Command::Misroute(node, None)))
                    }
                    _ => {
                        let lie = Command::IgnoreLft(node.clone(), Ignored::Blocks(vec![0]));
                        (lie, Some(Command::IgnoreLft(node, Ignored::None)))
                    }
                }
            }
        };
        steps.push(Step { at, command, line: None });
        steps.extend(mended.map(|command| Step { at: time, command, line: None }));
    }
    if let Some(command) = swap {
        steps.insert(0, Step { at: Duration::ZERO, command: command.clone(), line: None });
        steps.push(Step { at: time, command, line: None });
    }
    steps
}

#[cfg(test)]
mod tests;
