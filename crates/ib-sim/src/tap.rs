//! Copies of packets for a capture.

use ib_topology::PortId;
use ib_types::{Instant, VirtualLane};

use crate::loss::Loss;
use crate::packet::Packet;

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

/// The copies that were not taken yet; `None` unless packets are kept.
#[derive(Clone, Debug)]
pub(crate) struct Tap(Option<Vec<Tapped>>);

impl Tap {
    pub(crate) fn new(is_on: bool) -> Self {
        Self(is_on.then(Vec::new))
    }

    #[inline]
    pub(crate) const fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Keeps packets no longer.
    pub(crate) fn stop(&mut self) {
        self.0 = None;
    }

    /// Returns the packets that were sent or lost since this was last called.
    pub(crate) fn take(&mut self) -> Vec<Tapped> {
        self.0.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Keeps a packet that is sent from a port, or lost at it, on a VL.
    pub(crate) fn keep(
        &mut self,
        at: Instant,
        port: PortId,
        packet: &Packet,
        vl: u8,
        lost: Option<Loss>,
    ) {
        if let Some(packets) = &mut self.0 {
            let bytes = packet.to_bytes(VirtualLane::new(vl).unwrap_or_default());
            packets.push(Tapped { at, port, lost, bytes });
        }
    }
}
