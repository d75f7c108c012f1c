//! Fat trees of one model of switch, as clusters are built.

use std::fmt;

use super::error::{GenerateError, MAX_PORTS};
use super::plan::Plan;
use super::tree::Tree;
use super::words::{Words, in_range, list, number};

/// A fat tree of two or three levels whose switches all have the same number of ports.
///
/// Two levels: leaves with hosts below, and spines that every leaf is linked to. Three levels:
/// pods of leaves and spines, where core switches join the n-th spines of all pods to each other.
/// What is not given is chosen so that the tree is as large as the radix allows:
///
/// * a leaf's ports are split between hosts and links up by the oversubscription, 1:1 unless
///   told; with only one of `hosts` and `spines` given and no oversubscription, the other side
///   gets the ports that are left;
/// * a spine of three levels gets as many links up as down;
/// * leaves, or pods, are as many as a top switch has ports for.
///
/// Ports that do not divide evenly stay unlinked. The ports of a switch are numbered as those of
/// [`super::Xgft`]: links down first, then links up.
///
/// Leiserson, "Fat-Trees: Universal Networks for Hardware-Efficient Supercomputing", IEEE
/// Transactions on Computers 34(10), 1985; as a case of Zahavi's PGFT.
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
    /// The ports of every switch, 2 to 254.
    pub radix: u32,
    /// The levels of switches, 2 or 3.
    pub levels: u32,
    /// A leaf's hosts to its links up, as (2, 1) for 2:1.
    pub oversubscription: Option<(u32, u32)>,
    /// The parallel links between a leaf and each spine above it.
    pub parallel: u32,
    /// The parallel links between a spine and each core switch above it, in three levels only;
    /// `None` for as many as below the spine.
    pub core_parallel: Option<u32>,
    /// Hosts on every leaf.
    pub hosts: Option<u32>,
    /// Leaves: of the fabric in two levels, of a pod in three.
    pub leaves: Option<u32>,
    /// Spines: of the fabric in two levels, of a pod in three.
    pub spines: Option<u32>,
    /// Pods, in three levels only.
    pub pods: Option<u32>,
    /// Core switches of the fabric, a multiple of `spines`, in three levels only.
    pub cores: Option<u32>,
}

impl FatTree {
    /// The words that [`Self::parse`] takes.
    pub const USAGE: &'static str = "fat-tree RADIX [LEVELS] [oversubscription=D:U] \
         [parallel=P[,Q]] [hosts=N] [leaves=N] [spines=N] [pods=N] [cores=N]";

    const KEYS: [&'static str; 7] =
        ["oversubscription", "parallel", "hosts", "leaves", "spines", "pods", "cores"];

    /// Returns the largest tree of a radix and a number of levels, without oversubscription.
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

    /// Reads the words after the kind's name: two levels unless told.
    ///
    /// # Errors
    /// Fails on missing, surplus and unreadable words; [`super::generate()`] checks the values.
    pub fn parse(args: &[&str]) -> Result<Self, GenerateError> {
        let mut words = Words::split(args, &Self::KEYS, Self::USAGE)?;
        let radix = number(words.expect("RADIX")?, "RADIX")?;
        let levels = words.next().map_or(Ok(2), |word| number(word, "LEVELS"))?;
        let (parallel, core_parallel) = words.value("parallel").map_or(Ok((1, None)), parallel)?;
        let tree = Self {
            oversubscription: words.value("oversubscription").map(ratio).transpose()?,
            parallel,
            core_parallel,
            hosts: words.number("hosts")?,
            leaves: words.number("leaves")?,
            spines: words.number("spines")?,
            pods: words.number("pods")?,
            cores: words.number("cores")?,
            ..Self::new(radix, levels)
        };
        words.finish()?;
        Ok(tree)
    }

    pub(super) fn plan(&self) -> Result<Plan, GenerateError> {
        self.check()?;
        let (p, q) = (self.parallel, self.core_parallel.unwrap_or(self.parallel));
        let (hosts, spines) = self.leaf()?;
        if self.levels == 2 {
            let leaves = self.most("leaves", self.leaves, p)?;
            let (down, up) = ([hosts, leaves], [1, spines]);
            return Tree { down: &down, up: &up, parallel: &[1, p], radix: self.radix }.plan();
        }
        let (leaves, planes) = self.spine(spines, q)?;
        let pods = self.most("pods", self.pods, q)?;
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
        for (what, value) in [
            ("P of parallel=P,Q", Some(self.parallel)),
            ("Q of parallel=P,Q", self.core_parallel),
            ("hosts", self.hosts),
            ("leaves", self.leaves),
            ("spines", self.spines),
            ("pods", self.pods),
        ] {
            in_range(what, value.unwrap_or(1).into(), 1..=radix)?;
        }
        in_range("cores", self.cores.unwrap_or(1).into(), 1..=radix * radix)?;
        for (what, value) in
            [("pods", self.pods), ("cores", self.cores), ("Q of parallel=P,Q", self.core_parallel)]
        {
            if let (2, Some(value)) = (self.levels, value) {
                return Err(GenerateError::Contradiction {
                    what: format!("{what} is {value} with 2 levels"),
                    expected: "it with 3 levels only".to_owned(),
                });
            }
        }
        Ok(())
    }

    /// Splits a leaf's ports: returns its hosts and the spines above it.
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
                // The links up must fall to the spines in bundles of P.
                let step = p / gcd(u, p);
                let unit = radix / (d + u) / step * step;
                (d * unit, u * unit)
            }
        };
        let fits = hosts >= 1 && links >= p && links % p == 0 && hosts + links <= radix;
        if fits && (ratio.is_none() || hosts * u == links * d) {
            return Ok((hosts, links / p));
        }
        let as_told = if ratio.is_some() { format!(" at {d}:{u}") } else { String::new() };
        Err(GenerateError::Contradiction {
            what: format!("a leaf would have {hosts} hosts and {links} links up"),
            expected: format!(
                "some of each{as_told}, links up in bundles of {p}, {radix} ports in all"
            ),
        })
    }

    /// Splits the ports of a spine of three levels, one of `spines` in its pod, with `q` links to
    /// every core switch: returns the leaves below it and the core switches above it.
    fn spine(&self, spines: u32, q: u32) -> Result<(u32, u32), GenerateError> {
        let (radix, p) = (self.radix, self.parallel);
        if let Some(cores) = self.cores.filter(|cores| cores % spines != 0) {
            return Err(GenerateError::Contradiction {
                what: format!("cores={cores} with {spines} spines in a pod"),
                expected: "a multiple of the spines".to_owned(),
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
            what: format!(
                "a spine would have {leaves} leaves of {p} links and {planes} cores of {q} links"
            ),
            expected: format!("some of each, {radix} ports in all"),
        })
    }

    /// Returns how many children a top switch has, by default as many as it has ports for.
    fn most(
        &self,
        what: &'static str,
        given: Option<u32>,
        parallel: u32,
    ) -> Result<u32, GenerateError> {
        let most = self.radix / parallel;
        let count = given.unwrap_or(most);
        in_range(what, count.into(), 1..=most.into())?;
        Ok(count)
    }
}

impl fmt::Display for FatTree {
    /// Writes the words that make this tree.
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
        _ => Err(GenerateError::BadWord {
            what: "oversubscription=D:U",
            found: text.to_owned(),
            expected: "two numbers with `:` between them".to_owned(),
        }),
    }
}

fn parallel(text: &str) -> Result<(u32, Option<u32>), GenerateError> {
    match list(text, ',', "parallel=P,Q")?[..] {
        [p] => Ok((p, None)),
        [p, q] => Ok((p, Some(q))),
        _ => Err(GenerateError::BadWord {
            what: "parallel=P,Q",
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
