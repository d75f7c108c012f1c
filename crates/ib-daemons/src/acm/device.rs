//! A port of a fabric that another process simulates, for a service of IB ACM.

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;

use ib_acm::{Action, Address, Arrived, Port, PortState};
use ib_hca::HcaEvent;
use ib_link::Incoming;
use ib_types::{Instant, PKey};
use ib_wire::mad::sm::MtuCode;

use super::datagrams::{Datagrams, datagram};
use ib_attach::PortDetails;
use ib_device::{Device, DeviceEvent};
use ib_os::clock;

/// An HCA at a port of a simulated fabric, and the queue pairs of a service there.
pub struct DevicePort {
    device: Device,
    datagrams: Datagrams,
    mads: VecDeque<Incoming>,
    /// Names that it has although no file says so.
    names: Vec<Address>,
}

impl DevicePort {
    /// Prepares an HCA that is attached to a simulated fabric ([`Device::attach`]), whose queue pairs take `depth`
    /// messages each before they are looked at. Its names are that of its node and its addresses. `None` for an HCA
    /// on Ethernet, where there is no the SA, and for one that has no room.
    #[must_use]
    pub fn new(mut device: Device, depth: u32) -> Option<Self> {
        let details = device.attached()?.details();
        let names = names_of(details);
        let datagrams = Datagrams::new(device.hca(), depth)?;
        Some(Self { device, datagrams, mads: VecDeque::new(), names })
    }

    /// Returns the HCA.
    pub const fn device(&mut self) -> &mut Device {
        &mut self.device
    }

    /// Moves what can be moved; returns whether there was anything.
    ///
    /// # Errors
    /// Fails when the simulator has gone.
    pub fn progress(&mut self) -> io::Result<bool> {
        let moved = self.device.progress()?;
        while let Some(event) = self.device.poll_event() {
            if let DeviceEvent::Hca(HcaEvent::Mad { route, source, mad }) = event {
                self.mads.push_back(Incoming::Received(datagram(&route, source, *mad)));
            }
        }
        Ok(moved)
    }

    /// Returns the files that can be read when something comes.
    ///
    /// # Panics
    /// Never: an HCA on Ethernet is none of these.
    #[must_use]
    pub fn files(&self) -> [BorrowedFd<'_>; 2] {
        self.device.attached().expect("looked at when it was made").files()
    }

    /// Prepares for a wait for its files, until the moment that is returned at most; `None` when there is something to
    /// do already.
    pub fn begin_wait(&mut self) -> Option<Instant> {
        self.device.begin_wait()
    }

    /// Takes note of which files can be read.
    ///
    /// # Errors
    /// Fails when the simulator has gone.
    pub fn end_wait(&mut self, rang: [bool; 2]) -> io::Result<()> {
        self.device.end_wait(rang)
    }
}

impl Port for DevicePort {
    fn changes(&self) -> u64 {
        self.device.attached().map_or(0, ib_attach::AttachedPort::changes)
    }

    fn state(&self) -> PortState {
        let details = self.device.attached().expect("looked at when it was made").details();
        state_of(details, &self.names)
    }

    fn act(&mut self, action: &Action) -> bool {
        if let Action::Mad(datagram) = action {
            return self.device.send_datagram(**datagram);
        }
        self.datagrams.act(self.device.hca(), clock::now(), action)
    }

    fn receive(&mut self) -> Option<Arrived> {
        if let Some(incoming) = self.mads.pop_front() {
            return Some(Arrived::Mad(Box::new(incoming)));
        }
        let gid = self.device.attached()?.details().port.gid();
        self.datagrams.receive(self.device.hca(), clock::now(), gid)
    }
}

fn names_of(details: &PortDetails) -> Vec<Address> {
    let node = Address::name(&details.node).ok();
    node.into_iter().chain(details.addresses.iter().map(|&address| address.into())).collect()
}

fn state_of(details: &PortDetails, names: &[Address]) -> PortState {
    PortState {
        device: details.node.as_str().into(),
        port_count: details.port_count,
        link: details.port,
        is_active: details.is_active,
        mtu: MtuCode(details.mtu.code()),
        rate: details.rate,
        p_keys: details.p_keys.iter().map(|&key| PKey(key)).collect(),
        registrations: details.registrations.into(),
        has_datagrams: true,
        names: names.to_vec(),
    }
}
