//! The M_Key of a port and its protection level (IBTA volume 1, chapter 14.2.4).

use std::time::Duration;

use ib_topology::PortId;
use ib_wire::mad::sm::notice::{MKeyDetails, NoticeType};
use ib_wire::mad::sm::{NoticeDetails, TrapNumber};
use ib_wire::mad::{AttributeId, Mad, Method, MgmtClass};

use crate::event::{Event, Timer};
use crate::fabric::FabricState;
use crate::network::Network;

/// The access that a request gets because of its M_Key. The variants are ordered from full access
/// to none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Access {
    /// Reads and writes are allowed.
    Full,
    /// Only reads are allowed. The M_Key in the response is zero.
    WithoutKey,
    /// No access.
    Denied,
}

/// Checks the M_Key of a request that has arrived at a port (IBTA volume 1, chapter 14.2.4).
///
/// If the request selects another port of the HCA, and the arrival port does not deny it, the M_Key is also checked at
/// the selected port. The more restricted access applies.
pub(crate) fn check_m_key(net: &mut Network, port: PortId, slid: u16, mad: &Mad) -> Access {
    let access = check_port(net, port, slid, mad);
    match other_port(&net.fabric, port, mad) {
        Some(other) if access != Access::Denied => access.max(check_port(net, other, slid, mad)),
        _ => access,
    }
}

/// Returns the port of an HCA that a request selects; `None` if it is the port at which the request
/// has arrived.
fn other_port(fabric: &FabricState, port: PortId, mad: &Mad) -> Option<PortId> {
    if fabric.node_of(port).kind.is_switch() {
        return None;
    }
    let number = match mad.attribute_id() {
        AttributeId::PORT_INFO | AttributeId::MLNX_EXT_PORT_INFO => mad.attribute_modifier() & 0xff,
        AttributeId::VL_ARBITRATION => mad.attribute_modifier() & 0xffff,
        _ => return None,
    };
    fabric.selected_port(port, number).ok().filter(|&other| other != port)
}

fn check_port(net: &mut Network, port: PortId, slid: u16, mad: &Mad) -> Access {
    let end = net.fabric.end_port_of(port);
    let state = net.fabric.port_mut(end);
    let info = &mut state.info;
    if info.m_key == 0 || info.m_key == mad.m_key() {
        state.lease_ends = None;
        return Access::Full;
    }
    match (mad.method(), info.m_key_protect) {
        (Method::GET, 0) => return Access::Full,
        (Method::GET, 1) => return Access::WithoutKey,
        _ => {}
    }
    info.m_key_violations = info.m_key_violations.saturating_add(1);
    let lease = info.m_key_lease_period;
    if lease > 0 && state.lease_ends.is_none() {
        let at = net.clock.now() + Duration::from_secs(u64::from(lease));
        state.lease_ends = Some(at);
        net.clock.schedule(at, Event::Timer(Timer::Lease { port: end }));
    }
    let details = NoticeDetails::MKey(violation(slid, mad));
    net.raise(end, NoticeType::SECURITY, TrapNumber::BAD_M_KEY, &details);
    Access::Denied
}

/// Ends the M_Key lease of a port: sets the protection level to 0.
pub(crate) fn lease_ends(net: &mut Network, port: PortId) {
    let now = net.now();
    let state = net.fabric.port_mut(port);
    if state.lease_ends.is_some_and(|at| at <= now) {
        state.lease_ends = None;
        state.info.m_key_protect = 0;
    }
}

/// Returns the notice details of the trap that reports a request with a wrong M_Key.
fn violation(slid: u16, mad: &Mad) -> MKeyDetails {
    let mut details = MKeyDetails::zeroed();
    details.lid = slid;
    details.method = mad.method();
    details.attribute_id = mad.attribute_id();
    details.attribute_modifier = mad.attribute_modifier();
    details.m_key = mad.m_key();
    details.is_directed = mad.class() == MgmtClass::SUBN_DIRECTED_ROUTE;
    if details.is_directed {
        details.dr_slid = mad.dr_slid();
        // Entry 0 of the return path is unused.
        let path = &mad.return_path()[1..];
        let hops = usize::from(mad.hop_count());
        let shown = hops.min(details.return_path.len());
        details.path_truncated = shown < hops;
        details.hops = shown as u8;
        details.return_path[..shown].copy_from_slice(&path[..shown]);
    }
    details
}

#[cfg(test)]
mod tests;
