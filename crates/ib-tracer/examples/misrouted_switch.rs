//! Finds a misrouted switch port by tracing a path, on a simulated fabric in virtual time.
//!
//! ```text
//! $ cargo run -p ib-tracer --example misrouted_switch
//! 4 hops, good
//! 4 hops, hop 2 is Misdirected { actual: None, left: Some(Sent(1)) }
//! ```

use std::io::Write;

use ib_sim::{ClientId, ClientOptions, Options, Sim};
use ib_sm::{SmConfig, SmEvent, SubnetManager};
use ib_topology::generate::{self, Kind, generate};
use ib_tracer::{Target, Trace, TraceError, Tracer, TracerAgent, TracerConfig};
use ib_types::Instant;

/// Runs the simulation until the next event of the fabric, or until `due` if no event comes before.
fn step(sim: &mut Sim, due: Option<Instant>) {
    let due = due.unwrap_or(Instant::NEVER);
    if !sim.run_step(due) && due < Instant::NEVER {
        sim.run_until(due);
    }
}

/// Runs an SM until the subnet is up.
fn bring_up(sim: &mut Sim, client: ClientId, mut manager: SubnetManager) {
    while !std::iter::from_fn(|| manager.poll_event()).any(|it| matches!(it, SmEvent::SubnetUp(_)))
    {
        while let Some(datagram) = manager.poll_transmit(sim.now()) {
            sim.submit(client, &datagram);
        }
        match manager.poll_job() {
            Some(job) => manager.handle_plan(sim.now(), job.run()),
            None => step(sim, manager.poll_timeout()),
        }
        while let Some(incoming) = sim.receive(client) {
            manager.handle(sim.now(), &incoming);
        }
        manager.handle_timeout(sim.now());
    }
}

/// Traces the path to a LID.
fn trace(sim: &mut Sim, client: ClientId, mut tracer: Tracer) -> Result<Trace, TraceError> {
    loop {
        while let Some(datagram) = tracer.poll_transmit(sim.now()) {
            sim.submit(client, &datagram);
        }
        if let Some((_, trace)) = tracer.poll_event() {
            return trace;
        }
        step(sim, tracer.poll_timeout());
        while let Some(incoming) = sim.receive(client) {
            tracer.handle(sim.now(), &incoming);
        }
        tracer.handle_timeout(sim.now());
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let fabric = generate(&Kind::parse("xgft", &["2,2", "1,2"])?, &generate::Options::default())?;
    let mut sim = Sim::new(&fabric, Options::default());
    for node in sim.node_ids().collect::<Vec<_>>() {
        sim.host(node, Box::new(TracerAgent::new("example".to_owned())));
    }
    let port = sim.first_end_port().ok_or("the fabric has no host")?;
    let client = sim.attach(port, ClientOptions { is_sm: true, ..ClientOptions::default() })?;
    let guid = sim.link_port(port).port_guid;
    let manager = SubnetManager::new(SmConfig::default(), guid, sim.now());
    bring_up(&mut sim, client, manager);

    let client = sim.attach(port, ClientOptions { queue_pair: 1, ..ClientOptions::default() })?;
    let hosts = sim.node_ids().filter(|&node| !sim.is_switch(node));
    let last =
        hosts.filter_map(|node| sim.end_port(node)).last().ok_or("the fabric has no host")?;
    let lid = sim.link_port(last).lid;
    for _ in 0..2 {
        let mut tracer = Tracer::new(&TracerConfig::default(), sim.link_port(port));
        tracer.start(None, Target::Lid(lid))?;
        let trace = trace(&mut sim, client, tracer)?;
        let bad = (1..).zip(&trace.hops).find(|(_, (_, verdict))| verdict.is_bad());
        let what = bad.map_or("good".to_owned(), |(hop, (_, it))| format!("hop {hop} is {it:?}"));
        writeln!(std::io::stdout(), "{} hops, {what}", trace.hops.len())?;
        // From now on, switch leaf-0 sends packets out of port 1 if its LFT assigns them to this hop's output port.
        let (hop, _) = &trace.hops[1];
        sim.run(&format!("Misroute \"leaf-0\" {} 1", hop.out).parse()?)?;
    }
    Ok(())
}
