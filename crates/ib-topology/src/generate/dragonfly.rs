//! Dragonflies.

use std::fmt;

use super::arguments::{Arguments, in_range};
use super::error::{GenerateError, MAX_PORTS};
use super::plan::{Endpoint, Plan, Size};

/// A canonical dragonfly. It consists of groups; the switches of a group are fully connected, and each pair of groups
/// is linked.
///
/// The first A-1 ports of a switch are linked to the other switches of its group, in ascending order. The next H ports
/// are for global links, i.e. links to other groups. The last P ports are linked to hosts.
///
/// The A·H ports of a group for global links are called its channels. They are numbered from 0, switch by switch. In
/// one round, a group links one channel to each other group, in ascending order ("consecutive" assignment). There are
/// as many full rounds as possible. The remaining channels of group i are linked to the groups i+1, i-1, i+2, i-2, …
/// modulo G. If a single channel remains after these pairs, it is linked to group i+G/2 if G is even, and unused if G
/// is odd.
///
/// Kim, Dally, Scott and Abts, "Technology-Driven, Highly-Scalable Dragonfly Topology", ISCA 2008.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dragonfly {
    /// A: the number of switches per group, at least 1.
    pub switches: u32,
    /// P: the number of hosts per switch, at least 1.
    pub hosts: u32,
    /// H: the number of global links per switch, at least 1.
    pub global_links: u32,
    /// G: the number of groups, 2 to A·H+1. `None` stands for A·H+1.
    pub groups: Option<u32>,
}

impl Dragonfly {
    /// The usage line: the name of the kind, and the arguments that [`Self::parse`] reads.
    pub const USAGE: &'static str = "dragonfly a=A p=P h=H [g=G]";

    /// Parses the arguments that follow the name of the kind. The keys `a`, `p`, `h` and
    /// `g` are the letters in the paper of Kim et al.
    ///
    /// # Errors
    /// Fails if an argument is missing, surplus or malformed. [`super::generate()`] checks the values of the arguments.
    pub fn parse(args: &[&str]) -> Result<Self, GenerateError> {
        let arguments = Arguments::split(args, &["a", "p", "h", "g"], Self::USAGE)?;
        let dragonfly = Self {
            switches: arguments.require_number("a")?,
            hosts: arguments.require_number("p")?,
            global_links: arguments.require_number("h")?,
            groups: arguments.number("g")?,
        };
        arguments.finish()?;
        Ok(dragonfly)
    }

    pub(super) fn plan(self) -> Result<Plan, GenerateError> {
        for (parameter, value) in
            [("a", self.switches), ("p", self.hosts), ("h", self.global_links)]
        {
            in_range(parameter, value.into(), 1..=MAX_PORTS)?;
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
                    // A switch has no port to itself. So its port to switch i of the group is i+1 if i is lower than
                    // the index of the switch itself, and i if higher.
                    plan.link(
                        Endpoint::new(first + low, high),
                        Endpoint::new(first + high, low + 1),
                    );
                }
            }
        }
        for (one, other) in global_links(groups, a * h) {
            let end = |(group, channel): (usize, usize)| {
                Endpoint::new(group * a + channel / h, a + channel % h)
            };
            plan.link(end(one), end(other));
        }
        for switch in 0..groups * a {
            plan.attach_hosts(switch, a + h, p);
        }
        Ok(plan)
    }
}

/// A channel, i.e. a port for a global link: the index of its group, and the number of the channel within the group.
type Channel = (usize, usize);

/// Returns the pairs of channels to be linked. Each pair of groups gets at least one link.
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
    /// Writes the name of the kind, and the arguments that [`Self::parse`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "dragonfly a={} p={} h={}", self.switches, self.hosts, self.global_links)?;
        self.groups.map_or(Ok(()), |groups| write!(f, " g={groups}"))
    }
}

#[cfg(test)]
mod tests;
