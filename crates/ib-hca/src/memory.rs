//! Memory that packets are gathered from and placed into, shared with the application.
//!
//! An adapter reads and writes registered memory while the program that owns it runs, and neither
//! waits for the other: who writes what the other one reads at the same time sees some of either, as on
//! hardware. Completions order them. So nothing here ever makes a reference to the bytes: they are
//! copied in and out within bounds that are checked on every call, by atomic loads and stores without an
//! order, which may race. Long copies are left to the processor's own instruction for that, which
//! Rust knows nothing about; Miri, which runs no such instruction, sees the loads and stores.
#![allow(unsafe_code, reason = "bytes that an adapter and a program share cannot be a slice")]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

mod copy;

/// The alignment of memory in bytes: a page.
const ALIGNMENT: usize = 4096;

/// Bytes that an adapter may read and write at any time.
pub struct Memory {
    start: NonNull<u8>,
    length: usize,
    /// The allocation, which begins before the aligned start; `None` for memory of another owner.
    allocation: Option<(NonNull<u8>, Layout)>,
}

// SAFETY: the bytes are only ever reached by atomics, and are freed when the last owner is gone.
unsafe impl Send for Memory {}
// SAFETY: as above; copies that race with others are of some of either's bytes.
unsafe impl Sync for Memory {}

/// Why memory cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no {length} bytes of memory are left")]
pub struct OutOfMemory {
    /// How much was asked for.
    pub length: usize,
}

/// A range that is not within the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{length} bytes at offset {offset} of memory of {size} bytes")]
pub struct OutOfBounds {
    /// Where the range starts.
    pub offset: usize,
    /// Its length in bytes.
    pub length: usize,
    /// The length of the memory in bytes.
    pub size: usize,
}

impl Memory {
    /// Returns zeroed memory of so many bytes, which starts at a page.
    ///
    /// # Errors
    /// Fails when there is no memory left.
    pub fn zeroed(length: usize) -> Result<Arc<Self>, OutOfMemory> {
        let failed = OutOfMemory { length };
        let size = length.max(1).checked_add(ALIGNMENT - 8).ok_or(failed)?;
        // An alignment that every allocation has: so the system hands over pages that nobody has touched yet.
        let layout = Layout::from_size_align(size, 8).map_err(|_| failed)?;
        // SAFETY: the layout has a size above zero.
        let allocation = unsafe { alloc_zeroed(layout) };
        let allocation = NonNull::new(allocation).ok_or(failed)?;
        let skipped = allocation.as_ptr().addr().wrapping_neg() % ALIGNMENT;
        // SAFETY: less than the alignment is skipped, and so much more was allocated.
        let start = unsafe { allocation.add(skipped) };
        Ok(Arc::new(Self { start, length, allocation: Some((allocation, layout)) }))
    }

    /// Returns memory of another owner, such as a range that an application registers or a mapped file.
    ///
    /// # Panics
    /// Panics if the address is not a multiple of 8.
    ///
    /// # Safety
    /// The range must stay readable and writable until the last owner of the returned memory has dropped it. Other
    /// accesses to it may race with those of this type if they are atomic, or are made by other languages or processes.
    #[must_use]
    pub unsafe fn borrowed(start: NonNull<u8>, length: usize) -> Arc<Self> {
        assert!(start.as_ptr().addr().is_multiple_of(8), "borrowed memory is aligned to 8 bytes");
        Arc::new(Self { start, length, allocation: None })
    }

    /// Returns the length in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Returns true for memory without a byte.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns the address of the first byte in this process.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.start.as_ptr().addr() as u64
    }

    /// Returns where a range is, for the system to read from or write to. Others may reach it at the same time: there is
    /// nothing in it that one may take a reference to.
    ///
    /// # Errors
    /// Fails when the range is not within the memory.
    pub fn place(&self, offset: usize, length: usize) -> Result<*mut u8, OutOfBounds> {
        self.at(offset, length)
    }

    /// Copies bytes into the memory.
    ///
    /// # Errors
    /// Fails, and copies nothing, when they do not fit there.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<(), OutOfBounds> {
        let at = self.at(offset, bytes.len())?;
        // SAFETY: the range lies within the allocation, which is only reached by atomics.
        unsafe { copy::store(bytes, at) };
        Ok(())
    }

    /// Copies numbers in the order of bytes of this machine, and bytes behind them, into the memory, at a multiple
    /// of eight; what the bytes leave of their last eight may be cleared.
    ///
    /// # Errors
    /// Fails, and copies nothing, when they do not fit there.
    #[inline]
    pub(crate) fn write_words<const N: usize>(
        &self,
        offset: usize,
        head: &[u64; N],
        bytes: &[u8],
    ) -> Result<(), OutOfBounds> {
        let length = N * 8 + bytes.len().next_multiple_of(8);
        if !offset.is_multiple_of(8) {
            return Err(OutOfBounds { offset, length, size: self.length });
        }
        let at = self.at(offset, length)?;
        // SAFETY: the range lies within the allocation, which starts at a page and is only reached by atomics.
        unsafe { copy::store_words(head, bytes, at) };
        Ok(())
    }

    /// Has the system provide a page of the memory, whose bytes stay what they are, whatever others do with them
    /// meanwhile; an offset that is not within the memory does nothing.
    pub(crate) fn provide(&self, offset: usize) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let Ok(at) = self.at(offset & !7, 8) {
            // SAFETY: eight bytes within the allocation, aligned, to which an atomic instruction adds nothing. A
            // compiler would make a mere load of an atomic operation that changes nothing.
            unsafe { std::arch::asm!("lock add qword ptr [{}], 0", in(reg) at, options(nostack)) };
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _ = std::hint::black_box(self.fetch_add(offset & !7, std::hint::black_box(0)));
    }

    /// Copies bytes out of the memory.
    ///
    /// # Errors
    /// Fails, and copies nothing, when the range is not within it.
    pub fn read(&self, offset: usize, bytes: &mut [u8]) -> Result<(), OutOfBounds> {
        let at = self.at(offset, bytes.len())?;
        // SAFETY: as for writing.
        unsafe { copy::load(at, bytes) };
        Ok(())
    }

    /// Returns a copy of a range.
    ///
    /// # Errors
    /// Fails when the range is not within the memory.
    pub fn to_vec(&self, offset: usize, length: usize) -> Result<Vec<u8>, OutOfBounds> {
        self.at(offset, length)?;
        let mut bytes = vec![0; length];
        self.read(offset, &mut bytes)?;
        Ok(bytes)
    }

    /// Copies bytes from a place of another memory into this one.
    ///
    /// # Errors
    /// Fails, and copies nothing, when one of the ranges is not within its memory.
    pub fn copy_from(
        &self,
        offset: usize,
        (from, place): (&Self, usize),
        length: usize,
    ) -> Result<(), OutOfBounds> {
        let (to, from) = (self.at(offset, length)?, from.at(place, length)?);
        // SAFETY: both ranges lie within allocations that are only reached by atomics.
        unsafe { copy::between(from, to, length) };
        Ok(())
    }

    /// Fills a range with a byte.
    ///
    /// # Errors
    /// Fails when the range is not within the memory.
    pub fn fill(&self, offset: usize, length: usize, byte: u8) -> Result<(), OutOfBounds> {
        let at = self.at(offset, length)?;
        // SAFETY: as for writing.
        unsafe { copy::fill(at, length, byte) };
        Ok(())
    }

    /// Adds to the number of 8 bytes at an offset, in the order of bytes of this machine, in one step
    /// that no other atomic one divides. Returns the number before.
    ///
    /// # Errors
    /// Fails when the number is not within the memory, or not at a multiple of 8.
    pub fn fetch_add(&self, offset: usize, value: u64) -> Result<u64, OutOfBounds> {
        Ok(self.atomic(offset)?.fetch_add(value, Ordering::AcqRel))
    }

    /// Replaces the number of 8 bytes at an offset when it has a value, in one step. Returns the number
    /// before.
    ///
    /// # Errors
    /// Fails when the number is not within the memory, or not at a multiple of 8.
    pub fn compare_swap(&self, offset: usize, compare: u64, swap: u64) -> Result<u64, OutOfBounds> {
        let order = (Ordering::AcqRel, Ordering::Acquire);
        let found = self.atomic(offset)?.compare_exchange(compare, swap, order.0, order.1);
        Ok(found.unwrap_or_else(|found| found))
    }

    fn atomic(&self, offset: usize) -> Result<&AtomicU64, OutOfBounds> {
        if !offset.is_multiple_of(8) {
            return Err(OutOfBounds { offset, length: 8, size: self.length });
        }
        let at = self.at(offset, 8)?;
        // SAFETY: 8 bytes within the allocation, aligned since it starts at a page, and live as long as
        // self; copies that race are those of the module's first lines.
        Ok(unsafe { AtomicU64::from_ptr(at.cast()) })
    }

    /// Returns where a range starts that lies within the memory.
    fn at(&self, offset: usize, length: usize) -> Result<*mut u8, OutOfBounds> {
        let fits = offset.checked_add(length).is_some_and(|end| end <= self.length);
        if !fits {
            return Err(OutOfBounds { offset, length, size: self.length });
        }
        // SAFETY: the offset is at most the length of the allocation.
        Ok(unsafe { self.start.as_ptr().add(offset) })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some((allocation, layout)) = self.allocation {
            // SAFETY: it was allocated with this layout, and nobody else has it any more.
            unsafe { dealloc(allocation.as_ptr(), layout) };
        }
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Memory({} bytes)", self.length)
    }
}

#[cfg(test)]
mod tests;
