//! The processors of this machine.

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
