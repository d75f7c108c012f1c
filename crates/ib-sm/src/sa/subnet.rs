//! The subnet from which the SA answers queries: discovered nodes, the written plan, and indexes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ib_routing::SwitchId;
use ib_types::{Gid, Guid, PKey, ServiceLevel};
use ib_wire::mad::sa::{LifeTimeCode, RateCode};
use ib_wire::mad::sm::MtuCode;

use crate::config::{PartEnforce, SmConfig};
use crate::discovered_subnet::{DiscoveredSubnet, NodeIndex, PortIndex};
use crate::plan::Plan;

/// Marks a LID that belongs to no end port.
const NO_END_PORT: u32 = u32::MAX;

/// A subnet that is up: discovered nodes, the written plan, and indexes for SA queries.
#[derive(Clone, Debug)]
pub(crate) struct Subnet {
    pub(crate) found: DiscoveredSubnet,
    pub(crate) plan: Arc<Plan>,
    pub(crate) prefix: u64,
    pub(crate) life_time: LifeTimeCode,
    /// For each LID, its end port as node index and port number, packed into one number.
    end_port_by_lid: Vec<u32>,
    by_guid: BTreeMap<Guid, PortIndex>,
    /// End ports, by ascending GUID.
    ends: Vec<PortIndex>,
    /// P_Keys of each end port. Ports with equal tables share one list.
    p_keys: BTreeMap<Guid, Arc<[PKey]>>,
    /// True if every port may communicate with every other: all ports have the same P_Keys, one of them with full
    /// membership.
    is_open: bool,
    /// True if switches enforce the partitions at the ports of hosts.
    checks: bool,
    /// Service level of each partition, by P_Key without membership bit. Empty if quality of service is disabled.
    levels: BTreeMap<u16, ServiceLevel>,
    /// Row of each switch in the tables of the plan, by node index.
    rows: Vec<Option<SwitchId>>,
}

/// MTU, rate and packet lifetime at a port.
#[derive(Clone, Copy, Debug)]
pub(super) struct PortLimits {
    pub(super) mtu: MtuCode,
    pub(super) rate: RateCode,
    pub(super) life_time: LifeTimeCode,
}

/// The ports that a request selects.
#[derive(Clone, Debug)]
pub(crate) enum PortSet {
    /// All end ports, by ascending GUID.
    All,
    /// The listed end ports.
    These(Vec<PortIndex>),
}

impl PortSet {
    pub(crate) fn len(&self, subnet: &Subnet) -> usize {
        match self {
            Self::All => subnet.ends.len(),
            Self::These(end_port_by_lid) => end_port_by_lid.len(),
        }
    }

    /// Returns the selected end port with the given index.
    pub(crate) fn at(&self, subnet: &Subnet, number: usize) -> PortIndex {
        match self {
            Self::All => subnet.ends[number],
            Self::These(end_port_by_lid) => end_port_by_lid[number],
        }
    }
}

/// A node on a path, with its ingress port and egress port.
pub(crate) type Step = (NodeIndex, Option<u8>, Option<u8>);

/// Properties of a path over its whole length, from one port to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathProperties {
    pub(crate) mtu: MtuCode,
    pub(crate) rate: RateCode,
    pub(crate) level: ServiceLevel,
    pub(crate) hops: u8,
}

impl Subnet {
    pub(crate) fn new(found: DiscoveredSubnet, plan: Arc<Plan>, config: &SmConfig) -> Self {
        let mut known_sets: BTreeSet<Arc<[PKey]>> = BTreeSet::new();
        let mut p_keys = BTreeMap::new();
        let mut end_port_by_lid = vec![NO_END_PORT; usize::from(plan.max_lid) + 1];
        let mut by_guid = BTreeMap::new();
        for port_index in found.end_ports() {
            let guid = found.port(port_index).guid;
            let Some(&(first, count)) = plan.end_ports.get(&guid) else { continue };
            by_guid.insert(guid, port_index);
            let kind = found.node(port_index.node).kind;
            let own = found.own.is_some_and(|own| {
                own.node == port_index.node && (own == port_index || kind.is_switch())
            });
            let keys: Arc<[PKey]> = config.partitions.keys(guid, kind, own).into();
            let keys = match known_sets.get(&keys) {
                Some(known) => Arc::clone(known),
                None => {
                    known_sets.insert(Arc::clone(&keys));
                    keys
                }
            };
            p_keys.insert(guid, keys);
            let packed = port_index.node.0 << 8 | u32::from(port_index.port);
            for lid in first.get()..first.get() + count {
                if let Some(entry) = end_port_by_lid.get_mut(usize::from(lid)) {
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
            end_port_by_lid,
            by_guid,
            p_keys,
            is_open: known_sets.len() == 1
                && known_sets.first().is_some_and(|keys| keys.iter().any(|it| it.is_full_member())),
            checks: config.part_enforce != PartEnforce::Off,
            levels,
            rows,
        }
    }

    /// Returns all end ports, by ascending GUID.
    pub(crate) fn end_ports(&self) -> impl Iterator<Item = PortIndex> {
        self.ends.iter().copied()
    }

    /// Returns the end port that has the given LID.
    pub(crate) fn by_lid(&self, lid: u16) -> Option<PortIndex> {
        let packed =
            *self.end_port_by_lid.get(usize::from(lid)).filter(|&&packed| packed != NO_END_PORT)?;
        Some(NodeIndex(packed >> 8).at(packed as u8))
    }

    /// Returns the end port that has the given GUID.
    pub(crate) fn by_guid(&self, guid: Guid) -> Option<PortIndex> {
        self.by_guid.get(&guid).copied()
    }

    /// Returns the base LID of an end port, and the number of its LIDs.
    pub(crate) fn lids(&self, end_port: PortIndex) -> (u16, u16) {
        let guid = self.found.port(end_port).guid;
        let &(first, count) =
            self.plan.end_ports.get(&guid).expect("every end port of the plan has LIDs");
        (first.get(), count)
    }

    /// Returns the base LID of a port. A switch port has the base LID of port 0.
    pub(crate) fn base_lid(&self, port_index: PortIndex) -> Option<u16> {
        let node = self.found.node(port_index.node);
        let end_port = if node.kind.is_switch() { port_index.node.at(0) } else { port_index };
        let guid = self.found.port(end_port).guid;
        self.plan.end_ports.get(&guid).map(|&(first, _)| first.get())
    }

    /// Returns the GID of a port.
    pub(crate) fn gid(&self, port_index: PortIndex) -> Gid {
        Gid::new(self.prefix, self.found.port(port_index).guid)
    }

    /// Returns MTU, rate and lifetime of a port's link.
    pub(super) fn limits(&self, port_index: PortIndex) -> PortLimits {
        let life_time = self.life_time;
        match self.found.port(port_index).info.as_deref() {
            Some(info) if port_index.port > 0 => {
                PortLimits { mtu: info.neighbor_mtu, rate: rate_of(info).0, life_time }
            }
            // No link limits the rate at port 0 of a switch, so its limit is the highest rate.
            Some(info) => PortLimits { mtu: info.mtu_cap, rate: RateCode::GBPS_1200, life_time },
            None => PortLimits { mtu: MtuCode::MTU_256, rate: RateCode::GBPS_2_5, life_time },
        }
    }

    /// Returns the row of a switch in the tables of the plan.
    pub(crate) fn row(&self, node: NodeIndex) -> Option<SwitchId> {
        self.rows[node.0 as usize]
    }

    /// Returns the P_Keys of an end port.
    pub(crate) fn p_keys(&self, end_port: PortIndex) -> &[PKey] {
        let guid = self.found.port(end_port).guid;
        self.p_keys.get(&guid).map_or(&[], |keys| keys)
    }

    /// Returns the P_Keys with which packets may pass a port: those of the port itself if it is an end port, and those
    /// of the linked host if it is a switch port that enforces partitions. `None` if packets with all P_Keys may pass.
    fn passing(&self, port_index: PortIndex) -> Option<&[PKey]> {
        let is_switch = |port_index: PortIndex| self.found.node(port_index.node).kind.is_switch();
        if port_index.port == 0 || !is_switch(port_index) {
            return Some(self.p_keys(port_index));
        }
        let peer = self.found.port(port_index).peer.filter(|&peer| self.checks && !is_switch(peer));
        peer.map(|peer| self.p_keys(peer))
    }

    /// Returns true if two ports are visible to each other, as in OpenSM: they are the same port, or they share a
    /// partition and at least one of them is a full member.
    pub(crate) fn share(&self, one: PortIndex, other: PortIndex) -> bool {
        if self.is_open {
            return true;
        }
        let (Some(keys), Some(others)) = (self.passing(one), self.passing(other)) else {
            return true;
        };
        one == other || keys.iter().any(|key| others.iter().any(|other| key.matches(*other)))
    }

    /// Returns the service level of the paths in a partition.
    pub(crate) fn level_of(&self, key: PKey) -> ServiceLevel {
        self.levels.get(&key.partition()).copied().unwrap_or_default()
    }

    /// Returns the properties of the path from a port to a LID of another port. `None` if the LFTs do not lead to that
    /// port.
    pub(crate) fn path(&self, from: PortIndex, to: PortIndex, lid: u16) -> Option<PathProperties> {
        let own = self.found.port(from).info.as_deref()?;
        let level = ServiceLevel::default();
        let mut path = PathProperties { mtu: own.mtu_cap, rate: rate_of(own).0, level, hops: 0 };
        let is_switch = |port_index: PortIndex| self.found.node(port_index.node).kind.is_switch();
        // If a path starts at port 0 of a switch, the rate of port 0 limits the path.
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

    /// Returns the nodes on the path from a port to a LID, each with ingress and egress port. `None` if the LFTs do not
    /// lead to that LID.
    pub(crate) fn steps(&self, from: PortIndex, to: PortIndex, lid: u16) -> Option<Vec<Step>> {
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

    /// Follows the LFTs from a port to a LID of another port. For each link, calls `step` with both ends.
    fn walk(
        &self,
        from: PortIndex,
        to: PortIndex,
        lid: u16,
        mut step: impl FnMut(PortIndex, PortIndex) -> Option<()>,
    ) -> Option<()> {
        /// Maximum number of links of a path.
        const MAX: usize = 64;
        let found = &self.found;
        let mut at = from;
        for _ in 0..MAX {
            let node = found.node(at.node);
            if if node.kind.is_switch() { at.node == to.node } else { at == to } {
                return Some(());
            }
            let leaves = if node.kind.is_switch() {
                let port = self.plan.routing.lfts.port(self.row(at.node)?, lid);
                Some(at.node.at(port)).filter(|_| port > 0 && port <= node.info.num_ports)?
            } else {
                // A CA sends packets only from the port where the path starts, and forwards none.
                Some(at).filter(|&at| at == from)?
            };
            at = found.port(leaves).peer?;
            step(leaves, at)?;
        }
        None
    }

    /// Limits the properties of a path by those of the link at a port.
    fn pass(&self, leaves: PortIndex, path: &mut PathProperties, slowest: &mut u32) -> Option<()> {
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

/// Returns the rate of a port's link as a code and in Mbit/s.
fn rate_of(info: &ib_wire::mad::sm::PortInfo) -> (RateCode, u32) {
    let code = info.rate();
    (code, code.megabits_per_second().unwrap_or(2_500))
}
