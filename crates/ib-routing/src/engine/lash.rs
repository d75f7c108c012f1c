//! Layered shortest paths, whose service levels avoid deadlock on any topology.
//!
//! Every pair of switches gets shortest paths in both directions. Both paths belong to the same layer. The channel
//! dependency graph of each layer has no cycle (Skeie, Lysne and Theiss, "Layered Shortest Path (LASH) Routing in
//! Irregular System Area Networks", 2002). Each layer has its own service level, which uses the VL of the same number.
//!
//! The number of layers depends mainly on the choice among shortest paths, so paths and layers are chosen together.
//! Each layer first gets the pairs whose shortest paths follow an orientation, i.e. a fixed order of the channels,
//! because these paths close no cycle. Then the layer gets pairs for which a search finds paths that close no cycle.
//! Finally, pairs are moved from full layers to less full ones.
//!
//! OpenSM takes the paths of breadth-first searches and puts each pair into the first layer in which its paths close no
//! cycle. This engine tries that method last, and lets it use at most one layer fewer than the best result so far. So
//! the engine never uses more layers than OpenSM.
//!
//! | file | holds |
//! |---|---|
//! | `network` | the switches, the channels between them, and the turns from channel to channel |
//! | `routes` | the next switch of every route, and the layer of every pair |
//! | `graph` | the channel dependency graph of a layer, kept without cycles |
//! | `dimensions`, `orientation` | the dimensions of grids, and orders of the channels |
//! | `fill` | the assignment of pairs of switches to layers, by `ordered` and `search` |
//! | `ordered` | the assignment of all pairs whose paths follow an orientation |
//! | `search` | the assignment of single pairs, for which a search finds paths |
//! | `first_fit` | the assignment of given paths to layers |
//! | `balance` | the balancing of the number of pairs per layer |
//! | `tables` | the resulting forwarding tables and service levels |

use rayon::prelude::*;

use super::{Engine, EngineError, EngineKind, Routing, RoutingOptions};
use crate::hops::{HopMatrix, LinkWeights};
use crate::subnet::Subnet;

mod balance;
mod dimensions;
mod fill;
mod first_fit;
mod graph;
mod network;
mod ordered;
mod orientation;
mod routes;
mod search;
mod tables;

use dimensions::Dimensions;
use fill::Recipe;
use network::{NONE, Network};
use routes::Layout;

/// Number of VLs if the options do not specify it. OpenSM uses the same number on fabrics that ibsim simulates.
const DEFAULT_VLS: u8 = 8;

/// Maximum number of data VLs of a link.
const MAX_VLS: u8 = 15;

/// Maximum number of layers that are tried. It exceeds the number of VLs, so that the error can report how many layers
/// the fabric needs.
const MAX_LAYERS: usize = 64;

/// If a fabric has more switches than this, only one recipe, i.e. one method of filling the layers, is tried.
const LARGE: usize = 768;

/// The lash engine, which routes by layered shortest paths.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lash;

impl Engine for Lash {
    fn kind(&self) -> EngineKind {
        EngineKind::Lash
    }

    fn route(&self, subnet: &Subnet<'_>, options: &RoutingOptions) -> Result<Routing, EngineError> {
        if subnet.lmc().get() > 0 {
            return Err(unsuitable(&format!("LMC is {}; expected 0", subnet.lmc())));
        }
        if subnet.switches().is_empty() {
            return Err(unsuitable("the subnet has no switch; expected at least one"));
        }
        let vls = VlRange::new(options)?;
        let hops = HopMatrix::shortest(subnet, &LinkWeights::default());
        let network = Network::new(subnet, &hops);
        let mut layout = lay_out(&network, &vls)?;
        balance::balance(&network, &mut layout);
        let lfts = tables::lfts(subnet, &network, &layout);
        let layers = tables::levels(&layout, network.switches(), vls.first);
        let notes = vec![note(&layout, vls.first)];
        Ok(Routing {
            engine: self.kind(),
            lfts,
            layers,
            hops,
            roots: Vec::new(),
            ca_order: Vec::new(),
            notes,
        })
    }
}

fn unsuitable(reason: &str) -> EngineError {
    EngineError::Unsuitable(format!("lash: {reason}"))
}

/// The VLs that the layers may use.
struct VlRange {
    first: u8,
    count: u8,
}

impl VlRange {
    fn new(options: &RoutingOptions) -> Result<Self, EngineError> {
        let vls = match options.virtual_lanes {
            0 => DEFAULT_VLS,
            vls => vls.min(MAX_VLS),
        };
        let first = options.lash_start_vl;
        if first >= vls {
            return Err(unsuitable(&format!(
                "the starting VL is {first}; expected less than {vls}, the number of \
                 data VLs"
            )));
        }
        Ok(Self { first, count: vls - first })
    }
}

/// Fills the layers by several methods ([`Recipe`]), and then by the method of OpenSM. Returns the routes and layers of
/// the method that needs the fewest layers.
fn lay_out(network: &Network<'_>, vls: &VlRange) -> Result<Layout, EngineError> {
    let dimensions = Dimensions::find(network);
    let mut best: Option<Layout> = None;
    let fewer = |best: &Option<Layout>| {
        best.as_ref().map_or(MAX_LAYERS, |best| best.count().saturating_sub(1))
    };
    for recipes in waves(network, dimensions.is_some()) {
        let limit = fewer(&best);
        if limit == 0 {
            break;
        }
        let found: Vec<Option<Layout>> = recipes
            .par_iter()
            .map(|&recipe| fill::fill(network, dimensions.as_ref(), recipe, limit))
            .collect();
        best = found.into_iter().flatten().min_by_key(Layout::count).or(best);
    }
    if fewer(&best) > 0 {
        let unplaced = vec![NONE; network.switches() * network.switches()];
        let pairs = routes::open_pairs(network, &unplaced);
        let given = first_fit::lowest_ports(network);
        best = first_fit::first_fit(network, given, &pairs, fewer(&best)).or(best);
    }
    let available = usize::from(vls.count);
    match best {
        Some(layout) if layout.count() <= available => Ok(layout),
        Some(layout) => Err(unsuitable(&format!(
            "{} layers are needed; expected at most {available}, the VLs from {} on",
            layout.count(),
            vls.first
        ))),
        None => Err(unsuitable(&format!(
            "more than {MAX_LAYERS} layers are needed; expected at most {available}"
        ))),
    }
}

/// Returns the recipes to try for filling the layers, in groups. The recipes of a group are tried in parallel.
fn waves(network: &Network<'_>, grid: bool) -> Vec<Vec<Recipe>> {
    let base = Recipe { oriented: true, mirrored: false, dimensions: false, root: 0 };
    let (along, mirrored) =
        (Recipe { dimensions: true, ..base }, Recipe { mirrored: true, ..base });
    if network.switches() > LARGE {
        vec![vec![if grid { along } else { mirrored }]]
    } else if grid {
        vec![vec![along], vec![Recipe { oriented: false, ..along }, mirrored]]
    } else {
        vec![vec![mirrored, Recipe { oriented: false, ..base }], vec![base]]
    }
}

/// Returns a note with the number of pairs of switches in each layer.
fn note(layout: &Layout, first: u8) -> String {
    let mut pairs = vec![0usize; layout.count()];
    for &layer in layout.layers.iter().filter(|&&layer| layer != NONE) {
        pairs[usize::from(layer)] += 1;
    }
    let pairs: Vec<String> = pairs
        .iter()
        .zip(first..)
        .map(|(paths, level)| format!("SL{level}: {}", paths / 2))
        .collect();
    format!("pairs of switches by service level: {}", pairs.join(", "))
}

#[cfg(test)]
mod tests;
