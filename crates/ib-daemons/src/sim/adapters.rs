//! HCAs of other processes that are attached to ports of the fabric.
//!
//! The simulator provides the SMA and the counters of each port. The attached HCA has all QPs except QP0, and receives
//! MADs of the management classes that it has registered. If the HCA's process is killed, the port is Down until
//! another HCA attaches. If the process itself detaches the HCA, the port state is unchanged.
//!
//! Several HCAs can share a port if they serve different management classes. Each HCA has a block of QP numbers. The
//! [`Demultiplexer`] of the port selects the HCA that gets a packet.
//!
//! An HCA has connections if it serves the CM class or no class. While the ring to such an HCA is full, packets for it
//! wait at the port. If the ring to an HCA without connections is full, such as that of an ACM service, packets for it
//! are dropped. So an HCA without connections never blocks the connections of other HCAs at the port.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use ib_attach::{
    AttachServer, ClientEvent, Demultiplexer, Destination, Frame, ResolvedPort, SLOTS,
};
use ib_ibsim::server::Refused;
use ib_link::Incoming;
use ib_os::clock;
use ib_sim::{Addresses, ClientId, Packet, Payload, Sim};
use ib_topology::PortId;
use ib_types::Instant;
use ib_wire::mad::MgmtClass;

use super::record::Recorder;
use crate::error::DaemonError;
use crate::message::note;

mod admission;
mod ports;

pub(crate) use admission::PortClaim;
use admission::{Admission, EmbeddedPorts};
use ports::{PortAttributes, details, locate};

/// If this many packets wait in the output queue of a port, further packets of its HCA stay in the ring of the HCA.
const MOST_WAITING: usize = 32;

/// Number of packets by which the limit for an HCA without connections exceeds `MOST_WAITING`. So the waiting packets
/// of HCAs with connections at the same port do not block this HCA.
const MORE_WAITING: usize = 8;

/// Maximum number of frames that are taken from one HCA in one round of the event loop.
const TURN: usize = 64;

/// Maximum number of messages of one process that are handled in one round of the event loop.
const MOST_MESSAGES: usize = 16;

/// If the next event is due sooner than this, the simulator polls instead of sleeping, because the system's timers are
/// too coarse.
const SOON: Duration = Duration::from_millis(2);

/// One of the file descriptors over which a process with an HCA communicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum File {
    /// The socket over which the process sends and receives messages.
    Socket,
    /// The event descriptor with which the process wakes the simulator.
    Bell,
}

/// Returns the poll key of a file descriptor.
pub(super) const fn key_of(client: usize, file: File) -> usize {
    1 + 2 * client + matches!(file, File::Bell) as usize
}

/// Returns the process and the kind of the file descriptor that a poll key stands for.
pub(super) const fn file_of(key: usize) -> (usize, File) {
    ((key - 1) / 2, if key.is_multiple_of(2) { File::Bell } else { File::Socket })
}

/// The HCAs of other processes.
pub(super) struct Adapters {
    server: AttachServer,
    adapters: BTreeMap<usize, Adapter>,
    /// The HCAs of each port to which an HCA has ever been attached.
    by_port: BTreeMap<PortId, Demultiplexer>,
    by_client: BTreeMap<ClientId, usize>,
    /// HCAs that wait for a port of an embedded host, and ports that embedded hosts may use again; `None` if there are
    /// no embedded hosts.
    embedded: Option<EmbeddedPorts>,
    /// Ports that are down because the process of their HCA was killed.
    down: BTreeSet<PortId>,
    /// True if frames were moved in the last round of the event loop, or if a process has woken the simulator since
    /// then.
    is_busy: bool,
    /// Number of packets of HCAs that were dropped because the SLID was not a LID of the HCA's port.
    forged: u64,
    /// Number of frames that were dropped because a ring was full.
    overflowed: u64,
}

/// An HCA in another process.
struct Adapter {
    port: PortId,
    /// Management classes that the HCA serves.
    classes: Vec<MgmtClass>,
    /// Clients of the simulator that belong to the HCA, one per class.
    clients: Vec<ClientId>,
    /// Number of the block of QP numbers that the HCA uses.
    block: u8,
    /// Port attributes that were last reported to the HCA.
    reported: PortAttributes,
    /// True if the ring to the HCA had no free slot at the end of the last round of the event loop.
    is_full: bool,
}

/// The parts of the simulator that requests of an HCA read and change.
pub(super) struct Context<'a> {
    pub(super) sim: &'a mut Sim,
    pub(super) addresses: &'a Addresses,
    /// Record of the run; `None` if the run is not recorded.
    pub(super) recorder: Option<&'a mut Recorder>,
}

impl Adapters {
    /// Opens the sockets to which other processes attach their HCAs.
    pub(super) fn bind(base: &str) -> Result<Self, DaemonError> {
        let server = AttachServer::bind(base).map_err(|error| {
            DaemonError::Failed(format!("cannot listen on @{base}:data: {error}"))
        })?;
        Ok(Self {
            server,
            adapters: BTreeMap::new(),
            by_port: BTreeMap::new(),
            by_client: BTreeMap::new(),
            embedded: None,
            down: BTreeSet::new(),
            is_busy: false,
            forged: 0,
            overflowed: 0,
        })
    }

    /// Accepts connections of new processes; returns the number that identifies each of these processes.
    pub(super) fn accept(&mut self) -> Vec<usize> {
        self.server.accept()
    }

    pub(super) fn file(&self, client: usize, file: File) -> Option<BorrowedFd<'_>> {
        match file {
            File::Socket => self.server.socket(client),
            File::Bell => self.server.bell(client),
        }
    }

    pub(super) fn refuse(&mut self, client: usize, why: &str) {
        self.server.refuse(client, why.to_owned());
    }

    /// Handles input on a file descriptor of a process. The first result is true if the process was admitted, so that
    /// its event descriptor has to be watched. The second result is true if more input may be pending.
    pub(super) fn ready(
        &mut self,
        client: usize,
        file: File,
        mut cx: Context<'_>,
    ) -> Result<(bool, bool), DaemonError> {
        if file == File::Bell {
            self.server.silence(client);
            self.is_busy = true;
            return Ok((false, false));
        }
        // While the process waits for a port of an embedded host, its further messages are left unread.
        if self.has_claim(client) {
            return Ok((false, false));
        }
        let mut admitted = false;
        for _ in 0..MOST_MESSAGES {
            let Some(message) = self.server.next(client) else { return Ok((admitted, false)) };
            match message {
                ClientEvent::Hello { node, classes } => {
                    match self.admit(client, node.as_deref(), &classes, &mut cx)? {
                        Admission::Admitted => admitted = true,
                        Admission::Refused(reason) => self.refuse_hello(client, reason),
                        // The process's further messages are left unread until this request is granted or refused.
                        Admission::Claimed => return Ok((false, false)),
                    }
                }
                ClientEvent::Resolve { number, name } => {
                    let place = locate(cx.sim, cx.addresses, &name).map(|port| {
                        let (node, number) = cx.sim.place(port);
                        let link = cx.sim.link_port(port);
                        let node = cx.sim.node_name(node).to_owned();
                        ResolvedPort { node, number, gid: link.gid(), lid: link.lid }
                    });
                    self.server.answer(client, number, place.as_ref());
                }
                ClientEvent::Serve { number, class } => {
                    let refusal = self.add_class(client, class, &mut cx).err();
                    self.server.answer_class(client, number, refusal);
                }
                ClientEvent::Bye | ClientEvent::Disconnected => {
                    let is_dead = message == ClientEvent::Disconnected;
                    self.remove(client, is_dead, &mut cx)?;
                    return Ok((false, false));
                }
            }
        }
        Ok((admitted, true))
    }

    /// Sends the frames that an HCA has queued, and then removes the HCA.
    fn remove(
        &mut self,
        client: usize,
        is_dead: bool,
        cx: &mut Context<'_>,
    ) -> Result<(), DaemonError> {
        let Context { sim, recorder, .. } = cx;
        let sim = &mut **sim;
        if let Some(adapter) = self.adapters.remove(&client) {
            // Sends at most as many frames as the ring holds: an HCA that keeps filling its ring must not make this
            // loop endless.
            for _ in 0..SLOTS {
                if !self.send_next(client, &adapter, sim, recorder)? {
                    break;
                }
            }
            let Adapter { port, clients, .. } = adapter;
            for id in &clients {
                self.by_client.remove(id);
            }
            let others = self.by_port.get_mut(&port).expect("the HCA is attached to the port");
            others.remove(clock::now(), client, is_dead);
            if !others.is_empty() {
                detach(&clients, sim, recorder);
                self.server.close(client);
                return Ok(());
            }
            record(recorder, sim, |it| it.port("close", port));
            sim.close(port);
            detach(&clients, sim, recorder);
            if self.embedded.is_some() {
                self.release(port);
            } else if is_dead {
                let (node, number) = sim.place(port);
                note!(
                    "the process of the HCA at port {number} of {} was killed: the port is down",
                    sim.node_name(node)
                );
                self.down.insert(port);
                record(recorder, sim, |it| it.port("down", port));
                sim.hold_down(port);
            }
        }
        if let Some(embedded) = &mut self.embedded {
            embedded.claims.retain(|claim| claim.client != client);
        }
        self.server.close(client);
        Ok(())
    }

    /// Sends the next frame of an HCA; returns true if there was one.
    fn send_next(
        &mut self,
        client: usize,
        adapter: &Adapter,
        sim: &mut Sim,
        recorder: &mut Option<&mut Recorder>,
    ) -> Result<bool, DaemonError> {
        let mut bytes = sim.take_buffer();
        bytes.clear();
        let frame = self.server.take(client, &mut bytes);
        match frame {
            None => {
                sim.give_buffer(bytes);
                return Ok(false);
            }
            // Malformed frames are dropped, and so are packets over Ethernet, and loss notifications, which only the
            // simulator may send.
            Some(None | Some(Frame::Lost { .. } | Frame::Ethernet { .. })) => {
                sim.give_buffer(bytes);
            }
            Some(Some(Frame::Packet { slid, dlid, sl, grh })) => {
                let payload = Payload::Transport(bytes);
                let packet = Packet { slid, dlid, sl, grh, payload };
                if !sim.has_lid(adapter.port, slid) {
                    // The SLID is not a LID of the port, so the packet is dropped.
                    self.forged += 1;
                    return Ok(true);
                }
                record(recorder, sim, |it| it.packet(adapter.port, &packet));
                sim.send_packet(adapter.port, packet);
            }
            Some(Some(frame @ Frame::Datagram { .. })) => {
                let datagram = frame.datagram(&bytes);
                sim.give_buffer(bytes);
                // MADs from or to QP0 are dropped, since QP0 belongs to the simulator's SMA.
                let datagram =
                    datagram.filter(|it| it.remote.qpn.get() != 0 && it.local_qpn.get() != 0);
                if let (Some(datagram), Some(&id)) = (datagram, adapter.clients.first()) {
                    record(recorder, sim, |it| it.submit(id, &datagram));
                    sim.submit(id, &datagram);
                }
            }
        }
        Ok(true)
    }

    /// Moves frames between HCAs and the fabric in both directions. Adds the ports with new events (see
    /// `Sim::next_open`) to `opened`, including ports of embedded hosts.
    pub(super) fn work(
        &mut self,
        sim: &mut Sim,
        mut recorder: Option<&mut Recorder>,
        addresses: &Addresses,
        now: Instant,
        opened: &mut Vec<PortId>,
    ) -> Result<(), DaemonError> {
        let mut moved = false;
        let clients: Vec<usize> = self.adapters.keys().copied().collect();
        for &client in &clients {
            let Some(adapter) = self.adapters.remove(&client) else { continue };
            for _ in 0..TURN {
                if sim.waiting(adapter.port) >= adapter.most_waiting()
                    || !self.send_next(client, &adapter, sim, &mut recorder)?
                {
                    break;
                }
                moved = true;
            }
            self.adapters.insert(client, adapter);
        }
        if moved {
            sim.keep_up(now);
        }
        // The caller passes the events of these ports to embedded hosts. HCAs of other processes do not need the
        // events: `hand_packets` is called for each of their ports.
        opened.extend(std::iter::from_fn(|| sim.next_open()));
        for &client in &clients {
            let Some(adapter) = self.adapters.get_mut(&client) else { continue };
            let attributes = PortAttributes::of(sim, adapter.port);
            if attributes != adapter.reported {
                adapter.reported = attributes;
                let details = details(sim, addresses, (adapter.port, adapter.block));
                self.server.notify_port(client, &details);
            }
        }
        let used = self.by_port.iter().filter(|(_, hcas)| !hcas.is_empty());
        let ports: Vec<PortId> = used.map(|(&port, _)| port).collect();
        for port in ports {
            moved |= self.hand_packets(sim, &mut recorder, port)?;
        }
        for client in clients {
            if let Some(adapter) = self.adapters.get_mut(&client) {
                adapter.is_full = !self.server.has_room(client);
            }
            self.server.flush(client);
        }
        self.is_busy = moved;
        Ok(())
    }

    /// Passes received packets and loss notifications to the HCAs at a port; returns true if there were any.
    fn hand_packets(
        &mut self,
        sim: &mut Sim,
        recorder: &mut Option<&mut Recorder>,
        port: PortId,
    ) -> Result<bool, DaemonError> {
        let Self { server, adapters, by_port, overflowed, .. } = self;
        let here = &by_port[&port];
        let Some(first) = here.clients().next() else { return Ok(false) };
        let mut moved = false;
        // Loss notifications do not change the fabric, so they are not recorded. All HCAs at the port receive them,
        // because only an HCA knows whether it has sent the packet.
        while server.has_room(first)
            && let Some(lost) = sim.next_loss(port)
        {
            let (node, number) = sim.place(lost.port);
            let why = format!("at {}[{number}]: {}", sim.node_name(node), lost.why);
            let Packet { slid, dlid, sl, grh, payload } = lost.packet;
            let news = Frame::loss_report(&why, &payload.to_bytes(), lost.length);
            for client in here.clients() {
                server.put(client, Frame::Lost { slid, dlid, sl, grh }, &news);
            }
            moved = true;
        }
        let mut taken = 0;
        while let Some(packet) = sim.peek_packet(port) {
            let waits =
                |client: usize| adapters[&client].has_connections() && !server.has_room(client);
            let destination = destination(here, packet);
            let is_waiting = match destination {
                Destination::One(client) => waits(client),
                Destination::All => here.clients().any(waits),
                Destination::None => false,
            };
            if is_waiting {
                break;
            }
            if taken == 0
                && let Some(recorder) = recorder
            {
                recorder.mark(sim);
            }
            let Some(packet) = sim.receive_packet(port) else { break };
            taken += 1;
            let Packet { slid, dlid, sl, grh, payload } = packet;
            if let Payload::Transport(bytes) = payload {
                let mut put = |client| {
                    let frame = Frame::Packet { slid, dlid, sl, grh };
                    *overflowed += u64::from(!server.put(client, frame, &bytes));
                };
                match destination {
                    Destination::One(client) => put(client),
                    Destination::All => here.clients().for_each(put),
                    // The first HCA at the port drops the packet, and counts it.
                    Destination::None => put(first),
                }
                sim.give_buffer(bytes);
            }
        }
        if taken > 0 {
            moved = true;
            if let Some(recorder) = recorder {
                recorder.record_taken(port, taken);
            }
        }
        Ok(moved)
    }

    /// Passes the MADs that the simulator client `id` has received to the HCA to which this client belongs.
    pub(super) fn hand_out(&mut self, sim: &mut Sim, id: ClientId) {
        let Some(&client) = self.by_client.get(&id) else { return };
        while let Some(incoming) = sim.receive(id) {
            let Incoming::Received(datagram) = incoming else { continue };
            if !self.server.put(client, Frame::from_datagram(&datagram), &datagram.mad.0) {
                self.overflowed += 1;
            }
        }
        self.server.flush(client);
    }

    /// Announces to all HCAs that the simulator is about to sleep; returns how long it may sleep.
    pub(super) fn before_sleep(&mut self, sim: &Sim, limit: Option<Duration>) -> Option<Duration> {
        if self.is_busy {
            return Some(Duration::ZERO);
        }
        if self.adapters.is_empty() {
            return limit;
        }
        let mut sleeps = true;
        for (&client, adapter) in &self.adapters {
            let takes = sim.waiting(adapter.port) < adapter.most_waiting();
            sleeps &= self.server.may_sleep(client, takes, adapter.is_full);
        }
        match limit {
            Some(limit) if !sleeps || limit < SOON => Some(Duration::ZERO),
            None if !sleeps => Some(Duration::ZERO),
            limit => limit,
        }
    }

    /// Returns the port to which each HCA is attached.
    pub(super) fn ports(&self) -> impl Iterator<Item = PortId> {
        self.adapters.values().map(|adapter| adapter.port)
    }

    /// Returns how many frames were dropped, for each reason.
    pub(super) const fn refused(&self) -> Refused {
        let malformed = self.server.malformed();
        Refused { malformed, forged: self.forged, overflowed: self.overflowed }
    }
}

impl Adapter {
    /// Returns true if the HCA has connections: it serves the CM class, or no class, as the HCA of a verbs program
    /// does.
    fn has_connections(&self) -> bool {
        self.classes.is_empty() || self.classes.contains(&MgmtClass::COMMUNICATION)
    }

    /// Returns how many packets may wait in the output queue of the port. While that many wait, the HCA's ring is not
    /// read.
    fn most_waiting(&self) -> usize {
        MOST_WAITING + if self.has_connections() { 0 } else { MORE_WAITING }
    }
}

/// Returns the HCAs that get a packet.
fn destination(hcas: &Demultiplexer, packet: &Packet) -> Destination {
    match &packet.payload {
        Payload::Transport(bytes) => hcas.destination(bytes, packet.is_multicast()),
        _ => Destination::None,
    }
}

impl AsFd for Adapters {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.server.as_fd()
    }
}

fn detach(clients: &[ClientId], sim: &mut Sim, recorder: &mut Option<&mut Recorder>) {
    for &id in clients {
        record(recorder, sim, |it| it.detach(id));
        sim.detach(id);
    }
}

/// Writes an input to the record, with the present time of the fabric.
fn record(recorder: &mut Option<&mut Recorder>, sim: &Sim, write: impl FnOnce(&mut Recorder)) {
    if let Some(recorder) = recorder {
        recorder.mark(sim);
        write(recorder);
    }
}
