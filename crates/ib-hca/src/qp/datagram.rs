//! Datagrams: each on its own way, into a receive with the header of its route before it.

use ib_link::{Direction, Route};
use ib_types::Gid;
use ib_wire::packet::{Deth, Grh, Header, ImmDt};

use super::core::Cx;
use super::{Qp, QpType};
use crate::counters::Drop;
use crate::objects::{SendOp, Wc, WcOpcode, WcStatus};
use crate::packet::Packet;
use crate::trace::Message;

/// The room for the header of the route before a datagram, in bytes.
pub(super) const GRH_ROOM: usize = 40;

impl Qp {
    /// Returns the way that the next packet takes.
    pub(super) fn route_of_next(&self, cx: &Cx<'_>) -> Option<Route> {
        if self.core.qp_type != QpType::Ud {
            return Some(self.core.attributes.route);
        }
        let SendOp::SendDatagram { to, .. } = self.send.wqes.front()?.wr.op else { return None };
        cx.queues.ahs.get(to.ah.0).map(|ah| ah.route)
    }

    pub(super) fn receive_datagram(&mut self, cx: &mut Cx<'_>, route: &Route, packet: &Packet<'_>) {
        let Some(deth) = packet.header(Header::Deth).map(Deth::parse) else {
            return cx.counters.drop(Drop::Opcode);
        };
        if deth.q_key != self.core.attributes.qkey {
            return cx.counters.drop(Drop::QKey);
        }
        let core = &self.core;
        let Some(wr) = self.responder.take_receive(core, cx) else {
            return cx.counters.drop(Drop::NoReceive);
        };
        let mut header = [0; GRH_ROOM];
        if route.is_global {
            header = grh(route, packet.payload.len());
        }
        let sges = wr.data.sges();
        let before = super::scatter(core, cx, sges, 0, &header);
        let after = super::scatter(core, cx, sges, GRH_ROOM, packet.payload);
        let (status, failed) = match (before, after) {
            (Ok(true), Ok(true)) => (WcStatus::Success, false),
            (Err(()), _) | (_, Err(())) => (WcStatus::LocProtErr, true),
            _ => (WcStatus::LocLenErr, true),
        };
        let imm_data = packet.header(Header::ImmDt).map(|bytes| ImmDt::parse(bytes).data);
        let wc = Wc {
            wr_id: wr.wr_id,
            status,
            opcode: WcOpcode::Recv,
            byte_len: (GRH_ROOM + packet.payload.len()) as u32,
            src_qp: deth.source,
            imm_data,
            grh: route.is_global,
            slid: route.dlid,
            sl: route.sl.get(),
            ..core.completion()
        };
        if failed {
            cx.counters.drop(Drop::NoRoom);
        }
        core.messages.note(&Message {
            direction: Direction::Receive,
            opcode: WcOpcode::Recv,
            status,
            wr_id: wr.wr_id,
            begin: cx.now,
            started: cx.now,
            end: cx.now,
            length: packet.payload.len() as u32,
            first: packet.bth.psn,
            packets: 1,
        });
        cx.complete(core.recv_cq, wc, packet.bth.solicited_event || failed);
    }
}

/// Returns the header of a datagram's route as it stands before it: on IPv4 20 zeros and the IPv4 header, as
/// far as it is known.
fn grh(route: &Route, payload: usize) -> [u8; GRH_ROOM] {
    let Some((source, destination)) = v4(route.destination).zip(v4(route.source)) else {
        let header = Grh {
            traffic_class: route.traffic_class,
            flow_label: route.flow_label,
            payload_length: payload as u16,
            next_header: Grh::NEXT_IS_BTH,
            hop_limit: route.hop_limit,
            source: route.destination,
            destination: route.source,
            ..Grh::default()
        };
        return header.to_bytes();
    };
    let mut bytes = [0; GRH_ROOM];
    (bytes[20], bytes[21], bytes[28], bytes[29]) = (0x45, route.traffic_class, route.hop_limit, 17);
    bytes[32..36].copy_from_slice(&source);
    bytes[36..40].copy_from_slice(&destination);
    bytes
}

/// Returns the IPv4 address that a GID stands for.
fn v4(gid: Gid) -> Option<[u8; 4]> {
    let bytes = gid.0.to_be_bytes();
    let mapped = bytes[..10].iter().all(|&byte| byte == 0) && bytes[10..12] == [0xff, 0xff];
    mapped.then(|| [bytes[12], bytes[13], bytes[14], bytes[15]])
}
