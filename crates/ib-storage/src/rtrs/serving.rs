//! A server of block devices: RTRS, RNBD and the devices, in one thread.

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

/// How long nothing may be looked at when nobody rings.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long clients are told of the end.
const PARTING: Duration = Duration::from_millis(200);

/// What has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockEvent {
    /// Something about sessions and their paths.
    Session(ServerEvent),
    /// A client is refused something that is not about data: a device that it wants to open, say.
    Refused {
        /// The session's name.
        session: String,
        /// What it has asked for: a device's name, or something else.
        what: String,
        /// What it was told.
        errno: Errno,
    },
    /// It cannot be kept beside a device's data who has written to it: when the server is started again, it does not know.
    Unkept {
        /// Its name.
        device: String,
        /// What the system says.
        errno: Errno,
    },
    /// A device cannot do what it is asked for.
    Failed {
        /// Its name.
        device: String,
        /// What it was asked for.
        operation: Operation,
        /// What it says.
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
    /// Who asks for numbers and changes.
    control: Option<ServerControl>,
}

impl BlockServer {
    /// Makes a server on some HCAs, which listens nowhere yet and has no devices.
    ///
    /// # Errors
    /// Fails when the system has no more files or no random numbers.
    pub fn new(devices: Devices, config: ServerConfig) -> io::Result<Self> {
        let number = ib_os::random()?;
        Ok(Self {
            devices,
            rtrs: Rtrs::new(config, ib_os::random()?),
            exports: Exports::new(u64::from_le_bytes(*number.first_chunk().expect("it is longer"))),
            alarm: Alarm::new()?,
            is_allowed: Box::new(|_| true),
            control: None,
        })
    }

    /// Takes only clients of some addresses from now on; others are refused with [`Errno::EACCES`].
    pub fn allow(&mut self, is_allowed: impl Fn(IpAddr) -> bool + 'static) {
        self.is_allowed = Box::new(is_allowed);
    }

    /// Has other processes see sessions and their paths, and change them.
    pub fn set_control(&mut self, control: Control) {
        self.control = Some(ServerControl::new(control));
    }

    /// Listens at a port of an HCA.
    ///
    /// # Errors
    /// Fails when the port is taken there.
    pub fn listen(&mut self, adapter: AdapterId, port: u16) -> Result<(), ListenError> {
        self.rtrs.listen(&mut self.devices, adapter, port)
    }

    /// Returns what devices ring that have ended something.
    #[must_use]
    pub fn bell(&self) -> Bell {
        self.alarm.bell()
    }

    /// Offers a device.
    ///
    /// # Errors
    /// Fails when the name is taken or cannot be asked for.
    pub fn offer(&mut self, name: &str, disk: Disk) -> Result<ExportId, ib_rnbd::ExportError> {
        self.exports.offer(&mut self.rtrs, name, disk)
    }

    /// Returns the HCAs.
    pub const fn devices(&mut self) -> &mut Devices {
        &mut self.devices
    }

    /// Returns the transport's part, to look at.
    #[must_use]
    pub const fn rtrs(&self) -> &Rtrs {
        &self.rtrs
    }

    /// Returns the names of devices, and how often something was done with each.
    pub fn counts(&self) -> impl Iterator<Item = (&str, DeviceCounts)> {
        self.exports.counts()
    }

    /// Moves what can be moved; returns whether there was anything.
    ///
    /// # Errors
    /// Fails when the system does.
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
                // What is for nobody is refused by the connection manager's time limits.
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

    /// Returns the next thing that has happened.
    pub fn poll_event(&mut self) -> Option<BlockEvent> {
        let Some(event) = self.rtrs.poll_event() else { return self.exports.poll_event() };
        if let ServerEvent::SessionDown { session } = event {
            self.exports.end(session);
        }
        Some(BlockEvent::Session(event))
    }

    /// Disconnects all clients and takes no more; what devices do meanwhile is not answered.
    ///
    /// # Errors
    /// Fails when the system does.
    pub fn close(&mut self) -> io::Result<()> {
        self.rtrs.close(clock::now(), &mut self.devices);
        // The other ends answer, so that they need not find out.
        let end = clock::now() + PARTING;
        while clock::now() < end {
            self.progress()?;
            self.devices.wait(end)?;
        }
        Ok(())
    }

    /// Waits until there may be something to do, or a moment comes.
    ///
    /// # Errors
    /// Fails when the system does.
    pub fn wait(&mut self, until: Instant) -> io::Result<()> {
        self.alarm.silence();
        let Self { devices, rtrs, exports, control, .. } = self;
        if control.as_mut().is_some_and(ServerControl::begin_wait)
            || exports.answer(clock::now(), rtrs, devices)
        {
            return Ok(());
        }
        let due = self.rtrs.poll_timeout().unwrap_or(Instant::NEVER);
        let until = until.min(due).min(clock::now() + PATIENCE);
        let asked = self.control.as_ref().map(ServerControl::as_fd);
        let own = [self.alarm.as_fd()].into_iter().chain(asked).map(Interest::to_read);
        let files: Vec<_> = self.exports.bells().chain(own).collect();
        self.devices.wait_with(until, &files)
    }
}
