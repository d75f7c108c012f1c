//! Memory windows (IBTA volume 1, 10.6.7): a window gives peers access to a part of a region, by an R_Key of its own.

use rand::Rng;

use super::{AccessFlags, KeyError, Mr, Regions};
use crate::error::{CreateError, DestroyError};
use crate::id::{MwId, PdId, QpId};
use crate::memory::Memory;

/// Type of a memory window (`ibv_mw_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MwType {
    /// Type 1: all queue pairs of the protection domain give access to the window.
    One,
    /// Type 2B: only the queue pair that has bound the window gives access to it.
    Two,
}

/// Binding of a memory window to a part of a region (`IBV_WR_BIND_MW`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowBinding {
    /// Current R_Key of the window.
    pub rkey: u32,
    /// Lowest byte of the new R_Key. It must differ from that of the current one.
    pub key: u8,
    /// Local key of the region.
    pub lkey: u32,
    /// First address of the part, in the address space of the region.
    pub addr: u64,
    /// Length of the part in bytes. A length of 0 unbinds a type 1 window.
    pub length: u64,
    /// Permitted operations of peers. With [`AccessFlags::ZERO_BASED`], the addresses in requests of peers start at 0.
    pub access: AccessFlags,
}

/// A memory window.
pub(super) struct Window {
    pub(super) pd: PdId,
    mw_type: MwType,
    /// Lowest byte of the R_Key. The upper 24 bits are the number of the window.
    key: u8,
    binding: Option<Bound>,
}

/// The part of a region to which a window is bound.
#[derive(Clone, Copy)]
struct Bound {
    /// Number of the region.
    mr: u32,
    /// Queue pair that has bound the window.
    qp: QpId,
    /// Address by which peers refer to the first byte.
    base: u64,
    /// Offset of the part in the region.
    offset: usize,
    length: usize,
    access: AccessFlags,
}

impl Regions {
    /// Creates a memory window that is not bound.
    pub(crate) fn allocate_window(
        &mut self,
        rng: &mut impl Rng,
        pd: PdId,
        mw_type: MwType,
    ) -> Result<MwId, CreateError> {
        if self.windows.len() >= self.most {
            return Err(CreateError::Full { objects: "memory windows", most: self.most });
        }
        let key = self.new_key(rng);
        let window = Window { pd, mw_type, key: key as u8, binding: None };
        self.windows.insert(key >> 8, window);
        Ok(MwId(key >> 8))
    }

    /// Unbinds and removes a memory window.
    pub(crate) fn remove_window(&mut self, id: MwId) -> Result<(), DestroyError> {
        self.unbind(id.0);
        self.windows.remove(&id.0).map(drop).ok_or(DestroyError::NoSuch("memory window"))
    }

    /// Returns the current R_Key of a window.
    pub(crate) fn window_key(&self, id: MwId) -> Option<u32> {
        self.windows.get(&id.0).map(|window| id.0 << 8 | u32::from(window.key))
    }

    /// Executes a request that binds a window, or unbinds a type 1 window.
    pub(crate) fn bind(
        &mut self,
        (pd, qp): (PdId, QpId),
        request: &WindowBinding,
    ) -> Result<(), KeyError> {
        let WindowBinding { rkey, key, length, access, .. } = *request;
        let number = rkey >> 8;
        let window = self.windows.get(&number).filter(|window| window.key == rkey as u8);
        let window = window.ok_or(KeyError::Unknown(rkey))?;
        if window.pd != pd {
            return Err(KeyError::OtherPd(rkey));
        }
        let is_possible = match window.mw_type {
            MwType::One => !access.contains(AccessFlags::ZERO_BASED),
            MwType::Two => window.binding.is_none() && length > 0,
        };
        if !is_possible || key == window.key {
            return Err(KeyError::Access(rkey));
        }
        let bound = if length == 0 { None } else { Some(self.bound(pd, qp, request)?) };
        self.unbind(number);
        if let Some(bound) = bound {
            self.regions.get_mut(&bound.mr).expect("`bound` found the region").windows += 1;
        }
        let window = self.windows.get_mut(&number).expect("the window was found above");
        (window.key, window.binding) = (key, bound);
        Ok(())
    }

    /// Checks that a region permits a binding, and returns the bound part.
    fn bound(&self, pd: PdId, qp: QpId, request: &WindowBinding) -> Result<Bound, KeyError> {
        let WindowBinding { lkey, addr, length, access, .. } = *request;
        let mr = self.regions.get(&(lkey >> 8)).filter(|mr| mr.is_open && mr.key == lkey as u8);
        let mr = mr.ok_or(KeyError::Unknown(lkey))?;
        if mr.pd != pd {
            return Err(KeyError::OtherPd(lkey));
        }
        let writes = AccessFlags::REMOTE_WRITE.0 | AccessFlags::REMOTE_ATOMIC.0;
        let is_permitted = mr.access.contains(AccessFlags::MW_BIND)
            && (AccessFlags::ALL | AccessFlags::ZERO_BASED).contains(access)
            && (access.0 & writes == 0 || mr.access.contains(AccessFlags::LOCAL_WRITE))
            && !mr.is_fast;
        if !is_permitted {
            return Err(KeyError::Access(lkey));
        }
        let failed = KeyError::Range { key: lkey, address: addr, length };
        let size = usize::try_from(length).map_err(|_| failed)?;
        let offset = mr.offset_of(addr, size).ok_or(failed)?;
        let base = if access.contains(AccessFlags::ZERO_BASED) { 0 } else { addr };
        Ok(Bound { mr: lkey >> 8, qp, base, offset, length: size, access })
    }

    /// Unbinds a window. Does nothing if the window does not exist or is not bound.
    fn unbind(&mut self, number: u32) {
        let window = self.windows.get_mut(&number);
        let Some(bound) = window.and_then(|window| window.binding.take()) else { return };
        let mr = self.regions.get_mut(&bound.mr);
        mr.expect("a region with bound windows is not deregistered").windows -= 1;
    }

    /// Unbinds the type 2 windows of a destroyed queue pair.
    #[expect(clippy::disallowed_methods, reason = "the result does not depend on the order")]
    pub(crate) fn unbind_all(&mut self, qp: QpId) {
        let is_bound = |window: &Window| {
            window.mw_type == MwType::Two && window.binding.is_some_and(|bound| bound.qp == qp)
        };
        let found = self.windows.iter().filter(|(_, window)| is_bound(window));
        for number in found.map(|(&number, _)| number).collect::<Vec<_>>() {
            self.unbind(number);
        }
    }

    /// Invalidates the R_Key of a type 2 window, and unbinds the window. Returns `None` if the key is not that of a
    /// window.
    pub(super) fn invalidate_window(
        &mut self,
        (pd, qp): (PdId, QpId),
        key: u32,
    ) -> Option<Result<(), KeyError>> {
        let window = self.windows.get(&(key >> 8))?;
        if window.pd != pd {
            return Some(Err(KeyError::OtherPd(key)));
        }
        let is_bound = window.binding.is_some_and(|bound| bound.qp == qp);
        if window.mw_type != MwType::Two || window.key != key as u8 || !is_bound {
            return Some(Err(KeyError::Access(key)));
        }
        self.unbind(key >> 8);
        Some(Ok(()))
    }

    /// Checks that an R_Key permits an access of the peer of a queue pair to a range. The key is that of a region or of
    /// a memory window. Returns the memory of the region, and the offset of the range in it.
    #[inline]
    pub(crate) fn open_remote(
        &self,
        (pd, qp): (PdId, QpId),
        key: u32,
        address: u64,
        length: usize,
        access: AccessFlags,
    ) -> Result<(&std::sync::Arc<Memory>, usize), KeyError> {
        let Some(window) = self.windows.get(&(key >> 8)) else {
            return self.open(pd, key, address, length, access);
        };
        let bound = window.binding.filter(|_| window.key == key as u8);
        let bound = bound.ok_or(KeyError::Unknown(key))?;
        if window.pd != pd {
            return Err(KeyError::OtherPd(key));
        }
        if !bound.access.contains(access) || window.mw_type == MwType::Two && bound.qp != qp {
            return Err(KeyError::Access(key));
        }
        let failed = KeyError::Range { key, address, length: length as u64 };
        let start = address.checked_sub(bound.base).and_then(|start| usize::try_from(start).ok());
        let fits = |start: &usize| start.checked_add(length).is_some_and(|end| end <= bound.length);
        let start = start.filter(fits).ok_or(failed)?;
        let Mr { memory, offset, .. } = self.regions.get(&bound.mr).ok_or(failed)?;
        Ok((memory.as_ref().ok_or(failed)?, offset + bound.offset + start))
    }
}
