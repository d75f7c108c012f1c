//! [`HcaOwner`]: the interface between captures and the HCAs of a program.

use std::io;

use ib_capture::Link;
use ib_hca::Hca;
use ib_hca::trace::{PacketReader, SelectionId};

use super::clock::Clock;
use super::message::AdapterInfo;
use ib_device::Device;
use ib_os::inbox::Handle;

/// Callback for each queue pair that a selection of an HCA has chosen. The arguments are the number of the HCA, the
/// selection, and the packet reader of the queue pair. If no capture has this selection, the callback returns the
/// reader.
pub type OnReader = Box<dyn FnMut(u32, SelectionId, PacketReader) -> Option<PacketReader> + Send>;

/// Owner of a program's HCAs: one HCA, several HCAs, or the HCAs of all hosts of a simulated fabric. One driver thread
/// runs all these HCAs.
pub trait HcaOwner: Sized + 'static {
    /// Returns a handle by which other threads run code in the driver thread.
    ///
    /// # Errors
    /// Fails if the process has no free file descriptors.
    fn handle(&mut self) -> io::Result<Handle<Self>>;

    /// Sets the callback for queue pairs that a selection has chosen, including queue pairs of HCAs that are added
    /// later.
    fn set_on_reader(&mut self, on_reader: OnReader);

    /// Passes all pending packet readers to the callback.
    fn hand_over(&mut self);

    /// Returns the lowest HCA number that is at least `from`, if any.
    fn next_adapter(&self, from: u32) -> Option<u32>;

    /// Returns the transport engine of an HCA; `None` if no HCA has this number.
    fn engine(&mut self, adapter: u32) -> Option<&mut Hca>;

    /// Returns the description of an HCA without its queue pairs; `None` if no HCA has this number.
    fn describe(&self, adapter: u32) -> Option<AdapterInfo>;

    /// Returns the prefix of the pcapng interface names of an HCA; `None` if the program has only one HCA.
    fn name_among(&self, adapter: u32) -> Option<String>;

    /// Returns the link type with which packets are captured.
    fn link(&self) -> Link;

    /// Returns the clock of packet timestamps.
    fn clock(&self) -> Clock {
        Clock::system()
    }
}

/// Returns the number of each HCA, in ascending order.
pub(super) fn adapters<T: HcaOwner>(all: &T) -> impl Iterator<Item = u32> {
    let first = all.next_adapter(0);
    std::iter::successors(first, |last| all.next_adapter(last.checked_add(1)?))
}

/// Returns the link type with which the packets of an HCA are captured.
pub fn link_of(device: &Device) -> Link {
    match device.socket() {
        Some(socket) => {
            Link::Ethernet { own_port: socket.port(), peer_port: socket.sender.peer_port() }
        }
        None if device.attached().is_none() => {
            Link::Ethernet { own_port: device.port(), peer_port: device.port() }
        }
        None => Link::Infiniband,
    }
}

/// Returns the description of an HCA without its queue pairs.
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
                // The callback returned the reader: no capture has this selection any more.
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
