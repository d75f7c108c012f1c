//! PathRecords, `MultiPathRecords` and `TraceRecords`.

use std::sync::Arc;

use ib_types::{Gid, Guid, PKey, ServiceLevel};
use ib_wire::mad::sa::{
    ComponentMask, LifeTimeCode, MultiPathRecord, PathRecord, RateCode, Record, Selector,
    TraceRecord,
};
use ib_wire::mad::sm::MtuCode;
use ib_wire::mad::{Attribute, MadStatus};

use super::subnet::{PathProperties, PortSet, Subnet};
use crate::discovered_subnet::PortIndex;

/// Component mask bits of PathRecord. Source: IBTA volume 1, section 15.2.5.16.
pub(super) mod component {
    pub(crate) const DGID: u8 = 2;
    pub(crate) const SGID: u8 = 3;
    pub(crate) const DLID: u8 = 4;
    pub(crate) const SLID: u8 = 5;
    pub(crate) const RAW_TRAFFIC: u8 = 6;
    pub(crate) const NUMB_PATH: u8 = 12;
    pub(crate) const P_KEY: u8 = 13;
    pub(crate) const SL: u8 = 15;
    pub(crate) const MTU_SELECTOR: u8 = 16;
    pub(crate) const MTU: u8 = 17;
    pub(crate) const RATE_SELECTOR: u8 = 18;
    pub(crate) const RATE: u8 = 19;
    pub(crate) const LIFE_TIME_SELECTOR: u8 = 20;
    pub(crate) const LIFE_TIME: u8 = 21;
}
use component::*;

/// Maximum number of paths in a response.
const MAX_PATHS: usize = 1 << 20;

/// `Preference` of a path if its SLID and its DLID have different offsets. The offset of a LID counts from the first
/// LID of the same port that the request admits.
///
/// Paths with equal offsets have the `Preference` 0, which is the best. Both values are those of OpenSM.
const BETWEEN_OFFSETS: u8 = 2;

/// All valid MTUs.
const MTUS: std::ops::RangeInclusive<MtuCode> = MtuCode::MTU_256..=MtuCode::MTU_4096;

/// Maximum number of port pairs that the SA searches for the path of a `SubnAdmGetTraceTable` request.
pub(super) const MAX_TRACED_PAIRS: usize = 64;

/// Search for the paths between two sets of ports. It runs in slices of a few port pairs.
#[derive(Debug)]
pub(super) struct PathQuery {
    subnet: Arc<Subnet>,
    mask: ComponentMask,
    wanted: PathRecord,
    /// The requesting port. Only paths between ports that are visible to it are returned. `None` if all ports are
    /// visible.
    viewer: Option<PortIndex>,
    sources: PortSet,
    destinations: PortSet,
    /// Maximum number of paths between each pair of ports.
    limit: usize,
    /// True if the search ends after the first path.
    one: bool,
    /// Number of port pairs that remain to be searched.
    left: usize,
    /// Number of all port pairs: sources times destinations.
    pairs: usize,
    /// PathRecords in wire format, concatenated.
    records: Vec<u8>,
}

impl PathQuery {
    /// Starts the search for a PathRecord request. If `one` is true, the search ends after the first path.
    pub(super) fn new(
        subnet: &Arc<Subnet>,
        mask: ComponentMask,
        wanted: &PathRecord,
        viewer: Option<PortIndex>,
        one: bool,
    ) -> Result<Self, MadStatus> {
        let raw = mask.has(RAW_TRAFFIC) && wanted.raw_traffic;
        let no_ports = || PortSet::These(Vec::new());
        let of = |gid, lid| if raw { no_ports() } else { ends(subnet, gid, lid) };
        let given = |bit, gid| mask.has(bit).then_some(gid);
        let given_lid = |bit, lid| mask.has(bit).then_some(lid);
        let sources = of(given(SGID, wanted.sgid), given_lid(SLID, wanted.slid));
        let destinations = of(given(DGID, wanted.dgid), given_lid(DLID, wanted.dlid));
        let limit = match () {
            () if one => 1,
            () if mask.has(NUMB_PATH) => usize::from(wanted.numb_path),
            () => usize::MAX,
        };
        let query = Self::between(subnet, mask, *wanted, sources, destinations, viewer, limit)?;
        Ok(Self { one, ..query })
    }

    /// Starts the search for a MultiPathRecord request.
    pub(super) fn multi(
        subnet: &Arc<Subnet>,
        mask: ComponentMask,
        wanted: &MultiPathRecord,
        data: &[u8],
        viewer: Option<PortIndex>,
    ) -> Result<Self, MadStatus> {
        /// Pairs of component mask bits, in MultiPathRecord and in PathRecord, that have the same meaning.
        const SAME: [(u8, u8); 9] = [
            (6, NUMB_PATH),
            (7, P_KEY),
            (9, SL),
            (10, MTU_SELECTOR),
            (11, MTU),
            (12, RATE_SELECTOR),
            (13, RATE),
            (14, LIFE_TIME_SELECTOR),
            (15, LIFE_TIME),
        ];
        if mask.has(0) && wanted.raw_traffic {
            let no_ports = || PortSet::These(Vec::new());
            let (mask, wanted) = (ComponentMask(0), PathRecord::zeroed());
            return Self::between(subnet, mask, wanted, no_ports(), no_ports(), viewer, 1);
        }
        let (sources, destinations) = wanted.gids(data).ok_or(MadStatus::SA_REQUEST_INVALID)?;
        if sources.is_empty() || destinations.is_empty() {
            return Err(MadStatus::SA_INSUFFICIENT_COMPONENTS);
        }
        let port = |gid: Gid| {
            let local = gid.prefix() == subnet.prefix;
            subnet.by_guid(gid.guid()).filter(|_| local).ok_or(MadStatus::SA_INVALID_GID)
        };
        let ports = |gids: Vec<Gid>| {
            gids.into_iter().map(port).collect::<Result<Vec<PortIndex>, _>>().map(PortSet::These)
        };
        let (sources, destinations) = (ports(sources)?, ports(destinations)?);
        let given = SAME.iter().filter(|(bit, _)| mask.has(*bit)).map(|&(_, bit)| bit);
        let mask = ComponentMask::of(&given.collect::<Vec<u8>>());
        let path = PathRecord {
            numb_path: wanted.numb_path,
            p_key: wanted.p_key,
            sl: wanted.sl,
            mtu_selector: wanted.mtu_selector,
            mtu: wanted.mtu,
            rate_selector: wanted.rate_selector,
            rate: wanted.rate,
            life_time_selector: wanted.life_time_selector,
            life_time: wanted.life_time,
            ..PathRecord::zeroed()
        };
        let limit = if mask.has(NUMB_PATH) { usize::from(wanted.numb_path.max(1)) } else { 1 };
        Self::between(subnet, mask, path, sources, destinations, viewer, limit)
    }

    fn between(
        subnet: &Arc<Subnet>,
        mask: ComponentMask,
        wanted: PathRecord,
        sources: PortSet,
        destinations: PortSet,
        viewer: Option<PortIndex>,
        limit: usize,
    ) -> Result<Self, MadStatus> {
        let named = |value, selector| mask.has(value) && mask.has(selector);
        let unknown = named(MTU, MTU_SELECTOR) && !MTUS.contains(&wanted.mtu)
            || named(RATE, RATE_SELECTOR) && wanted.rate.megabits_per_second().is_none();
        if unknown {
            return Err(MadStatus::SA_REQUEST_INVALID);
        }
        let subnet = Arc::clone(subnet);
        let pairs = sources.len(&subnet) * destinations.len(&subnet);
        Ok(Self {
            subnet,
            mask,
            wanted,
            viewer,
            sources,
            destinations,
            limit,
            one: false,
            left: pairs,
            pairs,
            records: Vec::new(),
        })
    }

    /// Returns the number of port pairs that remain to be searched.
    pub(super) const fn left(&self) -> usize {
        self.left
    }

    /// Returns how many bytes the search has allocated.
    pub(super) fn held(&self) -> usize {
        let places = |ends: &PortSet| match ends {
            PortSet::All => 0,
            PortSet::These(places) => places.capacity() * size_of::<PortIndex>(),
        };
        self.records.capacity() + places(&self.sources) + places(&self.destinations)
    }

    /// Searches the paths of at most `pairs` further port pairs.
    pub(super) fn step(&mut self, pairs: usize) -> Result<(), MadStatus> {
        for _ in 0..pairs.min(self.left) {
            let count = self.destinations.len(&self.subnet);
            let next = self.pairs - self.left;
            let from = self.sources.at(&self.subnet, next / count);
            let to = self.destinations.at(&self.subnet, next % count);
            self.left -= 1;
            let Self { subnet, mask, wanted, viewer, limit, records, .. } = self;
            let sees = |port| viewer.is_none_or(|viewer| subnet.share(viewer, port));
            if !(sees(from) && sees(to)) {
                continue;
            }
            pair(subnet, *mask, wanted, from, to, *limit, records);
            if self.one && !self.records.is_empty() {
                self.left = 0;
                break;
            }
            if self.records.len() > MAX_PATHS * PathRecord::STRIDE {
                return Err(MadStatus::SA_NO_RESOURCES);
            }
        }
        Ok(())
    }

    /// Returns the PathRecords, concatenated.
    pub(super) fn finish(self) -> Vec<u8> {
        self.records
    }
}

/// Returns `TraceRecords` of the nodes on the selected path. Fails unless the request selects exactly one path.
pub(super) fn trace_records(
    subnet: &Arc<Subnet>,
    mask: ComponentMask,
    wanted: &PathRecord,
    viewer: Option<PortIndex>,
) -> Result<Vec<TraceRecord>, MadStatus> {
    let mut query = PathQuery::new(subnet, mask, wanted, viewer, true)?;
    query.one = false;
    if query.left() > MAX_TRACED_PAIRS {
        return Err(MadStatus::SA_TOO_MANY_RECORDS);
    }
    query.step(MAX_TRACED_PAIRS)?;
    let paths = query.finish();
    let mut paths = paths.chunks_exact(PathRecord::STRIDE);
    let bytes = paths.next().ok_or(MadStatus::SA_NO_RECORDS)?;
    if paths.next().is_some() {
        return Err(MadStatus::SA_TOO_MANY_RECORDS);
    }
    let path = PathRecord::parse(bytes.first_chunk().expect("each chunk holds one record"));
    let ends = subnet.by_lid(path.slid).zip(subnet.by_lid(path.dlid));
    let (from, to) = ends.ok_or(MadStatus::SA_NO_RECORDS)?;
    let steps = subnet.steps(from, to, path.dlid).ok_or(MadStatus::SA_NO_RECORDS)?;
    let found = &subnet.found;
    let records = steps.into_iter().map(|(node, entry, exit)| {
        let known = found.node(node);
        let guid =
            |port: Option<u8>| port.map_or(Guid::ZERO, |port| found.port(node.at(port)).guid);
        TraceRecord {
            gid_prefix: subnet.prefix,
            node_type: known.info.node_type,
            node_id: known.info.node_guid,
            entry_port_id: guid(entry),
            exit_port_id: guid(exit),
            entry_port: entry.unwrap_or(0),
            exit_port: exit.unwrap_or(0),
            ..TraceRecord::zeroed()
        }
    });
    Ok(records.collect())
}

/// Returns the source or destination ports that the GID and LID in a request select.
fn ends(subnet: &Subnet, gid: Option<Gid>, lid: Option<u16>) -> PortSet {
    let no_ports = || PortSet::These(Vec::new());
    let own = |gid: &Gid| gid.prefix() == subnet.prefix;
    let by_gid = gid.map(|gid| Some(gid).filter(own).and_then(|gid| subnet.by_guid(gid.guid())));
    let by_lid = lid.map(|lid| subnet.by_lid(lid));
    if [by_gid, by_lid].contains(&Some(None)) {
        // If no port has the given GID or LID, the request selects no ports.
        return no_ports();
    }
    match (by_gid.flatten(), by_lid.flatten()) {
        (Some(one), Some(other)) if one != other => no_ports(),
        (Some(port_index), _) | (None, Some(port_index)) => PortSet::These(vec![port_index]),
        (None, None) => PortSet::All,
    }
}

/// Appends the paths from one port to another.
///
/// If the ports have several LIDs, paths whose SLID and DLID have equal offsets come first. The other paths follow,
/// ordered by SLID. Offsets count from the first LID that the request admits. Therefore, if the request gives the SLID,
/// the first path leads to the base DLID.
fn pair(
    subnet: &Subnet,
    mask: ComponentMask,
    wanted: &PathRecord,
    from: PortIndex,
    to: PortIndex,
    limit: usize,
    records: &mut Vec<u8>,
) {
    let Some(p_key) = common_partition(subnet, mask, wanted, from, to) else { return };
    let admitted = |(first, count), bit, wanted: u16| match mask.has(bit) {
        true if (first..first + count).contains(&wanted) => (wanted, 1),
        true => (first, 0),
        false => (first, count),
    };
    let (slid, sources) = admitted(subnet.lids(from), SLID, wanted.slid);
    let (dlid, destinations) = admitted(subnet.lids(to), DLID, wanted.dlid);
    let equal = (0..sources.min(destinations)).map(|offset| (offset, offset, 0));
    let all = (0..sources).flat_map(|one| (0..destinations).map(move |other| (one, other)));
    let different = all.filter(|(one, other)| one != other);
    let different = different.map(|(one, other)| (one, other, BETWEEN_OFFSETS));
    let mut left = limit;
    for (one, other, preference) in equal.chain(different) {
        if left == 0 {
            return;
        }
        let (slid, dlid) = (slid + one, dlid + other);
        let Some(path) = subnet.path(from, to, dlid) else { continue };
        let Some(record) = suits(subnet, mask, wanted, &path, p_key) else { continue };
        let (sgid, dgid) = (subnet.gid(from), subnet.gid(to));
        let record = PathRecord { sgid, dgid, slid, dlid, p_key, preference, ..record };
        let at = records.len();
        records.resize(at + PathRecord::STRIDE, 0);
        record.write(&mut records[at..]);
        left -= 1;
    }
}

/// Returns the P_Key with the lowest partition number that both ports have. At least one of the ports must be a full
/// member.
fn common_partition(
    subnet: &Subnet,
    mask: ComponentMask,
    wanted: &PathRecord,
    from: PortIndex,
    to: PortIndex,
) -> Option<PKey> {
    let keys = subnet.p_keys(from).iter();
    let mut common = keys.filter(|key| subnet.p_keys(to).iter().any(|other| key.matches(*other)));
    if mask.has(P_KEY) {
        common.any(|key| key.partition() == wanted.p_key.partition()).then_some(wanted.p_key)
    } else {
        common.min_by_key(|key| key.partition()).copied()
    }
}

/// Returns a record with the properties of a path in a partition; `None` if the request excludes the path.
fn suits(
    subnet: &Subnet,
    mask: ComponentMask,
    wanted: &PathRecord,
    path: &PathProperties,
    p_key: PKey,
) -> Option<PathRecord> {
    let life_time = if path.hops == 0 { LifeTimeCode(0) } else { subnet.life_time };
    let sl = match subnet.plan.routing.layers.is_uniform() {
        // If the routes use only SL 0, the client may choose any SL.
        true if mask.has(SL) => wanted.sl,
        true if path.level == ServiceLevel::default() => subnet.level_of(p_key).get(),
        _ => path.level.get(),
    };
    if mask.has(SL) && wanted.sl != sl {
        return None;
    }
    let named = |value, selector| mask.has(value) && mask.has(selector);
    let mtu = if named(MTU, MTU_SELECTOR) {
        mtu_within(wanted.mtu_selector, wanted.mtu, path.mtu)?
    } else {
        path.mtu
    };
    let rate = if named(RATE, RATE_SELECTOR) {
        rate_within(wanted.rate_selector, wanted.rate, path.rate)?
    } else {
        path.rate
    };
    let life_time = if named(LIFE_TIME, LIFE_TIME_SELECTOR) {
        life_time_within(wanted.life_time_selector, wanted.life_time, life_time)?
    } else {
        life_time
    };
    Some(PathRecord {
        reversible: true,
        sl,
        mtu_selector: Selector::EXACTLY,
        mtu,
        rate_selector: Selector::EXACTLY,
        rate,
        life_time_selector: Selector::EXACTLY,
        life_time,
        ..PathRecord::zeroed()
    })
}

/// Returns the MTU of a path whose links support `offered`; `None` if the request excludes the path. The selectors LESS
/// and EXACTLY may reduce the MTU. As in OpenSM, a value without selector is ignored.
fn mtu_within(by: Selector, wanted: MtuCode, offered: MtuCode) -> Option<MtuCode> {
    match by {
        Selector::GREATER => (offered > wanted).then_some(offered),
        Selector::LESS if offered < wanted => Some(offered),
        Selector::LESS => wanted.0.checked_sub(1).map(MtuCode).filter(|mtu| MTUS.contains(mtu)),
        Selector::EXACTLY => (offered >= wanted).then_some(wanted),
        _ => Some(offered),
    }
}

/// Returns the rate of a path whose links support `offered`; `None` if the request excludes the path. The selector LESS
/// may reduce the rate.
fn rate_within(by: Selector, wanted: RateCode, offered: RateCode) -> Option<RateCode> {
    let speed = |code: RateCode| code.megabits_per_second().unwrap_or(0);
    let (limit, most) = (speed(wanted), speed(offered));
    if by == Selector::LESS && most >= limit {
        let falling = RateCode::RATES.iter().rev().map(|&(code, _)| code);
        return falling.into_iter().find(|&code| speed(code) < limit);
    }
    by.admits(&limit, &most).then_some(offered)
}

/// Returns the packet lifetime of a path; `None` if the request excludes the path. The selectors LESS and EXACTLY may
/// reduce the lifetime, but LESS does not reduce it to code 0.
fn life_time_within(
    by: Selector,
    wanted: LifeTimeCode,
    offered: LifeTimeCode,
) -> Option<LifeTimeCode> {
    match by {
        Selector::GREATER => (offered > wanted).then_some(offered),
        Selector::LESS if offered < wanted => Some(offered),
        Selector::LESS => (wanted.0 > 1).then(|| LifeTimeCode(wanted.0 - 1)),
        Selector::EXACTLY => (offered >= wanted).then_some(wanted),
        _ => Some(offered),
    }
}

#[cfg(test)]
mod tests;
