//! `ibfabric sim ctl`: commands to a running simulator.

use std::io::{BufRead, Write};
use std::net::ToSocketAddrs;

use ib_control::lines::{LineClient, Reply};
use ib_daemons::sim::SimRequest;
use ib_ibsim::client::ServerAddress;
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use crate::cli::sim::CtlArgs;
use crate::failure::{Failure, Verdict, say};
use crate::output::Output;

pub(super) fn run(args: &CtlArgs, output: &mut Output) -> Result<Verdict, Failure> {
    let name = name(args)?;
    let mut client = LineClient::connect(&name).map_err(|error| {
        Failure::Unusable(format!(
            "no simulator listens on @{name}:console: {error}; \
             --name NAME or --port N selects another one"
        ))
    })?;
    if !args.command.is_empty() {
        return request(&mut client, &args.command.join(" "), None, args, output);
    }
    let mut verdict = Verdict::Good;
    for (line, number) in std::io::stdin().lock().lines().zip(1..) {
        let line = line
            .map_err(|error| Failure::Unusable(format!("cannot read standard input: {error}")))?;
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        if request(&mut client, &line, Some(number), args, output)? == Verdict::Bad {
            verdict = Verdict::Bad;
        }
        output.flush()?;
    }
    Ok(verdict)
}

/// Returns the name of the simulator: the name of its sockets, or its UDP port number.
fn name(args: &CtlArgs) -> Result<String, Failure> {
    if let Some(name) = &args.name {
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
             simulator's console accepts local connections only; --name NAME or --port N selects \
             a simulator on this machine"
        ))),
    }
}

/// Returns true if a host is this machine.
fn is_loopback(host: &str, port: u16) -> bool {
    let addresses = (host, port).to_socket_addrs();
    addresses.is_ok_and(|mut addresses| addresses.any(|address| address.ip().is_loopback()))
}

/// Sends a command and prints the reply. `number` is the command's line number on standard input.
fn request(
    client: &mut LineClient,
    line: &str,
    number: Option<u32>,
    args: &CtlArgs,
    output: &mut Output,
) -> Result<Verdict, Failure> {
    let reply = client
        .request(&SimRequest::Command(line.to_owned()))
        .map_err(|error| Failure::Unusable(format!("the simulator did not respond: {error}")))?;
    let Reply { ok, ref text, .. } = reply;
    if args.json {
        output.json(&Numbered { line: number, reply })?;
        return Ok(Verdict::good_if(ok));
    }
    if ok {
        write!(output, "{text}")?;
        if !text.is_empty() && !text.ends_with('\n') {
            writeln!(output)?;
        }
    } else {
        let place = number.map_or_else(String::new, |number| format!("stdin:{number}: "));
        say!("{place}{text}");
    }
    Ok(Verdict::good_if(ok))
}

/// A reply as JSON. The field names are JSON keys.
#[derive(Serialize, JsonSchema)]
struct Numbered {
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(flatten)]
    reply: Reply,
}

/// Returns the JSON Schema of the output with `--json`.
pub(crate) fn schema() -> Schema {
    crate::schemas::of::<Numbered>()
}
