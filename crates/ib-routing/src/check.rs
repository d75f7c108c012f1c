//! The proof that forwarding tables are sound, whoever made them.
//!
//! | file | holds |
//! |---|---|
//! | `reach` | [`Reachability`]: which switch does not reach which LID, why, and forwarding loops |
//! | `credit` | [`CreditLoops`]: rings of links that can wait for each other indefinitely |
//! | `hops`, `load` | [`HopStats`] and [`LinkLoad`]: how long the routes are and how well spread |
//! | `vls` | [`VlMap`]: which VL a service level uses on each link |
//! | `pass` | the one pass over all LIDs that collects the above |
//! | `tree`, `distance` | what the pass knows of one LID and of 64 destinations |
//! | `dependency`, `cycle` | the channel dependency graph and its cycles |
//! | `wiring` | what every output port leads to |
//! | `checker` | [`Checker`]: the check of tables of which a few entries have changed |
//!
//! Nothing is taken for granted about the tables: entries may name ports that the switch does not
//! have, ports without a cable or the wrong neighbour, and may lead round in circles.
//!
//! ```
//! use ib_routing::engine::dor::Dor;
//! use ib_routing::{Engine, RoutingOptions, Subnet, SubnetOptions, check};
//! use ib_topology::generate::{Kind, Options, generate};
//!
//! let routed = |kind, size| {
//!     let kind = Kind::parse(kind, &[size]).expect("a kind of fabric");
//!     let fabric = generate(&kind, &Options::default()).expect("a fabric");
//!     let subnet = Subnet::discover(&fabric, &SubnetOptions::default()).expect("a subnet");
//!     let routing = Dor.route(&subnet, &RoutingOptions::default()).expect("routes");
//!     check::check(&subnet, &routing.lfts, &routing.layers)
//! };
//! assert!(routed("mesh", "4x4").is_sound());
//! // Dimension order does not help on a ring.
//! assert_eq!(routed("torus", "5").credit.loops, 2);
//! ```

use crate::layers::Layers;
use crate::lft::{Lfts, UnknownEntries};
use crate::subnet::{Peer, Subnet, SwitchId};

mod checker;
mod credit;
mod cycle;
mod dependency;
mod distance;
mod hops;
mod load;
mod pass;
mod reach;
mod tree;
mod vls;
pub(crate) mod wiring;

pub use checker::Checker;
pub use credit::{CreditLoop, CreditLoops, HeldChannel};
pub use hops::HopStats;
pub use load::{LinkLoad, LoadHistogram, LoadedLink};
pub use reach::{Cause, ForwardingLoop, Reachability, Unreachable};
pub use vls::VlMap;

use crate::hops::Graph;
use dependency::Turns;
use pass::{Findings, Pass, Tables};
use vls::{Mapped, SameNumber, VlRule};
use wiring::Wiring;

/// Checks tables, with the default of [`CheckOptions`].
///
/// # Panics
/// Panics when the tables or the layers are those of another subnet.
#[must_use]
pub fn check(subnet: &Subnet<'_>, lfts: &Lfts, layers: &Layers) -> CheckReport {
    check_with(subnet, lfts, layers, &CheckOptions::default())
}

/// Checks tables.
///
/// The result does not depend on the number of threads.
///
/// # Panics
/// Panics when the tables or the layers are those of another subnet.
#[must_use]
pub fn check_with(
    subnet: &Subnet<'_>,
    lfts: &Lfts,
    layers: &Layers,
    options: &CheckOptions<'_>,
) -> CheckReport {
    let (wiring, graph) = (&Wiring::new(subnet), &Graph::new(subnet));
    let tables = Tables { lfts, layers, wiring, graph, unknown: options.unknown };
    match options.vl_map {
        None => run(subnet, tables, SameNumber, options),
        Some(map) => run(subnet, tables, Mapped { map, wiring }, options),
    }
}

fn run<L: VlRule>(
    subnet: &Subnet<'_>,
    tables: Tables<'_>,
    vls: L,
    options: &CheckOptions<'_>,
) -> CheckReport {
    let Findings { reach, hops, turns, routes, .. } =
        Pass::new(subnet, tables, vls, options.scope, options.samples).run::<Turns>();
    CheckReport {
        credit: CreditLoops::find(tables.wiring, &turns, options.samples),
        load: LinkLoad::new(tables.wiring, routes, options.samples),
        reach,
        hops: hops.stats(),
    }
}

/// What is checked and how much of it is named.
#[derive(Clone, Copy)]
pub struct CheckOptions<'a> {
    /// Whose packets may cause credit loops.
    pub scope: Scope,
    /// How many examples of each fault, and of the most loaded links, are named.
    pub samples: usize,
    /// The SL-to-VL tables; without any, SL n travels on VL n.
    pub vl_map: Option<&'a dyn VlMap>,
    /// The entries that are not known: packets that come to one are not judged.
    pub unknown: Option<&'a UnknownEntries>,
}

impl Default for CheckOptions<'_> {
    /// Returns hosts only, 16 examples and SL n on VL n.
    fn default() -> Self {
        Self { scope: Scope::Hosts, samples: 16, vl_map: None, unknown: None }
    }
}

/// Whose packets are considered in the search for credit loops. A host is a port of a channel
/// adapter or router.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// From host to host: what carries data, and what every engine promises to keep free of
    /// deadlock.
    #[default]
    Hosts,
    /// Also between a host and a switch's own port 0, both ways, as a performance manager's
    /// queries go.
    Management,
    /// Also from one switch's port 0 to another's, as they go when the subnet manager is on a
    /// switch.
    Everything,
}

impl Scope {
    fn hosts_send_to(self, switch: bool) -> bool {
        !switch || self != Self::Hosts
    }

    fn switches_send_to(self, switch: bool) -> bool {
        if switch { self == Self::Everything } else { self != Self::Hosts }
    }
}

/// What the tables of a subnet do.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckReport {
    /// Which LIDs can be reached from where.
    pub reach: Reachability,
    /// Rings of links that can deadlock.
    pub credit: CreditLoops,
    /// The lengths of routes.
    pub hops: HopStats,
    /// The routes over each link.
    pub load: LinkLoad,
}

impl CheckReport {
    /// Returns true when every LID arrives from wherever it must, nothing goes round indefinitely and
    /// nothing can deadlock.
    ///
    /// Switches that do not reach other switches do not count, see
    /// [`Reachability::unreachable_switch_pairs`].
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.reach.unreachable == 0 && self.reach.looping_lids == 0 && self.credit.loops == 0
    }
}

/// Returns a switch as messages name it.
fn switch_name(subnet: &Subnet<'_>, switch: SwitchId) -> String {
    let node = subnet.switch_node(switch);
    format!("{} ('{}')", node.guid, node.description)
}

/// Returns what is at a port of a switch as messages name it.
fn peer_name(subnet: &Subnet<'_>, switch: SwitchId, port: u8) -> String {
    match subnet.peers(switch).get(usize::from(port)) {
        Some(&Peer::Switch(next, there)) => format!("{} port {there}", switch_name(subnet, next)),
        Some(&Peer::EndPort(end)) => {
            let node = subnet.end_port_node(end);
            format!("{} ('{}')", node.guid, node.description)
        }
        Some(Peer::None) | None => "itself".to_owned(),
    }
}

#[cfg(test)]
pub(crate) mod tests;
