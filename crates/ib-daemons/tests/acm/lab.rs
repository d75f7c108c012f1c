//! A simulated fabric with a service of IB ACM at every host.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use ib_acm::port::PortId as AcmPort;
use ib_acm::{Address, ClientId, Event, Service, ServiceConfig};
use ib_daemons::acm::SimPorts;
use ib_device::SimDeviceOptions;
use ib_sim::Options;
use ib_topology::PortId;
use ib_types::Instant;
use ib_wire::acm::{
    ByteOrder, ClientHeader, ClientStatus, Entry, EntryFlags, EntryType, HEADER_LENGTH, Resolve,
};
use ib_wire::mad::sa::PathRecord;

#[path = "../../../ib-device/tests/fabric/lab/managed.rs"]
pub(crate) mod managed;

use managed::Managed;

/// The first port of each service; the others follow.
const PORT: AcmPort = AcmPort(1);

/// A host with a service.
pub(crate) struct Host {
    /// The first of its ports.
    pub(crate) port: PortId,
    pub(crate) service: Service,
    /// All of them, and how often each had changed when the service was told last.
    ports: Vec<(PortId, Option<u64>)>,
    /// Answers to requests that have waited, by what they are known by.
    pub(crate) answers: BTreeMap<u64, Answer>,
    pub(crate) events: Vec<(Instant, Event)>,
}

/// What a program is told.
pub(crate) type Answer = Result<PathRecord, ClientStatus>;

pub(crate) struct Lab {
    pub(crate) managed: Managed,
    pub(crate) ports: SimPorts,
    pub(crate) hosts: Vec<Host>,
    by_port: BTreeMap<PortId, usize>,
    due: BTreeSet<(Instant, usize)>,
    due_of: Vec<Option<Instant>>,
    /// Those that have had their turn since somebody has looked.
    pub(crate) driven: Vec<usize>,
    requests: u64,
    config: ServiceConfig,
    seed: u64,
    boots: u64,
}

/// Returns the IPv4 address of a host.
pub(crate) fn ip(host: usize) -> Address {
    Address::V4(Ipv4Addr::from(0x0a00_0001 + host as u32))
}

/// Returns the IPv6 address of a host.
pub(crate) fn ip6(host: usize) -> Address {
    Address::V6(Ipv6Addr::from((0xfd00 << 112) | (1 + host as u128)))
}

/// Returns what a program says that wants to reach an address.
pub(crate) fn destination(to: &Address) -> Entry {
    let path = |path: PathRecord| Entry::path(EntryFlags(0), &path);
    match to {
        Address::Gid(gid) => path(PathRecord { dgid: *gid, ..PathRecord::zeroed() }),
        Address::Lid(lid) => path(PathRecord { dlid: *lid, ..PathRecord::zeroed() }),
        _ => to.to_entry(EntryFlags::DESTINATION).expect("a name or an IP address"),
    }
}

/// Returns the name of a host.
pub(crate) fn name(host: usize) -> Address {
    Address::name(&format!("node-{host}")).expect("a name")
}

impl Lab {
    /// Returns a fabric of a kind with a service at each host.
    pub(crate) fn new(kind: &str, options: Options, engine: &str, config: ServiceConfig) -> Self {
        let seed = options.seed;
        let managed = Managed::new(&managed::fabric(kind), options, engine);
        let hosts = managed.end_ports().into_iter().map(|port| vec![port]).collect();
        Self::with(managed, seed, config, hosts)
    }

    /// Returns a fabric with services of hosts, each at some ports.
    pub(crate) fn with(
        managed: Managed,
        seed: u64,
        config: ServiceConfig,
        hosts: Vec<Vec<PortId>>,
    ) -> Self {
        let mut this = Self {
            managed,
            ports: SimPorts::default(),
            hosts: Vec::new(),
            by_port: BTreeMap::new(),
            due: BTreeSet::new(),
            due_of: Vec::new(),
            driven: Vec::new(),
            requests: 0,
            config,
            seed,
            boots: 0,
        };
        for (host, ports) in hosts.into_iter().enumerate() {
            this.by_port.extend(ports.iter().map(|&port| (port, host)));
            this.due_of.push(None);
            let service = this.boot(host, &ports);
            let (answers, events) = (BTreeMap::new(), Vec::new());
            let port = ports[0];
            let ports = ports.into_iter().map(|port| (port, None)).collect();
            this.hosts.push(Host { port, service, ports, answers, events });
        }
        for host in 0..this.hosts.len() {
            this.drive(host);
        }
        this
    }

    /// Puts HCAs to ports, and a service.
    fn boot(&mut self, host: usize, ports: &[PortId]) -> Service {
        let mut options = SimDeviceOptions::default();
        for &port in ports {
            self.boots += 1;
            options.seed[8..16].copy_from_slice(&self.seed.to_le_bytes());
            options.seed[16..24].copy_from_slice(&self.boots.to_le_bytes());
            let Managed { sim, devices, .. } = &mut self.managed;
            devices.attach(sim, port, &options).expect("the HCA has free resources");
            let names = vec![name(host), ip(host), ip6(host)];
            assert!(self.ports.add(sim, devices, port, names, 256), "there is room");
        }
        Service::new(self.config.clone(), options.seed)
    }

    /// Takes host and HCA out of service and back again: all that they knew is gone.
    pub(crate) fn reboot(&mut self, host: usize) {
        let ports: Vec<PortId> = self.hosts[host].ports.iter().map(|&(port, _)| port).collect();
        let Managed { sim, devices, .. } = &mut self.managed;
        for &port in &ports {
            self.ports.remove(port);
            devices.detach(sim, port);
        }
        let service = self.boot(host, &ports);
        self.hosts[host].service = service;
        self.hosts[host].ports = ports.into_iter().map(|port| (port, None)).collect();
        self.drive(host);
    }

    /// Lets a service do what it has to do.
    pub(crate) fn drive(&mut self, host: usize) {
        let Managed { sim, devices, .. } = &mut self.managed;
        let now = sim.now();
        let it = &mut self.hosts[host];
        self.driven.push(host);
        it.service.handle_timeout(now);
        for (number, (port, seen)) in it.ports.iter_mut().enumerate() {
            let id = AcmPort(PORT.0 + number as u32);
            while let Some(mut port) = self.ports.port(sim, devices, *port)
                && it.service.drive(now, id, &mut port, seen)
            {}
        }
        while let Some((ClientId(client), bytes)) = it.service.poll_reply() {
            it.answers.insert(client, answer(&bytes));
        }
        while let Some(event) = it.service.poll_event() {
            it.events.push((now, event));
        }
        let due = it.service.poll_timeout();
        if due != self.due_of[host] {
            if let Some(old) = std::mem::replace(&mut self.due_of[host], due) {
                self.due.remove(&(old, host));
            }
            self.due.extend(due.map(|at| (at, host)));
        }
    }

    /// Goes on to the next thing that happens by a moment; false when nothing does.
    pub(crate) fn step(&mut self, until: Instant) -> bool {
        let due = self.due.first().map_or(Instant::NEVER, |&(at, _)| at);
        let goes_on = self.managed.step(due.min(until));
        if !goes_on && due <= until && due < Instant::NEVER {
            self.managed.sim.run_until(due);
        }
        let now = self.managed.sim.now();
        while let Some(port) = self.managed.devices.poll_moved() {
            if let Some(&host) = self.by_port.get(&port) {
                self.drive(host);
            }
        }
        while let Some(&(at, host)) = self.due.first()
            && at <= now
        {
            self.drive(host);
        }
        goes_on || due <= until && due < Instant::NEVER
    }

    pub(crate) fn run_for(&mut self, time: Duration) {
        let end = self.managed.sim.now() + time;
        while self.step(end) {}
        self.managed.sim.run_until(end);
    }

    /// Has a program of a host ask for an address; the answer comes now or is known by the number.
    pub(crate) fn ask(&mut self, host: usize, entries: Vec<Entry>) -> (u64, Option<Answer>) {
        self.requests += 1;
        let number = self.requests;
        let request = Resolve::request(number.to_be_bytes(), entries);
        let mut bytes = Vec::new();
        request.put(ByteOrder::NATIVE, &mut bytes);
        let header = ClientHeader::parse(bytes.first_chunk().expect("a header"));
        let mut out = Vec::new();
        let now = self.managed.sim.now();
        let message = (&header, &bytes[HEADER_LENGTH..], ByteOrder::NATIVE);
        let is_there = self.hosts[host].service.request(now, ClientId(number), message, &mut out);
        self.drive(host);
        (number, is_there.then(|| answer(&out)))
    }

    /// Has a program of a host ask for an address, and waits for the answer.
    pub(crate) fn resolve(&mut self, host: usize, to: &Address) -> Answer {
        let (number, found) = self.ask(host, vec![destination(to)]);
        found.unwrap_or_else(|| self.answer(host, number))
    }

    /// Waits for an answer.
    pub(crate) fn answer(&mut self, host: usize, number: u64) -> Answer {
        let end = self.managed.sim.now() + Duration::from_secs(100);
        loop {
            if let Some(answer) = self.hosts[host].answers.remove(&number) {
                return answer;
            }
            assert!(self.step(end) && self.managed.sim.now() < end, "no answer");
        }
    }

    /// Returns the addresses of a host as they are now: its names, its GID and its LID.
    pub(crate) fn addresses(&self, host: usize) -> [Address; 5] {
        let port = self.managed.sim.link_port(self.hosts[host].port);
        [name(host), ip(host), ip6(host), Address::Gid(port.gid()), Address::Lid(port.lid)]
    }

    /// Returns the name of a host's node.
    pub(crate) fn host_name(&self, host: usize) -> String {
        let (node, _) = self.managed.sim.place(self.hosts[host].port);
        self.managed.sim.node_name(node).to_owned()
    }

    /// Tells whether a path leads from one host to another.
    pub(crate) fn leads(&self, from: usize, to: usize, path: &PathRecord) -> bool {
        let sim = &self.managed.sim;
        let (own, other) = (sim.link_port(self.hosts[from].port), self.hosts[to].port);
        let there = sim.link_port(other);
        let arrives = || match sim.route(path.slid, path.dlid) {
            Ok((ports, None)) => ports.last() == Some(&other),
            _ => from == to,
        };
        (path.slid, path.sgid) == (own.lid, own.gid())
            && (path.dlid, path.dgid) == (there.lid, there.gid())
            && arrives()
    }
}

fn answer(bytes: &[u8]) -> Answer {
    let header = ClientHeader::parse(bytes.first_chunk().expect("a header"));
    let (length, order) = header.length().expect("a length");
    assert_eq!(length, bytes.len());
    if header.status != ClientStatus::SUCCESS {
        return Err(header.status);
    }
    let answer = Resolve::parse(header, &bytes[HEADER_LENGTH..], order);
    assert_eq!(answer.entries[0].kind, EntryType::PATH);
    Ok(answer.entries[0].path_record())
}
