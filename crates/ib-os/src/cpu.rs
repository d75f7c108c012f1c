//! The processors of this machine.

/// Returns the number of the processor that the calling thread runs on; it may run on another one when this returns.
#[must_use]
pub fn current() -> u32 {
    // SAFETY: the call has no arguments and returns a number.
    let number = unsafe { libc::sched_getcpu() };
    // The call fails if the system does not support it.
    u32::try_from(number).unwrap_or(0)
}

/// Returns the maximum number of processors of the machine, including offline ones; at least 1.
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
        assert!(super::current() < count, "{} of {count}", super::current());
        // A thread with an affinity to one processor runs there only.
        let mut set = rustix::thread::CpuSet::new();
        let own = rustix::thread::sched_getaffinity(None).expect("the system reports the affinity");
        let last =
            (0..count as usize).rfind(|&cpu| own.is_set(cpu)).expect("the affinity is not empty");
        set.set(last);
        let thread = std::thread::spawn(move || {
            rustix::thread::sched_setaffinity(None, &set)
                .expect("the processor is in the affinity");
            super::current()
        });
        assert_eq!(thread.join().expect("no panic"), last as u32);
    }
}
