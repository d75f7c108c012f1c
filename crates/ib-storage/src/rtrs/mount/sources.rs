//! The control sockets that the tree comes from.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ib_rtrs::Errno;
use ib_rtrs::tree::{Entry, Kind};

use crate::rtrs::control::{ControlClient, ControlError};

/// How long a program may take to say what it has.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long it may take to do something.
const LONG_PATIENCE: Duration = Duration::from_secs(90);

/// The most connections to a socket that are kept for the next question.
const KEPT: usize = 8;

/// Several control sockets, whose directories of one name are one. What two of them have is the first one's.
pub(super) struct Sources(Vec<Source>);

struct Source {
    socket: PathBuf,
    /// Connections without a question.
    idle: Mutex<Vec<ControlClient>>,
}

impl Sources {
    /// Connects to all sockets; later each may go, and come again.
    pub(super) fn connect(sockets: Vec<PathBuf>) -> Result<Self, ControlError> {
        let connect = |socket: PathBuf| {
            let client = ControlClient::connect(&socket)?;
            Ok(Source { socket, idle: Mutex::new(vec![client]) })
        };
        Ok(Self(sockets.into_iter().map(connect).collect::<Result<_, _>>()?))
    }

    /// Returns what is in a directory.
    pub(super) fn list(&self, path: &str) -> Result<Vec<Entry>, Errno> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut result = Err(Errno::ENOENT);
        for source in &self.0 {
            match source.with(PATIENCE, |client| client.list(path)) {
                Ok(more) => {
                    for entry in more {
                        if !entries.iter().any(|other| other.name == entry.name) {
                            entries.push(entry);
                        }
                    }
                    result = Ok(());
                }
                Err(Errno::ENOENT) => {}
                Err(errno) => result = result.or(Err(errno)),
            }
        }
        // Even without a program there is a root.
        if path.is_empty() || result.is_ok() { Ok(entries) } else { result.map(|()| entries) }
    }

    /// Returns what a path leads to.
    pub(super) fn kind(&self, path: &str) -> Result<Kind, Errno> {
        if path.is_empty() {
            return Ok(Kind::Directory);
        }
        self.first(PATIENCE, |client| client.kind(path))
    }

    /// Returns what a file says.
    pub(super) fn read(&self, path: &str) -> Result<String, Errno> {
        self.first(PATIENCE, |client| client.read(path))
    }

    /// Writes to a file, and waits until that is done.
    pub(super) fn write(&self, path: &str, value: &str) -> Result<(), Errno> {
        self.first(LONG_PATIENCE, |client| client.write(path, value))
    }

    /// Asks one after the other until one has the path.
    fn first<T>(
        &self,
        patience: Duration,
        mut ask: impl FnMut(&mut ControlClient) -> Result<T, ControlError>,
    ) -> Result<T, Errno> {
        let mut why = Errno::ENOENT;
        for source in &self.0 {
            match source.with(patience, &mut ask) {
                Err(Errno::ENOENT) => {}
                Err(errno) if errno == Errno::EIO || errno == Errno::ETIMEDOUT => {
                    // Another one may have it.
                    why = errno;
                }
                told => return told,
            }
        }
        Err(why)
    }
}

impl Source {
    /// Asks over a connection. A program that has gone has no files.
    fn with<T>(
        &self,
        patience: Duration,
        mut ask: impl FnMut(&mut ControlClient) -> Result<T, ControlError>,
    ) -> Result<T, Errno> {
        loop {
            let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let was_idle = idle.is_some();
            let client = idle.map_or_else(|| ControlClient::connect(&self.socket), Ok);
            let Ok(mut client) = client else { return Err(Errno::ENOENT) };
            client.set_timeout(patience).map_err(|error| error.errno())?;
            match ask(&mut client) {
                // The program that it led to may have gone, and another one have come.
                Err(ControlError::Io { source, .. })
                    if was_idle && source.kind() != std::io::ErrorKind::TimedOut => {}
                Err(ControlError::Io { source, .. })
                    if source.kind() != std::io::ErrorKind::TimedOut =>
                {
                    return Err(Errno::ENOENT);
                }
                told => {
                    if matches!(told, Ok(_) | Err(ControlError::Refused { .. })) {
                        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
                        if idle.len() < KEPT {
                            idle.push(client);
                        }
                    }
                    return told.map_err(|error| error.errno());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
