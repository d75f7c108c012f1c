//! Queue pair 1, and groups.

use ib_link::Route;
use ib_types::{Gid, Instant, PKey, QKey, Qpn};
use ib_wire::mad::Mad;
use ib_wire::packet::{Bth, Deth, Header, Opcode};

use super::{Hca, HcaEvent};
use crate::counters::Drop;
use crate::error::GroupError;
use crate::objects::QpId;
use crate::packet::{Packet, Writer};
use crate::qp::QpType;

/// The most datagrams for queue pair 1 that wait to be sent.
const MOST_MADS: usize = 1 << 16;

impl Hca {
    /// Sends a management datagram from queue pair 1 to that of another port. False when too many wait.
    pub fn send_mad(&mut self, route: Route, mad: Mad) -> bool {
        if self.mads.len() >= MOST_MADS {
            return false;
        }
        self.mads.push_back((route, Qpn::GSI, Box::new(mad)));
        true
    }

    pub(super) fn write_general(&mut self, writer: &mut Writer<'_>) -> Option<Route> {
        let (route, destination, mad) = self.mads.pop_front()?;
        let bth = Bth {
            opcode: Opcode::UD_SEND_ONLY,
            p_key: PKey::DEFAULT,
            destination,
            ..Bth::default()
        };
        writer.put(&bth.to_bytes());
        writer.put(&Deth { q_key: QKey::GSI, source: Qpn::GSI }.to_bytes());
        writer.put(&mad.0);
        Some(route)
    }

    pub(super) fn handle_general(&mut self, route: &Route, packet: &Packet<'_>) {
        let deth = packet.header(Header::Deth).map(Deth::parse);
        let Some(deth) = deth.filter(|_| packet.bth.opcode == Opcode::UD_SEND_ONLY) else {
            return self.counters.drop(Drop::Opcode);
        };
        if deth.q_key != QKey::GSI {
            return self.counters.drop(Drop::QKey);
        }
        if !packet.bth.p_key.matches(PKey::DEFAULT) {
            return self.counters.drop(Drop::PKey);
        }
        let Ok(bytes) = packet.payload.try_into() else {
            return self.counters.drop(Drop::Length);
        };
        let (route, source, mad) = (*route, deth.source, Box::new(Mad(bytes)));
        self.events.push_back(HcaEvent::Mad { route, source, mad });
    }

    /// Has a queue pair of datagrams get what is sent to a group (`ibv_attach_mcast`).
    ///
    /// # Errors
    /// Fails on another kind of queue pair, and on a GID that is no group's.
    pub fn attach_mcast(&mut self, id: QpId, group: Gid) -> Result<(), GroupError> {
        let qp = self.qps.get(id.0).ok_or(GroupError::NoSuchQp)?;
        if qp.core.qp_type != QpType::Ud {
            return Err(GroupError::Type(qp.core.qp_type));
        }
        if !is_group(group) {
            return Err(GroupError::NoGroup(group));
        }
        let members = self.groups.entry(group).or_default();
        if !members.contains(&id) {
            members.push(id);
        }
        Ok(())
    }

    /// Has it get that no more (`ibv_detach_mcast`).
    ///
    /// # Errors
    /// Fails when it was not attached.
    pub fn detach_mcast(&mut self, id: QpId, group: Gid) -> Result<(), GroupError> {
        let members = self.groups.get_mut(&group).ok_or(GroupError::NotAttached)?;
        let before = members.len();
        members.retain(|&member| member != id);
        let found = members.len() < before;
        if members.is_empty() {
            self.groups.remove(&group);
        }
        if found { Ok(()) } else { Err(GroupError::NotAttached) }
    }

    /// Detaches a queue pair from all groups.
    pub fn leave_groups(&mut self, id: QpId) {
        for members in self.groups.values_mut() {
            members.retain(|&member| member != id);
        }
        self.groups.retain(|_, members| !members.is_empty());
    }

    /// The own GID of the route of a packet to a group is that of the group.
    pub(super) fn handle_group(&mut self, now: Instant, route: &Route, packet: &Packet<'_>) {
        let Some(members) = self.groups.get(&route.source).cloned() else {
            return self.counters.drop(Drop::NoGroup);
        };
        for id in members {
            self.deliver(now, id, route, packet);
        }
    }
}

/// Returns true for the GID of a group: `ff00::/8`, and those of IPv4 groups, `::ffff:224.0.0.0/100`.
fn is_group(gid: Gid) -> bool {
    let bytes = gid.0.to_be_bytes();
    let is_v4 = bytes[..10] == [0; 10] && bytes[10..12] == [0xff, 0xff] && bytes[12] >> 4 == 14;
    bytes[0] == 0xff || is_v4
}
