//! Generators of fabrics: trees, tori, cubes, dragonflies and random graphs.
//!
//! | module | holds |
//! |---|---|
//! | [`fat_tree`] | [`FatTree`]: two or three levels of switches with the same number of ports |
//! | [`xgft`] | [`Xgft`]: extended generalized fat trees |
//! | [`k_ary_n_tree`] | [`KaryNTree`] |
//! | [`grid`] | [`Torus`] and [`Mesh`] |
//! | [`hypercube`] | [`Hypercube`] |
//! | [`dragonfly`] | [`Dragonfly`] |
//! | [`random`] | [`Random`]: connected, nearly regular multigraphs |
//! | [`error`] | [`GenerateError`]: the parameter, the value found and the range expected |
//!
//! The nodes of a fabric are first the switches, then the hosts, each in the order documented for
//! the kind. No port has a LID. Switch number i, from 0, has the node GUID `0x0002c90000200000` +
//! i; host number i with P ports has `0x0002c90000100000` + i·(P+1). Port n of a host has the node
//! GUID + n, as in ibsim. Names have the form of ibnetdiscover: `S-` or `H-` and the node GUID.
//! Descriptions count from 0: `leaf-003`, `sw-x1y2z0`, `host-0017`. Vendor and device IDs are zero:
//! the IDs of a real vendor may make a subnet manager send vendor-specific attributes.
//!
//! ```
//! use ib_topology::generate::{Kind, Options, generate};
//! use ib_types::NodeKind;
//!
//! let kind = Kind::parse("torus", &["4x4x4", "hosts=2"])?;
//! let fabric = generate(&kind, &Options::default())?;
//! assert_eq!(fabric.count(NodeKind::Switch), 64);
//! assert_eq!(fabric.count(NodeKind::ChannelAdapter), 128);
//! assert_eq!(kind.to_string(), "torus 4x4x4 hosts=2");
//! # Ok::<(), ib_topology::generate::GenerateError>(())
//! ```

use std::fmt;

use ib_types::{LinkSpeed, LinkWidth};

use crate::fabric::{Fabric, LinkRate};

mod arguments;
mod degrade;
pub mod dragonfly;
pub mod error;
pub mod fat_tree;
pub mod grid;
pub mod hypercube;
pub mod k_ary_n_tree;
mod plan;
pub mod random;
mod tree;
pub mod xgft;

pub use dragonfly::Dragonfly;
pub use error::GenerateError;
pub use fat_tree::FatTree;
pub use grid::{Mesh, Torus};
pub use hypercube::Hypercube;
pub use k_ary_n_tree::KaryNTree;
pub use random::Random;
pub use xgft::Xgft;

use plan::Plan;

/// Generates a fabric.
///
/// The same kind and options give the same fabric on every platform. Dropping nodes or links does
/// not change the GUIDs, names and descriptions of the others.
///
/// # Errors
/// Fails on parameters that are out of range or contradict each other, on nodes with more than 254
/// ports and on fabrics with more than 49,151 LIDs. Also fails on fractions outside 0 to 1, and if
/// no host is left.
pub fn generate(kind: &Kind, options: &Options) -> Result<Fabric, GenerateError> {
    options.check()?;
    let mut plan = kind.plan(options.seed)?;
    degrade::degrade(&mut plan, options.seed, options.drop_switches, options.drop_links)?;
    Ok(plan.build(options.rate))
}

/// Options of every kind of fabric.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Seed of all random choices: the links of a random fabric, the dropped switches and links.
    pub seed: u64,
    /// The width and speed of every link.
    pub rate: LinkRate,
    /// Fraction of the links between switches to drop, 0 to 1.
    ///
    /// The number is rounded to a whole number of links, which are drawn uniformly from those left
    /// after switches were dropped. Links of hosts are kept. The fabric may become disconnected.
    pub drop_links: f64,
    /// Fraction of the switches to drop, 0 to 1.
    ///
    /// The number is rounded to a whole number of switches, which are drawn uniformly. Their links
    /// are dropped too, and so are all hosts without a link.
    pub drop_switches: f64,
}

impl Default for Options {
    /// Returns seed 0, 4x NDR, no dropped switches or links.
    fn default() -> Self {
        let rate = LinkRate { width: LinkWidth::X4, speed: LinkSpeed::Ndr };
        Self { seed: 0, rate, drop_links: 0.0, drop_switches: 0.0 }
    }
}

impl Options {
    fn check(&self) -> Result<(), GenerateError> {
        for (kind, found) in [("links", self.drop_links), ("switches", self.drop_switches)] {
            if !(0.0..=1.0).contains(&found) {
                return Err(GenerateError::Fraction { kind, found });
            }
        }
        Ok(())
    }
}

/// A kind of fabric with its parameters.
///
/// Its `Display` output is read back by [`Self::parse`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A fat tree of switches with the same number of ports.
    FatTree(FatTree),
    /// An extended generalized fat tree.
    Xgft(Xgft),
    /// A k-ary n-tree.
    KaryNTree(KaryNTree),
    /// A torus.
    Torus(Torus),
    /// A mesh.
    Mesh(Mesh),
    /// A hypercube.
    Hypercube(Hypercube),
    /// A dragonfly.
    Dragonfly(Dragonfly),
    /// A random connected fabric.
    Random(Random),
}

impl Kind {
    /// The usage lines of all kinds; each starts with the name of the kind.
    pub const USAGES: [&'static str; 8] = [
        FatTree::USAGE,
        Xgft::USAGE,
        KaryNTree::USAGE,
        Torus::USAGE,
        Mesh::USAGE,
        Hypercube::USAGE,
        Dragonfly::USAGE,
        Random::USAGE,
    ];

    /// Parses the name of a kind and its arguments.
    ///
    /// Positional arguments have a fixed order; `key=value` arguments may stand anywhere among
    /// them.
    ///
    /// # Errors
    /// Fails on an unknown kind and on missing, surplus and malformed arguments. [`generate()`]
    /// checks the values.
    pub fn parse(name: &str, args: &[&str]) -> Result<Self, GenerateError> {
        match name {
            "fat-tree" => FatTree::parse(args).map(Self::FatTree),
            "xgft" => Xgft::parse(args).map(Self::Xgft),
            "k-ary-n-tree" => KaryNTree::parse(args).map(Self::KaryNTree),
            "torus" => Torus::parse(args).map(Self::Torus),
            "mesh" => Mesh::parse(args).map(Self::Mesh),
            "hypercube" => Hypercube::parse(args).map(Self::Hypercube),
            "dragonfly" => Dragonfly::parse(args).map(Self::Dragonfly),
            "random" => Random::parse(args).map(Self::Random),
            _ => Err(GenerateError::UnknownKind {
                found: name.to_owned(),
                expected: Self::names().collect::<Vec<_>>().join(", "),
            }),
        }
    }

    /// Returns the names of the kinds.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Self::USAGES.into_iter().filter_map(|usage| usage.split(' ').next())
    }

    fn plan(&self, seed: u64) -> Result<Plan, GenerateError> {
        match self {
            Self::FatTree(kind) => kind.plan(),
            Self::Xgft(kind) => kind.plan(),
            Self::KaryNTree(kind) => kind.plan(),
            Self::Torus(kind) => kind.plan(),
            Self::Mesh(kind) => kind.plan(),
            Self::Hypercube(kind) => kind.plan(),
            Self::Dragonfly(kind) => kind.plan(),
            Self::Random(kind) => kind.plan(seed),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FatTree(kind) => kind.fmt(f),
            Self::Xgft(kind) => kind.fmt(f),
            Self::KaryNTree(kind) => kind.fmt(f),
            Self::Torus(kind) => kind.fmt(f),
            Self::Mesh(kind) => kind.fmt(f),
            Self::Hypercube(kind) => kind.fmt(f),
            Self::Dragonfly(kind) => kind.fmt(f),
            Self::Random(kind) => kind.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests;
