//! A simulated fabric with an ACM service at each host.

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

/// Number that the ACM service of a host uses for the host's first port. Further ports have the next numbers.
const FIRST_PORT: AcmPort = AcmPort(1);

/// A host with an ACM service.
pub(crate) struct Host {
    /// The first port of the host.
    pub(crate) port: PortId,
    pub(crate) service: Service,
    /// All ports of the host. For each port, the value of `Port::changes` at the last call of `Service::drive`; `None`
    /// before the first call.
    ports: Vec<(PortId, Option<u64>)>,
    /// Replies that [`Lab::request`] has not returned, by request number.
    pub(crate) replies: BTreeMap<u64, ReplyResult>,
    pub(crate) events: Vec<(Instant, Event)>,
}

/// The path in a reply, or the status of a reply that reports a failure.
pub(crate) type ReplyResult = Result<PathRecord, ClientStatus>;

/// A simulated fabric in virtual time, with SMs and with an ACM service at each host.
pub(crate) struct Lab {
    pub(crate) managed: Managed,
    pub(crate) ports: SimPorts,
    pub(crate) hosts: Vec<Host>,
    host_of_port: BTreeMap<PortId, usize>,
    /// The time at which each service must run again, with the index of its host.
    timeouts: BTreeSet<(Instant, usize)>,
    /// The times in `timeouts`, indexed by host.
    timeout_of_host: Vec<Option<Instant>>,
    /// Indices of the hosts whose services have run since the test last cleared the list.
    pub(crate) driven: Vec<usize>,
    /// Number of client requests that were sent.
    requests: u64,
    config: ServiceConfig,
    seed: u64,
    /// Number of HCAs created so far, which is part of the seed of the next HCA.
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

/// Returns the entry of a client request that resolves the given address.
pub(crate) fn destination(to: &Address) -> Entry {
    let path = |path: PathRecord| Entry::path(EntryFlags(0), &path);
    match to {
        Address::Gid(gid) => path(PathRecord { dgid: *gid, ..PathRecord::zeroed() }),
        Address::Lid(lid) => path(PathRecord { dlid: *lid, ..PathRecord::zeroed() }),
        _ => to.to_entry(EntryFlags::DESTINATION).expect("the address is a name or an IP address"),
    }
}

/// Returns the name of a host.
pub(crate) fn name(host: usize) -> Address {
    Address::name(&format!("node-{host}")).expect("the name is valid")
}

impl Lab {
    /// Creates a generated fabric with a service at each host.
    pub(crate) fn new(kind: &str, options: Options, engine: &str, config: ServiceConfig) -> Self {
        let seed = options.seed;
        let managed = Managed::new(&managed::fabric(kind), options, engine);
        let hosts = managed.end_ports().into_iter().map(|port| vec![port]).collect();
        Self::with(managed, seed, config, hosts)
    }

    /// Creates an ACM service for each host of a fabric. `hosts` lists the ports of each host.
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
            host_of_port: BTreeMap::new(),
            timeouts: BTreeSet::new(),
            timeout_of_host: Vec::new(),
            driven: Vec::new(),
            requests: 0,
            config,
            seed,
            boots: 0,
        };
        for (host, ports) in hosts.into_iter().enumerate() {
            this.host_of_port.extend(ports.iter().map(|&port| (port, host)));
            this.timeout_of_host.push(None);
            let service = this.boot(host, &ports);
            let (replies, events) = (BTreeMap::new(), Vec::new());
            let port = ports[0];
            let ports = ports.into_iter().map(|port| (port, None)).collect();
            this.hosts.push(Host { port, service, ports, replies, events });
        }
        for host in 0..this.hosts.len() {
            this.drive(host);
        }
        this
    }

    /// Creates the service of a host, and an HCA at each of the host's ports.
    fn boot(&mut self, host: usize, ports: &[PortId]) -> Service {
        let mut options = SimDeviceOptions::default();
        for &port in ports {
            self.boots += 1;
            options.seed[8..16].copy_from_slice(&self.seed.to_le_bytes());
            options.seed[16..24].copy_from_slice(&self.boots.to_le_bytes());
            let Managed { sim, devices, .. } = &mut self.managed;
            devices.attach(sim, port, &options).expect("the port has no HCA yet");
            let names = vec![name(host), ip(host), ip6(host)];
            let is_added = self.ports.add(sim, devices, port, names, 256);
            assert!(is_added, "the HCA has no free resources");
        }
        Service::new(self.config.clone(), options.seed)
    }

    /// Restarts a host: replaces its HCAs and its service. The cache of the new service is empty.
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

    /// Runs the service of a host until it has nothing more to do at the current time.
    pub(crate) fn drive(&mut self, host: usize) {
        let Managed { sim, devices, .. } = &mut self.managed;
        let now = sim.now();
        let it = &mut self.hosts[host];
        self.driven.push(host);
        it.service.handle_timeout(now);
        for (number, (port, seen)) in it.ports.iter_mut().enumerate() {
            let id = AcmPort(FIRST_PORT.0 + number as u32);
            while let Some(mut port) = self.ports.port(sim, devices, *port)
                && it.service.drive(now, id, &mut port, seen)
            {}
        }
        while let Some((ClientId(client), bytes)) = it.service.poll_reply() {
            it.replies.insert(client, parse_reply(&bytes));
        }
        while let Some(event) = it.service.poll_event() {
            it.events.push((now, event));
        }
        let timeout = it.service.poll_timeout();
        if timeout != self.timeout_of_host[host] {
            if let Some(old) = std::mem::replace(&mut self.timeout_of_host[host], timeout) {
                self.timeouts.remove(&(old, host));
            }
            self.timeouts.extend(timeout.map(|at| (at, host)));
        }
    }

    /// Advances the time to the next event, but at most to `until`. Returns false if no event is due by `until`.
    pub(crate) fn step(&mut self, until: Instant) -> bool {
        let due = self.timeouts.first().map_or(Instant::NEVER, |&(at, _)| at);
        let has_advanced = self.managed.step(due.min(until));
        if !has_advanced && due <= until && due < Instant::NEVER {
            self.managed.sim.run_until(due);
        }
        let now = self.managed.sim.now();
        while let Some(port) = self.managed.devices.poll_moved() {
            if let Some(&host) = self.host_of_port.get(&port) {
                self.drive(host);
            }
        }
        while let Some(&(at, host)) = self.timeouts.first()
            && at <= now
        {
            self.drive(host);
        }
        has_advanced || due <= until && due < Instant::NEVER
    }

    /// Advances the time by `time`.
    pub(crate) fn run_for(&mut self, time: Duration) {
        let end = self.managed.sim.now() + time;
        while self.step(end) {}
        self.managed.sim.run_until(end);
    }

    /// Sends a client request to the service of a host. Returns the number of the request, and the reply if it is
    /// immediate.
    pub(crate) fn request(
        &mut self,
        host: usize,
        entries: Vec<Entry>,
    ) -> (u64, Option<ReplyResult>) {
        self.requests += 1;
        let number = self.requests;
        let request = Resolve::request(number.to_be_bytes(), entries);
        let mut bytes = Vec::new();
        request.put(ByteOrder::NATIVE, &mut bytes);
        let header = ClientHeader::parse(bytes.first_chunk().expect("the message has a header"));
        let mut out = Vec::new();
        let now = self.managed.sim.now();
        let message = (&header, &bytes[HEADER_LENGTH..], ByteOrder::NATIVE);
        let has_reply = self.hosts[host].service.request(now, ClientId(number), message, &mut out);
        self.drive(host);
        (number, has_reply.then(|| parse_reply(&out)))
    }

    /// Resolves an address with the service of a host.
    pub(crate) fn resolve(&mut self, host: usize, to: &Address) -> ReplyResult {
        let (number, found) = self.request(host, vec![destination(to)]);
        found.unwrap_or_else(|| self.await_reply(host, number))
    }

    /// Advances the time by at most 100 s, until the reply to a request is received.
    pub(crate) fn await_reply(&mut self, host: usize, number: u64) -> ReplyResult {
        let end = self.managed.sim.now() + Duration::from_secs(100);
        loop {
            if let Some(reply) = self.hosts[host].replies.remove(&number) {
                return reply;
            }
            assert!(self.step(end) && self.managed.sim.now() < end, "no reply within 100 s");
        }
    }

    /// Returns the current addresses of a host: its name, IPv4 address, IPv6 address, GID and LID.
    pub(crate) fn addresses(&self, host: usize) -> [Address; 5] {
        let port = self.managed.sim.link_port(self.hosts[host].port);
        [name(host), ip(host), ip6(host), Address::Gid(port.gid()), Address::Lid(port.lid)]
    }

    /// Returns the name of a host's node.
    pub(crate) fn host_name(&self, host: usize) -> String {
        let (node, _) = self.managed.sim.place(self.hosts[host].port);
        self.managed.sim.node_name(node).to_owned()
    }

    /// Returns true if the path has the addresses of the two hosts, and the forwarding tables lead from one host to the
    /// other.
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

/// Returns the path in a reply message, or the status of a message that reports a failure.
fn parse_reply(bytes: &[u8]) -> ReplyResult {
    let header = ClientHeader::parse(bytes.first_chunk().expect("the message has a header"));
    let (length, order) = header.length().expect("the length is valid");
    assert_eq!(length, bytes.len());
    if header.status != ClientStatus::SUCCESS {
        return Err(header.status);
    }
    let reply = Resolve::parse(header, &bytes[HEADER_LENGTH..], order);
    assert_eq!(reply.entries[0].kind, EntryType::PATH);
    Ok(reply.entries[0].path_record())
}
