//! Plans trees of switches in levels. XGFT, k-ary n-tree and fat tree are special cases.

use super::arguments::in_range;
use super::error::{GenerateError, MAX_LIDS, MAX_PORTS};
use super::plan::{Endpoint, Plan, Size, numbered};

/// A parallel-ports generalized fat tree PGFT(h; m1..mh; w1..wh; p1..ph).
///
/// h is the number of levels of switches. Level 0 contains the hosts, and the levels 1 to h contain the switches. A
/// node of level i has m(i) children and w(i+1) parents. It has p(i) parallel links to each child, and p(i+1) parallel
/// links to each parent.
///
/// Definition: Zahavi, "D-Mod-K Routing Providing Non-Blocking Traffic for Shift Permutations on Real Life Fat Trees",
/// Technion CCIT report 776, 2010. If every p(i) is 1, the tree is the XGFT of Öhring, Ibel, Das and Kumar, "On
/// Generalized Fat Trees", IPPS 1995.
///
/// Each node has a label of h digits, x(h)..x(1). At a node of level i, the digit x(j) is less than w(j) if j ≤ i, and
/// less than m(j) if j > i. Two nodes of the levels i and i+1 are linked if their labels are equal, or differ only in
/// the digit x(i+1). The nodes of a level are numbered by label, with x(1) as the least significant digit. So the hosts
/// of a leaf, and the leaves of a subtree, have consecutive numbers.
#[derive(Clone, Debug)]
pub(super) struct Tree<'a> {
    /// m1..mh: m(i) is the number of children of a node of level i, at least 1.
    pub(super) down: &'a [u32],
    /// w1..wh: w(i) is the number of parents of a node of level i-1, at least 1. As many values as in `down`.
    pub(super) up: &'a [u32],
    /// p1..ph: p(i) is the number of parallel links between a node of level i and each child, at least 1. As many
    /// values as in `down`.
    pub(super) parallel: &'a [u32],
    /// The minimum number of ports of a switch, including ports that are not linked.
    pub(super) radix: u32,
}

impl Tree<'_> {
    /// Builds the plan of the tree. The leaves come first, then the other levels of switches, then the hosts.
    ///
    /// The first ports of a switch lead to its m children: parallel link k to child c uses port 1 + k·m + c. The next
    /// ports lead to its w parents: after d ports to children, parallel link k to parent y uses port 1 + d + k·w + y.
    /// Here k, c and y count from 0.
    pub(super) fn plan(&self) -> Result<Plan, GenerateError> {
        self.check()?;
        let levels = self.down.len();
        let counts: Vec<u64> = (0..=levels).map(|level| self.count(level)).collect();
        let ports: Vec<u64> = (0..=levels).map(|level| self.ports(level)).collect();
        let mut plan = Plan::new(Size {
            switches: counts[1..].iter().fold(0, |sum, &count| sum.saturating_add(count)),
            switch_ports: ports[1..].iter().copied().max().unwrap_or(0),
            hosts: counts[0],
            host_ports: ports[0],
        })?;
        let mut first = vec![0];
        for level in 1..=levels {
            first.push(plan.switch_count());
            let (name, count) = (level_name(level, levels), counts[level] as usize);
            for index in 0..count {
                plan.add_switch(numbered(&name, index, count), ports[level] as usize);
            }
        }
        plan.add_hosts(counts[0] as usize);
        for level in 0..levels {
            self.link(&mut plan, level, first[level], first[level + 1]);
        }
        Ok(plan)
    }

    /// Links the nodes of a level to their parents in the next level.
    fn link(&self, plan: &mut Plan, level: usize, first: usize, first_parent: usize) {
        let (m, w, p) =
            (self.down[level] as usize, self.up[level] as usize, self.parallel[level] as usize);
        let first_up_port = self.down_ports(level) as usize + 1;
        // The labels of linked nodes can differ only in the digit x(`level` + 1). `stride` is the place value of this
        // digit in the node numbers of both levels.
        let stride: usize = self.up[..level].iter().map(|&w| w as usize).product();
        for index in 0..self.count(level) as usize {
            let (low, child, high) = (index % stride, index / stride % m, index / stride / m);
            for copy in 0..p {
                for y in 0..w {
                    let lower = Endpoint::new(first + index, first_up_port + copy * w + y);
                    let parent = first_parent + (high * w + y) * stride + low;
                    let upper = Endpoint::new(parent, 1 + copy * m + child);
                    if level == 0 {
                        plan.host_links.push([lower, upper]);
                    } else {
                        plan.link(lower, upper);
                    }
                }
            }
        }
    }

    fn check(&self) -> Result<(), GenerateError> {
        let levels = self.down.len();
        in_range("the number of levels", levels as u64, 1..=MAX_LIDS)?;
        for (parameter, list) in [("W1,..,Wh", self.up), ("P1,..,Ph", self.parallel)] {
            if list.len() != levels {
                return Err(GenerateError::LevelCount { parameter, found: list.len(), levels });
            }
        }
        for (letter, list) in [("M", self.down), ("W", self.up), ("P", self.parallel)] {
            for (index, &value) in list.iter().enumerate() {
                in_range(format!("{letter}{}", index + 1), u64::from(value), 1..=MAX_PORTS)?;
            }
        }
        Ok(())
    }

    /// Returns the number of nodes of a level, saturated at `u64::MAX`.
    fn count(&self, level: usize) -> u64 {
        let digits = self.up[..level].iter().chain(&self.down[level..]);
        digits.fold(1, |product, &digit| product.saturating_mul(u64::from(digit)))
    }

    /// Returns the number of ports that a node of a level needs.
    fn ports(&self, level: usize) -> u64 {
        let up = match (self.up.get(level), self.parallel.get(level)) {
            (Some(&w), Some(&p)) => u64::from(w) * u64::from(p),
            _ => 0,
        };
        let used = self.down_ports(level) + up;
        if level == 0 { used } else { used.max(u64::from(self.radix)) }
    }

    fn down_ports(&self, level: usize) -> u64 {
        level
            .checked_sub(1)
            .map_or(0, |below| u64::from(self.down[below]) * u64::from(self.parallel[below]))
    }
}

/// Returns the name of the switches of a level, such as `leaf`.
fn level_name(level: usize, levels: usize) -> String {
    match (level, levels) {
        (1, _) => "leaf".to_owned(),
        (2, 2 | 3) => "spine".to_owned(),
        _ if level == levels => "core".to_owned(),
        _ => format!("level{level}"),
    }
}
