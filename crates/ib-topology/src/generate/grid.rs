//! Tori and meshes.

use std::fmt;

use super::arguments::{Arguments, in_range, join, list};
use super::error::{GenerateError, MAX_LIDS, MAX_PORTS};
use super::plan::{Endpoint, Plan, Size};

/// A torus. Its switches form a grid, and the switches along each axis form a cycle.
///
/// In dimension d (from 0), port 2d+1 of every switch leads to the next greater coordinate, and port 2d+2 to the next
/// smaller one, as dimension order routing requires. The hosts use the ports after those of the last dimension. In a
/// dimension of side 2, the two switches of a cycle have two parallel links, one at each of these ports. In a
/// dimension of side 1, both ports are unused.
///
/// Switches are numbered in the order of their coordinates, where the coordinate of dimension 0 (x) changes fastest.
/// Hosts are numbered in the order of their switches.
///
/// Dally and Towles, "Principles and Practices of Interconnection Networks", 2004, chapter 5 (k-ary
/// n-cubes).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torus {
    /// The number of switches along each dimension, 1 to 49,151. There are 1 to 126 dimensions.
    pub sides: Vec<u32>,
    /// The number of hosts on every switch, at least 1.
    pub hosts: u32,
}

/// A mesh. Its switches form a grid, and the switches along each axis form a line.
///
/// The port numbers, and the order of switches and hosts, are those of [`Torus`]. The links that close the cycles are
/// missing, so a line of two switches has one link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mesh {
    /// The number of switches along each dimension, 1 to 49,151. There are 1 to 126 dimensions.
    pub sides: Vec<u32>,
    /// The number of hosts on every switch, at least 1.
    pub hosts: u32,
}

impl Torus {
    /// The usage line: the name of the kind, and the arguments that [`Self::parse`] reads.
    pub const USAGE: &'static str = "torus X1xX2x..xXd [hosts=N]";

    /// Parses the arguments that follow the name of the kind. If `hosts` is missing, every switch has one host.
    ///
    /// # Errors
    /// Fails if an argument is missing, surplus or malformed. [`super::generate()`] checks the values of the arguments.
    pub fn parse(args: &[&str]) -> Result<Self, GenerateError> {
        let (sides, hosts) = parse(args, Self::USAGE)?;
        Ok(Self { sides, hosts })
    }

    pub(super) fn plan(&self) -> Result<Plan, GenerateError> {
        plan(&self.sides, self.hosts, true)
    }
}

impl Mesh {
    /// The usage line: the name of the kind, and the arguments that [`Self::parse`] reads.
    pub const USAGE: &'static str = "mesh X1xX2x..xXd [hosts=N]";

    /// Parses the arguments that follow the name of the kind. If `hosts` is missing, every switch has one host.
    ///
    /// # Errors
    /// Fails if an argument is missing, surplus or malformed. [`super::generate()`] checks the values of the arguments.
    pub fn parse(args: &[&str]) -> Result<Self, GenerateError> {
        let (sides, hosts) = parse(args, Self::USAGE)?;
        Ok(Self { sides, hosts })
    }

    pub(super) fn plan(&self) -> Result<Plan, GenerateError> {
        plan(&self.sides, self.hosts, false)
    }
}

impl fmt::Display for Torus {
    /// Writes the name of the kind, and the arguments that [`Self::parse`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "torus {} hosts={}", join(&self.sides, "x"), self.hosts)
    }
}

impl fmt::Display for Mesh {
    /// Writes the name of the kind, and the arguments that [`Self::parse`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mesh {} hosts={}", join(&self.sides, "x"), self.hosts)
    }
}

fn parse(args: &[&str], usage: &'static str) -> Result<(Vec<u32>, u32), GenerateError> {
    let mut arguments = Arguments::split(args, &["hosts"], usage)?;
    let sides = list(arguments.require("X1xX2x..xXd")?, 'x', "X1xX2x..xXd")?;
    let hosts = arguments.number("hosts")?.unwrap_or(1);
    arguments.finish()?;
    Ok((sides, hosts))
}

fn plan(sides: &[u32], hosts: u32, wrap: bool) -> Result<Plan, GenerateError> {
    in_range("the number of dimensions", sides.len() as u64, 1..=(MAX_PORTS - 1) / 2)?;
    for (dimension, &side) in sides.iter().enumerate() {
        in_range(format!("side X{}", dimension + 1), u64::from(side), 1..=MAX_LIDS)?;
    }
    in_range("hosts", u64::from(hosts), 1..=MAX_PORTS)?;
    let link_ports = 2 * sides.len();
    let count = sides.iter().fold(1, |product: u64, &side| product.saturating_mul(side.into()));
    let mut plan = Plan::new(Size {
        switches: count,
        switch_ports: link_ports as u64 + u64::from(hosts),
        hosts: count.saturating_mul(hosts.into()),
        host_ports: 1,
    })?;
    let (count, hosts) = (count as usize, hosts as usize);
    let mut coordinates = vec![0; sides.len()];
    for _ in 0..count {
        plan.add_switch(name(&coordinates), link_ports + hosts);
        advance(&mut coordinates, sides);
    }
    plan.add_hosts(count * hosts);
    for index in 0..count {
        let mut stride = 1;
        for (dimension, &side) in sides.iter().enumerate() {
            let side = side as usize;
            let coordinate = index / stride % side;
            let next =
                if coordinate + 1 < side { index + stride } else { index - coordinate * stride };
            // For the last switch of a line, `next` is the first switch; only a torus has a link between them. In a
            // dimension of side 1, `next` is the switch itself, and there is no link.
            if next > index || wrap && next != index {
                let (plus, minus) = (2 * dimension + 1, 2 * dimension + 2);
                plan.link(Endpoint::new(index, plus), Endpoint::new(next, minus));
            }
            stride *= side;
        }
        plan.attach_hosts(index, link_ports + 1, hosts);
    }
    Ok(plan)
}

/// Advances the coordinates to the next switch. The first coordinate changes fastest.
fn advance(coordinates: &mut [u32], sides: &[u32]) {
    for (coordinate, &side) in coordinates.iter_mut().zip(sides) {
        *coordinate += 1;
        if *coordinate < side {
            return;
        }
        *coordinate = 0;
    }
}

/// Returns the description of a switch: `sw-x1y2z0`, or `sw-1-2-0-3` if there are more than three dimensions.
fn name(coordinates: &[u32]) -> String {
    if coordinates.len() > 3 {
        return format!("sw-{}", join(coordinates, "-"));
    }
    let axes = coordinates.iter().zip(["x", "y", "z"]);
    axes.fold("sw-".to_owned(), |name, (coordinate, axis)| format!("{name}{axis}{coordinate}"))
}

#[cfg(test)]
mod tests;
