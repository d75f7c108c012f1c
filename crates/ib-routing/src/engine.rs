//! The routing engines and the list of them that is tried in order.

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
/// An engine only reads the subnet and its options, draws no random numbers of its own and gives
/// the same tables on every run and for every number of threads.
pub trait Engine: Sync {
    /// Returns which engine this is.
    fn kind(&self) -> EngineKind;

    /// Computes the forwarding tables of a subnet.
    ///
    /// # Errors
    /// Fails when the engine cannot serve this subnet with these options; the next engine of the
    /// list is tried then.
    fn route(&self, subnet: &Subnet<'_>, options: &RoutingOptions) -> Result<Routing, EngineError>;
}

/// The name of an engine, as `-R` spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EngineKind {
    /// Least hops, equalised over ports.
    MinHop,
    /// Up*/down* over ranks.
    UpDown,
    /// Fat tree, optimised for shift patterns.
    FatTree,
    /// Layered shortest paths over service levels.
    Lash,
    /// Dimension order.
    Dor,
    /// Tables loaded from a file.
    File,
}

impl EngineKind {
    /// All engines.
    pub const ALL: [Self; 6] =
        [Self::MinHop, Self::UpDown, Self::FatTree, Self::Lash, Self::Dor, Self::File];

    /// Returns the name that the command line uses.
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

/// The error of reading an [`EngineKind`] or an [`EngineList`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseEngineError {
    /// A word is no engine.
    #[error(
        "`{0}` is not a routing engine: expected minhop, updn, ftree, lash, dor or file, \
         no_fallback in a list, or auto"
    )]
    Unknown(String),
    /// A word is an engine of OpenSM that is not here.
    #[error(
        "`{0}` is an engine of OpenSM that is not supported here: expected minhop, updn, ftree, \
         lash, dor or file"
    )]
    Elsewhere(String),
    /// A list has no engine.
    #[error("`{0}` names no routing engine: expected minhop, updn, ftree, lash, dor or file in it")]
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

/// Why an engine did not route a subnet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The subnet or the options are not what the engine is made for.
    #[error("{0}")]
    Unsuitable(String),
    /// A file that the engine needs is missing or unusable.
    #[error("{0}")]
    Input(String),
}

/// What an engine hands back.
#[derive(Clone, Debug)]
pub struct Routing {
    /// The engine that made the tables.
    pub engine: EngineKind,
    /// The forwarding tables.
    pub lfts: Lfts,
    /// The hops that the tables were made from.
    pub hops: HopMatrix,
    /// The service level of each pair of switches.
    pub layers: Layers,
    /// The roots of updn or ftree, in order; empty for other engines.
    pub roots: Vec<SwitchId>,
    /// The order of the compute nodes that ftree routed for, with `None` for the dummies that
    /// fill up leaves; empty for other engines.
    pub ca_order: Vec<Option<EndPortId>>,
    /// What the user should know, one sentence each.
    pub notes: Vec<String>,
}

/// What the engines can be told. Every list names things by GUID; names that are not in the
/// subnet are skipped.
#[derive(Clone, Debug, Default)]
pub struct RoutingOptions {
    /// Root switches for updn and ftree (`-a`); a channel adapter's GUID stands for the switch
    /// that it hangs on. `None`: roots are detected.
    pub root_guids: Option<Vec<Guid>>,
    /// Compute-node port GUIDs for ftree (`-u`). `None`: every channel adapter is one.
    pub cn_guids: Option<Vec<Guid>>,
    /// I/O-node port GUIDs for ftree (`-G`).
    pub io_guids: Option<Vec<Guid>>,
    /// How many hops an I/O node's path may go up after it went down (`-H`).
    pub max_reverse_hops: u8,
    /// Whether ftree's indexing starts at the first root (`quasi_ftree_indexing`).
    pub quasi_ftree_indexing: bool,
    /// Switch ports that link load equalisation does not count (`-i`).
    pub ignored_ports: Vec<(Guid, u8)>,
    /// End ports to be routed first, in order (`-X`).
    pub guid_routing_order: Vec<Guid>,
    /// Per switch the ports to be scanned first, in order (`-O`).
    pub port_search_order: Vec<(Guid, Vec<u8>)>,
    /// The weight of links in hops, by switch and outgoing port (`-w`).
    pub hop_weights: Vec<(Guid, u8, u8)>,
    /// updn's identifiers of switches, which break ties of rank (`-m`).
    pub updn_ids: Vec<(Guid, u64)>,
    /// Whether updn lets root switches reach each other (`-z`).
    pub connect_roots: bool,
    /// Whether switches count as targets in load equalisation.
    pub count_switch_targets: bool,
    /// Whether the scan for the least used port is shifted from LID to LID.
    pub port_shifting: bool,
    /// The seed of the random choice among least used ports; zero for none.
    pub scatter_ports: u32,
    /// Whether nothing is drawn for the end ports of `guid_routing_order`.
    pub listed_unscattered: bool,
    /// The lowest VL that lash uses.
    pub lash_start_vl: u8,
    /// The number of data VLs that every link has, 1 to 15, 0 for the usual 8; what lash
    /// may use.
    pub virtual_lanes: u8,
    /// Tables to keep wherever an entry is still a least-hop port.
    pub existing: Option<Lfts>,
    /// The tables of the file engine (`-U`), read and mapped to this subnet.
    pub file_lfts: Option<Lfts>,
    /// The lid matrix of the file engine (`-M`), read and mapped to this subnet.
    pub file_hops: Option<HopMatrix>,
}

impl RoutingOptions {
    /// Returns the link weights as the subnet's switches and ports.
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
