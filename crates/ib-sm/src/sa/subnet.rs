//! The subnet as administration knows it: what was found, the plan that was written, and indexes over
//! both.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ib_routing::SwitchId;
use ib_types::{Gid, Guid, PKey, ServiceLevel};
use ib_wire::mad::sa::{LifeTimeCode, RateCode};
use ib_wire::mad::sm::MtuCode;

use crate::config::{PartEnforce, SmConfig};
use crate::found::{Found, NodeIndex, Place};
use crate::plan::Plan;

/// Where no place stands.
const NOWHERE: u32 = u32::MAX;

/// A subnet that was brought up.
#[derive(Clone, Debug)]
pub(crate) struct Subnet {
    pub(crate) found: Found,
    pub(crate) plan: Arc<Plan>,
    pub(crate) prefix: u64,
    pub(crate) life_time: LifeTimeCode,
    /// The end port of each LID: the node's number and that of its port.
    places: Vec<u32>,
    by_guid: BTreeMap<Guid, Place>,
    /// The end ports by rising GUID.
    ends: Vec<Place>,
    /// The partitions of each end port; ports with the same ones share them.
    p_keys: BTreeMap<Guid, Arc<[PKey]>>,
    /// Whether all ports have the same keys, one of them a full member's: all share a partition.
    is_open: bool,
    /// Whether switches check the partitions of their hosts.
    checks: bool,
    /// The service levels of the partitions by their numbers; none without quality of service.
    levels: BTreeMap<u16, ServiceLevel>,
    /// The row of each switch in the tables, by node.
    rows: Vec<Option<SwitchId>>,
}

/// MTU, rate and lifetime of packets that a port can have.
#[derive(Clone, Copy, Debug)]
pub(super) struct PortLimits {
    pub(super) mtu: MtuCode,
    pub(super) rate: RateCode,
    pub(super) life_time: LifeTimeCode,
}

/// The ports that a request is about.
#[derive(Clone, Debug)]
pub(crate) enum Ends {
    /// All that have LIDs, by rising GUID.
    All,
    /// These.
    These(Vec<Place>),
}

impl Ends {
    pub(crate) fn len(&self, subnet: &Subnet) -> usize {
        match self {
            Self::All => subnet.ends.len(),
            Self::These(places) => places.len(),
        }
    }

    /// Returns one of them, by its number below their count.
    pub(crate) fn at(&self, subnet: &Subnet, number: usize) -> Place {
        match self {
            Self::All => subnet.ends[number],
            Self::These(places) => places[number],
        }
    }
}

/// A node on a path, and the ports by which the path enters and leaves it.
pub(crate) type Step = (NodeIndex, Option<u8>, Option<u8>);

/// Properties of the whole path from one port to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathProperties {
    pub(crate) mtu: MtuCode,
    pub(crate) rate: RateCode,
    pub(crate) level: ServiceLevel,
    pub(crate) hops: u8,
}

impl Subnet {
    pub(crate) fn new(found: Found, plan: Arc<Plan>, config: &SmConfig) -> Self {
        let mut known_sets: BTreeSet<Arc<[PKey]>> = BTreeSet::new();
        let mut p_keys = BTreeMap::new();
        let mut places = vec![NOWHERE; usize::from(plan.max_lid) + 1];
        let mut by_guid = BTreeMap::new();
        for place in found.end_ports() {
            let guid = found.port(place).guid;
            let Some(&(first, count)) = plan.end_ports.get(&guid) else { continue };
            by_guid.insert(guid, place);
            let kind = found.node(place.node).kind;
            let own = found
                .own
                .is_some_and(|own| own.node == place.node && (own == place || kind.is_switch()));
            let keys: Arc<[PKey]> = config.partitions.keys(guid, kind, own).into();
            let keys = match known_sets.get(&keys) {
                Some(known) => Arc::clone(known),
                None => {
                    known_sets.insert(Arc::clone(&keys));
                    keys
                }
            };
            p_keys.insert(guid, keys);
            let packed = place.node.0 << 8 | u32::from(place.port);
            for lid in first.get()..first.get() + count {
                if let Some(entry) = places.get_mut(usize::from(lid)) {
                    *entry = packed;
                }
            }
        }
        let mut rows = vec![None; found.nodes().len()];
        for (row, guid) in plan.switches.iter().enumerate() {
            if let Some(node) = found.find(*guid) {
                rows[node.0 as usize] = Some(SwitchId(row as u16));
            }
        }
        let levels = config.partitions.all().iter().filter(|_| config.qos.is_some());
        let levels = levels.filter_map(|it| Some((it.key, ServiceLevel::new(it.sl)?))).collect();
        Self {
            ends: by_guid.values().copied().collect(),
            found,
            plan,
            prefix: config.subnet_prefix,
            life_time: LifeTimeCode(config.packet_life_time),
            places,
            by_guid,
            p_keys,
            is_open: known_sets.len() == 1
                && known_sets.first().is_some_and(|keys| keys.iter().any(|it| it.is_full_member())),
            checks: config.part_enforce != PartEnforce::Off,
            levels,
            rows,
        }
    }

    /// Returns the ports with LIDs, by rising GUID.
    pub(crate) fn end_ports(&self) -> impl Iterator<Item = Place> {
        self.ends.iter().copied()
    }

    /// Returns the port that has a LID.
    pub(crate) fn by_lid(&self, lid: u16) -> Option<Place> {
        let packed = *self.places.get(usize::from(lid)).filter(|&&packed| packed != NOWHERE)?;
        Some(NodeIndex(packed >> 8).at(packed as u8))
    }

    /// Returns the port that has a GUID.
    pub(crate) fn by_guid(&self, guid: Guid) -> Option<Place> {
        self.by_guid.get(&guid).copied()
    }

    /// Returns the lowest LID of an end port and how many it has.
    pub(crate) fn lids(&self, end_port: Place) -> (u16, u16) {
        let guid = self.found.port(end_port).guid;
        let &(first, count) = self.plan.end_ports.get(&guid).expect("an end port has LIDs");
        (first.get(), count)
    }

    /// Returns the lowest LID by which a port is addressed: of a switch's port that of port 0.
    pub(crate) fn base_lid(&self, place: Place) -> Option<u16> {
        let node = self.found.node(place.node);
        let end_port = if node.kind.is_switch() { place.node.at(0) } else { place };
        let guid = self.found.port(end_port).guid;
        self.plan.end_ports.get(&guid).map(|&(first, _)| first.get())
    }

    /// Returns the GID of a port.
    pub(crate) fn gid(&self, place: Place) -> Gid {
        Gid::new(self.prefix, self.found.port(place).guid)
    }

    /// Returns what the link of a port can carry.
    pub(super) fn limits(&self, place: Place) -> PortLimits {
        let life_time = self.life_time;
        match self.found.port(place).info.as_deref() {
            Some(info) if place.port > 0 => {
                PortLimits { mtu: info.neighbor_mtu, rate: rate_of(info).0, life_time }
            }
            // What a switch's own port sends enters the switch at its full rate.
            Some(info) => PortLimits { mtu: info.mtu_cap, rate: RateCode::GBPS_1200, life_time },
            None => PortLimits { mtu: MtuCode::MTU_256, rate: RateCode::GBPS_2_5, life_time },
        }
    }

    /// Returns the row of a switch in the plan's tables.
    pub(crate) fn row(&self, node: NodeIndex) -> Option<SwitchId> {
        self.rows[node.0 as usize]
    }

    /// Returns the partitions of an end port.
    pub(crate) fn p_keys(&self, end_port: Place) -> &[PKey] {
        let guid = self.found.port(end_port).guid;
        self.p_keys.get(&guid).map_or(&[], |keys| keys)
    }

    /// Returns the partitions whose packets pass a port: of an end port its own, of a switch's port to
    /// an adapter those of the adapter, if the switch checks. `None` where all pass.
    fn passing(&self, place: Place) -> Option<&[PKey]> {
        let is_switch = |place: Place| self.found.node(place.node).kind.is_switch();
        if place.port == 0 || !is_switch(place) {
            return Some(self.p_keys(place));
        }
        let peer = self.found.port(place).peer.filter(|&peer| self.checks && !is_switch(peer));
        peer.map(|peer| self.p_keys(peer))
    }

    /// Returns whether two ports may know of each other: they are the same, or share a partition of
    /// which one is a full member, as OpenSM has it.
    pub(crate) fn share(&self, one: Place, other: Place) -> bool {
        if self.is_open {
            return true;
        }
        let (Some(keys), Some(others)) = (self.passing(one), self.passing(other)) else {
            return true;
        };
        one == other || keys.iter().any(|key| others.iter().any(|other| key.matches(*other)))
    }

    /// Returns the service level of a partition's paths.
    pub(crate) fn level_of(&self, key: PKey) -> ServiceLevel {
        self.levels.get(&key.partition()).copied().unwrap_or_default()
    }

    /// Follows the tables from a port to a LID, which belongs to another port: what holds on the whole
    /// path. `None` when they do not lead there.
    pub(crate) fn path(&self, from: Place, to: Place, lid: u16) -> Option<PathProperties> {
        let own = self.found.port(from).info.as_deref()?;
        let level = ServiceLevel::default();
        let mut path = PathProperties { mtu: own.mtu_cap, rate: rate_of(own).0, level, hops: 0 };
        let is_switch = |place: Place| self.found.node(place.node).kind.is_switch();
        // The own port of a switch has a rate of its own.
        let mut slowest = if is_switch(from) { rate_of(own).1 } else { u32::MAX };
        let (mut first, mut last) = (None, None);
        self.walk(from, to, lid, |leaves, _| {
            first = first.or(self.row(leaves.node));
            self.pass(leaves, &mut path, &mut slowest)?;
            last = self.found.port(leaves).peer.and_then(|peer| self.row(peer.node)).or(last);
            Some(())
        })?;
        if let Some(info) = self.found.port(to).info.as_deref().filter(|_| is_switch(to)) {
            let (rate, speed) = rate_of(info);
            if speed < slowest {
                path.rate = rate;
            }
            path.mtu = MtuCode(path.mtu.0.min(info.mtu_cap.0));
        }
        let (first, last) = (first.or(last), last.or(first));
        if let (Some(first), Some(last)) = (first, last) {
            path.level = self.plan.routing.layers.level(first, last);
        }
        Some(path)
    }

    /// Follows the tables from a port to a LID: the nodes, and by which ports the path enters and leaves
    /// each. `None` when they do not lead there.
    pub(crate) fn steps(&self, from: Place, to: Place, lid: u16) -> Option<Vec<Step>> {
        let mut steps = vec![(from.node, None, None)];
        self.walk(from, to, lid, |leaves, enters| {
            if let Some(last) = steps.last_mut() {
                last.2 = Some(leaves.port);
            }
            steps.push((enters.node, Some(enters.port), None));
            Some(())
        })?;
        Some(steps)
    }

    /// Follows the tables from a port to a LID, which belongs to another port, link by link.
    fn walk(
        &self,
        from: Place,
        to: Place,
        lid: u16,
        mut step: impl FnMut(Place, Place) -> Option<()>,
    ) -> Option<()> {
        /// More links than any path has.
        const MOST: usize = 64;
        let found = &self.found;
        let mut at = from;
        for _ in 0..MOST {
            let node = found.node(at.node);
            if if node.kind.is_switch() { at.node == to.node } else { at == to } {
                return Some(());
            }
            let leaves = if node.kind.is_switch() {
                let port = self.plan.routing.lfts.port(self.row(at.node)?, lid);
                Some(at.node.at(port)).filter(|_| port > 0 && port <= node.info.num_ports)?
            } else {
                // What starts at an adapter leaves by the port that it starts at, and nothing passes
                // through one.
                Some(at).filter(|&at| at == from)?
            };
            at = found.port(leaves).peer?;
            step(leaves, at)?;
        }
        None
    }

    /// Goes over the link of a port and takes note of what it can carry.
    fn pass(&self, leaves: Place, path: &mut PathProperties, slowest: &mut u32) -> Option<()> {
        let info = self.found.port(leaves).info.as_deref()?;
        let (rate, speed) = rate_of(info);
        if speed < *slowest {
            (path.rate, *slowest) = (rate, speed);
        }
        path.mtu = MtuCode(path.mtu.0.min(info.neighbor_mtu.0));
        path.hops += 1;
        Some(())
    }
}

/// Returns the rate of a port's link, and in Mbit/s.
fn rate_of(info: &ib_wire::mad::sm::PortInfo) -> (RateCode, u32) {
    let code = info.rate();
    (code, code.megabits_per_second().unwrap_or(2_500))
}
