//! Packets in flight, and the buffer space that they occupy.

use ib_topology::PortId;
use ib_types::Instant;
use slab::Slab;

use crate::ids::RequestKey;
use crate::packet::Packet;

/// The unit of credits in bytes.
pub(crate) const BLOCK: usize = 64;

/// Maximum number of payload vectors that are kept for reuse.
const MAX_SPARE_BUFFERS: usize = 4096;
/// Minimum length of a payload vector that is kept for reuse, in bytes.
const MIN_SPARE_LENGTH: usize = 1024;

/// Value of `BufferSpace::shared` if the packet has its buffer space to itself: no multicast copy
/// of the packet shares it.
const UNSHARED: u32 = u32::MAX;

/// Returns the number of buffer blocks that a packet of `bytes` bytes occupies.
pub(crate) const fn blocks(bytes: usize) -> u16 {
    bytes.div_ceil(BLOCK) as u16
}

/// A packet in flight.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    /// The end port that has sent the packet.
    pub(crate) from: PortId,
    pub(crate) packet: Packet,
    /// Number of the packet, counted from 1 in the order of sending. A copy has the number of its
    /// original.
    pub(crate) number: u64,
    /// The client's request that fails if the packet is lost.
    pub(crate) request: Option<RequestKey>,
    /// Number of switches that the packet has passed.
    pub(crate) hops: u16,
    /// The VL on the current link or in the current queue.
    pub(crate) vl: u8,
    /// Time at which the packet was put into the current port queue. Switches forward without
    /// delay, so this is also the time of arrival.
    pub(crate) queued_at: Instant,
    /// The buffer space that the packet occupies.
    pub(crate) holds: Option<BufferSpace>,
    /// True if a fault has damaged the packet on its current link.
    pub(crate) damaged: bool,
    /// The number of the port at which the packet has arrived at the current node.
    pub(crate) arrived_by: u8,
}

/// Buffer space at a port that a packet occupies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BufferSpace {
    pub(crate) port: PortId,
    pub(crate) vl: u8,
    pub(crate) blocks: u16,
    pub(crate) epoch: u32,
    /// Index of the counter of the packet's copies in this buffer space; [`UNSHARED`] if there is
    /// only one copy.
    shared: u32,
}

impl BufferSpace {
    /// Returns the buffer space that a packet of `bytes` bytes occupies at a port.
    pub(crate) const fn new(port: PortId, vl: u8, bytes: usize, epoch: u32) -> Self {
        Self { port, vl, blocks: blocks(bytes), epoch, shared: UNSHARED }
    }

    /// Returns the index of the counter of copies that share this buffer space; `None` if it is not
    /// shared.
    #[cfg(test)]
    pub(crate) fn shared(&self) -> Option<u32> {
        (self.shared != UNSHARED).then_some(self.shared)
    }
}

/// Buffer space that is freed when the last copy of a packet has left it.
#[derive(Clone, Copy, Debug)]
struct SharedBufferSpace {
    copies: u16,
    /// Time when the last of the copies that are already being transmitted will have left the
    /// buffer space.
    gone_at: Instant,
}

/// All packets in flight.
///
/// A copy in shared buffer space is counted until it leaves the space. Each counter counts at least
/// one copy.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    flights: Slab<Flight>,
    shared: Slab<SharedBufferSpace>,
    /// Number of packets that [`Flights::launch`] has added so far, without copies.
    launched: u64,
    /// Payload vectors for reuse.
    spare: Vec<Vec<u8>>,
}

impl Flights {
    /// Adds a packet that a port sends. Returns the key of the packet.
    #[inline]
    pub(crate) fn launch(
        &mut self,
        from: PortId,
        packet: Packet,
        request: Option<RequestKey>,
    ) -> u32 {
        self.launched += 1;
        self.flights.insert(Flight {
            from,
            packet,
            number: self.launched,
            request,
            hops: 0,
            vl: 0,
            queued_at: Instant::ZERO,
            holds: None,
            damaged: false,
            arrived_by: 0,
        }) as u32
    }

    /// Adds a copy of a packet. The copy occupies the same buffer space as the packet, and belongs
    /// to no request. Returns the key of the copy.
    pub(crate) fn copy(&mut self, key: u32) -> u32 {
        let copy = Flight { request: None, ..self.get(key).clone() };
        self.flights.insert(copy) as u32
    }

    #[inline]
    pub(crate) fn get(&self, key: u32) -> &Flight {
        &self.flights[key as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, key: u32) -> &mut Flight {
        &mut self.flights[key as usize]
    }

    /// Removes a packet. The caller has to free the packet's buffer space.
    #[inline]
    pub(crate) fn remove(&mut self, key: u32) -> Flight {
        self.flights.remove(key as usize)
    }

    /// Marks the buffer space of a packet as shared by the packet and its copies. `copies` is their
    /// total number.
    pub(crate) fn share_space(&mut self, key: u32, copies: usize, now: Instant) {
        if let Some(hold) = &mut self.flights[key as usize].holds {
            let shared = SharedBufferSpace { copies: copies as u16, gone_at: now };
            hold.shared = self.shared.insert(shared) as u32;
        }
    }

    /// Records that a packet leaves its buffer space at the time `at`. Returns the time when the
    /// space is free; `None` if other copies remain there.
    #[inline]
    pub(crate) fn free_at(&mut self, hold: BufferSpace, at: Instant) -> Option<Instant> {
        if hold.shared == UNSHARED {
            return Some(at);
        }
        let shared = &mut self.shared[hold.shared as usize];
        shared.copies -= 1;
        shared.gone_at = shared.gone_at.max(at);
        if shared.copies > 0 {
            return None;
        }
        Some(self.shared.remove(hold.shared as usize).gone_at)
    }

    /// Returns a vector for the payload of a packet: a recycled vector with its old contents, or an
    /// empty one.
    pub(crate) fn take_buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Keeps the payload vector of a packet for reuse.
    pub(crate) fn give_buffer(&mut self, buffer: Vec<u8>) {
        if buffer.len() >= MIN_SPARE_LENGTH && self.spare.len() < MAX_SPARE_BUFFERS {
            self.spare.push(buffer);
        }
    }
}

#[cfg(test)]
impl Flights {
    pub(crate) fn len(&self) -> usize {
        self.flights.len()
    }

    pub(crate) fn contains(&self, key: u32) -> bool {
        self.flights.contains(key as usize)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Flight> {
        self.flights.iter().map(|(_, flight)| flight)
    }

    /// Returns the number of buffer spaces that several copies of a packet share.
    pub(crate) fn shared_spaces(&self) -> usize {
        self.shared.len()
    }
}

#[cfg(test)]
mod tests;
