//! Memory regions. A key gives access to the memory of a region, limited to the permitted operations.

use std::fmt;
use std::ops::BitOr;
use std::sync::Arc;

use rand::Rng;

use crate::id::{MrId, PdId, QpId};
use crate::memory::Memory;
use crate::table::ByNumber;

mod window;

pub use window::{MwType, WindowBinding};

/// Permitted operations of a memory region or queue pair (`ibv_access_flags`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AccessFlags(pub u32);

impl AccessFlags {
    /// The HCA may write received messages, READ data and results of atomics.
    pub const LOCAL_WRITE: Self = Self(1);
    /// Peers may write with RDMA WRITE.
    pub const REMOTE_WRITE: Self = Self(1 << 1);
    /// Peers may read with RDMA READ.
    pub const REMOTE_READ: Self = Self(1 << 2);
    /// Peers may execute atomic operations.
    pub const REMOTE_ATOMIC: Self = Self(1 << 3);

    /// Memory windows may be bound to the region.
    pub const MW_BIND: Self = Self(1 << 4);
    /// In requests of peers, the addresses of a type 2 memory window start at 0.
    pub const ZERO_BASED: Self = Self(1 << 5);

    /// All flags that permit reads and writes.
    pub const ALL: Self = Self(0xf);

    /// Returns true if all flags of `other` are set.
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

/// Error of the creation or change of a memory region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegionError {
    /// The protection domain does not exist.
    #[error("the protection domain does not exist")]
    NoSuchPd,
    /// The memory region does not exist. In a fast registration: or belongs to another protection domain.
    #[error("the memory region does not exist, or belongs to another protection domain")]
    NoSuchMr,
    /// Access flags that are unknown, or that permit remote writes or atomics without local writes.
    #[error("access flags {:#x}: expected known flags, and local write if remote write or atomic is set", .0.0)]
    Access(AccessFlags),
    /// The range exceeds the memory.
    #[error(
        "the region has {length} bytes at offset {offset}: expected a range within {size} bytes of memory"
    )]
    Range {
        /// Offset of the region in the memory.
        offset: usize,
        /// Length of the region in bytes.
        length: usize,
        /// Size of the memory in bytes.
        size: usize,
    },
    /// The last address of the region would exceed 64 bits.
    #[error(
        "the region has {length} bytes at address {iova:#x}: expected a last address below 2^64"
    )]
    Address {
        /// First address.
        iova: u64,
        /// Length in bytes.
        length: usize,
    },
    /// The region is not a fast-registration region, already has a valid key, or has no memory to reopen.
    #[error(
        "the region is not a fast-registration region, its key is already valid, or it has no memory to reopen"
    )]
    NotFast,
    /// The region is a fast-registration region, which cannot be re-registered.
    #[error(
        "the region is a fast-registration region, which cannot be re-registered: expected one of `reg_mr`"
    )]
    Fast,
    /// Memory windows are bound to the region. The value is their number.
    #[error("{0} memory windows are bound to the region: unbind them first")]
    InUse(u32),
    /// The HCA has its maximum number of regions.
    #[error(
        "the HCA has {0} memory regions, its maximum: deregister one before registering another"
    )]
    Full(usize),
}

/// Reason why a key does not permit an access to a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The key is not the valid key of a region or memory window.
    #[error("key {0:#010x} is not a valid key of a memory region or memory window")]
    Unknown(u32),
    /// The region or memory window belongs to another protection domain.
    #[error(
        "the memory region or window of key {0:#010x} belongs to another protection domain than the queue pair"
    )]
    OtherPd(u32),
    /// The access flags of the region do not permit the operation. In an invalidation: the key is not the valid key of
    /// a fast-registration region.
    #[error(
        "the memory region or window of key {0:#010x} does not permit this operation: check its access flags, type and state"
    )]
    Access(u32),
    /// The range exceeds the region or memory window.
    #[error(
        "the range of {length} bytes at {address:#x} exceeds the memory region or window of key {key:#010x}"
    )]
    Range {
        /// The key.
        key: u32,
        /// The first address of the range.
        address: u64,
        /// The length of the range in bytes.
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
    /// Offset of the region in `memory`.
    offset: usize,
    /// Address of the region's first byte in SGEs and RDMA requests.
    iova: u64,
    length: usize,
    access: AccessFlags,
    /// Lowest byte of the key. The upper 24 bits are the number of the region.
    key: u8,
    /// True if the key is valid, and gives access to the region.
    is_open: bool,
    /// True for a fast-registration region, whose key changes.
    is_fast: bool,
    /// Number of memory windows that are bound to the region.
    windows: u32,
}

impl Mr {
    /// Returns the offset in the region of a range of addresses; `None` if the range exceeds the region.
    fn offset_of(&self, address: u64, length: usize) -> Option<usize> {
        let start = usize::try_from(address.checked_sub(self.iova)?).ok()?;
        (start.checked_add(length)? <= self.length).then_some(start)
    }
}

/// Changes of a re-registered region (`ibv_rereg_mr`). Attributes that are `None` keep their values.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reregistration<'a> {
    /// Protection domain (`IBV_REREG_MR_CHANGE_PD`).
    pub pd: Option<PdId>,
    /// Memory, offset in it, length in bytes, and address of the first byte (`IBV_REREG_MR_CHANGE_TRANSLATION`).
    pub range: Option<(&'a Arc<Memory>, usize, usize, u64)>,
    /// Permitted operations (`IBV_REREG_MR_CHANGE_ACCESS`).
    pub access: Option<AccessFlags>,
}

/// Fast registration: assigns memory and a key to a region (`IB_WR_REG_MR` of the Linux kernel).
#[derive(Clone, Debug)]
pub struct Registration {
    /// The region, from [`Hca::alloc_mr`](crate::Hca::alloc_mr).
    pub mr: MrId,
    /// Lowest byte of the new key.
    pub key: u8,
    /// Memory that contains the region.
    pub memory: Arc<Memory>,
    /// Offset of the region in the memory.
    pub offset: usize,
    /// Length of the region in bytes.
    pub length: usize,
    /// Address of the first byte in SGEs and RDMA requests.
    pub iova: u64,
    /// Permitted operations.
    pub access: AccessFlags,
}

/// The memory regions of an HCA, by number.
pub(crate) struct Regions {
    regions: ByNumber<Mr>,
    windows: ByNumber<window::Window>,
    most: usize,
}

impl Regions {
    pub(crate) fn new(most: usize) -> Self {
        Self { regions: ByNumber::default(), windows: ByNumber::default(), most }
    }

    /// Registers a range of memory. SGEs and RDMA requests refer to the range by addresses from `iova` on.
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
            is_open: true,
            is_fast: false,
            windows: 0,
        };
        self.insert(rng, mr)
    }

    /// Creates a fast-registration region without memory. Its key is invalid until the region has memory.
    pub(crate) fn allocate(&mut self, rng: &mut impl Rng, pd: PdId) -> Result<MrId, RegionError> {
        let mr = Mr {
            pd,
            memory: None,
            offset: 0,
            iova: 0,
            length: 0,
            access: AccessFlags::default(),
            key: 0,
            is_open: false,
            is_fast: true,
            windows: 0,
        };
        self.insert(rng, mr)
    }

    fn insert(&mut self, rng: &mut impl Rng, mr: Mr) -> Result<MrId, RegionError> {
        if self.regions.len() >= self.most {
            return Err(RegionError::Full(self.most));
        }
        let key = self.new_key(rng);
        self.regions.insert(key >> 8, Mr { key: key as u8, ..mr });
        Ok(MrId(key >> 8))
    }

    /// Returns a key whose number no region and no window has. Keys are random, so that peers cannot guess them.
    fn new_key(&self, rng: &mut impl Rng) -> u32 {
        loop {
            let key = rng.next_u32();
            let id = key >> 8;
            if id != 0 && !self.regions.contains_key(&id) && !self.windows.contains_key(&id) {
                return key;
            }
        }
    }

    /// Returns true if the protection domain has regions or memory windows.
    #[expect(clippy::disallowed_methods, reason = "`any` does not depend on the order")]
    pub(crate) fn has_any(&self, pd: PdId) -> bool {
        self.regions.values().any(|mr| mr.pd == pd)
            || self.windows.values().any(|window| window.pd == pd)
    }

    pub(crate) fn len(&self) -> usize {
        self.regions.len()
    }

    pub(crate) fn deregister(&mut self, id: MrId) -> Result<(), RegionError> {
        self.unused(id)?;
        self.regions.remove(&id.0);
        Ok(())
    }

    /// Returns a region to which no memory window is bound.
    fn unused(&mut self, id: MrId) -> Result<&mut Mr, RegionError> {
        let mr = self.regions.get_mut(&id.0).ok_or(RegionError::NoSuchMr)?;
        if mr.windows > 0 { Err(RegionError::InUse(mr.windows)) } else { Ok(mr) }
    }

    /// Changes a region. If any change is invalid, the region remains the same.
    pub(crate) fn reregister(
        &mut self,
        id: MrId,
        change: &Reregistration<'_>,
    ) -> Result<(), RegionError> {
        let mr = self.unused(id)?;
        if mr.is_fast {
            return Err(RegionError::Fast);
        }
        let memory = mr.memory.clone().ok_or(RegionError::NoSuchMr)?;
        let kept = (&memory, mr.offset, mr.length, mr.iova);
        let (memory, offset, length, iova) = change.range.unwrap_or(kept);
        let access = change.access.unwrap_or(mr.access);
        check(memory, offset, length, iova, access)?;
        let (pd, memory) = (change.pd.unwrap_or(mr.pd), Some(Arc::clone(memory)));
        *mr = Mr { pd, memory, offset, iova, length, access, ..mr.clone() };
        Ok(())
    }

    /// Returns the key of a region, which is both its L_Key and its R_Key.
    pub(crate) fn key(&self, id: MrId) -> Option<u32> {
        self.regions.get(&id.0).map(|mr| id.0 << 8 | u32::from(mr.key))
    }

    /// Executes a fast registration: assigns memory and a valid key to a region whose key is invalid.
    pub(crate) fn register_fast(
        &mut self,
        pd: PdId,
        with: &Registration,
    ) -> Result<(), RegionError> {
        let Registration { mr, key, memory, offset, length, iova, access } = with;
        let mr = self.regions.get_mut(&mr.0).filter(|mr| mr.pd == pd);
        let mr = mr.ok_or(RegionError::NoSuchMr)?;
        if !mr.is_fast || mr.is_open {
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
            is_open: true,
            is_fast: true,
            windows: 0,
        };
        Ok(())
    }

    /// Assigns memory to a fast-registration region, whether its key is valid or not. Returns its new valid key, which
    /// differs from the previous key in the lowest byte.
    pub(crate) fn open_fast(
        &mut self,
        id: MrId,
        (memory, offset, length): (&Arc<Memory>, usize, usize),
        iova: u64,
        access: AccessFlags,
    ) -> Result<u32, RegionError> {
        check(memory, offset, length, iova, access)?;
        let mr = self.regions.get_mut(&id.0).ok_or(RegionError::NoSuchMr)?;
        if !mr.is_fast {
            return Err(RegionError::NotFast);
        }
        match &mr.memory {
            Some(before) if Arc::ptr_eq(before, memory) => {}
            _ => mr.memory = Some(Arc::clone(memory)),
        }
        (mr.offset, mr.length, mr.iova, mr.access) = (offset, length, iova, access);
        (mr.key, mr.is_open) = (mr.key.wrapping_add(1), true);
        Ok(id.0 << 8 | u32::from(mr.key))
    }

    /// Makes the key of a fast-registration region invalid. The region keeps its memory.
    pub(crate) fn close_fast(&mut self, id: MrId) -> Result<(), RegionError> {
        let mr = self.regions.get_mut(&id.0).ok_or(RegionError::NoSuchMr)?;
        if !mr.is_fast {
            return Err(RegionError::NotFast);
        }
        mr.is_open = false;
        Ok(())
    }

    /// Assigns a new valid key to a fast-registration region, which keeps its memory. Returns the key.
    pub(crate) fn reopen_fast(&mut self, id: MrId) -> Result<u32, RegionError> {
        let mr = self.regions.get_mut(&id.0).ok_or(RegionError::NoSuchMr)?;
        if !mr.is_fast || mr.memory.is_none() {
            return Err(RegionError::NotFast);
        }
        (mr.key, mr.is_open) = (mr.key.wrapping_add(1), true);
        Ok(id.0 << 8 | u32::from(mr.key))
    }

    /// Invalidates the key of a fast-registration region, and releases the memory of the region. Or invalidates the key
    /// of a type 2 memory window, and unbinds the window.
    pub(crate) fn invalidate(&mut self, (pd, qp): (PdId, QpId), key: u32) -> Result<(), KeyError> {
        if let Some(result) = self.invalidate_window((pd, qp), key) {
            return result;
        }
        let mr = self.regions.get_mut(&(key >> 8)).ok_or(KeyError::Unknown(key))?;
        if mr.pd != pd {
            return Err(KeyError::OtherPd(key));
        }
        if !mr.is_fast || !mr.is_open || mr.key != key as u8 {
            return Err(KeyError::Access(key));
        }
        (mr.is_open, mr.memory) = (false, None);
        Ok(())
    }

    /// Checks that a key permits an access to a range. Returns the memory of the region, and the offset of the range in
    /// it.
    pub(crate) fn open(
        &self,
        pd: PdId,
        key: u32,
        address: u64,
        length: usize,
        access: AccessFlags,
    ) -> Result<(&Arc<Memory>, usize), KeyError> {
        let mr = self.regions.get(&(key >> 8)).filter(|mr| mr.is_open && mr.key == key as u8);
        let mr = mr.ok_or(KeyError::Unknown(key))?;
        if mr.pd != pd {
            return Err(KeyError::OtherPd(key));
        }
        if !mr.access.contains(access) {
            return Err(KeyError::Access(key));
        }
        let failed = KeyError::Range { key, address, length: length as u64 };
        let start = mr.offset_of(address, length).ok_or(failed)?;
        let memory = mr.memory.as_ref().ok_or(failed)?;
        Ok((memory, mr.offset + start))
    }

    /// Copies bytes into the concatenated ranges of the SGEs, starting at `offset`. If the SGEs are too short, copies
    /// only the bytes that fit, and returns false.
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

/// Checks the access flags, the range and the addresses of a registration.
fn check(
    memory: &Memory,
    offset: usize,
    length: usize,
    iova: u64,
    access: AccessFlags,
) -> Result<(), RegionError> {
    let remote = AccessFlags::REMOTE_WRITE.0 | AccessFlags::REMOTE_ATOMIC.0;
    if access.0 & remote != 0 && !access.contains(AccessFlags::LOCAL_WRITE)
        || !(AccessFlags::ALL | AccessFlags::MW_BIND).contains(access)
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
