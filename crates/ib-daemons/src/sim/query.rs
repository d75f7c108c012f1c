//! Executes console requests.

use std::fmt::Write as _;

use ib_control::lines::Reply;
use ib_sim::{Command, CommandError, Sim, Target};
use ib_topology::{NodeId, PortId};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::console::{CONSOLE, CONSOLE_NAMES};
use super::dump;
use super::server::SimServer;

/// A request to a running simulator. It is sent as a line of JSON, such as `{"command":"Unlink \"leaf-1\"[3]"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SimRequest {
    /// A command line of the simulator's console.
    Command(String),
}

/// Executes a request. Returns the reply, and the command if it may have changed the fabric.
pub(super) fn execute_request(server: &mut SimServer, line: &str) -> (Reply, Option<String>) {
    match serde_json::from_str(line) {
        // Line breaks are replaced, since the record of a run has one line for each command.
        Ok(SimRequest::Command(command)) => execute(server, &command.replace(['\n', '\r'], " ")),
        Err(error) => {
            let reason = format!("found `{line}`, expected {{\"command\":\"…\"}}: {error}");
            (Reply::failed(reason), None)
        }
    }
}

/// A console command that prints, or controls the server. It leaves the fabric unchanged.
struct ServerCommand {
    name: &'static str,
    takes_arguments: bool,
    /// Executes the command with its arguments.
    execute: fn(&mut SimServer, &str) -> Reply,
}

const SERVER_COMMANDS: [ServerCommand; 9] = [
    ServerCommand {
        name: "Dump",
        takes_arguments: true,
        execute: |server, arguments| dump::dump(&server.sim, arguments),
    },
    ServerCommand {
        name: "Route",
        takes_arguments: true,
        execute: |server, arguments| route(&server.sim, arguments),
    },
    ServerCommand {
        name: "Counters",
        takes_arguments: true,
        execute: |server, arguments| with_port(&server.sim, arguments, counters),
    },
    ServerCommand {
        name: "Attached",
        takes_arguments: false,
        execute: |server, _| attached(server),
    },
    ServerCommand { name: "X", takes_arguments: true, execute: drop_client },
    ServerCommand {
        name: "Addresses",
        takes_arguments: true,
        execute: |server, arguments| addresses(server, arguments),
    },
    ServerCommand { name: "Stats", takes_arguments: false, execute: |server, _| stats(server) },
    ServerCommand {
        name: "Quit",
        takes_arguments: false,
        execute: |server, _| {
            server.is_stopped = true;
            Reply::done("", Value::Null)
        },
    },
    ServerCommand { name: "help", takes_arguments: false, execute: |_, _| help() },
];

/// Returns the reply to a command of ibsim's console that this console accepts without effect, or refuses. Returns
/// `None` for other commands.
fn ibsim_command(name: &str) -> Option<Reply> {
    match name.to_ascii_lowercase().as_str() {
        "start" => Some(Reply::done("the simulator is running already", Value::Null)),
        "verbose" | "wait" => Some(Reply::failed(format!(
            "{name} is not supported: use the option --log-level, or `at TIME` in a script"
        ))),
        _ => None,
    }
}

/// Executes a command line. Returns the reply, and the command if it was passed to the fabric, even if it failed: a
/// replay must repeat failed commands, since the fabric's log contains them.
fn execute(server: &mut SimServer, line: &str) -> (Reply, Option<String>) {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    if let Some(reply) = ibsim_command(word) {
        return (reply, None);
    }
    let name = if word == "?" { "help" } else { word };
    match SERVER_COMMANDS.iter().find(|command| command.name.eq_ignore_ascii_case(name)) {
        Some(command) if !command.takes_arguments && !rest.is_empty() => {
            (Reply::failed(format!("found {rest:?}, expected nothing after {word}")), None)
        }
        Some(command) => ((command.execute)(server, rest), None),
        None => run(&mut server.sim, line),
    }
}

fn help() -> Reply {
    Reply::done(format!("{CONSOLE}{CONSOLE_NAMES}See ibfabric-sim-ctl(1).\n"), Value::Null)
}

fn drop_client(server: &mut SimServer, argument: &str) -> Reply {
    match argument.parse() {
        Ok(number) if server.drop_client(number) => Reply::done("", Value::Null),
        Ok(number) => Reply::failed(format!("no client has number {number}: see Attached")),
        Err(_) => Reply::failed(format!("found {argument:?}, expected the number of a client")),
    }
}

/// Returns the names of all commands, for error messages.
fn command_names() -> String {
    let [names @ .., last] = SERVER_COMMANDS.each_ref().map(|command| command.name);
    format!("{}, {} or {last}", Command::NAMES.replace(" or ", ", "), names.join(", "))
}

fn run(sim: &mut Sim, line: &str) -> (Reply, Option<String>) {
    let command: Command = match line.parse() {
        Ok(command) => command,
        Err(mut error) => {
            if error.expected == Command::NAMES {
                error.expected = command_names();
            }
            return (Reply::failed(error), None);
        }
    };
    let reply = match sim.run(&command) {
        Ok(()) => Reply::done("", Value::Null),
        Err(error) => Reply::failed(error),
    };
    (reply, Some(line.to_owned()))
}

fn stats(server: &SimServer) -> Reply {
    let stats = server.sim.stats();
    let refused = server.server.refused();
    let adapters = server.adapters.refused();
    let data = json!({
        "time": server.sim.now().to_string(),
        "clients": server.server.client_count(),
        "adapters": server.adapters.ports().count(),
        "hops": stats.hops,
        "delivered": stats.delivered,
        "answered": stats.answered,
        "failed_steps": stats.failed_steps,
        "lost": stats.lost,
        "refused": {
            "malformed": refused.malformed + adapters.malformed,
            "forged": refused.forged + adapters.forged,
            "overflowed": refused.overflowed + adapters.overflowed,
            "consoles": server.console.refused(),
        },
    });
    let mut text = String::new();
    for (name, value) in data.as_object().into_iter().flatten() {
        match value.as_object() {
            Some(parts) => {
                for (part, count) in parts {
                    writeln!(text, "{name}.{part} {count}").expect("writing to a string succeeds");
                }
            }
            None => {
                let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                writeln!(text, "{name} {shown}").expect("writing to a string succeeds");
            }
        }
    }
    Reply::done(text, data)
}

fn attached(server: &SimServer) -> Reply {
    let mut text = String::new();
    let mut list = Vec::new();
    for (&number, &id) in &server.clients {
        let Some(port) = server.sim.client_port(id) else { continue };
        let (node, port_number) = server.sim.place(port);
        let name = server.sim.node_name(node);
        let report = server.sim.client_report(id);
        writeln!(
            text,
            "client {number} at \"{name}\"[{port_number}]{}: sent {}, received {}, lost {}",
            if report.is_sm { ", subnet manager" } else { "" },
            report.sent,
            report.received,
            report.lost
        )
        .expect("writing to a string succeeds");
        list.push(json!({
            "client": number, "node": name, "port": port_number, "is_sm": report.is_sm,
            "sent": report.sent, "received": report.received, "lost": report.lost,
        }));
    }
    for port in server.adapters.ports() {
        let (node, port_number) = server.sim.place(port);
        let name = server.sim.node_name(node);
        writeln!(text, "adapter at \"{name}\"[{port_number}]")
            .expect("writing to a string succeeds");
        list.push(json!({ "adapter": true, "node": name, "port": port_number }));
    }
    Reply::done(text, Value::Array(list))
}

fn addresses(server: &SimServer, rest: &str) -> Reply {
    let only = if rest.is_empty() {
        None
    } else {
        match rest.parse::<Target>() {
            Ok(target) => Some(target),
            Err(error) => return Reply::failed(error),
        }
    };
    let sim = &server.sim;
    if let Some(target) = &only {
        let node = match named_node(sim, target) {
            Ok(node) => node,
            Err(error) => return Reply::failed(error),
        };
        if sim.is_switch(node) {
            return Reply::failed(format!(
                "{target} is a switch port: expected an HCA, whose ports have IP addresses"
            ));
        }
    }
    let mut text = String::new();
    let mut list = Vec::new();
    for (port, addresses) in server.addresses.iter() {
        let (node, number) = sim.place(port);
        let name = sim.node_name(node);
        let is_selected = only.as_ref().is_none_or(|target| {
            sim.find_node(&target.node) == Some(node)
                && target.port.is_none_or(|port| port == number)
        });
        if !is_selected {
            continue;
        }
        let guid = sim.link_port(port).port_guid;
        let shown: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        writeln!(text, "{guid} \"{name}\"[{number}] {}", shown.join(" "))
            .expect("writing to a string succeeds");
        list.push(json!({
            "guid": guid.to_string(), "node": name, "port": number, "addresses": shown,
        }));
    }
    Reply::done(text, Value::Array(list))
}

/// Returns the node that a target names; fails if the node does not have the target's port.
pub(super) fn named_node(sim: &Sim, target: &Target) -> Result<NodeId, CommandError> {
    if target.port.is_some() {
        return sim.target_port(target).map(|port| sim.place(port).0);
    }
    let unknown = || CommandError::NoSuchNode(target.node.clone());
    sim.find_node(&target.node).ok_or_else(unknown)
}

fn with_port(sim: &Sim, text: &str, show: fn(&Sim, PortId) -> Reply) -> Reply {
    match text.parse::<Target>() {
        Ok(target) => match sim.target_port(&target) {
            Ok(port) => show(sim, port),
            Err(error) => Reply::failed(error),
        },
        Err(error) => Reply::failed(error),
    }
}

fn counters(sim: &Sim, port: PortId) -> Reply {
    let counters = sim.counters(port);
    let data: serde_json::Map<String, Value> =
        counters.named().into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
    let mut text = String::new();
    for (name, value) in counters.named() {
        writeln!(text, "{name} {value}").expect("writing to a string succeeds");
    }
    Reply::done(text, Value::Object(data))
}

fn route(sim: &Sim, rest: &str) -> Reply {
    let mut lids = rest.split_whitespace().map(str::parse::<u16>);
    let (Some(Ok(from)), Some(Ok(to)), None) = (lids.next(), lids.next(), lids.next()) else {
        return Reply::failed(format!("found {rest:?}, expected two LIDs"));
    };
    let (steps, end) = match sim.route(from, to) {
        Ok(route) => route,
        Err(lid) => return Reply::failed(format!("no end port has LID {lid}")),
    };
    let mut text = String::new();
    let mut list = Vec::new();
    for port in steps {
        let (node, number) = sim.place(port);
        let name = sim.node_name(node);
        writeln!(text, "\"{name}\"[{number}]").expect("writing to a string succeeds");
        list.push(json!({"node": name, "port": number}));
    }
    let data = json!({"ports": list, "arrives": end.is_none(), "why": end.map(|e| e.to_string())});
    match end {
        None => Reply::done(text, data),
        Some(why) => {
            let route = text.lines().collect::<Vec<_>>().join(", ");
            Reply { ok: false, text: format!("{why}, after {route}"), data }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_has_every_command() {
        let listed: Vec<&str> = CONSOLE
            .lines()
            .filter(|line| !line.starts_with(' '))
            .filter_map(|line| line.split_whitespace().next())
            .collect();
        let names = command_names().replace(" or ", ", ");
        let expected: Vec<&str> = names.split(", ").filter(|name| *name != "help").collect();
        assert_eq!(listed, expected);
    }
}
