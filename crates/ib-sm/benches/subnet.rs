//! How long a tree with 3,456 hosts waits for new routes when a link fails, and how many paths
//! administration tells in a second.

use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ib_link::{Datagram, Incoming, MadLink, Remote};
use ib_sim::{ClientOptions, Options, Sim, SimLink};
use ib_sm::{SmConfig, SmEvent, SubnetManager, SweepReport};
use ib_topology::generate::{Kind, generate};
use ib_types::{Gid, Guid};
use ib_wire::mad::sa::{ComponentMask, PathRecord, SaHeader};
use ib_wire::mad::{Mad, Method, MgmtClass, TransactionId};

/// A simulated fabric and its manager.
struct Managed<'s> {
    link: SimLink<'s>,
    manager: SubnetManager,
}

impl Managed<'_> {
    /// Runs until the subnet is up.
    fn run(&mut self) -> Box<SweepReport> {
        loop {
            while let Some(datagram) = self.manager.poll_transmit(self.link.now()) {
                self.link.send(&datagram).expect("the link lives");
            }
            if let Some(job) = self.manager.poll_job() {
                self.manager.handle_plan(self.link.now(), job.run());
                continue;
            }
            while let Some(event) = self.manager.poll_event() {
                if let SmEvent::SubnetUp(report) = event {
                    return report;
                }
            }
            let until = self.manager.poll_timeout().expect("it looks again");
            self.link.wait(until).expect("the link lives");
            while let Some(incoming) = self.link.receive().expect("the link lives") {
                self.manager.handle(self.link.now(), &incoming);
            }
            self.manager.handle_timeout(self.link.now());
        }
    }

    fn command(&mut self, text: &str) {
        self.link.sim().run(&text.parse().expect("a command")).expect("it can be done");
    }
}

/// Has a manager on a tree of three levels of 24-port switches.
fn with_tree(run: impl FnOnce(&mut Managed<'_>)) {
    let kind = Kind::parse("xgft", &["12,12,24", "1,12,12"]).expect("a kind of fabric");
    let fabric = generate(&kind, &ib_topology::generate::Options::default()).expect("a fabric");
    let mut sim = Sim::new(&fabric, Options::default());
    let port = sim.first_end_port().expect("a host");
    let options = ClientOptions { is_sm: true, ..ClientOptions::default() };
    let mut link = SimLink::attach(&mut sim, port, options).expect("a client");
    let guid = link.port().expect("a port").port_guid;
    let manager = SubnetManager::new(SmConfig::default(), guid, link.now());
    let mut managed = Managed { link, manager };
    managed.run();
    run(&mut managed);
}

fn failure(c: &mut Criterion) {
    with_tree(|managed| {
        let mut number = 0;
        c.bench_function("3,456 hosts: a link fails", |b| {
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
                    managed.command(&format!("relink \"leaf-{leaf:03}\"[{port}]"));
                    managed.run();
                }
                spent
            });
        });
    });
}

fn paths(c: &mut Criterion) {
    with_tree(|managed| {
        let now = managed.link.now();
        let port = managed.link.port().expect("a port");
        let guids: Vec<Guid> = {
            let sim = managed.link.sim();
            let nodes: Vec<_> = sim.node_ids().filter(|&node| !sim.is_switch(node)).collect();
            let ports = nodes.into_iter().filter_map(|node| sim.end_port(node));
            ports.map(|port| sim.link_port(port).port_guid).collect()
        };
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
                let answer = managed.manager.poll_transmit(now).expect("an answer");
                assert!(answer.mad.status().is_ok());
            });
        });
    });
}

criterion_group!(benches, failure, paths);
criterion_main!(benches);
