//! The set of the library's own descriptors, as lock-free bit maps. Every `read`, `write` and
//! `close` of the program looks its descriptor up in this set, in any thread and in signal
//! handlers.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::errno::Errno;

/// Minimum number of a descriptor that only the library uses, unless half of the process's descriptor limit is lower.
/// Lower numbers are left to the program, which may pass them to `dup2` without having opened them.
const INTERNAL: i32 = 512;

/// Returns the minimum number of a descriptor that only the library uses: at most half of the process's descriptor
/// limit.
fn lowest_internal() -> i32 {
    // SAFETY: the call takes a number only.
    let limit = unsafe { libc::sysconf(libc::_SC_OPEN_MAX) };
    i32::try_from(limit / 2).map_or(INTERNAL, |half| half.clamp(0, INTERNAL))
}

/// Runs a closure that opens descriptors which only the library uses. While the closure runs, all numbers below
/// [`lowest_internal`] are in use.
pub(crate) fn open_internal<T>(open: impl FnOnce() -> T) -> T {
    let lowest = lowest_internal();
    let mut placeholders = Vec::new();
    loop {
        // SAFETY: the call takes numbers only.
        let descriptor = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
        if descriptor < 0 {
            break;
        }
        // SAFETY: the descriptor was just opened and has no other owner.
        placeholders.push(unsafe { OwnedFd::from_raw_fd(descriptor) });
        if descriptor >= lowest {
            placeholders.pop();
            break;
        }
    }
    open()
}

/// Duplicates a descriptor of the program for the library's own use.
///
/// # Errors
/// Fails if the process cannot open another descriptor.
pub(crate) fn duplicate(descriptor: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let lowest = lowest_internal();
    // SAFETY: the descriptor is open; the call takes numbers only.
    let copy = unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_DUPFD_CLOEXEC, lowest) };
    if copy < 0 {
        return Err(Errno::last());
    }
    // SAFETY: the descriptor was just opened and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

/// The library's own descriptors have numbers below this limit.
pub(crate) const MOST: i32 = 1 << 16;

/// Descriptors of uverbs devices and of their event files.
static VERBS: [AtomicU64; MOST as usize / 64] = [const { AtomicU64::new(0) }; MOST as usize / 64];

/// Descriptors of all devices and event files that the library serves.
static OURS: [AtomicU64; MOST as usize / 64] = [const { AtomicU64::new(0) }; MOST as usize / 64];

/// Descriptors of uverbs devices that a child of a fork has inherited. The device belongs to the parent.
static INHERITED: [AtomicU64; MOST as usize / 64] =
    [const { AtomicU64::new(0) }; MOST as usize / 64];

/// Returns true if the parent of this process has opened the descriptor as a uverbs device.
pub(crate) fn is_inherited(descriptor: i32) -> bool {
    let bit = bit_in(&INHERITED, descriptor);
    bit.is_some_and(|(word, bit)| word.load(Ordering::Acquire) & bit != 0)
}

/// Records that a descriptor is a duplicate of one that the parent of this process has opened.
pub(crate) fn inherit(descriptor: i32) {
    if let Some((word, bit)) = bit_in(&INHERITED, descriptor) {
        word.fetch_or(bit, Ordering::AcqRel);
    }
}

/// Forgets an inherited descriptor, because its number is closed or used again.
pub(crate) fn disinherit(descriptor: i32) {
    if let Some((word, bit)) = bit_in(&INHERITED, descriptor) {
        word.fetch_and(!bit, Ordering::AcqRel);
    }
}

fn bit_of(descriptor: i32) -> Option<(&'static AtomicU64, u64)> {
    bit_in(&OURS, descriptor)
}

fn bit_in(bits: &'static [AtomicU64], descriptor: i32) -> Option<(&'static AtomicU64, u64)> {
    let number = usize::try_from(descriptor).ok()?;
    Some((bits.get(number / 64)?, 1 << (number % 64)))
}

/// Returns true if the descriptor is that of a uverbs device or of one of its event files.
pub(crate) fn is_verbs(descriptor: i32) -> bool {
    bit_in(&VERBS, descriptor).is_some_and(|(word, bit)| word.load(Ordering::Acquire) & bit != 0)
}

/// Adds a descriptor of a uverbs device. Returns false if the descriptor is not below [`MOST`].
pub(crate) fn add_verbs(descriptor: i32) -> bool {
    disinherit(descriptor);
    let marked = bit_in(&VERBS, descriptor).map(|(word, bit)| word.fetch_or(bit, Ordering::AcqRel));
    marked.is_some() && add(descriptor)
}

/// Returns true if the descriptor belongs to the library.
pub(crate) fn is_ours(descriptor: i32) -> bool {
    bit_of(descriptor).is_some_and(|(word, bit)| word.load(Ordering::Acquire) & bit != 0)
}

/// Adds a descriptor. Returns false if the descriptor is not below [`MOST`].
pub(crate) fn add(descriptor: i32) -> bool {
    bit_of(descriptor).map(|(word, bit)| word.fetch_or(bit, Ordering::AcqRel)).is_some()
}

/// Removes a descriptor.
pub(crate) fn remove(descriptor: i32) {
    for bits in [&OURS, &VERBS] {
        if let Some((word, bit)) = bit_in(bits, descriptor) {
            word.fetch_and(!bit, Ordering::AcqRel);
        }
    }
}

/// Empties the set of descriptors in the child of a fork.
pub(crate) fn clear() {
    for (word, inherited) in VERBS.iter().zip(&INHERITED) {
        inherited.fetch_or(word.swap(0, Ordering::AcqRel), Ordering::AcqRel);
    }
    for word in &OURS {
        word.store(0, Ordering::Release);
    }
}
