//! The files of a client's session.

use std::collections::VecDeque;
use std::time::Duration;

use ib_types::Instant;

use super::layout::{File, Layout};
use super::walk::{Sessions, distinct, find_file, kind_of, list, session_name};
use super::{Entry, Kind, Ports, Tree, TreeError, ibtrs, metrics, rtrs, value};
use crate::client::{AddError, Client, ClientEvent, Failure, PathId, PathState};
use crate::connection::SetupError;
use crate::stats::ClientStat;
use ib_types::Errno;

const LAYOUTS: [&Layout; 2] = [&ibtrs::CLIENT, &rtrs::CLIENT];

/// Timeout of a write that waits for a path. It is longer than connecting or closing a path may take.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// Whether a write to a file is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteStatus {
    /// The write is complete.
    Done,
    /// The action has been started. [`ClientTree::poll`] will return its result.
    Pending,
}

/// The files of a client's session.
///
/// Writes to `add_path`, `reconnect`, `disconnect` and `remove_path` complete asynchronously. Before each write to a
/// file, the owner of the tree passes all events of the session to [`ClientTree::handle_event`]. The owner calls
/// [`ClientTree::handle_timeout`] at the time that [`ClientTree::poll_timeout`] returns, and polls
/// [`ClientTree::poll`] for results.
#[derive(Debug, Default)]
pub struct ClientTree {
    pending: Vec<PendingWrite>,
    results: VecDeque<(u64, Result<(), TreeError>)>,
}

/// A write whose action has not yet completed.
#[derive(Debug)]
struct PendingWrite {
    ticket: u64,
    /// The path of the file.
    file: String,
    id: PathId,
    action: Action,
    until: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
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

impl Tree for ClientTree {
    type Engine = Client;

    fn list(&self, client: &Client, path: &str) -> Result<Vec<Entry>, TreeError> {
        list(LAYOUTS, client, path)
    }

    fn kind(&self, client: &Client, path: &str) -> Result<Kind, TreeError> {
        kind_of(LAYOUTS, client, path)
    }

    fn read(&self, client: &Client, ports: &impl Ports, path: &str) -> Result<String, TreeError> {
        let (layout, of, file) = find_file(LAYOUTS, client, path)?;
        let usage = |value: &str| Ok(format!("Usage: echo {value} > {}\n", last(path)));
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
            (_, Some(id)) => Self::read_of_path(client, ports, path, layout, id, file),
            (_, None) => unreachable!("all other files belong to a path"),
        }
    }

    fn metrics(&self, client: &Client) -> String {
        metrics::client(&Sessions::sessions(client)[0].0, client, &Sessions::paths(client, ()))
    }
}

impl ClientTree {
    fn read_of_path(
        client: &Client,
        ports: &impl Ports,
        path: &str,
        layout: &Layout,
        id: PathId,
        file: File,
    ) -> Result<String, TreeError> {
        let gone = || TreeError::new(Errno::ENODEV, path, "the HCA was removed");
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

    /// Writes a file. If the result is [`WriteStatus::Pending`], [`ClientTree::poll`] later returns the ticket with the
    /// result of the write.
    ///
    /// # Errors
    /// Fails with the errors of [`Tree::read`] and of [`Ports::find_path`], and with
    /// * [`Errno::EACCES`] if the file is read-only,
    /// * [`Errno::EINVAL`] if the value is invalid,
    /// * [`Errno::EBUSY`] if the path is being connected or closed,
    /// * [`Errno::EEXIST`] if the session has a path of these addresses,
    /// * [`Errno::ENOSPC`], [`Errno::ENODEV`] or [`Errno::ENOMEM`] if the session or the HCA does not accept a path.
    pub fn write(
        &mut self,
        now: Instant,
        client: &mut Client,
        ports: &mut impl Ports,
        path: &str,
        bytes: &[u8],
        ticket: u64,
    ) -> Result<WriteStatus, TreeError> {
        let (_, of, file) = find_file(LAYOUTS, client, path)?;
        if !file.is_writable() {
            return Err(TreeError::new(Errno::EACCES, path, "the file is read-only"));
        }
        let wrong = |reason: String| TreeError::new(Errno::EINVAL, path, reason);
        let text = value::text(bytes).map_err(wrong)?;
        let Some(id) = of else {
            match file {
                File::MaxReconnectAttempts => {
                    client.set_max_reconnect_attempts(value::attempts(text).map_err(wrong)?);
                }
                File::Policy => client.set_policy(value::policy(text).map_err(wrong)?),
                _ => {
                    let id = add(now, client, ports, path, text)?;
                    self.add_pending(now, path, ticket, id, Action::Add);
                    return Ok(WriteStatus::Pending);
                }
            }
            return Ok(WriteStatus::Done);
        };
        let action = match file {
            File::Reconnect => Action::Reconnect,
            File::Disconnect => Action::Disconnect,
            File::RemovePath => Action::Remove,
            file => {
                value::reset(text).map_err(wrong)?;
                client.reset_stats(id, stat(file));
                return Ok(WriteStatus::Done);
            }
        };
        value::action(text).map_err(wrong)?;
        let has_started = match action {
            Action::Disconnect => client.disconnect_path(now, ports, id),
            Action::Remove => client.remove_path(now, ports, id),
            _ => client.reconnect_path(now, ports, id),
        };
        if !has_started {
            let busy = "the path is being connected or closed";
            return Err(TreeError::new(Errno::EBUSY, path, busy));
        }
        self.add_pending(now, path, ticket, id, action);
        Ok(WriteStatus::Pending)
    }

    fn add_pending(&mut self, now: Instant, file: &str, ticket: u64, id: PathId, action: Action) {
        let (file, until) = (file.to_owned(), now + WRITE_TIMEOUT);
        self.pending.push(PendingWrite { ticket, file, id, action, until });
    }

    /// Handles an event of the session.
    pub fn handle_event(
        &mut self,
        now: Instant,
        client: &mut Client,
        ports: &mut impl Ports,
        event: &ClientEvent,
    ) {
        let mut at = 0;
        while let Some(write) = self.pending.get(at) {
            match write.result(event) {
                Some(result) => self.finish(at, now, client, ports, result),
                None => at += 1,
            }
        }
    }

    /// Returns the time at which [`ClientTree::handle_timeout`] has to be called; `None` if no write is pending.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.pending.iter().map(|write| write.until).min()
    }

    /// Fails the pending writes that have timed out.
    pub fn handle_timeout(&mut self, now: Instant, client: &mut Client, ports: &mut impl Ports) {
        while let Some(at) = self.pending.iter().position(|write| write.until <= now) {
            let result = Err((Errno::ETIMEDOUT, "the action has timed out".to_owned()));
            self.finish(at, now, client, ports, result);
        }
    }

    /// Completes a pending write. If the write added a path that could not be connected, removes the path.
    fn finish(
        &mut self,
        at: usize,
        now: Instant,
        client: &mut Client,
        ports: &mut impl Ports,
        result: Result<(), (Errno, String)>,
    ) {
        let PendingWrite { ticket, file, id, action, .. } = self.pending.remove(at);
        if action == Action::Add && result.is_err() {
            // The result is false if the path was already removed. It is ignored, because nothing is left to do then.
            client.remove_path(now, ports, id);
        }
        let result = result.map_err(|(errno, reason)| TreeError::new(errno, &file, reason));
        self.results.push_back((ticket, result));
    }

    /// Returns the ticket and the result of the next completed write.
    pub fn poll(&mut self) -> Option<(u64, Result<(), TreeError>)> {
        self.results.pop_front()
    }
}

impl PendingWrite {
    /// Returns the result of the pending write, if the event completes it.
    fn result(&self, event: &ClientEvent) -> Option<Result<(), (Errno, String)>> {
        let connects = matches!(self.action, Action::Add | Action::Reconnect);
        let ends = |errno, reason: &str| {
            Some(if connects { Err((errno, reason.to_owned())) } else { Ok(()) })
        };
        match event {
            ClientEvent::PathUp(id) if *id == self.id && connects => Some(Ok(())),
            // Reconnecting a connected path closes it first. The event of this close does not complete the write.
            ClientEvent::PathDown { why: Failure::ClosedLocally, .. } => None,
            ClientEvent::PathDown { path, why, .. } if *path == self.id && connects => {
                Some(Err((errno_of(why), why.to_string())))
            }
            ClientEvent::PathDisconnected(id)
                if *id == self.id && self.action != Action::Remove =>
            {
                ends(Errno::ECONNABORTED, "the path was disconnected")
            }
            ClientEvent::PathRemoved(id) if *id == self.id => {
                ends(Errno::ECONNABORTED, "the path was removed")
            }
            ClientEvent::Closed => ends(Errno::ENODEV, "the session is closed"),
            _ => None,
        }
    }
}

/// Adds the path whose addresses were written.
fn add(
    now: Instant,
    client: &mut Client,
    ports: &mut impl Ports,
    path: &str,
    text: &str,
) -> Result<PathId, TreeError> {
    let failed = |errno, reason: String| TreeError::new(errno, path, reason);
    let address = value::address(text).map_err(|reason| failed(Errno::EINVAL, reason))?;
    let spec = ports.find_path(&address).map_err(|(errno, reason)| failed(errno, reason))?;
    let is_there = |id| client.spec(id).is_some_and(|other| other.address == spec.address);
    if Client::paths(client).any(is_there) {
        return Err(failed(
            Errno::EEXIST,
            format!("the session already has the path {}", spec.address),
        ));
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

/// Returns which statistics a write to the file resets.
fn stat(file: File) -> ClientStat {
    match file {
        File::SgEntries => ClientStat::SgEntries,
        File::CpuMigration | File::MigratedFrom | File::MigratedTo => ClientStat::Migration,
        File::Reconnects => ClientStat::Reconnects,
        File::Latencies => ClientStat::Latencies,
        File::Completions => ClientStat::Completions,
        File::Traffic => ClientStat::Traffic,
        File::ResetAll
        | File::AddPath
        | File::MaxReconnectAttempts
        | File::Policy
        | File::State
        | File::Reconnect
        | File::Disconnect
        | File::RemovePath
        | File::HcaName
        | File::HcaPort
        | File::SourceAddress
        | File::DestinationAddress
        | File::HeartbeatLatency => ClientStat::All,
    }
}

/// Returns the error number for the reason why a path has failed.
fn errno_of(why: &Failure) -> Errno {
    match why {
        Failure::Refused(errno) => *errno,
        Failure::Rejected(_) => Errno::ECONNREFUSED,
        Failure::Unreachable => Errno::EHOSTUNREACH,
        Failure::ConnectTimeout(_) | Failure::Heartbeat | Failure::IoTimeout(_) => Errno::ETIMEDOUT,
        Failure::LinkDown => Errno::ENETDOWN,
        Failure::ClosedLocally => Errno::ECONNABORTED,
        Failure::WrongKey => Errno::EACCES,
        Failure::Setup(SetupError::Memory(_) | SetupError::Create(_)) => Errno::ENOMEM,
        Failure::Setup(_) => Errno::EIO,
        Failure::Transport(_)
        | Failure::Disconnected
        | Failure::SessionRestarted
        | Failure::QueueDepth { .. }
        | Failure::MaxIoSize { .. }
        | Failure::Protocol(_) => Errno::ECONNRESET,
    }
}

/// Returns the last component of a path.
pub(super) fn last(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}
