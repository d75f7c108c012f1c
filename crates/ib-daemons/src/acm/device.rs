//! A port at which the ACM service runs, in a fabric that another process simulates.

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

/// An HCA at a port of a simulated fabric, and the service's UD QPs at this HCA.
pub struct DevicePort {
    device: Device,
    datagrams: Datagrams,
    mads: VecDeque<Incoming>,
    /// Names that the port has without an address file: the name of the simulated node, and the IP addresses of the
    /// port.
    names: Vec<Address>,
}

impl DevicePort {
    /// Creates a port from an HCA that is attached to a simulated fabric ([`Device::attach`]). Each UD QP has `depth`
    /// receive buffers.
    ///
    /// Returns `None` if the HCA is on Ethernet, where there is no SA, or if its PD or CQ cannot be allocated.
    #[must_use]
    pub fn new(mut device: Device, depth: u32) -> Option<Self> {
        let details = device.attached()?.details();
        let names = names_of(details);
        let datagrams = Datagrams::new(device.hca(), depth)?;
        Some(Self { device, datagrams, mads: VecDeque::new(), names })
    }

    /// Sends and receives pending packets and MADs; returns true if there were any.
    ///
    /// # Errors
    /// Fails if the simulator has exited.
    pub fn progress(&mut self) -> io::Result<bool> {
        let moved = self.device.progress()?;
        while let Some(event) = self.device.poll_event() {
            if let DeviceEvent::Hca(HcaEvent::Mad { route, source, mad }) = event {
                self.mads.push_back(Incoming::Received(datagram(&route, source, *mad)));
            }
        }
        Ok(moved)
    }

    /// Returns the file descriptors that become readable when there is input.
    ///
    /// # Panics
    /// Never panics, since [`DevicePort::new`] rejects an HCA on Ethernet.
    #[must_use]
    pub fn files(&self) -> [BorrowedFd<'_>; 2] {
        self.device.attached().expect("`new` requires an attached port").files()
    }

    /// Prepares to poll the file descriptors. Returns the latest time to wake up; `None` if input is pending already.
    pub fn begin_wait(&mut self) -> Option<Instant> {
        self.device.begin_wait()
    }

    /// Ends a wait, after the caller has polled the file descriptors of [`Self::files`]. `readable` states which of
    /// them are readable.
    ///
    /// # Errors
    /// Fails if the simulator has exited.
    pub fn end_wait(&mut self, readable: [bool; 2]) -> io::Result<()> {
        self.device.end_wait(readable)
    }
}

impl Port for DevicePort {
    fn changes(&self) -> u64 {
        self.device.attached().map_or(0, ib_attach::AttachedPort::changes)
    }

    fn state(&self) -> PortState {
        let details = self.device.attached().expect("`new` requires an attached port").details();
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
