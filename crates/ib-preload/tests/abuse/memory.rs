//! Memory of the misbehaving program: an arena with inaccessible neighbours, and mapped rings.

use std::os::fd::RawFd;

/// Size of a page in bytes.
const PAGE: usize = 4096;

/// Number of writable pages of the arena.
const PAGES: usize = 16;

/// Pages in this order: inaccessible, writable, read-only, inaccessible.
pub(crate) struct Arena {
    start: usize,
}

impl Arena {
    pub(crate) fn new() -> Self {
        let (size, flags) = ((PAGES + 3) * PAGE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: the kernel chooses the addresses of a new mapping. The protection of two parts of it is changed.
        let start = unsafe {
            let start = libc::mmap(std::ptr::null_mut(), size, libc::PROT_NONE, flags, -1, 0);
            assert_ne!(start, libc::MAP_FAILED, "the arena can be mapped");
            let access = libc::PROT_READ | libc::PROT_WRITE;
            assert_eq!(libc::mprotect(start.byte_add(PAGE), PAGES * PAGE, access), 0);
            let read_only = start.byte_add((PAGES + 1) * PAGE);
            assert_eq!(libc::mprotect(read_only, PAGE, libc::PROT_READ), 0);
            start.addr()
        };
        Self { start }
    }

    /// Returns the address of the first writable byte.
    pub(crate) const fn writable(&self) -> u64 {
        (self.start + PAGE) as u64
    }

    /// Returns the number of writable bytes.
    pub(crate) const fn length(&self) -> u64 {
        (PAGES * PAGE) as u64
    }

    /// Returns an address that `choice` selects: in the arena, or not mapped. The device may write to the arena.
    pub(crate) fn pointer(&self, choice: u8) -> u64 {
        let end = self.writable() + self.length();
        match choice % 8 {
            0 => end - 4,
            1 => end,
            2 => end + PAGE as u64,
            3 => [0, 1, u64::MAX, 1 << 47, 1 << 63, u64::MAX - 7][usize::from(choice / 8) % 6],
            _ => self.writable() + u64::from(choice) * 16,
        }
    }

    /// Clears the first page. A command at an address of [`Self::pointer`] then has a size field of zero.
    pub(crate) fn clear(&self) {
        for place in 0..PAGE / 4 {
            let word = self.writable() as usize + place * 4;
            // SAFETY: the word is aligned and within the arena, which is never unmapped before `self` is dropped.
            unsafe { std::sync::atomic::AtomicU32::from_ptr(word as *mut u32) }
                .store(0, std::sync::atomic::Ordering::Relaxed);
        }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `new`. The device has closed the regions in it.
        unsafe { libc::munmap(self.start as *mut libc::c_void, (PAGES + 3) * PAGE) };
    }
}

/// A mapped ring.
#[derive(Clone, Copy)]
pub(crate) struct Mapping {
    pub(crate) start: usize,
    pub(crate) size: usize,
    /// Binary logarithm of the element size.
    pub(crate) log2: u32,
}

impl Mapping {
    /// Maps a part of the device file. Returns `None` if the range is empty or cannot be mapped.
    pub(crate) fn of_file(device: RawFd, offset: u64, size: usize) -> Option<Self> {
        let offset = libc::off_t::try_from(offset).ok()?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses the addresses of a new mapping.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), size, access, libc::MAP_SHARED, device, offset)
        };
        if size == 0 || start == libc::MAP_FAILED {
            return None;
        }
        // SAFETY: the first word of a ring is mapped.
        let log2 = unsafe { std::sync::atomic::AtomicU32::from_ptr(start.cast()) };
        let log2 = log2.load(std::sync::atomic::Ordering::Relaxed);
        Some(Self { start: start.addr(), size, log2 })
    }

    pub(crate) fn unmap(&self) {
        // SAFETY: the mapping was made in `of_file`, and nothing uses it afterwards.
        unsafe { libc::munmap(self.start as *mut libc::c_void, self.size) };
    }
}
