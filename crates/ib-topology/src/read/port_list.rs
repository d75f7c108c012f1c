//! Reads port lists, which `ibnetdiscover -p` prints with one line per port.
//!
//! ```text
//! SW     3  1 0x0000000000200001 4x EDR - CA     5  1 0x0000000000100005 ( 'leaf' - 'host' )
//! SW     3  2 0x0000000000200001 4x SDR                                    'leaf'
//! CA     5  1 0x0000000000100005 4x EDR - SW     3  1 0x0000000000200001 ( 'host' - 'leaf' )
//! ```
//!
//! A line of a port list contains node type, LID, port number, port GUID, width and speed and, if the port is linked,
//! the far end. Node GUIDs are missing. Each port of a channel adapter (CA) or router becomes a separate node, with the
//! port GUID as its node GUID. A switch has as many ports as the highest port number in its lines.

use std::collections::BTreeMap;

use ib_types::{Guid, Lid, Lmc, NodeKind};

use super::is_message;
use super::join::{LinkEnd, Net, Remote};
use super::narrow;
use super::rate;
use crate::fabric::{Fabric, LinkRate, NodeId, NodeSpec, PortId};
use crate::text::{Fault, Line, Lines, Location};

/// The beginning of the progress lines that `ibnetdiscover -s` prints.
pub(super) const PROGRESS: &str = "DR path ";

/// Returns true if a line starts with a node type, as the lines of a port list do.
pub(super) fn is_port_line(text: &str) -> bool {
    ["CA ", "SW ", "RT "].iter().any(|kind| text.starts_with(kind))
}

/// Reads a port list.
pub(super) fn parse(text: &str) -> Result<Fabric, Fault> {
    let mut ports = Vec::new();
    for mut line in Lines::new(text, 0, 1) {
        line.skip_blanks();
        let rest = line.rest();
        if !rest.is_empty() && !rest.starts_with(PROGRESS) && !is_message(rest) {
            ports.push(port(line)?);
        }
    }
    let mut net = Net::with_text_length(text.len() / 3);
    let nodes = add_nodes(&mut net, &ports)?;
    for listed in &ports {
        let Some((peer, peer_column, rate)) = &listed.peer else { continue };
        let id = |end: &PortEnd, location: Location| {
            let node = nodes.get(&end.guid).filter(|node| net.fabric.node(**node).kind == end.kind);
            let port = node.and_then(|&node| net.fabric.port_id(node, end.number));
            port.ok_or_else(|| {
                location.fault(format!(
                    "found a link to port {} of the {} with port GUID {}, expected that the file \
                     lists it",
                    end.number, end.kind, end.guid
                ))
            })
        };
        let peer_place = Location { column: *peer_column, ..listed.location };
        let (port, target) = (id(&listed.end, listed.location)?, id(peer, peer_place)?);
        net.declare(LinkEnd {
            location: listed.location,
            remote_column: *peer_column,
            port,
            remote: Remote::Port(target),
            remote_port: peer.number,
            guid: listed.end.guid,
            remote_guid: peer.guid,
            remote_lid: Some(peer.lid),
            rate: *rate,
        })?;
    }
    check_lids(&net)?;
    let targets = net.resolve()?;
    net.assume_guids()?;
    net.join(&targets, rate::agreed)
}

/// A line of a port list.
struct PortLine<'a> {
    location: Location,
    end: PortEnd,
    /// The port at the far end, the column at which the line names it, and the rate of the link.
    peer: Option<(PortEnd, u32, LinkRate)>,
    description: &'a str,
}

/// A port in a line: the port that the line describes, or the port at the far end.
struct PortEnd {
    kind: NodeKind,
    lid: Option<Lid>,
    number: u8,
    guid: Guid,
}

fn port(mut line: Line<'_>) -> Result<PortLine<'_>, Fault> {
    let location = line.location();
    let end = port_end(&mut line)?;
    let rates = line;
    let Some(quote) = line.rest().find('\'') else {
        return Err(line.expected("a description in quotes"));
    };
    if !line.rest()[..quote].contains(" - ") {
        // The line contains a rate although the port has no link; this rate is ignored.
        line.seek(line.position() + quote + 1);
        let description = up_to(&mut line, "'")?;
        line.end("the end of the line")?;
        return Ok(PortLine { location, end, peer: None, description });
    }
    line = rates;
    let width = rate::width(&mut line)?;
    line.skip_blanks();
    let speed = rate::speed(&mut line)?;
    line.skip_blanks();
    line.demand("-")?;
    line.skip_blanks();
    let column = line.location().column;
    let peer = port_end(&mut line)?;
    line.demand("( '")?;
    let description = up_to(&mut line, "' - '")?;
    up_to(&mut line, "' )")?;
    line.end("the end of the line")?;
    Ok(PortLine {
        location,
        end,
        peer: Some((peer, column, LinkRate { width, speed })),
        description,
    })
}

/// Reads node type, LID, port number and port GUID, as in `SW     3  1 0x0000000000200001`, and the blanks after them.
fn port_end(line: &mut Line<'_>) -> Result<PortEnd, Fault> {
    let start = *line;
    let kind = match line.letters() {
        "SW" => NodeKind::Switch,
        "CA" => NodeKind::ChannelAdapter,
        "RT" => NodeKind::Router,
        _ => return Err(start.expected("a node type: one of `SW`, `CA`, `RT`")),
    };
    line.skip_blanks();
    let lid = line.decimal("a LID, 0 to 49151", 0, u64::from(Lid::MAX_UNICAST))?;
    line.skip_blanks();
    let number = narrow(line.decimal("a port number, 1 to 254", 1, 254)?);
    line.skip_blanks();
    line.demand("0x")?;
    let guid = Guid(line.hexadecimal("a port GUID of 64 bits", u64::MAX)?);
    line.skip_blanks();
    let lid = u32::try_from(lid).ok().and_then(|lid| Lid::unicast(lid).ok());
    Ok(PortEnd { kind, lid, number, guid })
}

/// Reads the text before a delimiter, and skips the delimiter.
fn up_to<'a>(line: &mut Line<'a>, text: &str) -> Result<&'a str, Fault> {
    let rest = line.rest();
    let Some(end) = rest.find(text) else {
        line.seek(line.text().len());
        return Err(line.expected(&format!("`{text}` after the description")));
    };
    line.seek(line.position() + end + text.len());
    Ok(&rest[..end])
}

/// Adds a node for each port GUID, in the order of the lines. Returns the node of each GUID.
fn add_nodes(
    net: &mut Net<'_, LinkRate>,
    ports: &[PortLine<'_>],
) -> Result<BTreeMap<Guid, NodeId>, Fault> {
    let mut highest = BTreeMap::new();
    for PortLine { end, .. } in ports {
        let highest = highest.entry(end.guid).or_insert(end.number);
        *highest = end.number.max(*highest);
    }
    let mut nodes = BTreeMap::new();
    let mut first: BTreeMap<Guid, &PortLine<'_>> = BTreeMap::new();
    for port in ports {
        let PortLine { location, end, description, .. } = port;
        if let Some(known) = first.get(&end.guid) {
            let is_same_switch = end.kind.is_switch()
                && known.end.kind == end.kind
                && known.end.lid == end.lid
                && known.description == *description;
            if !is_same_switch {
                return Err(location.fault(format!(
                    "found port GUID {} a second time, expected it only on line {} or for ports of \
                     one switch",
                    end.guid, known.location.line
                )));
            }
            continue;
        }
        let letter = match end.kind {
            NodeKind::Switch => 'S',
            NodeKind::ChannelAdapter => 'H',
            NodeKind::Router => 'R',
        };
        let name = format!("{letter}-{:016x}", end.guid);
        let mut spec = NodeSpec::new(end.kind, name, end.guid, highest[&end.guid]);
        (*description).clone_into(&mut spec.description);
        let node = net.add_node(*location, spec)?;
        let number = if end.kind.is_switch() { 0 } else { end.number };
        net.set_guid(*location, node, number, end.guid)?;
        net.set_lid(*location, node, number, (end.lid, Lmc::ZERO))?;
        nodes.insert(end.guid, node);
        first.insert(end.guid, port);
    }
    Ok(nodes)
}

/// Checks in each line that the LID of the far end is the LID that the far end's own line contains.
fn check_lids(net: &Net<'_, LinkRate>) -> Result<(), Fault> {
    let lid = |port: PortId| {
        let port = net.fabric.port(port);
        let number = if net.fabric.node(port.node).kind.is_switch() { 0 } else { port.number };
        net.fabric.port_id(port.node, number).and_then(|owner| net.fabric.port(owner).lid)
    };
    for end in &net.ends {
        let Remote::Port(peer) = end.remote else { continue };
        let (found, expected) = (end.remote_lid.flatten(), lid(peer));
        if found != expected {
            let shown = |lid: Option<Lid>| lid.map_or(0, Lid::get);
            return Err(end.remote_location().fault(format!(
                "found LID {} for the other end, expected {} as on its own line",
                shown(found),
                shown(expected)
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
