//! Fat trees whose switches all have the same number of ports.

use std::fmt;

use super::arguments::{Arguments, in_range, list, number};
use super::error::{GenerateError, MAX_PORTS};
use super::plan::Plan;
use super::tree::Tree;

/// A fat tree of two or three levels whose switches all have the same number of ports.
///
/// In a tree of two levels, every leaf has hosts and is linked to every spine. A tree of three levels consists of pods
/// of leaves and spines; each core switch is linked to one spine of every pod, always the spine with the same number.
/// Parameters that are `None` are chosen so that the tree is as large as the radix allows:
///
/// * The ports of a leaf are divided between hosts and uplinks by the ratio `oversubscription`, or equally if it is
///   `None`. If it is `None` and one of `hosts` and `spines` is set, the other one uses the remaining ports.
/// * In a tree of three levels, the ports of a spine are divided equally between leaves and core switches. If one of
///   `leaves` and `cores` is set, the other one uses the remaining ports.
/// * A top switch has as many children as its ports and the parallel links allow. Its children are all leaves in a tree
///   of two levels, and one spine of each pod in a tree of three levels.
///
/// The remaining ports of a switch are unused. As in [`super::Xgft`], the downlinks of a switch use lower port numbers
/// than the uplinks.
///
/// Leiserson, "Fat-Trees: Universal Networks for Hardware-Efficient Supercomputing", IEEE Transactions on Computers
/// 34(10), 1985. The tree is a special case of Zahavi's parallel ports generalized fat tree (PGFT).
///
/// ```
/// use ib_topology::generate::{FatTree, Kind, Options, generate};
/// use ib_types::NodeKind;
///
/// let tree = FatTree { oversubscription: Some((2, 1)), ..FatTree::new(36, 2) };
/// let fabric = generate(&Kind::FatTree(tree), &Options::default())?;
/// assert_eq!(fabric.count(NodeKind::Switch), 36 + 12);
/// assert_eq!(fabric.count(NodeKind::ChannelAdapter), 36 * 24);
/// # Ok::<(), ib_topology::generate::GenerateError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FatTree {
    /// The number of ports of every switch, 2 to 254.
    pub radix: u32,
    /// The number of switch levels, 2 or 3.
    pub levels: u32,
    /// The ratio of hosts to uplinks of a leaf. For example, (2, 1) stands for 2:1.
    pub oversubscription: Option<(u32, u32)>,
    /// The number of parallel links between a leaf and each of its spines.
    pub parallel: u32,
    /// The number of parallel links between a spine and each of its core switches. If `None`, it is
    /// `parallel`. Only for three levels.
    pub core_parallel: Option<u32>,
    /// The number of hosts per leaf.
    pub hosts: Option<u32>,
    /// The number of leaves in the tree (two levels) or in each pod (three levels).
    pub leaves: Option<u32>,
    /// The number of spines in the tree (two levels) or in each pod (three levels).
    pub spines: Option<u32>,
    /// The number of pods. Only for three levels.
    pub pods: Option<u32>,
    /// The number of core switches, which must be a multiple of `spines`. Only for three levels.
    pub cores: Option<u32>,
}

impl FatTree {
    /// The usage line: the name of the kind, and the arguments that [`Self::parse`] reads.
    pub const USAGE: &'static str = "fat-tree RADIX [LEVELS] [oversubscription=D:U] \
         [parallel=P[,Q]] [hosts=N] [leaves=N] [spines=N] [pods=N] [cores=N]";

    const KEYS: [&'static str; 7] =
        ["oversubscription", "parallel", "hosts", "leaves", "spines", "pods", "cores"];

    /// Returns the parameters of the largest tree with this radix and number of levels, without oversubscription.
    #[must_use]
    pub const fn new(radix: u32, levels: u32) -> Self {
        Self {
            radix,
            levels,
            oversubscription: None,
            parallel: 1,
            core_parallel: None,
            hosts: None,
            leaves: None,
            spines: None,
            pods: None,
            cores: None,
        }
    }

    /// Parses the arguments that follow the name of the kind. If `LEVELS` is missing, the tree has two levels.
    ///
    /// # Errors
    /// Fails if an argument is missing, surplus or malformed. [`super::generate()`] checks the values of the arguments.
    pub fn parse(args: &[&str]) -> Result<Self, GenerateError> {
        let mut arguments = Arguments::split(args, &Self::KEYS, Self::USAGE)?;
        let radix = number(arguments.require("RADIX")?, "RADIX")?;
        let levels = arguments.next().map_or(Ok(2), |argument| number(argument, "LEVELS"))?;
        let (parallel, core_parallel) =
            arguments.value("parallel").map_or(Ok((1, None)), parallel)?;
        let tree = Self {
            oversubscription: arguments.value("oversubscription").map(ratio).transpose()?,
            parallel,
            core_parallel,
            hosts: arguments.number("hosts")?,
            leaves: arguments.number("leaves")?,
            spines: arguments.number("spines")?,
            pods: arguments.number("pods")?,
            cores: arguments.number("cores")?,
            ..Self::new(radix, levels)
        };
        arguments.finish()?;
        Ok(tree)
    }

    pub(super) fn plan(&self) -> Result<Plan, GenerateError> {
        self.check()?;
        let (p, q) = (self.parallel, self.core_parallel.unwrap_or(self.parallel));
        let (hosts, spines) = self.leaf()?;
        if self.levels == 2 {
            let leaves = self.children("leaves", self.leaves, p)?;
            let (down, up) = ([hosts, leaves], [1, spines]);
            return Tree { down: &down, up: &up, parallel: &[1, p], radix: self.radix }.plan();
        }
        let (leaves, planes) = self.spine(spines, q)?;
        let pods = self.children("pods", self.pods, q)?;
        let (down, up) = ([hosts, leaves, pods], [1, spines, planes]);
        Tree { down: &down, up: &up, parallel: &[1, p, q], radix: self.radix }.plan()
    }

    fn check(&self) -> Result<(), GenerateError> {
        in_range("RADIX", self.radix.into(), 2..=MAX_PORTS)?;
        in_range("LEVELS", self.levels.into(), 2..=3)?;
        let (d, u) = self.oversubscription.unwrap_or((1, 1));
        in_range("D of oversubscription=D:U", d.into(), 1..=MAX_PORTS)?;
        in_range("U of oversubscription=D:U", u.into(), 1..=MAX_PORTS)?;
        let radix = u64::from(self.radix);
        for (parameter, value) in [
            ("P of parallel=P,Q", Some(self.parallel)),
            ("Q of parallel=P,Q", self.core_parallel),
            ("hosts", self.hosts),
            ("leaves", self.leaves),
            ("spines", self.spines),
            ("pods", self.pods),
        ] {
            in_range(parameter, value.unwrap_or(1).into(), 1..=radix)?;
        }
        in_range("cores", self.cores.unwrap_or(1).into(), 1..=radix * radix)?;
        for (parameter, value) in
            [("pods", self.pods), ("cores", self.cores), ("Q of parallel=P,Q", self.core_parallel)]
        {
            if self.levels == 2 && value.is_some() {
                return Err(GenerateError::Contradiction {
                    found: format!("{parameter} is set with 2 levels"),
                    expected: "3 levels".to_owned(),
                });
            }
        }
        Ok(())
    }

    /// Divides the ports of a leaf between hosts and spines. Returns the number of hosts and of spines that are linked
    /// to each leaf.
    fn leaf(&self) -> Result<(u32, u32), GenerateError> {
        let (radix, p) = (self.radix, self.parallel);
        let ratio = self.oversubscription;
        let (d, u) = ratio.unwrap_or((1, 1));
        let (d, u) = (d / gcd(d, u), u / gcd(d, u));
        let (hosts, links) = match (self.hosts, self.spines.map(|spines| spines * p)) {
            (Some(hosts), Some(links)) => (hosts, links),
            (Some(hosts), None) if ratio.is_some() => (hosts, hosts * u / d),
            (Some(hosts), None) => (hosts, (radix - hosts) / p * p),
            (None, Some(links)) if ratio.is_some() => (links * d / u, links),
            (None, Some(links)) => (radix.saturating_sub(links), links),
            (None, None) => {
                // The number of uplinks must be a multiple of P, because each spine gets P parallel links.
                let step = p / gcd(u, p);
                let unit = radix / (d + u) / step * step;
                (d * unit, u * unit)
            }
        };
        let fits = hosts >= 1 && links >= p && links % p == 0 && hosts + links <= radix;
        if fits && (ratio.is_none() || hosts * u == links * d) {
            return Ok((hosts, links / p));
        }
        let at_ratio = if ratio.is_some() { format!(" at {d}:{u}") } else { String::new() };
        Err(GenerateError::Contradiction {
            found: format!("a leaf would have {hosts} hosts and {links} uplinks"),
            expected: format!(
                "some of each{at_ratio}, uplinks in bundles of {p}, {radix} ports in all"
            ),
        })
    }

    /// In a tree of three levels, divides the ports of a spine between leaves and core switches. Returns the number of
    /// leaves and of core switches that are linked to each spine.
    ///
    /// `spines` is the number of spines per pod, and `q` the number of parallel links to each core switch.
    fn spine(&self, spines: u32, q: u32) -> Result<(u32, u32), GenerateError> {
        let (radix, p) = (self.radix, self.parallel);
        if let Some(cores) = self.cores.filter(|cores| cores % spines != 0) {
            return Err(GenerateError::Contradiction {
                found: format!("cores={cores} with {spines} spines per pod"),
                expected: "a multiple of the spines per pod".to_owned(),
            });
        }
        let (leaves, planes) = match (self.leaves, self.cores.map(|cores| cores / spines)) {
            (Some(leaves), Some(planes)) => (leaves, planes),
            (Some(leaves), None) => (leaves, radix.saturating_sub(leaves * p) / q),
            (None, Some(planes)) => (radix.saturating_sub(planes * q) / p, planes),
            (None, None) => {
                let step = p / gcd(p, q) * q;
                let unit = radix / 2 / step * step;
                (unit / p, unit / q)
            }
        };
        if leaves >= 1 && planes >= 1 && leaves * p + planes * q <= radix {
            return Ok((leaves, planes));
        }
        Err(GenerateError::Contradiction {
            found: format!(
                "a spine would have {leaves} leaves of {p} links and {planes} cores of {q} links"
            ),
            expected: format!("some of each, {radix} ports in all"),
        })
    }

    /// Returns the number of children of a top switch: `count`, or the maximum if `count` is `None`. Each child has
    /// `parallel` links to the switch.
    fn children(
        &self,
        parameter: &'static str,
        count: Option<u32>,
        parallel: u32,
    ) -> Result<u32, GenerateError> {
        let maximum = self.radix / parallel;
        let count = count.unwrap_or(maximum);
        in_range(parameter, count.into(), 1..=maximum.into())?;
        Ok(count)
    }
}

impl fmt::Display for FatTree {
    /// Writes the name of the kind, and the arguments that [`Self::parse`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fat-tree {} {}", self.radix, self.levels)?;
        if let Some((d, u)) = self.oversubscription {
            write!(f, " oversubscription={d}:{u}")?;
        }
        match (self.parallel, self.core_parallel) {
            (1, None) => {}
            (p, None) => write!(f, " parallel={p}")?,
            (p, Some(q)) => write!(f, " parallel={p},{q}")?,
        }
        for (key, value) in [
            ("hosts", self.hosts),
            ("leaves", self.leaves),
            ("spines", self.spines),
            ("pods", self.pods),
            ("cores", self.cores),
        ] {
            if let Some(value) = value {
                write!(f, " {key}={value}")?;
            }
        }
        Ok(())
    }
}

fn ratio(text: &str) -> Result<(u32, u32), GenerateError> {
    match list(text, ':', "oversubscription=D:U")?[..] {
        [d, u] => Ok((d, u)),
        _ => Err(GenerateError::BadArgument {
            parameter: "oversubscription=D:U",
            found: text.to_owned(),
            expected: "two numbers with `:` between them".to_owned(),
        }),
    }
}

fn parallel(text: &str) -> Result<(u32, Option<u32>), GenerateError> {
    match list(text, ',', "parallel=P,Q")?[..] {
        [p] => Ok((p, None)),
        [p, q] => Ok((p, Some(q))),
        _ => Err(GenerateError::BadArgument {
            parameter: "parallel=P,Q",
            found: text.to_owned(),
            expected: "one number, or two with `,` between them".to_owned(),
        }),
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests;
