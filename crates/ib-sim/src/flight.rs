//! Packets in flight, and the room that they take in buffers.

use ib_topology::PortId;
use ib_types::Instant;
use slab::Slab;

use crate::ids::RequestKey;
use crate::packet::Packet;

/// The unit of credits in bytes.
pub(crate) const BLOCK: usize = 64;

/// How many payload buffers are kept for further packets, and how large one has to be.
const MOST_SPARE: usize = 4096;
const SPARE_LENGTH: usize = 1024;

/// The copy has the room for itself.
const ALONE: u32 = u32::MAX;

/// Returns how many blocks of a buffer a packet takes.
pub(crate) const fn blocks(bytes: usize) -> u16 {
    bytes.div_ceil(BLOCK) as u16
}

/// A packet in flight.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    /// The port that has sent it first.
    pub(crate) from: PortId,
    pub(crate) packet: Packet,
    /// Which of all packets it is.
    pub(crate) number: u64,
    /// The client's request that is lost when the packet is.
    pub(crate) request: Option<RequestKey>,
    /// The switches that it passed.
    pub(crate) hops: u16,
    /// The VL of the link that it is on or waits for.
    pub(crate) vl: u8,
    /// Since when it has waited in the queue of a port, once it had to: a switch takes no time for
    /// what it passes on, so that is the time when it came.
    pub(crate) queued_at: Instant,
    /// The buffer that it stands in.
    pub(crate) holds: Option<Hold>,
    /// Whether a fault damaged it on its last link.
    pub(crate) damaged: bool,
    /// The number of the port by which it entered the node where it is.
    pub(crate) arrived_by: u8,
}

/// Room in the buffer of a port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hold {
    pub(crate) port: PortId,
    pub(crate) vl: u8,
    pub(crate) blocks: u16,
    pub(crate) epoch: u32,
    /// The counter of the copies of the packet that stand there; [`ALONE`] for one.
    shared: u32,
}

impl Hold {
    /// Returns the room of a packet of so many bytes in the buffer of a port.
    pub(crate) const fn new(port: PortId, vl: u8, bytes: usize, epoch: u32) -> Self {
        Self { port, vl, blocks: blocks(bytes), epoch, shared: ALONE }
    }

    /// Returns the counter of copies, if several stand in the room.
    #[cfg(test)]
    pub(crate) fn shared(&self) -> Option<u32> {
        (self.shared != ALONE).then_some(self.shared)
    }
}

/// Room that is given back when the last copy of a packet has left it.
#[derive(Clone, Copy, Debug)]
struct SharedHold {
    copies: u16,
    /// When the last of those that have a time to leave is gone.
    gone_at: Instant,
}

/// All packets in flight.
///
/// A copy that stands in shared room is counted there until it leaves; each counter has at least one
/// copy left.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    flights: Slab<Flight>,
    shared: Slab<SharedHold>,
    /// Number of packets so far.
    launched: u64,
    /// Memory for payloads.
    spare: Vec<Vec<u8>>,
}

impl Flights {
    /// Adds a packet that a port sends first.
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

    /// Adds a copy of a packet, which is no client's request. The copy stands in the same room.
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

    /// Removes a packet; its room is the caller's to give back.
    #[inline]
    pub(crate) fn remove(&mut self, key: u32) -> Flight {
        self.flights.remove(key as usize)
    }

    /// Has a packet share the room in which it stands with copies of itself, so many in all.
    pub(crate) fn share_room(&mut self, key: u32, copies: usize, now: Instant) {
        if let Some(hold) = &mut self.flights[key as usize].holds {
            let shared = SharedHold { copies: copies as u16, gone_at: now };
            hold.shared = self.shared.insert(shared) as u32;
        }
    }

    /// Returns when room is free that a packet leaves at a moment; `None` while copies stand in it.
    #[inline]
    pub(crate) fn free_at(&mut self, hold: Hold, at: Instant) -> Option<Instant> {
        if hold.shared == ALONE {
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

    /// Returns a vector for the payload of a packet: one that was given back, with whatever it holds,
    /// or an empty one.
    pub(crate) fn take_buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Keeps the payload of a packet, so that another one needs no new memory.
    pub(crate) fn give_buffer(&mut self, buffer: Vec<u8>) {
        if buffer.len() >= SPARE_LENGTH && self.spare.len() < MOST_SPARE {
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

    /// Returns the number of counters of copies.
    pub(crate) fn shared_rooms(&self) -> usize {
        self.shared.len()
    }
}

#[cfg(test)]
mod tests;
