//! The key that guards a port; IBTA volume 1, chapter 14.2.4.

use std::time::Duration;

use ib_topology::PortId;
use ib_wire::mad::sm::notice::{MKeyDetails, NoticeType};
use ib_wire::mad::sm::{NoticeDetails, TrapNumber};
use ib_wire::mad::{Mad, Method};

use crate::event::{Event, Timer};
use crate::sim::Sim;

/// What a request's M_Key allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Everything.
    Full,
    /// Reading everything but the key itself.
    WithoutKey,
    /// Nothing.
    Denied,
}

impl Sim {
    /// Judges the key of a request; IBTA volume 1, chapter 14.2.4.
    pub(super) fn check_m_key(&mut self, port: PortId, slid: u16, mad: &Mad) -> Access {
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
        let (lease, lid) = (info.m_key_lease_period, info.lid);
        if lease > 0 && self.port(end).lease_ends.is_none() {
            let at = self.now() + Duration::from_secs(u64::from(lease));
            self.port_mut(end).lease_ends = Some(at);
            self.schedule(at, Event::Timer(Timer::Lease { port: end }));
        }
        let mut details = MKeyDetails::zeroed();
        (details.lid, details.slid) = (lid, slid);
        details.method = mad.method();
        details.attribute_id = mad.attribute_id();
        details.attribute_modifier = mad.attribute_modifier();
        details.m_key = mad.m_key();
        details.is_directed = mad.class() == ib_wire::mad::MgmtClass::SUBN_DIRECTED_ROUTE;
        if details.is_directed {
            let hops = mad.hop_count();
            details.path_truncated = usize::from(hops) > details.return_path.len();
            details.hops = hops & 0x3f;
            let path = &mad.return_path()[1..];
            for (hop, &number) in details.return_path.iter_mut().zip(path).take(hops.into()) {
                *hop = number;
            }
        }
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

#[cfg(test)]
mod tests;
