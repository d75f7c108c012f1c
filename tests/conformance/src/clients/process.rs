//! Processes that are killed at the end of the run.
//!
//! Every process leads a process group, which is killed when its [`Group`] is dropped. If the run itself is killed,
//! other mechanisms end the processes: the kernel kills those of [`Group::bound`], and `timeout` kills those of
//! [`Group::limited`].

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// A process and its descendants.
#[derive(Debug)]
pub struct Group {
    child: Child,
}

/// Resources that a process has used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usage {
    /// CPU time: the sum of user time and system time.
    pub cpu: Duration,
    /// Maximum resident set in bytes.
    pub peak: u64,
}

impl Group {
    /// Returns a command whose process the kernel kills when the thread that has started it ends.
    #[must_use]
    pub fn bound(program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(program);
        command
    }

    /// Returns a command that `timeout` kills with its descendants two seconds after the given time limit.
    #[must_use]
    pub fn limited(program: impl AsRef<OsStr>, limit: Duration) -> Command {
        let mut command = Command::new("timeout");
        command.args(["-s", "KILL"]).arg((limit.as_secs() + 2).to_string()).arg(program);
        command
    }

    /// Starts a process.
    ///
    /// # Errors
    /// Fails if the program cannot be started.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        Ok(Self { child: command.process_group(0).spawn()? })
    }

    /// Returns the child process, for example to use its pipes.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Waits until the process ends. Returns `None` if it is still running at the time limit.
    ///
    /// # Errors
    /// Fails if the status cannot be read.
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

    /// Returns the exit status if the process has ended.
    ///
    /// # Errors
    /// Fails if the status cannot be read.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Sends SIGTERM to the process.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Returns the resources that the process has used; `None` if it has ended.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        let id = self.child.id();
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // In /proc/PID/stat, the program's name in parentheses may contain any character. The process state follows the
        // last closing parenthesis.
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
            // An error is ignored, because the process may have ended.
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
