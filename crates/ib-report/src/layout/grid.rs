//! Layout of meshes, tori and hypercubes, which are recognised by their ports.
//!
//! In a mesh, torus or hypercube, each direction has its own port. For example, a cable from port 1 to port 2 leads one
//! step along the first dimension at every switch. A search along the cables from one switch yields the coordinates of
//! every switch. If two paths to a switch yield coordinates that differ in one dimension, this dimension has cycles.
//! The difference is then a multiple of the cycle length. Missing cables and switches are tolerated. Cables at wrong
//! ports are not.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ib_routing::{Subnet, SwitchId};

use super::PITCH;

/// Maximum number of dimensions of a grid.
const MAX_DIMENSIONS: usize = 16;

/// Maximum width, in switches, of a three-dimensional grid whose slices are all side by side. A slice is a plane of the
/// first two dimensions. The slices of a wider grid are drawn in several rows.
const MAX_WIDTH: usize = 40;

/// Desired ratio of width to height of a three-dimensional grid whose slices (planes of the first two dimensions) are
/// drawn in several rows.
const ASPECT: f64 = 1.8;

/// Gap between the slices (planes of the first two dimensions) of a grid, as a number of switches.
const GAP: usize = 1;

/// A recognised grid.
pub(super) enum Found {
    /// The position of every switch.
    Grid(Vec<(f64, f64)>),
    /// The switches of a single cycle, in order.
    Ring(Vec<usize>),
}

/// Returns the positions of the switches of a mesh, torus or hypercube; `None` if the fabric is not a grid. In
/// dimensions with a cycle, the switch `origin` has coordinate 0.
pub(super) fn find(subnet: &Subnet<'_>, origin: usize) -> Option<Found> {
    let steps = steps(subnet)?;
    let walk = walk(&steps, origin)?;
    let rings = rings(&walk)?;
    let mut coordinates = walk.coordinates;
    settle(&mut coordinates, &rings);
    let sides: Vec<usize> = (0..steps.dimensions)
        .map(|d| coordinates.iter().map(|at| at[d] + 1).max().unwrap_or(1) as usize)
        .collect();
    let room = sides.iter().fold(1, |room: usize, &side| room.saturating_mul(side));
    let distinct: BTreeSet<&Vec<i64>> = coordinates.iter().collect();
    if distinct.len() < coordinates.len() || room > 2 * coordinates.len() {
        return None;
    }
    if rings.len() == 1 && rings[0] > 2 {
        let mut order: Vec<usize> = (0..coordinates.len()).collect();
        order.sort_by_key(|&switch| coordinates[switch][0]);
        return Some(Found::Ring(order));
    }
    Some(Found::Grid(coordinates.iter().map(|at| place(at, &sides)).collect()))
}

/// A link from a switch: the peer switch, the dimension, and the direction (1 or -1; 0 if both ends have the same port
/// number). A dimension whose links have direction 0 has only the coordinates 0 and 1.
type Step = (usize, usize, i64);

struct Steps {
    of: Vec<Vec<Step>>,
    dimensions: usize,
}

fn steps(subnet: &Subnet<'_>) -> Option<Steps> {
    let mut cables: BTreeMap<(SwitchId, SwitchId), (u8, u8)> = BTreeMap::new();
    for from in subnet.switch_ids() {
        for (port, to, there) in subnet.switch_links(from) {
            let key = |(a, b): (u8, u8)| (a.min(b), a.max(b));
            cables
                .entry((from, to))
                .and_modify(|known| {
                    if (key((port, there)), port) < (key(*known), known.0) {
                        *known = (port, there);
                    }
                })
                .or_insert((port, there));
        }
    }
    let kinds: BTreeSet<(u8, u8)> = cables.values().map(|&(a, b)| (a.min(b), a.max(b))).collect();
    if kinds.is_empty() || kinds.len() > MAX_DIMENSIONS {
        return None;
    }
    let dimension: BTreeMap<(u8, u8), usize> = kinds.into_iter().zip(0..).collect();
    let mut of = vec![Vec::new(); subnet.switches().len()];
    for (&(from, to), &(port, there)) in &cables {
        let direction = i64::from(there > port) - i64::from(there < port);
        of[from.index()].push((
            to.index(),
            dimension[&(port.min(there), port.max(there))],
            direction,
        ));
    }
    Some(Steps { of, dimensions: dimension.len() })
}

/// The result of a breadth-first search along the links from one switch.
struct Walk {
    /// The coordinates of each switch, as recorded when the search first reached it.
    coordinates: Vec<Vec<i64>>,
    /// Contradictions: a link implies other coordinates of its peer switch than the recorded ones. Each element holds
    /// the implied minus the recorded coordinates of such a switch.
    conflicts: Vec<Vec<i64>>,
}

fn walk(steps: &Steps, origin: usize) -> Option<Walk> {
    let mut at: Vec<Option<Vec<i64>>> = vec![None; steps.of.len()];
    at[origin] = Some(vec![0; steps.dimensions]);
    let mut conflicts = Vec::new();
    let mut queue = VecDeque::from([origin]);
    while let Some(from) = queue.pop_front() {
        let here = at[from].clone()?;
        for &(to, dimension, direction) in &steps.of[from] {
            let mut there = here.clone();
            there[dimension] =
                if direction == 0 { 1 - here[dimension] } else { here[dimension] + direction };
            match &at[to] {
                None => {
                    at[to] = Some(there);
                    queue.push_back(to);
                }
                Some(known) if *known == there => {}
                Some(known) => {
                    conflicts.push(there.iter().zip(known).map(|(a, b)| a - b).collect());
                }
            }
        }
    }
    Some(Walk { coordinates: at.into_iter().collect::<Option<_>>()?, conflicts })
}

/// Returns the cycle length of each dimension, 0 for a dimension without cycles. Returns `None` if an element of
/// [`Walk::conflicts`] is not a multiple of the cycle lengths, or if a length is 1.
fn rings(walk: &Walk) -> Option<Vec<i64>> {
    let mut rings = vec![0; walk.coordinates.first()?.len()];
    for conflict in &walk.conflicts {
        let mut off = conflict.iter().enumerate().filter(|&(_, &difference)| difference != 0);
        if let (Some((dimension, difference)), None) = (off.next(), off.next()) {
            rings[dimension] = common_divisor(rings[dimension], difference.abs());
        }
    }
    let fits = |(&difference, &ring): (&i64, &i64)| {
        if ring == 0 { difference == 0 } else { difference % ring == 0 }
    };
    let consistent = walk.conflicts.iter().all(|conflict| conflict.iter().zip(&rings).all(fits));
    (consistent && !rings.contains(&1)).then_some(rings)
}

fn common_divisor(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// Shifts or wraps the coordinates of each dimension so that they start at 0.
fn settle(coordinates: &mut [Vec<i64>], rings: &[i64]) {
    for (dimension, &ring) in rings.iter().enumerate() {
        let low = coordinates.iter().map(|at| at[dimension]).min().unwrap_or(0);
        for at in coordinates.iter_mut() {
            at[dimension] =
                if ring > 0 { at[dimension].rem_euclid(ring) } else { at[dimension] - low };
        }
    }
}

/// Returns the position of a switch. The first two dimensions are the columns and rows of a slice. The slices of the
/// third dimension are side by side, or in several rows if a three-dimensional grid is wide. Each further dimension
/// repeats the drawing of the preceding ones, alternately downwards and to the right.
fn place(at: &[i64], sides: &[usize]) -> (f64, f64) {
    let (mut x, mut y, mut wide, mut high) = (0, 0, 1, 1);
    for (dimension, (&at, &side)) in at.iter().zip(sides).enumerate() {
        let at = at as usize;
        let gap = if dimension < 2 { 0 } else { GAP };
        let columns = match dimension {
            2 if sides.len() == 3 && side * (wide + GAP) > MAX_WIDTH => {
                let even = (side as f64 * ASPECT * high as f64 / wide as f64).sqrt();
                side.div_ceil(side.div_ceil((even.round() as usize).clamp(1, side)))
            }
            _ if dimension % 2 == 0 => side,
            _ => 1,
        };
        x += at % columns * (wide + gap);
        y += at / columns * (high + gap);
        wide = columns * (wide + gap) - gap;
        high = side.div_ceil(columns) * (high + gap) - gap;
    }
    (x as f64 * PITCH, y as f64 * PITCH)
}
