//! What captures need of a program's HCAs.

use std::io;

use ib_capture::Link;
use ib_hca::Hca;
use ib_hca::trace::{PacketReader, SelectionId};

use super::clock::Clock;
use super::message::AdapterInfo;
use ib_device::Device;
use ib_os::inbox::Handle;

/// Takes the reader of a queue pair that a selection of an HCA has chosen; returns it if no capture wants it.
pub type Taker = Box<dyn FnMut(u32, SelectionId, PacketReader) -> Option<PacketReader> + Send>;

/// The HCAs that a thread of a program drives: one, several, or those of a simulated fabric's hosts.
pub trait Captured: Sized + 'static {
    /// Returns the handle by which other threads reach the HCAs.
    ///
    /// # Errors
    /// Fails if the system has no more files.
    fn handle(&mut self) -> io::Result<Handle<Self>>;

    /// Has readers of chosen queue pairs handed over from now on, those of HCAs that are added later as well.
    fn set_taker(&mut self, taker: Taker);

    /// Hands over readers that were not handed over yet.
    fn hand_over(&mut self);

    /// Returns the number of the first HCA that has at least this number.
    fn next_adapter(&self, from: u32) -> Option<u32>;

    /// Returns the engine of an HCA.
    fn engine(&mut self, adapter: u32) -> Option<&mut Hca>;

    /// Returns what is to be known of an HCA, without its queue pairs.
    fn describe(&self, adapter: u32) -> Option<AdapterInfo>;

    /// Returns the name of an HCA that names of interfaces begin with, if there are several.
    fn name_among(&self, adapter: u32) -> Option<String>;

    /// Returns the link of the HCAs' packets.
    fn link(&self) -> Link;

    /// Returns the clock by which packets are noted.
    fn clock(&self) -> Clock {
        Clock::system()
    }
}

/// Returns the numbers of all HCAs.
pub(super) fn adapters<T: Captured>(all: &T) -> impl Iterator<Item = u32> {
    let first = all.next_adapter(0);
    std::iter::successors(first, |last| all.next_adapter(last.checked_add(1)?))
}

/// Returns the link of an HCA.
pub fn link_of(device: &Device) -> Link {
    match device.socket() {
        Some(socket) => Link::Ethernet { own_port: socket.port(), peer_port: socket.peer_port() },
        None => Link::Infiniband,
    }
}

/// Returns what is to be known of an HCA.
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

impl Captured for Device {
    fn handle(&mut self) -> io::Result<Handle<Self>> {
        Self::handle(self)
    }

    fn set_taker(&mut self, mut taker: Taker) {
        self.on_traced(move |hca, selection, reader| {
            if taker(0, selection, reader).is_some() {
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
