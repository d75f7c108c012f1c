//! Adapters in other processes, at ports of the fabric.
//!
//! The simulator keeps subnet management and the counters of a port; its adapter has all queue pairs above 0, and
//! serves the classes of management that it has named. A port whose adapter dies goes down, until
//! another one comes for it; one that goes of its own will leaves the port as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use ib_link::{Incoming, LinkPort};
use ib_net::attach::{AttachServer, Frame, Place, PortDetails, SLOTS, Said};
use ib_net::ibsim::server::Refused;
use ib_sim::{Addresses, ClientId, ClientOptions, Packet, Payload, Sim};
use ib_topology::PortId;
use ib_types::{Instant, Mtu, PKey};
use ib_wire::mad::MgmtClass;
use ib_wire::mad::sa::RateCode;
use ib_wire::mad::sm::PortState;

use super::record::Recorder;
use super::residents::Residents;
use crate::failure::{Failure, say};

/// How many packets of an adapter may wait to leave by its port; further ones wait in its ring.
const MOST_WAITING: usize = 32;

/// How many frames of an adapter are taken before it is another one's turn.
const TURN: usize = 64;

/// How many messages of a process are answered before it is another one's turn.
const MOST_MESSAGES: usize = 16;

/// The most classes that one adapter serves.
const MOST_CLASSES: usize = 8;

/// What wakes up so soon is waited for awake: the system's clock is too coarse.
const SOON: Duration = Duration::from_millis(2);

/// A file of an adapter's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum File {
    /// By which it talks.
    Socket,
    /// By which it wakes the simulator.
    Bell,
}

/// Returns the key by which a file is watched.
pub(super) const fn key_of(client: usize, file: File) -> usize {
    1 + 2 * client + matches!(file, File::Bell) as usize
}

/// Returns the file that has a key.
pub(super) const fn file_of(key: usize) -> (usize, File) {
    ((key - 1) / 2, if key.is_multiple_of(2) { File::Bell } else { File::Socket })
}

/// The adapters of a fabric.
pub(super) struct Adapters {
    server: AttachServer,
    adapters: BTreeMap<usize, Adapter>,
    by_port: BTreeMap<PortId, usize>,
    by_client: BTreeMap<ClientId, usize>,
    /// The ports whose adapters have died.
    down: BTreeSet<PortId>,
    /// Whether the last look has moved anything.
    is_busy: bool,
    /// Packets that came from another LID than their port's, and datagrams that found no room.
    forged: u64,
    overflowed: u64,
}

/// An adapter in another process.
struct Adapter {
    port: PortId,
    clients: Vec<ClientId>,
    told: Known,
    /// Whether something that came for it found no room.
    is_full: bool,
}

/// What an adapter has to know of its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    port: LinkPort,
    state: PortState,
    mtu: Mtu,
    rate: RateCode,
    registrations: u32,
    p_keys: [PKey; 32],
}

/// What answers to an adapter take.
pub(super) struct Context<'a> {
    pub(super) sim: &'a mut Sim,
    pub(super) addresses: &'a Addresses,
    /// The record of the run.
    pub(super) recorder: Option<&'a mut Recorder>,
    /// Those who live in the fabric.
    pub(super) residents: Option<&'a mut (dyn Residents + 'static)>,
}

impl Adapters {
    /// Opens the socket of a simulator.
    pub(super) fn bind(base: &str) -> Result<Self, Failure> {
        let server = AttachServer::bind(base).map_err(|error| {
            Failure::Unusable(format!("cannot listen on @{base}:data: {error}"))
        })?;
        Ok(Self {
            server,
            adapters: BTreeMap::new(),
            by_port: BTreeMap::new(),
            by_client: BTreeMap::new(),
            down: BTreeSet::new(),
            is_busy: false,
            forged: 0,
            overflowed: 0,
        })
    }

    /// Takes new processes.
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

    /// Does what a process asks for whose file is ready; returns whether it has a bell now that is to be
    /// watched, and whether it may have more to say.
    pub(super) fn ready(
        &mut self,
        client: usize,
        file: File,
        mut cx: Context<'_>,
    ) -> Result<(bool, bool), Failure> {
        if file == File::Bell {
            self.server.silence(client);
            self.is_busy = true;
            return Ok((false, false));
        }
        let mut admitted = false;
        for _ in 0..MOST_MESSAGES {
            let Some(said) = self.server.next(client) else { return Ok((admitted, false)) };
            match said {
                Said::Hello { node, classes } => {
                    match self.admit(client, (node.as_deref(), &classes), &mut cx)? {
                        Ok(()) => admitted = true,
                        Err(why) => {
                            say!("refused an adapter: {why}");
                            self.server.refuse(client, why);
                        }
                    }
                }
                Said::Resolve { number, name } => {
                    let place = locate(cx.sim, cx.addresses, &name).map(|port| {
                        let (node, number) = cx.sim.place(port);
                        let link = cx.sim.link_port(port);
                        let node = cx.sim.node_name(node).to_owned();
                        Place { node, number, gid: link.gid(), lid: link.lid }
                    });
                    self.server.answer(client, number, place.as_ref());
                }
                Said::Bye | Said::Gone => {
                    let is_dead = said == Said::Gone;
                    self.remove(client, is_dead, &mut cx)?;
                    return Ok((false, false));
                }
            }
        }
        Ok((admitted, true))
    }

    /// Gives a process its port, or says why not.
    fn admit(
        &mut self,
        client: usize,
        (node, classes): (Option<&str>, &[MgmtClass]),
        cx: &mut Context<'_>,
    ) -> Result<Result<(), String>, Failure> {
        let Context { sim, addresses, recorder, residents } = cx;
        let (sim, addresses) = (&mut **sim, *addresses);
        let name = node.unwrap_or_default();
        let Some(port) = locate(sim, addresses, name) else {
            return Ok(Err(format!(
                "there is no port {name:?}: expected NODE, NODE:PORT, an address, a GID or a LID"
            )));
        };
        let name = |sim: &Sim| {
            let (node, number) = sim.place(port);
            format!("port {number} of {}", sim.node_name(node))
        };
        if self.by_port.contains_key(&port) {
            return Ok(Err(format!("{} has an adapter already", name(sim))));
        }
        if classes.len() > MOST_CLASSES {
            let count = classes.len();
            return Ok(Err(format!("{count} classes: expected at most {MOST_CLASSES}")));
        }
        if let Some(residents) = residents
            && let Err(why) = residents.leave(sim, port)
        {
            return Ok(Err(format!("{}: {why}", name(sim))));
        }
        let mut clients = Vec::new();
        // Without a class there is nobody to ask for paths.
        let wanted = if classes.is_empty() {
            vec![None]
        } else {
            classes.iter().map(|&it| Some(it)).collect()
        };
        for class in wanted {
            let options = ClientOptions { class, ..ClientOptions::default() };
            match sim.attach(port, options) {
                Ok(id) => {
                    clients.push(id);
                    record(recorder, sim, |it| it.attach(id, port, options));
                }
                Err(error) => {
                    detach(&clients, sim, recorder);
                    if let Some(residents) = residents {
                        residents.come_back(port);
                    }
                    return Ok(Err(error.to_string()));
                }
            }
        }
        record(recorder, sim, |it| it.port("open", port));
        sim.open_held(port);
        sim.tell_losses(port);
        if self.down.remove(&port) {
            record(recorder, sim, |it| it.port("up", port));
            sim.let_up(port);
        }
        let told = Known::of(sim, port);
        if let Err(error) = self.server.admit(client, &details(sim, addresses, port)) {
            record(recorder, sim, |it| it.port("close", port));
            sim.close(port);
            detach(&clients, sim, recorder);
            if let Some(residents) = residents {
                residents.come_back(port);
            }
            return Ok(Err(format!("the simulator fails: {error}")));
        }
        self.by_port.insert(port, client);
        self.by_client.extend(clients.iter().map(|&id| (id, client)));
        self.adapters.insert(client, Adapter { port, clients, told, is_full: false });
        Ok(Ok(()))
    }

    /// Takes an adapter away. What it has sent before is still sent.
    fn remove(
        &mut self,
        client: usize,
        is_dead: bool,
        cx: &mut Context<'_>,
    ) -> Result<(), Failure> {
        let Context { sim, recorder, residents, .. } = cx;
        let sim = &mut **sim;
        if let Some(adapter) = self.adapters.remove(&client) {
            // No more than its ring can hold: who goes on filling it is not waited for.
            for _ in 0..SLOTS {
                if !self.send_next(client, &adapter, sim, recorder)? {
                    break;
                }
            }
            let Adapter { port, clients, .. } = adapter;
            self.by_port.remove(&port);
            for id in &clients {
                self.by_client.remove(id);
            }
            record(recorder, sim, |it| it.port("close", port));
            sim.close(port);
            detach(&clients, sim, recorder);
            if let Some(residents) = residents {
                // Its host comes back to the port.
                residents.come_back(port);
            } else if is_dead {
                let (node, number) = sim.place(port);
                say!(
                    "the adapter at port {number} of {} has died: the port is down",
                    sim.node_name(node)
                );
                self.down.insert(port);
                record(recorder, sim, |it| it.port("down", port));
                sim.hold_down(port);
            }
        }
        self.server.close(client);
        Ok(())
    }

    /// Sends the next frame of an adapter; returns whether there was one.
    fn send_next(
        &mut self,
        client: usize,
        adapter: &Adapter,
        sim: &mut Sim,
        recorder: &mut Option<&mut Recorder>,
    ) -> Result<bool, Failure> {
        let mut bytes = sim.take_buffer();
        bytes.clear();
        let frame = self.server.take(client, &mut bytes);
        match frame {
            None => {
                sim.give_buffer(bytes);
                return Ok(false);
            }
            // News of losses come from here.
            Some(None | Some(Frame::Lost { .. })) => sim.give_buffer(bytes),
            Some(Some(Frame::Packet { slid, dlid, sl, grh })) => {
                let payload = Payload::Transport(bytes);
                let packet = Packet { slid, dlid, sl, grh, payload };
                if !sim.has_lid(adapter.port, slid) {
                    // Nobody may pretend to be another port.
                    self.forged += 1;
                    return Ok(true);
                }
                record(recorder, sim, |it| it.packet(adapter.port, &packet));
                sim.send_packet(adapter.port, packet);
            }
            Some(Some(frame @ Frame::Datagram { .. })) => {
                let datagram = frame.datagram(&bytes);
                sim.give_buffer(bytes);
                // Subnet management is the simulator's.
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

    /// Moves what can be moved, in both directions; `opened` gets the ports for whose adapters something has come, those of
    /// other processes or not.
    pub(super) fn work(
        &mut self,
        sim: &mut Sim,
        mut recorder: Option<&mut Recorder>,
        addresses: &Addresses,
        now: Instant,
        opened: &mut Vec<PortId>,
    ) -> Result<(), Failure> {
        let mut moved = false;
        let clients: Vec<usize> = self.adapters.keys().copied().collect();
        for &client in &clients {
            let Some(adapter) = self.adapters.remove(&client) else { continue };
            for _ in 0..TURN {
                if sim.waiting(adapter.port) >= MOST_WAITING
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
        // All of these are looked at anyway.
        opened.extend(std::iter::from_fn(|| sim.next_open()));
        for client in clients {
            let Some(adapter) = self.adapters.get_mut(&client) else { continue };
            let known = Known::of(sim, adapter.port);
            if known != adapter.told {
                adapter.told = known;
                self.server.tell(client, &details(sim, addresses, adapter.port));
            }
            let mut taken = 0;
            // They take part in nothing, so no record has them.
            while self.server.has_room(client)
                && let Some(lost) = sim.next_loss(adapter.port)
            {
                let (node, number) = sim.place(lost.place);
                let why = format!("at {}[{number}]: {}", sim.node_name(node), lost.why);
                let Packet { slid, dlid, sl, grh, payload } = lost.packet;
                let news = Frame::news(&why, &payload.to_bytes(), lost.length);
                self.server.put(client, Frame::Lost { slid, dlid, sl, grh }, &news);
                moved = true;
            }
            while self.server.has_room(client) {
                if taken == 0
                    && let Some(recorder) = &mut recorder
                {
                    recorder.mark(sim);
                }
                let Some(packet) = sim.receive_packet(adapter.port) else { break };
                taken += 1;
                let Packet { slid, dlid, sl, grh, payload } = packet;
                if let Payload::Transport(bytes) = payload {
                    self.server.put(client, Frame::Packet { slid, dlid, sl, grh }, &bytes);
                    sim.give_buffer(bytes);
                }
            }
            adapter.is_full = !self.server.has_room(client);
            if taken > 0 {
                moved = true;
                let port = adapter.port;
                if let Some(recorder) = &mut recorder {
                    recorder.taken(port, taken);
                }
            }
            self.server.flush(client);
        }
        self.is_busy = moved;
        Ok(())
    }

    /// Hands an adapter the management datagrams that have come for a client of its own.
    pub(super) fn hand_out(&mut self, sim: &mut Sim, id: ClientId) {
        let Some(&client) = self.by_client.get(&id) else { return };
        while let Some(incoming) = sim.receive(id) {
            let Incoming::Received(datagram) = incoming else { continue };
            if !self.server.put(client, Frame::of(&datagram), &datagram.mad.0) {
                self.overflowed += 1;
            }
        }
        self.server.flush(client);
    }

    /// Says to all adapters that the simulator sleeps; returns how long it may.
    pub(super) fn before_sleep(&mut self, sim: &Sim, limit: Option<Duration>) -> Option<Duration> {
        if self.is_busy {
            return Some(Duration::ZERO);
        }
        if self.adapters.is_empty() {
            return limit;
        }
        let mut sleeps = true;
        for (&client, adapter) in &self.adapters {
            let takes = sim.waiting(adapter.port) < MOST_WAITING;
            sleeps &= self.server.may_sleep(client, takes, adapter.is_full);
        }
        match limit {
            Some(limit) if !sleeps || limit < SOON => Some(Duration::ZERO),
            None if !sleeps => Some(Duration::ZERO),
            limit => limit,
        }
    }

    /// Returns the ports that have adapters.
    pub(super) fn ports(&self) -> impl Iterator<Item = PortId> {
        self.by_port.keys().copied()
    }

    /// Returns what was refused.
    pub(super) const fn refused(&self) -> Refused {
        let malformed = self.server.malformed();
        Refused { malformed, forged: self.forged, overflowed: self.overflowed }
    }
}

impl AsFd for Adapters {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.server.as_fd()
    }
}

impl Known {
    fn of(sim: &Sim, port: PortId) -> Self {
        let info = sim.port_info(port);
        Self {
            port: sim.link_port(port),
            state: info.port_state,
            mtu: Mtu::from_code(info.neighbor_mtu.0).unwrap_or(Mtu::B256),
            rate: info.rate(),
            registrations: sim.registrations(port),
            p_keys: sim.p_keys(port),
        }
    }
}

fn details(sim: &Sim, addresses: &Addresses, port: PortId) -> PortDetails {
    let known = Known::of(sim, port);
    let (node, _) = sim.place(port);
    PortDetails {
        port: known.port,
        is_active: known.state == PortState::ACTIVE && known.port.lid != 0,
        mtu: known.mtu,
        rate: known.rate,
        registrations: known.registrations,
        port_count: sim.node_info(port).num_ports,
        p_keys: known.p_keys.iter().map(|key| key.0).filter(|key| key & 0x7fff != 0).collect(),
        node: sim.node_name(node).to_owned(),
        addresses: addresses.of(port).to_vec(),
    }
}

/// Finds a port by the name of its node, with `:port` behind it or without, by an address, a GID or a LID; the
/// fabric's first host without a name.
fn locate(sim: &Sim, addresses: &Addresses, name: &str) -> Option<PortId> {
    if name.is_empty() {
        return sim.first_end_port();
    }
    if let Some(node) = sim.find_node(name) {
        return sim.end_port(node);
    }
    let end_ports = || {
        let numbers = |node| if sim.is_switch(node) { 0..=0 } else { 1..=u8::MAX };
        let all =
            sim.node_ids().flat_map(move |node| numbers(node).map(move |number| (node, number)));
        all.filter_map(|(node, number)| sim.find_port(node, number))
    };
    if let Ok(address) = name.parse::<IpAddr>() {
        let by_gid = |address| match address {
            IpAddr::V6(address) => {
                let gid = u128::from(address);
                end_ports().find(|&port| sim.link_port(port).gid().0 == gid)
            }
            IpAddr::V4(_) => None,
        };
        return addresses.find(address).or_else(|| by_gid(address));
    }
    if let Some((node, number)) = name.rsplit_once(':')
        && let (Some(node), Ok(number)) = (sim.find_node(node), number.parse())
    {
        let is_end = sim.is_switch(node) == (number == 0);
        return sim.find_port(node, number).filter(|_| is_end);
    }
    let lid = match name.strip_prefix("0x") {
        Some(digits) => u16::from_str_radix(digits, 16),
        None => name.parse(),
    };
    let lid = lid.ok().filter(|&lid| lid != 0)?;
    end_ports().find(|&port| sim.has_lid(port, lid))
}

fn detach(clients: &[ClientId], sim: &mut Sim, recorder: &mut Option<&mut Recorder>) {
    for &id in clients {
        record(recorder, sim, |it| it.detach(id));
        sim.detach(id);
    }
}

/// Records what happens next to a fabric as it is now.
fn record(recorder: &mut Option<&mut Recorder>, sim: &Sim, write: impl FnOnce(&mut Recorder)) {
    if let Some(recorder) = recorder {
        recorder.mark(sim);
        write(recorder);
    }
}
