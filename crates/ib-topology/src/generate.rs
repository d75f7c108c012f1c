//! Generators of fabrics: trees, tori, cubes, dragonflies and random graphs.
//!
//! | module | holds |
//! |---|---|
//! | [`fat_tree`] | [`FatTree`]: two or three levels of switches that all have the same number of ports |
//! | [`xgft`] | [`Xgft`]: extended generalized fat trees |
//! | [`k_ary_n_tree`] | [`KaryNTree`] |
//! | [`grid`] | [`Torus`] and [`Mesh`] |
//! | [`hypercube`] | [`Hypercube`] |
//! | [`dragonfly`] | [`Dragonfly`] |
//! | [`random`] | [`Random`]: connected multigraphs in which all switches have nearly the same number of links |
//! | [`error`] | [`GenerateError`]: the parameter, the value found and the values expected |
//!
//! In a generated fabric, the switches come before the hosts. The documentation of each kind defines the order of the
//! switches and of the hosts. No port has a LID. The switch with index i, from 0, has the node GUID
//! `0x0002c90000200000` + i. The host with index i and P ports has the node GUID `0x0002c90000100000` + i·(P+1). As in
//! ibsim, the port GUID of port n of a host is the node GUID + n. Names have the form of ibnetdiscover: `S-` or `H-`,
//! and the node GUID. Descriptions contain the index or the coordinates: `leaf-003`, `sw-x1y2z0`, `host-0017`. Vendor
//! and device IDs are zero, because a subnet manager may send vendor-specific attributes to nodes with the ID of a real
//! vendor.
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

/// Generates a fabric of the given kind.
///
/// The same kind and options give the same fabric on every platform. If nodes or links are dropped, the other nodes
/// keep their GUIDs, names and descriptions.
///
/// # Errors
/// Fails if parameters are out of range or contradict each other. Also fails if a node needs more than 254 ports, if
/// the fabric needs more than 49,151 LIDs, if a fraction is not in the range 0 to 1, or if no host has a link after
/// switches were dropped.
pub fn generate(kind: &Kind, options: &Options) -> Result<Fabric, GenerateError> {
    options.check()?;
    let mut plan = kind.plan(options.seed)?;
    degrade::degrade(&mut plan, options.seed, options.drop_switches, options.drop_links)?;
    Ok(plan.build(options.rate))
}

/// Options that apply to every kind of fabric.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Seed of all random choices: the links of a random fabric, and the dropped switches and links.
    pub seed: u64,
    /// The width and speed of every link.
    pub rate: LinkRate,
    /// Fraction of the links between switches that is dropped, from 0 to 1.
    ///
    /// The links are drawn uniformly from those that remain after switches were dropped. Their number is rounded to
    /// the nearest integer. Links of hosts are not dropped. The fabric can become disconnected.
    pub drop_links: f64,
    /// Fraction of the switches that is dropped, from 0 to 1.
    ///
    /// The switches are drawn uniformly. Their number is rounded to the nearest integer. The links of dropped switches
    /// are also dropped, and so are hosts that have no link left.
    pub drop_switches: f64,
}

impl Default for Options {
    /// Returns options with seed 0 and rate 4x NDR. No switches or links are dropped.
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

/// A kind of fabric, with its parameters.
///
/// `Display` writes the name and the arguments, separated by spaces, so that [`Self::parse`] can read them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A fat tree whose switches all have the same number of ports.
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
    /// The usage line of each kind. It starts with the name of the kind.
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
    /// Positional arguments have a fixed order. Arguments of the form `key=value` can be anywhere between them.
    ///
    /// # Errors
    /// Fails if the kind is unknown, or if an argument is missing, surplus or malformed. [`generate()`] checks the
    /// values of the arguments.
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

    /// Returns the names of all kinds.
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
