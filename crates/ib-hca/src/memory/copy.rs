//! Copies into and out of memory that other threads access at the same time.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Copies of at least this many bytes use `rep movsb`. Shorter copies are faster by loads and stores of 8 bytes.
const LONG: usize = 256;

/// Splits a range into leading bytes, aligned words of 8 bytes, and trailing bytes. Returns the number of leading bytes
/// and the number of words.
fn split(at: *const u8, length: usize) -> (usize, usize) {
    if cfg!(miri) {
        // Miri reports atomics of different sizes at one address as a data race, so only bytes are used.
        return (length, 0);
    }
    let before = (at.addr().wrapping_neg() % 8).min(length);
    (before, (length - before) / 8)
}

/// # Safety
/// The byte is allocated and only accessed by atomics.
unsafe fn byte<'a>(at: *mut u8) -> &'a AtomicU8 {
    // SAFETY: guaranteed by the caller.
    unsafe { AtomicU8::from_ptr(at) }
}

/// # Safety
/// The 8 bytes are allocated, aligned, and only accessed by atomics.
unsafe fn word<'a>(at: *mut u8) -> &'a AtomicU64 {
    // SAFETY: guaranteed by the caller.
    unsafe { AtomicU64::from_ptr(at.cast()) }
}

/// Copies bytes with the processor's instruction `rep movsb`.
///
/// # Safety
/// `length` bytes are allocated at both addresses. During the call, no other code uses a reference to the written
/// bytes. The direction flag is clear, as Rust guarantees for `asm!`.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
unsafe fn copy_bytes(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: the caller has checked both ranges.
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") length => _,
            inout("rsi") from => _,
            inout("rdi") to => _,
            options(nostack, preserves_flags)
        );
    }
}

/// Copies bytes into shared memory.
///
/// # Safety
/// `bytes.len()` bytes are allocated at `to`, and only atomics and this module access them.
pub(super) unsafe fn store(bytes: &[u8], to: *mut u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if bytes.len() >= LONG {
        // SAFETY: the instruction reads the slice and writes the same number of bytes, all of which are allocated. In
        // Rust's memory model, the instruction counts as a sequence of atomic stores of bytes.
        unsafe { copy_bytes(bytes.as_ptr(), to, bytes.len()) };
        return;
    }
    let (before, words) = split(to, bytes.len());
    let (first, rest) = bytes.split_at(before);
    let (middle, last) = rest.split_at(words * 8);
    // SAFETY: all offsets are within the range given by the caller, and words are aligned.
    unsafe {
        for (at, value) in first.iter().enumerate() {
            byte(to.add(at)).store(*value, Ordering::Relaxed);
        }
        let to = to.add(before);
        for (at, value) in middle.chunks_exact(8).enumerate() {
            let value = u64::from_ne_bytes(value.try_into().expect("a chunk has 8 bytes"));
            word(to.add(at * 8)).store(value, Ordering::Relaxed);
        }
        let to = to.add(words * 8);
        for (at, value) in last.iter().enumerate() {
            byte(to.add(at)).store(*value, Ordering::Relaxed);
        }
    }
}

/// Copies the words of `head`, then `bytes`, into shared memory. The function may write zeros after `bytes`, up to a
/// multiple of 8 bytes.
///
/// # Safety
/// `to` is a multiple of eight. The bytes that the function writes there are allocated, and only atomics and this
/// module access them.
#[inline]
pub(super) unsafe fn store_words<const N: usize>(head: &[u64; N], bytes: &[u8], to: *mut u8) {
    // SAFETY: all offsets are within the range given by the caller, and words are aligned.
    unsafe {
        for (at, value) in head.iter().enumerate() {
            word(to.add(at * 8)).store(*value, Ordering::Relaxed);
        }
        let to = to.add(N * 8);
        if bytes.len() >= LONG {
            return store(bytes, to);
        }
        // Four words per iteration, because compilers do not unroll loops of atomic stores.
        let (fours, behind) = bytes.as_chunks::<32>();
        for (at, four) in fours.iter().enumerate() {
            let (words, _) = four.as_chunks::<8>();
            word(to.add(at * 32)).store(u64::from_ne_bytes(words[0]), Ordering::Relaxed);
            word(to.add(at * 32 + 8)).store(u64::from_ne_bytes(words[1]), Ordering::Relaxed);
            word(to.add(at * 32 + 16)).store(u64::from_ne_bytes(words[2]), Ordering::Relaxed);
            word(to.add(at * 32 + 24)).store(u64::from_ne_bytes(words[3]), Ordering::Relaxed);
        }
        let to = to.add(fours.len() * 32);
        let (words, rest) = behind.as_chunks::<8>();
        for (at, value) in words.iter().enumerate() {
            word(to.add(at * 8)).store(u64::from_ne_bytes(*value), Ordering::Relaxed);
        }
        let end = words.len() * 8;
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            word(to.add(end)).store(u64::from_ne_bytes(last), Ordering::Relaxed);
        }
    }
}

/// Copies bytes out of shared memory.
///
/// # Safety
/// `bytes.len()` bytes are allocated at `from`, and only atomics and this module access them.
pub(super) unsafe fn load(from: *mut u8, bytes: &mut [u8]) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if bytes.len() >= LONG {
        // SAFETY: as in `store`, but the instruction counts as a sequence of atomic loads of bytes.
        unsafe { copy_bytes(from, bytes.as_mut_ptr(), bytes.len()) };
        return;
    }
    let (before, words) = split(from, bytes.len());
    let (first, rest) = bytes.split_at_mut(before);
    let (middle, last) = rest.split_at_mut(words * 8);
    // SAFETY: as in `store`.
    unsafe {
        for (at, value) in first.iter_mut().enumerate() {
            *value = byte(from.add(at)).load(Ordering::Relaxed);
        }
        let from = from.add(before);
        for (at, value) in middle.chunks_exact_mut(8).enumerate() {
            let loaded = word(from.add(at * 8)).load(Ordering::Relaxed);
            value.copy_from_slice(&loaded.to_ne_bytes());
        }
        let from = from.add(words * 8);
        for (at, value) in last.iter_mut().enumerate() {
            *value = byte(from.add(at)).load(Ordering::Relaxed);
        }
    }
}

/// Sets `length` bytes of shared memory to the given value.
///
/// # Safety
/// `length` bytes are allocated at `to`, and only atomics and this module access them.
pub(super) unsafe fn fill(to: *mut u8, length: usize, value: u8) {
    let bytes = [value; LONG];
    let mut done = 0;
    while done < length {
        let part = (length - done).min(LONG);
        // SAFETY: the part is within the range given by the caller.
        unsafe { store(&bytes[..part], to.add(done)) };
        done += part;
    }
}

/// Copies bytes between two shared memories, or within one. Within one memory, the ranges must not overlap unless `to`
/// is before `from`.
///
/// # Safety
/// `length` bytes are allocated at `from` and at `to`, and only atomics and this module access them.
pub(super) unsafe fn between(from: *mut u8, to: *mut u8, length: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if length >= LONG {
        // SAFETY: as in `store`; both ranges are allocated.
        unsafe { copy_bytes(from, to, length) };
        return;
    }
    let mut part = [0; LONG];
    let mut done = 0;
    while done < length {
        let part = &mut part[..(length - done).min(LONG)];
        // SAFETY: the parts are within the ranges given by the caller.
        unsafe {
            load(from.add(done), part);
            store(part, to.add(done));
        }
        done += part.len();
    }
}
