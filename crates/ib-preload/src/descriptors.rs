//! Which descriptors are ours. Asked at every read, write and close of the program, from any thread
//! and from signal handlers: a bit each, no lock.

use std::sync::atomic::{AtomicU64, Ordering};

/// Descriptors from this one on are never ours.
pub(crate) const MOST: i32 = 1 << 16;

/// Descriptors of uverbs devices and of their event files.
static VERBS: [AtomicU64; MOST as usize / 64] = [const { AtomicU64::new(0) }; MOST as usize / 64];

static OURS: [AtomicU64; MOST as usize / 64] = [const { AtomicU64::new(0) }; MOST as usize / 64];

fn place(descriptor: i32) -> Option<(&'static AtomicU64, u64)> {
    place_in(&OURS, descriptor)
}

fn place_in(bits: &'static [AtomicU64], descriptor: i32) -> Option<(&'static AtomicU64, u64)> {
    let number = usize::try_from(descriptor).ok()?;
    Some((bits.get(number / 64)?, 1 << (number % 64)))
}

/// Returns true for a descriptor of a uverbs device or of its events.
pub(crate) fn is_verbs(descriptor: i32) -> bool {
    place_in(&VERBS, descriptor).is_some_and(|(word, bit)| word.load(Ordering::Acquire) & bit != 0)
}

/// Makes a descriptor ours, as one of a uverbs device; false when its number is too high.
pub(crate) fn add_verbs(descriptor: i32) -> bool {
    let marked =
        place_in(&VERBS, descriptor).map(|(word, bit)| word.fetch_or(bit, Ordering::AcqRel));
    marked.is_some() && add(descriptor)
}

/// Returns true for a descriptor of ours.
pub(crate) fn is_ours(descriptor: i32) -> bool {
    place(descriptor).is_some_and(|(word, bit)| word.load(Ordering::Acquire) & bit != 0)
}

/// Makes a descriptor ours; false when its number is too high.
pub(crate) fn add(descriptor: i32) -> bool {
    place(descriptor).map(|(word, bit)| word.fetch_or(bit, Ordering::AcqRel)).is_some()
}

/// Makes a descriptor no longer ours.
pub(crate) fn remove(descriptor: i32) {
    for bits in [&OURS, &VERBS] {
        if let Some((word, bit)) = place_in(bits, descriptor) {
            word.fetch_and(!bit, Ordering::AcqRel);
        }
    }
}

/// Forgets all.
pub(crate) fn clear() {
    for word in OURS.iter().chain(&VERBS) {
        word.store(0, Ordering::Release);
    }
}
