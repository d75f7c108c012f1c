//! The paths of a session, and the selection of a path for each request.

use std::collections::BTreeMap;

use ib_cm::ConnectionId;
use ib_hca::CqId;

use super::config::Policy;
use super::path::{Path, PathId};
use crate::adapters::AdapterId;

/// All paths of a session. They can be found by number, by connection and by CQ. `connected` has the connected paths in
/// ascending order.
#[derive(Debug)]
pub(super) struct Paths {
    all: Vec<Option<Box<Path>>>,
    connected: Vec<PathId>,
    /// For each processor, the index in `connected` of the path that [`Policy::RoundRobin`] has selected last.
    last_used: Vec<usize>,
    by_connection: BTreeMap<(AdapterId, ConnectionId), PathId>,
    by_cq: BTreeMap<(AdapterId, CqId), PathId>,
}

impl Paths {
    pub(super) fn new(processors: u32) -> Self {
        Self {
            all: Vec::new(),
            connected: Vec::new(),
            last_used: vec![0; processors.max(1) as usize],
            by_connection: BTreeMap::new(),
            by_cq: BTreeMap::new(),
        }
    }

    pub(super) fn get(&self, id: PathId) -> Option<&Path> {
        self.all.get(id.0 as usize)?.as_deref()
    }

    pub(super) fn get_mut(&mut self, id: PathId) -> Option<&mut Path> {
        self.all.get_mut(id.0 as usize)?.as_deref_mut()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Path> {
        self.all.iter().flatten().map(|path| &**path)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Path> {
        self.all.iter_mut().flatten().map(|path| &mut **path)
    }

    /// Returns the number for the next path to be added.
    pub(super) const fn next_id(&self) -> PathId {
        PathId(self.all.len() as u32)
    }

    /// Adds a path. Its number must be [`Paths::next_id`].
    pub(super) fn add(&mut self, path: Path) {
        self.all.push(Some(Box::new(path)));
    }

    /// Removes a path that is not connected. Its number is never used again.
    pub(super) fn remove(&mut self, id: PathId) {
        self.all[id.0 as usize] = None;
    }

    /// Returns the connected paths in the order of their numbers.
    pub(super) fn connected(&self) -> &[PathId] {
        &self.connected
    }

    pub(super) fn set_connected(&mut self, id: PathId) {
        if let Err(at) = self.connected.binary_search(&id) {
            self.connected.insert(at, id);
        }
    }

    pub(super) fn set_disconnected(&mut self, id: PathId) {
        self.connected.retain(|&it| it != id);
    }

    /// Selects a path for a request that the processor `cpu` submits; `None` if no path is connected.
    pub(super) fn choose(&mut self, policy: Policy, cpu: u32) -> Option<PathId> {
        let path = |id: PathId| self.get(id).expect("connected paths exist");
        match (&self.connected[..], policy) {
            ([], _) => None,
            ([only], _) => Some(*only),
            (connected, Policy::RoundRobin) => {
                let count = self.last_used.len();
                let last = &mut self.last_used[cpu as usize % count];
                *last = (*last + 1) % connected.len();
                Some(connected[*last])
            }
            (connected, Policy::MinInflight) => {
                connected.iter().copied().min_by_key(|&id| path(id).inflight)
            }
            (connected, Policy::MinLatency) => {
                let latency = |id: PathId| path(id).liveness.latency().unwrap_or_default();
                connected.iter().copied().min_by_key(|&id| latency(id))
            }
        }
    }

    pub(super) fn of_adapter(&self, adapter: AdapterId) -> Vec<PathId> {
        self.iter().filter(|path| path.spec.adapter == adapter).map(|path| path.id).collect()
    }

    pub(super) fn of_connection(
        &self,
        adapter: AdapterId,
        connection: ConnectionId,
    ) -> Option<PathId> {
        self.by_connection.get(&(adapter, connection)).copied()
    }

    pub(super) fn add_connection(
        &mut self,
        adapter: AdapterId,
        connection: ConnectionId,
        id: PathId,
    ) {
        self.by_connection.insert((adapter, connection), id);
    }

    pub(super) fn remove_connection(&mut self, adapter: AdapterId, connection: ConnectionId) {
        self.by_connection.remove(&(adapter, connection));
    }

    pub(super) fn of_cq(&self, adapter: AdapterId, cq: CqId) -> Option<PathId> {
        self.by_cq.get(&(adapter, cq)).copied()
    }

    pub(super) fn add_cq(&mut self, adapter: AdapterId, cq: CqId, id: PathId) {
        self.by_cq.insert((adapter, cq), id);
    }

    pub(super) fn remove_cq(&mut self, adapter: AdapterId, cq: CqId) {
        self.by_cq.remove(&(adapter, cq));
    }
}

#[cfg(test)]
mod tests;
