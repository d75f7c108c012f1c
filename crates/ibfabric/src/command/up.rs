//! `ibfabric up`: a simulated fabric with the whole stack, in one process.

use std::path::PathBuf;

use ib_daemons::up::UpConfig;
use ib_topology::Fabric;
use ib_topology::generate::{self, Kind};

use crate::cli::up::UpArgs;
use crate::command::sm::hosted_options;
use crate::failure::{Failure, Verdict};
use crate::input;
use crate::output::{Format, Output};

/// The default fabric: kind and parameters.
const EXAMPLE: (&str, &[&str]) = ("fat-tree", &["8", "2"]);

pub(crate) fn run(args: &UpArgs, output: &mut Output) -> Result<Verdict, Failure> {
    let read = [&args.fabric, &args.script].into_iter().filter_map(Option::as_deref);
    input::distinct_files(read, args.write.as_deref().map(|path| ("write", path)))?;
    let fabric = match &args.fabric {
        Some(path) => input::fabric_file(path)?,
        None => example(),
    };
    Ok(ib_daemons::up::run(fabric, &config(args), output)?.into())
}

fn example() -> Fabric {
    let kind = Kind::parse(EXAMPLE.0, EXAMPLE.1).expect("the default fabric's kind is valid");
    generate::generate(&kind, &generate::Options::default())
        .expect("the default fabric can be generated")
}

/// Returns the path of the NBD socket of disk0.
fn nbd_place(args: &UpArgs) -> PathBuf {
    let directory = || std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let own = || directory().filter(|it| it.is_dir()).unwrap_or_else(std::env::temp_dir);
    let name = format!("ibfabric-{}.nbd", args.socket.replace('/', "-"));
    args.nbd.clone().unwrap_or_else(|| own().join(name))
}

/// Returns the configuration of `ibfabric up`, as the options specify.
fn config(args: &UpArgs) -> UpConfig {
    UpConfig {
        fabric_name: fabric_name(args),
        engine: args.engine.clone(),
        seed: args.seed,
        script: args.script.clone(),
        manager: hosted_options(&args.engine, &format!("{}-sm", args.socket)),
        socket: args.socket.clone(),
        size: args.size,
        nbd: nbd_place(args),
        http: (!args.check && !args.no_http).then(|| args.http.unwrap_or(0)),
        write: args.write.clone(),
        payload: args.payload,
        capture: args.capture.own(),
        check: args.check,
        is_json: args.format == Format::Json,
    }
}

/// Returns the name of the fabric that the web page shows.
fn fabric_name(args: &UpArgs) -> String {
    let file = args.fabric.as_ref().map(|path| path.file_name().unwrap_or(path.as_os_str()));
    match file {
        Some(name) => name.to_string_lossy().into_owned(),
        None => format!("{} {}", EXAMPLE.0, EXAMPLE.1.join(" ")),
    }
}
