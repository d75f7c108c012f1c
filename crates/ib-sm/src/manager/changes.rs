//! Ports and links that have appeared or disappeared between two states of the subnet.

use super::event::{LinkChange, PortChange, SmEvent};
use crate::discovered_subnet::{DiscoveredSubnet, PortIndex};
use crate::sa::subnet::Subnet;

/// Returns an event for each port and link that has appeared or disappeared between the two states.
pub(super) fn between(last: Option<&Subnet>, new: &Subnet) -> Vec<SmEvent> {
    let change = |subnet: &Subnet, port_index: PortIndex, is_new| {
        let port = PortChange {
            guid: subnet.found.port(port_index).guid,
            lids: subnet.lids(port_index),
            at: subnet.found.name(port_index),
            is_new,
            is_first: last.is_none(),
        };
        SmEvent::Port(Box::new(port))
    };
    let mut events = Vec::new();
    if let Some(last) = last {
        let is_gone = |&at: &PortIndex| new.by_guid(last.found.port(at).guid).is_none();
        events.extend(last.end_ports().filter(is_gone).map(|at| change(last, at, false)));
        let gone = links(&last.found, &new.found);
        let gone = gone.filter(|&ends| !has_link(&new.found, &last.found, ends));
        events.extend(gone.map(|ends| link(&last.found, ends, false)));
    }
    let is_new = |at: &PortIndex| {
        let guid = new.found.port(*at).guid;
        last.is_none_or(|last| last.by_guid(guid).is_none())
    };
    events.extend(new.end_ports().filter(is_new).map(|at| change(new, at, true)));
    if let Some(last) = last {
        let risen = links(&new.found, &last.found);
        let risen = risen.filter(|&ends| !has_link(&last.found, &new.found, ends));
        events.extend(risen.map(|ends| link(&new.found, ends, true)));
    }
    events
}

/// Returns the links of `found`, except those that begin at a node that is unchanged in `other`. Each link begins with
/// the end that has the lower node index or, on the same node, the lower port number.
fn links<'a>(
    found: &'a DiscoveredSubnet,
    other: &'a DiscoveredSubnet,
) -> impl Iterator<Item = (PortIndex, PortIndex)> + 'a {
    let differing = found.nodes().filter(|&(node, _)| !found.shares(other, node));
    differing.flat_map(|(node, known)| {
        let ports = (0..=u8::MAX).zip(&known.ports);
        ports.filter_map(move |(number, port)| {
            let one = node.at(number);
            port.peer.filter(|&other| one <= other).map(|other| (one, other))
        })
    })
}

/// Returns true if a link of the subnet `here` also exists in the subnet `there`.
fn has_link(
    there: &DiscoveredSubnet,
    here: &DiscoveredSubnet,
    (one, other): (PortIndex, PortIndex),
) -> bool {
    let guid = |found: &DiscoveredSubnet, port_index: PortIndex| {
        found.node(port_index.node).info.node_guid
    };
    let node = there.find(guid(here, one));
    let same = node.filter(|&node| one.port <= there.node(node).info.num_ports);
    let peer = same.and_then(|node| there.port(node.at(one.port)).peer);
    peer.is_some_and(|peer| guid(there, peer) == guid(here, other) && peer.port == other.port)
}

fn link(found: &DiscoveredSubnet, (one, other): (PortIndex, PortIndex), is_new: bool) -> SmEvent {
    let ends = (found.name(one), found.name(other));
    SmEvent::Link(Box::new(LinkChange { ends, is_new }))
}
