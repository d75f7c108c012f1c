//! The links of every switch, grouped by direction and neighbour.

use std::ops::Range;

use ib_types::NodeKind;

use super::ranking::Ranks;
use crate::subnet::{Peer, Subnet, SwitchId};

/// Value of [`Group::far`] if the neighbour is a channel adapter.
pub(super) const ADAPTER: u16 = u16::MAX;

/// The direction of a link, seen from the switch at one of its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Direction {
    /// To a channel adapter, or to a switch with a higher rank.
    Down,
    /// To a switch of the same rank.
    Sibling,
    /// To a switch with a lower rank, nearer to the roots.
    Up,
}

/// One of several parallel links between a switch and its neighbour.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    /// The neighbour's port on this link.
    pub(super) far_port: u8,
    /// Number of walks that descended over the link and reached channel adapters, see [`super::routing`]. Packets on
    /// these routes go up. Not counted if the group has only one link.
    pub(super) up_load: u32,
    /// Number of walks that climbed over the link on their main path. Packets on these routes go down. Not counted if
    /// the group has only one link.
    pub(super) down_load: u32,
}

/// All parallel links from a switch to the same neighbour.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    /// The neighbour; [`ADAPTER`] for a channel adapter.
    pub(super) far: u16,
    /// Number of links in the group.
    pub(super) links: u8,
    /// The neighbour's port on the first link.
    pub(super) far_port: u8,
    /// Index of the group's first link in the table of links. The other links follow.
    pub(super) first_link: u32,
    /// Position of the neighbour if all switches are sorted by their index, see [`super::indexing`].
    pub(super) place: u32,
    /// As [`Link::up_load`], but for all links of the group, even if there is only one.
    pub(super) up_load: u32,
    /// As [`Link::down_load`], but for all links of the group, even if there is only one.
    pub(super) down_load: u32,
}

/// Positions of the groups of a switch in the list of all groups. Groups that lead down come first, then groups to
/// siblings, then groups that lead up.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    down: u32,
    siblings: u32,
    up: u32,
    end: u32,
}

/// The groups of all switches of a tree.
///
/// The groups of a switch and direction are ordered by their lowest port, until [`Self::sort_down`] and
/// [`Self::sort_up`] order them by index.
#[derive(Debug)]
pub(super) struct Groups {
    pub(super) groups: Vec<Group>,
    pub(super) links: Vec<Link>,
    spans: Vec<Span>,
}

impl Groups {
    pub(super) fn new(subnet: &Subnet<'_>, ranks: &Ranks) -> Self {
        let mut all = Self { groups: Vec::new(), links: Vec::new(), spans: Vec::new() };
        let mut ports = Vec::new();
        for id in subnet.switch_ids() {
            ports.clear();
            for peer in subnet.peers(id) {
                ports.extend(leads_to(subnet, ranks, id, *peer));
            }
            all.add_switch(&ports);
        }
        all
    }

    /// Adds the groups of a switch. `ports` has the direction, the neighbour and the neighbour's port for each port.
    fn add_switch(&mut self, ports: &[(Direction, u16, u8)]) {
        let mut span = Span { down: self.groups.len() as u32, ..Span::default() };
        for direction in [Direction::Down, Direction::Sibling, Direction::Up] {
            let start = self.groups.len();
            for (number, &(_, far, far_port)) in
                ports.iter().enumerate().filter(|(_, (towards, ..))| *towards == direction)
            {
                let known = self.groups[start..].iter().any(|group| group.far == far);
                if far != ADAPTER && known {
                    continue;
                }
                let parallel = ports[number..].iter().filter(|&&(towards, other, _)| {
                    towards == direction && other == far && far != ADAPTER
                });
                let first_link = self.links.len() as u32;
                self.links.extend(parallel.map(|&(.., far_port)| Link {
                    far_port,
                    up_load: 0,
                    down_load: 0,
                }));
                self.groups.push(Group {
                    far,
                    links: (self.links.len() - first_link as usize) as u8,
                    far_port,
                    first_link,
                    place: 0,
                    up_load: 0,
                    down_load: 0,
                });
            }
            let end = self.groups.len() as u32;
            match direction {
                Direction::Down => span.siblings = end,
                Direction::Sibling => span.up = end,
                Direction::Up => span.end = end,
            }
        }
        self.spans.push(span);
    }

    /// Returns the positions of the groups that lead down from a switch, including groups to channel adapters.
    pub(super) fn down(&self, switch: SwitchId) -> Range<usize> {
        let span = self.spans[switch.index()];
        span.down as usize..span.siblings as usize
    }

    /// Returns the positions of the groups that lead from a switch to switches of the same rank.
    pub(super) fn siblings(&self, switch: SwitchId) -> Range<usize> {
        let span = self.spans[switch.index()];
        span.siblings as usize..span.up as usize
    }

    /// Returns the positions of the groups that lead up from a switch.
    pub(super) fn up(&self, switch: SwitchId) -> Range<usize> {
        let span = self.spans[switch.index()];
        span.up as usize..span.end as usize
    }

    /// Orders the groups that lead down from a switch by the indices of their neighbours.
    pub(super) fn sort_down(&mut self, switch: SwitchId) {
        let range = self.down(switch);
        self.groups[range].sort_by_key(|group| group.place);
    }

    /// Orders the groups that lead up from a switch by the indices of their neighbours.
    pub(super) fn sort_up(&mut self, switch: SwitchId) {
        let range = self.up(switch);
        self.groups[range].sort_by_key(|group| group.place);
    }
}

/// Returns the direction and the far end of a port's link; `None` if the engine does not use the port.
fn leads_to(
    subnet: &Subnet<'_>,
    ranks: &Ranks,
    from: SwitchId,
    peer: Peer,
) -> Option<(Direction, u16, u8)> {
    match peer {
        Peer::None => None,
        Peer::EndPort(id) => {
            let kind = subnet.end_port_node(id).kind;
            (kind == NodeKind::ChannelAdapter).then_some((Direction::Down, ADAPTER, 0))
        }
        Peer::Switch(other, far_port) => {
            let direction = match ranks.of(from).cmp(&ranks.of(other)) {
                std::cmp::Ordering::Less => Direction::Down,
                std::cmp::Ordering::Equal => Direction::Sibling,
                std::cmp::Ordering::Greater => Direction::Up,
            };
            Some((direction, other.0, far_port))
        }
    }
}
