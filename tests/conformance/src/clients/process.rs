//! Processes that never outlive the run.
//!
//! Every process leads a process group, which is killed when its [`Group`] is dropped. If the run itself is killed,
//! the kernel kills processes of [`Group::bound`], and `timeout` those of [`Group::limited`].

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// A process and whatever it started.
#[derive(Debug)]
pub struct Group {
    child: Child,
}

/// What a process has used so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usage {
    /// Processor time, user and system together.
    pub cpu: Duration,
    /// The peak resident set in bytes.
    pub peak: u64,
}

impl Group {
    /// Returns a command whose process is killed when the thread that starts it ends.
    #[must_use]
    pub fn bound(program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(program);
        command
    }

    /// Returns a command whose process is killed after some time, with all that it started.
    #[must_use]
    pub fn limited(program: impl AsRef<OsStr>, limit: Duration) -> Command {
        let mut command = Command::new("timeout");
        command.args(["-s", "KILL"]).arg((limit.as_secs() + 2).to_string()).arg(program);
        command
    }

    /// Starts a process.
    ///
    /// # Errors
    /// Fails when the program cannot be run.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        Ok(Self { child: command.process_group(0).spawn()? })
    }

    /// Returns the process, for its pipes.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Waits until the process ends; `None` when it takes longer than the limit.
    ///
    /// # Errors
    /// Fails when the system cannot say.
    pub fn wait(&mut self, limit: Duration) -> io::Result<Option<ExitStatus>> {
        let end = Instant::now() + limit;
        loop {
            match self.child.try_wait()? {
                Some(status) => return Ok(Some(status)),
                None if Instant::now() < end => std::thread::sleep(Duration::from_millis(2)),
                None => return Ok(None),
            }
        }
    }

    /// Returns how the process ended, if it did.
    ///
    /// # Errors
    /// Fails when the system cannot say.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Asks the process to end.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Returns what the process used so far; `None` once it has ended.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        let id = self.child.id();
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The name in parentheses may hold anything; the state follows it.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let ticks: u64 =
            fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
        let per_second = rustix::param::clock_ticks_per_second();
        let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        let kilobytes: u64 = peak.split_ascii_whitespace().next()?.parse().ok()?;
        Some(Usage {
            cpu: Duration::from_millis(ticks * 1000 / per_second),
            peak: kilobytes * 1024,
        })
    }

    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(id) = id {
            // It may have ended by itself; then there is nothing to do.
            let _ = kill_process_group(id, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        let _ = self.child.wait();
    }
}
