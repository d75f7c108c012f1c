//! Dragonflies.

use std::fmt;

use super::error::{GenerateError, MAX_PORTS};
use super::plan::{End, Plan, Size};
use super::words::{Words, in_range};

/// A canonical dragonfly: groups of switches, each group fully connected, each pair of groups
/// linked.
///
/// Port by port, a switch has its A-1 links within the group (to the others in their order), its
/// H global links, and its P hosts. The A·H global channels of a group, counted switch by switch,
/// go round the other groups in ascending order, and round again while every group can be reached
/// once more ("consecutive" assignment). Channels that are left over then pair groups at growing
/// distance around the ring of groups, so that all groups have equally many; when G and the left
/// over channels of a group are both odd, one port per group stays unlinked.
///
/// Kim, Dally, Scott and Abts, "Technology-Driven, Highly-Scalable Dragonfly Topology", ISCA 2008.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dragonfly {
    /// A, the switches of a group, at least 1.
    pub switches: u32,
    /// P, the hosts of a switch, at least 1.
    pub hosts: u32,
    /// H, the global links of a switch, at least 1.
    pub global_links: u32,
    /// G, the groups, 2 to A·H+1; `None` for A·H+1.
    pub groups: Option<u32>,
}

impl Dragonfly {
    /// The words that [`Self::parse`] takes.
    pub const USAGE: &'static str = "dragonfly a=A p=P h=H [g=G]";

    /// Reads the words after the kind's name, by the paper's letters.
    ///
    /// # Errors
    /// Fails on missing, surplus and unreadable words; [`super::generate()`] checks the values.
    pub fn parse(args: &[&str]) -> Result<Self, GenerateError> {
        let words = Words::split(args, &["a", "p", "h", "g"], Self::USAGE)?;
        let dragonfly = Self {
            switches: words.expect_number("a")?,
            hosts: words.expect_number("p")?,
            global_links: words.expect_number("h")?,
            groups: words.number("g")?,
        };
        words.finish()?;
        Ok(dragonfly)
    }

    pub(super) fn plan(self) -> Result<Plan, GenerateError> {
        for (what, value) in [("a", self.switches), ("p", self.hosts), ("h", self.global_links)] {
            in_range(what, value.into(), 1..=MAX_PORTS)?;
        }
        let channels = u64::from(self.switches * self.global_links);
        let groups = self.groups.map_or(channels + 1, u64::from);
        in_range("g", groups, 2..=channels + 1)?;
        let (a, p, h) = (self.switches as usize, self.hosts as usize, self.global_links as usize);
        let ports = a - 1 + h + p;
        let switches = groups * a as u64;
        let size = Size {
            switches,
            switch_ports: ports as u64,
            hosts: switches * p as u64,
            host_ports: 1,
        };
        let mut plan = Plan::new(size)?;
        let groups = groups as usize;
        for group in 0..groups {
            for switch in 0..a {
                plan.add_switch(format!("group{group}-sw{switch}"), ports);
            }
        }
        plan.add_hosts(groups * a * p);
        for first in (0..groups).map(|group| group * a) {
            for low in 0..a {
                for high in low + 1..a {
                    // Seen from either switch, the other's place among the A-1 that it is not.
                    plan.link(End::new(first + low, high), End::new(first + high, low + 1));
                }
            }
        }
        for (one, other) in global_links(groups, a * h) {
            let end = |(group, channel): (usize, usize)| {
                End::new(group * a + channel / h, a + channel % h)
            };
            plan.link(end(one), end(other));
        }
        for switch in 0..groups * a {
            plan.attach_hosts(switch, a + h, p);
        }
        Ok(plan)
    }
}

/// A group and one of its channels.
type Channel = (usize, usize);

/// Pairs the channels of `groups` groups, each with `channels` of them, at least one per peer.
fn global_links(groups: usize, channels: usize) -> Vec<(Channel, Channel)> {
    let peers = groups - 1;
    let (rounds, rest) = (channels / peers, channels % peers);
    let mut links = Vec::with_capacity(groups * channels / 2);
    for low in 0..groups {
        for high in low + 1..groups {
            for round in (0..rounds).map(|round| round * peers) {
                links.push(((low, round + high - 1), (high, round + low)));
            }
        }
    }
    let used = rounds * peers;
    for group in 0..groups {
        for step in 0..rest / 2 {
            let peer = (group + step + 1) % groups;
            links.push(((group, used + 2 * step), (peer, used + 2 * step + 1)));
        }
        if rest % 2 == 1 && groups.is_multiple_of(2) && group < groups / 2 {
            links.push(((group, channels - 1), (group + groups / 2, channels - 1)));
        }
    }
    links
}

impl fmt::Display for Dragonfly {
    /// Writes the words that make this dragonfly.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "dragonfly a={} p={} h={}", self.switches, self.hosts, self.global_links)?;
        self.groups.map_or(Ok(()), |groups| write!(f, " g={groups}"))
    }
}

#[cfg(test)]
mod tests;
