//! The driver of a block server. One thread drives the RTRS server, the RNBD server and the disks.

use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::time::Duration;

use ib_block::{Errno, Operation};
use ib_cm::CmEvent;
use ib_rnbd::ExportId;
use ib_rtrs::{AdapterId, ListenError, Server as Rtrs, ServerConfig, ServerEvent};
use ib_types::Instant;

use super::Devices;
use super::control::{Control, ServerControl};
use super::exports::{DeviceCounts, Exports};
use crate::disk::Disk;
use ib_device::{DeviceEvent, address_of};
use ib_os::alarm::{Alarm, Bell};
use ib_os::clock;
use ib_os::cpu;
use ib_os::poll::Interest;

/// The server polls the disks at least this often.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// When the server closes, it keeps running for this time so that disconnects reach the clients.
const CLOSE_TIME: Duration = Duration::from_millis(200);

/// An event of a [`BlockServer`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockEvent {
    /// An event of a session or of its paths.
    Session(ServerEvent),
    /// The server has refused a client's RNBD message, for example a request to open a device.
    Refused {
        /// The name of the session.
        session: String,
        /// Description of the refused message, such as the name of the device.
        what: String,
        /// The error number of the response.
        errno: Errno,
    },
    /// The list of clients that write to a device cannot be stored. After a restart, the server
    /// does not know which clients have written to the device.
    Unkept {
        /// The name of the device.
        device: String,
        /// The error number of the system call.
        errno: Errno,
    },
    /// A disk has failed a command.
    Failed {
        /// The name of the device.
        device: String,
        /// The operation of the command.
        operation: Operation,
        /// The error number that the disk has reported.
        errno: Errno,
    },
}

/// A server of block devices.
pub struct BlockServer {
    devices: Devices,
    rtrs: Rtrs,
    exports: Exports,
    alarm: Alarm,
    is_allowed: Box<dyn Fn(IpAddr) -> bool>,
    /// The control socket, if any.
    control: Option<ServerControl>,
}

impl BlockServer {
    /// Creates a server on these HCAs. It does not listen yet, and exports no devices.
    ///
    /// # Errors
    /// Fails if the process has no free file descriptors, or if random numbers cannot be read.
    pub fn new(devices: Devices, config: ServerConfig) -> io::Result<Self> {
        let number = ib_os::random()?;
        Ok(Self {
            devices,
            rtrs: Rtrs::new(config, ib_os::random()?),
            exports: Exports::new(u64::from_le_bytes(
                *number.first_chunk().expect("a seed has 32 bytes"),
            )),
            alarm: Alarm::new()?,
            is_allowed: Box::new(|_| true),
            control: None,
        })
    }

    /// Accepts only clients for whose address `is_allowed` returns true. Refuses other clients with
    /// [`Errno::EACCES`].
    pub fn allow(&mut self, is_allowed: impl Fn(IpAddr) -> bool + 'static) {
        self.is_allowed = Box::new(is_allowed);
    }

    /// Serves the statistics and control tree of the server.
    pub fn set_control(&mut self, control: Control) {
        self.control = Some(ServerControl::new(control));
    }

    /// Listens on an HCA, at an RDMA port (as in `rdma_cm`).
    ///
    /// # Errors
    /// Fails if the port is in use, or if the HCA does not exist.
    pub fn listen(&mut self, adapter: AdapterId, port: u16) -> Result<(), ListenError> {
        self.rtrs.listen(&mut self.devices, adapter, port)
    }

    /// Returns the bell to pass to [`Disk::open`]. Disks ring it when a job has completed.
    #[must_use]
    pub fn bell(&self) -> Bell {
        self.alarm.bell()
    }

    /// Exports a disk.
    ///
    /// # Errors
    /// Fails if the name is invalid or in use.
    pub fn offer(&mut self, name: &str, disk: Disk) -> Result<ExportId, ib_rnbd::ExportError> {
        self.exports.offer(&mut self.rtrs, name, disk)
    }

    /// Returns the HCAs.
    pub const fn devices(&mut self) -> &mut Devices {
        &mut self.devices
    }

    /// Returns the RTRS server, so that the caller can read its state.
    #[must_use]
    pub const fn rtrs(&self) -> &Rtrs {
        &self.rtrs
    }

    /// Returns the name of each device and the counts of its commands.
    pub fn counts(&self) -> impl Iterator<Item = (&str, DeviceCounts)> {
        self.exports.counts()
    }

    /// Drives HCAs, RTRS, RNBD, disks and control socket. Returns true if there was any progress.
    ///
    /// # Errors
    /// Fails if a system call fails.
    pub fn progress(&mut self) -> io::Result<bool> {
        let Self { devices, rtrs, exports, is_allowed, control, .. } = self;
        let mut moved = devices.progress(|devices, adapter, event| {
            let now = clock::now();
            match event {
                DeviceEvent::Hca(event) => {
                    rtrs.handle_hca(now, devices, cpu::current(), adapter, &event)
                }
                DeviceEvent::Cm(CmEvent::Requested(requested))
                    if !is_allowed(address_of(requested.route.destination)) =>
                {
                    rtrs.refuse(now, devices, adapter, &requested, Errno::EACCES);
                }
                // Drops events of services other than RTRS. Connection requests for these services
                // end by timeouts of the CM.
                DeviceEvent::Cm(event) => drop(rtrs.handle_cm(now, devices, adapter, event)),
            }
        })?;
        let now = clock::now();
        if rtrs.poll_timeout().is_some_and(|at| at <= now) {
            rtrs.handle_timeout(now, devices);
        }
        if let Some(control) = control {
            moved |= control.serve(now, rtrs, devices);
        }
        Ok(exports.work(now, rtrs, devices) | moved)
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<BlockEvent> {
        let Some(event) = self.rtrs.poll_event() else { return self.exports.poll_event() };
        if let ServerEvent::SessionDown { session } = event {
            self.exports.end(session);
        }
        Some(BlockEvent::Session(event))
    }

    /// Disconnects all clients and stops listening. Outstanding commands get no response.
    ///
    /// # Errors
    /// Fails if a system call fails.
    pub fn close(&mut self) -> io::Result<()> {
        self.rtrs.close(clock::now(), &mut self.devices);
        // Keeps running until the clients have received the disconnects, so that they do not wait
        // for timeouts.
        let end = clock::now() + CLOSE_TIME;
        while clock::now() < end {
            self.progress()?;
            self.devices.wait(end)?;
        }
        Ok(())
    }

    /// Waits until there is work, or the time is `until`.
    ///
    /// # Errors
    /// Fails if a system call fails.
    pub fn wait(&mut self, until: Instant) -> io::Result<()> {
        self.alarm.silence();
        let Self { devices, rtrs, exports, control, .. } = self;
        if control.as_mut().is_some_and(ServerControl::begin_wait)
            || exports.answer(clock::now(), rtrs, devices)
        {
            return Ok(());
        }
        let due = self.rtrs.poll_timeout().unwrap_or(Instant::NEVER);
        let until = until.min(due).min(clock::now() + MAX_WAIT);
        let control = self.control.as_ref().map(ServerControl::as_fd);
        let own = [self.alarm.as_fd()].into_iter().chain(control).map(Interest::to_read);
        let files: Vec<_> = self.exports.bells().chain(own).collect();
        self.devices.wait_with(until, &files)
    }
}
