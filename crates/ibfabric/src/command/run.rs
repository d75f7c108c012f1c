//! `ibfabric run`: starts a program with the preload library, and sets the environment variables that select the
//! program's HCA port.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::UdpSocket;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use ib_attach::{AttachOptions, hca_daemon_name, hold, locate};
use ib_os::unix::inheritable;

use crate::cli::run::RunArgs;
use crate::cli::values::simulator;
use crate::command::hca::{EXIT_IDLE, hold_or_start};
use crate::failure::{Failure, Verdict, say};
use crate::output::Output;

/// File name of the preload library.
const LIBRARY: &str = "libib_preload.so";

/// Environment variables that the preload library reads. If another `ibfabric run` has set them, they are removed.
const VARIABLES: [&str; 8] = [
    "IBFABRIC_ATTACH",
    "IBFABRIC_NODE",
    "IBFABRIC_ROCE",
    "IBFABRIC_EXCLUSIVE",
    "IBFABRIC_ALLOW_ZERO_CHECKSUM",
    "IBFABRIC_DEVICE",
    "IBSIM_SOCKNAME",
    "SIM_HOST",
];

pub(crate) fn run(args: &RunArgs, out: &mut Output) -> Result<Verdict, Failure> {
    let environment = environment(args)?;
    if args.env {
        return print(&environment, out);
    }
    let _connection = match args.roce {
        Some(address) if is_exclusive(args) => {
            if hold(&hca_daemon_name(address)).is_ok() {
                return Err(Failure::Unusable(format!(
                    "an HCA daemon serves {address}: it exits {EXIT_IDLE} s after its last program; start the program \
                     then, or without --exclusive and --allow-zero-checksum"
                )));
            }
            None
        }
        Some(address) => {
            let unset = [&VARIABLES[..], &["LD_PRELOAD"]].concat();
            let connection = hold_or_start(address, args.hca_log.as_deref(), &unset)?;
            Some(inheritable(&connection).map_err(Failure::unusable)?)
        }
        None => None,
    };
    let (program, arguments) = args.program.split_first().expect("clap requires a program");
    out.flush()?;
    let mut command = Command::new(program);
    for name in VARIABLES {
        command.env_remove(name);
    }
    let error = command.args(arguments).envs(environment).exec();
    say!("{}: {error}", Path::new(program).display());
    // Shells exit with the same status if they cannot start a program.
    Ok(Verdict::Other(if error.kind() == ErrorKind::NotFound { 127 } else { 126 }))
}

/// Returns true if the program gets a socket of its own. `run` starts HCA daemons that do not accept UDP checksums of
/// zero.
const fn is_exclusive(args: &RunArgs) -> bool {
    args.exclusive || args.allow_zero_checksum
}

/// Returns the environment variables to set for the program.
fn environment(args: &RunArgs) -> Result<Vec<(&'static str, OsString)>, Failure> {
    let mut variables = Vec::new();
    if let Some(name) = args.attach.as_deref().map(simulator) {
        let port = AttachOptions { name: name.clone(), node: args.node.clone() };
        let place = locate(&port).map_err(Failure::unusable)?;
        let place = place.ok_or_else(|| {
            let node = args.node.as_deref().unwrap_or("a host");
            Failure::Unusable(format!("the simulator {name} has no port of {node}"))
        })?;
        variables.push(("IBFABRIC_ATTACH", name.clone().into()));
        variables.push(("IBFABRIC_NODE", format!("{}:{}", place.node, place.number).into()));
        // These variables select the same port for programs that use umad instead of verbs.
        variables.push(("IBSIM_SOCKNAME", name.into()));
        variables.push(("SIM_HOST", place.node.into()));
    }
    if let Some(address) = args.roce {
        UdpSocket::bind((address, 0)).map_err(|error| {
            Failure::Unusable(format!("{address} is not an address of this machine: {error}"))
        })?;
        variables.push(("IBFABRIC_ROCE", address.to_string().into()));
        if is_exclusive(args) {
            variables.push(("IBFABRIC_EXCLUSIVE", "1".into()));
        }
        if args.allow_zero_checksum {
            variables.push(("IBFABRIC_ALLOW_ZERO_CHECKSUM", "1".into()));
        }
    }
    variables.push(("IBFABRIC_DEVICE", args.device.clone().into()));
    variables.push(("LD_PRELOAD", preload(&library(args)?)));
    Ok(variables)
}

/// Returns the path of the preload library.
fn library(args: &RunArgs) -> Result<PathBuf, Failure> {
    let paths = match &args.library {
        Some(library) => vec![library.clone()],
        None => {
            let own = std::env::current_exe().and_then(std::fs::canonicalize);
            let own = own.map_err(Failure::unusable)?;
            let directory = own.parent().unwrap_or(Path::new("/"));
            // Searches the directory of `ibfabric`, the library directory of an installed package, and the directory
            // where cargo builds libraries for tests.
            ["", "../lib/ibfabric", "deps"].map(|at| directory.join(at).join(LIBRARY)).to_vec()
        }
    };
    let found = paths.iter().find_map(|path| std::fs::canonicalize(path).ok());
    let found = found.ok_or_else(|| {
        let places: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        Failure::Unusable(format!(
            "found no preload library at {}; `cargo install` does not install it: run \
             `cargo build --release --package ib-preload` in the repository, and specify \
             `--library target/release/{LIBRARY}`",
            places.join(" or "),
        ))
    })?;
    let mut magic = [0; 4];
    let read = File::open(&found).and_then(|mut file| file.read_exact(&mut magic));
    if read.is_err() || magic != *b"\x7fELF" {
        let found = found.display();
        return Err(Failure::Unusable(format!("{found}: expected a shared library, {LIBRARY}")));
    }
    Ok(found)
}

/// Returns the value of `LD_PRELOAD`: the preload library, followed by the libraries already in the variable.
fn preload(library: &Path) -> OsString {
    let mut value = library.as_os_str().to_owned();
    for other in std::env::var_os("LD_PRELOAD").iter().flat_map(|others| words(others)) {
        if !other.as_bytes().ends_with(LIBRARY.as_bytes()) {
            value.push(":");
            value.push(other);
        }
    }
    value
}

/// Splits the value of `LD_PRELOAD` at colons and spaces.
fn words(list: &OsStr) -> impl Iterator<Item = &OsStr> {
    let words = list.as_bytes().split(|byte| b": ".contains(byte));
    words.filter(|word| !word.is_empty()).map(OsStr::from_bytes)
}

/// Prints the variables as commands of a POSIX shell.
fn print(environment: &[(&str, OsString)], out: &mut Output) -> Result<Verdict, Failure> {
    for name in VARIABLES {
        if environment.iter().all(|(set, _)| *set != name) {
            writeln!(out, "unset {name}")?;
        }
    }
    for (name, value) in environment {
        let quoted = value.to_string_lossy().replace('\'', "'\\''");
        writeln!(out, "export {name}='{quoted}'")?;
    }
    Ok(Verdict::Good)
}
