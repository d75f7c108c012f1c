//! Threads that take what others leave of the processors.

/// Lets the calling thread run only where nothing else wants to, if the system knows such a class.
///
/// On Linux it becomes one of `SCHED_IDLE`: whatever wakes up takes its place at once, which the lowest of the
/// ordinary priorities does not promise.
pub(super) fn only_when_idle() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the call reads the live structure, and changes nothing but how the thread is scheduled.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) };
}
