//! Packets between the rings of the processes and the RoCEv2 socket.

use std::fmt::{Display, Formatter};
use std::io;

use ib_attach::{Destination, Frame};
use ib_link::Route;
use ib_roce::{PushError, address_of};
use ib_types::{Gid, Instant};

use super::server::HcaServer;
use crate::adapter::note_zero_checksum;

/// Maximum number of packets that are taken from one process, or from the socket, in one round of the event loop.
const TURN: usize = 64;

/// Counters of an HCA daemon, in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HcaCounters {
    /// Packets from processes to their own address, including dropped ones.
    local: u64,
    /// Packets from processes to the network.
    sent: u64,
    /// Packets received from the network, including dropped ones.
    received: u64,
    /// Packets dropped because no process has the destination QPN or serves the management class.
    unclaimed: u64,
    /// Packets dropped because the ring to the destination process was full.
    overflowed: u64,
    /// Packets dropped because they are malformed or too long, or because a process has sent them with another source
    /// GID than that of the address.
    refused: u64,
}

impl Display for HcaCounters {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { local, sent, received, unclaimed, overflowed, refused } = self;
        write!(
            f,
            "packets: {local} local, {sent} sent, {received} received; dropped: {unclaimed} without a process, \
             {overflowed} at full rings, {refused} refused"
        )
    }
}

/// A packet that waits for a free slot of a ring, or for the socket.
pub(super) struct Held {
    route: Route,
    bytes: Vec<u8>,
    /// The process whose ring is full; `None` if the packet waits for the socket.
    pub(super) blocked_by: Option<usize>,
}

/// The result of an attempt to forward a packet.
enum Forwarded {
    /// The packet was forwarded or dropped.
    Done,
    /// The packet waits for a free slot of this process's ring, or for the socket (`None`).
    Waits(Option<usize>),
}

impl HcaServer {
    /// Runs one round: forwards packets of each process and of the socket. Returns true if any packet was forwarded.
    pub(super) fn exchange(&mut self, now: Instant) -> io::Result<bool> {
        let clients = std::mem::take(&mut self.order);
        let mut moved = false;
        for &client in &clients {
            moved |= self.take_frames(now, client, TURN);
        }
        moved |= self.receive(now)?;
        self.socket.sender.flush();
        for &client in &clients {
            self.server.flush(client);
        }
        self.order = clients;
        Ok(moved)
    }

    /// Forwards the last packets of a process that has detached. Packets that would have to wait are dropped.
    pub(super) fn drain(&mut self, now: Instant, client: usize, most: u32) {
        self.take_frames(now, client, most as usize);
        self.socket.sender.flush();
    }

    /// Forwards at most `most` packets of a process. Returns true if [`Self::send`] has forwarded or dropped any
    /// packet.
    fn take_frames(&mut self, now: Instant, client: usize, most: usize) -> bool {
        let mut moved = false;
        for _ in 0..most {
            let held = self.members.get_mut(&client).and_then(|member| member.held.take());
            let (route, bytes) = match held {
                Some(held) => (held.route, held.bytes),
                None => {
                    let mut bytes = std::mem::take(&mut self.buffer);
                    bytes.clear();
                    match self.server.take(client, &mut bytes) {
                        None => {
                            self.buffer = bytes;
                            break;
                        }
                        Some(Some(Frame::Ethernet { route })) => (route, bytes),
                        Some(_) => {
                            self.counters.refused += 1;
                            self.buffer = bytes;
                            continue;
                        }
                    }
                }
            };
            match self.send(now, client, &route, &bytes) {
                Forwarded::Done => self.buffer = bytes,
                Forwarded::Waits(blocked_by) => {
                    if let Some(member) = self.members.get_mut(&client) {
                        member.held = Some(Held { route, bytes, blocked_by });
                    }
                    break;
                }
            }
            moved = true;
        }
        moved
    }

    /// Sends a packet of a process: to a process of the same address, or to the network.
    fn send(&mut self, now: Instant, client: usize, route: &Route, bytes: &[u8]) -> Forwarded {
        if route.source != self.gid {
            self.counters.refused += 1;
            return Forwarded::Done;
        }
        if route.destination == self.gid {
            let arrived = self.arrived(route);
            let forwarded = self.deliver(now, &arrived, bytes);
            self.counters.local += u64::from(matches!(forwarded, Forwarded::Done));
            return forwarded;
        }
        match self.socket.sender.push(route, bytes.len(), |slot| slot.copy_from_slice(bytes)) {
            Ok(()) => self.counters.sent += 1,
            Err(PushError::Full) => return Forwarded::Waits(None),
            Err(_) => {
                self.counters.refused += 1;
                return Forwarded::Done;
            }
        }
        if is_multicast(route.destination) {
            let arrived = self.arrived(route);
            self.copy_to_all(&arrived, bytes, Some(client));
        }
        Forwarded::Done
    }

    /// Returns the route of a response to a packet that a process of this address has sent to another one.
    fn arrived(&self, route: &Route) -> Route {
        let source_port = self.socket.port();
        Route { source: route.destination, destination: route.source, source_port, ..*route }
    }

    /// Forwards packets that the socket has received. Returns true if any packet was forwarded.
    fn receive(&mut self, now: Instant) -> io::Result<bool> {
        let mut moved = false;
        for _ in 0..TURN {
            let (route, bytes) = match self.received.take() {
                Some(held) => (held.route, held.bytes),
                None => {
                    let Some(packet) = self.socket.receiver.receive()? else { break };
                    let mut bytes = std::mem::take(&mut self.buffer);
                    bytes.clear();
                    bytes.extend_from_slice(packet.bytes);
                    (*packet.route, bytes)
                }
            };
            match self.deliver(now, &route, &bytes) {
                Forwarded::Done => {
                    self.counters.received += 1;
                    self.buffer = bytes;
                }
                Forwarded::Waits(blocked_by) => {
                    self.received = Some(Held { route, bytes, blocked_by });
                    break;
                }
            }
            moved = true;
        }
        if let Some(peer) = self.socket.receiver.take_refused()
            && !std::mem::replace(&mut self.has_noted_zero_checksum, true)
        {
            note_zero_checksum(peer);
        }
        Ok(moved)
    }

    /// Puts a packet into the ring of its destination process. `route` is the route of a response to the packet.
    fn deliver(&mut self, now: Instant, route: &Route, bytes: &[u8]) -> Forwarded {
        if bytes.len() > ib_hca::MAX_PACKET {
            self.counters.refused += 1;
            return Forwarded::Done;
        }
        match self.hcas.destination(bytes, is_multicast(route.source)) {
            Destination::One(client) => {
                let is_put = self.server.put(client, Frame::Ethernet { route: *route }, bytes);
                let Some(member) = self.members.get_mut(&client) else { return Forwarded::Done };
                if is_put {
                    member.queue.note_put();
                } else if member.queue.waits(now) {
                    return Forwarded::Waits(Some(client));
                } else {
                    self.counters.overflowed += 1;
                }
            }
            Destination::All => self.copy_to_all(route, bytes, None),
            Destination::None => self.counters.unclaimed += 1,
        }
        Forwarded::Done
    }

    /// Puts a multicast packet into the rings of all processes except its sender. Such packets do not wait.
    fn copy_to_all(&mut self, route: &Route, bytes: &[u8], sender: Option<usize>) {
        for client in self.hcas.clients().filter(|&client| Some(client) != sender) {
            if !self.server.put(client, Frame::Ethernet { route: *route }, bytes) {
                self.counters.overflowed += 1;
            }
        }
    }
}

fn is_multicast(gid: Gid) -> bool {
    address_of(gid).is_multicast()
}
