//! The time that links tell: nanoseconds of a clock that nobody sets back.

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

/// Returns the milliseconds from now to a moment as `poll(2)` wants them, rounded up so that the
/// moment has come when the call returns.
#[must_use]
pub fn milliseconds_until(until: Instant) -> i32 {
    let left = until.as_nanos().saturating_sub(now().as_nanos());
    i32::try_from(left.div_ceil(1_000_000)).unwrap_or(i32::MAX)
}

/// A moment of the wall clock, in the time zone of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalTime {
    /// The year, such as 2026.
    pub year: i32,
    /// The month, 1 to 12.
    pub month: u8,
    /// The day of the month, from 1 on.
    pub day: u8,
    /// The hour, 0 to 23.
    pub hour: u8,
    /// The minute.
    pub minute: u8,
    /// The second, up to 60.
    pub second: u8,
    /// The microsecond.
    pub microsecond: u32,
}

impl LocalTime {
    /// Returns the time that it is.
    #[must_use]
    pub fn now() -> Self {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        // A clock before 1970 was never set.
        let since = since.unwrap_or_default();
        let seconds = since.as_secs() as libc::time_t;
        // SAFETY: all fields may be zero; the pointer to the name of the zone may be null.
        let mut fields: libc::tm = unsafe { std::mem::zeroed() };
        // SAFETY: the call reads the live number and writes the live structure.
        unsafe { libc::localtime_r(&raw const seconds, &raw mut fields) };
        Self {
            year: fields.tm_year + 1900,
            month: fields.tm_mon as u8 + 1,
            day: fields.tm_mday as u8,
            hour: fields.tm_hour as u8,
            minute: fields.tm_min as u8,
            second: fields.tm_sec as u8,
            microsecond: since.subsec_micros(),
        }
    }
}
