//! The monotonic clock, which is the clock of all links.

use ib_types::Instant;

/// Returns the time of the system's monotonic clock.
#[must_use]
pub fn now() -> Instant {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes the live structure that it is given.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    assert_eq!(result, 0, "Linux always has a monotonic clock");
    Instant::from_nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Returns the milliseconds until a time, as a timeout of `poll(2)`. Rounds up, so that the time has come when the call
/// returns.
#[must_use]
pub fn milliseconds_until(until: Instant) -> i32 {
    let left = until.as_nanos().saturating_sub(now().as_nanos());
    i32::try_from(left.div_ceil(1_000_000)).unwrap_or(i32::MAX)
}
