//! Open files of a process: their descriptors, and the eventfds that make them readable.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, IntoRawFd, OwnedFd};

use ib_ibsim::client::{Client, Outbox};
use ib_os::clock;
use ib_types::Instant;
use ib_umad::abi::{
    ENABLE_PKEY, REGISTER_AGENT, REGISTER_AGENT2, Registration, UNREGISTER_AGENT, USER_RMPP,
};

use super::Process;
use crate::descriptors;
use crate::engine::{Engine, FileId};
use crate::errno::Errno;

/// An open device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum OpenDevice {
    Umad(FileId),
    Issm(u64),
}

/// An open file, which may have several descriptors.
struct OpenFile {
    /// The library's own descriptor of the file's eventfd. A write to it makes all the program's
    /// descriptors of the file readable.
    event: OwnedFd,
    raised: bool,
    descriptors: usize,
}

/// State shared by the program's threads and the receiving thread.
#[derive(Default)]
pub(super) struct State {
    pub(super) engine: Engine,
    pub(super) outbox: Outbox,
    /// True if the environment variable `SIM_SET_ISSM` is set, so that the port has an SM.
    pub(super) needs_sm: bool,
    /// Time until which the receiving thread sleeps.
    pub(super) sleeps_until: Instant,
    /// The eventfd that wakes the receiving thread.
    pub(super) wake: Option<OwnedFd>,
    descriptors: BTreeMap<i32, OpenDevice>,
    files: BTreeMap<OpenDevice, OpenFile>,
    next_issm: u64,
}

impl State {
    /// Returns true if the port has an SM: the environment variable `SIM_SET_ISSM` is set, an issm device is open, or
    /// an agent is registered for requests.
    pub(super) fn is_sm(&self) -> bool {
        let has_issm = self.files.keys().any(|opened| matches!(opened, OpenDevice::Issm(_)));
        self.needs_sm || has_issm || self.engine.serves()
    }

    /// Sends queued datagrams and makes files with new messages readable. Wakes the receiving
    /// thread if datagrams remain to be sent, or if a timer expires before `sleeps_until`.
    pub(super) fn settle(&mut self, client: &Client) {
        while let Some(request) = self.engine.poll_transmit() {
            self.outbox.push(&request);
        }
        if self.outbox.flush(client).is_err() {
            self.outbox = Outbox::default();
            self.engine.shut_down();
        }
        while let Some(file) = self.engine.poll_woken() {
            if let Some(file) = self.files.get_mut(&OpenDevice::Umad(file)) {
                file.raise();
            }
        }
        let early = self.engine.poll_timeout().is_some_and(|due| due < self.sleeps_until);
        if (early || !self.outbox.is_empty())
            && let Some(wake) = &self.wake
        {
            self.sleeps_until = Instant::ZERO;
            raise(wake);
        }
    }

    /// Creates the descriptor of an open device.
    fn add(&mut self, opened: OpenDevice, flags: i32) -> Result<i32, Errno> {
        let status = flags & libc::O_NONBLOCK | flags & libc::O_CLOEXEC;
        // SAFETY: the call takes numbers only. The flags of `eventfd` have the same values as those
        // of `open`.
        let descriptor = unsafe { libc::eventfd(0, status) };
        if descriptor < 0 {
            return Err(Errno::last());
        }
        // SAFETY: the descriptor was just opened and has no other owner.
        let own = unsafe { OwnedFd::from_raw_fd(descriptor) };
        let event = descriptors::duplicate(own.as_fd())?;
        if !descriptors::add(descriptor) {
            return Err(Errno(libc::EMFILE));
        }
        self.files.insert(opened, OpenFile { event, raised: false, descriptors: 1 });
        self.descriptors.insert(descriptor, opened);
        Ok(own.into_raw_fd())
    }
}

impl OpenFile {
    /// Makes the file's descriptors readable. Each call writes to the eventfd, so that
    /// edge-triggered `epoll` reports each message.
    fn raise(&mut self) {
        self.raised = true;
        raise(&self.event);
    }

    /// Makes the file's descriptors unreadable.
    fn lower(&mut self) {
        if std::mem::take(&mut self.raised) {
            drain(&self.event);
        }
    }
}

/// Adds 1 to an eventfd.
fn raise(event: &OwnedFd) {
    let one = 1_u64;
    // SAFETY: the call reads eight live bytes. It cannot block, because the counter never reaches its maximum.
    unsafe { libc::write(event.as_raw_fd(), (&raw const one).cast(), 8) };
}

/// Resets the counter of an eventfd to 0.
pub(super) fn drain(event: &OwnedFd) {
    let mut count = 0_u64;
    // SAFETY: the call writes eight live bytes. It does not block: an open file's eventfd is read only if its counter
    // is not 0, and the eventfd of the receiving thread is non-blocking.
    unsafe { libc::read(event.as_raw_fd(), (&raw mut count).cast(), 8) };
}

/// Operations of the program on the library's descriptors. They fail with the same errors as those
/// on the kernel's devices.
impl Process {
    /// Opens the umad device.
    pub(crate) fn open_umad(&'static self, flags: i32) -> Result<i32, Errno> {
        self.connect()?;
        let mut state = self.state();
        let file = state.engine.open();
        let opened = state.add(OpenDevice::Umad(file), flags);
        if opened.is_err() {
            state.engine.close(file);
        }
        opened
    }

    /// Opens the issm device. While the device is open, IsSM of the port is set.
    pub(crate) fn open_issm(&'static self, flags: i32) -> Result<i32, Errno> {
        self.connect()?;
        let descriptor = {
            let mut state = self.state();
            state.next_issm += 1;
            let issm = OpenDevice::Issm(state.next_issm);
            state.add(issm, flags)?
        };
        self.update_is_sm();
        Ok(descriptor)
    }

    /// Reads the next message of an open umad device. Returns the number of bytes read.
    pub(crate) fn read(&self, descriptor: i32, buffer: &mut [u8]) -> Result<usize, Errno> {
        let mut state = self.state();
        let state = &mut *state;
        let Some(&OpenDevice::Umad(file)) = state.descriptors.get(&descriptor) else {
            return Err(Errno::INVALID);
        };
        let result = state.engine.read(file, buffer);
        if !state.engine.is_readable(file)
            && let Some(open) = state.files.get_mut(&OpenDevice::Umad(file))
        {
            open.lower();
        }
        result
    }

    /// Sends a message that the program has written to an open umad device.
    pub(crate) fn write(&'static self, descriptor: i32, bytes: &[u8]) -> Result<usize, Errno> {
        let client = self.connection.get().ok_or(Errno::IO)?;
        let mut state = self.state();
        let Some(&OpenDevice::Umad(file)) = state.descriptors.get(&descriptor) else {
            return Err(Errno::INVALID);
        };
        state.engine.write(clock::now(), file, bytes)?;
        state.settle(client);
        Ok(bytes.len())
    }

    /// Executes an ioctl of a umad device. `argument` has the size that the ioctl specifies.
    pub(crate) fn control(
        &'static self,
        descriptor: i32,
        request: u32,
        argument: &mut [u8],
    ) -> Result<(), Errno> {
        let result = {
            let mut state = self.state();
            let Some(&OpenDevice::Umad(file)) = state.descriptors.get(&descriptor) else {
                return Err(Errno::NOT_TTY);
            };
            control(&mut state.engine, file, request, argument)
        };
        if result.is_ok() && request != ENABLE_PKEY {
            self.update_is_sm();
        }
        result
    }

    /// Removes a descriptor that is about to be closed. If the descriptor is the file's last one,
    /// closes the file.
    pub(crate) fn closing(&'static self, descriptor: i32) {
        {
            let mut state = self.state();
            let state = &mut *state;
            descriptors::remove(descriptor);
            let Some(opened) = state.descriptors.remove(&descriptor) else { return };
            let Some(file) = state.files.get_mut(&opened) else { return };
            file.descriptors -= 1;
            if file.descriptors > 0 {
                return;
            }
            state.files.remove(&opened);
            if let OpenDevice::Umad(file) = opened {
                state.engine.close(file);
            }
        }
        self.update_is_sm();
    }

    /// Records that the descriptor `new` is a duplicate of `old`, if the library serves `old`.
    pub(crate) fn duplicated(&self, old: i32, new: i32) {
        let mut state = self.state();
        let state = &mut *state;
        let Some(&opened) = state.descriptors.get(&old) else { return };
        let Some(file) = state.files.get_mut(&opened) else { return };
        if descriptors::add(new) {
            file.descriptors += 1;
            state.descriptors.insert(new, opened);
        }
    }

    /// Returns the descriptors of umad and issm devices from `first` to `last`.
    pub(crate) fn descriptors(&self, first: i32, last: i32) -> Vec<i32> {
        self.state().descriptors.range(first..=last).map(|(&descriptor, _)| descriptor).collect()
    }
}

fn control(
    engine: &mut Engine,
    file: FileId,
    request: u32,
    argument: &mut [u8],
) -> Result<(), Errno> {
    match request {
        ENABLE_PKEY => engine.enable_p_key(file),
        UNREGISTER_AGENT => {
            let agent = argument.first_chunk().ok_or(Errno::FAULT)?;
            engine.unregister(file, u32::from_ne_bytes(*agent))
        }
        REGISTER_AGENT | REGISTER_AGENT2 => {
            let wish = if request == REGISTER_AGENT {
                Registration::from_old(argument.first_chunk().ok_or(Errno::FAULT)?)
            } else {
                Registration::from_new(argument.first_chunk().ok_or(Errno::FAULT)?)
            };
            if wish.flags & !USER_RMPP != 0 {
                // Like the kernel, the library reports in the argument which flags it supports.
                argument[12..16].copy_from_slice(&USER_RMPP.to_ne_bytes());
                return Err(Errno::INVALID);
            }
            let agent = engine.register(file, &wish)?;
            argument[..4].copy_from_slice(&agent.to_ne_bytes());
            Ok(())
        }
        _ => Err(Errno::NOT_TTY),
    }
}
