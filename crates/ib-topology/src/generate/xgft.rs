//! Extended generalized fat trees, with parallel links if wanted.

use std::fmt;

use super::error::GenerateError;
use super::plan::Plan;
use super::tree::Tree;
use super::words::{Words, join, list};

/// An extended generalized fat tree XGFT(h; m1..mh; w1..wh).
///
/// Öhring, Ibel, Das and Kumar, "On Generalized Fat Trees", IPPS 1995; with parallel links the
/// PGFT of Zahavi, "D-Mod-K Routing", Technion CCIT report 776, 2010. Hosts are level 0. Level i
/// has m(i+1)·…·m(h)·w(1)·…·w(i) nodes; each has m(i) children and w(i+1) parents and just the
/// ports that it needs: the children's first, then the parents'.
///
/// `xgft 18,18,36 1,18,18` is the full three-level tree of 36-port switches: 11,664 hosts, 648
/// leaves, 648 spines and 324 cores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Xgft {
    /// m1..mh: the children of a node of each level, 1 to 254 each.
    pub down: Vec<u32>,
    /// w1..wh: the parents of a node of the level below each, 1 to 254 each. A w1 above 1 makes
    /// hosts of w1 ports, each port in a tree of its own: only the hosts join these planes, so
    /// that a subnet manager sees one of them.
    pub up: Vec<u32>,
    /// p1..ph: the parallel links between a node of each level and each of its children, 1 to 254
    /// each; empty for one everywhere.
    pub parallel: Vec<u32>,
}

impl Xgft {
    /// The words that [`Self::parse`] takes.
    pub const USAGE: &'static str = "xgft M1,M2,..,Mh W1,W2,..,Wh [P1,P2,..,Ph]";

    /// Reads the words after the kind's name.
    ///
    /// # Errors
    /// Fails on missing, surplus and unreadable words; [`super::generate()`] checks the values.
    pub fn parse(args: &[&str]) -> Result<Self, GenerateError> {
        let mut words = Words::split(args, &[], Self::USAGE)?;
        let down = list(words.expect("M1,M2,..,Mh")?, ',', "M1,M2,..,Mh")?;
        let up = list(words.expect("W1,W2,..,Wh")?, ',', "W1,W2,..,Wh")?;
        let parallel = words.next().map(|word| list(word, ',', "P1,P2,..,Ph")).transpose()?;
        words.finish()?;
        Ok(Self { down, up, parallel: parallel.unwrap_or_default() })
    }

    pub(super) fn plan(&self) -> Result<Plan, GenerateError> {
        let ones = vec![1; self.down.len()];
        let parallel = if self.parallel.is_empty() { &ones } else { &self.parallel };
        Tree { down: &self.down, up: &self.up, parallel, radix: 0 }.plan()
    }
}

impl fmt::Display for Xgft {
    /// Writes the words that make this tree.
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
