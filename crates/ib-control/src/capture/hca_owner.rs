//! [`HcaOwner`]: the interface between captures and the HCAs of a program.

use std::io;

use ib_capture::Link;
use ib_hca::Hca;
use ib_hca::trace::{PacketReader, SelectionId};

use super::clock::Clock;
use super::message::AdapterInfo;
use ib_device::Device;
use ib_os::inbox::Handle;

/// Receives the packet reader of a queue pair that a selection of an HCA has chosen; returns the reader if no
/// capture uses it.
pub type OnReader = Box<dyn FnMut(u32, SelectionId, PacketReader) -> Option<PacketReader> + Send>;

/// The HCAs that a driver thread owns: one, several, or those of a simulated fabric's hosts.
pub trait HcaOwner: Sized + 'static {
    /// Returns the handle by which other threads reach the HCAs.
    ///
    /// # Errors
    /// Fails if the system has no more files.
    fn handle(&mut self) -> io::Result<Handle<Self>>;

    /// Sets the receiver of packet readers of chosen queue pairs, including those of HCAs that are added later.
    fn set_on_reader(&mut self, on_reader: OnReader);

    /// Hands over the remaining readers to the receiver.
    fn hand_over(&mut self);

    /// Returns the number of the first HCA that has at least this number.
    fn next_adapter(&self, from: u32) -> Option<u32>;

    /// Returns the engine of an HCA.
    fn engine(&mut self, adapter: u32) -> Option<&mut Hca>;

    /// Returns the description of an HCA, without its queue pairs.
    fn describe(&self, adapter: u32) -> Option<AdapterInfo>;

    /// Returns the prefix of interface names for an HCA; `None` if the program has a single HCA.
    fn name_among(&self, adapter: u32) -> Option<String>;

    /// Returns the link type of the HCAs' packets.
    fn link(&self) -> Link;

    /// Returns the clock of packet timestamps.
    fn clock(&self) -> Clock {
        Clock::system()
    }
}

/// Returns the numbers of all HCAs.
pub(super) fn adapters<T: HcaOwner>(all: &T) -> impl Iterator<Item = u32> {
    let first = all.next_adapter(0);
    std::iter::successors(first, |last| all.next_adapter(last.checked_add(1)?))
}

/// Returns the link type of an HCA.
pub fn link_of(device: &Device) -> Link {
    match device.socket() {
        Some(socket) => {
            Link::Ethernet { own_port: socket.port(), peer_port: socket.sender.peer_port() }
        }
        None => Link::Infiniband,
    }
}

/// Returns the description of an HCA.
pub fn describe(device: &Device, number: u32) -> AdapterInfo {
    let link = match device.attached() {
        Some(port) => {
            let details = port.details();
            format!(
                "port {} of {} of the simulator {}",
                details.port.number,
                details.node,
                port.simulator()
            )
        }
        None => "RoCEv2".to_owned(),
    };
    let (address, udp_port) = (device.address().to_string(), device.port());
    AdapterInfo { adapter: number, address, udp_port, link, qps: Vec::new() }
}

impl HcaOwner for Device {
    fn handle(&mut self) -> io::Result<Handle<Self>> {
        Self::handle(self)
    }

    fn set_on_reader(&mut self, mut on_reader: OnReader) {
        self.on_traced(move |hca, selection, reader| {
            if on_reader(0, selection, reader).is_some() {
                // Its capture has ended.
                hca.deselect(selection);
            }
        });
    }

    fn hand_over(&mut self) {
        self.hand_over_traces();
    }

    fn next_adapter(&self, from: u32) -> Option<u32> {
        (from == 0).then_some(0)
    }

    fn engine(&mut self, adapter: u32) -> Option<&mut Hca> {
        (adapter == 0).then(|| self.hca())
    }

    fn describe(&self, adapter: u32) -> Option<AdapterInfo> {
        (adapter == 0).then(|| describe(self, 0))
    }

    fn name_among(&self, _: u32) -> Option<String> {
        None
    }

    fn link(&self) -> Link {
        link_of(self)
    }
}
