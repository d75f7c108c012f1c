//! `ibfabric sim`: a simulated fabric for clients of ibsim, and its console.

use std::path::Path;

use ib_daemons::sim::Simulation;
use ib_ibsim::server::{Address, Server};

use crate::cli::sim::{ServeArgs, SimAction, SimArgs, console_hint};
use crate::failure::{Failure, Verdict};
use crate::input;
use crate::output::Output;

pub(crate) mod ctl;

pub(crate) fn run(args: &SimArgs, output: &mut Output) -> Result<Verdict, Failure> {
    if let Some(SimAction::Ctl(args)) = &args.action {
        return ctl::run(args, output);
    }
    let args = &args.serve;
    let path = args.fabric.as_deref().expect("clap requires the fabric");
    if !path.exists()
        && let Some(hint) = console_hint(path)
    {
        return Err(Failure::Unusable(hint));
    }
    check_files(path, args)?;
    let fabric = input::fabric_file(path)?;
    let config = args.config();
    let simulation = Simulation::new(&fabric, &config)?;
    if let Some(path) = &args.replay {
        return Ok(simulation.replay(&config, path)?.into());
    }
    let address = match args.port {
        Some(port) => Address::Port(port),
        None => Address::Name(args.name.clone()),
    };
    let server = Server::bind(address).map_err(|error| {
        let is_named = std::env::var("IBSIM_SOCKNAME").is_ok_and(|name| name == args.name);
        let hint = if is_named && args.port.is_none() {
            "; the name is the value of IBSIM_SOCKNAME, --name selects another name"
        } else {
            ""
        };
        Failure::Unusable(format!("{error}{hint}"))
    })?;
    Ok(simulation.serve(server, &config, output)?.into())
}

/// Fails if a file is both read and written, or written by two options.
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
