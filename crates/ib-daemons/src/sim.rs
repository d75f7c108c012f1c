//! The simulator daemon. It simulates a fabric for clients of the ibsim protocol and for HCAs of other processes, and
//! has a console.
//!
//! | module | holds |
//! |---|---|
//! | `config` | [`SimConfig`], the configuration of the simulator |
//! | `server` | the fabric with the sockets of its clients, its SM and its files |
//! | `serve` | the event loop of the simulator |
//! | `adapters` | HCAs of other processes |
//! | `console`, `query`, `dump` | commands of the console and their replies |
//! | `control` | replies to control messages of ibsim clients |
//! | `manager` | the subnet manager at the first host |
//! | `record`, `capture`, `sink` | recording and replay, packet captures, and their output files |

use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

use ib_ibsim::server::Server;
use ib_sim::{Addresses, FailedStep, LogLevel, Options, Sim, Step, random_faults, read_script};
use ib_topology::{Fabric, LinkRate, NodeSpec};
use ib_tracer::TracerAgent;

use self::record::Conditions;
use crate::error::{DaemonError, Verdict};
use crate::input::text;
use crate::message::say;

mod adapters;
mod capture;
mod config;
mod console;
mod control;
mod dump;
mod manager;
mod query;
mod record;
mod serve;
mod server;
mod sink;

pub use config::SimConfig;
pub use console::{CONSOLE, CONSOLE_NAMES};
pub(crate) use manager::Manager;
pub use query::SimRequest;
pub(crate) use server::SimServer;

/// A simulated fabric that is not served yet.
pub struct Simulation {
    sim: Sim,
    addresses: Addresses,
    conditions: Conditions,
}

impl Simulation {
    /// Creates the fabric with the agents, faults and IP addresses that the configuration specifies.
    ///
    /// # Errors
    /// Fails if a file cannot be read, or if the configuration names a node that the fabric does not have.
    pub fn new(fabric: &Fabric, config: &SimConfig) -> Result<Self, DaemonError> {
        let script = config.script.as_deref().map(text).transpose()?;
        let sim = simulated(fabric, config, script.as_deref())?;
        let conditions = conditions(fabric, config, script.as_deref());
        let addresses = addresses(&sim, config)?;
        Ok(Self { sim, addresses, conditions })
    }

    /// Replays the record of an earlier run on the fabric.
    ///
    /// # Errors
    /// Fails if the record was made with a different fabric or configuration.
    pub fn replay(mut self, config: &SimConfig, path: &Path) -> Result<Verdict, DaemonError> {
        record::replay(&mut self.sim, config, &self.conditions, path)
    }

    /// Serves the fabric until a signal or the console command `Quit` stops the simulator.
    ///
    /// # Errors
    /// Fails if a socket cannot be opened, if a file cannot be written, or if the SM cannot bring up the subnet.
    pub fn serve(
        self,
        server: Server,
        config: &SimConfig,
        output: &mut dyn Write,
    ) -> Result<Verdict, DaemonError> {
        serve::run(self.into_server(server, config)?, output)
    }

    /// Converts the simulation into a server of the fabric. The caller runs the event loop of this server.
    pub(crate) fn into_server(
        self,
        server: Server,
        config: &SimConfig,
    ) -> Result<SimServer, DaemonError> {
        let Self { sim, addresses, conditions } = self;
        SimServer::new(sim, addresses, server, config, &conditions)
    }
}

/// Creates the fabric and loads agents, scripts and random faults.
fn simulated(
    fabric: &Fabric,
    config: &SimConfig,
    script: Option<&str>,
) -> Result<Sim, DaemonError> {
    if fabric.node_count() == 0 {
        return Err(DaemonError::Failed(
            "the fabric has no nodes: expected at least one".to_owned(),
        ));
    }
    let options = Options {
        seed: config.seed,
        latency: config.latency,
        vl_buffer: config.lane_buffer,
        answer_within: config.answer_within,
        mtu_cap: config.mtu,
        linear_fdb_cap: config.linear_cap,
        multicast_fdb_cap: config.mcast_cap,
        log: if config.log.is_some() { config.log_level } else { LogLevel::Off },
        tap: config.pcap.is_some(),
        ..Options::default()
    };
    let mut sim = Sim::new(fabric, options);
    if let Some(names) = &config.agents {
        host_agents(&mut sim, names)?;
    }
    if let (Some(path), Some(script)) = (&config.script, script) {
        let name = path.display().to_string();
        let steps = read_script(&name, script).map_err(DaemonError::failed)?;
        sim.load_script(&steps).map_err(|error| {
            let line = error.line.map_or_else(String::new, |line| format!("{line}:"));
            DaemonError::Failed(format!("{name}:{line} {error}"))
        })?;
    }
    let name = config.script.as_deref().map(|path| path.display().to_string());
    sim.on_failed_step(move |failed| {
        let FailedStep { at, step: Step { command, line, .. }, error, .. } = failed;
        let place = name.as_deref().zip(*line);
        let place = place.map_or_else(String::new, |(name, line)| format!("{name}:{line}: "));
        say!("{place}at {at}s {command} failed: {error}");
    });
    if config.random_faults > 0 {
        let steps =
            random_faults(fabric, config.seed, config.random_time, config.random_faults as usize);
        sim.load_script(&steps).map_err(DaemonError::failed)?;
    }
    Ok(sim)
}

/// Adds to each named node an agent that responds to ibtracer and ibping. Empty `names` stand for all nodes.
fn host_agents(sim: &mut Sim, names: &str) -> Result<(), DaemonError> {
    let nodes: Vec<_> = if names.is_empty() {
        sim.node_ids().collect()
    } else {
        let find = |name: &str| {
            sim.find_node(name).ok_or_else(|| {
                DaemonError::Failed(format!("--agents: the fabric has no node '{name}'"))
            })
        };
        names.split(',').map(|name| find(name.trim())).collect::<Result<_, _>>()?
    };
    for node in nodes {
        let agent = TracerAgent::new(sim.node_name(node));
        sim.host(node, Box::new(agent));
    }
    Ok(())
}

fn addresses(sim: &Sim, config: &SimConfig) -> Result<Addresses, DaemonError> {
    let mut addresses = Addresses::derive(sim);
    if let Some(path) = &config.addresses {
        let name = path.display().to_string();
        addresses.override_from(sim, &name, &text(path)?).map_err(DaemonError::failed)?;
    }
    Ok(addresses)
}

/// Returns all conditions on which a run depends, except its input. A replay compares them with those of the record.
fn conditions(fabric: &Fabric, config: &SimConfig, script: Option<&str>) -> Conditions {
    let sum = |text: &str| format!("{:08x}", crc32fast::hash(text.as_bytes()));
    let agents = match config.agents.as_deref() {
        None => "none",
        Some("") => "all nodes",
        Some(nodes) => nodes,
    };
    vec![
        ("fabric", sum(&described(fabric))),
        ("seed", config.seed.to_string()),
        ("latency", format!("{:?}", config.latency)),
        ("lane-buffer", config.lane_buffer.to_string()),
        ("mtu", config.mtu.bytes().to_string()),
        ("linear-cap", config.linear_cap.to_string()),
        ("mcast-cap", config.mcast_cap.to_string()),
        ("answer-within", format!("{:?}", config.answer_within)),
        ("agents", agents.to_owned()),
        ("script", script.map_or_else(|| "none".to_owned(), sum)),
        ("random-faults", format!("{} in {:?}", config.random_faults, config.random_time)),
    ]
}

/// Returns a text that contains all attributes of the fabric that affect the simulation.
fn described(fabric: &Fabric) -> String {
    let mut text = String::new();
    for (id, node) in fabric.nodes() {
        // This pattern lists all fields, so that a new field causes a compiler error here.
        let NodeSpec {
            kind,
            name,
            guid,
            system_guid,
            description,
            ports,
            vendor_id,
            device_id,
            revision,
            enhanced_port0,
        } = &**node;
        writeln!(
            text,
            "{kind} {name:?} {guid} {system_guid} {description:?} {ports} \
             {vendor_id} {device_id} {revision} {enhanced_port0}"
        )
        .expect("writing to a string succeeds");
        for (_, port) in fabric.ports_of(id) {
            let peer = port.peer.map(|peer| peer.0);
            let LinkRate { width, speed } = port.rate;
            writeln!(text, "{} {} {width}{speed} {peer:?}", port.number, port.guid)
                .expect("writing to a string succeeds");
        }
    }
    text
}
