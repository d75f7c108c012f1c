//! LID assignment as in OpenSM's first sweep.
//!
//! The port of the subnet manager (SM) gets its LID first, then all other ports in the order of their byte-swapped
//! GUIDs. A port gets the first of these LIDs that is possible:
//!
//! 1. the port's LID in the guid2lid file,
//! 2. the LID that the port already has, if it is aligned to the LMC and free,
//! 3. the lowest LID of the first free range that is large enough.
//!
//! Port 0 of a switch has one LID whatever the LMC, unless it is an enhanced port 0 (IBTA volume 1, chapter 14.2.5.6).

use std::collections::{BTreeMap, BTreeSet};

use ib_topology::{Fabric, PortId};
use ib_types::{Guid, Lid, Lmc};

/// Options of LID assignment.
#[derive(Clone, Debug, Default)]
pub struct LidOptions {
    /// The LMC of all ports of channel adapters and routers.
    pub lmc: Lmc,
    /// True if enhanced switch ports 0 also get the LMC `lmc`. If false, they get one LID each.
    pub lmc_esp0: bool,
    /// True if the LIDs that ports already have, and those of the guid2lid file, are ignored.
    pub reassign: bool,
    /// The LID ranges of a guid2lid file: the first and the last LID of each port, by port GUID.
    pub guid2lid: BTreeMap<Guid, (u16, u16)>,
    /// The highest LID that all switches can forward, i.e. the smallest `LinearFDBCap` minus 1 (IBTA volume 1, chapter
    /// 14.2.5.4). If `None`, the highest unicast LID.
    pub max_lid: Option<u16>,
    /// True if host ports may be left without a LID when LIDs run out. If false, running out of LIDs is an error.
    pub allow_shortage: bool,
}

impl LidOptions {
    /// Returns the highest LID that may be assigned.
    fn limit(&self) -> u16 {
        self.max_lid.map_or(Lid::MAX_UNICAST, |limit| limit.min(Lid::MAX_UNICAST))
    }
}

/// Error of LID assignment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LidError {
    /// There are not enough unicast LIDs.
    #[error(
        "no LID is left for port GUID {guid}: {ports} end ports with LMC {lmc} do not fit into \
         LIDs 1 to {limit}; lower the LMC or raise the limit"
    )]
    Exhausted {
        /// The first port that got no LID.
        guid: Guid,
        /// The number of end ports of the subnet.
        ports: usize,
        /// The configured LMC.
        lmc: Lmc,
        /// The highest LID that may be assigned.
        limit: u16,
    },
}

/// The LIDs that were assigned to the end ports of a subnet.
#[derive(Clone, Debug)]
pub(crate) struct Assigned {
    /// Base LID and number of LIDs of each port, in the order of the ports.
    pub(crate) ranges: Vec<(Lid, u16)>,
    /// The index of the port that has the LID, for each LID from 0 on; `u32::MAX` if no port has the LID.
    pub(crate) owner: Vec<u32>,
    /// LID ranges of the guid2lid file whose ports are not in the subnet.
    pub(crate) absent: BTreeMap<Guid, (u16, u16)>,
    /// Warnings about LIDs that were not assigned: LIDs of the guid2lid file, or LIDs that ports already had.
    pub(crate) notes: Vec<String>,
}

const NO_OWNER: u32 = u32::MAX;
const TABLE: usize = Lid::MAX_UNICAST as usize + 1;

/// Assigns LIDs to all ports. If LIDs run out and the options allow it, the port of the SM and the switches get LIDs
/// first. Host ports without a LID are then removed from `ports` and returned.
///
/// # Errors
/// Fails if LIDs run out and the options do not allow it, or if there are not enough LIDs for all switches.
pub(crate) fn assign_to_most(
    fabric: &Fabric,
    ports: &mut Vec<PortId>,
    sm_port: PortId,
    options: &LidOptions,
) -> Result<(Assigned, Vec<PortId>), LidError> {
    let assign = |ports: &[PortId], options: &LidOptions, switches_first: bool| {
        let sm_index = ports.iter().position(|&id| id == sm_port);
        let sm_index = sm_index.expect("`ports` contains the port of the SM");
        assign(fabric, ports, sm_index, switches_first, options)
    };
    let shortage = match assign(ports, options, false) {
        Ok((assigned, None)) => return Ok((assigned, Vec::new())),
        Ok((_, Some((_, shortage)))) => shortage,
        Err(error) => error,
    };
    if !options.allow_shortage {
        return Err(shortage);
    }
    // If hosts hold all LIDs and a new switch has none, the first attempt fails. The second one reassigns all LIDs.
    for reassign in [options.reassign, true] {
        let options = LidOptions { reassign, ..options.clone() };
        let mut left_out = Vec::new();
        loop {
            match assign(ports, &options, true) {
                Ok((assigned, None)) => return Ok((assigned, left_out)),
                Ok((_, Some((without, _)))) => {
                    let is_without = |id: &PortId| without.contains(id);
                    left_out.extend(ports.iter().copied().filter(is_without));
                    ports.retain(|id| !is_without(id));
                }
                Err(_) => break,
            }
        }
    }
    Err(shortage)
}

/// The host ports without a LID, and the error of the first such port.
type Shortage = (BTreeSet<PortId>, LidError);

/// Assigns LIDs to the ports as OpenSM does, first to the port of the SM. If `switches_first` is true, the switches
/// come next, then the hosts. The result does not contain host ports without a LID.
///
/// Fails if a switch or the port of the SM gets no LID.
fn assign(
    fabric: &Fabric,
    ports: &[PortId],
    sm_index: usize,
    switches_first: bool,
    options: &LidOptions,
) -> Result<(Assigned, Option<Shortage>), LidError> {
    let mut manager = Manager {
        fabric,
        ports,
        options,
        limit: options.limit(),
        persistent: BTreeMap::new(),
        used: vec![false; TABLE],
        discovered: vec![NO_OWNER; TABLE],
        free: Vec::new(),
        owner: vec![NO_OWNER; TABLE],
        notes: Vec::new(),
    };
    if !options.reassign {
        manager.load_persistent();
    }
    manager.find_free_ranges();
    let mut ranges = vec![None; ports.len()];
    let is_switch = |index: &usize| fabric.node(fabric.port(ports[*index]).node).kind.is_switch();
    let mut order: Vec<usize> = (0..ports.len()).filter(|&index| index != sm_index).collect();
    if switches_first {
        order.sort_by_key(|index| !is_switch(index));
    }
    let mut shortage: Option<Shortage> = None;
    for index in std::iter::once(sm_index).chain(order) {
        match manager.assign_port(index) {
            Ok(range) => ranges[index] = Some(range),
            Err(error) if index == sm_index || is_switch(&index) => return Err(error),
            Err(error) => {
                shortage.get_or_insert_with(|| (BTreeSet::new(), error)).0.insert(ports[index]);
            }
        }
    }
    // As in OpenSM, the table of LIDs also covers LIDs that ports had when they were discovered.
    let last = (1..=usize::from(manager.limit))
        .rev()
        .find(|&lid| manager.owner[lid] != NO_OWNER || manager.discovered[lid] != NO_OWNER)
        .unwrap_or(0);
    manager.owner.truncate(last + 1);
    for &port in ports {
        manager.persistent.remove(&fabric.port(port).guid);
    }
    let assigned = Assigned {
        ranges: ranges.into_iter().flatten().collect(),
        owner: manager.owner,
        absent: manager.persistent,
        notes: manager.notes,
    };
    Ok((assigned, shortage))
}

struct Manager<'a> {
    fabric: &'a Fabric,
    ports: &'a [PortId],
    options: &'a LidOptions,
    /// The highest LID that may be assigned.
    limit: u16,
    persistent: BTreeMap<Guid, (u16, u16)>,
    used: Vec<bool>,
    discovered: Vec<u32>,
    free: Vec<(u16, u16)>,
    owner: Vec<u32>,
    notes: Vec<String>,
}

impl Manager<'_> {
    fn lid_count(&self, index: usize) -> u16 {
        let port = self.fabric.port(self.ports[index]);
        let node = self.fabric.node(port.node);
        let single = node.kind.is_switch() && !(self.options.lmc_esp0 && node.enhanced_port0);
        if single { 1 } else { self.options.lmc.lids() }
    }

    fn aligned(&self, lid: u16) -> bool {
        lid.is_multiple_of(self.options.lmc.lids())
    }

    /// Loads the guid2lid entries that are valid for the configured LMC.
    fn load_persistent(&mut self) {
        for (&guid, &(first, last)) in &self.options.guid2lid {
            let fault = if first == 0 || first > last || last > self.limit {
                "is not a range of unicast LIDs"
            } else if first != last && !self.aligned(first) {
                "is not aligned to the LMC"
            } else if (first..=last).any(|lid| self.used[usize::from(lid)]) {
                "overlaps another entry"
            } else {
                let kept = last.min(first.saturating_add(self.options.lmc.lids() - 1));
                self.used[usize::from(first)..=usize::from(kept)].fill(true);
                self.persistent.insert(guid, (first, last));
                continue;
            };
            self.notes.push(format!(
                "guid2lid: the range {first:#06x} to {last:#06x} of {guid} {fault}; it is ignored"
            ));
        }
    }

    /// Marks the LIDs that ports already had when they were discovered, and lists the free ranges of LIDs.
    fn find_free_ranges(&mut self) {
        if self.options.reassign {
            self.free.push((1, self.limit));
            return;
        }
        let lmc_lids = self.options.lmc.lids();
        for (index, &id) in self.ports.iter().enumerate() {
            let port = self.fabric.port(id);
            if let Some(lid) = port.lid {
                let count = port.lmc.lids();
                for offset in 0..count.min(Lid::MAX_UNICAST + 1 - lid.get()) {
                    let owner = if offset < lmc_lids { index as u32 } else { NO_OWNER };
                    self.discovered[lid.index() + usize::from(offset)] = owner;
                }
            }
            self.drop_misfit(index);
        }
        let mut open = None;
        let mut lid = 1;
        while lid <= self.limit {
            let (free, next) = self.is_free(lid);
            if free {
                open.get_or_insert(lid);
            } else if let Some(first) = open.take() {
                self.free.push((first, lid - 1));
            }
            lid = next + 1;
        }
        if let Some(first) = open {
            self.free.push((first, self.limit));
        }
    }

    /// Removes the guid2lid entry of a port if its range of LIDs is too narrow or misaligned for the port.
    fn drop_misfit(&mut self, index: usize) {
        let guid = self.fabric.port(self.ports[index]).guid;
        let lid_count = self.lid_count(index);
        if let Some(&(first, last)) = self.persistent.get(&guid)
            && lid_count != 1
            && (!self.aligned(first) || last - first + 1 < lid_count)
        {
            self.persistent.remove(&guid);
            self.used[usize::from(first)..=usize::from(last)].fill(false);
            self.notes.push(format!(
                "guid2lid: the range {first:#06x} to {last:#06x} of {guid} is too narrow for LMC \
                 {}; it is ignored",
                self.options.lmc
            ));
        }
    }

    /// Returns true if the LID `lid` is free. The second value is the last LID of a range that starts at `lid`. The
    /// result applies to all LIDs of this range.
    fn is_free(&self, lid: u16) -> (bool, u16) {
        if self.used[usize::from(lid)] {
            return (false, lid);
        }
        let index = self.discovered[usize::from(lid)];
        if index == NO_OWNER {
            return (true, lid);
        }
        let port = self.fabric.port(self.ports[index as usize]);
        let lid_count = self.lid_count(index as usize);
        let base = port.lid.expect("`discovered` contains only ports with a LID").get();
        let last = match lid_count {
            1 => base.saturating_add(port.lmc.lids() - 1),
            lid_count => base.saturating_add(lid_count - 1),
        }
        .min(Lid::MAX_UNICAST);
        let taken = self.persistent.contains_key(&port.guid)
            || (lid_count != 1 && !self.aligned(base))
            || (base + 1..=last).any(|lid| self.used[usize::from(lid)]);
        if taken { (true, lid) } else { (false, last.max(lid)) }
    }

    fn assign_port(&mut self, index: usize) -> Result<(Lid, u16), LidError> {
        let port = *self.fabric.port(self.ports[index]);
        let lid_count = self.lid_count(index);
        let first = match self.kept_lid(index) {
            Some(first) => first,
            None => self.take_free(lid_count).ok_or(LidError::Exhausted {
                guid: port.guid,
                ports: self.ports.len(),
                lmc: self.options.lmc,
                limit: self.limit,
            })?,
        };
        let range = usize::from(first)..usize::from(first) + usize::from(lid_count);
        self.used[range.clone()].fill(true);
        self.owner[range].fill(index as u32);
        let base = Lid::unicast(u32::from(first)).expect("LIDs up to the limit are unicast");
        if let Some(found) = port.lid
            && !self.options.reassign
            && found != base
        {
            self.notes.push(format!(
                "port {} was found with LID {found} and gets {base} instead",
                port.guid
            ));
        }
        Ok((base, lid_count))
    }

    /// Returns the port's LID in the guid2lid file or, if none, the LID that the port already has and can keep.
    fn kept_lid(&mut self, index: usize) -> Option<u16> {
        if self.options.reassign {
            return None;
        }
        let port = *self.fabric.port(self.ports[index]);
        let lid_count = self.lid_count(index);
        if let Some(&(first, _)) = self.persistent.get(&port.guid) {
            self.forget_found(index);
            return (first.checked_add(lid_count - 1)? <= self.limit).then_some(first);
        }
        if let Some(found) = port.lid {
            let first = found.get();
            let fits = first.checked_add(lid_count - 1).is_some_and(|last| last <= self.limit)
                && first.is_multiple_of(lid_count);
            if fits && (first..first + lid_count).all(|lid| !self.used[usize::from(lid)]) {
                return Some(first);
            }
        }
        self.forget_found(index);
        None
    }

    fn forget_found(&mut self, index: usize) {
        // Removes the reservation of the LIDs that the port had when it was discovered.
        if let Some(lid) = self.fabric.port(self.ports[index]).lid {
            let range =
                lid.index()..(lid.index() + usize::from(self.options.lmc.lids())).min(TABLE);
            for owner in &mut self.discovered[range] {
                if *owner == index as u32 {
                    *owner = NO_OWNER;
                }
            }
        }
    }

    /// Takes LIDs from the first free range that is large enough. If several LIDs are needed, their start is aligned to
    /// the LMC. As in OpenSM, no port gets the LIDs that are skipped for the alignment.
    fn take_free(&mut self, lid_count: u16) -> Option<u16> {
        let lmc_lids = self.options.lmc.lids();
        for slot in 0..self.free.len() {
            let (first, last) = self.free[slot];
            let start = if lid_count > 1 { first.next_multiple_of(lmc_lids) } else { first };
            let end = start + lid_count - 1;
            if end > last {
                continue;
            }
            if end == last {
                self.free.remove(slot);
            } else {
                self.free[slot].0 = end + 1;
            }
            return Some(start);
        }
        None
    }
}

#[cfg(test)]
mod tests;
