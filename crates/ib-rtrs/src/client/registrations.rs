//! Memory of the session, and its registrations at HCAs. All paths of one HCA share a protection domain and keys.

use std::sync::Arc;

use ib_hca::{AccessFlags, Hca, Memory, MrId, PdId, Sge};

use super::requests::BufferId;
use super::session::Slots;
use crate::connection::SetupError;
use crate::connection::{AdapterId, Adapters};

/// A memory region at one HCA.
#[derive(Clone, Copy, Debug)]
pub(super) struct Region {
    mr: MrId,
    key: u32,
}

/// The protection domain and the memory regions at one HCA. All paths of the HCA share them.
#[derive(Debug)]
pub(super) struct Registration {
    pub(super) adapter: AdapterId,
    pub(super) pd: PdId,
    headers: Option<Region>,
    bounce: Option<Region>,
    /// For each buffer, its memory region; `None` if the buffer is not registered at this HCA.
    buffers: Vec<Option<Region>>,
    /// For each chunk, the region through which the server writes the data of a READ.
    pub(super) reads: Vec<MrId>,
}

impl Registration {
    /// Returns the SGE of a part of a buffer; an empty SGE if the buffer is not registered at this HCA.
    pub(super) fn of_buffer(
        &self,
        id: BufferId,
        memory: &Memory,
        offset: usize,
        length: u32,
    ) -> Sge {
        sge(self.buffers.get(id.0 as usize).copied().flatten(), memory, offset, length)
    }

    pub(super) fn of_headers(&self, memory: &Memory, offset: usize, length: u32) -> Sge {
        sge(self.headers, memory, offset, length)
    }

    pub(super) fn of_bounce(&self, memory: &Memory, offset: usize, length: u32) -> Sge {
        sge(self.bounce, memory, offset, length)
    }
}

fn sge(region: Option<Region>, memory: &Memory, offset: usize, length: u32) -> Sge {
    region
        .map(|it| Sge { addr: memory.address() + offset as u64, length, lkey: it.key })
        .unwrap_or_default()
}

/// The session's memory, and its registrations at HCAs. [`Registrations::provide`] registers all memory at one HCA, and
/// [`Registrations::register`] registers a buffer at all HCAs.
#[derive(Debug, Default)]
pub(super) struct Registrations {
    adapters: Vec<Registration>,
    buffers: Vec<Option<Arc<Memory>>>,
}

impl Registrations {
    /// Returns the index of an HCA. At the first use, allocates a protection domain of the HCA.
    pub(super) fn index_of(
        &mut self,
        cx: &mut impl Adapters,
        adapter: AdapterId,
    ) -> Result<usize, SetupError> {
        if let Some(index) = self.adapters.iter().position(|it| it.adapter == adapter) {
            return Ok(index);
        }
        let pd = cx.get(adapter).ok_or(SetupError::NoAdapter)?.hca.alloc_pd()?;
        let (headers, bounce) = (None, None);
        let (buffers, reads) = (Vec::new(), Vec::new());
        self.adapters.push(Registration { adapter, pd, headers, bounce, buffers, reads });
        Ok(self.adapters.len() - 1)
    }

    /// Returns the registration at the HCA with the given index.
    pub(super) fn get(&self, index: usize) -> &Registration {
        &self.adapters[index]
    }

    /// Returns the memory of a buffer.
    pub(super) fn buffer(&self, id: BufferId) -> Option<&Arc<Memory>> {
        self.buffers.get(id.0 as usize)?.as_ref()
    }

    /// Completes the registration at an HCA: registers the headers, the bounce buffers and the user's buffers, and
    /// creates a region for the READs of each chunk.
    pub(super) fn provide(
        &mut self,
        hca: &mut Hca,
        index: usize,
        slots: &Slots,
    ) -> Result<(), SetupError> {
        let Self { adapters, buffers } = self;
        let at = &mut adapters[index];
        at.buffers.resize(buffers.len(), None);
        let own = [(&slots.headers, &mut at.headers), (&slots.bounce, &mut at.bounce)];
        for (memory, region) in own.into_iter().chain(buffers.iter().zip(&mut at.buffers)) {
            if let (Some(memory), None) = (memory, &region) {
                *region = Some(register(hca, at.pd, memory)?);
            }
        }
        while at.reads.len() < slots.count() {
            at.reads.push(hca.alloc_mr(at.pd)?);
        }
        Ok(())
    }

    /// Registers a buffer at all HCAs.
    pub(super) fn register(
        &mut self,
        cx: &mut impl Adapters,
        memory: Arc<Memory>,
        slots: &Slots,
    ) -> Result<BufferId, SetupError> {
        let free = self.buffers.iter().position(Option::is_none);
        let index = free.unwrap_or(self.buffers.len());
        if index == self.buffers.len() {
            self.buffers.push(None);
        }
        self.buffers[index] = Some(memory);
        for at in 0..self.adapters.len() {
            if let Some(adapter) = cx.get(self.adapters[at].adapter) {
                self.provide(adapter.hca, at, slots)?;
            }
        }
        Ok(BufferId(index as u32))
    }

    /// Deregisters all memory and deallocates the protection domains.
    pub(super) fn release(&mut self, cx: &mut impl Adapters) {
        for at in self.adapters.drain(..) {
            let Some(adapter) = cx.get(at.adapter) else { continue };
            let regions = at.buffers.into_iter().chain([at.headers, at.bounce]);
            let regions = regions.flatten().map(|it| it.mr);
            for mr in regions.chain(at.reads) {
                // The region may have been removed together with its HCA. Deregistering it then fails, which does no
                // harm.
                adapter.hca.dereg_mr(mr).ok();
            }
            adapter.hca.dealloc_pd(at.pd).ok();
        }
    }
}

fn register(hca: &mut Hca, pd: PdId, memory: &Arc<Memory>) -> Result<Region, SetupError> {
    let range = (memory, 0, memory.len());
    let mr = hca.reg_mr(pd, range, memory.address(), AccessFlags::LOCAL_WRITE)?;
    let key = hca.key(mr).expect("the region was just registered");
    Ok(Region { mr, key })
}
