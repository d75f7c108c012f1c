//! The control sockets from which the tree is read.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ib_rtrs::Errno;
use ib_rtrs::tree::{Entry, Kind};

use crate::rtrs::control::{ControlClient, ControlError};

/// Timeout of the reply to a control request that reads the tree.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// Timeout of the reply to a control request that writes a file of the tree.
const WRITE_TIMEOUT: Duration = Duration::from_secs(90);

/// Maximum number of idle connections to a socket.
const MAX_IDLE: usize = 8;

/// Several control sockets. Directories of the same name are merged. If files have the same name,
/// the file of the first socket is used.
pub(super) struct Sources(Vec<Source>);

struct Source {
    socket: PathBuf,
    /// Connections without a request in flight.
    idle: Mutex<Vec<ControlClient>>,
}

impl Sources {
    /// Connects to all sockets. If a program is restarted later, the next request connects again.
    pub(super) fn connect(sockets: Vec<PathBuf>) -> Result<Self, ControlError> {
        let connect = |socket: PathBuf| {
            let client = ControlClient::connect(&socket)?;
            Ok(Source { socket, idle: Mutex::new(vec![client]) })
        };
        Ok(Self(sockets.into_iter().map(connect).collect::<Result<_, _>>()?))
    }

    /// Returns the entries of a directory.
    pub(super) fn list(&self, path: &str) -> Result<Vec<Entry>, Errno> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut result = Err(Errno::ENOENT);
        for source in &self.0 {
            match source.with(READ_TIMEOUT, |client| client.list(path)) {
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
        // The root directory exists even if no socket can be reached.
        if path.is_empty() || result.is_ok() { Ok(entries) } else { result.map(|()| entries) }
    }

    /// Returns whether a path is a file or a directory.
    pub(super) fn kind(&self, path: &str) -> Result<Kind, Errno> {
        if path.is_empty() {
            return Ok(Kind::Directory);
        }
        self.first(READ_TIMEOUT, |client| client.kind(path))
    }

    /// Returns the contents of a file of the tree.
    pub(super) fn read(&self, path: &str) -> Result<String, Errno> {
        self.first(READ_TIMEOUT, |client| client.read(path))
    }

    /// Writes a control file of the tree, and waits until the action that the write starts is complete.
    pub(super) fn write(&self, path: &str, value: &str) -> Result<(), Errno> {
        self.first(WRITE_TIMEOUT, |client| client.write(path, value))
    }

    /// Sends a request to one socket after the other until one of them has the path.
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
                    // Stores the error and tries the next socket, which may have the path.
                    why = errno;
                }
                result => return result,
            }
        }
        Err(why)
    }
}

impl Source {
    /// Sends a request over an idle or a new connection. Fails with ENOENT if no program serves the
    /// socket.
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
                // The program may have been restarted while this connection was idle: tries the
                // next connection.
                Err(ControlError::Io { source, .. })
                    if was_idle && source.kind() != std::io::ErrorKind::TimedOut => {}
                Err(ControlError::Io { source, .. })
                    if source.kind() != std::io::ErrorKind::TimedOut =>
                {
                    return Err(Errno::ENOENT);
                }
                result => {
                    if matches!(result, Ok(_) | Err(ControlError::Refused { .. })) {
                        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
                        if idle.len() < MAX_IDLE {
                            idle.push(client);
                        }
                    }
                    return result.map_err(|error| error.errno());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
