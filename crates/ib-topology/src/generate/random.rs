//! Random graphs.

use std::fmt;

use super::arguments::{Arguments, in_range};
use super::error::{GenerateError, MAX_LIDS, MAX_PORTS};
use super::plan::{Endpoint, Plan, Size};
use ib_types::rng::Rng;

/// Number of the stream of random numbers that selects the links; see [`Rng::stream`].
const GRAPH_STREAM: u64 = 0;

/// A random connected fabric. The numbers of switch-to-switch links of any two switches differ by at most one.
///
/// The fabric is a multigraph: two switches can have several links between them, but no switch is linked to itself. A
/// random spanning tree connects all switches. The other links join randomly drawn ports, as in the configuration model
/// of random regular graphs. The links of a switch use the ports from 1 on, and its hosts use the last ports. All
/// random choices are determined by the seed in [`super::Options`].
///
/// Singla, Hong, Popa and Godfrey, "Jellyfish: Networking Data Centers Randomly", NSDI 2012.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Random {
    /// The number of switches, at least 1.
    pub switches: u32,
    /// The number of ports per switch, 1 to 254.
    pub ports: u32,
    /// The number of hosts per switch, at least 1.
    pub hosts: u32,
    /// The number of links between switches, at least the number of switches minus 1. `None` stands for as many links
    /// as possible with the ports that the hosts leave free.
    pub links: Option<u32>,
}

impl Random {
    /// The arguments that [`Self::parse`] reads.
    pub const USAGE: &'static str = "random switches=S ports=N [hosts=H] [links=L]";

    /// Parses the arguments after the name of the kind. Without `hosts`, every switch has one host.
    ///
    /// # Errors
    /// Fails if an argument is missing, surplus or malformed. [`super::generate()`] checks the values.
    pub fn parse(args: &[&str]) -> Result<Self, GenerateError> {
        let arguments =
            Arguments::split(args, &["switches", "ports", "hosts", "links"], Self::USAGE)?;
        let random = Self {
            switches: arguments.require_number("switches")?,
            ports: arguments.require_number("ports")?,
            hosts: arguments.number("hosts")?.unwrap_or(1),
            links: arguments.number("links")?,
        };
        arguments.finish()?;
        Ok(random)
    }

    pub(super) fn plan(self, seed: u64) -> Result<Plan, GenerateError> {
        let links = self.checked_links()? as usize;
        let (switches, ports, hosts) =
            (self.switches as usize, self.ports as usize, self.hosts as usize);
        let mut plan = Plan::new(Size {
            switches: switches as u64,
            switch_ports: ports as u64,
            hosts: (switches * hosts) as u64,
            host_ports: 1,
        })?;
        for index in 0..switches {
            plan.add_switch(super::plan::numbered("sw", index, switches), ports);
        }
        plan.add_hosts(switches * hosts);
        let mut used = vec![0; switches];
        let mut end = |switch: usize| {
            used[switch] += 1;
            Endpoint::new(switch, used[switch])
        };
        let mut rng = Rng::stream(seed, GRAPH_STREAM);
        for [a, b] in connected_graph(switches, links, &mut rng) {
            plan.link(end(a), end(b));
        }
        for index in 0..switches {
            plan.attach_hosts(index, ports - hosts + 1, hosts);
        }
        Ok(plan)
    }

    /// Checks all parameters, and returns the number of links between switches.
    fn checked_links(self) -> Result<u64, GenerateError> {
        let switches = u64::from(self.switches);
        in_range("switches", switches, 1..=MAX_LIDS)?;
        in_range("ports", self.ports.into(), 1..=MAX_PORTS)?;
        in_range("hosts", self.hosts.into(), 1..=self.ports.into())?;
        let free = u64::from(self.ports - self.hosts);
        let (least, most) = match switches {
            1 => (0, 0),
            _ => (switches - 1, switches * free / 2),
        };
        if least > most {
            return Err(GenerateError::Contradiction {
                found: format!("{switches} switches, each with {free} ports without a host"),
                expected: format!("at least {} ports for links", if switches == 2 { 1 } else { 2 }),
            });
        }
        let links = self.links.map_or(most, u64::from);
        in_range("links", links, least..=most)?;
        Ok(links)
    }
}

/// Returns the links of a random connected multigraph, each as the indices of its two nodes. The degrees of any two
/// nodes differ by at most one.
///
/// `links` must be at least `nodes - 1`, and 0 if there is only one node.
fn connected_graph(nodes: usize, links: usize, rng: &mut Rng) -> Vec<[usize; 2]> {
    let mut order: Vec<usize> = (0..nodes).collect();
    let mut degrees = vec![2 * links / nodes; nodes];
    for &mut node in rng.draw(&mut order, 2 * links % nodes) {
        degrees[node] += 1;
    }
    rng.shuffle(&mut order);
    // Nodes of degree 1 join the spanning tree last. Each of them uses up a free port of the tree and adds none, so the
    // tree could run out of free ports before all nodes have joined.
    order.sort_by_key(|&node| degrees[node] < 2);

    let mut graph = Vec::with_capacity(links);
    let mut free: Vec<usize> = Vec::new();
    for &node in &order {
        let joins = !free.is_empty();
        if joins {
            let peer = free.swap_remove(rng.below(free.len()));
            graph.push([peer, node]);
        }
        free.extend(std::iter::repeat_n(node, degrees[node] - usize::from(joins)));
    }
    while !free.is_empty() {
        let node = free.swap_remove(rng.below(free.len()));
        if let Some(peer) = first_from_random(&free, rng, |&peer| peer != node) {
            graph.push([node, free.swap_remove(peer)]);
            continue;
        }
        // Only `node` has free ports, at least two. Two of them are used to insert `node` into a link between two other
        // nodes. There is such a link, because all other nodes already have all of their links.
        free.pop();
        let middle = first_from_random(&graph, rng, |ends| !ends.contains(&node));
        let middle = middle.expect("some link joins two other nodes");
        let [a, b] = std::mem::replace(&mut graph[middle], [node, node]);
        graph[middle] = [a, node];
        graph.push([node, b]);
    }
    graph
}

/// Returns the index of the first item for which `is` returns true. The search starts at a random index and wraps
/// around.
fn first_from_random<T>(items: &[T], rng: &mut Rng, is: impl Fn(&T) -> bool) -> Option<usize> {
    let count = items.len();
    let start = if count == 0 { 0 } else { rng.below(count) };
    (start..start + count).map(|index| index % count).find(|&index| is(&items[index]))
}

impl fmt::Display for Random {
    /// Writes the arguments that generate this fabric, if the seed is the same.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "random switches={} ports={} hosts={}", self.switches, self.ports, self.hosts)?;
        self.links.map_or(Ok(()), |links| write!(f, " links={links}"))
    }
}

#[cfg(test)]
mod tests;
