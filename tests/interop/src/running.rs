//! A command that runs in the guest or on the host.

use std::io::{BufRead as _, BufReader, PipeReader};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process_group};

use crate::channel::Port;
use crate::error::RunError;

/// A command that has been started. It is killed when this is dropped.
#[derive(Debug)]
pub struct Running {
    command: String,
    job: Arc<Job>,
    place: Place,
}

/// What a command came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The command.
    pub command: String,
    /// Its exit status, or 128 and the number of the signal that ended it, as a shell has it.
    pub status: u8,
    /// All that it wrote, errors included.
    pub output: String,
    /// From its start to its end as they were seen by the host.
    pub elapsed: Duration,
}

impl Finished {
    /// Says whether the status is 0.
    #[must_use]
    pub fn success(&self) -> bool {
        self.status == 0
    }
}

#[derive(Debug)]
enum Place {
    Guest { port: Arc<Port>, id: u32 },
    Beside { group: Option<Pid> },
}

/// How long a command that is killed may take to end.
const DEATH: Duration = Duration::from_secs(10);

impl Running {
    /// Starts a command of the guest.
    pub(crate) fn in_guest(port: &Arc<Port>, command: &str) -> Result<Self, RunError> {
        if command.contains('\n') {
            return Err(RunError::Lines(command.to_owned()));
        }
        let job = Arc::new(Job::default());
        let id = port
            .start(command, &job)
            .map_err(|_| RunError::Gone { command: command.to_owned(), output: String::new() })?;
        let place = Place::Guest { port: Arc::clone(port), id };
        Ok(Self { command: command.to_owned(), job, place })
    }

    /// Starts a program of this machine that has nothing to do with a guest.
    ///
    /// # Errors
    /// Fails when it cannot be started.
    pub fn start(command: Command) -> Result<Self, RunError> {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let name = words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
        Self::beside(command, name)
    }

    /// Starts a program on the host; `name` is what it is called in messages.
    pub(crate) fn beside(mut command: Command, name: String) -> Result<Self, RunError> {
        let failed = |source| RunError::Start { command: name.clone(), source };
        let (reader, writer) = std::io::pipe().map_err(failed)?;
        command.stdin(Stdio::null()).stdout(writer.try_clone().map_err(failed)?).stderr(writer);
        let child = command.process_group(0).spawn().map_err(failed)?;
        // It holds the pipe's writing end, and the pipe must end with the program.
        drop(command);
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let job = Arc::new(Job::default());
        let follower = Arc::clone(&job);
        thread::spawn(move || follow(child, reader, &follower));
        Ok(Self { command: name, job, place: Place::Beside { group } })
    }

    /// Returns what it has written so far, errors included.
    #[must_use]
    pub fn output(&self) -> String {
        self.job.lock().output.clone()
    }

    /// Returns once its output holds a text.
    ///
    /// # Errors
    /// Fails when it ends without, does not write it in time, or when the guest goes.
    pub fn until(&self, text: &str, limit: Duration) -> Result<(), RunError> {
        let state = self.job.wait(limit, |state| state.output.contains(text));
        if state.output.contains(text) {
            return Ok(());
        }
        let (command, output) = (self.command.clone(), state.output.clone());
        let what = format!("say {text:?}");
        Err(match state.end {
            Some(End::Gone) => RunError::Gone { command, output },
            Some(End::Status(status)) => RunError::Early { command, what, status, output },
            None => RunError::Timeout { command, what, limit, output },
        })
    }

    /// Waits until it ends, and with it everything that it started and that can still write.
    ///
    /// # Errors
    /// Fails when it does not end in time, and is killed then; fails when the guest goes.
    pub fn wait(self, limit: Duration) -> Result<Finished, RunError> {
        let mut state = self.job.wait(limit, |_| false);
        let (command, output) = (self.command.clone(), std::mem::take(&mut state.output));
        match state.end {
            Some(End::Status(status)) => {
                Ok(Finished { command, status, output, elapsed: state.elapsed })
            }
            Some(End::Gone) => Err(RunError::Gone { command, output }),
            None => {
                let what = "end".to_owned();
                Err(RunError::Timeout { command, what, limit, output })
            }
        }
    }

    /// Kills it and returns what it came to; what had ended already is left as it is.
    ///
    /// # Errors
    /// Fails when the guest goes.
    pub fn kill(self) -> Result<Finished, RunError> {
        self.signal(Signal::KILL);
        self.wait(DEATH)
    }

    /// Sends a signal to all of its processes, unless it has ended.
    pub fn signal(&self, signal: Signal) {
        let state = self.job.lock();
        if state.end.is_some() {
            return;
        }
        // In either place it may end by itself in this moment; then there is nothing to do.
        match &self.place {
            Place::Guest { port, id } => drop(port.kill(*id, signal.as_raw())),
            Place::Beside { group: Some(group) } => drop(kill_process_group(*group, signal)),
            Place::Beside { group: None } => {}
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// Collects what a program on the host writes, and how it ends.
fn follow(mut child: Child, reader: PipeReader, job: &Job) {
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
        job.write(&String::from_utf8_lossy(&line));
        line.clear();
    }
    loop {
        // Under the lock, so that nobody sends a signal to a process that is no more.
        let mut state = job.lock();
        match child.try_wait() {
            Ok(None) => {}
            Ok(Some(status)) => return job.end(&mut state, End::Status(shell_status(status))),
            Err(_) => return job.end(&mut state, End::Gone),
        }
        drop(state);
        thread::sleep(Duration::from_millis(2));
    }
}

fn shell_status(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// What is known of a command, shared by who waits for it and who hears of it.
#[derive(Debug, Default)]
pub(crate) struct Job {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
pub(crate) struct State {
    output: String,
    end: Option<End>,
    begun: Instant,
    elapsed: Duration,
}

impl Default for State {
    fn default() -> Self {
        let begun = Instant::now();
        Self { output: String::new(), end: None, begun, elapsed: Duration::ZERO }
    }
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Status(u8),
    /// The guest went, and with it who could tell.
    Gone,
}

impl Job {
    /// Adds to the output.
    pub(crate) fn write(&self, text: &str) {
        self.lock().output.push_str(text);
        self.changed.notify_all();
    }

    /// Notes the end.
    pub(crate) fn finish(&self, end: End) {
        self.end(&mut self.lock(), end);
    }

    fn end(&self, state: &mut State, end: End) {
        state.end = Some(end);
        state.elapsed = state.begun.elapsed();
        self.changed.notify_all();
    }

    /// Returns when the command has ended, when something holds, or when the time is over.
    fn wait(&self, limit: Duration, holds: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let goes_on = |state: &mut State| state.end.is_none() && !holds(state);
        let waited = self.changed.wait_timeout_while(self.lock(), limit, goes_on);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // What is there is whole after every single change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
