//! Adapters for the engines of RTRS, all driven by one thread; and what stands on them.
//!
//! | module | holds |
//! |---|---|
//! | `exports` | devices that a server offers, whatever drives its adapters |
//! | `serving` | [`BlockServer`]: RTRS, RNBD and devices |
//! | `remote` | [`RemoteDisk`]: a device of a server, as whoever uses it sees it |
//! | [`control`] | their statistics and what changes them, for other processes |
//! | [`mount`] | the same as a file system |

use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;

use ib_rtrs::tree::PortName;
use ib_rtrs::{Adapter, AdapterId, Adapters, PathSpec};
use ib_types::{Gid, Instant, PKey};

use crate::clock;
use crate::device::{Device, DeviceEvent, PathError};
use crate::poll::{self, Interest};

pub mod control;
mod exports;
pub mod mount;
mod remote;
mod serving;

pub use exports::DeviceCounts;
pub(crate) use exports::Exports;
pub use remote::{RemoteDisk, RemoteEvent, RemoteOptions};
pub use serving::{BlockEvent, BlockServer};

/// Adapters that one thread drives.
#[derive(Default)]
pub struct Devices(Vec<Device>);

impl Devices {
    /// Returns no adapters.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Takes an adapter; returns what it is known by.
    pub fn add(&mut self, device: Device) -> AdapterId {
        self.0.push(device);
        AdapterId(self.0.len() as u32 - 1)
    }

    /// Returns an adapter.
    pub fn device(&mut self, id: AdapterId) -> Option<&mut Device> {
        self.0.get_mut(id.0 as usize)
    }

    /// Returns how a path is asked for that leads from an adapter to a server.
    ///
    /// # Errors
    /// Fails when there is no way to it.
    ///
    /// # Panics
    /// Panics when there is no such adapter.
    pub fn path_to(&mut self, id: AdapterId, server: SocketAddr) -> Result<PathSpec, PathError> {
        let device = self.device(id).expect("the adapter was added before");
        let path = device.path_to(server.ip())?;
        // One port of the client's for all connections of a path, as Linux has it.
        let port = 0xc000 | device.hca().random_psn().get() as u16;
        let own = device.address_beside(server.ip()).unwrap_or_else(|| device.address());
        let source = SocketAddr::new(own, port);
        let spec = PathSpec::new(id, source, server, path.route, path.mtu);
        Ok(PathSpec { p_key: path.p_key, ..spec })
    }

    /// Returns how a path is asked for that leads from an adapter of a simulated fabric to a port that has a GID, by its
    /// GIDs.
    ///
    /// # Errors
    /// Fails when there is no way to it.
    ///
    /// # Panics
    /// Panics when there is no such adapter.
    pub fn path_to_gid(
        &mut self,
        id: AdapterId,
        gid: Gid,
        port: u16,
    ) -> Result<PathSpec, PathError> {
        let device = self.device(id).expect("the adapter was added before");
        let path = device.path_to(Ipv6Addr::from(gid.0).into())?;
        let spec = PathSpec::between_gids(id, port, path.route, path.mtu);
        Ok(PathSpec { p_key: path.p_key, ..spec })
    }

    /// Returns how the port of an adapter is called.
    #[must_use]
    pub fn port_name(&self, id: AdapterId) -> Option<PortName> {
        let device = self.0.get(id.0 as usize)?;
        Some(PortName { adapter: device.name().to_owned(), number: device.port_number() })
    }

    /// Moves what can be moved, and hands over what adapters tell; returns whether there was anything.
    ///
    /// # Errors
    /// Fails when the system does.
    pub fn progress(
        &mut self,
        mut take: impl FnMut(&mut Self, AdapterId, DeviceEvent),
    ) -> io::Result<bool> {
        let mut moved = false;
        for index in 0..self.0.len() {
            moved |= self.0[index].progress()?;
            while let Some(event) = self.0[index].poll_event() {
                moved = true;
                take(self, AdapterId(index as u32), event);
            }
        }
        Ok(moved)
    }

    /// Waits until something may have come, or a moment comes.
    ///
    /// # Errors
    /// Fails when the system does.
    pub fn wait(&mut self, until: Instant) -> io::Result<()> {
        self.wait_with(until, &[])
    }

    /// Waits until something may have come, one of some files is ready, or a moment comes.
    pub(crate) fn wait_with(&mut self, until: Instant, others: &[Interest<'_>]) -> io::Result<()> {
        let others: Vec<_> = others.iter().map(Interest::watched).collect();
        if self.spin(&others)? {
            return Ok(());
        }
        let mut until = until;
        for device in &mut self.0 {
            match device.begin_wait() {
                Some(due) => until = until.min(due),
                None => return Ok(()),
            }
        }
        let mut files = Vec::with_capacity(2 * self.0.len() + others.len());
        for device in &mut self.0 {
            if let Some(socket) = device.socket_mut() {
                let Some(writes) = socket.begin_wait() else { return Ok(()) };
                files.push(poll::watched(socket.as_fd(), writes));
            } else if let Some(port) = device.attached() {
                files.extend(port.files().map(|file| poll::watched(file, false)));
            }
        }
        files.extend(others);
        poll::wait_any_for(&mut files, until.since(clock::now()))?;
        let mut rang = files.iter().map(|file| file.revents != 0);
        for device in &mut self.0 {
            if device.socket().is_some() {
                rang.next();
            } else {
                let both = [rang.next(), rang.next()].map(|rang| rang.unwrap_or(false));
                device.end_wait(both)?;
            }
        }
        Ok(())
    }

    /// Looks for something for as long as the adapters do before they sleep; returns whether there was anything.
    fn spin(&mut self, others: &[libc::pollfd]) -> io::Result<bool> {
        let spin = self.0.iter().map(Device::spin).max().unwrap_or_default();
        let end = clock::now() + spin;
        let mut others = others.to_vec();
        while clock::now() < end {
            for device in &mut self.0 {
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

impl Adapters for Devices {
    fn get(&mut self, id: AdapterId) -> Option<Adapter<'_>> {
        let (hca, cm) = self.device(id)?.engines();
        Some(Adapter { hca, cm })
    }

    fn is_in_partition(&self, id: AdapterId, p_key: PKey) -> bool {
        self.0.get(id.0 as usize).is_some_and(|device| device.is_in_partition(p_key))
    }
}
