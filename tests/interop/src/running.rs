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

/// A started command, which is killed when dropped.
#[derive(Debug)]
pub struct Running {
    command: String,
    job: Arc<Job>,
    process: Process,
}

/// Result of a command that has exited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The command.
    pub command: String,
    /// Exit status. If signal N ended the command, 128 + N as in a shell.
    pub status: u8,
    /// Standard output and standard error, interleaved.
    pub output: String,
    /// Time from start to exit, measured on the host.
    pub elapsed: Duration,
}

impl Finished {
    /// Returns true if the exit status is 0.
    #[must_use]
    pub fn success(&self) -> bool {
        self.status == 0
    }
}

/// The process of a command, to which signals are sent.
#[derive(Debug)]
enum Process {
    /// A command in the guest, identified by its ID. Signals to the command are sent over the serial port of the
    /// guest.
    Guest { port: Arc<Port>, id: u32 },
    /// A process group on the host; `None` if the process ID is not valid.
    Host { group: Option<Pid> },
}

/// Time limit for a killed command to exit.
const KILL_LIMIT: Duration = Duration::from_secs(10);

impl Running {
    /// Starts a command in the guest.
    pub(crate) fn in_guest(port: &Arc<Port>, command: &str) -> Result<Self, RunError> {
        if command.contains('\n') {
            return Err(RunError::Lines(command.to_owned()));
        }
        let job = Arc::new(Job::default());
        let id = port
            .start(command, &job)
            .map_err(|_| RunError::Gone { command: command.to_owned(), output: String::new() })?;
        let process = Process::Guest { port: Arc::clone(port), id };
        Ok(Self { command: command.to_owned(), job, process })
    }

    /// Starts a program on the host, outside of a guest's network namespace.
    ///
    /// # Errors
    /// Fails if the program cannot be started.
    pub fn start(command: Command) -> Result<Self, RunError> {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let name = words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
        Self::on_host(command, name)
    }

    /// Starts a program on the host. Error messages call it `name`.
    pub(crate) fn on_host(mut command: Command, name: String) -> Result<Self, RunError> {
        let failed = |source| RunError::Start { command: name.clone(), source };
        let (reader, writer) = std::io::pipe().map_err(failed)?;
        command.stdin(Stdio::null()).stdout(writer.try_clone().map_err(failed)?).stderr(writer);
        let child = command.process_group(0).spawn().map_err(failed)?;
        // `follow` sees the end of the output only after `command`, which holds the writing end of the pipe, is
        // dropped.
        drop(command);
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let job = Arc::new(Job::default());
        let follower = Arc::clone(&job);
        thread::spawn(move || follow(child, reader, &follower));
        Ok(Self { command: name, job, process: Process::Host { group } })
    }

    /// Returns the output that the command has printed: standard output and standard error.
    #[must_use]
    pub fn output(&self) -> String {
        self.job.lock().output.clone()
    }

    /// Waits until the output contains the given text.
    ///
    /// # Errors
    /// Fails if the command exits first, if the time limit expires, or if the guest exits.
    pub fn until(&self, text: &str, limit: Duration) -> Result<(), RunError> {
        let state = self.job.wait(limit, |state| state.output.contains(text));
        if state.output.contains(text) {
            return Ok(());
        }
        let (command, output) = (self.command.clone(), state.output.clone());
        let what = format!("print {text:?}");
        Err(match state.exit {
            Some(Exit::GuestLost) => RunError::Gone { command, output },
            Some(Exit::Status(status)) => RunError::Early { command, what, status, output },
            None => RunError::Timeout { command, what, limit, output },
        })
    }

    /// Waits until the command has exited, and all processes started by it have closed their output.
    ///
    /// # Errors
    /// Fails if the command does not exit within the time limit, and kills it. Fails if the guest exits.
    pub fn wait(self, limit: Duration) -> Result<Finished, RunError> {
        let mut state = self.job.wait(limit, |_| false);
        let (command, output) = (self.command.clone(), std::mem::take(&mut state.output));
        match state.exit {
            Some(Exit::Status(status)) => {
                Ok(Finished { command, status, output, elapsed: state.elapsed })
            }
            Some(Exit::GuestLost) => Err(RunError::Gone { command, output }),
            None => {
                let what = "exit".to_owned();
                Err(RunError::Timeout { command, what, limit, output })
            }
        }
    }

    /// Kills the command if it is still running, and returns its result.
    ///
    /// # Errors
    /// Fails if the guest exits, or if the command does not exit within 10 s.
    pub fn kill(self) -> Result<Finished, RunError> {
        self.signal(Signal::KILL);
        self.wait(KILL_LIMIT)
    }

    /// Sends a signal to all processes of the command. Does nothing if the command has exited.
    pub fn signal(&self, signal: Signal) {
        let state = self.job.lock();
        if state.exit.is_some() {
            return;
        }
        // An error is ignored, because the command may have just exited.
        match &self.process {
            Process::Guest { port, id } => drop(port.kill(*id, signal.as_raw())),
            Process::Host { group: Some(group) } => drop(kill_process_group(*group, signal)),
            Process::Host { group: None } => {}
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// Collects output and exit status of a program on the host.
fn follow(mut child: Child, reader: PipeReader, job: &Job) {
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
        job.write(&String::from_utf8_lossy(&line));
        line.clear();
    }
    loop {
        // `signal` takes the same lock and checks `exit`, so it does not use a process ID that `try_wait` has released.
        let mut state = job.lock();
        match child.try_wait() {
            Ok(None) => {}
            Ok(Some(status)) => {
                return job.set_exit(&mut state, Exit::Status(shell_status(status)));
            }
            Err(_) => return job.set_exit(&mut state, Exit::GuestLost),
        }
        drop(state);
        thread::sleep(Duration::from_millis(2));
    }
}

/// Returns the exit status as a shell reports it: 128 + N for signal N.
fn shell_status(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// State of a command, shared by [`Running`] and the thread that receives its output.
#[derive(Debug, Default)]
pub(crate) struct Job {
    state: Mutex<State>,
    changed: Condvar,
}

/// Output and exit status of a command.
#[derive(Debug)]
pub(crate) struct State {
    output: String,
    exit: Option<Exit>,
    start: Instant,
    /// Time from start to exit; zero while the command runs.
    elapsed: Duration,
}

impl Default for State {
    fn default() -> Self {
        let start = Instant::now();
        Self { output: String::new(), exit: None, start, elapsed: Duration::ZERO }
    }
}

/// How a command has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Exit status, as a shell reports it.
    Status(u8),
    /// The status is unknown, because the guest exited or the system returned no status.
    GuestLost,
}

impl Job {
    /// Appends text to the output of the command, and wakes the waiting threads.
    pub(crate) fn write(&self, text: &str) {
        self.lock().output.push_str(text);
        self.changed.notify_all();
    }

    /// Records how the command has ended, and wakes the waiting threads.
    pub(crate) fn finish(&self, exit: Exit) {
        self.set_exit(&mut self.lock(), exit);
    }

    fn set_exit(&self, state: &mut State, exit: Exit) {
        state.exit = Some(exit);
        state.elapsed = state.start.elapsed();
        self.changed.notify_all();
    }

    /// Waits until the command has exited, until `is_done` returns true, or until the time limit expires.
    fn wait(&self, limit: Duration, is_done: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let is_waiting = |state: &mut State| state.exit.is_none() && !is_done(state);
        let waited = self.changed.wait_timeout_while(self.lock(), limit, is_waiting);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic of another thread does no harm, because each change leaves the state valid.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
