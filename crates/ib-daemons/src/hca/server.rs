//! The event loop of an HCA daemon.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsFd;
use std::time::Duration;

use ib_attach::{AttachServer, ClientEvent, Demultiplexer, PortDetails, ResolvedPort, SLOTS};
use ib_os::clock;
use ib_os::poll;
use ib_os::signals::Termination;
use ib_roce::RoceSocket;
use ib_types::{Gid, Instant};
use ib_wire::mad::MgmtClass;

use super::exchange::{HcaCounters, Held};
use super::head_of_queue::HeadOfQueue;
use crate::error::DaemonError;
use crate::message::note;

/// Time for which the daemon polls the rings before it sleeps.
const SPIN: Duration = Duration::from_micros(20);

/// Number of rounds with packets between two polls of the sockets of the processes.
const ROUNDS_PER_POLL: u32 = 32;

/// Maximum number of messages of one process that are handled in one call of `handle_messages`.
const MOST_MESSAGES: usize = 16;

/// An HCA daemon.
pub(super) struct HcaServer {
    // The UDP socket is closed before the name of the daemon becomes free, so that the next daemon can bind it.
    pub(super) socket: RoceSocket,
    pub(super) server: AttachServer,
    /// Attributes of the port, without a block of queue pair numbers.
    port: PortDetails,
    pub(super) gid: Gid,
    pub(super) hcas: Demultiplexer,
    /// Connected processes, including those that have no HCA.
    connected: BTreeSet<usize>,
    /// The time when the last process disconnected, or when the daemon started.
    unused_since: Instant,
    /// Processes with an HCA.
    pub(super) members: BTreeMap<usize, Member>,
    /// The keys of `members`.
    pub(super) order: Vec<usize>,
    /// Packet that was received from the socket, and waits for a free slot of a ring.
    pub(super) received: Option<Held>,
    /// Buffer for one packet.
    pub(super) buffer: Vec<u8>,
    pub(super) counters: HcaCounters,
    pub(super) has_noted_zero_checksum: bool,
}

/// A process with an HCA.
#[derive(Default)]
pub(super) struct Member {
    /// Packet that the process has sent, and that waits for a free slot of a ring, or for the socket.
    pub(super) held: Option<Held>,
    /// Records since when the ring to the process is full.
    pub(super) queue: HeadOfQueue,
}

impl HcaServer {
    pub(super) fn new(
        server: AttachServer,
        socket: RoceSocket,
        port: PortDetails,
    ) -> Result<Self, DaemonError> {
        Ok(Self {
            server,
            socket,
            gid: port.port.gid(),
            port,
            hcas: Demultiplexer::default(),
            connected: BTreeSet::new(),
            unused_since: clock::now(),
            members: BTreeMap::new(),
            order: Vec::new(),
            received: None,
            buffer: Vec::new(),
            counters: HcaCounters::default(),
            has_noted_zero_checksum: false,
        })
    }

    /// Serves until a signal arrives. With `exit_idle`, also ends if no process is connected, and no packet was
    /// forwarded for this time.
    pub(super) fn run(&mut self, exit_idle: Option<Duration>) -> Result<HcaCounters, DaemonError> {
        let cannot = |error| DaemonError::Failed(format!("cannot serve: {error}"));
        let signals = Termination::catch().map_err(cannot)?;
        let mut rounds = 0;
        let mut idle_since = clock::now();
        loop {
            let now = clock::now();
            let moved = self.exchange(now).map_err(cannot)?;
            if moved {
                idle_since = now;
                rounds += 1;
                if rounds % ROUNDS_PER_POLL != 0 {
                    continue;
                }
            } else if now.since(idle_since) < SPIN {
                std::thread::yield_now();
                continue;
            }
            let is_unused = self.connected.is_empty();
            let exit_at = exit_idle.filter(|_| is_unused).map(|idle| self.unused_since + idle);
            if exit_at.is_some_and(|at| at <= now) {
                return Ok(self.counters);
            }
            if self.wait(&signals, moved, exit_at).map_err(cannot)? {
                return Ok(self.counters);
            }
        }
    }

    /// Waits until there is work, or until `exit_at`. If `is_busy` is true, only polls. Handles messages of processes.
    /// Returns true if a signal has arrived.
    fn wait(
        &mut self,
        signals: &Termination,
        is_busy: bool,
        exit_at: Option<Instant>,
    ) -> std::io::Result<bool> {
        let held = self.members.values().filter_map(|member| member.held.as_ref());
        let blocked: Vec<Option<usize>> =
            held.chain(&self.received).map(|held| held.blocked_by).collect();
        // A process wakes the daemon only after `may_sleep`.
        let mut sleeps = !is_busy;
        for (&client, member) in self.members.iter().filter(|_| !is_busy) {
            let wants_room = blocked.contains(&Some(client));
            sleeps &= self.server.may_sleep(client, member.held.is_none(), wants_room);
        }
        let writes = match self.socket.begin_wait() {
            None => self.received.is_some() && self.socket.sender.unsent() > 0,
            Some(writes) => writes,
        } || blocked.contains(&None);
        sleeps &= self.received.is_some() || !self.socket.receiver.has_more();
        let until = self.members.iter().filter(|(client, _)| blocked.contains(&Some(**client)));
        let until = until.filter_map(|(_, member)| member.queue.deadline()).chain(exit_at).min();
        let limit = match until {
            _ if !sleeps => Duration::ZERO,
            Some(until) => until.since(clock::now()),
            None => Duration::from_secs(3600),
        };
        let mut socket = poll::watched(self.socket.as_fd(), writes);
        if self.received.is_some() {
            socket.events &= !poll::watched(self.socket.as_fd(), false).events;
        }
        let fixed =
            [poll::watched(signals.as_fd(), false), poll::watched(self.server.as_fd(), false)];
        let mut files = vec![fixed[0], fixed[1], socket];
        let clients: Vec<usize> = self.connected.iter().copied().collect();
        for &client in &clients {
            for file in [self.server.socket(client), self.server.bell(client)] {
                let file = file.map(|file| poll::watched(file, false));
                // `poll` ignores negative descriptors.
                files.push(file.unwrap_or_else(|| {
                    let mut none = fixed[0];
                    none.fd = -1;
                    none
                }));
            }
        }
        poll::wait_any_for(&mut files, limit)?;
        let ready: Vec<bool> = files.iter().map(|file| file.revents != 0).collect();
        if ready[0] {
            return Ok(true);
        }
        for (client, ready) in clients.iter().zip(ready[3..].chunks_exact(2)) {
            if ready[1] {
                self.server.silence(*client);
            }
            if ready[0] {
                self.handle_messages(*client);
            }
        }
        if ready[1] {
            self.connected.extend(self.server.accept());
        }
        Ok(false)
    }

    /// Handles messages of a process.
    fn handle_messages(&mut self, client: usize) {
        for _ in 0..MOST_MESSAGES {
            match self.server.next(client) {
                None => break,
                Some(ClientEvent::Hello { node, classes }) => {
                    self.admit(client, node.as_deref(), &classes);
                }
                Some(ClientEvent::Resolve { number, name }) => {
                    let is_own = name.is_empty() || name.parse() == Ok(self.port.addresses[0]);
                    let (gid, node) = (self.gid, self.port.node.clone());
                    let place = ResolvedPort { node, number: 1, gid, lid: 0 };
                    self.server.answer(client, number, Some(&place).filter(|_| is_own));
                }
                Some(ClientEvent::Serve { number, class }) => {
                    let address = self.port.addresses[0];
                    let refusal = self.hcas.add_class(client, class).err();
                    let refusal = refusal.map(|error| format!("{address}: {error}"));
                    self.server.answer_class(client, number, refusal);
                }
                Some(event @ (ClientEvent::Bye | ClientEvent::Disconnected)) => {
                    self.remove(client, event == ClientEvent::Disconnected);
                    return;
                }
            }
        }
        // The server has closed the connection of a process that it has refused.
        if self.server.socket(client).is_none() {
            self.disconnect(client);
        }
    }

    /// Removes a process from those that are connected.
    fn disconnect(&mut self, client: usize) {
        self.connected.remove(&client);
        self.unused_since = clock::now();
    }

    /// Gives a process its HCA, or refuses it.
    fn admit(&mut self, client: usize, node: Option<&str>, classes: &[MgmtClass]) {
        let address = self.port.addresses[0];
        let now = clock::now();
        let why = if let Some(node) = node {
            format!("found node {node:?}, expected none: the HCA daemon of {address} has one port")
        } else {
            match self.hcas.admit(now, client, classes) {
                Ok(block) => {
                    let port = PortDetails { qpn_block: block, ..self.port.clone() };
                    match self.server.admit(client, &port) {
                        Ok(()) => {
                            self.members.insert(client, Member::default());
                            self.order.push(client);
                            return;
                        }
                        Err(error) => {
                            self.hcas.remove(now, client, false);
                            format!("{address}: {error}")
                        }
                    }
                }
                Err(error) => format!("{address}: {error}"),
            }
        };
        note!("refused an HCA: {why}");
        self.server.refuse(client, why);
    }

    /// Forwards the last packets of a process, and then removes the process.
    fn remove(&mut self, client: usize, is_killed: bool) {
        let now = clock::now();
        if self.members.contains_key(&client) {
            self.drain(now, client, SLOTS);
            self.members.remove(&client);
            self.order.retain(|other| *other != client);
            self.hcas.remove(now, client, is_killed);
        }
        self.server.close(client);
        self.disconnect(client);
    }
}
