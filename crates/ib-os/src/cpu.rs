//! The processors of this machine.

/// Returns the number of the processor that the calling thread runs on; it may run on another one when this returns.
#[must_use]
pub fn current() -> u32 {
    // SAFETY: the call takes nothing and returns a number.
    let number = unsafe { libc::sched_getcpu() };
    // It fails where the system does not know.
    u32::try_from(number).unwrap_or(0)
}

/// Returns how many processors the machine may have, those that are switched off included: at least 1.
#[must_use]
pub fn count() -> u32 {
    // SAFETY: the call takes a number and returns one.
    let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
    u32::try_from(count).unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_thread_runs_on_one_of_the_processors() {
        let count = super::count();
        assert!(super::current() < count, "{} of {count}", super::current());
        // A thread that may run on one only runs there.
        let mut set = rustix::thread::CpuSet::new();
        let own = rustix::thread::sched_getaffinity(None).expect("it is known");
        let last = (0..count as usize).rfind(|&cpu| own.is_set(cpu)).expect("there is one");
        set.set(last);
        let thread = std::thread::spawn(move || {
            rustix::thread::sched_setaffinity(None, &set).expect("it may run there");
            super::current()
        });
        assert_eq!(thread.join().expect("no panic"), last as u32);
    }
}
