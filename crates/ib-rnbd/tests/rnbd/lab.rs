//! Test network in virtual time: a server with devices in memory, and clients that have separate links to it.

use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;
use std::time::Duration;

use ib_block::{Discard, Errno, Geometry, Operation, Origin, ReadData};
use ib_hca::MAX_PACKET;
use ib_link::Route;
use ib_rnbd::{
    DeviceId, Export, ReadMode, Remote, RemoteConfig, RemoteEvent, Response, Server as Rnbd,
    ServerCommand,
};
use ib_rtrs::{
    AdapterId, ClientConfig, ClientEvent, PathId, PathState, Server as Rtrs, ServerConfig,
    ServerEvent, ServerRequest, SessionId,
};
use ib_types::Instant;
use ib_wire::rnbd::AccessMode;

use crate::wire::{Link, Node, Nodes, PORT, Rng, back};

/// The size of every device in bytes.
pub(crate) const SIZE: usize = 64 << 10;

/// The names of the devices.
pub(crate) const NAMES: [&str; 3] = ["disk-a", "disk-b", "group/disk-c"];

/// Values for the maximum number of requests in flight of a client. The seed of a lab selects one value for all of its
/// clients. Without path fencing, the first value is used.
const DEPTHS: [usize; 4] = [24, 1, 3, 8];

/// Number of completed commands whose data a client keeps, like a slow program.
const KEPT: usize = 9;

/// A device in memory: its contents including the write cache, and its contents on the medium.
pub(crate) struct Disk {
    pub(crate) cached: Vec<u8>,
    pub(crate) medium: Vec<u8>,
}

/// A client, its HCAs, and its links.
pub(crate) struct Guest {
    pub(crate) remote: Remote,
    pub(crate) nodes: Nodes,
    pub(crate) links: Vec<Link>,
    /// Index of the server's HCA to which the client's first link leads.
    first: usize,
    pub(crate) paths: Vec<PathId>,
    pub(crate) events: Vec<(Instant, RemoteEvent)>,
    /// Completed commands: number, status, and the data if the command is a read.
    pub(crate) done: Vec<(u64, Errno, Vec<u8>)>,
    /// Data of the last [`KEPT`] completed commands, and a copy of it. The data may be in registered memory that
    /// `remote` has lent.
    kept: VecDeque<(ReadData, Vec<u8>)>,
}

impl Guest {
    pub(crate) fn is_open(&self, device: DeviceId) -> bool {
        let opened =
            |event: &RemoteEvent| matches!(event, RemoteEvent::Opened(id, _) if *id == device);
        self.events.iter().any(|(_, event)| opened(event))
    }

    pub(crate) fn is_up(&self, link: usize) -> bool {
        self.remote.rtrs().path_state(self.paths[link]) == Some(PathState::Connected)
    }
}

/// A packet in flight: the destination client (`None` for the server), the destination HCA, the packet, and its route.
type Packet = (Option<usize>, usize, Vec<u8>, Route);

/// Function that returns how long a device takes to execute a command.
pub(crate) type Backend = Box<dyn FnMut(&mut Rng, &ServerCommand) -> Duration>;

pub(crate) struct Lab {
    pub(crate) now: Instant,
    pub(crate) rng: Rng,
    pub(crate) guests: Vec<Guest>,
    pub(crate) server: Rtrs,
    pub(crate) rnbd: Rnbd<SessionId>,
    pub(crate) nodes: Nodes,
    pub(crate) disks: Vec<Disk>,
    wire: BTreeMap<(Instant, u64), Packet>,
    number: u64,
    pub(crate) backend: Backend,
    working: BTreeMap<(Instant, u64), (ServerRequest, ServerCommand)>,
    pub(crate) server_events: Vec<ServerEvent>,
    /// True if devices sometimes execute a write again later, which is an error.
    pub(crate) repeats: bool,
    /// Writes that devices will execute again: time, device, offset and data.
    repeated: Vec<(Instant, usize, usize, Vec<u8>)>,
    /// Status with which the devices complete all commands.
    pub(crate) device_says: Errno,
    /// True if the devices have a write cache.
    pub(crate) caches: bool,
    /// The random number that identifies the server.
    pub(crate) number_of_server: u64,
    /// True if the server behaves like Linux and does not use the protocol extensions of ibfabric.
    pub(crate) is_linux: bool,
    /// Maximum number of requests that a client has in flight.
    depth: usize,
    /// Number of commands that devices have completed, including commands of disconnected paths.
    pub(crate) executed: u64,
    /// Number of commands for devices that are not open.
    pub(crate) unknown: u64,
}

pub(crate) fn geometry() -> Geometry {
    Geometry {
        discard: Some(Discard { granularity: 512, alignment: 0, max: 8192 }),
        write_back: true,
        fua: true,
        ..Geometry::new(SIZE as u64, 512)
    }
}

impl Lab {
    /// Creates a server, and clients that connect to it over `links` links each.
    pub(crate) fn new(
        seed: u64,
        links: usize,
        clients: Vec<ClientConfig>,
        config: ServerConfig,
    ) -> Self {
        let mut rng = Rng::new(seed);
        let depth = if config.fence { DEPTHS[(seed % 4) as usize] } else { DEPTHS[0] };
        let mut lab = Self {
            now: Instant::from_nanos(1_000_000_000),
            guests: Vec::new(),
            server: Rtrs::new(config, rng.seed()),
            rnbd: Rnbd::new(1),
            nodes: Nodes::default(),
            disks: Vec::new(),
            wire: BTreeMap::new(),
            number: 0,
            backend: Box::new(|_, _| Duration::ZERO),
            working: BTreeMap::new(),
            server_events: Vec::new(),
            repeats: false,
            repeated: Vec::new(),
            device_says: Errno::OK,
            caches: true,
            number_of_server: 1,
            is_linux: false,
            depth,
            executed: 0,
            unknown: 0,
            rng,
        };
        lab.offer(1);
        for _ in NAMES {
            lab.disks.push(Disk { cached: vec![0; SIZE], medium: vec![0; SIZE] });
        }
        for (number, config) in clients.into_iter().enumerate() {
            lab.add_guest(number, links, (config, false));
        }
        lab
    }

    /// Restarts the RNBD server. `cache` becomes [`Origin::cache`] of all devices: a changed number shows clients that
    /// unflushed writes may be lost.
    pub(crate) fn offer(&mut self, cache: u32) {
        self.rnbd = Rnbd::new(self.number_of_server);
        for name in NAMES {
            let origin = Origin { medium: 1, cache };
            let geometry = Geometry { write_back: self.caches, ..geometry() };
            let export = Export { name: name.to_owned(), geometry, origin, writers: None };
            self.rnbd.offer(export).expect("the name is valid");
        }
    }

    /// Adds a client. `trusts_cache` is true if the client trusts the write cache of a Linux server.
    pub(crate) fn add_guest(
        &mut self,
        number: usize,
        links: usize,
        (session, trusts_cache): (ClientConfig, bool),
    ) {
        let first = self.nodes.0.len();
        let mut nodes = Nodes::default();
        for link in 0..links {
            let net = (16 * number + link) as u8;
            let guid = 0x100 + u64::from(net);
            nodes.0.push(Node::new(&mut self.rng, Ipv4Addr::new(10, 0, net, 1), guid));
            let far = Node::new(&mut self.rng, Ipv4Addr::new(10, 0, net, 2), 0x1000 + guid);
            self.nodes.0.push(far);
            let id = AdapterId((first + link) as u32);
            self.server.listen(&mut self.nodes, id, PORT).expect("the port is free");
        }
        let reads = if number.is_multiple_of(2) { ReadMode::Lent(2048) } else { ReadMode::Copied };
        let config = RemoteConfig { session, depth: self.depth, reads, trusts_cache };
        let mut remote =
            Remote::new(config, &mut nodes, self.rng.seed()).expect("memory is available");
        let mut paths = Vec::new();
        for link in 0..links {
            let id = AdapterId(link as u32);
            let spec = nodes.0[link].spec_to(&self.nodes.0[first + link], id);
            paths.push(
                remote
                    .session()
                    .add_path(self.now, &mut nodes, spec)
                    .expect("the request is accepted"),
            );
        }
        let (links, events, done) = (vec![Link::GOOD; links], Vec::new(), Vec::new());
        let kept = VecDeque::new();
        self.guests.push(Guest { remote, nodes, links, first, paths, events, done, kept });
    }

    /// Opens a device, and waits until it is open.
    pub(crate) fn open(&mut self, guest: usize, name: &str, mode: AccessMode) -> DeviceId {
        let device = self.guests[guest].remote.open(name, mode).expect("the name is valid");
        self.run_until(Duration::from_secs(60), |lab| lab.guests[guest].is_open(device));
        device
    }

    pub(crate) fn link_down(&mut self, guest: usize, link: usize) {
        self.guests[guest].nodes.0[link].hca.set_port_active(false);
    }

    pub(crate) fn link_up(&mut self, guest: usize, link: usize) {
        self.guests[guest].nodes.0[link].hca.set_port_active(true);
    }

    /// Returns the number of events of a client that equal the wanted event.
    pub(crate) fn count(&self, guest: usize, wanted: &ClientEvent) -> usize {
        let is_wanted =
            |event: &RemoteEvent| matches!(event, RemoteEvent::Session(it) if it == wanted);
        self.guests[guest].events.iter().filter(|(_, event)| is_wanted(event)).count()
    }

    /// Runs until a condition is true; panics after a time limit.
    pub(crate) fn run_until(&mut self, limit: Duration, mut is_done: impl FnMut(&Self) -> bool) {
        let end = self.now + limit;
        while !is_done(self) {
            assert!(
                self.step(end),
                "the condition is false after {limit:?}: {:?}",
                self.guests[0].events
            );
        }
    }

    /// Runs for a period of virtual time.
    pub(crate) fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        while self.step(end) {}
    }

    /// Processes all events of the current time, and advances the time to the next event. Returns false if `end` is
    /// reached.
    pub(crate) fn step(&mut self, end: Instant) -> bool {
        self.settle();
        let guests = self.guests.iter().flat_map(|guest| {
            guest.nodes.0.iter().flat_map(Node::due).chain([guest.remote.poll_timeout()])
        });
        let server = self.nodes.0.iter().flat_map(Node::due).chain([self.server.poll_timeout()]);
        let arrival = self.wire.first_key_value().map(|((at, _), _)| *at);
        let worked = self.working.first_key_value().map(|((at, _), _)| *at);
        let next = guests.chain(server).chain([arrival, worked]).flatten().min();
        match next.filter(|&next| next < end) {
            Some(next) => self.now = self.now.max(next),
            None => {
                self.now = end;
                return false;
            }
        }
        let now = self.now;
        for guest in &mut self.guests {
            guest.nodes.0.iter_mut().for_each(|node| node.handle_timeout(now));
            guest.remote.handle_timeout(now, &mut guest.nodes);
        }
        self.nodes.0.iter_mut().for_each(|node| node.handle_timeout(now));
        self.server.handle_timeout(now, &mut self.nodes);
        while let Some(entry) = self.wire.first_entry()
            && entry.key().0 <= now
        {
            let (guest, adapter, bytes, route) = entry.remove();
            let nodes = match guest {
                Some(guest) => &mut self.guests[guest].nodes,
                None => &mut self.nodes,
            };
            nodes.0[adapter].hca.handle(now, &route, &bytes);
        }
        self.work();
        self.settle();
        true
    }

    /// Processes all events and packets of the current time.
    fn settle(&mut self) {
        let now = self.now;
        let mut goes_on = true;
        while std::mem::take(&mut goes_on) {
            for guest in &mut self.guests {
                goes_on |= guest.advance(now);
            }
            goes_on |= self.collect_server();
            goes_on |= self.transmit();
            while let Some(request) = self.server.poll_request() {
                goes_on = true;
                self.take(&request);
            }
            goes_on |= self.work();
        }
    }

    fn collect_server(&mut self) -> bool {
        let mut moved = false;
        for at in 0..self.nodes.0.len() {
            let id = AdapterId(at as u32);
            while let Some(event) = self.nodes.0[at].poll_hca(self.now) {
                moved = true;
                self.server.handle_hca(self.now, &mut self.nodes, 0, id, &event);
            }
            while let Some(event) = self.nodes.0[at].cm.poll_event() {
                moved = true;
                self.server.handle_cm(self.now, &mut self.nodes, id, event);
            }
            let node = &mut self.nodes.0[at];
            while let Some((route, mad)) = node.cm.poll_transmit() {
                moved = true;
                node.hca.send_mad(route, mad);
            }
        }
        while let Some(event) = self.server.poll_event() {
            if let ServerEvent::SessionDown { session } = event {
                self.rnbd.end(session);
            }
            self.server_events.push(event);
        }
        moved
    }

    fn transmit(&mut self) -> bool {
        let mut buffer = vec![0; MAX_PACKET];
        let mut moved = false;
        let Self { now, rng, guests, nodes, wire, number, .. } = self;
        for (index, guest) in guests.iter_mut().enumerate() {
            for (at, link) in guest.links.iter_mut().enumerate() {
                let far = guest.first + at;
                let near = &mut guest.nodes.0[at].hca;
                for (from, hca, to) in
                    [(0, near, (None, far)), (1, &mut nodes.0[far].hca, (Some(index), at))]
                {
                    while let Some(sent) = hca.poll_transmit(*now, &mut buffer) {
                        moved = true;
                        for arrives in link.carry(rng, *now, (from, sent.length)) {
                            *number += 1;
                            let bytes = buffer[..sent.length].to_vec();
                            let packet = (to.0, to.1, bytes, back(sent.route));
                            wire.insert((arrives, *number), packet);
                        }
                    }
                }
            }
        }
        moved
    }

    /// Passes a request to the RNBD server. Then completes the request, or starts its command on the device.
    fn take(&mut self, request: &ServerRequest) {
        let memory =
            self.server.memory(request.session).expect("the session of a request has memory");
        let header = memory.to_vec(request.header_offset, request.header_length as usize);
        let header = header.expect("the range is within the memory");
        let data = (request.direction, request.data_length);
        match self.rnbd.handle(request.session, data, &header) {
            Response::Immediate(errno, mut bytes) => {
                self.unknown += u64::from(errno == Errno::ENOTCONN);
                if self.is_linux && bytes.len() == 36 {
                    // The session response of a Linux server has no fields after the version.
                    bytes[5..].fill(0);
                }
                memory.write(request.data_offset, &bytes).expect("the range is within the memory");
                let length = bytes.len() as u32;
                self.server.complete(self.now, &mut self.nodes, request.id, errno, length);
            }
            Response::Execute(command) => {
                let takes = (self.backend)(&mut self.rng, &command);
                self.number += 1;
                self.working.insert((self.now + takes, self.number), (*request, command));
            }
        }
    }

    /// Completes the commands whose execution time has passed. Returns true if there were any.
    fn work(&mut self) -> bool {
        let mut moved = false;
        let now = self.now;
        for (_, disk, at, bytes) in self.repeated.extract_if(.., |(due, ..)| *due <= now) {
            self.disks[disk].cached[at..at + bytes.len()].copy_from_slice(&bytes);
        }
        while let Some(entry) = self.working.first_entry()
            && entry.key().0 <= self.now
        {
            moved = true;
            let (request, command) = entry.remove();
            let produced = self.execute(&request, &command);
            self.executed += 1;
            self.rnbd.done(&command);
            let errno = self.device_says;
            self.server.complete(self.now, &mut self.nodes, request.id, errno, produced);
        }
        moved
    }

    fn execute(&mut self, request: &ServerRequest, command: &ServerCommand) -> u32 {
        let memory =
            self.server.memory(request.session).expect("the session of a request has memory");
        let Disk { cached, medium } = &mut self.disks[command.export.0 as usize];
        let it = command.command;
        let range = it.offset as usize..(it.offset + it.length) as usize;
        match it.operation {
            Operation::Read => {
                memory
                    .write(request.data_offset, &cached[range])
                    .expect("the range is within the memory");
                return it.length as u32;
            }
            Operation::Write => {
                let bytes = memory.to_vec(request.data_offset, it.length as usize);
                let bytes = bytes.expect("the range is within the memory");
                cached[range.clone()].copy_from_slice(&bytes);
                if self.repeats && self.rng.chance(0.1) {
                    let later = self.now + Duration::from_millis(self.rng.below(100));
                    self.repeated.push((later, command.export.0 as usize, range.start, bytes));
                }
            }
            Operation::Flush => medium.copy_from_slice(cached),
            _ => cached[range.clone()].fill(0),
        }
        if it.fua {
            medium[range.clone()].copy_from_slice(&cached[range]);
        }
        0
    }
}

impl Guest {
    /// Handles all events of the client and its HCAs. Returns true if there were any.
    fn advance(&mut self, now: Instant) -> bool {
        let Self { remote, nodes, .. } = self;
        let mut moved = false;
        for at in 0..nodes.0.len() {
            let id = AdapterId(at as u32);
            while let Some(event) = nodes.0[at].poll_hca(now) {
                moved = true;
                remote.session().handle_hca(now, nodes, 0, id, &event);
            }
            while let Some(event) = nodes.0[at].cm.poll_event() {
                moved = true;
                remote.session().handle_cm(now, nodes, id, event);
            }
            while let Some((route, mad)) = nodes.0[at].cm.poll_transmit() {
                moved = true;
                nodes.0[at].hca.send_mad(route, mad);
            }
        }
        moved |= remote.advance(now, nodes, 0).expect("memory is available");
        while let Some(event) = remote.poll_event() {
            self.events.push((now, event));
        }
        while let Some((user, errno)) = remote.poll() {
            let data = remote.take_data();
            let bytes = data.copied().into_owned();
            self.done.push((user, errno, bytes.clone()));
            // Data that `remote` has lent must not change before it is given back.
            self.kept.push_back((data, bytes));
            if self.kept.len() > KEPT {
                let (data, bytes) = self.kept.pop_front().expect("`kept` is not empty");
                assert!(data.copied() == bytes, "lent data has changed");
                remote.give_back(data);
            }
        }
        moved
    }
}
