//! The open files of a process: descriptors, what they stand for, and how they become readable.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

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

/// What a descriptor stands for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Opened {
    Umad(FileId),
    Issm(u64),
}

/// An open file, which may have several descriptors.
struct OpenFile {
    /// An own descriptor of the event that makes all of them readable.
    event: OwnedFd,
    raised: bool,
    descriptors: usize,
}

/// Everything that is shared by the program's threads and the one that receives.
#[derive(Default)]
pub(super) struct State {
    pub(super) engine: Engine,
    pub(super) outbox: Outbox,
    /// Whether the environment asks for the duty of a subnet manager.
    pub(super) needs_sm: bool,
    /// Until when the receiving thread sleeps, and what wakes it.
    pub(super) sleeps_until: Instant,
    pub(super) wake: Option<OwnedFd>,
    descriptors: BTreeMap<i32, Opened>,
    files: BTreeMap<Opened, OpenFile>,
    next_issm: u64,
}

impl State {
    /// Returns whether the simulator should know of a subnet manager's duty.
    pub(super) fn is_sm(&self) -> bool {
        let has_issm = self.files.keys().any(|opened| matches!(opened, Opened::Issm(_)));
        self.needs_sm || has_issm || self.engine.serves()
    }

    /// Sends what the engine wants to send, tells the files that have something to read, and sees to
    /// it that the receiving thread wakes in time.
    pub(super) fn settle(&mut self, client: &Client) {
        while let Some(request) = self.engine.poll_transmit() {
            self.outbox.push(&request);
        }
        if self.outbox.flush(client).is_err() {
            self.outbox = Outbox::default();
            self.engine.shut_down();
        }
        while let Some(file) = self.engine.poll_woken() {
            if let Some(file) = self.files.get_mut(&Opened::Umad(file)) {
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

    /// Adds a descriptor of something that is open or opens now.
    fn add(&mut self, opened: Opened, flags: i32) -> Result<i32, Errno> {
        let status = flags & libc::O_NONBLOCK | flags & libc::O_CLOEXEC;
        // SAFETY: the call takes numbers only; the flags have the values of `open`.
        let descriptor = unsafe { libc::eventfd(0, status) };
        if descriptor < 0 {
            return Err(Errno::last());
        }
        // SAFETY: the descriptor is open; the copy belongs to nobody else.
        let copy = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 0) };
        if copy < 0 || !descriptors::add(descriptor) {
            let error = if copy < 0 { Errno::last() } else { Errno(libc::EMFILE) };
            // SAFETY: nobody knows the descriptor yet.
            unsafe { libc::close(descriptor) };
            return Err(error);
        }
        // SAFETY: the copy was just made and has no other owner.
        let event = unsafe { OwnedFd::from_raw_fd(copy) };
        self.files.insert(opened, OpenFile { event, raised: false, descriptors: 1 });
        self.descriptors.insert(descriptor, opened);
        Ok(descriptor)
    }
}

impl OpenFile {
    /// Makes the descriptors readable; again, so that edge-triggered waiting sees it, too.
    fn raise(&mut self) {
        self.raised = true;
        raise(&self.event);
    }

    /// Makes the descriptors no longer readable.
    fn lower(&mut self) {
        if std::mem::take(&mut self.raised) {
            drain(&self.event);
        }
    }
}

/// Adds one to an event.
fn raise(event: &OwnedFd) {
    let one = 1_u64;
    // SAFETY: the call reads the eight live bytes. It cannot block: nobody counts so far.
    unsafe { libc::write(event.as_raw_fd(), (&raw const one).cast(), 8) };
}

/// Takes everything from an event that was raised.
pub(super) fn drain(event: &OwnedFd) {
    let mut count = 0_u64;
    // SAFETY: the call writes the eight live bytes. It is only made when the event was raised.
    unsafe { libc::read(event.as_raw_fd(), (&raw mut count).cast(), 8) };
}

/// What a program does with our descriptors. All of it fails with the errors of the kernel's devices.
impl Process {
    /// Opens the umad device.
    pub(crate) fn open_umad(&'static self, flags: i32) -> Result<i32, Errno> {
        self.connect()?;
        let mut state = self.state();
        let file = state.engine.open();
        let opened = state.add(Opened::Umad(file), flags);
        if opened.is_err() {
            state.engine.close(file);
        }
        opened
    }

    /// Opens the issm device, which makes the port one of a subnet manager.
    pub(crate) fn open_issm(&'static self, flags: i32) -> Result<i32, Errno> {
        self.connect()?;
        let descriptor = {
            let mut state = self.state();
            state.next_issm += 1;
            let issm = Opened::Issm(state.next_issm);
            state.add(issm, flags)?
        };
        self.update_duty();
        Ok(descriptor)
    }

    /// Reads a message.
    pub(crate) fn read(&self, descriptor: i32, buffer: &mut [u8]) -> Result<usize, Errno> {
        let mut state = self.state();
        let state = &mut *state;
        let Some(&Opened::Umad(file)) = state.descriptors.get(&descriptor) else {
            return Err(Errno::INVALID);
        };
        let result = state.engine.read(file, buffer);
        if !state.engine.is_readable(file)
            && let Some(open) = state.files.get_mut(&Opened::Umad(file))
        {
            open.lower();
        }
        result
    }

    /// Writes a message.
    pub(crate) fn write(&'static self, descriptor: i32, bytes: &[u8]) -> Result<usize, Errno> {
        let client = self.connection.get().ok_or(Errno::IO)?;
        let mut state = self.state();
        let Some(&Opened::Umad(file)) = state.descriptors.get(&descriptor) else {
            return Err(Errno::INVALID);
        };
        state.engine.write(clock::now(), file, bytes)?;
        state.settle(client);
        Ok(bytes.len())
    }

    /// Does an ioctl of a umad device; `argument` is as long as the ioctl says.
    pub(crate) fn control(
        &'static self,
        descriptor: i32,
        request: u32,
        argument: &mut [u8],
    ) -> Result<(), Errno> {
        let result = {
            let mut state = self.state();
            let Some(&Opened::Umad(file)) = state.descriptors.get(&descriptor) else {
                return Err(Errno::NOT_TTY);
            };
            control(&mut state.engine, file, request, argument)
        };
        if result.is_ok() && request != ENABLE_PKEY {
            self.update_duty();
        }
        result
    }

    /// Forgets a descriptor that is about to be closed.
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
            if let Opened::Umad(file) = opened {
                state.engine.close(file);
            }
        }
        self.update_duty();
    }

    /// Notes that a descriptor of ours has got another number as well.
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

    /// Returns our descriptors from one number to another.
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
                // The kernel tells which flags it knows.
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
