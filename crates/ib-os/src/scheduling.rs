//! Scheduling policy and processor time of the calling thread.

use std::time::Duration;

/// Gives the calling thread the scheduling policy `SCHED_IDLE`, with which any other runnable thread preempts it. If
/// the system does not support the policy, the default policy remains.
pub fn only_when_idle() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the call reads the live structure, and changes only how the calling thread is scheduled.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) };
}

/// Returns the processor time that the calling thread has used, and the number of its involuntary context switches.
#[must_use]
pub fn usage() -> (Duration, i64) {
    // SAFETY: the structure consists of numbers, so all bits zero are a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the call writes to the live structure.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to the live structure.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    (Duration::new(time.tv_sec as u64, time.tv_nsec as u32), usage.ru_nivcsw)
}
