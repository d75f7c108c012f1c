//! Routing engines, and the list of engines tried in order.

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

/// A routing algorithm.
///
/// The tables depend only on the subnet and the options: they are the same in every run and for any
/// number of threads.
pub trait Engine: Sync {
    /// Returns the kind of the engine.
    fn kind(&self) -> EngineKind;

    /// Computes the forwarding tables of a subnet.
    ///
    /// # Errors
    /// Fails if the engine does not support this subnet or these options; then the next engine of
    /// the list is tried.
    fn route(&self, subnet: &Subnet<'_>, options: &RoutingOptions) -> Result<Routing, EngineError>;
}

/// The kind of an engine; its name is that of `-R`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EngineKind {
    /// Least hops, balanced over ports.
    MinHop,
    /// Up*/down* over ranks.
    UpDown,
    /// Fat tree, optimised for shift patterns.
    FatTree,
    /// Layered shortest paths over service levels.
    Lash,
    /// Dimension order routing.
    Dor,
    /// Tables loaded from a file.
    File,
}

impl EngineKind {
    /// All engines.
    pub const ALL: [Self; 6] =
        [Self::MinHop, Self::UpDown, Self::FatTree, Self::Lash, Self::Dor, Self::File];

    /// Returns the name on the command line.
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
    /// The engine exists only in OpenSM.
    #[error(
        "`{0}` is an engine of OpenSM that is not supported here: expected minhop, updn, ftree, \
         lash, dor or file"
    )]
    Elsewhere(String),
    /// The list has no engine.
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

/// Reason why an engine did not route a subnet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The engine does not support the subnet or the options.
    #[error("{0}")]
    Unsuitable(String),
    /// An input file is missing or unusable.
    #[error("{0}")]
    Input(String),
}

/// The result of an engine.
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
    /// The root switches of updn or ftree, in order; empty for other engines.
    pub roots: Vec<SwitchId>,
    /// The order of the compute nodes for which ftree routed; `None` is a dummy that replaces a
    /// missing compute node. Empty for other engines.
    pub ca_order: Vec<Option<EndPortId>>,
    /// Warnings for the user, one sentence each.
    pub notes: Vec<String>,
}

/// Options of the engines. GUIDs that are not in the subnet are skipped.
#[derive(Clone, Debug, Default)]
pub struct RoutingOptions {
    /// Root switches for updn and ftree (`-a`); the GUID of a channel adapter selects its switch.
    /// `None`: roots are detected.
    pub root_guids: Option<Vec<Guid>>,
    /// Port GUIDs of compute nodes for ftree (`-u`). `None`: all channel adapters are compute
    /// nodes.
    pub cn_guids: Option<Vec<Guid>>,
    /// Port GUIDs of I/O nodes for ftree (`-G`).
    pub io_guids: Option<Vec<Guid>>,
    /// Maximum number of upward hops after a downward hop on paths to I/O nodes (`-H`).
    pub max_reverse_hops: u8,
    /// True if the indexing of ftree starts at the first root (`quasi_ftree_indexing`).
    pub quasi_ftree_indexing: bool,
    /// Switch ports excluded from load balancing (`-i`).
    pub ignored_ports: Vec<(Guid, u8)>,
    /// End ports that are routed first, in this order (`-X`).
    pub guid_routing_order: Vec<Guid>,
    /// Per switch, the ports that are scanned first, in this order (`-O`).
    pub port_search_order: Vec<(Guid, Vec<u8>)>,
    /// Weights of links in hops, by switch and output port (`-w`).
    pub hop_weights: Vec<(Guid, u8, u8)>,
    /// Switch identifiers for updn, which break ties of rank (`-m`).
    pub updn_ids: Vec<(Guid, u64)>,
    /// True if updn routes between root switches (`-z`).
    pub connect_roots: bool,
    /// True if switches count as targets in load balancing.
    pub count_switch_targets: bool,
    /// True if the scan for the least used port starts at another port for each LID.
    pub port_shifting: bool,
    /// Seed of the random choice among least used ports; zero for no random choice.
    pub scatter_ports: u32,
    /// True if the end ports of `guid_routing_order` have no random choice.
    pub listed_unscattered: bool,
    /// The lowest VL that lash uses.
    pub lash_start_vl: u8,
    /// Number of data VLs of every link that lash may use, 1 to 15; 0 for 8.
    pub virtual_lanes: u8,
    /// Tables whose entries are kept if they are still least-hop ports.
    pub existing: Option<Lfts>,
    /// Tables of the file engine (`-U`), read for this subnet.
    pub file_lfts: Option<Lfts>,
    /// Hop matrix of the file engine (`-M`), read for this subnet.
    pub file_hops: Option<HopMatrix>,
}

impl RoutingOptions {
    /// Returns the link weights by switch and port of the subnet.
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
