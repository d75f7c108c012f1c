//! The key that guards a port; IBTA volume 1, chapter 14.2.4.

use std::time::Duration;

use ib_topology::PortId;
use ib_wire::mad::sm::notice::{MKeyDetails, NoticeType};
use ib_wire::mad::sm::{NoticeDetails, TrapNumber};
use ib_wire::mad::{AttributeId, Mad, Method, MgmtClass};

use crate::event::{Event, Timer};
use crate::sim::Sim;

/// What a request's M_Key allows, from everything to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Access {
    /// Everything.
    Full,
    /// Reading everything but the key itself.
    WithoutKey,
    /// Nothing.
    Denied,
}

impl Sim {
    /// Judges the key of a request that arrived at a port; IBTA volume 1, chapter 14.2.4.
    ///
    /// Where it is about another port of an adapter, it has to have that one's key as well.
    pub(crate) fn check_m_key(&mut self, port: PortId, slid: u16, mad: &Mad) -> Access {
        let access = self.check_port_m_key(port, slid, mad);
        match self.other_port(port, mad) {
            Some(other) if access != Access::Denied => {
                access.max(self.check_port_m_key(other, slid, mad))
            }
            _ => access,
        }
    }

    /// Returns the port of an adapter that a request names, if it is not the one where it arrived.
    fn other_port(&self, port: PortId, mad: &Mad) -> Option<PortId> {
        if self.is_switch(self.port(port).node) {
            return None;
        }
        let number = match mad.attribute_id() {
            AttributeId::PORT_INFO | AttributeId::MLNX_EXT_PORT_INFO => {
                mad.attribute_modifier() & 0xff
            }
            AttributeId::VL_ARBITRATION => mad.attribute_modifier() & 0xffff,
            _ => return None,
        };
        self.selected_port(port, number).ok().filter(|&other| other != port)
    }

    fn check_port_m_key(&mut self, port: PortId, slid: u16, mad: &Mad) -> Access {
        let end = self.end_port_of(port);
        let info = &mut self.port_mut(end).info;
        if info.m_key == 0 || info.m_key == mad.m_key() {
            self.port_mut(end).lease_ends = None;
            return Access::Full;
        }
        match (mad.method(), info.m_key_protect) {
            (Method::GET, 0) => return Access::Full,
            (Method::GET, 1) => return Access::WithoutKey,
            _ => {}
        }
        info.m_key_violations = info.m_key_violations.saturating_add(1);
        let lease = info.m_key_lease_period;
        if lease > 0 && self.port(end).lease_ends.is_none() {
            let at = self.now() + Duration::from_secs(u64::from(lease));
            self.port_mut(end).lease_ends = Some(at);
            self.schedule(at, Event::Timer(Timer::Lease { port: end }));
        }
        let details = violation(slid, mad);
        let what = (NoticeType::SECURITY, TrapNumber::BAD_M_KEY);
        self.raise(end, what, &NoticeDetails::MKey(details));
        Access::Denied
    }

    /// The lease of an M_Key ends: the port is not protected any more.
    pub(crate) fn lease_ends(&mut self, port: PortId) {
        let now = self.now();
        let state = self.port_mut(port);
        if state.lease_ends.is_some_and(|at| at <= now) {
            state.lease_ends = None;
            state.info.m_key_protect = 0;
        }
    }
}

/// Returns what a trap says of a request with a wrong key.
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
        // Entry 0 of the path is unused.
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
