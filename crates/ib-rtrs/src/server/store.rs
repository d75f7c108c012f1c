//! Memory of the server's user, from which reads are answered without a copy.

use std::sync::Arc;

use ib_hca::{AccessFlags, Hca, Memory, Sge};

use super::Server;
use super::path::Path;

/// The number of memory that answers may come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreId(u32);

impl Server {
    /// Takes memory that reads may be answered from ([`Server::complete_from`]), for as long as there is the server. Clients
    /// cannot write to it, nor read what they were not given.
    pub fn add_store(&mut self, memory: Arc<Memory>) -> StoreId {
        self.stores.push(memory);
        StoreId(self.stores.len() as u32 - 1)
    }
}

/// Bytes of such memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) store: StoreId,
    pub(super) offset: usize,
}

impl Piece {
    /// Returns the memory that it is in.
    ///
    /// # Panics
    /// Panics when there is none, or it ends before the piece.
    pub(super) fn memory(self, stores: &[Arc<Memory>], length: u32) -> &Arc<Memory> {
        let memory = &stores[self.store.0 as usize];
        let end = self.offset.checked_add(length as usize);
        assert!(end.is_some_and(|end| end <= memory.len()), "a piece lies in its store");
        memory
    }

    /// Returns it as the adapter of a path knows it, which learns of the memory with the first piece; `None` when that takes no
    /// more memory.
    pub(super) fn of_path(
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
                let lkey = hca.key(mr).expect("it was just made");
                path.stores[index] = Some((mr, lkey));
                lkey
            }
        };
        Some(Sge { addr: memory.address() + self.offset as u64, length, lkey })
    }
}
