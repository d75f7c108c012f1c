//! Hypercubes.

use std::fmt;

use super::arguments::{Arguments, in_range, number};
use super::error::GenerateError;
use super::plan::{Endpoint, Plan, Size};

/// A binary hypercube with 2^D switches. Two switches are linked if their numbers differ in exactly one bit.
///
/// Dimension i (from 0) is bit i of the switch number, and its links use port i+1 at both ends, as dimension order
/// routing requires. The hosts use the next ports, and are numbered in the order of their switches.
///
/// Dally and Towles, "Principles and Practices of Interconnection Networks", 2004, chapter 5 (2-ary
/// n-cubes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hypercube {
    /// D, the number of dimensions, 1 to 14. With 15 dimensions, switches and hosts would need more LIDs than a subnet
    /// has.
    pub dimensions: u32,
    /// The number of hosts on every switch, at least 1.
    pub hosts: u32,
}

impl Hypercube {
    /// The usage line: the name of the kind, and the arguments that [`Self::parse`] reads.
    pub const USAGE: &'static str = "hypercube D [hosts=N]";

    /// Parses the arguments that follow the name of the kind. If `hosts` is missing, every switch has one host.
    ///
    /// # Errors
    /// Fails if an argument is missing, surplus or malformed. [`super::generate()`] checks the values of the arguments.
    pub fn parse(args: &[&str]) -> Result<Self, GenerateError> {
        let mut arguments = Arguments::split(args, &["hosts"], Self::USAGE)?;
        let dimensions = number(arguments.require("D")?, "D")?;
        let hosts = arguments.number("hosts")?.unwrap_or(1);
        arguments.finish()?;
        Ok(Self { dimensions, hosts })
    }

    pub(super) fn plan(self) -> Result<Plan, GenerateError> {
        in_range("D", self.dimensions.into(), 1..=14)?;
        in_range("hosts", self.hosts.into(), 1..=super::error::MAX_PORTS)?;
        let (dimensions, hosts) = (self.dimensions as usize, self.hosts as usize);
        let count = 1_usize << dimensions;
        let mut plan = Plan::new(Size {
            switches: count as u64,
            switch_ports: (dimensions + hosts) as u64,
            hosts: (count * hosts) as u64,
            host_ports: 1,
        })?;
        for index in 0..count {
            plan.add_switch(format!("sw-{index:0dimensions$b}"), dimensions + hosts);
        }
        plan.add_hosts(count * hosts);
        for index in 0..count {
            for dimension in 0..dimensions {
                let peer = index ^ (1 << dimension);
                if index < peer {
                    plan.link(
                        Endpoint::new(index, dimension + 1),
                        Endpoint::new(peer, dimension + 1),
                    );
                }
            }
            plan.attach_hosts(index, dimensions + 1, hosts);
        }
        Ok(plan)
    }
}

impl fmt::Display for Hypercube {
    /// Writes the name of the kind, and the arguments that [`Self::parse`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hypercube {} hosts={}", self.dimensions, self.hosts)
    }
}

#[cfg(test)]
mod tests;
