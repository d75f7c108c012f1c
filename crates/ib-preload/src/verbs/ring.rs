//! Rings in memory that is shared with the program, in the layout of rxe's `struct rxe_queue_buf`.
//!
//! ```text
//! 0: log2_elem_size:32 index_mask:32    128: producer_index:32    256: consumer_index:32    384: elements
//! ```
//! The contents of a ring are untrusted. The library keeps its own index, the mask and the element size outside the
//! ring. The library masks every index that it reads from the ring.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ib_hca::Memory;

use super::abi::MapInfo;
use crate::errno::Errno;

/// Offset of the producer's index.
const PRODUCER: usize = 128;

/// Offset of the consumer's index.
const CONSUMER: usize = 256;

/// Offset of the first element.
const ELEMENTS: usize = 384;

/// Size of a page in bytes.
const PAGE: usize = 4096;

/// The anonymous file behind the descriptor of a context. It holds the rings of the context; each new ring is appended.
pub(super) struct RingFile {
    shared: Arc<Shared>,
    end: usize,
}

/// Part of a [`RingFile`] that its rings share.
struct Shared {
    file: OwnedFd,
    /// Sizes of the rings in bytes, by offset.
    rings: Mutex<BTreeMap<usize, usize>>,
}

impl RingFile {
    pub(super) fn new(file: OwnedFd) -> Self {
        Self { shared: Arc::new(Shared { file, rings: Mutex::default() }), end: 0 }
    }

    /// Returns true if a ring starts at the offset and has at least `length` bytes. Only such ranges can be mapped by
    /// the program.
    pub(super) fn has_ring(&self, offset: usize, length: usize) -> bool {
        self.shared.rings().get(&offset).is_some_and(|&size| length <= size)
    }
}

impl Shared {
    fn rings(&self) -> MutexGuard<'_, BTreeMap<usize, usize>> {
        self.rings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the number of elements that a ring can hold if it is created for at least `elements`
/// elements; `None` if that number is too large.
///
/// A slot of a ring is the memory for one element. The number of slots is a power of two. One slot
/// is always free, so that a full ring differs from an empty one.
pub(super) fn capacity(elements: u32) -> Option<u32> {
    let slots = elements.checked_add(1)?.checked_next_power_of_two()?;
    Some(slots.max(2) - 1)
}

/// A ring in memory that the library shares with the program.
pub(super) struct Ring {
    file: Arc<Shared>,
    memory: Arc<Memory>,
    start: NonNull<u8>,
    info: MapInfo,
    mask: u32,
    log2: u32,
    /// Index of the next element that the library reads or writes.
    next: u32,
    /// Index of the oldest element that the library has not released. Until the release, the program
    /// must not reuse its slot.
    released: u32,
}

// SAFETY: the mapping belongs to the ring, and is accessed through `Memory` and atomics only.
unsafe impl Send for Ring {}

impl Ring {
    /// Creates a ring at the end of the file. The ring has room for at least `elements` elements of
    /// `element` bytes.
    ///
    /// # Errors
    /// Fails with `EINVAL` if the ring would be too large, and with `ENOMEM` if the system has not
    /// enough memory.
    pub(super) fn create(
        file: &mut RingFile,
        elements: u32,
        element: usize,
    ) -> Result<Self, Errno> {
        let slots = capacity(elements).ok_or(Errno::INVALID)? + 1;
        let log2 = element.next_power_of_two().trailing_zeros();
        let size = (ELEMENTS + ((slots as usize) << log2)).next_multiple_of(PAGE);
        let offset = file.end;
        let end = offset.checked_add(size).ok_or(Errno::NO_MEMORY)?;
        let descriptor = file.shared.file.as_raw_fd();
        let length = libc::off_t::try_from(end).map_err(|_| Errno::NO_MEMORY)?;
        // SAFETY: the call takes numbers only.
        if unsafe { libc::ftruncate(descriptor, length) } != 0 {
            return Err(Errno::NO_MEMORY);
        }
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses the address, so the mapping replaces no other one. The file
        // was just enlarged to cover the mapped range.
        let mapped = unsafe {
            let none = std::ptr::null_mut();
            libc::mmap(none, size, access, libc::MAP_SHARED, descriptor, offset as libc::off_t)
        };
        let start = NonNull::new(mapped.cast::<u8>())
            .filter(|_| mapped != libc::MAP_FAILED)
            .ok_or(Errno::NO_MEMORY)?;
        file.end = end;
        file.shared.rings().insert(offset, size);
        // SAFETY: the mapping lives until the ring is dropped, and no copy of `memory` outlives the
        // ring.
        let memory = unsafe { Memory::borrowed(start, size) };
        let info = MapInfo { offset: offset as u64, size: size as u32, pad: 0 };
        let (file, mask) = (Arc::clone(&file.shared), slots - 1);
        let ring = Self { file, memory, start, info, mask, log2, next: 0, released: 0 };
        ring.index(0).store(log2, Ordering::Relaxed);
        ring.index(4).store(mask, Ordering::Relaxed);
        Ok(ring)
    }

    /// Returns the offset and the size of the ring in the file.
    pub(super) const fn info(&self) -> MapInfo {
        self.info
    }

    /// Returns the size of an element in bytes.
    pub(super) const fn element_size(&self) -> usize {
        1 << self.log2
    }

    /// Returns the maximum number of elements in the ring.
    pub(super) const fn capacity(&self) -> u32 {
        self.mask
    }

    /// Copies the next element that the program has put in, without taking it. Returns false if the
    /// ring is empty.
    pub(super) fn peek(&self, buffer: &mut Vec<u8>) -> bool {
        if self.index(PRODUCER).load(Ordering::Acquire) & self.mask == self.next {
            return false;
        }
        buffer.resize(self.element_size(), 0);
        self.memory.read(self.offset(self.next), buffer).is_ok()
    }

    /// Takes the element that the last [`Self::peek`] has copied.
    pub(super) const fn advance(&mut self) {
        self.next = (self.next + 1) & self.mask;
    }

    /// Releases the oldest taken element, so that the program can reuse its slot.
    pub(super) fn release(&mut self) {
        if self.released != self.next {
            self.released = (self.released + 1) & self.mask;
            self.index(CONSUMER).store(self.released, Ordering::Release);
        }
    }

    /// Releases the taken elements, except for the `count` elements that were taken last.
    pub(super) fn release_all_but(&mut self, count: usize) {
        let pending = (count as u32).min(self.next.wrapping_sub(self.released) & self.mask);
        self.released = self.next.wrapping_sub(pending) & self.mask;
        self.index(CONSUMER).store(self.released, Ordering::Release);
    }

    /// Drops all elements that the program has put in, and releases their slots.
    pub(super) fn clear(&mut self) {
        self.next = self.index(PRODUCER).load(Ordering::Acquire) & self.mask;
        self.release_all_but(0);
    }

    /// Puts an element into the ring for the program. Returns false if the ring is full or the
    /// element is too long.
    pub(super) fn push(&mut self, element: &[u8]) -> bool {
        let next = (self.next + 1) & self.mask;
        if self.index(CONSUMER).load(Ordering::Acquire) & self.mask == next
            || element.len() > self.element_size()
        {
            return false;
        }
        if self.memory.write(self.offset(self.next), element).is_err() {
            return false;
        }
        self.next = next;
        self.index(PRODUCER).store(next, Ordering::Release);
        true
    }

    /// Returns the number of elements that have been pushed and that the program has not consumed.
    pub(super) fn unread(&self) -> u32 {
        self.next.wrapping_sub(self.index(CONSUMER).load(Ordering::Acquire)) & self.mask
    }

    /// Returns the number of elements that the program has put in and whose slots are not released.
    pub(super) fn posted(&self) -> u32 {
        self.index(PRODUCER).load(Ordering::Acquire).wrapping_sub(self.released) & self.mask
    }

    /// Moves the elements that the program has not consumed from the ring `old` to this new ring.
    ///
    /// # Errors
    /// Fails with `EINVAL` if the elements do not fit.
    pub(super) fn take_unread(&mut self, old: &Self) -> Result<(), Errno> {
        let count = old.unread();
        self.copy(old, old.next.wrapping_sub(count), count)?;
        self.next = count;
        Ok(())
    }

    /// Moves elements from the ring `old` to this new ring: those that the program has put in and whose slots are not
    /// released.
    ///
    /// # Errors
    /// Fails with `EINVAL` if the elements do not fit.
    pub(super) fn take_posted(&mut self, old: &Self) -> Result<(), Errno> {
        let count = old.posted();
        self.copy(old, old.released, count)?;
        // The program may have moved its index back, behind elements that the library has taken.
        self.next = (old.next.wrapping_sub(old.released) & old.mask).min(count);
        Ok(())
    }

    /// Copies `count` elements of the ring `old`, from index `first` on, to the start of this ring. Sets the producer's
    /// index to `count`.
    fn copy(&self, old: &Self, first: u32, count: u32) -> Result<(), Errno> {
        if count > self.mask || self.log2 != old.log2 {
            return Err(Errno::INVALID);
        }
        for index in 0..count {
            let from = old.offset(first.wrapping_add(index) & old.mask);
            let size = self.element_size();
            let copied = self.memory.copy_from(self.offset(index), &old.memory, from, size);
            copied.map_err(|_| Errno::INVALID)?;
        }
        self.index(PRODUCER).store(count, Ordering::Release);
        Ok(())
    }

    fn offset(&self, index: u32) -> usize {
        ELEMENTS + ((index as usize) << self.log2)
    }

    /// Returns the 32-bit number at an offset of the ring's header.
    fn index(&self, offset: usize) -> &AtomicU32 {
        let pointer = self.memory.pointer(offset, 4).expect("the header is within the ring");
        // SAFETY: the four bytes are aligned, within the mapping, and live as long as the ring. The
        // program accesses them by atomic operations, too.
        unsafe { AtomicU32::from_ptr(pointer.cast()) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let (offset, size) = (self.info.offset, self.info.size);
        self.file.rings().remove(&(offset as usize));
        let punch = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: the mapping was made in `create` and nothing else uses it. The program has a
        // mapping of its own. The second call frees the pages of the ring. If it fails, the pages are freed when the
        // context is closed.
        unsafe {
            libc::munmap(self.start.as_ptr().cast(), size as usize);
            libc::fallocate(self.file.file.as_raw_fd(), punch, offset as i64, size.into());
        }
    }
}

#[cfg(test)]
mod tests;
