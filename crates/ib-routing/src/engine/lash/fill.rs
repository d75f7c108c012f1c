//! Chooses routes and layers, one layer after the other.

use super::dimensions::Dimensions;
use super::graph::DependencyGraph;
use super::network::{NONE, Network};
use super::ordered;
use super::orientation::Orientation;
use super::routes::{Layout, Routes, open_pairs};
use super::search::PathSearch;

/// Number of turns that all cycle searches of a layer together may visit. Once it is used up, each further search may
/// visit only a few turns.
const EFFORT: usize = 1 << 20;

/// If the cycle searches have visited more than this many turns since a pair was last added to the layer, the layer is
/// considered full.
const PATIENCE: usize = 1 << 20;

/// A method of filling the layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Recipe {
    /// True if each layer first gets the pairs of switches whose shortest paths follow an [`Orientation`]. If false, a
    /// search ([`PathSearch`]) chooses all paths.
    pub(super) oriented: bool,
    /// True if every second layer uses the mirrored orientation of the previous layer.
    pub(super) mirrored: bool,
    /// True if the orientation uses the dimensions of a grid.
    pub(super) dimensions: bool,
    /// The root of the first layer's orientation, as an index among the switches with hosts.
    pub(super) root: usize,
}

/// Chooses routes and layers by one method, the recipe. Returns `None` if more than `limit` layers are needed.
pub(super) fn fill(
    network: &Network<'_>,
    dimensions: Option<&Dimensions>,
    recipe: Recipe,
    limit: usize,
) -> Option<Layout> {
    let switches = network.switches();
    let dimensions = dimensions.filter(|_| recipe.dimensions);
    let mut layout = Layout {
        routes: Routes::none(switches),
        layers: vec![NONE; switches * switches],
        orders: Vec::new(),
    };
    let mut load = vec![ordered::Load::default(); network.channels()];
    let mut root = first_root(network, recipe.root);
    let mut open = open_pairs(network, &layout.layers);
    while !open.is_empty() {
        let layer = layout.count();
        if layer == limit {
            return None;
        }
        let mirrored = recipe.mirrored && layer % 2 == 1;
        if layer > 0 && !mirrored {
            root = neediest(switches, &open);
        }
        let mut graph = DependencyGraph::new(network, EFFORT);
        if recipe.oriented {
            let orientation = Orientation::new(network, dimensions, root, mirrored);
            graph = graph.with_places(orientation.place.clone());
            let (routes, layers) = (&mut layout.routes, &mut layout.layers);
            let number = layer as u8;
            ordered::place(network, &orientation, number, routes, layers, &mut load, &mut graph);
            open = open_pairs(network, layers);
        }
        // Pairs with the fewest hops between them are placed first, because they have the fewest paths to choose from.
        // Among pairs with equally many hops, those near the root come first.
        let near = network.distances(root);
        open.sort_by_cached_key(|&(a, b)| {
            let (a, b) = (usize::from(a), usize::from(b));
            (network.distances(a)[b], u16::from(near[a]) + u16::from(near[b]))
        });
        let mut search = PathSearch::new(network, dimensions, graph, load);
        let mut last_success = 0;
        open.retain(|&(a, b)| {
            if search.graph().visited_turns() > last_success + PATIENCE {
                return true;
            }
            let (a, b) = (usize::from(a), usize::from(b));
            let placed = search.place(&mut layout.routes, a, b);
            if placed {
                last_success = search.graph().visited_turns();
                layout.layers[a * switches + b] = layer as u8;
                layout.layers[b * switches + a] = layer as u8;
            }
            !placed
        });
        let (graph, spread) = search.into_graph();
        load = spread;
        layout.orders.push(graph.into_places());
    }
    Some(layout)
}

/// Returns the switch with the index `number` among the switches with hosts or, if there are none, among all switches.
/// An index that is too high wraps around.
fn first_root(network: &Network<'_>, number: usize) -> usize {
    let with_hosts: Vec<usize> =
        (0..network.switches()).filter(|&switch| network.hosts(switch) > 0).collect();
    match with_hosts.len() {
        0 => number % network.switches().max(1),
        count => with_hosts[number % count],
    }
}

/// Returns the switch that occurs most often in `open`, the pairs that have no layer yet. If several switches occur
/// equally often, returns the lowest one.
fn neediest(switches: usize, open: &[(u16, u16)]) -> usize {
    let mut ends = vec![0u32; switches];
    for &(a, b) in open {
        ends[usize::from(a)] += 1;
        ends[usize::from(b)] += 1;
    }
    let most = ends.iter().max().copied().unwrap_or(0);
    ends.iter().position(|&ends| ends == most).unwrap_or(0)
}
