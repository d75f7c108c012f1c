//! `ibfabric sim`: a simulated fabric that ibsim's clients attach to, and its console.

use std::fmt::Write as _;
use std::path::Path;

use ib_ibsim::server::{Address, Server};
use ib_sim::{Addresses, FailedStep, LogLevel, Options, Sim, Step, random_faults, read_script};
use ib_topology::{Fabric, LinkRate, NodeSpec};
use ib_tracer::TracerAgent;

use self::record::Conditions;

use crate::cli::sim::{ServeArgs, SimAction, SimArgs, console_hint};
use crate::failure::{Failure, Verdict, say};
use crate::input;
use crate::output::Output;

mod adapters;
mod capture;
mod control;
mod ctl;
mod dump;
mod manager;
mod query;
mod record;
mod residents;
mod serve;
mod sink;

pub(crate) use manager::Manager;
pub(crate) use residents::{Look, Residents};

pub(crate) fn run(args: &SimArgs, output: &mut Output) -> Result<Verdict, Failure> {
    if let Some(SimAction::Ctl(args)) = &args.action {
        return ctl::run(args, output);
    }
    let args = &args.serve;
    let path = args.fabric.as_deref().expect("clap asks for the fabric");
    if !path.exists()
        && let Some(hint) = console_hint(path)
    {
        return Err(Failure::Unusable(hint));
    }
    check_files(path, args)?;
    let fabric = input::fabric_file(path)?;
    let script = args.script.as_deref().map(text).transpose()?;
    let mut sim = simulated(&fabric, args, script.as_deref())?;
    let conditions = conditions(&fabric, args, script.as_deref());
    let addresses = addresses(&sim, args)?;
    if let Some(path) = &args.replay {
        return record::replay(&mut sim, args, &conditions, path);
    }
    let address = match args.port {
        Some(port) => Address::Port(port),
        None => Address::Name(args.socket.clone()),
    };
    let server = Server::bind(address).map_err(|error| {
        let is_named = std::env::var("IBSIM_SOCKNAME").is_ok_and(|name| name == args.socket);
        let hint = if is_named && args.port.is_none() {
            "; IBSIM_SOCKNAME in the environment names it, --socket names another one"
        } else {
            ""
        };
        Failure::Unusable(format!("{error}{hint}"))
    })?;
    serve::Serving::new(sim, addresses, server, args, &conditions)?.run(output)
}

/// Serves a fabric in which somebody lives.
pub(crate) fn serve(
    sim: Sim,
    addresses: Addresses,
    server: Server,
    args: &ServeArgs,
    residents: Box<dyn Residents>,
    output: &mut Output,
) -> Result<Verdict, Failure> {
    let serving = serve::Serving::new(sim, addresses, server, args, &Conditions::new())?;
    serving.with(residents).run(output)
}

/// Makes the fabric and tells it of everything that the options ask for.
pub(crate) fn simulated(
    fabric: &Fabric,
    args: &ServeArgs,
    script: Option<&str>,
) -> Result<Sim, Failure> {
    if fabric.node_count() == 0 {
        return Err(Failure::Unusable("the fabric has no nodes: expected at least one".to_owned()));
    }
    let options = Options {
        seed: args.seed,
        latency: args.latency,
        lane_buffer: args.lane_buffer,
        answer_within: args.answer_within,
        mtu_cap: args.mtu,
        linear_fdb_cap: args.linear_cap,
        multicast_fdb_cap: args.mcast_cap,
        log: if args.log.is_some() { args.log_level.into() } else { LogLevel::Off },
        tap: args.pcap.is_some(),
        ..Options::default()
    };
    let mut sim = Sim::new(fabric, options);
    if let Some(names) = &args.agents {
        host_agents(&mut sim, names)?;
    }
    if let (Some(path), Some(script)) = (&args.script, script) {
        let name = path.display().to_string();
        let steps = read_script(&name, script).map_err(Failure::unusable)?;
        sim.load_script(&steps).map_err(|error| {
            let line = error.line.map_or_else(String::new, |line| format!("{line}:"));
            Failure::Unusable(format!("{name}:{line} {error}"))
        })?;
    }
    let name = args.script.as_deref().map(|path| path.display().to_string());
    sim.on_failed_step(move |failed| {
        let FailedStep { at, step: Step { command, line, .. }, error, .. } = failed;
        let place = name.as_deref().zip(*line);
        let place = place.map_or_else(String::new, |(name, line)| format!("{name}:{line}: "));
        say!("{place}at {at}s {command} failed: {error}");
    });
    if args.random_faults > 0 {
        let steps = random_faults(fabric, args.seed, (args.random_time, args.random_faults));
        sim.load_script(&steps).map_err(Failure::unusable)?;
    }
    Ok(sim)
}

/// Has agents for ibtracer and ibping on nodes.
fn host_agents(sim: &mut Sim, names: &str) -> Result<(), Failure> {
    let nodes: Vec<_> = if names.is_empty() {
        sim.node_ids().collect()
    } else {
        let find = |name: &str| {
            sim.find_node(name).ok_or_else(|| {
                Failure::Unusable(format!("--agents: the fabric has no node '{name}'"))
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

fn addresses(sim: &Sim, args: &ServeArgs) -> Result<Addresses, Failure> {
    let mut addresses = Addresses::derive(sim);
    if let Some(path) = &args.addresses {
        let name = path.display().to_string();
        addresses.override_from(sim, &name, &text(path)?).map_err(Failure::unusable)?;
    }
    Ok(addresses)
}

/// Makes sure that no file is written that is read, and that none is two things at once.
fn check_files(fabric: &Path, args: &ServeArgs) -> Result<(), Failure> {
    if args.record.as_deref() == Some(Path::new("-")) {
        let message = "--record -: expected a file, which --replay reads";
        return Err(Failure::Unusable(message.to_owned()));
    }
    let read = [Some(fabric), args.script.as_deref(), args.addresses.as_deref()];
    let written = [("record", &args.record), ("pcap", &args.pcap), ("log", &args.log)];
    input::distinct_files(
        read.into_iter().chain([args.replay.as_deref()]).flatten(),
        written.into_iter().filter_map(|(option, path)| Some((option, path.as_deref()?))),
    )
}

/// Returns everything that a run depends on beside what comes in.
fn conditions(fabric: &Fabric, args: &ServeArgs, script: Option<&str>) -> Conditions {
    let sum = |text: &str| format!("{:08x}", crc32fast::hash(text.as_bytes()));
    vec![
        ("fabric", sum(&described(fabric))),
        ("seed", args.seed.to_string()),
        ("latency", format!("{:?}", args.latency)),
        ("lane-buffer", args.lane_buffer.to_string()),
        ("mtu", args.mtu.bytes().to_string()),
        ("linear-cap", args.linear_cap.to_string()),
        ("mcast-cap", args.mcast_cap.to_string()),
        ("answer-within", format!("{:?}", args.answer_within)),
        ("agents", format!("{:?}", args.agents)),
        ("script", script.map_or_else(|| "none".to_owned(), sum)),
        ("random-faults", format!("{} in {:?}", args.random_faults, args.random_time)),
    ]
}

/// Returns all of a fabric that matters to a simulator, in words.
fn described(fabric: &Fabric) -> String {
    let mut text = String::new();
    for (id, node) in fabric.nodes() {
        // All fields: one that is added must not be forgotten here.
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
        .expect("a string takes everything");
        for (_, port) in fabric.ports_of(id) {
            let peer = port.peer.map(|peer| peer.0);
            let LinkRate { width, speed } = port.rate;
            writeln!(text, "{} {} {width}{speed} {peer:?}", port.number, port.guid)
                .expect("a string takes everything");
        }
    }
    text
}

/// Reads a file of text.
pub(crate) fn text(path: &Path) -> Result<String, Failure> {
    String::from_utf8(input::bytes(path)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count() + 1;
        Failure::Unusable(format!("{}:{line}: found bytes that are not UTF-8", path.display()))
    })
}
