//! Paths to other ports, and the routes of packets in a simulated fabric.

use std::io;
use std::net::IpAddr;

use ib_link::Route;
use ib_types::{Gid, Mtu, PKey, ServiceLevel};
use ib_wire::mad::sa::PathRecord;
use ib_wire::packet::Grh;

/// A path to another port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Route of packets on the path.
    pub route: Route,
    /// Path MTU.
    pub mtu: Mtu,
    /// P_Key of the path.
    pub p_key: PKey,
}

/// The reason why there is no path to an address.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// No port has the address.
    #[error("no port of the fabric has the address {0}")]
    Unknown(IpAddr),
    /// The SA returns no path to the address.
    #[error("no path to {to}: {why}")]
    NoPath {
        /// The destination address.
        to: IpAddr,
        /// The reason why the SA returns no path.
        why: String,
    },
    /// A system call failed, or the simulator has disconnected.
    #[error("querying a path: {0}")]
    Io(#[from] io::Error),
}

/// Returns `route`. If there is a GRH, its destination GID, traffic class, flow label and hop limit
/// replace those of the route.
pub(crate) fn route_to(grh: Option<&Grh>, route: Route) -> Route {
    match grh {
        None => route,
        Some(grh) => Route {
            destination: grh.destination,
            is_global: true,
            traffic_class: grh.traffic_class,
            flow_label: grh.flow_label,
            hop_limit: grh.hop_limit,
            ..route
        },
    }
}

/// Returns the GRH of packets that take a route; `None` if the route is not global.
pub(crate) fn grh_of(route: &Route) -> Option<Grh> {
    route.is_global.then(|| Grh {
        traffic_class: route.traffic_class,
        flow_label: route.flow_label,
        hop_limit: route.hop_limit,
        source: route.source,
        destination: route.destination,
        ..Grh::default()
    })
}

/// Returns true if the LID is a multicast LID.
pub(crate) const fn is_group(lid: u16) -> bool {
    matches!(lid, 0xc000..=0xfffe)
}

/// Returns the route of the response to a packet. If the packet has a GRH, the source GID of the GRH becomes the
/// destination of the route, and the destination GID becomes the source.
pub(crate) fn route_from(own: Gid, grh: Option<&Grh>, route: Route) -> Route {
    match grh {
        None => Route { source: own, ..route },
        Some(grh) => Route {
            source: grh.destination,
            destination: grh.source,
            is_global: true,
            traffic_class: grh.traffic_class,
            flow_label: grh.flow_label,
            hop_limit: grh.hop_limit,
            ..route
        },
    }
}

/// Returns the route of a path record.
#[must_use]
pub fn route_of(path: &PathRecord) -> Route {
    Route {
        source: path.sgid,
        destination: path.dgid,
        slid: path.slid,
        dlid: path.dlid,
        sl: ServiceLevel::new(path.sl).unwrap_or_default(),
        is_global: path.hop_limit > 1,
        traffic_class: path.traffic_class,
        flow_label: path.flow_label,
        hop_limit: path.hop_limit,
        ..Route::default()
    }
}
