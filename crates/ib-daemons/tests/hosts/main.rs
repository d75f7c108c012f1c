//! Tests embedded hosts of a simulated fabric: name resolution between all hosts, and an RNBD block device over two
//! paths.

use std::time::Duration;

use ib_acm::{Address, ServiceConfig};
use ib_block::{Command, Errno, Operation};
use ib_daemons::up::hosts::{BlockPair, Hosts, PairEvent, PairOptions, Reply};
use ib_rtrs::ClientEvent;
use ib_sim::Options;
use ib_storage::nbd::Backing as _;
use ib_topology::PortId;
use ib_types::Instant;
use ib_wire::acm::{ClientHeader, ClientStatus, EntryFlags, HEADER_LENGTH, Resolve};
use ib_wire::mad::sa::PathRecord;

#[expect(dead_code, reason = "other tests use more of it")]
#[path = "../../../ib-device/tests/fabric/lab/managed.rs"]
mod managed;

use managed::Managed;

/// Size of the block device in bytes.
const SIZE: u64 = 16 << 20;

struct Lab {
    managed: Managed,
    hosts: Hosts,
    ports: Vec<PortId>,
    pair: Option<BlockPair>,
    events: Vec<PairEvent>,
    requests: u64,
}

impl Lab {
    fn new(kind: &str) -> Self {
        let mut managed = Managed::new(&managed::fabric(kind), Options::default(), "minhop");
        let ports = managed.end_ports();
        let mut hosts = Hosts::new(ServiceConfig::default(), [7; 32]);
        for (number, &port) in ports.iter().enumerate() {
            hosts.add(&mut managed.sim, port, vec![name(number)]).expect("memory is sufficient");
        }
        let (pair, events) = (None, Vec::new());
        let mut lab = Self { managed, hosts, ports, pair, events, requests: 0 };
        lab.run_for(Duration::from_secs(20));
        lab
    }

    fn now(&self) -> Instant {
        self.managed.sim.now()
    }

    /// Does all work that is due now, and then advances the time to the next event, but at most to `until`.
    fn step(&mut self, until: Instant) {
        let Self { managed, hosts, pair, events, .. } = self;
        loop {
            managed.manage();
            let mut moved = hosts.work(&mut managed.sim);
            if let Some(pair) = pair {
                moved |= pair.work(&managed.sim, hosts).expect("memory is sufficient");
                events.extend(std::iter::from_fn(|| pair.poll_event()));
            }
            if !moved {
                break;
            }
        }
        let pair = pair.as_ref().and_then(BlockPair::poll_timeout);
        let due = [hosts.poll_timeout(), pair, managed.due()];
        let until = due.into_iter().flatten().fold(until, Instant::min);
        if !managed.sim.run_step(until) {
            managed.sim.run_until(until);
        }
    }

    fn run_for(&mut self, time: Duration) {
        let end = self.now() + time;
        while self.now() < end {
            self.step(end);
        }
    }

    fn run_until(&mut self, limit: Duration, mut is_done: impl FnMut(&mut Self) -> bool) {
        let end = self.now() + limit;
        while !is_done(self) {
            assert!(self.now() < end, "condition not met after {limit:?}: {:?}", self.events);
            self.step(end);
        }
    }

    /// Resolves the name of host `to` at host `from`.
    fn resolve(&mut self, from: usize, to: usize) -> PathRecord {
        self.requests += 1;
        let (number, port) = (self.requests, self.ports[from]);
        let entry =
            name(to).to_entry(EntryFlags::DESTINATION).expect("the name fits into an entry");
        let mut answer = self.hosts.request(&mut self.managed.sim, port, number, vec![entry]);
        self.run_until(Duration::from_secs(10), |lab| {
            while let Some(reply) = lab.hosts.poll_reply() {
                assert_eq!((reply.port, reply.number), (port, number));
                answer = Some(reply.message);
            }
            answer.is_some()
        });
        let bytes = answer.expect("the response has arrived");
        let header = ClientHeader::parse(bytes.first_chunk().expect("the message has a header"));
        assert_eq!(header.status, ClientStatus::SUCCESS);
        let (_, order) = header.length().expect("the length is valid");
        Resolve::parse(header, &bytes[HEADER_LENGTH..], order).entries[0].path_record()
    }

    /// Connects a block device over `paths` paths. The client uses the first `paths` hosts of the fabric, the server
    /// the last `paths` hosts.
    fn connect(&mut self, paths: usize) {
        let ends: [Vec<usize>; 2] =
            [(0..paths).collect(), (self.ports.len() - paths..self.ports.len()).collect()];
        let hosts = ends.clone().map(|end| end.into_iter().map(|host| self.ports[host]).collect());
        let device = "disk0".to_owned();
        let options = PairOptions { device, size: SIZE, depth: 64, hosts, seed: [3; 32] };
        let mut pair = BlockPair::new(&mut self.hosts, options).expect("memory is sufficient");
        for (index, (&from, &to)) in ends[0].iter().zip(&ends[1]).enumerate() {
            let path = self.resolve(from, to);
            let now = self.now();
            pair.add_path(now, &mut self.hosts, index, &path).expect("the path is valid");
        }
        self.pair = Some(pair);
        self.run_until(Duration::from_secs(10), |lab| lab.pair().geometry().is_some());
    }

    fn pair(&mut self) -> &mut BlockPair {
        self.pair.as_mut().expect("the block device was connected before")
    }

    /// Reads or writes the whole device with 32 outstanding requests. Passes the offset and the data of each completed
    /// request to `each`.
    fn all(&mut self, operation: Operation, mut each: impl FnMut(&mut Self, u64, &[u8])) {
        const LENGTH: u64 = 128 << 10;
        let (mut next, mut outstanding) = (0, 0);
        while next < SIZE || outstanding > 0 {
            while next < SIZE && outstanding < 32 {
                let command = Command { operation, offset: next, length: LENGTH, fua: false };
                let data = match operation {
                    Operation::Write => pattern(next, LENGTH),
                    _ => Vec::new(),
                };
                self.pair().submit(next, command, &data);
                (next, outstanding) = (next + LENGTH, outstanding + 1);
            }
            let mut done = None;
            self.run_until(Duration::from_secs(60), |lab| {
                done = lab.pair().poll();
                done.is_some()
            });
            let (offset, errno) = done.expect("a request has completed");
            assert_eq!(errno, Errno::OK);
            outstanding -= 1;
            let data = self.pair().take_data();
            each(self, offset, &data.copied());
            self.pair().give_back(data);
        }
    }

    fn has(&self, is_it: impl Fn(&ClientEvent) -> bool) -> bool {
        use ib_rnbd::RemoteEvent;
        let events = self.events.iter();
        events
            .into_iter()
            .any(|it| matches!(it, PairEvent::Client(RemoteEvent::Session(event)) if is_it(event)))
    }
}

fn name(host: usize) -> Address {
    Address::name(&format!("node-{host}")).expect("the name is valid")
}

fn pattern(offset: u64, length: u64) -> Vec<u8> {
    (offset..offset + length).map(|at| (at ^ (at >> 9) ^ (at >> 17)) as u8).collect()
}

#[test]
fn hosts_resolve_the_names_of_all_hosts() {
    let mut lab = Lab::new("fat-tree 4 2");
    let count = lab.ports.len();
    for (from, to) in (0..count).flat_map(|from| (0..count).map(move |to| (from, to))) {
        let path = lab.resolve(from, to);
        let expected = [from, to].map(|host| lab.managed.sim.link_port(lab.ports[host]).lid);
        assert_eq!([path.slid, path.dlid], expected, "LIDs from host {from} to host {to}");
    }
    // A host that was removed can be added again.
    let (port, node) = (lab.ports[1], name(1));
    assert!(lab.hosts.remove(&mut lab.managed.sim, port) && !lab.hosts.has(port));
    lab.run_for(Duration::from_secs(1));
    lab.hosts.add(&mut lab.managed.sim, port, vec![node]).expect("memory is sufficient");
    lab.run_for(Duration::from_secs(10));
    let path = lab.resolve(1, 0);
    assert_eq!(path.slid, lab.managed.sim.link_port(port).lid);
}

#[test]
fn data_is_intact_after_a_path_was_cut() {
    let mut lab = Lab::new("fat-tree 4 2");
    lab.connect(2);
    lab.all(Operation::Write, |_, _, _| {});
    let mut is_cut = false;
    lab.all(Operation::Read, |lab, offset, data| {
        assert!(data == pattern(offset, data.len() as u64), "wrong data at {offset}");
        if !std::mem::replace(&mut is_cut, true) {
            let (node, _) = lab.managed.sim.place(lab.ports[0]);
            let node = lab.managed.sim.node_name(node).to_owned();
            lab.managed.command(&format!("unlink \"{node}\"[1]"));
        }
    });
    assert!(lab.has(|it| matches!(it, ClientEvent::PathDown { .. })), "{:?}", lab.events);
    assert!(!lab.has(|it| *it == ClientEvent::Lost));
}

#[test]
fn replies_are_returned_oldest_first() {
    let mut hosts = Hosts::new(ServiceConfig::default(), [7; 32]);
    for number in 1..=3 {
        hosts.queue_reply(Reply { port: PortId(0), number, message: Vec::new() });
    }
    let numbers: Vec<u64> = std::iter::from_fn(|| hosts.poll_reply()).map(|it| it.number).collect();
    assert_eq!(numbers, [1, 2, 3]);
}
