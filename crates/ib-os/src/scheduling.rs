//! Scheduling of the calling thread.

use std::time::Duration;

/// Gives the calling thread the scheduling policy `SCHED_IDLE`: any other thread that becomes runnable preempts it.
/// Systems without this policy keep the default one.
pub fn only_when_idle() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the call reads the live structure, and changes only how the thread is scheduled.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) };
}

/// Returns the processor time of the calling thread, and its number of involuntary context switches.
#[must_use]
pub fn usage() -> (Duration, i64) {
    // SAFETY: all zeros are a valid value of this structure of numbers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the call writes to the live structure.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to the live structure.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    (Duration::new(time.tv_sec as u64, time.tv_nsec as u32), usage.ru_nivcsw)
}
