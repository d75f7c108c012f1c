use ib_link::MadLink;
use ib_sim::{ClientOptions, Options, Sim, SimLink};
use ib_topology::generate::{self, Kind};
use ib_types::Instant;

use super::*;

#[test]
fn a_torus_comes_up() {
    let kind = Kind::parse("torus", &["3x3", "hosts=1"]).unwrap();
    let fabric = generate::generate(&kind, &generate::Options::default()).unwrap();
    let mut sim = Sim::new(&fabric, Options::default());
    let port = sim.first_end_port().unwrap();
    let options = ClientOptions { is_sm: true, ..ClientOptions::default() };
    let mut link = SimLink::attach(&mut sim, port, options).unwrap();
    let mut manager = SubnetManager::new(SmConfig::default(), link.port().unwrap().port_guid, link.now());
    let report = loop {
        while let Some(datagram) = manager.poll_transmit(link.now()) {
            link.send(&datagram).unwrap();
        }
        if let Some(job) = manager.poll_job() {
            manager.handle_plan(link.now(), job.run());
            continue;
        }
        match manager.poll_event() {
            Some(SmEvent::SubnetUp(report)) => break report,
            Some(SmEvent::Fault(fault)) => panic!("{fault}"),
            _ => {}
        }
        link.wait(manager.poll_timeout().unwrap_or(Instant::NEVER)).unwrap();
        while let Some(incoming) = link.receive().unwrap() {
            manager.handle(link.now(), &incoming);
        }
        manager.handle_timeout(link.now());
    };
    assert_eq!(report.nodes, 18);
    assert_eq!(report.faults, 0);
}
