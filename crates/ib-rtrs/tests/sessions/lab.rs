//! A client and a server in virtual time. Each link between them connects one HCA of the client with one of the server.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use ib_cm::CmEvent;
use ib_hca::{MAX_PACKET, Memory};
use ib_link::Route;
use ib_rtrs::{
    AdapterId, BufferId, Client, ClientConfig, ClientEvent, Completion, Direction, Errno, PathId,
    PathSpec, Request, RequestError, RequestId, Segment, Server, ServerConfig, ServerEvent,
    ServerRequest, StoreId,
};
use ib_types::Instant;

use crate::wire::back;
pub(crate) use crate::wire::{Link, Node, Nodes, PORT, Rng};

/// A packet on the wire: index of the receiving side, index of the link, bytes, and route.
pub(crate) type Packet = (usize, usize, Vec<u8>, Route);

/// Function that observes or changes a sent packet. Its arguments are the index of the sending side (0: client, 1:
/// server), the index of the link, and the bytes. It returns false to drop the packet.
pub(crate) type Tap = Box<dyn FnMut(usize, usize, &mut Vec<u8>) -> bool>;

/// Function that returns how long the server's user takes for a request.
pub(crate) type Backend = Box<dyn FnMut(&mut Rng, &ServerRequest) -> Duration>;

pub(crate) struct Lab {
    pub(crate) now: Instant,
    pub(crate) rng: Rng,
    pub(crate) client: Client,
    pub(crate) server: Server,
    /// The HCAs of the client and of the server.
    pub(crate) sides: [Nodes; 2],
    pub(crate) links: Vec<Link>,
    wire: BTreeMap<(Instant, u64), Packet>,
    number: u64,
    /// Determines how long the server's user takes for a request.
    pub(crate) backend: Backend,
    /// Requests that the server's user is executing, by completion time.
    working: BTreeMap<(Instant, u64), ServerRequest>,
    pub(crate) disk: Arc<Memory>,
    pub(crate) memory: Arc<Memory>,
    pub(crate) buffer: BufferId,
    pub(crate) events: Vec<(Instant, ClientEvent)>,
    pub(crate) server_events: Vec<(Instant, ServerEvent)>,
    pub(crate) done: Vec<Completion>,
    pub(crate) paths: Vec<PathId>,
    /// Called for every packet before it is sent.
    pub(crate) tap: Tap,
    /// Number of requests that the server's user has started.
    pub(crate) served: u64,
    /// True if the server's user does not start requests.
    pub(crate) holds: bool,
    /// True to simulate a defect: the server's user sometimes executes a write a second time, later.
    pub(crate) repeats: bool,
    repeated: Vec<(Instant, usize, Vec<u8>)>,
    /// ID of the store, the memory from which the server sends READ data; `None` if READ data is copied into the
    /// session's memory.
    store: Option<StoreId>,
}

/// Returns a server configuration with few and small chunks.
pub(crate) fn small_server() -> ServerConfig {
    ServerConfig {
        queue_depth: 16,
        max_io_size: 16_384 - 512,
        max_header_size: 512,
        ..ServerConfig::default()
    }
}

/// Returns a client configuration with a short reconnect delay.
pub(crate) fn quick_client() -> ClientConfig {
    ClientConfig {
        processors: 2,
        connections: 3,
        reconnect_delay: Duration::from_secs(2),
        ..ClientConfig::new("a-client")
    }
}

pub(crate) const DISK: usize = 1 << 20;
pub(crate) const MEMORY: usize = 1 << 20;

impl Lab {
    pub(crate) fn new(seed: u64, links: usize, client: ClientConfig, server: ServerConfig) -> Self {
        let mut rng = Rng::new(seed);
        let mut sides = [Nodes::default(), Nodes::default()];
        for link in 0..links as u8 {
            for side in [0, 1] {
                let address = Ipv4Addr::new(10, 0, link, side + 1);
                let guid = 0x100 * u64::from(side + 1) + u64::from(link);
                sides[usize::from(side)].0.push(Node::new(&mut rng, address, guid));
            }
        }
        let mut server = Server::new(server, rng.seed());
        for link in 0..links as u32 {
            server.listen(&mut sides[1], AdapterId(link), PORT).expect("the port is free");
        }
        let mut client = Client::new(client, rng.seed());
        let memory = Memory::zeroed(MEMORY).expect("memory is available");
        let buffer =
            client.register(&mut sides[0], Arc::clone(&memory)).expect("the HCA has free regions");
        Self {
            now: Instant::from_nanos(1_000_000_000),
            rng,
            client,
            server,
            sides,
            links: vec![Link::GOOD; links],
            wire: BTreeMap::new(),
            number: 0,
            backend: Box::new(|_, _| Duration::ZERO),
            working: BTreeMap::new(),
            disk: Memory::zeroed(DISK).expect("memory is available"),
            memory,
            buffer,
            events: Vec::new(),
            server_events: Vec::new(),
            done: Vec::new(),
            paths: Vec::new(),
            tap: Box::new(|_, _, _| true),
            served: 0,
            holds: false,
            repeats: false,
            repeated: Vec::new(),
            store: None,
        }
    }

    /// Creates a lab whose paths are connected.
    pub(crate) fn connected(
        seed: u64,
        links: usize,
        client: ClientConfig,
        server: ServerConfig,
    ) -> Self {
        let mut lab = Self::new(seed, links, client, server);
        for link in 0..links {
            lab.add_path(link);
        }
        lab.run_until(Duration::from_secs(20), |lab| lab.has(&ClientEvent::Up));
        lab
    }

    /// Returns the specification of the path over the given link.
    pub(crate) fn spec(&self, link: usize) -> PathSpec {
        let [near, far] = [&self.sides[0].0[link], &self.sides[1].0[link]];
        near.spec_to(far, AdapterId(link as u32))
    }

    pub(crate) fn add_path(&mut self, link: usize) -> PathId {
        let spec = self.spec(link);
        let id = self
            .client
            .add_path(self.now, &mut self.sides[0], spec)
            .expect("the session accepts the path");
        self.paths.push(id);
        id
    }

    pub(crate) fn has(&self, event: &ClientEvent) -> bool {
        self.events.iter().any(|(_, it)| it == event)
    }

    /// Submits a request with the given header and segment of the client's memory.
    pub(crate) fn ask(
        &mut self,
        direction: Direction,
        header: &[u8],
        (offset, length): (usize, u32),
        user: u64,
    ) -> Result<RequestId, RequestError> {
        let data = [Segment { buffer: self.buffer, offset, length }];
        let cpu = (user % 2) as u32;
        let request = Request { cpu, direction, header, data: &data, user, is_admin: false };
        self.client.request(self.now, &mut self.sides[0], &request)
    }

    /// Submits a read or write of the disk. The header contains the offset on the disk.
    pub(crate) fn io(
        &mut self,
        direction: Direction,
        at: u64,
        piece: (usize, u32),
        user: u64,
    ) -> Result<RequestId, RequestError> {
        self.ask(direction, &at.to_le_bytes(), piece, user)
    }

    /// Runs until the condition is true. Panics after the time limit.
    pub(crate) fn run_until(&mut self, limit: Duration, mut is_done: impl FnMut(&Self) -> bool) {
        let end = self.now + limit;
        while !is_done(self) {
            assert!(
                self.step(end),
                "the condition is still false after {limit:?}: {:?}",
                self.events
            );
        }
    }

    /// Runs for the given period of virtual time.
    pub(crate) fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        while self.step(end) {}
    }

    /// Processes all events of the current time, advances to the time of the next event, and processes that event.
    /// Returns false once `end` is reached.
    pub(crate) fn step(&mut self, end: Instant) -> bool {
        self.settle();
        let due = self.sides.iter().flat_map(|side| &side.0).flat_map(Node::due);
        let engines = [self.client.poll_timeout(), self.server.poll_timeout()];
        let arrival = self.wire.first_key_value().map(|((at, _), _)| *at);
        let worked = self.working.first_key_value().map(|((at, _), _)| *at);
        let next = due.chain(engines).chain([arrival, worked]).flatten().min();
        match next.filter(|&next| next < end) {
            Some(next) => self.now = self.now.max(next),
            None => {
                self.now = end;
                return false;
            }
        }
        for node in self.sides.iter_mut().flat_map(|side| &mut side.0) {
            node.handle_timeout(self.now);
        }
        let [near, far] = &mut self.sides;
        self.client.handle_timeout(self.now, near);
        self.server.handle_timeout(self.now, far);
        while let Some(entry) = self.wire.first_entry()
            && entry.key().0 <= self.now
        {
            let (side, link, bytes, route) = entry.remove();
            self.sides[side].0[link].hca.handle(self.now, &route, &bytes);
        }
        self.work();
        self.settle();
        true
    }

    /// Exchanges events between the engines, HCAs and connection managers, and puts sent packets on the wire, until
    /// nothing is left to do. The packets are delivered by `step`.
    fn settle(&mut self) {
        let mut has_work = true;
        while has_work {
            has_work = false;
            for side in [0, 1] {
                for link in 0..self.links.len() {
                    has_work |= self.collect(side, link);
                }
            }
            has_work |= self.transmit();
        }
        while let Some(event) = self.client.poll_event() {
            self.events.push((self.now, event));
        }
        while let Some(event) = self.server.poll_event() {
            self.server_events.push((self.now, event));
        }
        while let Some(completion) = self.client.poll_completion() {
            self.done.push(completion);
        }
        if self.holds {
            return;
        }
        while let Some(request) = self.server.poll_request() {
            self.served += 1;
            let takes = (self.backend)(&mut self.rng, &request);
            self.number += 1;
            let is_in_its_chunk =
                |it: &&ServerRequest| (it.session, it.chunk) == (request.session, request.chunk);
            let other = self.working.values().find(is_in_its_chunk);
            assert!(other.is_none(), "two requests use one chunk: {other:?}, {request:?}");
            self.working.insert((self.now + takes, self.number), request);
            has_work |= takes.is_zero();
        }
        if has_work {
            self.work();
            self.settle();
        }
    }

    /// Passes the events of an HCA and its connection manager to the engine. Returns true if there was an event or a
    /// MAD.
    fn collect(&mut self, side: usize, link: usize) -> bool {
        let mut is_any = false;
        let id = AdapterId(link as u32);
        while let Some(event) = self.sides[side].0[link].poll_hca(self.now) {
            is_any = true;
            let [near, far] = &mut self.sides;
            match side {
                0 => self.client.handle_hca(self.now, near, 0, id, &event),
                _ => self.server.handle_hca(self.now, far, 0, id, &event),
            }
        }
        while let Some(event) = self.sides[side].0[link].cm.poll_event() {
            is_any = true;
            self.tell(side, id, event);
        }
        let node = &mut self.sides[side].0[link];
        while let Some((route, mad)) = node.cm.poll_transmit() {
            is_any = true;
            node.hca.send_mad(route, mad);
        }
        is_any
    }

    /// Returns the first packet on the wire that satisfies the predicate, and removes all packets from the wire.
    pub(crate) fn catch(&mut self, is_wanted: fn(&[u8]) -> bool) -> Packet {
        self.settle();
        let wire = std::mem::take(&mut self.wire).into_values();
        wire.into_iter().find(|(_, _, bytes, _)| is_wanted(bytes)).expect("the packet was sent")
    }

    /// Puts a packet on the wire, which arrives at the current time.
    pub(crate) fn inject(&mut self, packet: Packet) {
        self.number += 1;
        self.wire.insert((self.now, self.number), packet);
    }

    fn tell(&mut self, side: usize, id: AdapterId, event: CmEvent) {
        let [near, far] = &mut self.sides;
        if side == 0 {
            self.client.handle_cm(self.now, near, id, event);
        } else {
            self.server.handle_cm(self.now, far, id, event);
        }
    }

    fn transmit(&mut self) -> bool {
        let mut buffer = vec![0; MAX_PACKET];
        let mut is_any = false;
        for from in [0, 1] {
            for link in 0..self.links.len() {
                while let Some(sent) =
                    self.sides[from].0[link].hca.poll_transmit(self.now, &mut buffer)
                {
                    is_any = true;
                    let mut bytes = buffer[..sent.length].to_vec();
                    let passes = (self.tap)(from, link, &mut bytes);
                    self.carry(from, link, &bytes, sent.route, passes);
                }
            }
        }
        is_any
    }

    fn carry(&mut self, from: usize, link: usize, bytes: &[u8], route: Route, passes: bool) {
        let times = self.links[link].carry(&mut self.rng, self.now, (from, bytes.len()));
        for arrives in times.into_iter().filter(|_| passes) {
            self.number += 1;
            self.wire.insert((arrives, self.number), (1 - from, link, bytes.to_vec(), back(route)));
        }
    }

    /// Completes the requests that the server's user has finished by now.
    fn work(&mut self) {
        let now = self.now;
        for (_, at, bytes) in self.repeated.extract_if(.., |(due, ..)| *due <= now) {
            self.disk.write(at, &bytes).expect("the range is within the memory");
        }
        while let Some(entry) = self.working.first_entry()
            && entry.key().0 <= self.now
        {
            let request = entry.remove();
            let (errno, produced) = self.execute(&request);
            if let (Some(store), Direction::Read, true) =
                (self.store, request.direction, errno.is_ok())
            {
                let found =
                    (store, self.disk_offset(&request).expect("`execute` has read the offset"));
                let side = &mut self.sides[1];
                self.server.complete_from(self.now, side, request.id, found, produced);
                continue;
            }
            self.server.complete(self.now, &mut self.sides[1], request.id, errno, produced);
        }
    }

    /// From now on, the server sends READ data directly from the memory of the disk.
    pub(crate) fn answer_from_disk(&mut self) {
        self.store = Some(self.server.add_store(Arc::clone(&self.disk)));
    }

    /// Returns the offset on the disk that the header of a request contains; `None` if the header is too short.
    fn disk_offset(&self, request: &ServerRequest) -> Option<usize> {
        let memory =
            self.server.memory(request.session).expect("sessions with requests have memory");
        let header = memory.to_vec(request.header_offset, request.header_length as usize);
        let header = header.expect("the range is within the memory");
        header.first_chunk().map(|at| u64::from_le_bytes(*at) as usize)
    }

    fn execute(&mut self, request: &ServerRequest) -> (Errno, u32) {
        let memory =
            self.server.memory(request.session).expect("sessions with requests have memory");
        let memory = Arc::clone(memory);
        let Some(at) = self.disk_offset(request) else { return (Errno::EINVAL, 0) };
        let length = request.data_length as usize;
        if at + length > DISK {
            return (Errno::EIO, 0);
        }
        match request.direction {
            Direction::Write => {
                let bytes = memory
                    .to_vec(request.data_offset, length)
                    .expect("the range is within the memory");
                self.disk.write(at, &bytes).expect("the range is within the memory");
                if self.repeats && self.rng.chance(0.1) {
                    let later = Duration::from_millis(self.rng.below(100));
                    self.repeated.push((self.now + later, at, bytes));
                }
                (Errno::OK, 0)
            }
            Direction::Read if self.store.is_some() => (Errno::OK, request.data_length),
            Direction::Read => {
                let bytes = self.disk.to_vec(at, length).expect("the range is within the memory");
                memory.write(request.data_offset, &bytes).expect("the range is within the memory");
                (Errno::OK, request.data_length)
            }
        }
    }
}
