//! Random fabrics.

use std::fmt;

use super::error::{GenerateError, MAX_LIDS, MAX_PORTS};
use super::plan::{End, Plan, Size};
use super::words::{Words, in_range};
use ib_types::rng::Rng;

/// The stream of a seed that says how a random fabric is linked.
const GRAPH_STREAM: u64 = 0;

/// A random connected fabric whose switches have equally many links, give or take one.
///
/// It is a multigraph: two switches may have several links, none has a link to itself. A random
/// spanning tree comes first and makes it connected; the other links join ports drawn at random,
/// as in the configuration model of random regular graphs. A switch's links use its ports from 1
/// on, its hosts the last ports. The seed of [`super::Options`] decides everything.
///
/// Singla, Hong, Popa and Godfrey, "Jellyfish: Networking Data Centers Randomly", NSDI 2012.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Random {
    /// The switches, at least 1.
    pub switches: u32,
    /// The ports of every switch, 1 to 254.
    pub ports: u32,
    /// Hosts on every switch, at least 1.
    pub hosts: u32,
    /// Links between switches, at least one fewer than switches; `None` for as many as the ports
    /// without hosts allow.
    pub links: Option<u32>,
}

impl Random {
    /// The words that [`Self::parse`] takes.
    pub const USAGE: &'static str = "random switches=S ports=N [hosts=H] [links=L]";

    /// Reads the words after the kind's name; one host per switch unless told.
    ///
    /// # Errors
    /// Fails on missing, surplus and unreadable words; [`super::generate()`] checks the values.
    pub fn parse(args: &[&str]) -> Result<Self, GenerateError> {
        let words = Words::split(args, &["switches", "ports", "hosts", "links"], Self::USAGE)?;
        let random = Self {
            switches: words.expect_number("switches")?,
            ports: words.expect_number("ports")?,
            hosts: words.number("hosts")?.unwrap_or(1),
            links: words.number("links")?,
        };
        words.finish()?;
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
            End::new(switch, used[switch])
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

    /// Returns the number of links, once all parameters are found to go together.
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
                what: format!("{switches} switches with {free} ports left by their hosts"),
                expected: format!("at least {} ports for links", if switches == 2 { 1 } else { 2 }),
            });
        }
        let links = self.links.map_or(most, u64::from);
        in_range("links", links, least..=most)?;
        Ok(links)
    }
}

/// Returns the ends of `links` links that connect all nodes, with degrees that differ by one at
/// most.
///
/// There must be at least one link fewer than nodes, and none with one node.
fn connected_graph(nodes: usize, links: usize, rng: &mut Rng) -> Vec<[usize; 2]> {
    let mut order: Vec<usize> = (0..nodes).collect();
    let mut degrees = vec![2 * links / nodes; nodes];
    for &mut node in rng.draw(&mut order, 2 * links % nodes) {
        degrees[node] += 1;
    }
    rng.shuffle(&mut order);
    // Nodes of degree 1 join last: earlier, they could use up the ports that the rest needs.
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
        // Only this node has ports left, two at least: it is put in the middle of a link of
        // others. There is one, for all others have their full degree and this one has not.
        free.pop();
        let middle = first_from_random(&graph, rng, |ends| !ends.contains(&node));
        let middle = middle.expect("some link joins two other nodes");
        let [a, b] = std::mem::replace(&mut graph[middle], [node, node]);
        graph[middle] = [a, node];
        graph.push([node, b]);
    }
    graph
}

/// Returns the index of the first item that satisfies a condition, from a random place on and
/// around.
fn first_from_random<T>(items: &[T], rng: &mut Rng, is: impl Fn(&T) -> bool) -> Option<usize> {
    let count = items.len();
    let start = if count == 0 { 0 } else { rng.below(count) };
    (start..start + count).map(|index| index % count).find(|&index| is(&items[index]))
}

impl fmt::Display for Random {
    /// Writes the words that, with the seed, make this fabric.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "random switches={} ports={} hosts={}", self.switches, self.ports, self.hosts)?;
        self.links.map_or(Ok(()), |links| write!(f, " links={links}"))
    }
}

#[cfg(test)]
mod tests;
