//! Block servers and clients over RTRS, on HCAs that one thread drives.
//!
//! | module | holds |
//! |---|---|
//! | [`control`] | the statistics and control tree over a socket |
//! | [`mount`] | the statistics and control tree as a FUSE file system |
//! | `serving` | [`BlockServer`]: the driver of RTRS server, RNBD server and exported disks |
//! | `remote` | [`RemoteDisk`]: the driver of RTRS client and RNBD client, for one device |

use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};

use ib_capture::Link;
use ib_hca::Hca;
use ib_rtrs::tree::PortName;
use ib_rtrs::{Adapter, AdapterId, Adapters, PathSpec};
use ib_types::{Gid, Instant, PKey};

use ib_control::capture::message::AdapterInfo;
use ib_control::capture::{Captures, HcaOwner, OnReader, describe, link_of};
use ib_device::{Device, DeviceEvent, PathError};
use ib_os::clock;
use ib_os::inbox::{Handle, Inbox};
use ib_os::poll::{self, Interest};

pub mod control;
pub mod mount;
mod remote;
mod serving;

pub use remote::RemoteDisk;
pub use serving::{BlockEvent, BlockServer, DeviceCounts, Exports};

/// A set of HCAs that one thread drives.
#[derive(Default)]
pub struct Devices {
    all: Vec<Device>,
    /// Queue of closures that other threads let this thread run; `None` until it is first used.
    inbox: Option<Box<Inbox<Self>>>,
    /// Packet captures of the HCAs, which other threads control; `None` until first used.
    captures: Option<Captures<Self>>,
    /// Callback that gets the readers of traced packets, one per traced queue pair ([`Device::on_traced`]).
    on_reader: Option<Arc<Mutex<OnReader>>>,
}

impl Devices {
    /// Creates an empty set of HCAs.
    #[must_use]
    pub const fn new() -> Self {
        Self { all: Vec::new(), inbox: None, captures: None, on_reader: None }
    }

    /// Adds an HCA to the set; returns its number.
    pub fn add(&mut self, device: Device) -> AdapterId {
        self.all.push(device);
        let number = self.all.len() as u32 - 1;
        self.hand_over_from(number);
        if let Some(captures) = self.captures.clone() {
            captures.added(self, number);
        }
        AdapterId(number)
    }

    /// Returns the captures of the HCAs, including HCAs that are added later.
    ///
    /// # Errors
    /// Fails if the process has no free file descriptors.
    pub fn captures(&mut self) -> io::Result<Captures<Self>> {
        let captures = match &self.captures {
            Some(captures) => captures.clone(),
            None => Captures::new(self)?,
        };
        self.captures = Some(captures.clone());
        Ok(captures)
    }

    /// Makes HCA `number` pass the packet readers of traced queue pairs to `on_reader`
    /// ([`Device::on_traced`]).
    fn hand_over_from(&mut self, number: u32) {
        let (Some(on_reader), Some(device)) = (&self.on_reader, self.all.get_mut(number as usize))
        else {
            return;
        };
        let on_reader = Arc::clone(on_reader);
        device.on_traced(move |hca, selection, reader| {
            let mut on_reader = on_reader.lock().unwrap_or_else(PoisonError::into_inner);
            if on_reader(number, selection, reader).is_some() {
                // The callback returned the packet reader, because no capture has this selection.
                hca.deselect(selection);
            }
        });
    }

    /// Runs the closures that other threads have queued for this thread.
    fn run_queued_work(&mut self) {
        while let Some(work) = self.inbox.as_ref().and_then(|inbox| inbox.next()) {
            work(self);
        }
        self.hand_over();
    }

    /// Returns an HCA.
    pub fn device(&mut self, id: AdapterId) -> Option<&mut Device> {
        self.all.get_mut(id.0 as usize)
    }

    /// Returns the connection parameters of a path from an HCA to a server.
    ///
    /// # Errors
    /// Fails if there is no route to the server.
    ///
    /// # Panics
    /// Panics if `id` is not in the set.
    pub fn path_to(&mut self, id: AdapterId, server: SocketAddr) -> Result<PathSpec, PathError> {
        let device = self.device(id).expect("`Devices::add` has returned the number");
        let path = device.path_to(server.ip())?;
        // All connections of a path use the same client port, as in Linux.
        let port = 0xc000 | device.hca().random_psn().get() as u16;
        let own = device.own_address_for(server.ip()).unwrap_or_else(|| device.address());
        let source = SocketAddr::new(own, port);
        let spec = PathSpec::new(id, source, server, path.route, path.mtu);
        Ok(PathSpec { p_key: path.p_key, ..spec })
    }

    /// Returns the connection parameters of a path from an HCA to a GID of a simulated fabric.
    ///
    /// # Errors
    /// Fails if there is no route to the server.
    ///
    /// # Panics
    /// Panics if `id` is not in the set.
    pub fn path_to_gid(
        &mut self,
        id: AdapterId,
        gid: Gid,
        port: u16,
    ) -> Result<PathSpec, PathError> {
        let device = self.device(id).expect("`Devices::add` has returned the number");
        let path = device.path_to(Ipv6Addr::from(gid.0).into())?;
        let spec = PathSpec::between_gids(id, port, path.route, path.mtu);
        Ok(PathSpec { p_key: path.p_key, ..spec })
    }

    /// Returns the name of an HCA's port.
    #[must_use]
    pub fn port_name(&self, id: AdapterId) -> Option<PortName> {
        let device = self.all.get(id.0 as usize)?;
        Some(PortName { adapter: device.name().to_owned(), number: device.port_number() })
    }

    /// Drives the HCAs, and passes their events to `take`. Returns true if there was any progress.
    ///
    /// # Errors
    /// Fails if a system call fails.
    pub fn progress(
        &mut self,
        mut take: impl FnMut(&mut Self, AdapterId, DeviceEvent),
    ) -> io::Result<bool> {
        if self.inbox.as_ref().is_some_and(|inbox| inbox.is_pending()) {
            self.run_queued_work();
        }
        let mut moved = false;
        for index in 0..self.all.len() {
            moved |= self.all[index].progress()?;
            while let Some(event) = self.all[index].poll_event() {
                moved = true;
                take(self, AdapterId(index as u32), event);
            }
        }
        Ok(moved)
    }

    /// Waits until an HCA has work, or the time is `until`.
    ///
    /// # Errors
    /// Fails if a system call fails.
    pub fn wait(&mut self, until: Instant) -> io::Result<()> {
        self.wait_with(until, &[])
    }

    /// Waits until an HCA has work, one of the descriptors `others` is ready, or the time is
    /// `until`.
    pub(crate) fn wait_with(&mut self, until: Instant, others: &[Interest<'_>]) -> io::Result<()> {
        let mut others: Vec<_> = others.iter().map(Interest::watched).collect();
        if let Some(inbox) = &self.inbox {
            if inbox.begin_wait(None).is_none() {
                return Ok(());
            }
            others.push(poll::watched(inbox.as_fd(), false));
        }
        if self.spin(&others)? {
            return Ok(());
        }
        let mut until = until;
        for device in &mut self.all {
            match device.begin_wait() {
                Some(due) => until = until.min(due),
                None => return Ok(()),
            }
        }
        let mut files = Vec::with_capacity(2 * self.all.len() + others.len());
        for device in &mut self.all {
            if let Some(socket) = device.socket_mut() {
                let Some(writes) = socket.begin_wait() else { return Ok(()) };
                files.push(poll::watched(socket.as_fd(), writes));
            } else if let Some(port) = device.ring_port() {
                files.extend(port.files().map(|file| poll::watched(file, false)));
            }
        }
        files.extend(others);
        poll::wait_any_for(&mut files, until.since(clock::now()))?;
        let mut rang = files.iter().map(|file| file.revents != 0);
        for device in &mut self.all {
            if device.socket().is_some() {
                rang.next();
            } else {
                let both = [rang.next(), rang.next()].map(|rang| rang.unwrap_or(false));
                device.end_wait(both)?;
            }
        }
        Ok(())
    }

    /// Busy-polls the HCAs for their configured time before the thread sleeps. Returns true if
    /// there is work.
    fn spin(&mut self, others: &[libc::pollfd]) -> io::Result<bool> {
        let spin = self.all.iter().map(Device::spin).max().unwrap_or_default();
        let end = clock::now() + spin;
        let mut others = others.to_vec();
        while clock::now() < end {
            for device in &mut self.all {
                if device.progress()? {
                    return Ok(true);
                }
            }
            if !others.is_empty() {
                poll::wait_any(&mut others, 0)?;
                if others.iter().any(|file| file.revents != 0) {
                    return Ok(true);
                }
            }
            std::hint::spin_loop();
        }
        Ok(false)
    }
}

impl HcaOwner for Devices {
    fn handle(&mut self) -> io::Result<Handle<Self>> {
        if self.inbox.is_none() {
            self.inbox = Some(Box::new(Inbox::new()?));
        }
        Ok(self.inbox.as_ref().expect("the inbox was created above").handle())
    }

    fn set_on_reader(&mut self, on_reader: OnReader) {
        self.on_reader = Some(Arc::new(Mutex::new(on_reader)));
        (0..self.all.len() as u32).for_each(|number| self.hand_over_from(number));
    }

    fn hand_over(&mut self) {
        self.all.iter_mut().for_each(Device::hand_over_traces);
    }

    fn next_adapter(&self, from: u32) -> Option<u32> {
        ((from as usize) < self.all.len()).then_some(from)
    }

    fn engine(&mut self, adapter: u32) -> Option<&mut Hca> {
        self.all.get_mut(adapter as usize).map(Device::hca)
    }

    fn describe(&self, adapter: u32) -> Option<AdapterInfo> {
        self.all.get(adapter as usize).map(|device| describe(device, adapter))
    }

    fn name_among(&self, adapter: u32) -> Option<String> {
        let device = self.all.get(adapter as usize).filter(|_| self.all.len() > 1)?;
        Some(device.address().to_string())
    }

    fn link(&self) -> Link {
        // All HCAs of a set have the same kind of link.
        self.all.first().map_or(Link::Infiniband, link_of)
    }
}

impl Adapters for Devices {
    fn get(&mut self, id: AdapterId) -> Option<Adapter<'_>> {
        let engines = self.device(id)?.engines();
        Some(Adapter { hca: &mut engines.hca, cm: &mut engines.cm })
    }

    fn is_in_partition(&self, id: AdapterId, p_key: PKey) -> bool {
        self.all.get(id.0 as usize).is_some_and(|device| device.is_in_partition(p_key))
    }
}
