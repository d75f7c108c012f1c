//! The SM neither panics nor loops on any sequence of responses, requests and traps.
#![no_main]

use std::time::Duration;

use ib_link::{Datagram, Incoming, Remote};
use ib_sim::{ClientOptions, Options, Sim};
use ib_sm::{QosConfig, SmConfig, SubnetManager};
use ib_topology::Fabric;
use ib_topology::generate::{Kind, generate};
use ib_wire::mad::Mad;
use libfuzzer_sys::fuzz_target;

/// The maximum number of iterations of the loop that drives the SM.
const MOST_ROUNDS: usize = 20_000;

fn fabric() -> Fabric {
    let kind = Kind::parse("mesh", &["1x2", "hosts=1"]).expect("the parameters are valid");
    generate(&kind, &ib_topology::generate::Options::default()).expect("the kind can be generated")
}

/// The rest of the input, from which bytes are read. Reading returns zeros after the end of the input.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&first, rest)) => {
                self.0 = rest;
                first
            }
            None => 0,
        }
    }

    /// Changes at most seven bytes of a MAD.
    fn spoil(&mut self, mad: &mut Mad) {
        for _ in 0..self.byte() % 8 {
            let at = usize::from(self.byte());
            mad.0[at] = self.byte();
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let mut bytes = Bytes(data);
    let mut sim = Sim::new(&fabric(), Options::default());
    let port = sim.first_end_port().expect("the fabric has a host");
    let options = ClientOptions { is_sm: true, ..ClientOptions::default() };
    let client = sim.attach(port, options).expect("no client is attached to the port yet");
    let settings = bytes.byte();
    let config = SmConfig {
        qos: (settings & 1 != 0).then(QosConfig::default),
        use_ucast_cache: settings & 2 != 0,
        require_deadlock_free: settings & 4 != 0,
        max_smps: 1 + usize::from(settings >> 3),
        ..SmConfig::default()
    };
    let guid = sim.link_port(port).port_guid;
    let mut manager = SubnetManager::new(config, guid, sim.now());
    let end = sim.now() + Duration::from_secs(30);
    let mut last = Mad([0; 256]);
    for round in 0.. {
        assert!(round < MOST_ROUNDS, "the sweep does not end");
        let now = sim.now();
        while let Some(datagram) = manager.poll_transmit(now) {
            sim.submit(client, &datagram);
        }
        if let Some(job) = manager.poll_job() {
            manager.handle_plan(now, job.run());
            continue;
        }
        while manager.poll_event().is_some() {}
        let until = manager.poll_timeout().unwrap_or(end).min(end);
        while !sim.has_incoming(client) && sim.run_step(until) {}
        if !sim.has_incoming(client) {
            sim.run_until(until);
        }
        let now = sim.now();
        while let Some(mut incoming) = sim.receive(client) {
            if let Incoming::Received(datagram) = &mut incoming
                && !bytes.0.is_empty()
            {
                bytes.spoil(&mut datagram.mad);
                last = datagram.mad;
            }
            manager.handle(now, &incoming);
        }
        // Passes an unsolicited MAD to the SM: 256 equal bytes, or the MAD that the SM received last. At most seven
        // bytes are modified.
        if bytes.byte() & 7 == 1 {
            let mut mad = if bytes.byte() & 1 == 0 { last } else { Mad([bytes.byte(); 256]) };
            bytes.spoil(&mut mad);
            let remote = Remote::gsi(u16::from(bytes.byte()));
            manager.handle(now, &Incoming::Received(Datagram::new(remote, mad)));
        }
        manager.handle_timeout(now);
        if now >= end {
            break;
        }
    }
});
