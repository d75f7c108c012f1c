//! The receiving thread of the umad device: handles received datagrams and timers.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;

use ib_ibsim::client::{Client, Inbox};
use ib_os::clock;
use ib_types::Instant;

use super::Process;
use super::files::drain;
use crate::errno::Errno;

/// Starts the receiving thread.
pub(super) fn start(process: &'static Process, client: Arc<Client>) -> Result<(), Errno> {
    // SAFETY: the call takes numbers only.
    let wake = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    if wake < 0 {
        return Err(Errno::last());
    }
    // SAFETY: the descriptor was just opened and has no other owner.
    process.state().wake = Some(unsafe { OwnedFd::from_raw_fd(wake) });
    super::spawn("umad", move || run(process, &client, wake))
}

fn run(process: &'static Process, client: &Client, wake: i32) {
    let mut inbox = Inbox::new();
    loop {
        let (until, writes) = {
            let mut state = process.state();
            state.settle(client);
            state.sleeps_until = state.engine.poll_timeout().unwrap_or(Instant::NEVER);
            (state.sleeps_until, !state.outbox.is_empty())
        };
        wait(client, wake, until, writes);
        let mut state = process.state();
        if let Some(wake) = &state.wake {
            drain(wake);
        }
        let now = clock::now();
        loop {
            match inbox.next(client) {
                Ok(Some(request)) => state.engine.handle(now, &request),
                Ok(None) => break,
                Err(_) => {
                    state.engine.shut_down();
                    state.settle(client);
                    return;
                }
            }
        }
        state.engine.handle_timeout(now);
    }
}

/// Waits until the socket is readable (or writable, if `writes` is true), the time `until` has
/// come, or a thread of the program writes to `wake`.
fn wait(client: &Client, wake: i32, until: Instant, writes: bool) {
    let events = libc::POLLIN | if writes { libc::POLLOUT } else { 0 };
    let mut polled = [
        libc::pollfd { fd: client.data().as_raw_fd(), events, revents: 0 },
        libc::pollfd { fd: wake, events: libc::POLLIN, revents: 0 },
    ];
    let limit = match until {
        Instant::NEVER => -1,
        until => clock::milliseconds_until(until),
    };
    // SAFETY: the call reads and writes two live structures. The result is ignored, because the
    // caller tries to receive in any case.
    unsafe { libc::poll(polled.as_mut_ptr(), 2, limit) };
}
