//! k-ary n-trees.

use std::fmt;

use super::arguments::{Arguments, in_range, number};
use super::error::{GenerateError, MAX_PORTS};
use super::plan::Plan;
use super::tree::Tree;

/// A k-ary n-tree. It has K^N hosts under N levels of K^(N-1) switches each.
///
/// Every switch has 2K ports: K ports to its children, and then K ports to its parents. Switches at the top do not use
/// the ports to parents. Apart from these ports, the tree is XGFT(N; K,..,K; 1,K,..,K).
///
/// Petrini and Vanneschi, "k-ary n-trees: High Performance Networks for Massively Parallel
/// Architectures", IPPS 1997.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KaryNTree {
    /// K, half of the ports of a switch, 2 to 127.
    pub k: u32,
    /// N, the number of levels, 1 to 12. With 13 levels, the tree would need more LIDs than a subnet has.
    pub n: u32,
}

impl KaryNTree {
    /// The usage line: the name of the kind, and the arguments that [`Self::parse`] reads.
    pub const USAGE: &'static str = "k-ary-n-tree K N";

    /// Parses the arguments that follow the name of the kind.
    ///
    /// # Errors
    /// Fails if an argument is missing, surplus or malformed. [`super::generate()`] checks the values of the arguments.
    pub fn parse(args: &[&str]) -> Result<Self, GenerateError> {
        let mut arguments = Arguments::split(args, &[], Self::USAGE)?;
        let k = number(arguments.require("K")?, "K")?;
        let n = number(arguments.require("N")?, "N")?;
        arguments.finish()?;
        Ok(Self { k, n })
    }

    pub(super) fn plan(self) -> Result<Plan, GenerateError> {
        in_range("K", self.k.into(), 2..=MAX_PORTS / 2)?;
        in_range("N", self.n.into(), 1..=12)?;
        let levels = self.n as usize;
        let mut up = vec![self.k; levels];
        up[0] = 1;
        let (down, parallel) = (vec![self.k; levels], vec![1; levels]);
        Tree { down: &down, up: &up, parallel: &parallel, radix: 2 * self.k }.plan()
    }
}

impl fmt::Display for KaryNTree {
    /// Writes the name of the kind, and the arguments that [`Self::parse`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "k-ary-n-tree {} {}", self.k, self.n)
    }
}

#[cfg(test)]
mod tests;
