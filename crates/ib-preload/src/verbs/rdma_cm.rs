//! The `rdma_cm` device of the process: opens channels, and executes their commands by [`crate::cm`].

use std::os::fd::{AsRawFd, IntoRawFd};

use ib_attach::AttachError;
use ib_device::DeviceError;
use ib_os::clock;
use ib_wire::mad::MgmtClass;

use super::command::ResponseBuffer;
use super::execute::Response;
use super::objects::FileId;
use super::{State, Verbs, deliver, print};
use crate::cm::{Command, Context, Request};
use crate::descriptors;
use crate::errno::Errno;
use crate::program_memory;
use crate::readiness::Readiness;

/// Version of the `rdma_cm` ABI.
pub(super) const ABI_VERSION: u32 = 4;

/// Major and minor number of the device. The kernel gives `rdma_cm` a free minor number of the miscellaneous devices.
pub(crate) const DEVICE_NUMBER: (u32, u32) = (10, 122);

/// Maximum size in bytes of the value of an `rdma_cm` option.
const MOST_OPTION: usize = 1 << 16;

impl Verbs {
    /// Opens a channel of the `rdma_cm` device. Returns a descriptor for the program.
    ///
    /// # Errors
    /// Fails with `ENODEV` if the configured port cannot be opened, with `EBUSY` if the connection manager of another
    /// process serves the port, and with `EMFILE` if the process cannot open another descriptor.
    pub(crate) fn open_rdma_cm(&'static self, flags: i32) -> Result<i32, Errno> {
        let mut state = self.lock();
        let is_new = state.adapter.is_none();
        if is_new {
            descriptors::open_internal(|| self.start(&mut state, self.open_device()?))?;
        }
        let opened = state.open_channel(flags);
        if opened.is_err() && is_new {
            state.close();
        }
        opened
    }

    /// Returns the major and minor number of the device that a descriptor belongs to.
    pub(crate) fn number_of(&self, descriptor: i32) -> (u32, u32) {
        let state = self.lock();
        match state.file(descriptor) {
            Ok(file) if state.objects.cm.has_channel(file) => DEVICE_NUMBER,
            _ => super::DEVICE_NUMBER,
        }
    }

    /// Prepares a thread to wait for an event of a channel. Returns the library's own descriptor; -1 if the program has
    /// already closed the channel. The descriptor is readable when an event waits, even if the program closes the
    /// channel meanwhile.
    pub(crate) fn begin_wait(&self, descriptor: i32) -> i32 {
        let mut state = self.lock();
        let file = state.file(descriptor);
        file.ok().and_then(|file| state.objects.cm.begin_wait(file)).unwrap_or(-1)
    }

    /// Ends the wait of a thread for an event.
    pub(crate) fn end_wait(&self, descriptor: i32) {
        let mut state = self.lock();
        if let Ok(file) = state.file(descriptor) {
            state.objects.cm.end_wait(file);
        }
    }
}

impl State {
    fn open_channel(&mut self, flags: i32) -> Result<i32, Errno> {
        self.check_device()?;
        let adapter = self.adapter.as_mut().ok_or(Errno::NO_DEVICE)?;
        adapter.device.serve(MgmtClass::COMMUNICATION).map_err(|error| {
            print(&format!("cannot open rdma_cm: {error}"));
            match error {
                DeviceError::Attach(AttachError::Refused { .. }) => Errno::BUSY,
                _ => Errno::NO_DEVICE,
            }
        })?;
        let (readiness, descriptor) = Readiness::open(flags)?;
        let file = self.add(descriptor.as_raw_fd())?;
        self.objects.cm.open(file, readiness);
        Ok(descriptor.into_raw_fd())
    }

    /// Executes a command that the program has written to a channel. Returns the size of the command.
    pub(super) fn write_channel(&mut self, channel: FileId, bytes: &[u8]) -> Result<usize, Errno> {
        let command = Command::decode(bytes)?;
        let core = self.execute_cm(channel, &command.request)?;
        if !core.is_empty() {
            let (address, room) = (command.response, command.room);
            let buffer = ResponseBuffer { address, core: room, driver: 0 };
            deliver(&buffer, &Response { core, driver: Vec::new() })?;
        }
        Ok(bytes.len())
    }

    fn execute_cm(&mut self, channel: FileId, request: &Request) -> Result<Vec<u8>, Errno> {
        if matches!(request, Request::GetEvent) {
            return self.objects.cm.next_event(channel);
        }
        let mut context = Context { now: clock::now(), ..Context::default() };
        let mut value = Vec::new();
        match request {
            Request::SetOption(option) => {
                value = fetch(option.value, option.length as usize)?;
            }
            Request::MigrateId(migrate) => {
                context.old_channel = self.descriptors.get(&migrate.fd).copied();
            }
            _ => {}
        }
        context.option = &value;
        if !matches!(request, Request::DestroyId(_) | Request::LeaveMcast(_)) {
            self.check_device()?;
        }
        let adapter = self.adapter.as_mut().ok_or(Errno::IO)?;
        let result = self.objects.cm.execute(channel, request, context, &mut adapter.device);
        self.after_command();
        result
    }
}

/// Copies `length` bytes from the program's memory at `address`.
fn fetch(address: u64, length: usize) -> Result<Vec<u8>, Errno> {
    if length > MOST_OPTION {
        return Err(Errno::INVALID);
    }
    let address = usize::try_from(address).map_err(|_| Errno::FAULT)?;
    let mut bytes = vec![0; length];
    program_memory::read(address, &mut bytes)?;
    Ok(bytes)
}
