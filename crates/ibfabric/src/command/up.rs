//! `ibfabric up` and `ibfabric selftest`: a simulated fabric with the whole stack, in one process.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use ib_daemons::up::{SelfTestConfig, Task, UpConfig};
use ib_topology::Fabric;
use ib_topology::generate::{self, Kind};

use crate::cli::up::{SelftestArgs, StackArgs, UpArgs};
use crate::command::sm::hosted_options;
use crate::failure::{Failure, Verdict};
use crate::input;
use crate::output::Output;

/// The default fabric: kind and parameters.
const EXAMPLE: (&str, &[&str]) = ("fat-tree", &["8", "2"]);

/// Runs `ibfabric up`.
pub(crate) fn run(args: &UpArgs, output: &mut Output) -> Result<Verdict, Failure> {
    let page = args
        .http
        .map_or(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), |listen| listen.with_default_port(0));
    let task = Task::Serve {
        nbd: args.nbd.clone().unwrap_or_else(|| default_nbd_socket(&args.stack.name)),
        http: (!args.no_http).then_some(page),
        capture: args.capture.own(),
    };
    start(&args.stack, args.capture.pcap.as_deref(), task, output)
}

/// Runs `ibfabric selftest`.
pub(crate) fn self_test(args: &SelftestArgs, output: &mut Output) -> Result<Verdict, Failure> {
    let task = Task::SelfTest(SelfTestConfig {
        pcap: args.pcap.clone(),
        payload: args.pcap_payload,
        is_json: args.json,
    });
    start(&args.stack, args.pcap.as_deref(), task, output)
}

/// Runs `task` on the simulated fabric. Fails if the capture file `pcap` is also an input file.
fn start(
    args: &StackArgs,
    pcap: Option<&Path>,
    task: Task,
    output: &mut Output,
) -> Result<Verdict, Failure> {
    let read = [&args.fabric, &args.script].into_iter().filter_map(Option::as_deref);
    input::distinct_files(read, pcap.map(|path| ("pcap", path)))?;
    let fabric = match &args.fabric {
        Some(path) => input::fabric_file(path)?,
        None => example(),
    };
    let config = UpConfig {
        fabric_name: fabric_name(args),
        engine: args.engine.clone(),
        seed: args.seed,
        script: args.script.clone(),
        manager: hosted_options(&args.engine, &format!("{}-sm", args.name)),
        socket: args.name.clone(),
        size: args.size,
        task,
    };
    Ok(ib_daemons::up::run(fabric, &config, output)?.into())
}

fn example() -> Fabric {
    let kind = Kind::parse(EXAMPLE.0, EXAMPLE.1).expect("the default fabric's kind is valid");
    generate::generate(&kind, &generate::Options::default())
        .expect("the default fabric can be generated")
}

/// Returns the default path of the NBD socket of disk0. `name` is the name of the simulator.
fn default_nbd_socket(name: &str) -> PathBuf {
    let directory = || std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let own = || directory().filter(|it| it.is_dir()).unwrap_or_else(std::env::temp_dir);
    own().join(format!("ibfabric-{}.nbd", name.replace('/', "-")))
}

/// Returns the name of the fabric that the web page shows.
fn fabric_name(args: &StackArgs) -> String {
    let file = args.fabric.as_ref().map(|path| path.file_name().unwrap_or(path.as_os_str()));
    match file {
        Some(name) => name.to_string_lossy().into_owned(),
        None => format!("{} {}", EXAMPLE.0, EXAMPLE.1.join(" ")),
    }
}
