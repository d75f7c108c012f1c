//! Packets that are captured in the fabric.

use ib_topology::PortId;
use ib_types::{Instant, VirtualLane};

use crate::loss::Loss;
use crate::packet::Packet;

/// A captured packet: as its source port has sent it, or as it was when it was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedPacket {
    /// The time at which the packet was sent or lost.
    pub at: Instant,
    /// The port that has sent the packet, or at which the packet was lost.
    pub port: PortId,
    /// The loss reason; `None` if the packet was sent.
    pub lost: Option<Loss>,
    /// The bytes from the LRH to the VCRC.
    pub bytes: Vec<u8>,
}

/// The captured packets; `None` if capturing is off.
#[derive(Clone, Debug)]
pub(crate) struct Tap(Option<Vec<CapturedPacket>>);

impl Tap {
    pub(crate) fn new(is_on: bool) -> Self {
        Self(is_on.then(Vec::new))
    }

    #[inline]
    pub(crate) const fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Stops capturing.
    pub(crate) fn stop(&mut self) {
        self.0 = None;
    }

    /// Returns the packets that were captured since the last call.
    pub(crate) fn take(&mut self) -> Vec<CapturedPacket> {
        self.0.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Captures a packet that a port sends on a VL, or that is lost at the port.
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
            packets.push(CapturedPacket { at, port, lost, bytes });
        }
    }
}
