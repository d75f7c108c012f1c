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
use std::time::Duration;

use ib_ibsim::server::{Address, Server};
use ib_sim::{Addresses, Options};
use ib_topology::Fabric;
use ib_topology::generate::{self, Kind};
use ib_types::Mtu;

use crate::cli::sim::{LevelArg, ServeArgs};
use crate::cli::up::UpArgs;
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
    let serve = serve_args(args);
    let sim = super::sim::simulated(&fabric, &serve, script(args)?.as_deref())?;
    let addresses = Addresses::derive(&sim);
    let server = Server::bind(Address::Name(args.socket.clone())).map_err(|error| {
        Failure::Unusable(format!("{error}; --socket gives this one another name"))
    })?;
    let page = page(args, &fabric)?;
    let town = Town::new(args, fabric, nbd_place(args), page)?;
    super::sim::serve(sim, addresses, server, &serve, Box::new(town), output)
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

fn script(args: &UpArgs) -> Result<Option<String>, Failure> {
    args.script.as_deref().map(super::sim::text).transpose()
}

/// Returns where programs find the device.
fn nbd_place(args: &UpArgs) -> PathBuf {
    let directory = || std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let own = || directory().filter(|it| it.is_dir()).unwrap_or_else(std::env::temp_dir);
    let name = format!("ibfabric-{}.nbd", args.socket.replace('/', "-"));
    args.nbd.clone().unwrap_or_else(|| own().join(name))
}

/// Returns what `sim` would be told for that.
fn serve_args(args: &UpArgs) -> ServeArgs {
    ServeArgs {
        fabric: args.fabric.clone(),
        socket: args.socket.clone(),
        port: None,
        sm: Some(args.engine.clone()),
        // On all nodes.
        agents: Some(String::new()),
        seed: args.seed,
        script: args.script.clone(),
        random_faults: 0,
        random_time: Duration::ZERO,
        addresses: None,
        pcap: None,
        log: None,
        log_level: LevelArg::Events,
        record: None,
        replay: None,
        latency: Options::default().latency,
        lane_buffer: Options::default().lane_buffer,
        mtu: Mtu::B4096,
        linear_cap: Options::default().linear_fdb_cap,
        mcast_cap: Options::default().multicast_fdb_cap,
        answer_within: Options::default().answer_within,
    }
}
