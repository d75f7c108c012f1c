//! Received datagrams. The first 40 bytes of their buffers hold the GRH.

use ib_link::{Direction, Route};
use ib_types::Gid;
use ib_wire::packet::{Deth, Grh, Header, ImmDt};

use super::context::QpContext;
use super::receive_queue::ReceiveQueue;
use crate::completion::{Wc, WcOpcode, WcStatus};
use crate::counters::DropReason;
use crate::packet::Packet;
use crate::resources::HcaResources;
use crate::trace::Message;

/// Size in bytes of the GRH in front of a received datagram.
const GRH: usize = 40;

/// Protocol number of UDP in IP headers.
const UDP: u8 = 17;

/// Size of a UDP header in bytes.
const UDP_HEADER: u16 = 8;

/// Copies a datagram into the buffer of the next receive, and completes this receive.
pub(super) fn receive(
    context: &QpContext,
    hca: &mut HcaResources,
    receives: &mut ReceiveQueue,
    route: &Route,
    packet: &Packet<'_>,
) {
    let Some(deth) = packet.header(Header::Deth).map(Deth::parse) else {
        return hca.counters.drop(DropReason::Opcode);
    };
    if deth.q_key != context.attributes.qkey {
        return hca.counters.drop(DropReason::QKey);
    }
    let Some(wr) = receives.take(context, hca) else {
        return hca.counters.drop(DropReason::NoReceive);
    };
    // Bytes from the BTH to the ICRC.
    let imm_data = packet.header(Header::ImmDt).map(|bytes| ImmDt::parse(bytes).data);
    let length = 12 + 8 + imm_data.map_or(0, |_| 4) + packet.payload.len().next_multiple_of(4) + 4;
    let header = if route.is_global { grh(route, length as u16) } else { [0; GRH] };
    let byte_len = GRH + packet.payload.len();
    if context.init.srq.is_none() && wr.data.length() < byte_len as u64 {
        // The receive remains for the next datagram. (A receive of an SRQ completes with an error instead.)
        receives.give_back(context, hca, wr);
        return hca.counters.drop(DropReason::NoRoom);
    }
    let (pd, sges) = (ReceiveQueue::pd(context, hca), wr.data.sges());
    let before = hca.regions.scatter(pd, sges, 0, &header);
    let after = hca.regions.scatter(pd, sges, GRH, packet.payload);
    let status = match (before, after) {
        (Ok(true), Ok(true)) => WcStatus::Success,
        (Err(_), _) | (_, Err(_)) => WcStatus::LocProtErr,
        _ => WcStatus::LocLenErr,
    };
    let has_failed = status != WcStatus::Success;
    let wc = Wc {
        status,
        byte_len: byte_len as u32,
        src_qp: deth.source,
        imm_data,
        grh: route.is_global,
        slid: route.dlid,
        sl: route.sl.get(),
        ..context.completion(wr.wr_id, WcOpcode::Recv)
    };
    if has_failed {
        hca.counters.drop(DropReason::NoRoom);
    }
    context.messages.note(&Message {
        direction: Direction::Receive,
        opcode: WcOpcode::Recv,
        status,
        wr_id: wr.wr_id,
        begin: hca.now,
        started: hca.now,
        end: hca.now,
        length: packet.payload.len() as u32,
        first: packet.bth.psn,
        packets: 1,
    });
    hca.complete(context.init.recv_cq, wc, packet.bth.solicited_event || has_failed);
}

/// Returns the GRH of a received datagram. `length` is the size in bytes of the transport headers, payload and ICRC.
///
/// On Ethernet, the GRH is an IPv6 header whose payload is a UDP datagram, or 20 zero bytes and an IPv4 header with a
/// valid checksum (IBTA volume 1, annex 17).
fn grh(route: &Route, length: u16) -> [u8; GRH] {
    let Some((source, destination)) = v4(route.destination).zip(v4(route.source)) else {
        // On Ethernet, the sender has no LID.
        let (next_header, payload_length) =
            if route.dlid == 0 { (UDP, UDP_HEADER + length) } else { (Grh::NEXT_IS_BTH, length) };
        let header = Grh {
            traffic_class: route.traffic_class,
            flow_label: route.flow_label,
            payload_length,
            next_header,
            hop_limit: route.hop_limit,
            source: route.destination,
            destination: route.source,
            ..Grh::default()
        };
        return header.to_bytes();
    };
    let mut bytes = [0; GRH];
    (bytes[20], bytes[21], bytes[28], bytes[29]) =
        (0x45, route.traffic_class, route.hop_limit, UDP);
    // The total length, with the IPv4 and UDP headers.
    bytes[22..24].copy_from_slice(&(20 + UDP_HEADER + length).to_be_bytes());
    bytes[32..36].copy_from_slice(&source);
    bytes[36..40].copy_from_slice(&destination);
    let checksum = ipv4_checksum(&bytes[20..]);
    bytes[30..32].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

/// Returns the checksum of an IPv4 header whose checksum field is 0 (RFC 791).
fn ipv4_checksum(header: &[u8]) -> u16 {
    let words =
        header.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

/// Returns the IPv4 address of an IPv4-mapped GID.
fn v4(gid: Gid) -> Option<[u8; 4]> {
    let bytes = gid.0.to_be_bytes();
    let mapped = bytes[..10].iter().all(|&byte| byte == 0) && bytes[10..12] == [0xff, 0xff];
    mapped.then(|| [bytes[12], bytes[13], bytes[14], bytes[15]])
}

#[cfg(test)]
mod tests;
