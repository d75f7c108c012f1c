//! Routing engines, and the list of engines that are tried in order.

use std::fmt;
use std::str::FromStr;

use ib_types::Guid;

use crate::hops::{HopMatrix, LinkWeights};
use crate::layers::Layers;
use crate::lft::Lfts;
use crate::subnet::{EndPortId, Subnet, SwitchId};

pub mod dor;
pub mod file;
pub mod ftree;
pub mod lash;
mod list;
pub mod minhop;
pub mod updn;

pub use list::{EngineList, NoEngine, Outcome, Refusal, engine, reason};

/// A routing engine, i.e. an algorithm that computes forwarding tables.
///
/// The tables depend only on the subnet and the options. They are the same in every run and for any number of threads.
pub trait Engine: Sync {
    /// Returns the kind of the engine.
    fn kind(&self) -> EngineKind;

    /// Computes the forwarding tables of a subnet.
    ///
    /// # Errors
    /// Fails if the engine does not support this subnet or these options. The next engine of the list is tried then.
    fn route(&self, subnet: &Subnet<'_>, options: &RoutingOptions) -> Result<Routing, EngineError>;
}

/// The kind of an engine. Its name is the value of the option `-R`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EngineKind {
    /// Least hops, balanced over the ports of each switch.
    MinHop,
    /// Up*/down* routing by the ranks of switches.
    UpDown,
    /// Fat-tree routing, optimised for shift patterns.
    FatTree,
    /// Layered shortest paths, free of deadlock because of service levels.
    Lash,
    /// Dimension order routing.
    Dor,
    /// Tables read from a file.
    File,
}

impl EngineKind {
    /// All engines.
    pub const ALL: [Self; 6] =
        [Self::MinHop, Self::UpDown, Self::FatTree, Self::Lash, Self::Dor, Self::File];

    /// Returns the engine's name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MinHop => "minhop",
            Self::UpDown => "updn",
            Self::FatTree => "ftree",
            Self::Lash => "lash",
            Self::Dor => "dor",
            Self::File => "file",
        }
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Error of parsing an [`EngineKind`] or an [`EngineList`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseEngineError {
    /// The name is unknown.
    #[error(
        "`{0}` is not a routing engine: expected minhop, updn, ftree, lash, dor or file, \
         no_fallback in a list, or auto"
    )]
    Unknown(String),
    /// The engine exists in OpenSM but not in ibfabric.
    #[error(
        "`{0}` is an engine of OpenSM that is not supported here: expected minhop, updn, ftree, \
         lash, dor or file"
    )]
    Elsewhere(String),
    /// The list contains no engine.
    #[error("`{0}` contains no routing engine: expected minhop, updn, ftree, lash, dor or file")]
    None(String),
}

impl FromStr for EngineKind {
    type Err = ParseEngineError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|kind| kind.name() == text).ok_or_else(|| match text {
            "dnup" | "torus-2QoS" | "nue" | "sssp" | "dfsssp" => {
                ParseEngineError::Elsewhere(text.to_owned())
            }
            _ => ParseEngineError::Unknown(text.to_owned()),
        })
    }
}

/// The reason why an engine did not route a subnet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The engine does not support the subnet or the options.
    #[error("{0}")]
    Unsuitable(String),
    /// An input file of the engine is missing or unusable.
    #[error("{0}")]
    Input(String),
}

/// The forwarding tables and service levels that an engine computed, the data from which it computed them, and its
/// warnings.
#[derive(Clone, Debug)]
pub struct Routing {
    /// The engine that computed the tables.
    pub engine: EngineKind,
    /// The forwarding tables.
    pub lfts: Lfts,
    /// The hop matrix from which the tables were computed.
    pub hops: HopMatrix,
    /// The service level of each pair of switches.
    pub layers: Layers,
    /// The root switches of updn or ftree, in the order of the subnet; empty for other engines.
    pub roots: Vec<SwitchId>,
    /// The compute nodes in the order in which ftree routed them. `None` is a dummy in place of a missing compute node.
    /// Empty for other engines.
    pub ca_order: Vec<Option<EndPortId>>,
    /// Warnings for the user, one sentence each.
    pub notes: Vec<String>,
}

/// Options of the engines, with the letters of OpenSM's options. GUIDs that are not in the subnet are ignored.
#[derive(Clone, Debug, Default)]
pub struct RoutingOptions {
    /// GUIDs of the root switches for updn and ftree (`-a`). The GUID of a channel adapter selects its switch. If
    /// `None`, the engine detects the roots.
    pub root_guids: Option<Vec<Guid>>,
    /// Port GUIDs of the compute nodes for ftree (`-u`). If `None`, all channel adapters are compute nodes.
    pub cn_guids: Option<Vec<Guid>>,
    /// Port GUIDs of the I/O nodes for ftree (`-G`).
    pub io_guids: Option<Vec<Guid>>,
    /// Maximum number of upward hops after downward hops on a path to an I/O node, for ftree (`-H`).
    pub max_reverse_hops: u8,
    /// True if ftree starts the indexing of switches at the roots, not at the first leaf (`quasi_ftree_indexing`).
    pub quasi_ftree_indexing: bool,
    /// Switch ports that are excluded from load balancing, as node GUID and port number (`-i`).
    pub ignored_ports: Vec<(Guid, u8)>,
    /// GUIDs of the end ports that are routed first, in this order (`-X`).
    pub guid_routing_order: Vec<Guid>,
    /// By switch GUID, the ports that are scanned first, in this order (`-O`).
    pub port_search_order: Vec<(Guid, Vec<u8>)>,
    /// Weights of links in hops, as switch GUID, output port and weight (`-w`).
    pub hop_weights: Vec<(Guid, u8, u8)>,
    /// Identifiers of switches for updn, by switch GUID (`-m`). They break ties between equal ranks.
    pub updn_ids: Vec<(Guid, u64)>,
    /// True if updn also computes routes between root switches (`-z`). In ftree, the option adds missing routes from
    /// switches above the leaves to other switches.
    pub connect_roots: bool,
    /// True if routes to switches count in load balancing.
    pub count_switch_targets: bool,
    /// True if the scan for the least used port starts at another port for each LID.
    pub port_shifting: bool,
    /// Seed of the random choice among equally used ports. If zero, the choice is not random.
    pub scatter_ports: u32,
    /// True if the end ports in `guid_routing_order` are excluded from the random choice of `scatter_ports`.
    pub listed_unscattered: bool,
    /// The lowest VL that lash may use.
    pub lash_start_vl: u8,
    /// Number of data VLs that every link supports and lash may use, 1 to 15; 0 stands for 8.
    pub virtual_lanes: u8,
    /// Earlier forwarding tables of the switches. minhop, updn and dor keep each entry of these tables whose port is
    /// still a least-hop port.
    pub existing: Option<Lfts>,
    /// Forwarding tables for the file engine (`-U`); they must have been read for this subnet.
    pub file_lfts: Option<Lfts>,
    /// Hop matrix for the file engine (`-M`); it must have been read for this subnet.
    pub file_hops: Option<HopMatrix>,
}

impl RoutingOptions {
    /// Returns the link weights with the GUIDs replaced by switches of the subnet.
    pub(crate) fn link_weights(&self, subnet: &Subnet<'_>) -> LinkWeights {
        let mut weights = LinkWeights::default();
        for &(guid, port, weight) in &self.hop_weights {
            if let Some(switch) = subnet.find_switch(guid) {
                weights.set(switch, port, weight);
            }
        }
        weights
    }
}
