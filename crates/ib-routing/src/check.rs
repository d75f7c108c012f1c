//! Checks of forwarding tables: reachability, forwarding loops, credit loops, hops and load.
//!
//! | file | contents |
//! |---|---|
//! | `reach` | [`Reachability`]: the LIDs that each switch does not reach, the causes, and forwarding loops |
//! | `credit` | [`CreditLoops`]: cycles of links that can wait for each other indefinitely |
//! | `hops`, `load` | [`HopStats`] and [`LinkLoad`]: the lengths of routes, and the number of routes over each link |
//! | `vls` | [`VlMap`]: the VL that packets of a service level use on each link |
//! | `pass` | the pass over all LIDs that collects these results |
//! | `tree`, `distance` | the forwarding tree of one LID; the least hops to up to 64 destinations |
//! | `dependency`, `cycle` | the channel dependency graph and its cycles |
//! | `wiring` | the port at the far end of every output port |
//! | `checker` | [`Checker`]: incremental checks after changes of a few entries |
//!
//! The tables can be arbitrary: entries may name missing ports, unlinked ports or wrong neighbours,
//! and may form loops.
//!
//! ```
//! use ib_routing::engine::dor::Dor;
//! use ib_routing::{Engine, RoutingOptions, Subnet, SubnetOptions, check};
//! use ib_topology::generate::{Kind, Options, generate};
//!
//! let routed = |kind, size| {
//!     let kind = Kind::parse(kind, &[size]).expect("the kind and its size are valid");
//!     let fabric = generate(&kind, &Options::default()).expect("the fabric can be generated");
//!     let subnet = Subnet::discover(&fabric, &SubnetOptions::default()).expect("the fabric has a linked port");
//!     let routing = Dor.route(&subnet, &RoutingOptions::default()).expect("dor supports the subnet");
//!     check::check(&subnet, &routing.lfts, &routing.layers)
//! };
//! assert!(routed("mesh", "4x4").is_sound());
//! // Dimension order routing deadlocks on a cycle of switches.
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

/// Checks forwarding tables with the default [`CheckOptions`].
///
/// # Panics
/// Panics if the tables or the layers belong to another subnet.
#[must_use]
pub fn check(subnet: &Subnet<'_>, lfts: &Lfts, layers: &Layers) -> CheckReport {
    check_with(subnet, lfts, layers, &CheckOptions::default())
}

/// Checks forwarding tables with the given options.
///
/// The result does not depend on the number of threads.
///
/// # Panics
/// Panics if the tables or the layers belong to another subnet.
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

/// Options of a check.
#[derive(Clone, Copy)]
pub struct CheckOptions<'a> {
    /// Selects the packets that are considered in the search for credit loops.
    pub scope: Scope,
    /// Maximum number of examples of each kind of fault, and of most loaded links.
    pub samples: usize,
    /// The SL-to-VL tables. `None` if packets of SL n use VL n on every link.
    pub vl_map: Option<&'a dyn VlMap>,
    /// Unknown LFT entries. If packets from a switch to a LID reach such an entry, the result for this switch and LID
    /// is unknown.
    pub unknown: Option<&'a UnknownEntries>,
}

impl Default for CheckOptions<'_> {
    /// Considers packets between hosts, lists 16 examples, and assumes that packets of SL n use VL n.
    fn default() -> Self {
        Self { scope: Scope::Hosts, samples: 16, vl_map: None, unknown: None }
    }
}

/// Selects the packets that are considered in the search for credit loops. A host is a port of a channel adapter or
/// router.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Only packets between hosts. Most engines avoid credit loops for these packets.
    #[default]
    Hosts,
    /// Also packets between hosts and port 0 of switches in both directions, such as the packets of a performance
    /// manager.
    Management,
    /// All packets, also packets between port 0 of different switches, such as the packets of an SM on a switch.
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

/// Results of a check of forwarding tables.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckReport {
    /// Reachability of LIDs.
    pub reach: Reachability,
    /// Credit loops.
    pub credit: CreditLoops,
    /// Statistics of the lengths of routes.
    pub hops: HopStats,
    /// Statistics of the number of routes per link.
    pub load: LinkLoad,
}

impl CheckReport {
    /// Returns true if there are no unreachable LIDs, forwarding loops or credit loops.
    ///
    /// The pairs of a switch and a LID in [`Reachability::unreachable_switch_pairs`] are not faults.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.reach.unreachable == 0 && self.reach.looping_lids == 0 && self.credit.loops == 0
    }
}

/// Returns the GUID and description of a switch, as used in messages.
fn switch_name(subnet: &Subnet<'_>, switch: SwitchId) -> String {
    let node = subnet.switch_node(switch);
    format!("{} ('{}')", node.guid, node.description)
}

/// Returns the text for the far end of a switch port, as used in messages.
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
