//! Adapters for the engines of RTRS, all driven by one thread.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use ib_rtrs::{Adapter, AdapterId, Adapters, PathSpec};
use ib_types::{Instant, PKey};

use crate::clock;
use crate::device::{Device, DeviceEvent, PathError};
use crate::roce;

/// How long one of several adapters is waited for before the next one is looked at, when one is in a simulated fabric.
const TURN: Duration = Duration::from_micros(200);

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
        let source = SocketAddr::new(device.address(), port);
        let spec = PathSpec::new(id, source, server, path.route, path.mtu);
        Ok(PathSpec { p_key: path.p_key, ..spec })
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
        match &mut self.0[..] {
            [] => Ok(()),
            [only] => only.wait(until, None),
            several if several.iter().all(|device| device.socket().is_some()) => {
                let due = several.iter_mut().filter_map(Device::begin_wait);
                let until = due.fold(until, Instant::min);
                let sockets = several.iter_mut().filter_map(Device::socket_mut);
                roce::wait_any(&mut sockets.collect::<Vec<_>>(), until, None)
            }
            several => several.iter_mut().try_for_each(|device| {
                device.flush();
                device.wait(until.min(clock::now() + TURN), None)
            }),
        }
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
