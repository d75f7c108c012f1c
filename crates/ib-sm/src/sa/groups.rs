//! Multicast groups: creation, joins and leaves. Source: IBTA volume 1, section 15.2.5.17.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use ib_types::{Gid, Guid, PKey, QKey};
use ib_wire::mad::MadStatus;
use ib_wire::mad::sa::{
    ComponentMask, JoinState, LifeTimeCode, MCMemberRecord, RateCode, Selector,
};
use ib_wire::mad::sm::{MtuCode, MulticastForwardingBlock};

use super::query::Query;
use super::subnet::PortLimits;
use super::view::Viewer;
use crate::config::SmConfig;
use crate::partition;

/// The highest multicast LID. The next LID, 0xffff, is the permissive LID.
const LAST_LID: u16 = 0xfffe;

/// Signature of the MGIDs that the SA assigns.
const OWN_SIGNATURE: u32 = 0xa01b;

/// MGID signatures of IPv4 and IPv6 over InfiniBand. Source: RFC 4391, section 4.
const IPOIB_SIGNATURES: [u32; 2] = [0x401b, 0x601b];
const LINK_LOCAL: u32 = 2;

/// Maximum number of members of all groups in total.
const MAX_MEMBERS: usize = 1 << 20;

/// Component mask bits of MCMemberRecord.
mod component {
    pub(super) const MGID: u8 = 0;
    pub(super) const PORT_GID: u8 = 1;
    pub(super) const Q_KEY: u8 = 2;
    pub(super) const MLID: u8 = 3;
    pub(super) const MTU_SELECTOR: u8 = 4;
    pub(super) const TRAFFIC_CLASS: u8 = 6;
    pub(super) const P_KEY: u8 = 7;
    pub(super) const RATE_SELECTOR: u8 = 8;
    pub(super) const LIFE_TIME_SELECTOR: u8 = 10;
    pub(super) const LIFE_TIME: u8 = 11;
    pub(super) const SL: u8 = 12;
    pub(super) const FLOW_LABEL: u8 = 13;
    pub(super) const HOP_LIMIT: u8 = 14;
    pub(super) const SCOPE: u8 = 15;
    pub(super) const JOIN_STATE: u8 = 16;
    pub(super) const PROXY_JOIN: u8 = 17;
}
use component::*;

/// A group is kept as long as a member has one of these join states.
const KEEPING: JoinState = JoinState(JoinState::FULL_MEMBER.0 | JoinState::SEND_ONLY_FULL_MEMBER.0);

/// A multicast group.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// The record of the group. Fields that are specific to members are zero.
    shared: MCMemberRecord,
    /// By port GID, the join state of each member, and true if other ports may change its membership (`ProxyJoin`).
    members: BTreeMap<Gid, (JoinState, bool)>,
    /// True if the group also exists without members, because a partition configures it.
    is_permanent: bool,
}

impl Group {
    /// Returns the GUIDs of the member ports.
    pub(crate) fn ports(&self) -> impl Iterator<Item = Guid> {
        self.members.keys().map(|gid| gid.guid())
    }
}

/// The ports that are involved in a request to join or leave.
#[derive(Clone, Copy, Debug)]
pub(super) struct MembershipRequest<'a> {
    /// GID of the requesting port.
    pub(super) requester: Gid,
    /// P_Keys of the requesting port.
    pub(super) requester_keys: &'a [PKey],
    /// P_Keys of the member port.
    pub(super) keys: &'a [PKey],
    /// MTU, rate and packet lifetime of the member port.
    pub(super) limits: PortLimits,
}

impl MembershipRequest<'_> {
    /// Checks that the requester may change the membership of a port. Without proxy join, the port must be the
    /// requester itself. With proxy join, the requester must be in the partition of the group. Source: o15-0.2.1.
    fn may_change(&self, member: Gid, by_proxy: bool, group: PKey) -> Result<(), MadStatus> {
        let may = if by_proxy { has(self.requester_keys, group) } else { self.requester == member };
        if may { Ok(()) } else { Err(MadStatus::SA_REQUEST_INVALID) }
    }
}

/// Returns true if one of the P_Keys belongs to the partition of `key`, as full or limited member.
pub(super) fn has(keys: &[PKey], key: PKey) -> bool {
    keys.iter().any(|own| own.partition() == key.partition())
}

/// All multicast groups.
#[derive(Debug)]
pub(super) struct Groups {
    by_gid: BTreeMap<Gid, Group>,
    by_lid: BTreeMap<u16, Gid>,
    members: usize,
    /// Number for the next MGID that the SA assigns.
    next: u64,
    /// Multicast LIDs whose members have changed since the last call of [`Self::take_changed`].
    changed: BTreeSet<u16>,
    /// The highest multicast LID that all switches can forward.
    last: u16,
}

impl Default for Groups {
    fn default() -> Self {
        Self {
            by_gid: BTreeMap::new(),
            by_lid: BTreeMap::new(),
            members: 0,
            next: 0,
            changed: BTreeSet::new(),
            last: LAST_LID,
        }
    }
}

/// The result of a request to join or leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MembershipChange {
    /// The record for the response.
    pub(super) record: MCMemberRecord,
    /// True if the request has created the group.
    pub(super) created: bool,
    /// True if the request has deleted the group.
    pub(super) deleted: bool,
}

impl Groups {
    /// Sets how many multicast LIDs the switches can forward. Existing groups are kept.
    pub(super) fn set_lid_limit(&mut self, lids: u16) {
        let last = MulticastForwardingBlock::FIRST_LID.saturating_add(lids.saturating_sub(1));
        self.last = last.min(LAST_LID);
    }

    /// Joins a port to a group. Creates the group if it does not exist.
    pub(super) fn join(
        &mut self,
        mask: ComponentMask,
        wanted: &MCMemberRecord,
        membership: &MembershipRequest<'_>,
        prefix: u64,
    ) -> Result<MembershipChange, MadStatus> {
        let needed = [PORT_GID, JOIN_STATE];
        if !needed.iter().all(|&bit| mask.has(bit)) || wanted.join_state.0 == 0 {
            return Err(MadStatus::SA_INSUFFICIENT_COMPONENTS);
        }
        if wanted.port_gid.prefix() != prefix {
            return Err(MadStatus::SA_INVALID_GID);
        }
        if self.members == MAX_MEMBERS {
            return Err(MadStatus::SA_NO_RESOURCES);
        }
        let limits = &membership.limits;
        let by_proxy = membership.requester != wanted.port_gid;
        if by_proxy && !membership.keys.iter().any(|&key| has(membership.requester_keys, key)) {
            return Err(MadStatus::SA_REQUEST_INVALID);
        }
        let named = mask.has(MGID) && wanted.mgid != Gid(0);
        let created = !named || !self.by_gid.contains_key(&wanted.mgid);
        let mgid = if created {
            // The partition of a new group must be one of the member's partitions.
            if mask.has(P_KEY) && !has(membership.keys, wanted.p_key) {
                return Err(MadStatus::SA_REQUEST_INVALID);
            }
            self.create(mask, wanted, limits, prefix)?
        } else {
            wanted.mgid
        };
        let group = self.by_gid.get_mut(&mgid).expect("the group was found or created above");
        if !created {
            fits(mask, wanted, &group.shared, limits)?;
            if !has(membership.keys, group.shared.p_key) {
                return Err(MadStatus::SA_REQUEST_INVALID);
            }
        }
        if let Some(&(_, by_proxy)) = group.members.get(&wanted.port_gid) {
            membership.may_change(wanted.port_gid, by_proxy, group.shared.p_key)?;
        }
        // As in OpenSM, a port that joins for itself may allow other ports to change its membership by proxy.
        let by_proxy = by_proxy || mask.has(PROXY_JOIN) && wanted.proxy_join;
        let (state, proxy_join) = group.members.entry(wanted.port_gid).or_insert_with(|| {
            self.members += 1;
            self.changed.insert(group.shared.mlid);
            (JoinState(0), by_proxy)
        });
        *state = *state | wanted.join_state;
        let record = MCMemberRecord {
            port_gid: wanted.port_gid,
            join_state: *state,
            proxy_join: *proxy_join,
            ..group.shared
        };
        Ok(MembershipChange { record, created, deleted: false })
    }

    /// Creates a group and returns its MGID.
    fn create(
        &mut self,
        mask: ComponentMask,
        wanted: &MCMemberRecord,
        limits: &PortLimits,
        prefix: u64,
    ) -> Result<Gid, MadStatus> {
        let needed = [Q_KEY, TRAFFIC_CLASS, P_KEY, SL, FLOW_LABEL];
        if !needed.iter().all(|&bit| mask.has(bit)) {
            return Err(MadStatus::SA_INSUFFICIENT_COMPONENTS);
        }
        if wanted.join_state.0 & KEEPING.0 == 0 {
            return Err(MadStatus::SA_REQUEST_INVALID);
        }
        let scope = if mask.has(SCOPE) { wanted.scope } else { 2 };
        let mgid = if mask.has(MGID) && wanted.mgid != Gid(0) {
            let head = (wanted.mgid.0 >> 96) as u32;
            let (scope, signature) = (head >> 16 & 0xf, head & 0xffff);
            // A requested MGID with the SA's signature must not have link-local scope.
            let made_here = signature == OWN_SIGNATURE && scope == LINK_LOCAL;
            // Three of the four flag bits of an MGID are reserved. As in OpenSM, these bits are not checked if the MGID
            // has an IPoIB signature.
            let reserved = head & 0x00e0_0000 != 0 && !IPOIB_SIGNATURES.contains(&signature);
            if !wanted.mgid.is_multicast() || made_here || reserved {
                return Err(MadStatus::SA_REQUEST_INVALID);
            }
            if IPOIB_SIGNATURES.contains(&signature) && !self.fits_broadcast(mask, wanted) {
                return Err(MadStatus::SA_REQUEST_INVALID);
            }
            wanted.mgid
        } else {
            self.new_gid(scope, prefix)
        };
        let mtu = choose(
            mask.has(MTU_SELECTOR),
            wanted.mtu_selector,
            wanted.mtu,
            [
                MtuCode::MTU_4096,
                MtuCode::MTU_2048,
                MtuCode::MTU_1024,
                MtuCode::MTU_512,
                MtuCode::MTU_256,
            ],
            |code| u32::from(code.0),
            u32::from(limits.mtu.0),
        )?;
        let rates = RateCode::RATES.iter().rev().map(|&(code, _)| code);
        let speed = |code: RateCode| code.megabits_per_second().unwrap_or(0);
        let rate = choose(
            mask.has(RATE_SELECTOR),
            wanted.rate_selector,
            wanted.rate,
            rates,
            speed,
            speed(limits.rate),
        )?;
        let life_time = if mask.has(LIFE_TIME) && !mask.has(LIFE_TIME_SELECTOR)
            || mask.has(LIFE_TIME) && wanted.life_time_selector == Selector::EXACTLY
        {
            wanted.life_time
        } else {
            limits.life_time
        };
        let mlid = self.free_lid(mask, wanted)?;
        let shared = MCMemberRecord {
            mgid,
            q_key: wanted.q_key,
            mlid,
            mtu_selector: Selector::EXACTLY,
            mtu,
            traffic_class: wanted.traffic_class,
            p_key: wanted.p_key,
            rate_selector: Selector::EXACTLY,
            rate,
            life_time_selector: Selector::EXACTLY,
            life_time,
            sl: wanted.sl,
            flow_label: wanted.flow_label,
            hop_limit: if mask.has(HOP_LIMIT) { wanted.hop_limit } else { 0 },
            scope,
            ..MCMemberRecord::zeroed()
        };
        self.by_lid.insert(mlid, mgid);
        self.by_gid.insert(mgid, Group { shared, members: BTreeMap::new(), is_permanent: false });
        Ok(mgid)
    }

    /// Returns true if a new `IPoIB` group matches the broadcast group with the same scope and P_Key, as OpenSM
    /// requires. Q_Key, partition, SL, traffic class and flow label have to be equal. If the request gives the hop
    /// limit, it also has to be equal. The broadcast group itself is not restricted.
    fn fits_broadcast(&self, mask: ComponentMask, wanted: &MCMemberRecord) -> bool {
        const SCOPE_AND_KEY: u128 = 0x000f_0000_ffff << 80;
        const BROADCAST: u128 = 0xff10_401b << 96 | 0xffff_ffff;
        let own = wanted.mgid.0 & SCOPE_AND_KEY | BROADCAST;
        if wanted.mgid.0 == own {
            return true;
        }
        let Some(group) = self.by_gid.get(&Gid(own)) else { return false };
        let group = &group.shared;
        wanted.q_key == group.q_key
            && wanted.p_key.partition() == group.p_key.partition()
            && wanted.sl == group.sl
            && wanted.traffic_class == group.traffic_class
            && wanted.flow_label == group.flow_label
            && (!mask.has(HOP_LIMIT) || wanted.hop_limit == group.hop_limit)
    }

    /// Removes the requested join states of a member, which must have all of them. The response contains the remaining
    /// join states.
    pub(super) fn leave(
        &mut self,
        mask: ComponentMask,
        wanted: &MCMemberRecord,
        membership: &MembershipRequest<'_>,
    ) -> Result<MembershipChange, MadStatus> {
        if ![MGID, PORT_GID, JOIN_STATE].iter().all(|&bit| mask.has(bit)) {
            return Err(MadStatus::SA_INSUFFICIENT_COMPONENTS);
        }
        let group = self.by_gid.get_mut(&wanted.mgid).ok_or(MadStatus::SA_REQUEST_INVALID)?;
        let member = group.members.get_mut(&wanted.port_gid);
        let (state, proxy_join) = member.ok_or(MadStatus::SA_REQUEST_INVALID)?;
        // Source: o15-0.1.14.
        if wanted.join_state.0 == 0 || wanted.join_state.0 & !state.0 != 0 {
            return Err(MadStatus::SA_REQUEST_INVALID);
        }
        membership.may_change(wanted.port_gid, *proxy_join, group.shared.p_key)?;
        *state = JoinState(state.0 & !wanted.join_state.0);
        let record = MCMemberRecord {
            port_gid: wanted.port_gid,
            join_state: *state,
            proxy_join: *proxy_join,
            ..group.shared
        };
        if state.0 == 0 {
            group.members.remove(&wanted.port_gid);
            self.members -= 1;
            self.changed.insert(record.mlid);
        }
        let deleted = self.delete_if_unused(wanted.mgid);
        Ok(MembershipChange { record, created: false, deleted })
    }

    /// Removes a port that has left the subnet from all groups. Returns the groups that were thereby deleted.
    pub(super) fn forget(&mut self, port: Gid) -> Vec<MCMemberRecord> {
        let with: Vec<Gid> = self
            .by_gid
            .iter()
            .filter(|(_, it)| it.members.contains_key(&port))
            .map(|(&gid, _)| gid)
            .collect();
        let mut gone = Vec::new();
        for mgid in with {
            let group = self.by_gid.get_mut(&mgid).expect("`with` lists existing groups");
            group.members.remove(&port);
            self.members -= 1;
            let shared = group.shared;
            self.changed.insert(shared.mlid);
            if self.delete_if_unused(mgid) {
                gone.push(shared);
            }
        }
        gone
    }

    /// Deletes a group that no partition configures and that has neither a full member nor a send-only full member.
    /// Returns true if the group was deleted.
    fn delete_if_unused(&mut self, mgid: Gid) -> bool {
        let group = &self.by_gid[&mgid];
        let kept = group.members.values().any(|(state, _)| state.0 & KEEPING.0 != 0);
        if kept || group.is_permanent {
            return false;
        }
        self.members -= group.members.len();
        self.changed.insert(group.shared.mlid);
        self.by_lid.remove(&group.shared.mlid);
        self.by_gid.remove(&mgid);
        true
    }

    /// Appends the selected records of the next group after `after`. Trusted clients get a record of each member. Other
    /// clients get the group and their own membership; as in OpenSM, they see only groups of their own partitions.
    /// Returns the group, and the number of records that were checked.
    pub(super) fn records(
        &self,
        after: Option<Gid>,
        query: &Query<'_>,
        viewer: &Viewer<'_>,
        records: &mut Vec<u8>,
    ) -> Option<(Gid, usize)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let (&gid, group) = self.by_gid.range((from, Bound::Unbounded)).next()?;
        // P_Keys are compared without the membership bit.
        let wanted = MCMemberRecord::parse(
            query.template.first_chunk().expect("the template holds a record"),
        );
        let partition = group.shared.p_key.partition();
        let is_wanted = !query.mask.has(P_KEY) || wanted.p_key.partition() == partition;
        let is_visible =
            viewer.trusted || viewer.keys.iter().any(|key| key.partition() == partition);
        if !is_wanted || !is_visible {
            return Some((gid, 1));
        }
        let query = query.without(P_KEY);
        let own = viewer.gid.and_then(|gid| group.members.get_key_value(&gid));
        let members: Vec<_> =
            if viewer.trusted { group.members.iter().collect() } else { own.into_iter().collect() };
        if members.is_empty() && !viewer.trusted {
            // The record of the group itself matches every join state.
            query.without(JOIN_STATE).add(&group.shared, records);
        }
        let looked = members.len().max(1);
        for (&port_gid, &(join_state, proxy_join)) in members {
            let record = MCMemberRecord { port_gid, join_state, proxy_join, ..group.shared };
            query.add(&record, records);
        }
        Some((gid, looked))
    }

    /// Returns the groups, ordered by multicast LID.
    pub(super) fn by_lid(&self) -> impl Iterator<Item = (u16, &Group)> {
        self.by_lid.iter().map(|(&mlid, gid)| (mlid, &self.by_gid[gid]))
    }

    /// Returns the multicast LIDs whose members have changed since the last call of this function.
    pub(super) fn take_changed(&mut self) -> BTreeSet<u16> {
        std::mem::take(&mut self.changed)
    }

    fn free_lid(&self, mask: ComponentMask, wanted: &MCMemberRecord) -> Result<u16, MadStatus> {
        let free = |lid: &u16| !self.by_lid.contains_key(lid);
        let first = MulticastForwardingBlock::FIRST_LID;
        // As in OpenSM, the group gets the MLID that the request names. If that MLID is taken or invalid, the group
        // gets another one.
        let named = Some(wanted.mlid).filter(|_| mask.has(MLID));
        let named = named.filter(|lid| (first..=self.last).contains(lid) && free(lid));
        named.or_else(|| (first..=self.last).find(free)).ok_or(MadStatus::SA_NO_RESOURCES)
    }

    /// Returns an unused MGID. It is transient, and has the signature of the SA.
    fn new_gid(&mut self, scope: u8, prefix: u64) -> Gid {
        loop {
            self.next += 1;
            let head = 0xff10_a01b_0000_0000 | u64::from(scope) << 48 | prefix >> 32;
            let gid = Gid(u128::from(head) << 64 | u128::from(self.next));
            if !self.by_gid.contains_key(&gid) {
                return gid;
            }
        }
    }
}

/// Returns the first MTU or rate of `offers` that the request admits and that does not exceed `most`. A request without
/// a selector (`named` is false) admits all offers. If `wanted` is not among the offers, the request admits none.
fn choose<T: Copy>(
    named: bool,
    selector: Selector,
    wanted: T,
    offers: impl IntoIterator<Item = T> + Clone,
    order: impl Fn(T) -> u32,
    most: u32,
) -> Result<T, MadStatus> {
    let known = !named || offers.clone().into_iter().any(|offer| order(offer) == order(wanted));
    let admitted = |offer: &T| {
        order(*offer) <= most && (!named || selector.admits(&order(wanted), &order(*offer)))
    };
    let mut offers = offers.into_iter().filter(|_| known);
    offers.find(admitted).ok_or(MadStatus::SA_REQUEST_INVALID)
}

/// Checks whether a port may join an existing group. As in OpenSM, MTU and rate are only compared if their selectors
/// are given. MLID, packet lifetime and scope are not compared.
fn fits(
    mask: ComponentMask,
    wanted: &MCMemberRecord,
    group: &MCMemberRecord,
    limits: &PortLimits,
) -> Result<(), MadStatus> {
    let same = [
        (Q_KEY, wanted.q_key == group.q_key),
        (TRAFFIC_CLASS, wanted.traffic_class == group.traffic_class),
        (P_KEY, wanted.p_key.partition() == group.p_key.partition()),
        (SL, wanted.sl == group.sl),
        (FLOW_LABEL, wanted.flow_label == group.flow_label),
        (HOP_LIMIT, wanted.hop_limit == group.hop_limit),
    ];
    let speed = |code: RateCode| code.megabits_per_second().unwrap_or(0);
    let suits = same.iter().all(|&(bit, same)| !mask.has(bit) || same)
        && (!mask.has(MTU_SELECTOR) || wanted.mtu_selector.admits(&wanted.mtu.0, &group.mtu.0))
        && (!mask.has(RATE_SELECTOR)
            || wanted.rate_selector.admits(&speed(wanted.rate), &speed(group.rate)))
        && group.mtu.0 <= limits.mtu.0
        && speed(group.rate) <= speed(limits.rate);
    if suits { Ok(()) } else { Err(MadStatus::SA_REQUEST_INVALID) }
}

impl Groups {
    /// Adds a permanent group of a partition. If an MGID is defined several times, the first definition is used.
    pub(super) fn add_of_partition(
        &mut self,
        key: u16,
        group: &partition::Group,
        life_time: LifeTimeCode,
    ) -> Result<(), MadStatus> {
        let mgid = group.mgid;
        if self.by_gid.contains_key(&mgid) {
            return Ok(());
        }
        let mlid = self.free_lid(ComponentMask(0), &MCMemberRecord::zeroed())?;
        let shared = MCMemberRecord {
            mgid,
            q_key: QKey(group.q_key),
            mlid,
            mtu_selector: Selector::EXACTLY,
            mtu: group.mtu,
            traffic_class: group.traffic_class,
            p_key: PKey(key | 0x8000),
            rate_selector: Selector::EXACTLY,
            rate: group.rate,
            life_time_selector: Selector::EXACTLY,
            life_time,
            sl: group.sl,
            flow_label: group.flow_label,
            // Groups beyond link-local scope get a hop limit, so that routers may forward their packets.
            hop_limit: if group.scope() == 2 { 0 } else { 0xff },
            scope: group.scope(),
            ..MCMemberRecord::zeroed()
        };
        self.by_lid.insert(mlid, mgid);
        self.by_gid.insert(mgid, Group { shared, members: BTreeMap::new(), is_permanent: true });
        Ok(())
    }
}

impl super::Sa {
    /// Replaces the groups of the partitions. Creates missing groups. Deletes each group that no partition configures
    /// any more, as soon as it has neither a full member nor a send-only full member.
    pub(crate) fn set_partitions(&mut self, config: &SmConfig) {
        let asked = of_partitions(config);
        let wanted: BTreeSet<Gid> = asked.iter().map(|(_, group)| group.mgid).collect();
        let groups = &mut self.groups;
        let kept =
            groups.by_gid.iter().filter(|(gid, group)| group.is_permanent && !wanted.contains(gid));
        for gid in kept.map(|(&gid, _)| gid).collect::<Vec<_>>() {
            groups.by_gid.get_mut(&gid).expect("the GID is from `by_gid`").is_permanent = false;
            groups.delete_if_unused(gid);
        }
        groups.add_of_partitions(&asked, config);
    }
}

/// Returns the groups of all partitions, with the P_Keys of the partitions.
fn of_partitions(config: &SmConfig) -> Vec<(u16, partition::Group)> {
    let all = config.partitions.all().iter();
    let groups = all.flat_map(|it| it.groups.iter().map(|&group| (it.key, group)));
    let with_level = |(key, group): (u16, partition::Group)| {
        let sl = if group.sl_of_partition && config.qos.is_none() { 0 } else { group.sl };
        (key, partition::Group { sl, ..group })
    };
    groups.map(with_level).collect()
}

impl Groups {
    /// Creates all groups of the configured partitions.
    pub(super) fn new(config: &SmConfig) -> Self {
        let mut groups = Self::default();
        groups.add_of_partitions(&of_partitions(config), config);
        groups
    }

    fn add_of_partitions(&mut self, asked: &[(u16, partition::Group)], config: &SmConfig) {
        for (key, group) in asked {
            match self.by_gid.get_mut(&group.mgid) {
                Some(known) => known.is_permanent = true,
                None => {
                    let life_time = LifeTimeCode(config.packet_life_time);
                    // Adding a group fails if no multicast LID is left. The group is then not created.
                    let _ = self.add_of_partition(*key, group, life_time);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
