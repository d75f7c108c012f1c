//! Memberships in multicast groups.
//!
//! The multicast GID (MGID) of an IP address is that of IPoIB (RFC 4391), except that the port space `RDMA_PS_UDP` has
//! its own MGID signatures, as in Linux:
//! ```text
//!               UDP                                         IPoIB
//! IPv4 address: ff12:4001:P_Key:0:0:0 | lower 28 bits       ff12:401b:P_Key:0:0:0 | lower 28 bits
//! IPv6 address: ff12:6001:P_Key | lower 80 bits             ff12:601b:P_Key | lower 80 bits
//! ```
//! An IPoIB group must exist: creating one needs the attributes of the broadcast group.

use std::net::IpAddr;

use ib_cm::PortSpace;
use ib_mad::Completion;
use ib_types::{Gid, PKey, QKey};
use ib_wire::mad::Method;
use ib_wire::mad::sa::{ComponentMask, JoinState, MCMemberRecord};

use super::abi::{AddressVector, DatagramParam};
use super::address::Address;
use super::attributes::UDP_Q_KEY;
use super::events::{Event, Parameters};
use super::execute::IPOIB;
use super::ids::{Group, State};
use super::port::{CmPort, PortView};
use super::{EventType, FileId, Manager, Query};
use crate::errno::Errno;
use crate::layout::bytes_of;

/// QP number in address vectors of multicast groups.
const MULTICAST_QPN: u32 = 0xff_ffff;

impl Manager {
    /// Starts to join a multicast group. Returns the number of the membership. An event reports the result of the join.
    pub(super) fn join(
        &mut self,
        channel: FileId,
        number: u32,
        (address, uid, flags): (Address, u64, u16),
        port: &mut impl CmPort,
    ) -> Result<Vec<u8>, Errno> {
        let join_state = match flags {
            0 => JoinState::FULL_MEMBER,
            1 => JoinState::SEND_ONLY_FULL_MEMBER,
            _ => return Err(Errno::INVALID),
        };
        let id = self.ids.of(channel, number)?;
        let is_bound = matches!(id.state, State::Bound | State::AddressResolved);
        if !id.has_device || !is_bound {
            return Err(Errno::INVALID);
        }
        let view = port.view();
        let p_key = full_p_key(&view);
        let mgid = group_of(&address, id.space, p_key);
        let membership = MCMemberRecord {
            mgid,
            port_gid: view.gid,
            q_key: QKey(id.q_key.unwrap_or(UDP_Q_KEY)),
            p_key,
            join_state,
            ..MCMemberRecord::zeroed()
        };
        let mask = if id.space == IPOIB {
            // Components: port GID, join state.
            ComponentMask::of(&[1, 16])
        } else {
            // Components: port GID, Q_Key, traffic class, P_Key, SL, flow label, join state.
            ComponentMask::of(&[1, 2, 6, 7, 12, 13, 16])
        };
        // The SA assigns an MGID if the mask does not contain the MGID component.
        let mask = if mgid == Gid::ZERO { mask } else { ComponentMask(mask.0 | 1) };
        // On Ethernet, the query is `None`, and the join fails. The HCA cannot receive multicast packets, because its
        // socket is bound to a unicast address.
        let query = port.query_membership(Method::SET, &membership, mask);
        let query = query.ok_or(Errno::NOT_SUPPORTED)?;
        let group = Group {
            owner: number,
            uid,
            gid: mgid,
            join_state,
            is_joined: false,
            events_reported: 0,
        };
        let group = self.ids.insert_group(group)?;
        self.queries.insert(query, Query::Join(group));
        Ok(bytes_of(&group))
    }

    /// Handles the response of the SA to a join.
    pub(super) fn handle_join(&mut self, number: u32, completion: &Completion) {
        let record = match &completion.result {
            Ok(message) if message.status().is_ok() => message.mad().attribute::<MCMemberRecord>(),
            _ => None,
        };
        let Some(group) = self.ids.group_mut(number) else { return };
        let (owner, uid) = (group.owner, group.uid);
        let (event_type, status, parameters) = match record {
            Some(record) => {
                group.is_joined = true;
                group.gid = record.mgid;
                if let Some(id) = self.ids.get_mut(owner) {
                    id.q_key = Some(record.q_key.0);
                }
                (EventType::MulticastJoin, 0, parameters_of(&record))
            }
            None => {
                let status = if completion.result.is_ok() { libc::EINVAL } else { libc::ETIMEDOUT };
                (EventType::MulticastError, -status, Parameters::private_data(&[]))
            }
        };
        let Some(channel) = self.ids.get(owner).map(|id| id.channel) else { return };
        let group = Some(number);
        let event = Event { owner, group, child: None, uid, event_type, status, parameters };
        self.push(channel, event);
    }

    /// Leaves a multicast group. Returns the number of events of the membership that the program has read.
    pub(super) fn leave(
        &mut self,
        channel: FileId,
        number: u32,
        port: &mut impl CmPort,
    ) -> Result<Vec<u8>, Errno> {
        let owner = self.ids.group_mut(number).ok_or(Errno::NO_ENTRY)?.owner;
        self.ids.of(channel, owner)?;
        let group = self.ids.remove_group(number).ok_or(Errno::NO_ENTRY)?;
        self.queries.retain(|_, query| *query != Query::Join(number));
        if let Some(channel) = self.channels.get_mut(&channel) {
            channel.take(|event| event.group == Some(number));
        }
        self.leave_group(&group, port);
        Ok(bytes_of(&group.events_reported))
    }

    /// Ends the port's membership in a group, unless another ID is a member. The response of the SA is not awaited.
    pub(super) fn leave_group(&mut self, group: &Group, port: &mut impl CmPort) {
        if !group.is_joined || self.ids.has_member(group.gid) {
            return;
        }
        let membership = MCMemberRecord {
            mgid: group.gid,
            port_gid: port.view().gid,
            join_state: group.join_state,
            ..MCMemberRecord::zeroed()
        };
        port.query_membership(Method::DELETE, &membership, ComponentMask::of(&[0, 1, 16]));
    }
}

/// Returns the parameters of the event that reports a membership.
fn parameters_of(record: &MCMemberRecord) -> Parameters {
    Parameters::Datagram(DatagramParam {
        qp_num: MULTICAST_QPN,
        q_key: record.q_key.0,
        address: AddressVector {
            dgid: record.mgid.0.to_be_bytes(),
            flow_label: record.flow_label,
            hop_limit: record.hop_limit,
            traffic_class: record.traffic_class,
            dlid: record.mlid,
            sl: record.sl,
            is_global: 1,
            port_num: 1,
            ..AddressVector::default()
        },
        ..DatagramParam::default()
    })
}

/// Returns the port's first P_Key as that of a full member, which is part of the MGIDs of its partition.
pub(super) fn full_p_key(port: &PortView) -> PKey {
    PKey(port.p_keys.first().copied().unwrap_or(PKey::DEFAULT.0) | 0x8000)
}

/// Returns the MGID of a multicast address; zero if the SA has to assign one.
pub(super) fn group_of(address: &Address, space: PortSpace, p_key: PKey) -> Gid {
    let is_ipoib = space == IPOIB;
    let mapped = |signature: u16, low: u128| {
        let prefix = 0xff12_u128 << 112 | u128::from(signature) << 96;
        Gid(prefix | u128::from(p_key.0) << 80 | low)
    };
    match address {
        it if it.is_any() => Gid::ZERO,
        Address::Ib(it) => it.gid,
        Address::Ip(it) => match it.ip() {
            IpAddr::V4(it) => {
                let signature = if is_ipoib { 0x401b } else { 0x4001 };
                mapped(signature, u128::from(it.to_bits() & 0x0fff_ffff))
            }
            IpAddr::V6(it) => {
                let bits = u128::from(it);
                // An address that begins with ff1X:a01b is an MGID.
                if bits >> 96 & 0xfff0_ffff == 0xff10_a01b {
                    return Gid(bits);
                }
                let signature = if is_ipoib { 0x601b } else { 0x6001 };
                mapped(signature, bits & ((1 << 80) - 1))
            }
        },
    }
}
