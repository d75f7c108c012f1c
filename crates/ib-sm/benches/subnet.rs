//! Benchmarks of a tree with 3,456 hosts: time from a link failure until new routes are programmed, and rate of
//! PathRecord responses.

use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ib_link::{Datagram, Incoming, MadLink, Remote};
use ib_sim::{ClientOptions, Options, Sim, SimLink};
use ib_sm::{SmConfig, SmEvent, SubnetManager, SweepReport};
use ib_topology::generate::{Kind, generate};
use ib_types::{Gid, Guid};
use ib_wire::mad::sa::{ComponentMask, PathRecord, SaHeader};
use ib_wire::mad::{Mad, Method, MgmtClass, TransactionId};

/// A simulated fabric and its SM.
struct Managed<'s> {
    link: SimLink<'s>,
    manager: SubnetManager,
    /// True if MADs that the SA sends are dropped.
    deaf: bool,
}

impl Managed<'_> {
    /// Runs until the subnet is up.
    fn run(&mut self) -> Box<SweepReport> {
        self.run_to(ib_types::Instant::NEVER).expect("the subnet comes up")
    }

    /// Runs for two seconds of virtual time. In this time the SM handles all pending changes.
    fn settle(&mut self) {
        let end = self.link.now() + Duration::from_secs(2);
        while self.run_to(end).is_some() {}
    }

    /// Runs until the subnet is up or `end` is reached.
    fn run_to(&mut self, end: ib_types::Instant) -> Option<Box<SweepReport>> {
        while self.link.now() < end {
            while let Some(datagram) = self.manager.poll_transmit(self.link.now()) {
                if !(self.deaf && datagram.mad.class() == MgmtClass::SUBN_ADM) {
                    self.link.send(&datagram).expect("the simulated link does not fail");
                }
            }
            if let Some(job) = self.manager.poll_job() {
                self.manager.handle_plan(self.link.now(), job.run());
                continue;
            }
            while let Some(event) = self.manager.poll_event() {
                if let SmEvent::SubnetUp(report) = event {
                    return Some(report);
                }
            }
            let until = self.manager.poll_timeout().expect("light sweeps are enabled");
            self.link.wait(until.min(end)).expect("the simulated link does not fail");
            while let Some(incoming) =
                self.link.receive().expect("the simulated link does not fail")
            {
                self.manager.handle(self.link.now(), &incoming);
            }
            self.manager.handle_timeout(self.link.now());
        }
        None
    }

    /// Returns the port GUIDs of all hosts.
    fn guids(&mut self) -> Vec<Guid> {
        let sim = self.link.sim();
        let nodes: Vec<_> = sim.node_ids().filter(|&node| !sim.is_switch(node)).collect();
        let ports = nodes.into_iter().filter_map(|node| sim.end_port(node));
        ports.map(|port| sim.link_port(port).port_guid).collect()
    }

    fn command(&mut self, text: &str) {
        self.link
            .sim()
            .run(&text.parse().expect("the command is valid"))
            .expect("the simulator accepts the command");
    }
}

/// Runs a function with an SM that manages a three-level tree of 24-port switches.
fn with_tree(run: impl FnOnce(&mut Managed<'_>)) {
    let kind = Kind::parse("xgft", &["12,12,24", "1,12,12"]).expect("the kind is valid");
    let fabric = generate(&kind, &ib_topology::generate::Options::default())
        .expect("the kind can be generated");
    let mut sim = Sim::new(&fabric, Options::default());
    let port = sim.first_end_port().expect("the fabric has hosts");
    let options = ClientOptions { is_sm: true, ..ClientOptions::default() };
    let mut link = SimLink::attach(&mut sim, port, options).expect("the port accepts a client");
    let guid = link.port().expect("the link has a port").port_guid;
    let manager = SubnetManager::new(SmConfig::default(), guid, link.now());
    let mut managed = Managed { link, manager, deaf: false };
    managed.run();
    managed.settle();
    run(&mut managed);
}

fn failure(c: &mut Criterion) {
    with_tree(|managed| {
        let mut number = 0;
        c.bench_function("link failure, 3,456 hosts", |b| {
            b.iter_custom(|count| {
                let mut spent = Duration::ZERO;
                for _ in 0..count {
                    number += 1;
                    let (leaf, port) = (number % 288, 13 + number % 12);
                    managed.command(&format!("unlink \"leaf-{leaf:03}\"[{port}]"));
                    let start = Instant::now();
                    let report = managed.run();
                    spent += start.elapsed();
                    assert!(report.written.lft_blocks > 0, "{:?}", report.written);
                    managed.settle();
                    managed.command(&format!("relink \"leaf-{leaf:03}\"[{port}]"));
                    managed.settle();
                }
                spent
            });
        });
    });
}

/// Measures a sweep of an unchanged subnet: first without queries, then while 1,000 hosts each query the paths to all
/// hosts. MADs that the SA sends are dropped, so that only the time of the SM itself is measured.
fn sweeps(c: &mut Criterion) {
    with_tree(|managed| {
        managed.deaf = true;
        let guids = managed.guids();
        let mut group = c.benchmark_group("3,456 hosts");
        group.sample_size(10);
        for (name, hosts) in [("sweep", 0), ("sweep while 1,000 hosts query all paths", 1000)] {
            group.bench_function(name, |b| {
                b.iter_custom(|count| {
                    let mut spent = Duration::ZERO;
                    for number in 0..count {
                        let now = managed.link.now();
                        for (host, &guid) in guids.iter().take(hosts).enumerate() {
                            let wanted = PathRecord {
                                sgid: Gid::new(0xfe80 << 48, guid),
                                numb_path: 1,
                                ..PathRecord::zeroed()
                            };
                            let method = Method::GET_TABLE;
                            let id = TransactionId(number << 32 | host as u64);
                            let mut mad = Mad::new(MgmtClass::SUBN_ADM, method, id);
                            mad.set_attribute(&wanted);
                            let component_mask = ComponentMask::of(&[3, 12]);
                            mad.set_sa(&SaHeader { component_mask, ..mad.sa() });
                            let from = Remote::gsi(2 + host as u16);
                            let asked = Datagram::new(from, mad);
                            managed.manager.handle(now, &Incoming::Received(asked));
                        }
                        let start = Instant::now();
                        managed.manager.sweep(now);
                        managed.run();
                        spent += start.elapsed();
                        managed.settle();
                    }
                    spent
                });
            });
        }
    });
}

fn paths(c: &mut Criterion) {
    with_tree(|managed| {
        let now = managed.link.now();
        let port = managed.link.port().expect("the link has a port");
        let guids = managed.guids();
        let mask = ComponentMask::of(&[2, 3, 12]);
        let mut number = 0_u64;
        let mut ask = || {
            number += 1;
            let gid = |at: u64| Gid::new(0xfe80 << 48, guids[at as usize % guids.len()]);
            let wanted = PathRecord {
                dgid: gid(number * 37),
                sgid: gid(number * 101 + 5),
                numb_path: 1,
                ..PathRecord::zeroed()
            };
            let mut mad = Mad::new(MgmtClass::SUBN_ADM, Method::GET, TransactionId(number));
            mad.set_attribute(&wanted);
            mad.set_sa(&SaHeader { component_mask: mask, ..mad.sa() });
            Incoming::Received(Datagram::new(Remote::gsi(port.lid), mad))
        };
        let mut group = c.benchmark_group("3,456 hosts");
        group.throughput(Throughput::Elements(1));
        group.bench_function("one PathRecord", |b| {
            b.iter(|| {
                assert!(managed.manager.handle(now, &ask()));
                let answer =
                    managed.manager.poll_transmit(now).expect("the SA has queued a response");
                assert!(answer.mad.status().is_ok());
            });
        });
    });
}

criterion_group!(benches, failure, paths, sweeps);
criterion_main!(benches);
