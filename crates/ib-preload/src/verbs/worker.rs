//! Worker thread of the uverbs device: handles packets, timers and completions while the program
//! polls its rings or sleeps.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ib_os::clock;
use ib_types::Instant;

use super::{State, Verbs, adapter, print};
use crate::errno::Errno;
use crate::process;

/// Starts the worker thread.
pub(super) fn start(verbs: &'static Verbs, state: &mut State) -> Result<(), Errno> {
    // SAFETY: the call takes numbers only.
    let wake = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    if wake < 0 {
        return Err(Errno::last());
    }
    // SAFETY: the descriptor was just opened and has no other owner.
    let wake = unsafe { OwnedFd::from_raw_fd(wake) };
    let own = wake.try_clone().map_err(|_| Errno::last())?;
    state.wake = Some(wake);
    let generation = state.generation;
    process::spawn("uverbs", move || run(verbs, generation, &own))
}

fn run(verbs: &Verbs, generation: u64, wake: &OwnedFd) {
    let mut polls = 0;
    while let Some(pause) = turns(verbs, generation, &mut polls) {
        let rang = match pause {
            Pause::Nap => wait([-1, -1], wake, clock::now() + NAP),
            Pause::Sleep(until, link) => wait(link, wake, until),
        };
        verbs.is_worker_waiting.store(false, Ordering::Release);
        let mut state = lock(verbs);
        state.sleeps_until = Instant::ZERO;
        state.is_napping = false;
        if state.generation != generation {
            return;
        }
        let Some(adapter) = &mut state.adapter else { return };
        if let Err(error) = adapter.device.end_wait(rang) {
            return fail(&mut state, &error.to_string());
        }
    }
}

/// While threads of the program poll CQs, the worker pauses for this time. Meanwhile, only these
/// threads send and receive packets.
const NAP: Duration = Duration::from_micros(100);

/// If no thread has polled a CQ for this time, the worker assumes that no thread is polling.
const RECENT: Duration = Duration::from_micros(20);

/// Pause of the worker thread when all queues of the device have been processed.
enum Pause {
    /// The worker sleeps for [`NAP`], and packets do not wake it, because threads of the program are
    /// polling CQs.
    Nap,
    /// The worker sleeps until this time, or until one of these descriptors of the HCA's link is
    /// readable.
    Sleep(Instant, [i32; 2]),
}

/// Processes the queues of the device until there is nothing to do. Returns the pause that has to
/// follow; `None` if the device is closed.
fn turns(verbs: &Verbs, generation: u64, polls: &mut u64) -> Option<Pause> {
    loop {
        let mut state = lock(verbs);
        let state = &mut *state;
        if state.generation != generation {
            return None;
        }
        let adapter = state.adapter.as_mut()?;
        match adapter.turn(&mut state.objects) {
            Ok(true) => continue,
            Ok(false) => {}
            Err(error) => {
                fail(state, &error.to_string());
                return None;
            }
        }
        let is_polled = std::mem::replace(polls, state.polls) != state.polls
            && clock::now().since(state.polled) < RECENT;
        let is_awaited =
            state.objects.cqs.iter_mut().any(|(_, _, cq)| cq.is_armed || cq.is_armed_solicited);
        if is_polled && !is_awaited {
            state.is_napping = true;
            verbs.is_worker_waiting.store(true, Ordering::Relaxed);
            return Some(Pause::Nap);
        }
        if let Some(until) = adapter.device.begin_wait() {
            state.sleeps_until = until;
            verbs.is_worker_waiting.store(true, Ordering::Relaxed);
            return Some(Pause::Sleep(until, adapter.descriptors()));
        }
    }
}

/// Locks the state. Threads of the program that wait for the lock get it first.
fn lock(verbs: &Verbs) -> std::sync::MutexGuard<'_, State> {
    while verbs.waiting.load(Ordering::Relaxed) > 0 {
        std::thread::yield_now();
    }
    verbs.state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Handles an error of the link: prints it, flushes all queue pairs, and reports to all contexts and IDs of `rdma_cm`
/// that the device has failed. The failed device remains until the program has closed all its files, so that the
/// program can destroy its objects.
fn fail(state: &mut State, message: &str) {
    print(message);
    if let Some(adapter) = &mut state.adapter {
        adapter.has_failed = true;
        adapter.fail_all(&mut state.objects);
    }
    adapter::report_fatal(&mut state.objects);
}

/// Waits until the link or `wake` is readable, or the time `until` has come. Returns which
/// descriptors of the link are readable.
fn wait(link: [i32; 2], wake: &OwnedFd, until: Instant) -> [bool; 2] {
    let watched = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut polled = [watched(link[0]), watched(link[1]), watched(wake.as_raw_fd())];
    let left = until.since(clock::now());
    let left = libc::timespec {
        tv_sec: left.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: left.subsec_nanos().into(),
    };
    let limit = if until == Instant::NEVER { std::ptr::null() } else { &raw const left };
    // SAFETY: the call reads and writes three live structures, and reads the time limit. The result
    // is ignored, because the queues of the device are processed next in any case.
    unsafe { libc::ppoll(polled.as_mut_ptr(), 3, limit, std::ptr::null()) };
    if polled[2].revents != 0 {
        let mut count = 0_u64;
        // SAFETY: the call writes eight live bytes; the descriptor does not block.
        unsafe { libc::read(wake.as_raw_fd(), (&raw mut count).cast(), 8) };
    }
    [polled[0].revents != 0, polled[1].revents != 0]
}
