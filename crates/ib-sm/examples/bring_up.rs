//! Brings up a simulated subnet in virtual time, pulls a cable, and waits until the new routes are
//! programmed.
//!
//! ```text
//! $ cargo run -p ib-sm --example bring_up
//! at … us: 32 nodes, … SMPs, … LFT entries written
//! at … us: 32 nodes, … SMPs, … LFT entries written
//! ```

use std::io::Write;

use ib_sim::{ClientId, ClientOptions, Options, Sim};
use ib_sm::{SmConfig, SmEvent, SubnetManager, SweepReport};
use ib_topology::generate::{self, Kind, generate};
use ib_types::Instant;

/// Runs until the subnet is up. Returns the report of the sweep.
fn bring_up(sim: &mut Sim, client: ClientId, manager: &mut SubnetManager) -> SweepReport {
    loop {
        let now = sim.now();
        while let Some(incoming) = sim.receive(client) {
            manager.handle(now, &incoming);
        }
        manager.handle_timeout(now);
        loop {
            while let Some(datagram) = manager.poll_transmit(now) {
                sim.submit(client, &datagram);
            }
            // The job computes the plan of the subnet. It may run in another thread; here it runs at once.
            let Some(job) = manager.poll_job() else { break };
            manager.handle_plan(now, job.run());
        }
        while let Some(event) = manager.poll_event() {
            if let SmEvent::SubnetUp(report) = event {
                return *report;
            }
        }
        let due = manager.poll_timeout().unwrap_or(Instant::NEVER);
        if !sim.run_step(due) && due < Instant::NEVER {
            sim.run_until(due);
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    let fabric = generate(&Kind::parse("torus", &["4x4"])?, &generate::Options::default())?;
    let mut sim = Sim::new(&fabric, Options::default());
    let port = sim.first_end_port().ok_or("the fabric has no host")?;
    let client = sim.attach(port, ClientOptions { is_sm: true, ..ClientOptions::default() })?;
    let guid = sim.link_port(port).port_guid;
    let mut manager = SubnetManager::new(SmConfig::default(), guid, sim.now());
    for cable in [None, Some("Unlink \"sw-x0y0\"[1]")] {
        if let Some(command) = cable {
            sim.run(&command.parse()?)?;
        }
        let report = bring_up(&mut sim, client, &mut manager);
        let (us, written) = (sim.now().as_nanos() / 1000, report.written.lft_entries);
        let (nodes, smps) = (report.nodes, report.smps);
        writeln!(out, "at {us} us: {nodes} nodes, {smps} SMPs, {written} LFT entries written")?;
    }
    Ok(())
}
