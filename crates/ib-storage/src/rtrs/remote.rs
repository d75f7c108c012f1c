//! A local block device whose data is on an RNBD server. Runs the RNBD client [`Remote`] on the HCAs of the program.

use std::collections::VecDeque;
use std::io;

use ib_block::{Command, Errno, Geometry, ReadData};
use ib_rnbd::{DeviceId, Remote, RemoteConfig, RemoteEvent};
use ib_rtrs::{Client as Rtrs, PathSpec};
use ib_types::Instant;
use ib_wire::rnbd::AccessMode;

use super::Devices;
use super::control::{Control, PathFinder, SessionControl};
use crate::nbd::Backing;
use ib_device::DeviceEvent;
use ib_os::clock;
use ib_os::cpu;
use ib_os::poll::Interest;

/// A device that an RNBD server exports, used as a local block device.
pub struct RemoteDisk {
    devices: Devices,
    remote: Remote,
    device: DeviceId,
    events: VecDeque<RemoteEvent>,
    /// The control socket, if any.
    control: Option<Box<SessionControl>>,
}

impl RemoteDisk {
    /// Creates a session with these paths, and opens a device of the server when the paths are
    /// connected.
    ///
    /// # Errors
    /// Fails if memory cannot be allocated, or if the name of the session or device is invalid.
    pub fn open(
        mut devices: Devices,
        paths: &[PathSpec],
        config: RemoteConfig,
        device: &str,
        mode: AccessMode,
    ) -> io::Result<Self> {
        let wrong = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
        config.session.check_name().map_err(|error| wrong(error.to_string()))?;
        let remote = Remote::new(config, &mut devices, ib_os::random()?);
        let mut remote = remote.map_err(io::Error::other)?;
        let device = remote.open(device, mode).map_err(|error| wrong(error.to_string()))?;
        for path in paths {
            let added = remote.session().add_path(clock::now(), &mut devices, path.clone());
            added.map_err(|error| wrong(error.to_string()))?;
        }
        Ok(Self { devices, remote, device, events: VecDeque::new(), control: None })
    }

    /// Serves the statistics and control tree of the session. `find_path` resolves the paths that
    /// users add in the tree.
    pub fn set_control(&mut self, control: Control, find_path: PathFinder) {
        self.control = Some(Box::new(SessionControl::new(control, find_path)));
    }

    /// Returns the geometry of the device; `None` until the device is open.
    #[must_use]
    pub fn geometry(&self) -> Option<&Geometry> {
        self.remote.geometry(self.device)
    }

    /// Tries again to open a device that has never been open, after the server has refused to open
    /// it ([`RemoteEvent::Refused`]).
    pub fn retry_open(&mut self) {
        self.remote.retry_open(self.device);
    }

    /// Returns the session, so that the caller can read its state.
    #[must_use]
    pub const fn rtrs(&self) -> &Rtrs {
        self.remote.rtrs()
    }

    /// Returns the session and its HCAs.
    pub const fn session(&mut self) -> (&mut Rtrs, &mut Devices) {
        (self.remote.session(), &mut self.devices)
    }

    /// Returns the data of the read that [`Backing::poll`] has returned last.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        self.remote.data()
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<RemoteEvent> {
        self.events.pop_front()
    }

    /// Drives HCAs, session and control socket. Returns true if there was any progress.
    ///
    /// # Errors
    /// Fails if a system call or the session fails.
    pub fn progress(&mut self) -> io::Result<bool> {
        let Self { devices, remote, events, control, .. } = self;
        let session = remote.session();
        let moved = devices.progress(|devices, adapter, event| {
            let now = clock::now();
            match event {
                DeviceEvent::Hca(event) => {
                    session.handle_hca(now, devices, cpu::current(), adapter, &event);
                }
                // Drops events of services other than RTRS. Connection requests for these services
                // end by timeouts of the CM.
                DeviceEvent::Cm(event) => drop(session.handle_cm(now, devices, adapter, event)),
            }
        })?;
        let now = clock::now();
        remote.handle_timeout(now, devices);
        let mut moved =
            remote.advance(now, devices, cpu::current()).map_err(io::Error::other)? | moved;
        while let Some(event) = remote.poll_event() {
            if let (Some(control), RemoteEvent::Session(event)) = (control.as_mut(), &event) {
                control.follow(now, remote.session(), devices, event);
            }
            events.push_back(event);
        }
        if let Some(control) = control {
            moved |= control.serve(now, remote.session(), devices);
        }
        Ok(moved)
    }

    /// Waits until there is work, or the time is `until`.
    ///
    /// # Errors
    /// Fails if a system call fails.
    pub fn wait(&mut self, until: Instant) -> io::Result<()> {
        self.wait_with(until, &[])
    }

    /// Waits as [`RemoteDisk::wait`] does, but also returns when one of the descriptors `files` is
    /// ready.
    pub(crate) fn wait_with(&mut self, until: Instant, files: &[Interest<'_>]) -> io::Result<()> {
        if self.remote.has_output() || !self.events.is_empty() {
            return Ok(());
        }
        let due = self.remote.poll_timeout().unwrap_or(Instant::NEVER);
        let Some(control) = &mut self.control else {
            return self.devices.wait_with(until.min(due), files);
        };
        if control.begin_wait() {
            return Ok(());
        }
        let until = until.min(due).min(control.poll_timeout().unwrap_or(Instant::NEVER));
        let files = [files, &[Interest::to_read(control.as_fd())]].concat();
        self.devices.wait_with(until, &files)
    }
}

impl Backing for RemoteDisk {
    fn submit(&mut self, user: u64, command: Command, data: &[u8]) {
        self.remote.submit(self.device, user, command, data);
    }

    fn poll(&mut self) -> Option<(u64, Errno)> {
        self.remote.poll()
    }

    fn take_data(&mut self) -> ReadData {
        self.remote.take_data()
    }

    fn give_back(&mut self, data: ReadData) {
        self.remote.give_back(data);
    }

    fn losses(&self) -> u64 {
        self.remote.losses()
    }
}
