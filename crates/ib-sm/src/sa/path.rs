//! Paths between ports, and the nodes on them.

use std::sync::Arc;

use ib_types::{Gid, Guid, PKey};
use ib_wire::mad::MadStatus;
use ib_wire::mad::sa::{
    ComponentMask, LifeTimeCode, MultiPathRecord, PathRecord, RateCode, Selector, TraceRecord,
};
use ib_wire::mad::sm::MtuCode;

use super::subnet::{Subnet, Way};
use crate::found::Place;

/// Bits of the component mask of a PathRecord; IBTA volume 1, chapter 15.2.5.16.
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

/// The most paths that one answer has.
const MOST_PATHS: usize = 1 << 20;

/// The preference of paths between LIDs that are not at the same place among those of their ports; of
/// the others it is zero, the best.
const BETWEEN_OFFSETS: u8 = 2;

/// The most pairs of ports among which a path to be traced is looked for.
const MOST_TRACED: usize = 64;

/// Paths between two sets of ports, found a few pairs at a time so that nobody else has to wait.
#[derive(Debug)]
pub(super) struct PathQuery {
    subnet: Arc<Subnet>,
    mask: ComponentMask,
    wanted: PathRecord,
    sources: Vec<Place>,
    destinations: Vec<Place>,
    /// How many paths of each pair of ports.
    limit: usize,
    /// The next pair, counted by source and then by destination.
    next: usize,
    records: Vec<PathRecord>,
}

impl PathQuery {
    /// Starts to find the paths that a request for PathRecords selects; for `one` the best of each pair
    /// of ports.
    pub(super) fn new(
        subnet: &Arc<Subnet>,
        mask: ComponentMask,
        wanted: &PathRecord,
        one: bool,
    ) -> Self {
        let raw = mask.has(RAW_TRAFFIC) && wanted.raw_traffic;
        let of = |gid, lid| if raw { Vec::new() } else { ends(subnet, mask, gid, lid) };
        let sources = of((SGID, wanted.sgid), (SLID, wanted.slid));
        let destinations = of((DGID, wanted.dgid), (DLID, wanted.dlid));
        let limit = match () {
            () if mask.has(NUMB_PATH) && wanted.numb_path == 0 => 0,
            () if one => 1,
            () if mask.has(NUMB_PATH) => usize::from(wanted.numb_path),
            () => usize::MAX,
        };
        Self::between(subnet, (mask, *wanted), (sources, destinations), limit)
    }

    /// Starts to find the paths that a request for paths between two sets of ports selects.
    pub(super) fn multi(
        subnet: &Arc<Subnet>,
        mask: ComponentMask,
        wanted: &MultiPathRecord,
        data: &[u8],
    ) -> Result<Self, MadStatus> {
        /// Bits of the component mask of a MultiPathRecord and those of a PathRecord that mean the same.
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
            let nobody = (Vec::new(), Vec::new());
            return Ok(Self::between(subnet, (mask, PathRecord::zeroed()), nobody, 1));
        }
        let (sources, destinations) = wanted.gids(data).ok_or(MadStatus::SA_REQUEST_INVALID)?;
        if sources.is_empty() || destinations.is_empty() {
            return Err(MadStatus::SA_INSUFFICIENT_COMPONENTS);
        }
        let port = |gid: Gid| {
            let local = gid.prefix() == subnet.prefix;
            subnet.by_guid(gid.guid()).filter(|_| local).ok_or(MadStatus::SA_INVALID_GID)
        };
        let ports = |gids: Vec<Gid>| gids.into_iter().map(port).collect::<Result<Vec<Place>, _>>();
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
        Ok(Self::between(subnet, (mask, path), (sources, destinations), limit))
    }

    fn between(
        subnet: &Arc<Subnet>,
        (mask, wanted): (ComponentMask, PathRecord),
        (sources, destinations): (Vec<Place>, Vec<Place>),
        limit: usize,
    ) -> Self {
        let subnet = Arc::clone(subnet);
        Self { subnet, mask, wanted, sources, destinations, limit, next: 0, records: Vec::new() }
    }

    /// Returns the number of pairs that are left.
    pub(super) const fn left(&self) -> usize {
        self.sources.len() * self.destinations.len() - self.next
    }

    /// Looks at a few pairs.
    pub(super) fn step(&mut self, pairs: usize) -> Result<(), MadStatus> {
        for _ in 0..pairs.min(self.left()) {
            let (from, to) =
                (self.next / self.destinations.len(), self.next % self.destinations.len());
            let between = (self.sources[from], self.destinations[to]);
            let Self { subnet, mask, wanted, limit, records, .. } = self;
            pair(subnet, *mask, wanted, between, *limit, records);
            self.next += 1;
            if self.records.len() > MOST_PATHS {
                return Err(MadStatus::SA_NO_RESOURCES);
            }
        }
        Ok(())
    }

    /// Returns the paths.
    pub(super) fn finish(self) -> Vec<PathRecord> {
        self.records
    }
}

/// Returns the nodes on the path that a request selects; there must be one such path.
pub(super) fn trace_records(
    subnet: &Arc<Subnet>,
    mask: ComponentMask,
    wanted: &PathRecord,
) -> Result<Vec<TraceRecord>, MadStatus> {
    let mut query = PathQuery::new(subnet, mask, wanted, true);
    if query.left() > MOST_TRACED {
        return Err(MadStatus::SA_TOO_MANY_RECORDS);
    }
    query.step(MOST_TRACED)?;
    let paths = query.finish();
    let path = match &paths[..] {
        [] => return Err(MadStatus::SA_NO_RECORDS),
        [path] => path,
        _ => return Err(MadStatus::SA_TOO_MANY_RECORDS),
    };
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

/// Returns the ports at one end of the paths.
fn ends(
    subnet: &Subnet,
    mask: ComponentMask,
    (gid_bit, gid): (u8, Gid),
    (lid_bit, lid): (u8, u16),
) -> Vec<Place> {
    let by_gid = if mask.has(gid_bit) {
        let port = Some(gid).filter(|gid| gid.prefix() == subnet.prefix);
        // Nothing leads to a port that is not there.
        let Some(place) = port.and_then(|gid| subnet.by_guid(gid.guid())) else {
            return Vec::new();
        };
        Some(place)
    } else {
        None
    };
    let by_lid = if mask.has(lid_bit) {
        match subnet.by_lid(lid) {
            None => return Vec::new(),
            place => place,
        }
    } else {
        None
    };
    match (by_gid, by_lid) {
        (Some(one), Some(other)) if one != other => Vec::new(),
        (Some(place), _) | (None, Some(place)) => vec![place],
        (None, None) => subnet.end_ports().collect(),
    }
}

/// Appends the paths from one port to another.
///
/// With several LIDs at either end the paths with equal offsets come first, then those between
/// different ones.
fn pair(
    subnet: &Subnet,
    mask: ComponentMask,
    wanted: &PathRecord,
    (from, to): (Place, Place),
    limit: usize,
    records: &mut Vec<PathRecord>,
) {
    let Some(p_key) = common_partition(subnet, mask, wanted, from, to) else { return };
    let ((slid, sources), (dlid, destinations)) = (subnet.lids(from), subnet.lids(to));
    let mut left = limit;
    let rounds = sources.max(destinations);
    for shift in 0..rounds {
        for at in 0..sources {
            let other = at.wrapping_add(shift) % rounds;
            if other >= destinations || left == 0 {
                continue;
            }
            let (slid, dlid) = (slid + at, dlid + other);
            if mask.has(SLID) && wanted.slid != slid || mask.has(DLID) && wanted.dlid != dlid {
                continue;
            }
            let Some(way) = subnet.way(from, to, dlid) else { continue };
            let Some(record) = suits(subnet, mask, wanted, &way) else { continue };
            let (sgid, dgid) = (subnet.gid(from), subnet.gid(to));
            let preference = if shift == 0 { 0 } else { BETWEEN_OFFSETS };
            records.push(PathRecord { sgid, dgid, slid, dlid, p_key, preference, ..record });
            left -= 1;
        }
    }
}

/// Returns the partition that both ports are in; one of them has to be a full member.
fn common_partition(
    subnet: &Subnet,
    mask: ComponentMask,
    wanted: &PathRecord,
    from: Place,
    to: Place,
) -> Option<PKey> {
    let keys = subnet.p_keys(from).iter();
    let mut common = keys.filter(|key| subnet.p_keys(to).iter().any(|other| key.matches(*other)));
    if mask.has(P_KEY) {
        common.any(|key| key.partition() == wanted.p_key.partition()).then_some(wanted.p_key)
    } else {
        common.next().copied()
    }
}

/// Returns what holds on a way, when the request wants such a way.
fn suits(
    subnet: &Subnet,
    mask: ComponentMask,
    wanted: &PathRecord,
    way: &Way,
) -> Option<PathRecord> {
    let life_time = if way.hops == 0 { LifeTimeCode(0) } else { subnet.life_time };
    // Where the routes need no level of their own, any will do.
    let free = subnet.plan.routing.layers.is_uniform();
    let sl = if mask.has(SL) && free { wanted.sl } else { way.level.get() };
    if mask.has(SL) && wanted.sl != sl {
        return None;
    }
    // Without a selector the value is meant exactly.
    let selector = |bit, selector| if mask.has(bit) { selector } else { Selector::EXACTLY };
    let mtu = if mask.has(MTU) {
        let by = selector(MTU_SELECTOR, wanted.mtu_selector);
        let codes = (MtuCode::MTU_256.0..=MtuCode::MTU_4096.0).rev().map(MtuCode);
        within(by, &wanted.mtu, &way.mtu, codes, |code| u32::from(code.0))?
    } else {
        way.mtu
    };
    let rate = if mask.has(RATE) {
        let by = selector(RATE_SELECTOR, wanted.rate_selector);
        let codes = RateCode::RATES.iter().rev().map(|&(code, _)| code);
        let speed = |code: &RateCode| code.megabits_per_second().unwrap_or(0);
        within(by, &wanted.rate, &way.rate, codes, speed)?
    } else {
        way.rate
    };
    if mask.has(LIFE_TIME) {
        let by = selector(LIFE_TIME_SELECTOR, wanted.life_time_selector);
        if !by.admits(&wanted.life_time.0, &life_time.0) {
            return None;
        }
    }
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

/// Returns what a path shall use of what a way can carry: all of it, but as much less as a request wants
/// that asks for less.
fn within<C: Copy>(
    by: Selector,
    wanted: &C,
    offered: &C,
    mut falling: impl Iterator<Item = C>,
    size: impl Fn(&C) -> u32,
) -> Option<C> {
    let (limit, most) = (size(wanted), size(offered));
    if by == Selector::LESS {
        return falling.find(|code| size(code) <= most && size(code) < limit);
    }
    by.admits(&limit, &most).then_some(*offered)
}
