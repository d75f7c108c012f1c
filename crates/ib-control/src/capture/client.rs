//! Client of the capture sockets of other programs.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::UCred;
use rustix::net::sockopt::socket_peercred;

use super::message::{CaptureRequest, CaptureResponse, ProgramInfo};
use super::server::PREFIX;
use ib_os::poll;
use ib_os::seqpacket::{self, Received};

/// Maximum time to wait for a response, in milliseconds. A program that stops a capture writes the remaining packets
/// before it responds.
const PATIENCE: i32 = 30_000;

/// Error of a request to a program.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// A system call on the socket failed, for example because no program listens.
    #[error("socket @{name}: {source}")]
    Io {
        /// The name of the program's socket.
        name: String,
        /// The I/O error of the socket.
        source: io::Error,
    },
    /// The program does not respond. Holds the name of its socket.
    #[error("the program at socket @{0} did not respond within {seconds} s", seconds = PATIENCE / 1000)]
    Silent(String),
    /// The program has disconnected. Holds the name of its socket.
    #[error("the program at socket @{0} has disconnected")]
    Gone(String),
    /// The response is malformed; the program is probably of another version.
    #[error(
        "the program at socket @{name} sent a malformed response: {what}; expected the same version of ibfabric"
    )]
    Malformed {
        /// The name of the program's socket.
        name: String,
        /// The reason why the response is malformed.
        what: String,
    },
    /// The socket belongs to another user. Holds the name of the socket.
    #[error("socket @{0} belongs to another user: expected a program of this user, or root")]
    Foreign(String),
    /// The program refused the request.
    #[error("{0}")]
    Refused(String),
}

/// Returns the socket names of all programs that can be captured, in alphabetical order.
///
/// # Errors
/// Fails if the list of sockets cannot be read.
pub fn programs() -> io::Result<Vec<String>> {
    let sockets = fs::read_to_string("/proc/net/unix")?;
    let name = |line: &str| {
        let name = line.split_whitespace().last()?.strip_prefix('@')?;
        name.starts_with(PREFIX).then(|| name.to_owned())
    };
    let mut names: Vec<_> = sockets.lines().filter_map(name).collect();
    names.sort();
    // `/proc/net/unix` has a line for each connection of a socket, so the same name can occur several times.
    names.dedup();
    Ok(names)
}

/// Returns the process ID that a socket name contains.
#[must_use]
pub fn pid_of(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.split('-').next()?.parse().ok()
}

/// A connection to the capture socket of a program.
pub struct CaptureClient {
    name: String,
    socket: OwnedFd,
}

impl CaptureClient {
    /// Connects to the program that has the given socket name.
    ///
    /// # Errors
    /// Fails if no process listens on the socket, or if the process belongs to another user. Root can connect to the
    /// programs of all users.
    pub fn connect(name: &str) -> Result<Self, ClientError> {
        let socket = seqpacket::call(name);
        let socket = socket.map_err(|source| ClientError::Io { name: name.to_owned(), source })?;
        // Any user can bind this abstract name, so the client checks the user of the server process. Root accepts a
        // server of any user whose process ID is the one in the name.
        let is_right = |other: &UCred| {
            let own = rustix::process::geteuid();
            let pid = pid_of(name);
            other.uid == own
                || own.is_root() && pid == Some(other.pid.as_raw_nonzero().get() as u32)
        };
        if !socket_peercred(&socket).is_ok_and(|other| is_right(&other)) {
            return Err(ClientError::Foreign(name.to_owned()));
        }
        Ok(Self { name: name.to_owned(), socket })
    }

    /// Sends a request and returns the response. `file` is sent with the request if the request needs a file
    /// descriptor.
    ///
    /// # Errors
    /// Fails if the program does not respond, or refuses the request.
    pub fn ask(
        &self,
        ask: &CaptureRequest,
        file: Option<&OwnedFd>,
    ) -> Result<CaptureResponse, ClientError> {
        let failed = |source| ClientError::Io { name: self.name.clone(), source };
        let files: Vec<_> = file.into_iter().collect();
        seqpacket::request(&self.socket, ask, &files).map_err(failed)?;
        poll::wait(self.socket.as_fd(), false, PATIENCE).map_err(failed)?;
        match seqpacket::receive(&self.socket).map_err(failed)? {
            Received::Message(CaptureResponse::Refused { is_foreign: true, .. }, _) => {
                Err(ClientError::Foreign(self.name.clone()))
            }
            Received::Message(CaptureResponse::Refused { why, .. }, _) => {
                Err(ClientError::Refused(why))
            }
            Received::Message(answer, _) => Ok(answer),
            Received::Malformed(what) => {
                Err(ClientError::Malformed { name: self.name.clone(), what })
            }
            Received::Empty => Err(ClientError::Silent(self.name.clone())),
            Received::Disconnected => Err(ClientError::Gone(self.name.clone())),
        }
    }

    /// Returns all HCAs, queue pairs and captures of the program.
    ///
    /// # Errors
    /// Fails as [`CaptureClient::ask`] does.
    pub fn describe(&self) -> Result<ProgramInfo, ClientError> {
        let mut all: Option<ProgramInfo> = None;
        let (mut from, mut captures_from) = ((0, 0), 0);
        loop {
            let ask = CaptureRequest::Describe { from, captures_from };
            let CaptureResponse::Program(part) = self.ask(&ask, None)? else {
                let what = "expected a description of the program".to_owned();
                return Err(ClientError::Malformed { name: self.name.clone(), what });
            };
            let more = part.more_from.filter(|&more| more > from);
            let more_captures = part.more_captures_from.filter(|&more| more > captures_from);
            match &mut all {
                None => all = Some(*part),
                Some(all) => {
                    for adapter in part.adapters {
                        match all.adapters.last_mut() {
                            Some(last) if last.adapter == adapter.adapter => {
                                last.qps.extend(adapter.qps);
                            }
                            _ => all.adapters.push(adapter),
                        }
                    }
                    all.captures.extend(part.captures);
                }
            }
            if more.is_none() && more_captures.is_none() {
                let all = all.expect("the first response has set `all`");
                return Ok(ProgramInfo { more_from: None, more_captures_from: None, ..all });
            }
            // If a list is already complete, the next request starts at the maximum number. The response then contains
            // no further entries of this list.
            from = more.unwrap_or((u32::MAX, u32::MAX));
            captures_from = more_captures.unwrap_or(u64::MAX);
        }
    }
}
