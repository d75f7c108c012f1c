//! The client output that is expected for a given fabric.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ib_topology::{Fabric, LinkRate, NodeId, PortId};
use ib_types::{Guid, LinkSpeed, NodeKind};

/// The two ends of a link, each as node GUID and port number. The smaller pair comes first.
type Link = ((Guid, u8), (Guid, u8));

/// Returns the differences between the fabric and the output of `ibnetdiscover`.
#[must_use]
pub fn discovered(fabric: &Fabric, output: &str) -> Vec<String> {
    let found = match ib_topology::read("ibnetdiscover", output.as_bytes()) {
        Ok(found) => found,
        Err(error) => return vec![format!("ibnetdiscover's output cannot be read: {error}")],
    };
    let mut faults = Vec::new();
    for kind in [NodeKind::Switch, NodeKind::ChannelAdapter] {
        let (expected, found) = (guids(fabric, kind), guids(&found, kind));
        if expected != found {
            faults.push(format!(
                "ibnetdiscover finds {} nodes of kind {kind:?}, the fabric has {}",
                found.len(),
                expected.len()
            ));
        }
    }
    let (expected, found) = (links(fabric), links(&found));
    for (link, rate) in &expected {
        match found.get(link) {
            None => faults.push(format!("ibnetdiscover does not find the link {}", shown(link))),
            Some(other) if other != rate => {
                faults.push(format!(
                    "ibnetdiscover prints the link {} as {} {}, not {} {}",
                    shown(link),
                    other.width,
                    other.speed,
                    rate.width,
                    rate.speed
                ));
            }
            Some(_) => {}
        }
    }
    let more = found.keys().filter(|link| !expected.contains_key(link)).count();
    if more > 0 {
        faults.push(format!("ibnetdiscover finds {more} links that the fabric does not have"));
    }
    faults.truncate(5);
    faults
}

fn shown(((a, port_a), (b, port_b)): &Link) -> String {
    format!("{a}[{port_a}] to {b}[{port_b}]")
}

fn guids(fabric: &Fabric, kind: NodeKind) -> BTreeSet<Guid> {
    // Nodes without a link are omitted, because clients cannot discover them.
    let linked = |id| fabric.ports_of(id).any(|(_, port)| port.peer.is_some());
    let nodes = fabric.nodes().filter(|&(id, node)| node.kind == kind && linked(id));
    nodes.map(|(_, node)| node.guid).collect()
}

fn links(fabric: &Fabric) -> BTreeMap<Link, LinkRate> {
    let end = |id: PortId| {
        let port = fabric.port(id);
        (fabric.node(port.node).guid, port.number)
    };
    let links = fabric.links().map(|(a, b)| {
        let (a, b) = (end(a), end(b));
        (if a < b { (a, b) } else { (b, a) }, a, b)
    });
    let rate = |(guid, number): (Guid, u8)| {
        let node = fabric.find_guid(guid).expect("the link is part of this fabric");
        let port = fabric.port_id(node, number).expect("the link is part of this fabric");
        fabric.port(port).rate
    };
    links.map(|(link, a, _)| (link, rate(a))).collect()
}

/// Counts the ends of active links with the given speed in the output of `iblinkinfo`.
#[must_use]
pub fn link_ends(iblinkinfo: &str, speed: LinkSpeed) -> usize {
    let speed = match speed {
        LinkSpeed::Sdr => "2.5 Gbps",
        LinkSpeed::Ddr => "5.0 Gbps",
        LinkSpeed::Qdr => "10.0 Gbps",
        LinkSpeed::Fdr10 => "10.0 Gbps (FDR10)",
        LinkSpeed::Fdr => "14.0625 Gbps",
        LinkSpeed::Edr => "25.78125 Gbps",
        LinkSpeed::Hdr => "53.125 Gbps",
        LinkSpeed::Ndr => "106.25 Gbps",
        LinkSpeed::Xdr => "212.5 Gbps",
    };
    let words = format!(" {speed} Active/  LinkUp)==>");
    iblinkinfo.lines().filter(|line| line.contains(&words)).count()
}

/// Returns the rate of a 4x link, in Gbit/s.
#[must_use]
pub const fn rate(speed: LinkSpeed) -> u16 {
    match speed {
        LinkSpeed::Sdr => 10,
        LinkSpeed::Ddr => 20,
        LinkSpeed::Qdr | LinkSpeed::Fdr10 => 40,
        LinkSpeed::Fdr => 56,
        LinkSpeed::Edr => 100,
        LinkSpeed::Hdr => 200,
        LinkSpeed::Ndr => 400,
        LinkSpeed::Xdr => 800,
    }
}

/// Returns the word that follows the given text in a client's output.
#[must_use]
pub fn word<'a>(output: &'a str, text: &str) -> Option<&'a str> {
    output.split_once(text)?.1.split_ascii_whitespace().next()
}

/// Returns the port that a client on the given node uses: the node's first port with a link.
#[must_use]
pub fn seat_port(fabric: &Fabric, node: &str) -> Option<PortId> {
    let node = fabric.find_name(node)?;
    fabric.ports_of(node).find(|(_, port)| port.peer.is_some()).map(|(id, _)| id)
}

/// Returns the directed routes from a port to all nodes, in the notation of infiniband-diags.
#[must_use]
pub fn directed_routes(fabric: &Fabric, from: PortId) -> BTreeMap<NodeId, String> {
    let start = fabric.port(from).node;
    let mut routes = BTreeMap::from([(start, "0".to_owned())]);
    let mut queue = VecDeque::from([start]);
    while let Some(node) = queue.pop_front() {
        // A route starts at port `from`. It passes only through switches, because other nodes do not forward packets.
        let passes = fabric.node(node).kind.is_switch();
        for (id, port) in fabric.ports_of(node) {
            let Some(peer) = fabric.peer(id) else { continue };
            if (passes || id == from) && !routes.contains_key(&peer.node) {
                let route = format!("{},{}", routes[&node], port.number);
                routes.insert(peer.node, route);
                queue.push_back(peer.node);
            }
        }
    }
    routes
}

/// Returns the links between switches whose loss leaves the fabric connected. Each link is represented by its end with
/// the lower port ID.
#[must_use]
pub fn spare_links(fabric: &Fabric) -> Vec<PortId> {
    let is_switch = |id: PortId| fabric.node(fabric.port(id).node).kind.is_switch();
    let first = |fabric: &Fabric| fabric.links().next().map(|(port, _)| port);
    let reached = |fabric: &Fabric| -> usize {
        // `directed_routes` follows all ports of a switch, but only one port if it starts at another node. Therefore
        // the search starts at a switch.
        let start = fabric.links().flat_map(|(a, b)| [a, b]).find(|&id| is_switch(id));
        let start = start.or_else(|| first(fabric));
        start.map_or(0, |port| directed_routes(fabric, port).len())
    };
    let whole = reached(fabric);
    let inner = fabric.links().filter(|&(a, b)| is_switch(a) && is_switch(b));
    inner
        .filter(|&(a, _)| {
            let mut less = fabric.clone();
            less.disconnect(a);
            reached(&less) == whole
        })
        .map(|(a, _)| a)
        .collect()
}

/// Returns the value of a counter that `perfquery` prints.
#[must_use]
pub fn counter(perfquery: &str, name: &str) -> Option<u64> {
    field(perfquery, name)?.parse().ok()
}

/// Returns the value of a field that infiniband-diags print after its name and dots.
#[must_use]
pub fn field<'a>(output: &'a str, name: &str) -> Option<&'a str> {
    let rest = output.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(rest.trim_start_matches('.').trim())
}

#[cfg(test)]
mod tests;
