//! `ibfabric up`: a fabric with everything on it, in one process.
//!
//! | module | holds |
//! |---|---|
//! | `town` | the hosts: names at each, a block device between some |
//! | `tour` | what is looked at and tried by `--check` |
//! | `page` | the page for browsers |
//! | `exercise` | something for the block device to do |
//! | `pass`, `tables` | what tour, exercise and page share: the device written and read, the tables of switches |
//! | `record` | the packets of the device's queue pairs, in a file |

use std::path::PathBuf;

use ib_daemons::sim::{SimConfig, Simulation};
use ib_ibsim::server::{Address, Server};
use ib_topology::Fabric;
use ib_topology::generate::{self, Kind};
use ib_types::Mtu;

use crate::cli::up::UpArgs;
use crate::command::sm::hosted_options;
use crate::failure::{Failure, Verdict};
use crate::input;
use crate::output::Output;

mod exercise;
#[cfg(test)]
mod lab;
mod page;
mod pass;
mod record;
mod tables;
mod tour;
mod town;

use page::Page;
use town::Town;

/// The fabric without a file.
const EXAMPLE: (&str, &[&str]) = ("fat-tree", &["8", "2"]);

pub(crate) fn run(args: &UpArgs, output: &mut Output) -> Result<Verdict, Failure> {
    let read = [&args.fabric, &args.script].into_iter().filter_map(Option::as_deref);
    input::distinct_files(read, args.write.as_deref().map(|path| ("write", path)))?;
    let fabric = match &args.fabric {
        Some(path) => input::fabric_file(path)?,
        None => example(),
    };
    let config = sim_config(args);
    let simulation = Simulation::new(&fabric, &config)?;
    let server = Server::bind(Address::Name(args.socket.clone())).map_err(|error| {
        Failure::Unusable(format!("{error}; --socket gives this one another name"))
    })?;
    let page = page(args, &fabric)?;
    let town = Town::new(args, fabric, nbd_place(args), page)?;
    Ok(simulation.serve(server, &config, Some(Box::new(town)), output)?.into())
}

fn example() -> Fabric {
    let kind = Kind::parse(EXAMPLE.0, EXAMPLE.1).expect("it is a kind");
    generate::generate(&kind, &generate::Options::default()).expect("it can be made")
}

/// Serves the page, unless nobody is to see one.
fn page(args: &UpArgs, fabric: &Fabric) -> Result<Option<Page>, Failure> {
    if args.check || args.no_http {
        return Ok(None);
    }
    let file = args.fabric.as_ref().map(|path| path.file_name().unwrap_or(path.as_os_str()));
    let name = match file {
        Some(name) => name.to_string_lossy().into_owned(),
        None => format!("{} {}", EXAMPLE.0, EXAMPLE.1.join(" ")),
    };
    let names = (&*name, &*args.engine.to_string(), &*args.socket);
    Page::start(args.http.unwrap_or(0), fabric.clone(), names).map(Some)
}

/// Returns where programs find the device.
fn nbd_place(args: &UpArgs) -> PathBuf {
    let directory = || std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let own = || directory().filter(|it| it.is_dir()).unwrap_or_else(std::env::temp_dir);
    let name = format!("ibfabric-{}.nbd", args.socket.replace('/', "-"));
    args.nbd.clone().unwrap_or_else(|| own().join(name))
}

/// Returns the configuration of the simulator: a manager, and agents on all nodes.
fn sim_config(args: &UpArgs) -> SimConfig {
    SimConfig {
        manager: Some(hosted_options(&args.engine, &format!("{}-sm", args.socket))),
        agents: Some(String::new()),
        seed: args.seed,
        script: args.script.clone(),
        mtu: Mtu::B4096,
        ..SimConfig::default()
    }
}
