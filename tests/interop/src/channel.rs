//! The virtual serial port that carries commands to the guest, and their output and exit statuses back.
//!
//! Messages are lines of text. `guest/init` implements and documents the guest's end.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::running::{Exit, Job};

/// The host's end of the serial port.
#[derive(Debug)]
pub(crate) struct Port {
    stream: Mutex<UnixStream>,
    jobs: Mutex<Jobs>,
}

/// Commands that are running in the guest.
#[derive(Debug, Default)]
struct Jobs {
    last_id: u32,
    running: BTreeMap<u32, Arc<Job>>,
    /// True if the guest has exited.
    is_closed: bool,
}

/// A message from the guest.
#[derive(Debug, PartialEq, Eq)]
enum Message<'a> {
    /// The guest accepts commands.
    Ready,
    /// A line of output of a command.
    Out { id: u32, text: &'a str },
    /// A command has exited.
    End { id: u32, status: u8 },
}

impl<'a> Message<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (id, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        match verb {
            "ready" => Some(Self::Ready),
            "out" => Some(Self::Out { id: id.parse().ok()?, text: rest }),
            "end" => Some(Self::End { id: id.parse().ok()?, status: rest.parse().ok()? }),
            _ => None,
        }
    }
}

impl Port {
    /// Starts a thread that receives the guest's messages. The thread calls `ready` when the guest accepts commands.
    pub(crate) fn open(
        stream: UnixStream,
        ready: impl FnOnce() + Send + 'static,
    ) -> io::Result<Arc<Self>> {
        let lines = BufReader::new(stream.try_clone()?);
        let port = Arc::new(Self { stream: Mutex::new(stream), jobs: Mutex::default() });
        let listener = Arc::clone(&port);
        thread::spawn(move || listener.listen(lines, ready));
        Ok(port)
    }

    /// Starts a command and returns its ID.
    pub(crate) fn start(&self, command: &str, job: &Arc<Job>) -> io::Result<u32> {
        let mut jobs = self.jobs();
        if jobs.is_closed {
            return Err(io::ErrorKind::NotConnected.into());
        }
        jobs.last_id += 1;
        let id = jobs.last_id;
        // The command is added to the table of running commands before it is sent, because its output may arrive
        // immediately.
        jobs.running.insert(id, Arc::clone(job));
        drop(jobs);
        self.send(&format!("start {id} {command}\n"))?;
        Ok(id)
    }

    /// Sends a signal to a command.
    pub(crate) fn kill(&self, id: u32, signal: i32) -> io::Result<()> {
        self.send(&format!("kill {id} {signal}\n"))
    }

    fn send(&self, line: &str) -> io::Result<()> {
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        stream.write_all(line.as_bytes())
    }

    /// Handles the guest's messages until the guest exits.
    fn listen(&self, mut lines: BufReader<UnixStream>, ready: impl FnOnce()) {
        let mut ready = Some(ready);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            let text = String::from_utf8_lossy(&line);
            match Message::parse(text.trim_end_matches('\n')) {
                Some(Message::Ready) => ready.take().into_iter().for_each(|ready| ready()),
                Some(Message::Out { id, text }) => {
                    if let Some(job) = self.jobs().running.get(&id) {
                        job.write(&format!("{text}\n"));
                    }
                }
                Some(Message::End { id, status }) => {
                    if let Some(job) = self.jobs().running.remove(&id) {
                        job.finish(Exit::Status(status));
                    }
                }
                None => {}
            }
            line.clear();
        }
        let mut jobs = self.jobs();
        jobs.is_closed = true;
        for job in std::mem::take(&mut jobs.running).into_values() {
            job.finish(Exit::GuestLost);
        }
    }

    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
