//! What the paths of one adapter share: a protection domain, and keys to the memory of the session.

use std::sync::Arc;

use ib_hca::{AccessFlags, Hca, Memory, MrId, PdId, Sge};

use super::{BufferId, Client};
use crate::adapters::{AdapterId, Adapters};
use crate::connection::SetupError;

/// Memory that is registered at an adapter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Registered {
    mr: MrId,
    key: u32,
}

/// What the paths of an adapter share.
#[derive(Debug)]
pub(super) struct Local {
    pub(super) adapter: AdapterId,
    pub(super) pd: PdId,
    headers: Option<Registered>,
    bounce: Option<Registered>,
    /// By buffer.
    buffers: Vec<Option<Registered>>,
    /// By chunk: what is read is placed through these.
    pub(super) reads: Vec<MrId>,
}

impl Local {
    /// Returns a piece of a buffer; one of no length when it is not registered here.
    pub(super) fn of_buffer(
        &self,
        id: BufferId,
        memory: &Memory,
        offset: usize,
        length: u32,
    ) -> Sge {
        piece(self.buffers.get(id.0 as usize).copied().flatten(), memory, offset, length)
    }

    pub(super) fn of_headers(&self, memory: &Memory, offset: usize, length: u32) -> Sge {
        piece(self.headers, memory, offset, length)
    }

    pub(super) fn of_bounce(&self, memory: &Memory, offset: usize, length: u32) -> Sge {
        piece(self.bounce, memory, offset, length)
    }
}

fn piece(of: Option<Registered>, memory: &Memory, offset: usize, length: u32) -> Sge {
    let registered =
        |it: Registered| Sge { addr: memory.address() + offset as u64, length, lkey: it.key };
    of.map(registered).unwrap_or_default()
}

impl Client {
    /// Returns what the paths of an adapter share, after making it for the first.
    pub(super) fn local_of(
        &mut self,
        cx: &mut impl Adapters,
        adapter: AdapterId,
    ) -> Result<usize, SetupError> {
        if let Some(index) = self.locals.iter().position(|local| local.adapter == adapter) {
            return Ok(index);
        }
        let pd = cx.get(adapter).ok_or(SetupError::NoAdapter)?.hca.alloc_pd()?;
        self.locals.push(Local {
            adapter,
            pd,
            headers: None,
            bounce: None,
            buffers: Vec::new(),
            reads: Vec::new(),
        });
        Ok(self.locals.len() - 1)
    }

    /// Registers at an adapter what is not yet.
    pub(super) fn provide(&mut self, hca: &mut Hca, local: usize) -> Result<(), SetupError> {
        let Self { locals, slots, buffers, limits, .. } = self;
        let local = &mut locals[local];
        for (memory, registered) in
            [(&slots.headers, &mut local.headers), (&slots.bounce, &mut local.bounce)]
        {
            if let (Some(memory), None) = (memory, &registered) {
                *registered = Some(register(hca, local.pd, memory)?);
            }
        }
        local.buffers.resize(buffers.len(), None);
        for (memory, registered) in buffers.iter().zip(&mut local.buffers) {
            if let (Some(memory), None) = (memory, &registered) {
                *registered = Some(register(hca, local.pd, memory)?);
            }
        }
        let depth = limits.map_or(0, |limits| limits.queue_depth);
        while local.reads.len() < usize::from(depth) {
            local.reads.push(hca.alloc_mr(local.pd)?);
        }
        Ok(())
    }

    /// Registers memory that requests may name. It is kept until it is deregistered.
    ///
    /// # Errors
    /// Fails when an adapter cannot register it.
    pub fn register(
        &mut self,
        cx: &mut impl Adapters,
        memory: Arc<Memory>,
    ) -> Result<BufferId, SetupError> {
        let free = self.buffers.iter().position(Option::is_none);
        let index = free.unwrap_or(self.buffers.len());
        if index == self.buffers.len() {
            self.buffers.push(None);
        }
        self.buffers[index] = Some(memory);
        for local in 0..self.locals.len() {
            if let Some(adapter) = cx.get(self.locals[local].adapter) {
                self.provide(adapter.hca, local)?;
            }
        }
        Ok(BufferId(index as u32))
    }

    /// Forgets memory. Requests that name it have to have ended.
    pub fn deregister(&mut self, cx: &mut impl Adapters, id: BufferId) {
        let index = id.0 as usize;
        if let Some(buffer) = self.buffers.get_mut(index) {
            *buffer = None;
        }
        for local in &mut self.locals {
            let registered = local.buffers.get_mut(index).and_then(Option::take);
            if let (Some(registered), Some(adapter)) = (registered, cx.get(local.adapter)) {
                // What is not there any more needs no more to go.
                adapter.hca.dereg_mr(registered.mr).ok();
            }
        }
    }

    /// Gives back all that was registered.
    pub(super) fn release(&mut self, cx: &mut impl Adapters) {
        for local in self.locals.drain(..) {
            let Some(adapter) = cx.get(local.adapter) else { continue };
            let buffers = local.buffers.into_iter().chain([local.headers, local.bounce]);
            let registered = buffers.flatten().map(|it| it.mr);
            for mr in registered.chain(local.reads) {
                // What is not there any more needs no more to go.
                adapter.hca.dereg_mr(mr).ok();
            }
            adapter.hca.dealloc_pd(local.pd).ok();
        }
    }
}

fn register(hca: &mut Hca, pd: PdId, memory: &Arc<Memory>) -> Result<Registered, SetupError> {
    let range = (memory, 0, memory.len());
    let mr = hca.reg_mr(pd, range, memory.address(), AccessFlags::LOCAL_WRITE)?;
    let key = hca.key(mr).expect("it was just made");
    Ok(Registered { mr, key })
}
