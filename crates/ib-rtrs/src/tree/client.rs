//! The files of a client's session.

use std::collections::VecDeque;
use std::time::Duration;

use ib_types::Instant;

use super::layout::{File, Layout};
use super::walk::{Sessions, distinct, find_file, kind_of, list, session_name};
use super::{Entry, Kind, Ports, TreeError, ibtrs, metrics, rtrs, value};
use crate::client::{AddError, Client, ClientEvent, Failure, PathId, PathState};
use crate::connection::SetupError;
use crate::stats::ClientStat;
use ib_types::Errno;

const LAYOUTS: [&Layout; 2] = [&ibtrs::CLIENT, &rtrs::CLIENT];

/// How long something may take that somebody waits for: longer than a path may take to be connected, or to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// How something was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// It is done.
    Done,
    /// It is begun; [`ClientTree::poll`] tells when it is done.
    Later,
}

/// The tree of a session.
///
/// What is written to `add_path`, `reconnect`, `disconnect` and `remove_path` takes its time. Its owner tells the tree
/// what the session tells ([`ClientTree::handle_event`]), all of it before anything is written, calls
/// [`ClientTree::handle_timeout`] when [`ClientTree::poll_timeout`] says, and asks [`ClientTree::poll`] what has ended.
#[derive(Debug, Default)]
pub struct ClientTree {
    waits: Vec<Wait>,
    ended: VecDeque<(u64, Result<(), TreeError>)>,
}

/// Something that was written and takes its time.
#[derive(Debug)]
struct Wait {
    ticket: u64,
    /// The file.
    file: String,
    id: PathId,
    what: What,
    until: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Add,
    Reconnect,
    Disconnect,
    Remove,
}

impl Sessions for Client {
    type Session = ();
    type Path = PathId;

    fn sessions(&self) -> Vec<(String, ())> {
        vec![(session_name(self.config().name.as_bytes()), ())]
    }

    fn paths(&self, (): ()) -> Vec<(String, PathId)> {
        distinct(
            Client::paths(self).filter_map(|id| Some((self.spec(id)?.address.to_string(), id))),
        )
    }
}

impl ClientTree {
    /// Returns what is in a directory.
    ///
    /// # Errors
    /// Fails with [`Errno::ENOENT`] when there is nothing of the name, with [`Errno::ENOTDIR`] when it is a file.
    pub fn list(&self, client: &Client, path: &str) -> Result<Vec<Entry>, TreeError> {
        list(LAYOUTS, client, path)
    }

    /// Returns what a path leads to.
    ///
    /// # Errors
    /// Fails with [`Errno::ENOENT`] when there is nothing of the name, with [`Errno::ENOTDIR`] when it goes on behind a
    /// file.
    pub fn kind(&self, client: &Client, path: &str) -> Result<Kind, TreeError> {
        kind_of(LAYOUTS, client, path)
    }

    /// Returns what a file has to say, with a line's end behind it.
    ///
    /// # Errors
    /// As [`ClientTree::kind`], and with [`Errno::EISDIR`] when it is a directory, [`Errno::ENODEV`] when the HCA is
    /// gone.
    pub fn read(
        &self,
        client: &Client,
        ports: &impl Ports,
        path: &str,
    ) -> Result<String, TreeError> {
        let (layout, of, file) = find_file(LAYOUTS, client, path)?;
        let usage = |what: &str| Ok(format!("Usage: echo {what} > {}\n", last(path)));
        match (file, of) {
            (File::AddPath, _) => Ok(format!(
                "{}\n  *addr ::= [ ip:<ipv4|ipv6> | gid:<gid> ]\n",
                usage("<[source addr,]destination addr>")?.trim_end()
            )),
            (File::MaxReconnectAttempts, _) => {
                let most = client.config().max_reconnect_attempts;
                Ok(most.map_or_else(|| "-1\n".to_owned(), |most| format!("{most}\n")))
            }
            (File::Policy, _) => Ok((layout.formats.policy)(client.config().policy)),
            (File::Reconnect | File::Disconnect | File::RemovePath, _) => usage("1"),
            (File::ResetAll, _) => usage(layout.formats.reset),
            (_, Some(id)) => Self::read_of(client, ports, path, (layout, id, file)),
            (_, None) => unreachable!("all other files are of a path"),
        }
    }

    fn read_of(
        client: &Client,
        ports: &impl Ports,
        path: &str,
        (layout, id, file): (&Layout, PathId, File),
    ) -> Result<String, TreeError> {
        let gone = || TreeError::new(Errno::ENODEV, path, "the adapter is gone");
        let spec = client.spec(id).ok_or_else(gone)?;
        let port = || ports.port_name(spec.adapter).ok_or_else(gone);
        Ok(match file {
            File::State if client.path_state(id) == Some(PathState::Connected) => {
                "connected\n".to_owned()
            }
            File::State => "disconnected\n".to_owned(),
            File::HcaName => format!("{}\n", port()?.adapter),
            File::HcaPort => format!("{}\n", port()?.number),
            File::SourceAddress => match spec.address.source {
                Some(source) => format!("{source}\n"),
                None => "\n".to_owned(),
            },
            File::DestinationAddress => format!("{}\n", spec.address.destination),
            File::HeartbeatLatency => {
                format!("{} ns\n", client.latency(id).unwrap_or_default().as_nanos())
            }
            file => {
                let stats = client.stats(id).ok_or_else(gone)?;
                (layout.formats.client)(file, stats, client.inflight(id).unwrap_or(0))
            }
        })
    }

    /// Writes to a file. Where that takes its time, [`ClientTree::poll`] tells the ticket once it is done.
    ///
    /// # Errors
    /// As [`ClientTree::read`], and with [`Errno::EACCES`] when nothing can be written there, [`Errno::EINVAL`] when it
    /// makes no sense, [`Errno::EBUSY`] when a path is just being connected or ended, [`Errno::EEXIST`] when there is
    /// such a path; and with what kept a path from being added.
    pub fn write(
        &mut self,
        now: Instant,
        client: &mut Client,
        ports: &mut impl Ports,
        (path, bytes): (&str, &[u8]),
        ticket: u64,
    ) -> Result<Written, TreeError> {
        let (_, of, file) = find_file(LAYOUTS, client, path)?;
        if !file.is_writable() {
            return Err(TreeError::new(Errno::EACCES, path, "it can only be read"));
        }
        let wrong = |what: String| TreeError::new(Errno::EINVAL, path, what);
        let text = value::text(bytes).map_err(wrong)?;
        let Some(id) = of else {
            match file {
                File::MaxReconnectAttempts => {
                    client.set_max_reconnect_attempts(value::attempts(text).map_err(wrong)?);
                }
                File::Policy => client.set_policy(value::policy(text).map_err(wrong)?),
                _ => {
                    let id = add(now, client, ports, path, text)?;
                    self.wait(now, (path, ticket), id, What::Add);
                    return Ok(Written::Later);
                }
            }
            return Ok(Written::Done);
        };
        let what = match file {
            File::Reconnect => What::Reconnect,
            File::Disconnect => What::Disconnect,
            File::RemovePath => What::Remove,
            file => {
                value::reset(text).map_err(wrong)?;
                client.reset_stats(id, stat(file));
                return Ok(Written::Done);
            }
        };
        value::one(text).map_err(wrong)?;
        let is_begun = match what {
            What::Disconnect => client.disconnect_path(now, ports, id),
            What::Remove => client.remove_path(now, ports, id),
            _ => client.reconnect_path(now, ports, id),
        };
        if !is_begun {
            let busy = "the path is just being connected or ended";
            return Err(TreeError::new(Errno::EBUSY, path, busy));
        }
        self.wait(now, (path, ticket), id, what);
        Ok(Written::Later)
    }

    fn wait(&mut self, now: Instant, (file, ticket): (&str, u64), id: PathId, what: What) {
        let (file, until) = (file.to_owned(), now + PATIENCE);
        self.waits.push(Wait { ticket, file, id, what, until });
    }

    /// Takes what the session tells.
    pub fn handle_event(
        &mut self,
        now: Instant,
        client: &mut Client,
        ports: &mut impl Ports,
        event: &ClientEvent,
    ) {
        let mut at = 0;
        while let Some(wait) = self.waits.get(at) {
            match wait.outcome(event) {
                Some(outcome) => self.end(at, now, client, ports, outcome),
                None => at += 1,
            }
        }
    }

    /// Returns when [`ClientTree::handle_timeout`] has something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.waits.iter().map(|wait| wait.until).min()
    }

    /// Gives up what has taken too long.
    pub fn handle_timeout(&mut self, now: Instant, client: &mut Client, ports: &mut impl Ports) {
        while let Some(at) = self.waits.iter().position(|wait| wait.until <= now) {
            let outcome = Err((Errno::ETIMEDOUT, "it takes too long".to_owned()));
            self.end(at, now, client, ports, outcome);
        }
    }

    /// Something has come to an end. A path that could not be connected for the first time is none.
    fn end(
        &mut self,
        at: usize,
        now: Instant,
        client: &mut Client,
        ports: &mut impl Ports,
        outcome: Result<(), (Errno, String)>,
    ) {
        let Wait { ticket, file, id, what, .. } = self.waits.remove(at);
        if what == What::Add && outcome.is_err() {
            // It may be gone already.
            client.remove_path(now, ports, id);
        }
        let outcome = outcome.map_err(|(errno, what)| TreeError::new(errno, &file, what));
        self.ended.push_back((ticket, outcome));
    }

    /// Returns the ticket of something that is done, or has failed.
    pub fn poll(&mut self) -> Option<(u64, Result<(), TreeError>)> {
        self.ended.pop_front()
    }

    /// Returns all numbers in the text format of Prometheus.
    #[must_use]
    pub fn metrics(&self, client: &Client) -> String {
        metrics::client(&Sessions::sessions(client)[0].0, client, &Sessions::paths(client, ()))
    }
}

impl Wait {
    /// Returns what an event makes of it, if it has ended.
    fn outcome(&self, event: &ClientEvent) -> Option<Result<(), (Errno, String)>> {
        let connects = matches!(self.what, What::Add | What::Reconnect);
        let ends =
            |errno, what: &str| Some(if connects { Err((errno, what.to_owned())) } else { Ok(()) });
        match event {
            ClientEvent::PathUp(id) if *id == self.id && connects => Some(Ok(())),
            // That is what it begins with.
            ClientEvent::PathDown { why: Failure::Unwanted, .. } => None,
            ClientEvent::PathDown { path, why, .. } if *path == self.id && connects => {
                Some(Err((errno_of(why), why.to_string())))
            }
            ClientEvent::PathDisconnected(id) if *id == self.id && self.what != What::Remove => {
                ends(Errno::ECONNABORTED, "the path was disconnected meanwhile")
            }
            ClientEvent::PathRemoved(id) if *id == self.id => {
                ends(Errno::ECONNABORTED, "the path was removed meanwhile")
            }
            ClientEvent::Closed => ends(Errno::ENODEV, "the session has ended"),
            _ => None,
        }
    }
}

/// Adds the path that was written.
fn add(
    now: Instant,
    client: &mut Client,
    ports: &mut impl Ports,
    path: &str,
    text: &str,
) -> Result<PathId, TreeError> {
    let failed = |errno, what: String| TreeError::new(errno, path, what);
    let address = value::address(text).map_err(|what| failed(Errno::EINVAL, what))?;
    let spec = ports.find_path(&address).map_err(|(errno, what)| failed(errno, what))?;
    let is_there = |id| client.spec(id).is_some_and(|other| other.address == spec.address);
    if Client::paths(client).any(is_there) {
        return Err(failed(Errno::EEXIST, format!("{} is there already", spec.address)));
    }
    client.add_path(now, ports, spec).map_err(|error| {
        let errno = match error {
            AddError::TooMany => Errno::ENOSPC,
            AddError::Closed => Errno::ENODEV,
            AddError::Setup(_) => Errno::ENOMEM,
        };
        failed(errno, error.to_string())
    })
}

/// Returns which numbers a file is of.
fn stat(file: File) -> ClientStat {
    match file {
        File::SgEntries => ClientStat::SgEntries,
        File::CpuMigration | File::MigratedFrom | File::MigratedTo => ClientStat::Migration,
        File::Reconnects => ClientStat::Reconnects,
        File::Latencies => ClientStat::Latencies,
        File::Completions => ClientStat::Completions,
        File::Traffic => ClientStat::Traffic,
        _ => ClientStat::All,
    }
}

/// Returns the number of the error that a path is not connected by.
fn errno_of(why: &Failure) -> Errno {
    match why {
        Failure::Refused(errno) => *errno,
        Failure::Rejected(_) => Errno::ECONNREFUSED,
        Failure::Unreachable => Errno::EHOSTUNREACH,
        Failure::Silent | Failure::Heartbeat | Failure::IoTimeout => Errno::ETIMEDOUT,
        Failure::LinkDown => Errno::ENETDOWN,
        Failure::Unwanted => Errno::ECONNABORTED,
        Failure::Unproven => Errno::EACCES,
        Failure::Setup(SetupError::Memory(_) | SetupError::Create(_)) => Errno::ENOMEM,
        Failure::Setup(_) => Errno::EIO,
        Failure::Transport(_)
        | Failure::Disconnected
        | Failure::Forgotten
        | Failure::QueueDepth { .. }
        | Failure::MaxIoSize { .. }
        | Failure::Protocol(_) => Errno::ECONNRESET,
    }
}

/// Returns the last part of a path.
pub(super) fn last(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}
