//! Registered memory, shared by the HCA and the application.
//!
//! As with hardware, the HCA reads and writes registered memory while the application runs, without a lock. A read that
//! races with a write returns a mixture of old and new bytes. Completions order the accesses of the HCA and of the
//! application.
//!
//! Because the HCA and the application access the bytes concurrently, no Rust reference to the bytes ever exists.
//! Relaxed atomic loads and stores copy the bytes in and out, with bounds checks. Copies of 256 bytes or more use the
//! processor's string instruction `rep movsb`. Miri cannot execute this instruction, so under Miri all copies use
//! atomics.
#![allow(unsafe_code, reason = "bytes shared by the HCA and the application cannot be a slice")]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

mod copy;

/// Alignment of allocated memory in bytes: a page.
const ALIGNMENT: usize = 4096;

/// Memory that the HCA may read and write at any time while it is registered.
pub struct Memory {
    start: NonNull<u8>,
    length: usize,
    /// The allocation, part of which is the page-aligned memory; `None` if another owner has allocated the memory.
    allocation: Option<(NonNull<u8>, Layout)>,
}

// SAFETY: the bytes are only accessed by atomics, and are freed when the last owner is dropped.
unsafe impl Send for Memory {}
// SAFETY: the bytes are only accessed by atomics, so concurrent copies are not data races.
unsafe impl Sync for Memory {}

/// Error: the system has no memory for an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot allocate {length} bytes of memory")]
pub struct OutOfMemory {
    /// Requested size in bytes.
    pub length: usize,
}

/// Error: a range exceeds the memory, or is not aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the range of {length} bytes at offset {offset} {}", match offset.checked_add(*length) {
    Some(end) if end <= *size => "is misaligned: expected an offset that is a multiple of 8".to_owned(),
    _ => format!("exceeds the memory of {size} bytes"),
})]
pub struct OutOfBounds {
    /// Offset of the range in bytes.
    pub offset: usize,
    /// Length of the range in bytes.
    pub length: usize,
    /// Size of the memory in bytes.
    pub size: usize,
}

impl Memory {
    /// Allocates `length` bytes of zeroed memory, aligned to a page.
    ///
    /// # Errors
    /// Fails if the system has no memory left.
    pub fn zeroed(length: usize) -> Result<Arc<Self>, OutOfMemory> {
        let failed = OutOfMemory { length };
        let size = length.max(1).checked_add(ALIGNMENT - 8).ok_or(failed)?;
        // The layout is aligned to 8 bytes only, because the allocator calls `calloc` if `malloc` guarantees the
        // alignment. `calloc` gets zeroed pages from the system without writing to them. `skipped` then aligns the
        // start of the memory to a page.
        let layout = Layout::from_size_align(size, 8).map_err(|_| failed)?;
        // SAFETY: the layout has a size above zero.
        let allocation = unsafe { alloc_zeroed(layout) };
        let allocation = NonNull::new(allocation).ok_or(failed)?;
        let skipped = allocation.as_ptr().addr().wrapping_neg() % ALIGNMENT;
        // SAFETY: at most `ALIGNMENT - 8` bytes are skipped, and that many bytes more than `length` were allocated.
        let start = unsafe { allocation.add(skipped) };
        Ok(Arc::new(Self { start, length, allocation: Some((allocation, layout)) }))
    }

    /// Wraps memory that another owner has allocated, such as a mapped file or a range that an application registers.
    ///
    /// # Panics
    /// Panics if the address is not a multiple of 8.
    ///
    /// # Safety
    /// The range must remain readable and writable until the last owner of the returned memory has dropped it. Other
    /// accesses to the range may race with those of this type. In Rust code of this process, such accesses must be
    /// atomic.
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

    /// Returns true if the memory has 0 bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns the address of the first byte in this process.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.start.as_ptr().addr() as u64
    }

    /// Returns a pointer to a range, for system calls that read or write it. The HCA may access the range at the same
    /// time, so no reference to its bytes may be created.
    ///
    /// # Errors
    /// Fails if the range exceeds the memory.
    pub fn pointer(&self, offset: usize, length: usize) -> Result<*mut u8, OutOfBounds> {
        self.at(offset, length)
    }

    /// Copies bytes into the memory.
    ///
    /// # Errors
    /// Fails, and copies nothing, if the range exceeds the memory.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<(), OutOfBounds> {
        let at = self.at(offset, bytes.len())?;
        // SAFETY: the range is within the allocation, which is only accessed by atomics.
        unsafe { copy::store(bytes, at) };
        Ok(())
    }

    /// Copies the words of `head` in native byte order, then `bytes`, into the memory. The function may write zeros
    /// after `bytes`, up to a multiple of 8 bytes.
    ///
    /// # Errors
    /// Fails, and copies nothing, if the offset is not a multiple of 8, or if the padded range exceeds the memory.
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
        // SAFETY: the range is within the allocation, which is only accessed by atomics. The start and the offset are
        // multiples of 8.
        unsafe { copy::store_words(head, bytes, at) };
        Ok(())
    }

    /// Populates the page at an offset: an atomic addition of 0 makes the system allocate the page. No byte changes,
    /// even if other threads write to the page. An offset beyond the memory is ignored.
    pub(crate) fn populate_page(&self, offset: usize) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let Ok(at) = self.at(offset & !7, 8) {
            // SAFETY: the instruction atomically adds 0 to 8 aligned bytes within the allocation. The compiler could
            // replace `fetch_add(0)` by a load, which does not populate the page.
            unsafe { std::arch::asm!("lock add qword ptr [{}], 0", in(reg) at, options(nostack)) };
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _ = std::hint::black_box(self.fetch_add(offset & !7, std::hint::black_box(0)));
    }

    /// Copies bytes out of the memory.
    ///
    /// # Errors
    /// Fails, and copies nothing, if the range exceeds the memory.
    pub fn read(&self, offset: usize, bytes: &mut [u8]) -> Result<(), OutOfBounds> {
        let at = self.at(offset, bytes.len())?;
        // SAFETY: as in `write`.
        unsafe { copy::load(at, bytes) };
        Ok(())
    }

    /// Returns a copy of a range.
    ///
    /// # Errors
    /// Fails if the range exceeds the memory.
    pub fn to_vec(&self, offset: usize, length: usize) -> Result<Vec<u8>, OutOfBounds> {
        self.at(offset, length)?;
        let mut bytes = vec![0; length];
        self.read(offset, &mut bytes)?;
        Ok(bytes)
    }

    /// Copies `length` bytes at an offset of another memory to an offset of this memory.
    ///
    /// # Errors
    /// Fails, and copies nothing, if one of the ranges exceeds its memory.
    pub fn copy_from(
        &self,
        offset: usize,
        from: &Self,
        from_offset: usize,
        length: usize,
    ) -> Result<(), OutOfBounds> {
        let (to, from) = (self.at(offset, length)?, from.at(from_offset, length)?);
        // SAFETY: both ranges lie within allocations that are only accessed by atomics.
        unsafe { copy::between(from, to, length) };
        Ok(())
    }

    /// Sets all bytes of a range to the given value.
    ///
    /// # Errors
    /// Fails if the range exceeds the memory.
    pub fn fill(&self, offset: usize, length: usize, byte: u8) -> Result<(), OutOfBounds> {
        let at = self.at(offset, length)?;
        // SAFETY: as in `write`.
        unsafe { copy::fill(at, length, byte) };
        Ok(())
    }

    /// Atomically adds a value to the 64-bit number at an offset, in native byte order. Returns the original number.
    ///
    /// # Errors
    /// Fails if the offset is not a multiple of 8, or if the 8 bytes at the offset exceed the memory.
    pub fn fetch_add(&self, offset: usize, value: u64) -> Result<u64, OutOfBounds> {
        Ok(self.atomic(offset)?.fetch_add(value, Ordering::AcqRel))
    }

    /// Atomically replaces the 64-bit number at an offset, in native byte order, if it equals `compare`. Returns the
    /// original number.
    ///
    /// # Errors
    /// Fails if the offset is not a multiple of 8, or if the 8 bytes at the offset exceed the memory.
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
        // SAFETY: the 8 bytes are within the allocation, which lives as long as `self`. They are aligned, because the
        // start and the offset are multiples of 8. Other accesses to them are atomic.
        Ok(unsafe { AtomicU64::from_ptr(at.cast()) })
    }

    /// Returns a pointer to a range within the memory.
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
            // SAFETY: the allocation has this layout, and its last owner is being dropped.
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
