//! Commands on memory regions and memory windows.

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use ib_hca::{AccessFlags, Memory, MwType, RegionError, Reregistration};

use super::{Executor, Response, created};
use crate::errno::Errno;
use crate::verbs::abi::{AllocMw, AllocMwResponse, RegMr, RegMrResponse, ReregMr, ReregMrResponse};
use crate::verbs::mappings;
use crate::verbs::objects::Mr;

/// Accepted access flags: those of the engine, and huge pages and relaxed ordering, which have no effect.
const KNOWN_ACCESS: u32 = ENGINE_ACCESS | 1 << 7 | 0x3ff0_0000;

/// Access flags that the engine checks.
const ENGINE_ACCESS: u32 = AccessFlags::ALL.0 | AccessFlags::MW_BIND.0;

/// Size of a page in bytes.
const PAGE: usize = 4096;

impl Executor<'_> {
    pub(super) fn reg_mr(&mut self, reg: &RegMr) -> Result<Response, Errno> {
        let &mut pd = self.objects.pds.of(self.context, reg.pd_handle)?;
        let access = access_of(reg.access_flags)?;
        let range = range_of(reg.start, reg.length)?;
        let (memory, offset) = memory_of(&range, access)?;
        let hca = self.adapter.device.hca();
        let id = hca
            .reg_mr(pd, (&memory, offset, range.len()), reg.hca_va, access)
            .map_err(region_failed)?;
        let key = hca.key(id).ok_or(Errno::INVALID)?;
        let mr_handle = self.objects.mrs.insert(self.context, Mr { id, range, access });
        Ok(Response::core(&RegMrResponse { mr_handle, lkey: key, rkey: key }))
    }

    /// Changes a region. The keys remain, as with rxe.
    pub(super) fn rereg_mr(&mut self, rereg: &ReregMr) -> Result<Response, Errno> {
        const TRANSLATION: u32 = 1;
        const PD: u32 = 1 << 1;
        const ACCESS: u32 = 1 << 2;
        let has = |flag: u32| rereg.flags & flag != 0;
        if rereg.flags & !(TRANSLATION | PD | ACCESS) != 0 {
            return Err(Errno::NOT_SUPPORTED);
        }
        let is_misaligned = !(rereg.start ^ rereg.hca_va).is_multiple_of(PAGE as u64);
        if rereg.flags == 0 || has(TRANSLATION) && is_misaligned {
            return Err(Errno::INVALID);
        }
        let mr = self.objects.mrs.of(self.context, rereg.mr_handle)?;
        let mut change = Reregistration::default();
        if has(PD) {
            change.pd = Some(*self.objects.pds.of(self.context, rereg.pd_handle)?);
        }
        let access = if has(ACCESS) { access_of(rereg.access_flags)? } else { mr.access };
        change.access = Some(access);
        let range =
            if has(TRANSLATION) { range_of(rereg.start, rereg.length)? } else { mr.range.clone() };
        // A change of only the PD succeeds even if the program has unmapped the range.
        let memory =
            if has(TRANSLATION) || has(ACCESS) { Some(memory_of(&range, access)?) } else { None };
        if let Some((memory, offset)) = memory.as_ref().filter(|_| has(TRANSLATION)) {
            change.range = Some((memory, *offset, range.len(), rereg.hca_va));
        }
        let hca = self.adapter.device.hca();
        hca.rereg_mr(mr.id, &change).map_err(region_failed)?;
        let key = hca.key(mr.id).ok_or(Errno::INVALID)?;
        (mr.range, mr.access) = (range, access);
        Ok(Response::core(&ReregMrResponse { lkey: key, rkey: key }))
    }

    pub(super) fn dereg_mr(&mut self, handle: u32) -> Result<Response, Errno> {
        let id = self.objects.mrs.existing(self.context, handle)?.id;
        self.adapter.device.hca().dereg_mr(id).map_err(region_failed)?;
        self.objects.mrs.remove(handle);
        Ok(Response::default())
    }

    pub(super) fn alloc_mw(&mut self, alloc: &AllocMw) -> Result<Response, Errno> {
        let &mut pd = self.objects.pds.of(self.context, alloc.pd_handle)?;
        let mw_type = match alloc.mw_type {
            1 => MwType::One,
            2 => MwType::Two,
            _ => return Err(Errno::INVALID),
        };
        let hca = self.adapter.device.hca();
        let mw = hca.alloc_mw(pd, mw_type).map_err(created)?;
        let rkey = hca.window_key(mw).ok_or(Errno::INVALID)?;
        let mw_handle = self.objects.mws.insert(self.context, mw);
        Ok(Response::core(&AllocMwResponse { mw_handle, rkey }))
    }
}

/// Returns the access flags of a region for the engine.
///
/// # Errors
/// Fails with `EOPNOTSUPP` for on-demand paging, and with `EINVAL` for unknown flags.
fn access_of(flags: u32) -> Result<AccessFlags, Errno> {
    const ZERO_BASED: u32 = 1 << 5;
    const ON_DEMAND: u32 = 1 << 6;
    if flags & (ZERO_BASED | ON_DEMAND) != 0 {
        return Err(Errno::NOT_SUPPORTED);
    }
    if flags & !KNOWN_ACCESS != 0 {
        return Err(Errno::INVALID);
    }
    Ok(AccessFlags(flags & ENGINE_ACCESS))
}

/// Returns the address range of a region.
fn range_of(start: u64, length: u64) -> Result<Range<usize>, Errno> {
    let length = usize::try_from(length).map_err(|_| Errno::INVALID)?;
    let start = usize::try_from(start).map_err(|_| Errno::FAULT)?;
    let end = start.checked_add(length).filter(|_| length > 0).ok_or(Errno::INVALID)?;
    Ok(start..end)
}

/// Returns the memory of an address range of the program, and the offset of the range in the memory.
///
/// # Errors
/// Fails with `EFAULT` if the range is not mapped with the permissions that the access flags need.
fn memory_of(range: &Range<usize>, access: AccessFlags) -> Result<(Arc<Memory>, usize), Errno> {
    if !mappings::is_mapped(range.clone(), access.contains(AccessFlags::LOCAL_WRITE)) {
        return Err(Errno::FAULT);
    }
    // The engine's memory object begins at the start of the region's first page. So offsets in
    // it have the same alignment as the program's addresses, which atomics need.
    let page = range.start & !(PAGE - 1);
    let first = NonNull::new(std::ptr::with_exposed_provenance_mut(page));
    let first = first.ok_or(Errno::FAULT)?;
    // SAFETY: the range is mapped. The program keeps the range mapped while it is registered.
    let memory = unsafe { Memory::borrowed(first, range.end - page) };
    Ok((memory, range.start - page))
}

fn region_failed(error: RegionError) -> Errno {
    match error {
        RegionError::Full(_) => Errno::NO_MEMORY,
        RegionError::InUse(_) => Errno::BUSY,
        _ => Errno::INVALID,
    }
}
