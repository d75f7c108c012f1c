//! The fabrics on which the clients run.

use std::fs;
use std::io::BufWriter;
use std::path::Path;

use ib_topology::generate::{GenerateError, Kind, Options, generate};
use ib_topology::{Fabric, Format, LinkRate, write};
use ib_types::{LinkSpeed, LinkWidth};

use crate::routing::RecipeError;

/// The routing engines with which a real OpenSM brings up every fabric.
pub const ENGINES: [&str; 5] = ["minhop", "updn", "ftree", "dor", "lash"];

/// A fabric, and which tests run on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Kind and parameters of the fabric, as for `ibfabric gen`.
    pub kind: &'static str,
    /// Speed of all links.
    pub speed: LinkSpeed,
    /// Fraction of the links that the generator omits from the fabric.
    pub drop_links: f64,
    /// OpenSM's LMC.
    pub lmc: u8,
    /// True if osmtest's long flow, which sends 100,000 queries, runs on this fabric.
    pub flood: bool,
    /// True if only runs with the option `--all` include this fabric.
    pub long: bool,
}

const fn plan(kind: &'static str) -> Plan {
    Plan { kind, speed: LinkSpeed::Hdr, drop_links: 0.0, lmc: 0, flood: false, long: false }
}

/// The fabrics, smallest first.
pub const FABRICS: [Plan; 13] = [
    Plan { flood: true, ..plan("xgft 4,4 1,4") },
    Plan { drop_links: 0.15, ..plan("xgft 4,4 1,4") },
    plan("xgft 3,3,3 1,3,3"),
    Plan { lmc: 1, ..plan("fat-tree 8 oversubscription=2:1 parallel=2") },
    Plan { speed: LinkSpeed::Edr, ..plan("torus 5x5 hosts=2") },
    Plan { speed: LinkSpeed::Qdr, ..plan("mesh 4x3") },
    Plan { speed: LinkSpeed::Fdr, ..plan("hypercube 4") },
    plan("dragonfly a=4 p=1 h=1"),
    Plan { lmc: 2, ..plan("random switches=10 ports=8 hosts=2") },
    Plan { speed: LinkSpeed::Ndr, ..plan("xgft 3,3 1,3") },
    Plan { long: true, flood: true, ..plan("xgft 4,4,6 1,4,4") },
    Plan { long: true, drop_links: 0.1, ..plan("torus 4x4x4 hosts=2") },
    Plan { long: true, speed: LinkSpeed::Ndr, ..plan("hypercube 5 hosts=2") },
];

impl Plan {
    /// Returns the plan of a fabric of the given kind, with all links at HDR speed.
    #[must_use]
    pub const fn of(kind: &'static str) -> Self {
        plan(kind)
    }

    /// Returns a name of the fabric: kind, speed, fraction of omitted links, LMC.
    #[must_use]
    pub fn name(&self) -> String {
        let mut name = format!("{} {}", self.kind, self.speed);
        if self.drop_links > 0.0 {
            name += &format!(" -{:.0}% links", self.drop_links * 100.0);
        }
        if self.lmc > 0 {
            name += &format!(" LMC {}", self.lmc);
        }
        name
    }

    /// Returns true if ibsim 0.10 supports the speed.
    #[must_use]
    pub fn fits_ibsim(&self) -> bool {
        self.speed <= LinkSpeed::Hdr
    }

    /// Generates the fabric.
    ///
    /// # Errors
    /// Fails if the generator rejects the parameters.
    pub fn fabric(&self) -> Result<Fabric, GenerateError> {
        let mut words = self.kind.split(' ');
        let name = words.next().unwrap_or_default();
        let kind = Kind::parse(name, &words.collect::<Vec<_>>())?;
        let rate = LinkRate { width: LinkWidth::X4, speed: self.speed };
        let drop_links = self.drop_links;
        generate(&kind, &Options { seed: 5, rate, drop_links, drop_switches: 0.0 })
    }
}

/// Writes the net file of a fabric.
///
/// # Errors
/// Fails if the file cannot be written.
pub fn write_net(fabric: &Fabric, net: &Path) -> Result<(), RecipeError> {
    let mut output = BufWriter::new(fs::File::create(net)?);
    write(fabric, Format::Ibsim, &mut output)?;
    Ok(())
}

/// Removes a link between two switches, so that the run must report differences.
pub fn hurt(fabric: &mut Fabric) {
    let inner = |&(a, b): &(ib_topology::PortId, ib_topology::PortId)| {
        [a, b].iter().all(|&port| fabric.node(fabric.port(port).node).kind.is_switch())
    };
    if let Some((port, _)) = fabric.links().filter(inner).last() {
        fabric.disconnect(port);
    }
}
