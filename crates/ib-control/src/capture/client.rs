//! Asks programs whose queue pairs can be captured.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::UCred;
use rustix::net::sockopt::socket_peercred;

use super::message::{Answer, Ask, ProgramInfo};
use super::server::PREFIX;
use ib_os::poll;
use ib_os::seqpacket::{self, Came};

/// How long a program may take to answer, in milliseconds: it may write what is left of a capture first.
const PATIENCE: i32 = 15_000;

/// Why a program has not answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// It is not there, or has gone.
    #[error("{name}: {source}")]
    Io {
        /// The name of its socket.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// It says nothing.
    #[error("{0} does not answer")]
    Silent(String),
    /// It has gone.
    #[error("{0} has gone")]
    Gone(String),
    /// It does not speak the same language: another version, probably.
    #[error("{name} has answered what is not understood: {what}")]
    Malformed {
        /// The name of its socket.
        name: String,
        /// What is wrong with it.
        what: String,
    },
    /// It is another user's.
    #[error("{0} is another user's")]
    Foreign(String),
    /// It does not do it.
    #[error("{0}")]
    Refused(String),
}

/// Returns the names of the sockets of programs that can be asked, in order.
///
/// # Errors
/// Fails when the system does not tell which sockets there are.
pub fn programs() -> io::Result<Vec<String>> {
    let sockets = fs::read_to_string("/proc/net/unix")?;
    let name = |line: &str| {
        let name = line.split_whitespace().last()?.strip_prefix('@')?;
        name.starts_with(PREFIX).then(|| name.to_owned())
    };
    let mut names: Vec<_> = sockets.lines().filter_map(name).collect();
    names.sort();
    // Each connection to a socket has its name, too.
    names.dedup();
    Ok(names)
}

/// Returns the process that a socket's name tells.
#[must_use]
pub fn pid_of(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.split('-').next()?.parse().ok()
}

/// A program that can be asked.
pub struct CaptureClient {
    name: String,
    socket: OwnedFd,
}

impl CaptureClient {
    /// Calls a program by the name of its socket.
    ///
    /// # Errors
    /// Fails when it has gone.
    pub fn connect(name: &str) -> Result<Self, ClientError> {
        let socket = seqpacket::call(name);
        let socket = socket.map_err(|source| ClientError::Io { name: name.to_owned(), source })?;
        // Anybody can take a name. Root asks everybody's programs, if they are those that the name says.
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

    /// Asks, with an open file beside the question if it needs one.
    ///
    /// # Errors
    /// Fails when the program does not answer, or does not do it.
    pub fn ask(&self, ask: &Ask, file: Option<&OwnedFd>) -> Result<Answer, ClientError> {
        let failed = |source| ClientError::Io { name: self.name.clone(), source };
        let files: Vec<_> = file.into_iter().collect();
        seqpacket::request(&self.socket, ask, &files).map_err(failed)?;
        poll::wait(self.socket.as_fd(), false, PATIENCE).map_err(failed)?;
        match seqpacket::receive(&self.socket).map_err(failed)? {
            Came::Message(Answer::Refused { is_foreign: true, .. }, _) => {
                Err(ClientError::Foreign(self.name.clone()))
            }
            Came::Message(Answer::Refused { why, .. }, _) => Err(ClientError::Refused(why)),
            Came::Message(answer, _) => Ok(answer),
            Came::Malformed(what) => Err(ClientError::Malformed { name: self.name.clone(), what }),
            Came::Nothing => Err(ClientError::Silent(self.name.clone())),
            Came::End => Err(ClientError::Gone(self.name.clone())),
        }
    }

    /// Returns what HCAs the program has, with all their queue pairs.
    ///
    /// # Errors
    /// As [`CaptureClient::ask`].
    pub fn describe(&self) -> Result<ProgramInfo, ClientError> {
        let mut all: Option<ProgramInfo> = None;
        let (mut from, mut captures_from) = ((0, 0), 0);
        loop {
            let ask = Ask::Describe { from, captures_from };
            let Answer::Program(part) = self.ask(&ask, None)? else {
                let what = "it does not describe itself".to_owned();
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
                let all = all.expect("just set");
                return Ok(ProgramInfo { more_from: None, more_captures_from: None, ..all });
            }
            // What is through already is not told again.
            from = more.unwrap_or((u32::MAX, u32::MAX));
            captures_from = more_captures.unwrap_or(u64::MAX);
        }
    }
}
