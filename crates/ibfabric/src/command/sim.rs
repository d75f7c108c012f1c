//! `ibfabric sim`: a simulated fabric that ibsim's clients attach to, and its console.

use std::path::Path;

use ib_net::ibsim::server::{Address, Server};
use ib_sim::{Addresses, FailedStep, LogLevel, Options, Sim, Step, random_faults, read_script};
use ib_topology::Fabric;

use crate::cli::sim::{ServeArgs, SimAction, SimArgs};
use crate::failure::{Failure, Verdict, say};
use crate::input;
use crate::output::Output;

mod capture;
mod control;
mod ctl;
mod query;
mod record;
mod serve;

pub(crate) fn run(args: &SimArgs, output: &mut Output) -> Result<Verdict, Failure> {
    if let Some(SimAction::Ctl(args)) = &args.action {
        return ctl::run(args, output);
    }
    let args = &args.serve;
    let path = args.fabric.as_deref().expect("clap asks for the fabric");
    let fabric = input::fabric_file(path)?;
    let mut sim = simulated(&fabric, args)?;
    let addresses = addresses(&sim, args)?;
    if let Some(path) = &args.replay {
        return record::replay(&mut sim, args, path);
    }
    let address = match args.port {
        Some(port) => Address::Port(port),
        None => Address::Name(args.socket.clone()),
    };
    let server = Server::bind(address).map_err(Failure::unusable)?;
    serve::Serving::new(sim, addresses, server, args)?.run(output)
}

/// Makes the fabric and tells it of everything that the options ask for.
fn simulated(fabric: &Fabric, args: &ServeArgs) -> Result<Sim, Failure> {
    if fabric.node_count() == 0 {
        return Err(Failure::Unusable("the fabric has no nodes: expected at least one".to_owned()));
    }
    let options = Options {
        seed: args.seed,
        latency: args.latency,
        lane_buffer: args.lane_buffer,
        answer_within: args.answer_within,
        log: if args.log.is_some() { args.log_level.into() } else { LogLevel::Off },
        tap: args.pcap.is_some(),
        ..Options::default()
    };
    let mut sim = Sim::new(fabric, options);
    if let Some(path) = &args.script {
        let name = path.display().to_string();
        let steps = read_script(&name, &text(path)?).map_err(Failure::unusable)?;
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

fn addresses(sim: &Sim, args: &ServeArgs) -> Result<Addresses, Failure> {
    let mut addresses = Addresses::derive(sim);
    if let Some(path) = &args.addresses {
        let name = path.display().to_string();
        addresses.override_from(sim, &name, &text(path)?).map_err(Failure::unusable)?;
    }
    Ok(addresses)
}

/// Reads a file of text.
fn text(path: &Path) -> Result<String, Failure> {
    String::from_utf8(input::bytes(path)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count() + 1;
        Failure::Unusable(format!("{}:{line}: found bytes that are not UTF-8", path.display()))
    })
}
