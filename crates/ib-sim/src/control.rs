//! Commands and scripts: checks, immediate execution and timed execution.

use ib_topology::PortId;
use ib_types::Instant;

use crate::command::{Command, CommandError, Target, check, run};
use crate::event::{Event, Timer};
use crate::log::Entry;
use crate::script::{FailedStep, Step, StepError};
use crate::sim::Sim;

impl Sim {
    /// Returns the port that a target names.
    ///
    /// # Errors
    /// Fails if the target names no port, or if the node or port does not exist.
    pub fn target_port(&self, target: &Target) -> Result<PortId, CommandError> {
        target.find_port(self.fabric())
    }

    /// Checks the targets of a command, and the values whose range depends on the fabric.
    ///
    /// Conditions that depend on the time, such as whether a port is free, are checked when the
    /// command is run.
    ///
    /// # Errors
    /// Fails if a node or port does not exist or is of the wrong kind, or if a value is out of
    /// range.
    pub fn check(&self, command: &Command) -> Result<(), CommandError> {
        check(self.fabric(), command)
    }

    /// Runs a command at once.
    ///
    /// # Errors
    /// Fails without any effect if a target does not exist, a value is out of range, or the ports
    /// do not have the required cables.
    pub fn run(&mut self, command: &Command) -> Result<(), CommandError> {
        self.net.log(Entry::Command { text: &command.to_string() });
        self.check(command)?;
        run(&mut self.net, &mut self.script, command)
    }

    /// Schedules the steps of a script. Steps whose time is in the past are run at once.
    ///
    /// # Errors
    /// Fails on the first step that [`check`](Self::check) refuses. In this case, no step is
    /// scheduled.
    pub fn load_script(&mut self, steps: &[Step]) -> Result<(), StepError> {
        for Step { command, line, .. } in steps {
            self.check(command).map_err(|error| StepError { line: *line, error })?;
        }
        for step in steps {
            let at = (Instant::ZERO + step.at).max(self.now());
            let step = self.script.add(step.clone());
            self.net.clock.schedule(at, Event::Timer(Timer::Script { step }));
        }
        Ok(())
    }

    /// Sets a callback for steps that fail when they are run, for example because a port has got a
    /// cable meanwhile. [`Stats::failed_steps`](crate::Stats::failed_steps) counts these
    /// failures.
    pub fn on_failed_step(&mut self, call: impl FnMut(&FailedStep) + Send + 'static) {
        self.script.on_failed(Box::new(call));
    }

    /// Runs a step of a script.
    pub(crate) fn run_step_of_script(&mut self, step: u32) {
        let step = self.script.step(step).clone();
        if let Err(error) = self.run(&step.command) {
            self.net.stats.failed_steps += 1;
            self.net.log(Entry::Command { text: &format!("failed: {error}") });
            self.script.report_failed(&FailedStep { at: self.now(), step, error });
        }
    }
}
