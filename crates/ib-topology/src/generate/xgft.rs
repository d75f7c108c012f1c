//! Extended generalized fat trees, optionally with parallel links.

use std::fmt;

use super::arguments::{Arguments, join, list};
use super::error::GenerateError;
use super::plan::Plan;
use super::tree::Tree;

/// An extended generalized fat tree XGFT(h; m1..mh; w1..wh).
///
/// Öhring, Ibel, Das and Kumar, "On Generalized Fat Trees", IPPS 1995. With parallel links, the tree is the PGFT of
/// Zahavi, "D-Mod-K Routing", Technion CCIT report 776, 2010. Hosts are at level 0. Level i has
/// m(i+1)·…·m(h)·w(1)·…·w(i) nodes, each with m(i) children and w(i+1) parents. A switch has no more ports than it
/// needs: first the ports to its children, then the ports to its parents.
///
/// For example, `xgft 18,18,36 1,18,18` is the full tree of 36-port switches with three levels. It has 11,664 hosts,
/// 648 leaves, 648 spines and 324 cores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Xgft {
    /// m1..mh: for each level, the number of children of a node of this level, 1 to 254.
    pub down: Vec<u32>,
    /// w1..wh: for each level, the number of parents that a node of the level below has, 1 to 254.
    ///
    /// If w1 > 1, every host has w1 ports, each in a separate tree. These trees have only the hosts in common, and
    /// hosts do not forward packets. So a subnet manager discovers only one tree.
    pub up: Vec<u32>,
    /// p1..ph: for each level, the number of parallel links between a node and each of its children, 1 to 254. If
    /// empty, every number is 1.
    pub parallel: Vec<u32>,
}

impl Xgft {
    /// The arguments that [`Self::parse`] reads.
    pub const USAGE: &'static str = "xgft M1,M2,..,Mh W1,W2,..,Wh [P1,P2,..,Ph]";

    /// Parses the arguments after the name of the kind.
    ///
    /// Fails if an argument is missing, surplus or malformed. [`super::generate()`] checks the values.
    pub fn parse(args: &[&str]) -> Result<Self, GenerateError> {
        let mut arguments = Arguments::split(args, &[], Self::USAGE)?;
        let down = list(arguments.require("M1,M2,..,Mh")?, ',', "M1,M2,..,Mh")?;
        let up = list(arguments.require("W1,W2,..,Wh")?, ',', "W1,W2,..,Wh")?;
        let parallel =
            arguments.next().map(|argument| list(argument, ',', "P1,P2,..,Ph")).transpose()?;
        arguments.finish()?;
        Ok(Self { down, up, parallel: parallel.unwrap_or_default() })
    }

    pub(super) fn plan(&self) -> Result<Plan, GenerateError> {
        let ones = vec![1; self.down.len()];
        let parallel = if self.parallel.is_empty() { &ones } else { &self.parallel };
        Tree { down: &self.down, up: &self.up, parallel, radix: 0 }.plan()
    }
}

impl fmt::Display for Xgft {
    /// Writes the arguments that [`Self::parse`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "xgft {} {}", join(&self.down, ","), join(&self.up, ","))?;
        if !self.parallel.is_empty() {
            write!(f, " {}", join(&self.parallel, ","))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
