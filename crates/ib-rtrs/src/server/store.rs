//! Memory of the server's user from which READ data is sent without a copy.

use std::sync::Arc;

use ib_hca::{AccessFlags, Hca, Memory, Sge};

use super::Server;
use super::path::Path;

/// Identifies a store: memory from which the server may send READ data without a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreId(u32);

impl Server {
    /// Adds a store: memory from which [`Server::complete_from`] may send READ data. Clients have no access to this
    /// memory. A store cannot be removed.
    pub fn add_store(&mut self, memory: Arc<Memory>) -> StoreId {
        self.stores.push(memory);
        StoreId(self.stores.len() as u32 - 1)
    }
}

/// A range of a store. The length of the range is that of the response.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoreRange {
    pub(super) store: StoreId,
    pub(super) offset: usize,
}

impl StoreRange {
    /// Returns the memory of the store, after checking the range.
    ///
    /// # Panics
    /// Panics if there is no such store, or if the range exceeds it.
    pub(super) fn memory(self, stores: &[Arc<Memory>], length: u32) -> &Arc<Memory> {
        let memory = &stores[self.store.0 as usize];
        let end = self.offset.checked_add(length as usize);
        assert!(end.is_some_and(|end| end <= memory.len()), "the range must be within its store");
        memory
    }

    /// Returns the SGE of the range at the HCA of a path. At the first use, registers the store at the HCA; returns
    /// `None` if that fails.
    pub(super) fn sge(
        self,
        hca: &mut Hca,
        path: &mut Path,
        memory: &Arc<Memory>,
        length: u32,
    ) -> Option<Sge> {
        let index = self.store.0 as usize;
        if path.stores.len() <= index {
            path.stores.resize(index + 1, None);
        }
        let lkey = match path.stores[index] {
            Some((_, lkey)) => lkey,
            None => {
                let whole = (memory, 0, memory.len());
                let access = AccessFlags::default();
                let mr = hca.reg_mr(path.pd, whole, memory.address(), access).ok()?;
                let lkey = hca.key(mr).expect("the region was just registered");
                path.stores[index] = Some((mr, lkey));
                lkey
            }
        };
        Some(Sge { addr: memory.address() + self.offset as u64, length, lkey })
    }
}
