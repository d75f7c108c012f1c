//! LID assignment, as OpenSM's first sweep does it.
//!
//! The port of the subnet manager (SM) comes first, then all others in the order of byte-swapped port GUIDs. The
//! LID of a port is, in this order of preference:
//!
//! 1. the LID in the guid2lid file,
//! 2. the LID that the port was found with, if it is aligned to the LMC and free,
//! 3. the first free range.
//!
//! A base switch port 0 has one LID for any LMC (IBTA volume 1, chapter 14.2.5.6).

use std::collections::{BTreeMap, BTreeSet};

use ib_topology::{Fabric, PortId};
use ib_types::{Guid, Lid, Lmc};

/// Options of LID assignment.
#[derive(Clone, Debug, Default)]
pub struct LidOptions {
    /// The LMC of all channel adapter and router ports.
    pub lmc: Lmc,
    /// True if an enhanced switch port 0 gets the LMC as well.
    pub lmc_esp0: bool,
    /// True if the LIDs that ports were found with are ignored.
    pub reassign: bool,
    /// The ranges of a guid2lid file, first and last LID by port GUID.
    pub guid2lid: BTreeMap<Guid, (u16, u16)>,
    /// The highest LID that all switches can forward: the smallest `LinearFDBCap` minus 1 (IBTA volume 1,
    /// chapter 14.2.5.4). `None` for the highest unicast LID.
    pub max_lid: Option<u16>,
    /// True if host ports may be left without a LID if LIDs run out; otherwise that is an error.
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
    /// The unicast LIDs ran out.
    #[error(
        "out of LIDs at port GUID {guid}: the LIDs of {ports} end ports with LMC {lmc}, in ranges \
         that start at multiples of their length, do not fit into the LIDs 1 to {limit}"
    )]
    Exhausted {
        /// The first port without a LID.
        guid: Guid,
        /// The number of end ports of the subnet.
        ports: usize,
        /// The configured LMC.
        lmc: Lmc,
        /// The highest LID that may be assigned.
        limit: u16,
    },
}

/// The LIDs of the end ports of a subnet.
#[derive(Clone, Debug)]
pub(crate) struct Assigned {
    /// Base LID and number of LIDs, in the order of the ports.
    pub(crate) ranges: Vec<(Lid, u16)>,
    /// The port index of each LID from 0 to the highest; `u32::MAX` if no port has the LID.
    pub(crate) owner: Vec<u32>,
    /// Ranges that the guid2lid file reserves for missing ports.
    pub(crate) absent: BTreeMap<Guid, (u16, u16)>,
    /// Warnings: configured LIDs that were overridden.
    pub(crate) notes: Vec<String>,
}

const NO_OWNER: u32 = u32::MAX;
const TABLE: usize = Lid::MAX_UNICAST as usize + 1;

/// Assigns LIDs. If they run out and the options allow it, host ports without a LID are removed
/// from `ports` and returned; the port of the SM and the switches then get LIDs first.
///
/// # Errors
/// Fails if LIDs run out and the options do not allow it, or if there are too few LIDs for all
/// switches.
pub(crate) fn assign_to_most(
    fabric: &Fabric,
    ports: &mut Vec<PortId>,
    sm_port: PortId,
    options: &LidOptions,
) -> Result<(Assigned, Vec<PortId>), LidError> {
    let assign = |ports: &[PortId], options: &LidOptions, switches_first: bool| {
        let sm_index = ports.iter().position(|&id| id == sm_port);
        let sm_index = sm_index.expect("the subnet manager has a port");
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
    // If hosts hold all LIDs while a new switch has no LID, all LIDs are reassigned.
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

/// Host ports without a LID, and the error of the first one.
type Shortage = (BTreeSet<PortId>, LidError);

/// Assigns LIDs to the ports as OpenSM does, the port of the SM first. If `switches_first` is true,
/// the other switches precede all hosts. Host ports without LIDs are missing in the result.
///
/// # Errors
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
    // OpenSM's table also covers the LIDs with which ports were discovered.
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

    /// Reads the guid2lid entries that are valid for this LMC.
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

    /// Marks the LIDs with which ports were discovered, and lists the free ranges.
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

    /// Removes a guid2lid entry that is too narrow or misaligned for its port.
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

    /// Returns true if a LID is free, and the last LID of the same state.
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
        let base = port.lid.expect("found with a LID").get();
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
        let base = Lid::unicast(u32::from(first)).expect("free ranges are unicast");
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

    /// Returns the LID that a port may keep.
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
        // The table keeps its length; only the owner is removed.
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

    /// Takes the first free range that is wide enough. LIDs before an aligned start are skipped, as
    /// in OpenSM.
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
