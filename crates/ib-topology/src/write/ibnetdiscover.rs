//! Writes a fabric in the format of `ibnetdiscover`.

use std::fmt::Write as _;
use std::io;

use ib_types::{Lid, NodeKind};

use super::{WriteError, check_numbers, check_text, lid_of, unrepresentable};
use crate::fabric::{Fabric, Node, NodeId, Port};

/// Writes a fabric. The nodes are written in the order of the fabric.
pub(super) fn write(fabric: &Fabric, output: &mut impl io::Write) -> Result<(), WriteError> {
    output.write_all(b"#\n# Topology file: generated on an unknown date\n#\n")?;
    if let Some((from, port)) = initiator(fabric) {
        writeln!(
            output,
            "# Initiated from node {:016x} port {:016x}",
            fabric.node(from).guid,
            port.guid
        )?;
    }
    let mut text = String::new();
    for (id, node) in fabric.nodes() {
        text.clear();
        record(fabric, id, node, &mut text)?;
        output.write_all(text.as_bytes())?;
    }
    Ok(())
}

/// Returns the port that the line `Initiated from` names: the first linked port of a channel adapter.
fn initiator(fabric: &Fabric) -> Option<(NodeId, &Port)> {
    let adapters = fabric.nodes().filter(|(_, node)| node.kind == NodeKind::ChannelAdapter);
    adapters
        .flat_map(|(id, _)| fabric.ports_of(id).map(move |(_, port)| (id, port)))
        .find(|(_, port)| port.peer.is_some())
}

fn record(fabric: &Fabric, id: NodeId, node: &Node, text: &mut String) -> Result<(), WriteError> {
    check_text(node)?;
    check_numbers(fabric, id, node)?;
    if node.name.is_empty() || node.name.contains('"') {
        return Err(unrepresentable(
            node,
            "its name",
            "a name that is not empty and has no quotes",
        ));
    }
    let _ = write!(text, "\nvendid={:#x}\ndevid={:#x}\n", node.vendor_id, node.device_id);
    if !node.system_guid.is_zero() {
        let _ = writeln!(text, "sysimgguid={:#x}", node.system_guid);
    }
    let port0 = fabric.ports_of(id).next().map(|(_, port)| *port);
    let port0 = port0.expect("every node has a port 0");
    match node.kind {
        NodeKind::Switch => {
            let kind = if node.enhanced_port0 { "enhanced" } else { "base" };
            let _ = writeln!(
                text,
                "switchguid={:#x}({:x})\nSwitch\t{} \"{}\"\t\t# \"{}\" {kind} port 0 lid {} lmc {}",
                node.guid,
                port0.guid,
                node.ports,
                node.name,
                node.description,
                port0.lid.map_or(0, Lid::get),
                port0.lmc
            );
        }
        NodeKind::ChannelAdapter | NodeKind::Router => {
            let (guid, keyword) =
                if node.kind == NodeKind::Router { ("rt", "Rt") } else { ("ca", "Ca") };
            let _ = writeln!(
                text,
                "{guid}guid={:#x}\n{keyword}\t{} \"{}\"\t\t# \"{}\"",
                node.guid, node.ports, node.name, node.description
            );
        }
    }
    for (_, port) in fabric.ports_of(id).skip(1) {
        port_line(fabric, node, port, text);
    }
    Ok(())
}

fn port_line(fabric: &Fabric, node: &Node, port: &Port, text: &mut String) {
    let Some(peer) = port.peer.map(|peer| fabric.port(peer)) else { return };
    let remote = fabric.node(peer.node);
    let is_switch = node.kind.is_switch();
    let _ = write!(text, "[{}]", port.number);
    if !is_switch {
        let _ = write!(text, "({:x}) ", port.guid);
    }
    let _ = write!(text, "\t\"{}\"[{}]", remote.name, peer.number);
    if !remote.kind.is_switch() {
        let space = if is_switch { "" } else { " " };
        let _ = write!(text, "{space}({:x}) ", peer.guid);
    }
    text.push_str("\t\t# ");
    if !is_switch {
        let _ = write!(text, "lid {} lmc {} ", port.lid.map_or(0, Lid::get), port.lmc);
    }
    let lid = lid_of(fabric, peer).map_or(0, Lid::get);
    let (width, speed) = (port.rate.width, port.rate.speed);
    let _ = writeln!(text, "\"{}\" lid {lid} {width}{speed}", remote.description);
}
