//! Copies of packets for a capture.

use ib_topology::PortId;
use ib_types::{Instant, VirtualLane};

use crate::link::Flight;
use crate::loss::Loss;
use crate::port::MANAGEMENT_LANE;
use crate::sim::Sim;

/// A packet as it left its first port, or as it was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tapped {
    /// When.
    pub at: Instant,
    /// Where.
    pub port: PortId,
    /// Why it was lost; `None` where it was sent.
    pub lost: Option<Loss>,
    /// The bytes from the LRH to the VCRC.
    pub bytes: Vec<u8>,
}

/// The copies that were not taken yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tap {
    packets: Vec<Tapped>,
}

impl Sim {
    /// Returns the packets that were sent or lost since this was last asked; empty unless
    /// [`Options::tap`](crate::Options::tap) asks for them.
    pub fn take_packets(&mut self) -> Vec<Tapped> {
        self.tap.as_mut().map_or_else(Vec::new, |tap| std::mem::take(&mut tap.packets))
    }

    /// Keeps packets no longer.
    pub fn stop_tap(&mut self) {
        self.tap = None;
    }

    pub(crate) fn tap_sent(&mut self, port: PortId, key: u32) {
        if self.tap.is_some() {
            let flight = self.flight(key);
            let packet = &flight.packet;
            let lane =
                if packet.is_smp() { MANAGEMENT_LANE } else { self.port(port).lane(0, packet.sl) };
            let bytes = packet.to_bytes(VirtualLane::new(lane).unwrap_or_default());
            self.keep(port, None, bytes);
        }
    }

    pub(crate) fn tap_loss(&mut self, port: PortId, flight: &Flight, why: Loss) {
        if self.tap.is_some() {
            let lane = VirtualLane::new(flight.lane).unwrap_or_default();
            let bytes = flight.packet.to_bytes(lane);
            self.keep(port, Some(why), bytes);
        }
    }

    fn keep(&mut self, port: PortId, lost: Option<Loss>, bytes: Vec<u8>) {
        let at = self.now();
        if let Some(tap) = &mut self.tap {
            tap.packets.push(Tapped { at, port, lost, bytes });
        }
    }
}
