//! Commands and scripts: how they are checked, run, and when.

use ib_topology::PortId;
use ib_types::Instant;

use crate::command::{Command, CommandError, Target, check, run};
use crate::event::{Event, Timer};
use crate::log::Entry;
use crate::script::{FailedStep, Step, StepError};
use crate::sim::Sim;

impl Sim {
    /// Returns the port of a target that has to name one.
    ///
    /// # Errors
    /// Fails when there is no such node or port.
    pub fn target_port(&self, target: &Target) -> Result<PortId, CommandError> {
        target.find_port(self.fabric())
    }

    /// Checks what a command names, and values whose range depends on the fabric. What depends on
    /// the moment, such as whether a port is free, shows when the command is run.
    ///
    /// # Errors
    /// Fails when a node or port is not there or not of the right kind, or a value out of range.
    pub fn check(&self, command: &Command) -> Result<(), CommandError> {
        check(self.fabric(), command)
    }

    /// Does what a command says, at once.
    ///
    /// # Errors
    /// Fails without doing anything when the command names what is not there, a value is out of
    /// range, or ports do not have the cables that it takes.
    pub fn run(&mut self, command: &Command) -> Result<(), CommandError> {
        self.net.log(Entry::Command { text: &command.to_string() });
        self.check(command)?;
        run(&mut self.net, &mut self.script, command)
    }

    /// Has steps run at their moments; those of the past are run at once.
    ///
    /// # Errors
    /// Fails at the first step that [`check`](Self::check) refuses, and takes none then.
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

    /// Has a function called with every step that cannot be done when its time has come, such as one that
    /// plugs a cable into a port that has one by then. [`Stats`](crate::Stats) count them as well.
    pub fn on_failed_step(&mut self, call: impl FnMut(&FailedStep) + Send + 'static) {
        self.script.on_failed(Box::new(call));
    }

    /// A step of the script is due.
    pub(crate) fn run_step_of_script(&mut self, step: u32) {
        let step = self.script.step(step).clone();
        if let Err(error) = self.run(&step.command) {
            self.net.stats.failed_steps += 1;
            self.net.log(Entry::Command { text: &format!("failed: {error}") });
            self.script.report_failed(&FailedStep { at: self.now(), step, error });
        }
    }
}
