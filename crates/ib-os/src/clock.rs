//! Reads the system's monotonic clock.

use ib_types::Instant;

/// Returns the time of the system's monotonic clock.
#[must_use]
pub fn now() -> Instant {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes only to the live structure that it is given.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    assert_eq!(result, 0, "Linux always has a monotonic clock");
    Instant::from_nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Returns the number of milliseconds until a time, as `poll(2)` expects its timeout. The number is rounded up, so that
/// the wait does not end before that time.
#[must_use]
pub fn milliseconds_until(until: Instant) -> i32 {
    let left = until.as_nanos().saturating_sub(now().as_nanos());
    i32::try_from(left.div_ceil(1_000_000)).unwrap_or(i32::MAX)
}
