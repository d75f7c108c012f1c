//! Messages between ACM services: address resolution requests and responses.

use ib_link::Route;
use ib_types::{Gid, Qpn, ServiceLevel};
use ib_wire::mad::acm::AcmMessage;
use ib_wire::mad::sa::MCMemberRecord;
use ib_wire::mad::{MAD_LENGTH, Method, MgmtClass, TransactionId};

use super::context::Context;
use super::event::Event;
use super::further_addresses::{read_further_addresses, write_further_addresses};
use super::groups::{MAX_GROUPS, MulticastGroups};
use super::limiter::{Admission, RequestLimiter};
use crate::Address;
use crate::cache::{NO_GROUP, is_assigned_by_sm};
use crate::port::{Action, Destination};

/// Sender of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sender {
    pub(super) gid: Gid,
    pub(super) lid: u16,
    pub(super) qpn: Qpn,
    /// Index of the most preferred group that the sender and the endpoint have joined; [`NO_GROUP`] without one.
    pub(super) group: u8,
}

/// A message of another ACM service.
#[derive(Debug)]
pub(super) enum Message {
    /// Request to the owner of `wanted` to respond. `addresses` are the names and IP addresses that the sender
    /// announces.
    Request { tid: TransactionId, wanted: Address, addresses: Vec<Address> },
    /// Response of the owner of an address. `addresses` are other names and IP addresses of the owner.
    Response { tid: TransactionId, addresses: Vec<Address> },
}

/// Parses a datagram. Returns `None` if the endpoint's port is not active or sent the datagram itself, if the datagram
/// is malformed, or if the sending port exceeds its rate limit.
pub(super) fn parse(
    cx: &mut Context<'_>,
    groups: &MulticastGroups,
    limiter: &mut RequestLimiter,
    route: &Route,
    qpn: Qpn,
    bytes: &[u8],
) -> Option<(Sender, Message)> {
    let own = cx.port_state().link;
    if !cx.port_state().is_active || (route.is_global && route.destination == own.gid()) {
        return None;
    }
    let message = sender_and_bytes(own.gid_prefix, route, qpn, bytes);
    let Some((lid, gid, bytes)) = message else {
        cx.shared.counters.malformed += 1;
        return None;
    };
    let message = AcmMessage::parse(bytes);
    let is_known = message.base_version == 1
        && message.class == MgmtClass::ACM
        && message.class_version == 1
        && message.control == AcmMessage::RESOLVE
        && usize::from(message.gid_count) <= message.gids.len();
    if !is_known {
        cx.shared.counters.malformed += 1;
        return None;
    }
    match limiter.admit(cx.now, lid) {
        Admission::Admitted => {}
        Admission::FirstOverLimit => {
            cx.shared.counters.flooded += 1;
            cx.report(Event::Flood { endpoint: cx.name(), lid });
            return None;
        }
        Admission::OverLimit => {
            cx.shared.counters.flooded += 1;
            return None;
        }
    }
    let group = groups.best_common(message.groups()).unwrap_or(NO_GROUP);
    let sender = Sender { gid, lid, qpn, group };
    let parsed = match message.method {
        Method::GET => parse_request(&sender, &message, bytes),
        Method::GET_RESP if message.status.is_ok() => {
            let addresses = claimed_addresses(bytes).collect();
            Some(Message::Response { tid: message.transaction_id, addresses })
        }
        _ => None,
    };
    match &parsed {
        None => cx.shared.counters.malformed += 1,
        Some(Message::Request { .. }) => cx.shared.counters.heard += 1,
        Some(Message::Response { .. }) => {}
    }
    Some((sender, parsed?))
}

/// Returns the LID and the GID of the sender, and the bytes of the message. Returns `None` if the packet has no GRH or
/// another length than a MAD, or if no port in the local subnet can have this LID, GID and QP.
fn sender_and_bytes<'a>(
    own_prefix: u64,
    route: &Route,
    qpn: Qpn,
    bytes: &'a [u8],
) -> Option<(u16, Gid, &'a [u8; MAD_LENGTH])> {
    let (gid, lid) = (route.destination, route.dlid);
    let is_from_port = route.is_global
        && gid.prefix() == own_prefix
        && !gid.is_multicast()
        && gid.guid().0 != 0
        && matches!(lid, 1..0xc000)
        && qpn.get() > 1
        && qpn != Qpn::MULTICAST;
    let bytes = bytes.try_into().ok()?;
    is_from_port.then_some((lid, gid, bytes))
}

fn parse_request(
    sender: &Sender,
    message: &AcmMessage,
    bytes: &[u8; MAD_LENGTH],
) -> Option<Message> {
    let field = |length: u8, kind, field| match length {
        64 => Address::from_field(kind, field).ok(),
        _ => None,
    };
    let source = field(message.source_length, message.source_type, &message.source)?;
    let wanted = field(message.destination_length, message.destination_type, &message.destination)?;
    // The SM assigns GIDs and LIDs, so a claim to the GID or LID of another port is rejected.
    let is_plausible = match &source {
        Address::Gid(gid) => *gid == sender.gid,
        Address::Lid(lid) => *lid == sender.lid,
        _ => true,
    };
    if !is_plausible {
        return None;
    }
    let mut addresses = vec![source];
    addresses.extend(claimed_addresses(bytes));
    addresses.retain(|address| !is_assigned_by_sm(address));
    Some(Message::Request { tid: message.transaction_id, wanted, addresses })
}

/// Returns the further addresses of the sender, which follow the groups in a message. Leaves out GIDs and LIDs, because
/// the SM assigns them.
fn claimed_addresses(bytes: &[u8; MAD_LENGTH]) -> impl Iterator<Item = Address> {
    read_further_addresses(bytes).into_iter().filter(|address| !is_assigned_by_sm(address))
}

/// Sends an address resolution request to one port or to the base group.
pub(super) fn send_request(
    cx: &mut Context<'_>,
    groups: &MulticastGroups,
    address: &Address,
    source: &Address,
    tid: u64,
    to: Option<Destination>,
) {
    let Some(record) = groups.base() else { return };
    let (destination_type, destination) = address.to_field();
    let (source_type, source_field) = source.to_field();
    let mut gids = [Gid::ZERO; MAX_GROUPS];
    let mut gid_count = 0;
    for (slot, gid) in gids.iter_mut().zip(groups.joined()) {
        *slot = gid;
        gid_count += 1;
    }
    let message = AcmMessage {
        method: Method::GET,
        transaction_id: TransactionId(tid),
        destination_type,
        destination_length: 64,
        source_type,
        source_length: 64,
        gid_count,
        destination,
        source: source_field,
        gids,
        ..resolve_message()
    };
    let to = to.unwrap_or_else(|| {
        cx.shared.counters.multicasts += 1;
        let route = route_to_group(&cx.port.state.link, record);
        Destination { route, qpn: Qpn::MULTICAST }
    });
    send(cx, &message, source, to);
}

/// Responds to an address resolution request if `wanted` is an address of the endpoint. Does not respond if the
/// endpoint and the sender have no group in common.
pub(super) fn respond(
    cx: &mut Context<'_>,
    groups: &MulticastGroups,
    sender: &Sender,
    tid: TransactionId,
    wanted: &Address,
) {
    let own = cx.port_state().link;
    let is_own = match wanted {
        Address::Gid(gid) => *gid == own.gid(),
        Address::Lid(lid) => *lid == own.lid,
        address => cx.is_own(address),
    };
    if !is_own {
        return;
    }
    let Some(group) = groups.mgid(sender.group) else { return };
    let Some(to) = unicast(cx, groups, sender.gid, sender.lid, sender.qpn) else { return };
    let mut response = AcmMessage {
        method: Method::GET_RESP,
        transaction_id: tid,
        gid_count: 1,
        ..resolve_message()
    };
    response.gids[0] = group;
    cx.shared.counters.answers += 1;
    send(cx, &response, wanted, to);
}

/// Returns the destination of datagrams to a peer; `None` until the base group is joined.
pub(super) fn unicast(
    cx: &Context<'_>,
    groups: &MulticastGroups,
    gid: Gid,
    lid: u16,
    qpn: Qpn,
) -> Option<Destination> {
    let own = cx.port_state().link;
    let record = groups.base()?;
    let route = Route {
        source: own.gid(),
        destination: gid,
        slid: own.lid,
        dlid: lid,
        sl: ServiceLevel::new(record.sl).unwrap_or_default(),
        is_global: true,
        ..Route::default()
    };
    Some(Destination { route, qpn })
}

/// Returns an address resolution message whose fields after the class version are 0, except for the control field.
fn resolve_message() -> AcmMessage {
    AcmMessage {
        base_version: 1,
        class: MgmtClass::ACM,
        class_version: 1,
        control: AcmMessage::RESOLVE,
        ..AcmMessage::zeroed()
    }
}

/// Adds the endpoint's addresses other than `main` to a message, and sends the message.
fn send(cx: &mut Context<'_>, message: &AcmMessage, main: &Address, to: Destination) {
    let mut bytes = message.to_bytes();
    write_further_addresses(&mut bytes, main, &cx.identity.addresses);
    let p_key = cx.identity.p_key;
    cx.act(Action::Send { p_key, to, bytes: Box::new(bytes) });
}

/// Returns the route to the members of a group.
fn route_to_group(own: &ib_link::LinkPort, record: &MCMemberRecord) -> Route {
    Route {
        source: own.gid(),
        destination: record.mgid,
        slid: own.lid,
        dlid: record.mlid,
        sl: ServiceLevel::new(record.sl).unwrap_or_default(),
        is_global: true,
        traffic_class: record.traffic_class,
        flow_label: record.flow_label,
        hop_limit: record.hop_limit,
        ..Route::default()
    }
}
