//! `Dump`: prints attributes of nodes and ports, and the faults that commands have injected.

use std::fmt::Write as _;

use ib_sim::{Command, Sim, Target};
use ib_topology::{NodeId, PortId};
use serde_json::{Value, json};

use super::query::named_node;
use ib_control::lines::Reply;

/// Prints all nodes, one node, or one port of a node.
pub(super) fn dump(sim: &Sim, rest: &str) -> Reply {
    let (nodes, only): (Vec<_>, _) = if rest.is_empty() {
        (sim.node_ids().collect(), None)
    } else {
        match rest.parse::<Target>() {
            Ok(target) => match named_node(sim, &target) {
                Ok(node) => (vec![node], target.port),
                Err(error) => return Reply::failed(error),
            },
            Err(error) => return Reply::failed(error),
        }
    };
    let mut text = String::new();
    let list = nodes.into_iter().map(|node| dump_node(sim, node, only, &mut text)).collect();
    Reply::done(text, Value::Array(list))
}

fn dump_node(sim: &Sim, node: NodeId, only: Option<u8>, text: &mut String) -> Value {
    let first = sim.find_port(node, 0).expect("every node has a port 0");
    let info = sim.node_info(first);
    let (kind, guid) = (info.node_type, info.node_guid);
    line(text, &format!("{kind} {} \"{}\" {guid}", info.num_ports, sim.node_name(node)));
    let in_force = in_force("  ", &sim.active_faults_of_node(node), text);
    let numbers = u8::from(!sim.is_switch(node))..=info.num_ports;
    let ports: Vec<Value> = numbers
        .filter(|&number| only.is_none_or(|only| only == number))
        .map(|number| {
            let port = sim.find_port(node, number).expect("the node has the port");
            dump_port(sim, port, text)
        })
        .collect();
    json!({
        "node": sim.node_name(node),
        "guid": guid.to_string(),
        "type": kind.to_string(),
        "in_force": in_force,
        "ports": ports,
    })
}

fn dump_port(sim: &Sim, port: PortId, text: &mut String) -> Value {
    let (_, number) = sim.place(port);
    let info = sim.port_info(port);
    let (state, phys_state) = (info.port_state, info.phys_state);
    let peer = sim.peer(port).map(|peer| {
        let (other, number) = sim.place(peer);
        (sim.node_name(other).to_owned(), number)
    });
    let to = peer
        .as_ref()
        .map_or_else(String::new, |(name, number)| format!(" to \"{name}\"[{number}]"));
    // An M_Key of 0 is not shown, because it does not protect the port.
    let key = match info.m_key {
        0 => String::new(),
        key => format!(" m_key {key:#018x} protect {}", info.m_key_protect),
    };
    line(
        text,
        &format!(
            "  [{number}] {state} {phys_state} lid {} lmc {} sm lid {}{key}{to}",
            info.lid, info.lmc, info.master_sm_lid
        ),
    );
    let in_force = in_force("      ", &sim.active_faults_of_port(port), text);
    json!({
        "port": number,
        "state": state.to_string(),
        "phys_state": phys_state.to_string(),
        "lid": info.lid,
        "lmc": info.lmc,
        "sm_lid": info.master_sm_lid,
        "m_key": format!("{:#018x}", info.m_key),
        "m_key_protect": info.m_key_protect,
        "peer": peer.map(|(node, port)| json!({"node": node, "port": port})),
        "in_force": in_force,
    })
}

/// Appends a line to `text` for each command whose faults are still active; returns the commands as texts.
fn in_force(indent: &str, commands: &[Command], text: &mut String) -> Vec<String> {
    let words: Vec<String> = commands.iter().map(ToString::to_string).collect();
    for command in &words {
        line(text, &format!("{indent}in force: {command}"));
    }
    words
}

fn line(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("writing to a string succeeds");
}
