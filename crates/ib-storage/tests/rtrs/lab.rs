//! An RTRS client and server with two ports each, on a simulated fabric of two switches with an SM.

use std::sync::Arc;
use std::time::Duration;

use ib_device::DeviceEvent;
use ib_device::{SimDeviceOptions, SimDevices, route_of};
use ib_hca::{HcaEvent, Memory};
use ib_link::{Datagram, Remote};
use ib_rtrs::{
    Adapter, AdapterId, Adapters, BufferId, Client, ClientConfig, ClientEvent, Completion,
    Direction, Errno, PathId, PathSpec, Request, Segment, Server, ServerConfig,
};
use ib_sim::Options;
use ib_topology::{PortId, read};
use ib_types::{Gid, Instant, Mtu};
use ib_wire::mad::sa::{ComponentMask, PathRecord, SaHeader};
use ib_wire::mad::{Mad, Method, MgmtClass, TransactionId};

use crate::managed::Managed;

/// The RDMA port (as in `rdma_cm`) at which the server listens.
const PORT: u16 = 1234;

/// Length of the data of a request in bytes.
pub(crate) const BLOCK: usize = 120 << 10;

/// Queue depth of the server.
const DEPTH: usize = 64;

/// The fabric. The rate of all links is 10 Gbit/s.
const FABRIC: &str = "\
Switch 4 \"rail-1\"
[1] \"client\"[1] # lid 0 1xFDR10
[2] \"server\"[1] # lid 0 1xFDR10
[3] \"rail-2\"[3] # lid 0 1xFDR10
[4] \"manager\"[1] # lid 0 1xFDR10

Switch 4 \"rail-2\"
[1] \"client\"[2] # lid 0 1xFDR10
[2] \"server\"[2] # lid 0 1xFDR10
[3] \"rail-1\"[3] # lid 0 1xFDR10

Ca 1 \"manager\"
[1] \"rail-1\"[4] # lid 0 1xFDR10

Ca 2 \"client\"
[1] \"rail-1\"[1] # lid 0 1xFDR10
[2] \"rail-2\"[1] # lid 0 1xFDR10

Ca 2 \"server\"
[1] \"rail-1\"[2] # lid 0 1xFDR10
[2] \"rail-2\"[2] # lid 0 1xFDR10
";

/// The HCAs of the client or of the server.
struct Ports<'a>(&'a mut SimDevices, [PortId; 2]);

impl Adapters for Ports<'_> {
    fn get(&mut self, id: AdapterId) -> Option<Adapter<'_>> {
        let engines = self.0.get_mut(*self.1.get(id.0 as usize)?)?.engines();
        Some(Adapter { hca: &mut engines.hca, cm: &mut engines.cm })
    }
}

pub(crate) struct Lab {
    managed: Managed,
    /// The two HCA ports of the client, and the two of the server.
    ports: [[PortId; 2]; 2],
    pub(crate) client: Client,
    pub(crate) server: Server,
    buffer: BufferId,
    answers: Vec<Mad>,
    pub(crate) paths: Vec<PathId>,
    pub(crate) events: Vec<(Instant, ClientEvent)>,
    pub(crate) done: Vec<Completion>,
}

impl Lab {
    /// Connects the client to the server over this number of paths.
    pub(crate) fn connected(paths: usize) -> Self {
        let fabric = read::ibsim("rails.net", FABRIC.as_bytes()).expect("the fabric is valid");
        let options = Options { mtu_cap: Mtu::B4096, ..Options::default() };
        let mut managed = Managed::new(&fabric, options, "minhop");
        let ports = ["client", "server"].map(|name| {
            let node = managed.sim.find_node(name).expect("the fabric has this host");
            [1, 2]
                .map(|number| managed.sim.find_port(node, number).expect("the host has two ports"))
        });
        let Managed { sim, devices, .. } = &mut managed;
        for port in ports.into_iter().flatten() {
            devices.attach(sim, port, &SimDeviceOptions::default()).expect("the HCA is attached");
        }
        let config = ServerConfig {
            queue_depth: DEPTH as u16,
            max_io_size: BLOCK as u32,
            max_header_size: 4096,
            ..ServerConfig::default()
        };
        let mut server = Server::new(config, [2; 32]);
        for number in [0, 1] {
            let mut far = Ports(devices, ports[1]);
            server.listen(&mut far, AdapterId(number), PORT).expect("the address is free");
        }
        let config = ClientConfig { connections: 3, ..ClientConfig::new("client") };
        let mut client = Client::new(config, [1; 32]);
        let memory = Memory::zeroed(BLOCK * DEPTH).expect("memory is available");
        let mut near = Ports(devices, ports[0]);
        let buffer =
            client.register(&mut near, Arc::clone(&memory)).expect("memory can be registered");
        let (answers, events, done) = (Vec::new(), Vec::new(), Vec::new());
        let paths_of_client = Vec::new();
        let mut lab = Self {
            managed,
            ports,
            client,
            server,
            buffer,
            answers,
            paths: paths_of_client,
            events,
            done,
        };
        for number in 0..paths {
            lab.add_path(number);
        }
        lab.run_until(Duration::from_secs(10), |lab| lab.has(|it| *it == ClientEvent::Up));
        lab
    }

    pub(crate) fn now(&self) -> Instant {
        self.managed.sim.now()
    }

    pub(crate) fn gid(&mut self, side: usize, number: usize) -> Gid {
        let port = self.ports[side][number];
        self.managed.devices.get_mut(port).expect("the port has an HCA").gid()
    }

    pub(crate) fn has(&self, is_it: impl Fn(&ClientEvent) -> bool) -> bool {
        self.events.iter().any(|(_, event)| is_it(event))
    }

    pub(crate) fn command(&mut self, text: &str) {
        self.managed.command(text);
    }

    /// Queries the SA for a path, and adds the path to the client.
    fn add_path(&mut self, number: usize) {
        let [sgid, dgid] = [0, 1].map(|side| self.gid(side, number));
        let wanted = PathRecord { sgid, dgid, numb_path: 1, ..PathRecord::zeroed() };
        let mut mad = Mad::new(MgmtClass::SUBN_ADM, Method::GET, TransactionId(1 + number as u64));
        mad.set_attribute(&wanted);
        let component_mask = ComponentMask::of(&[2, 3, 12]);
        mad.set_sa(&SaHeader { component_mask, ..mad.sa() });
        let port = self.ports[0][number];
        let manager = self.managed.sim.link_port(port).sm_lid;
        let client = self.managed.devices.get_mut(port).expect("the port has an HCA").client();
        self.managed.sim.submit(client, &Datagram::new(Remote::gsi(manager), mad));
        self.run_until(Duration::from_secs(1), |lab| !lab.answers.is_empty());
        let answer = self.answers.pop().expect("the SA has responded");
        assert!(answer.status().is_ok(), "{answer}");
        let record: PathRecord = answer.attribute().expect("the response has a path");
        let (id, mtu) =
            (AdapterId(number as u32), Mtu::from_code(record.mtu.0).expect("the code is valid"));
        let spec = PathSpec::between_gids(id, PORT, route_of(&record), mtu);
        let now = self.now();
        let mut near = Ports(&mut self.managed.devices, self.ports[0]);
        self.paths.push(self.client.add_path(now, &mut near, spec).expect("the path can be added"));
    }

    pub(crate) fn ask(&mut self, direction: Direction, user: u64) {
        let offset = user as usize % DEPTH * BLOCK;
        let data = [Segment { buffer: self.buffer, offset, length: BLOCK as u32 }];
        let (cpu, header) = (user as u32, &b"block"[..]);
        let request = Request { cpu, direction, header, data: &data, user, is_admin: false };
        let now = self.now();
        let mut near = Ports(&mut self.managed.devices, self.ports[0]);
        self.client.request(now, &mut near, &request).expect("the request is accepted");
    }

    pub(crate) fn run_until(&mut self, limit: Duration, mut is_done: impl FnMut(&Self) -> bool) {
        let end = self.now() + limit;
        while !is_done(self) {
            self.step(end);
            assert!(self.now() < end, "the condition is false after {limit:?}: {:?}", self.events);
        }
    }

    pub(crate) fn run_for(&mut self, time: Duration) {
        let end = self.now() + time;
        while self.now() < end {
            self.step(end);
        }
    }

    /// Advances the time to the next event, at most to `end`.
    pub(crate) fn step(&mut self, end: Instant) {
        let due = [self.client.poll_timeout(), self.server.poll_timeout()];
        let until = due.into_iter().flatten().fold(end, Instant::min);
        if !self.managed.step(until) {
            self.managed.sim.run_until(until);
        }
        let now = self.now();
        let Self { managed, ports, client, server, answers, .. } = self;
        let devices = &mut managed.devices;
        client.handle_timeout(now, &mut Ports(devices, ports[0]));
        server.handle_timeout(now, &mut Ports(devices, ports[1]));
        while let Some(port) = devices.poll_moved() {
            let places = ports.iter().enumerate();
            let found = places
                .filter_map(|(side, own)| Some((side, own.iter().position(|it| *it == port)?)));
            let Some((side, number)) = found.max() else { continue };
            let id = AdapterId(number as u32);
            while let Some(event) = devices.get_mut(port).and_then(|it| it.poll_event()) {
                match (side, event) {
                    (0, DeviceEvent::Hca(HcaEvent::Mad { mad, .. })) => answers.push(*mad),
                    (0, DeviceEvent::Hca(event)) => {
                        client.handle_hca(now, &mut Ports(devices, ports[0]), 0, id, &event);
                    }
                    (0, DeviceEvent::Cm(event)) => {
                        client.handle_cm(now, &mut Ports(devices, ports[0]), id, event);
                    }
                    (_, DeviceEvent::Hca(event)) => {
                        server.handle_hca(now, &mut Ports(devices, ports[1]), 0, id, &event);
                    }
                    (_, DeviceEvent::Cm(event)) => {
                        server.handle_cm(now, &mut Ports(devices, ports[1]), id, event);
                    }
                }
            }
        }
        // The server completes requests immediately.
        while let Some(request) = server.poll_request() {
            let length = request.data_length;
            let far = &mut Ports(devices, ports[1]);
            server.complete(now, far, request.id, Errno::OK, length);
        }
        while server.poll_event().is_some() {}
        while let Some(event) = client.poll_event() {
            self.events.push((now, event));
        }
        while let Some(completion) = client.poll_completion() {
            self.done.push(completion);
        }
        devices.progress(&mut managed.sim);
    }
}
