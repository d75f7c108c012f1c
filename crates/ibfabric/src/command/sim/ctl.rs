//! `ibfabric sim ctl`: the console of a simulator that runs.

use std::io::{BufRead, Write};
use std::net::ToSocketAddrs;

use ib_control::console::ConsoleClient;
use ib_ibsim::client::ServerAddress;
use serde_json::Value;

use crate::cli::sim::CtlArgs;
use crate::failure::{Failure, Verdict, say};
use crate::output::{Format, Output};

pub(super) fn run(args: &CtlArgs, output: &mut Output) -> Result<Verdict, Failure> {
    let name = name(args)?;
    let mut console = ConsoleClient::connect(&name).map_err(|error| {
        Failure::Unusable(format!(
            "no simulator listens on @{name}:console: {error}; \
             --socket NAME or --port N says which one is meant"
        ))
    })?;
    if !args.command.is_empty() {
        return ask(&mut console, &args.command.join(" "), None, args, output);
    }
    let mut verdict = Verdict::Good;
    for (line, number) in std::io::stdin().lock().lines().zip(1..) {
        let line = line
            .map_err(|error| Failure::Unusable(format!("cannot read standard input: {error}")))?;
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        if ask(&mut console, &line, Some(number), args, output)? == Verdict::Bad {
            verdict = Verdict::Bad;
        }
        output.flush()?;
    }
    Ok(verdict)
}

/// Returns what the console is called: as its simulator's sockets, or with the number of its port.
fn name(args: &CtlArgs) -> Result<String, Failure> {
    if let Some(name) = &args.socket {
        return Ok(name.clone());
    }
    if let Some(port) = args.port {
        return Ok(port.to_string());
    }
    match ServerAddress::from_environment().map_err(Failure::unusable)? {
        ServerAddress::Name(name) => Ok(name),
        ServerAddress::Udp { host, port } if is_loopback(&host, port) => Ok(port.to_string()),
        ServerAddress::Udp { host, .. } => Err(Failure::Unusable(format!(
            "IBSIM_SERVER_NAME is {host:?}: expected this machine, such as 127.0.0.1, since a \
             simulator's console is reached from its own machine only; --socket NAME or --port N \
             names one that runs here"
        ))),
    }
}

/// Tells whether a name means the loopback device, where every simulator of ours listens.
fn is_loopback(host: &str, port: u16) -> bool {
    let addresses = (host, port).to_socket_addrs();
    addresses.is_ok_and(|mut addresses| addresses.any(|address| address.ip().is_loopback()))
}

/// Has the simulator do or answer a line, which is that of standard input where it has a number.
fn ask(
    console: &mut ConsoleClient,
    line: &str,
    number: Option<u32>,
    args: &CtlArgs,
    output: &mut Output,
) -> Result<Verdict, Failure> {
    let answer = console
        .ask(line)
        .map_err(|error| Failure::Unusable(format!("the simulator did not answer: {error}")))?;
    let mut reply: Value = serde_json::from_str(&answer).map_err(|error| {
        Failure::Unusable(format!("the simulator's answer cannot be read: {error}"))
    })?;
    let good = reply["ok"] == Value::Bool(true);
    if args.format == Format::Json {
        if let Some(number) = number {
            reply["line"] = number.into();
        }
        output.json(&reply)?;
        return Ok(Verdict::good_if(good));
    }
    let text = reply["text"].as_str().unwrap_or_default();
    if good {
        write!(output, "{text}")?;
        if !text.is_empty() && !text.ends_with('\n') {
            writeln!(output)?;
        }
    } else {
        let place = number.map_or_else(String::new, |number| format!("stdin:{number}: "));
        say!("{place}{text}");
    }
    Ok(Verdict::good_if(good))
}
