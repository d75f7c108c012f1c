//! What has changed from one state of the subnet to the next, and why it is explored.

use ib_types::Guid;

use super::{SmEvent, SubnetManager};
use crate::fault::PortName;
use crate::found::{Found, NodeIndex, Place};
use crate::sa::subnet::Subnet;

/// A port with LIDs that is there and was not, or is not there any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortChange {
    /// The port's GUID.
    pub guid: Guid,
    /// Its first and its last LID.
    pub lids: (u16, u16),
    /// Its node and its number, and the way to it.
    pub at: PortName,
    /// Whether it is there now.
    pub is_new: bool,
    /// Whether nothing was known before.
    pub is_first: bool,
}

/// A link that is there and was not, or is not there any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkChange {
    /// Both ends.
    pub ends: (PortName, PortName),
    /// Whether it is there now.
    pub is_new: bool,
}

/// Why a subnet is explored, and how much of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exploration {
    /// Why, in words.
    pub why: String,
    /// Whether all of it is; otherwise only what has told of changes.
    pub is_whole: bool,
}

impl SubnetManager {
    /// Has the whole subnet explored again, and remembers why: the first reason counts.
    pub(super) fn spoil(&mut self, why: impl Into<String>) {
        self.stale = true;
        self.why.get_or_insert_with(|| why.into());
    }

    /// Tells that the subnet is explored.
    pub(super) fn tell_exploration(&mut self, why: String, is_whole: bool) {
        self.events.push_back(SmEvent::Exploration(Exploration { why, is_whole }));
    }

    /// Returns what nodes are called, for a sentence.
    pub(super) fn names(&self, nodes: &[NodeIndex]) -> String {
        let name = |&node: &NodeIndex| {
            let node = self.found.node(node);
            format!("'{}' ({})", node.description.as_text(), node.info.node_guid)
        };
        nodes.iter().map(name).collect::<Vec<_>>().join(", ")
    }

    /// Tells which ports and links have come and gone.
    pub(super) fn tell_changes(&mut self, last: Option<&Subnet>, new: &Subnet) {
        let change = |subnet: &Subnet, place: Place, is_new| {
            let port = PortChange {
                guid: subnet.found.port(place).guid,
                lids: subnet.lids(place),
                at: subnet.found.name(place),
                is_new,
                is_first: last.is_none(),
            };
            SmEvent::Port(Box::new(port))
        };
        let events = &mut self.events;
        if let Some(last) = last {
            let is_gone = |&at: &Place| new.by_guid(last.found.port(at).guid).is_none();
            events.extend(last.end_ports().filter(is_gone).map(|at| change(last, at, false)));
            let gone = links(&last.found, &new.found);
            let gone = gone.filter(|&ends| !has_link(&new.found, &last.found, ends));
            events.extend(gone.map(|ends| link(&last.found, ends, false)));
        }
        let is_new = |at: &Place| {
            let guid = new.found.port(*at).guid;
            last.is_none_or(|last| last.by_guid(guid).is_none())
        };
        events.extend(new.end_ports().filter(is_new).map(|at| change(new, at, true)));
        if let Some(last) = last {
            let risen = links(&new.found, &last.found);
            let risen = risen.filter(|&ends| !has_link(&last.found, &new.found, ends));
            events.extend(risen.map(|ends| link(&new.found, ends, true)));
        }
    }
}

/// Returns all links, each from its lower end, but those of nodes that are the same in another state.
fn links<'a>(found: &'a Found, other: &'a Found) -> impl Iterator<Item = (Place, Place)> + 'a {
    let differing = found.nodes().filter(|&(node, _)| !found.shares(other, node));
    differing.flat_map(|(node, known)| {
        let ports = (0..=u8::MAX).zip(&known.ports);
        ports.filter_map(move |(number, port)| {
            let one = node.at(number);
            port.peer.filter(|&other| one <= other).map(|other| (one, other))
        })
    })
}

/// Returns whether a link of one state of the subnet is there in another one.
fn has_link(there: &Found, here: &Found, (one, other): (Place, Place)) -> bool {
    let guid = |found: &Found, place: Place| found.node(place.node).info.node_guid;
    let node = there.find(guid(here, one));
    let same = node.filter(|&node| one.port <= there.node(node).info.num_ports);
    let peer = same.and_then(|node| there.port(node.at(one.port)).peer);
    peer.is_some_and(|peer| guid(there, peer) == guid(here, other) && peer.port == other.port)
}

fn link(found: &Found, (one, other): (Place, Place), is_new: bool) -> SmEvent {
    let ends = (found.name(one), found.name(other));
    SmEvent::Link(Box::new(LinkChange { ends, is_new }))
}
