//! Memory regions: the memory that a key gives access to, and the permitted operations.

use std::fmt;
use std::ops::BitOr;
use std::sync::Arc;

use rand::Rng;

use crate::id::{MrId, PdId};
use crate::memory::Memory;
use crate::table::ByNumber;

/// What may be done with a memory region (`ibv_access_flags`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AccessFlags(pub u32);

impl AccessFlags {
    /// The own port may write: what a receive, a READ or an atomic returns.
    pub const LOCAL_WRITE: Self = Self(1);
    /// Others may write by RDMA.
    pub const REMOTE_WRITE: Self = Self(1 << 1);
    /// Others may read by RDMA.
    pub const REMOTE_READ: Self = Self(1 << 2);
    /// Others may do atomic operations.
    pub const REMOTE_ATOMIC: Self = Self(1 << 3);

    /// Everything.
    pub const ALL: Self = Self(0xf);

    /// Returns true when all flags of another set are among these.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for AccessFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A scatter/gather element: a range of a memory region (`ibv_sge`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sge {
    /// Address of the first byte, in the address space of the region.
    pub addr: u64,
    /// Length in bytes.
    pub length: u32,
    /// Local key of the region.
    pub lkey: u32,
}

/// Why a memory region cannot be made or changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegionError {
    /// The protection domain is not there.
    #[error("there is no such protection domain")]
    NoSuchPd,
    /// The region is not there.
    #[error("there is no such memory region")]
    NoSuchMr,
    /// Others may write or do atomics where the own port may not.
    #[error("access flags {:#x}: remote write and remote atomic need local write", .0.0)]
    Access(AccessFlags),
    /// The range is not within the memory.
    #[error("{length} bytes at offset {offset}: the memory has {size}")]
    Range {
        /// Where the region would start in the memory.
        offset: usize,
        /// Its length in bytes.
        length: usize,
        /// The length of the memory in bytes.
        size: usize,
    },
    /// The addresses of the region would go round the end of all addresses.
    #[error("{length} bytes at address {iova:#x} reach beyond the last address")]
    Address {
        /// The first address.
        iova: u64,
        /// The length in bytes.
        length: usize,
    },
    /// The region is one of plain registration, whose key does not change.
    #[error("the region was not allocated for fast registration")]
    NotFast,
    /// There are as many regions as there may be.
    #[error("{0} memory regions are registered: expected fewer")]
    Full(usize),
}

/// Why a key does not open what it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// No region has it.
    #[error("key {0:#010x} belongs to no memory region")]
    Unknown(u32),
    /// Its region belongs to another protection domain.
    #[error("key {0:#010x} belongs to another protection domain")]
    OtherPd(u32),
    /// Its region does not allow that.
    #[error("key {0:#010x} does not allow this access")]
    Access(u32),
    /// The range is not within its region.
    #[error("{length} bytes at {address:#x} are not within the region of key {key:#010x}")]
    Range {
        /// The key.
        key: u32,
        /// The first address.
        address: u64,
        /// The length in bytes.
        length: u64,
    },
}

/// The key of an SGE does not allow local writes to its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScatterError;

/// A memory region.
#[derive(Clone)]
struct Mr {
    pd: PdId,
    memory: Option<Arc<Memory>>,
    /// Where the region starts in the memory, and which address stands for that.
    offset: usize,
    iova: u64,
    length: usize,
    access: AccessFlags,
    key: u8,
    /// Whether the key opens it.
    valid: bool,
    /// Whether it is for fast registration, so that its key changes.
    fast: bool,
}

/// What a fast registration makes of a region (`IBV_WR_REG_MR` of kernels).
#[derive(Clone, Debug)]
pub struct Registration {
    /// The region, from [`Hca::alloc_mr`](crate::Hca::alloc_mr).
    pub mr: MrId,
    /// The lowest byte of its keys from now on.
    pub key: u8,
    /// The memory.
    pub memory: Arc<Memory>,
    /// Where the region starts in it.
    pub offset: usize,
    /// Its length in bytes.
    pub length: usize,
    /// The address that stands for its first byte.
    pub iova: u64,
    /// What may be done with it.
    pub access: AccessFlags,
}

/// All regions of an adapter, by number.
pub(crate) struct Regions {
    regions: ByNumber<Mr>,
    most: usize,
}

impl Regions {
    pub(crate) fn new(most: usize) -> Self {
        Self { regions: ByNumber::default(), most }
    }

    /// Registers a range of memory under an address.
    pub(crate) fn register(
        &mut self,
        rng: &mut impl Rng,
        pd: PdId,
        (memory, offset, length): (&Arc<Memory>, usize, usize),
        iova: u64,
        access: AccessFlags,
    ) -> Result<MrId, RegionError> {
        check(memory, offset, length, iova, access)?;
        let mr = Mr {
            pd,
            memory: Some(Arc::clone(memory)),
            offset,
            iova,
            length,
            access,
            key: 0,
            valid: true,
            fast: false,
        };
        self.insert(rng, mr)
    }

    /// Makes a region for fast registration, whose key opens nothing yet.
    pub(crate) fn allocate(&mut self, rng: &mut impl Rng, pd: PdId) -> Result<MrId, RegionError> {
        let mr = Mr {
            pd,
            memory: None,
            offset: 0,
            iova: 0,
            length: 0,
            access: AccessFlags::default(),
            key: 0,
            valid: false,
            fast: true,
        };
        self.insert(rng, mr)
    }

    fn insert(&mut self, rng: &mut impl Rng, mr: Mr) -> Result<MrId, RegionError> {
        if self.regions.len() >= self.most {
            return Err(RegionError::Full(self.most));
        }
        // Keys that nobody can guess: who has none reaches nothing.
        loop {
            let key = rng.next_u32();
            let id = key >> 8;
            if id != 0 && !self.regions.contains_key(&id) {
                self.regions.insert(id, Mr { key: key as u8, ..mr });
                return Ok(MrId(id));
            }
        }
    }

    /// Returns whether the protection domain has regions.
    #[expect(
        clippy::disallowed_methods,
        reason = "whether there is any does not depend on the order"
    )]
    pub(crate) fn has_any(&self, pd: PdId) -> bool {
        self.regions.values().any(|mr| mr.pd == pd)
    }

    pub(crate) fn len(&self) -> usize {
        self.regions.len()
    }

    pub(crate) fn deregister(&mut self, id: MrId) -> Result<(), RegionError> {
        self.regions.remove(&id.0).map(drop).ok_or(RegionError::NoSuchMr)
    }

    /// Returns the key of a region, local and remote.
    pub(crate) fn key(&self, id: MrId) -> Option<u32> {
        self.regions.get(&id.0).map(|mr| id.0 << 8 | u32::from(mr.key))
    }

    /// Does a fast registration.
    pub(crate) fn register_fast(
        &mut self,
        pd: PdId,
        with: &Registration,
    ) -> Result<(), RegionError> {
        let Registration { mr, key, memory, offset, length, iova, access } = with;
        let mr = self.regions.get_mut(&mr.0).filter(|mr| mr.pd == pd);
        let mr = mr.ok_or(RegionError::NoSuchMr)?;
        if !mr.fast || mr.valid {
            return Err(RegionError::NotFast);
        }
        check(memory, *offset, *length, *iova, *access)?;
        *mr = Mr {
            pd,
            memory: Some(Arc::clone(memory)),
            offset: *offset,
            iova: *iova,
            length: *length,
            access: *access,
            key: *key,
            valid: true,
            fast: true,
        };
        Ok(())
    }

    /// Gives a region of fast registration memory at once, under a key that differs from the one before in its
    /// lowest byte; what it opened before it does not any more. Returns the key.
    pub(crate) fn open_fast(
        &mut self,
        id: MrId,
        (memory, offset, length): (&Arc<Memory>, usize, usize),
        iova: u64,
        access: AccessFlags,
    ) -> Result<u32, RegionError> {
        check(memory, offset, length, iova, access)?;
        let mr = self.regions.get_mut(&id.0).ok_or(RegionError::NoSuchMr)?;
        if !mr.fast {
            return Err(RegionError::NotFast);
        }
        match &mr.memory {
            Some(before) if Arc::ptr_eq(before, memory) => {}
            _ => mr.memory = Some(Arc::clone(memory)),
        }
        (mr.offset, mr.length, mr.iova, mr.access) = (offset, length, iova, access);
        (mr.key, mr.valid) = (mr.key.wrapping_add(1), true);
        Ok(id.0 << 8 | u32::from(mr.key))
    }

    /// Has the key of a region of fast registration open nothing, until it is opened again.
    pub(crate) fn close_fast(&mut self, id: MrId) -> Result<(), RegionError> {
        let mr = self.regions.get_mut(&id.0).ok_or(RegionError::NoSuchMr)?;
        if !mr.fast {
            return Err(RegionError::NotFast);
        }
        mr.valid = false;
        Ok(())
    }

    /// Opens a region that was closed for the same memory under its next key, and returns that.
    pub(crate) fn reopen_fast(&mut self, id: MrId) -> Result<u32, RegionError> {
        let mr = self.regions.get_mut(&id.0).ok_or(RegionError::NoSuchMr)?;
        if !mr.fast || mr.memory.is_none() {
            return Err(RegionError::NotFast);
        }
        (mr.key, mr.valid) = (mr.key.wrapping_add(1), true);
        Ok(id.0 << 8 | u32::from(mr.key))
    }

    /// Has a key open nothing any more; only regions for fast registration can be closed so.
    pub(crate) fn invalidate(&mut self, pd: PdId, key: u32) -> Result<(), KeyError> {
        let mr = self.regions.get_mut(&(key >> 8)).ok_or(KeyError::Unknown(key))?;
        if mr.pd != pd {
            return Err(KeyError::OtherPd(key));
        }
        if !mr.fast || !mr.valid || mr.key != key as u8 {
            return Err(KeyError::Access(key));
        }
        (mr.valid, mr.memory) = (false, None);
        Ok(())
    }

    /// Returns the memory and the offset in it that a key opens at an address.
    pub(crate) fn open(
        &self,
        pd: PdId,
        key: u32,
        address: u64,
        length: usize,
        access: AccessFlags,
    ) -> Result<(&Arc<Memory>, usize), KeyError> {
        let mr = self.regions.get(&(key >> 8)).filter(|mr| mr.valid && mr.key == key as u8);
        let mr = mr.ok_or(KeyError::Unknown(key))?;
        if mr.pd != pd {
            return Err(KeyError::OtherPd(key));
        }
        if !mr.access.contains(access) {
            return Err(KeyError::Access(key));
        }
        let failed = KeyError::Range { key, address, length: length as u64 };
        let start = address.checked_sub(mr.iova).ok_or(failed)?;
        let start = usize::try_from(start).map_err(|_| failed)?;
        let fits = start.checked_add(length).is_some_and(|end| end <= mr.length);
        let memory = mr.memory.as_ref().filter(|_| fits).ok_or(failed)?;
        Ok((memory, mr.offset + start))
    }

    /// Copies bytes into SGEs, from an offset in them on. Returns false if the SGEs are too short; the bytes that fit
    /// are copied then.
    pub(crate) fn scatter(
        &self,
        pd: PdId,
        sges: &[Sge],
        offset: usize,
        mut bytes: &[u8],
    ) -> Result<bool, ScatterError> {
        let mut skip = offset;
        for sge in sges {
            let size = sge.length as usize;
            if skip >= size {
                skip -= size;
                continue;
            }
            let part = (size - skip).min(bytes.len());
            if part == 0 {
                break;
            }
            let address = sge.addr.wrapping_add(skip as u64);
            let opened = self.open(pd, sge.lkey, address, part, AccessFlags::LOCAL_WRITE);
            let (memory, at) = opened.map_err(|_| ScatterError)?;
            memory.write(at, &bytes[..part]).map_err(|_| ScatterError)?;
            (skip, bytes) = (0, &bytes[part..]);
        }
        Ok(bytes.is_empty())
    }
}

/// Checks that a range can be registered.
fn check(
    memory: &Memory,
    offset: usize,
    length: usize,
    iova: u64,
    access: AccessFlags,
) -> Result<(), RegionError> {
    let remote = AccessFlags::REMOTE_WRITE.0 | AccessFlags::REMOTE_ATOMIC.0;
    if access.0 & remote != 0 && !access.contains(AccessFlags::LOCAL_WRITE)
        || !AccessFlags::ALL.contains(access)
    {
        return Err(RegionError::Access(access));
    }
    if offset.checked_add(length).is_none_or(|end| end > memory.len()) {
        return Err(RegionError::Range { offset, length, size: memory.len() });
    }
    if iova.checked_add(length as u64).is_none() {
        return Err(RegionError::Address { iova, length });
    }
    Ok(())
}

impl fmt::Debug for Regions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Regions({})", self.regions.len())
    }
}
