//! Dragonflies.

use std::fmt;

use super::arguments::{Arguments, in_range};
use super::error::{GenerateError, MAX_PORTS};
use super::plan::{Endpoint, Plan, Size};

/// A canonical dragonfly. It consists of groups; the switches of a group are fully connected, and each pair of groups
/// is linked.
///
/// A switch has, in the order of its ports, A-1 links to the other switches of its group (in their order), H global
/// links, and P hosts. The A·H ports for the global links of a group are called channels, and numbered switch by
/// switch. They are assigned to the other groups in ascending order, in as many full rounds as possible ("consecutive"
/// assignment). The remaining channels are linked to groups at growing distance, so that all groups have equally many
/// links. If both G and the number of remaining channels per group are odd, one channel per group is unused.
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
    /// The arguments that [`Self::parse`] reads.
    pub const USAGE: &'static str = "dragonfly a=A p=P h=H [g=G]";

    /// Parses the arguments after the name of the kind. Their keys are the letters that the paper uses.
    ///
    /// # Errors
    /// Fails if an argument is missing, surplus or malformed. [`super::generate()`] checks the values.
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
                    // A switch has no port to itself, so the port to a higher switch of the group is one lower.
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

/// A port for a global link: its group, and its number within the group.
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
    /// Writes the arguments that [`Self::parse`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "dragonfly a={} p={} h={}", self.switches, self.hosts, self.global_links)?;
        self.groups.map_or(Ok(()), |groups| write!(f, " g={groups}"))
    }
}

#[cfg(test)]
mod tests;
