//! The processors of this machine, and the scheduling of the calling thread.

use std::time::Duration;

/// Returns the number of the processor on which the calling thread runs. When the function returns, the thread may
/// already run on another processor.
#[must_use]
pub fn current() -> u32 {
    // SAFETY: the call has no arguments and returns a number.
    let number = unsafe { libc::sched_getcpu() };
    // The call fails on systems that do not support it; then 0 is returned.
    u32::try_from(number).unwrap_or(0)
}

/// Returns the maximum number of processors of this machine, including those that are offline. It is at least 1.
#[must_use]
pub fn count() -> u32 {
    // SAFETY: the call takes a number and returns one.
    let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
    u32::try_from(count).unwrap_or(1).max(1)
}

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

#[cfg(test)]
mod tests {
    #[test]
    fn number_of_the_processor_is_valid() {
        let count = super::count();
        assert!(super::current() < count, "processor {} of {count}", super::current());
        // The thread runs only on the processor to which its affinity is restricted.
        let mut set = rustix::thread::CpuSet::new();
        let own = rustix::thread::sched_getaffinity(None).expect("the system reports the affinity");
        let last =
            (0..count as usize).rfind(|&cpu| own.is_set(cpu)).expect("the affinity is not empty");
        set.set(last);
        let thread = std::thread::spawn(move || {
            rustix::thread::sched_setaffinity(None, &set)
                .expect("a thread can restrict its affinity to one processor");
            super::current()
        });
        assert_eq!(thread.join().expect("the thread has not panicked"), last as u32);
    }
}
