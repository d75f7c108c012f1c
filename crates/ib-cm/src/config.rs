//! How a connection manager works, and what it has seen.

use std::time::Duration;

use ib_types::Guid;
use ib_wire::mad::Mad;

/// An enhanced connection establishment (ECE): what a vendor's HCAs tell each other in REQ and REP.
///
/// A REP has a vendor ID only in answer to a REQ that has the same one: librdmacm closes the connection otherwise. It
/// repeats the ID also where it does not know the vendor; the options are zero then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ece {
    /// The vendor ID, 24 bits, not zero.
    pub vendor_id: u32,
    /// What the vendor's HCAs can do, in the attribute modifier; not zero.
    pub options: u32,
}

/// How a connection manager works.
///
/// Exponents stand for 4.096 µs × 2^value, 0 to 31, as everywhere in InfiniBand; see
/// [`timeout`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CmConfig {
    /// The own HCA. Peers tell connections apart by it: it must differ between any two managers
    /// that a peer may talk to within one time-wait, the next run of one program included.
    pub ca_guid: Guid,
    /// The enhanced connection establishment that REQ offers, if any. A peer that offers or confirms the same one is an
    /// HCA of this project, whose packets have an ICRC that is never weak (`Route::is_weak`).
    pub ece: Option<Ece>,
    /// How often REQ, `SIDR_REQ` and the DREQ of the side that asked are sent again, 0 to 15. REQ tells
    /// it to the peer, which does the same with REP.
    pub retries: u8,
    /// How long each side may take to answer a message, an exponent, 0 to 31.
    pub response_timeout: u8,
    /// How long a datagram may be on its way, an exponent, 0 to 31.
    pub packet_life_time: u8,
    /// What a MRA asks for that is sent because a message came again while the consumer still thinks,
    /// an exponent, 0 to 31. It is also what a peer waits for when the answer behind it is lost.
    pub service_timeout: u8,
    /// The longest time that a peer may ask for in REQ or MRA, an exponent; more counts as this.
    pub longest_timeout: u8,
    /// How long the consumer may take to answer a REQ, a REP or a `SIDR_REQ`, before it is
    /// refused.
    pub consumer_timeout: Duration,
    /// How long a connection that has ended is remembered; `None` for the time that its REQ allows
    /// for acknowledgements, which is how long a packet of it may still arrive.
    pub time_wait: Option<Duration>,
    /// How long the refusal of a REQ and the answer of a `SIDR_REQ` are remembered at most, after the
    /// message came last, to be sent again when it comes again. What a MRA has asked for is added.
    pub answer_time: Duration,
    /// How many connections there may be, those in time-wait included.
    pub max_connections: usize,
    /// How many of them may be requests of others that are not established.
    pub max_half_open: usize,
    /// How long a request of another side that was accepted may stay without its RTU, at most.
    pub half_open_time: Duration,
    /// How many answers a second go to those with whom there is no connection: refusals, mostly.
    pub refusals_per_second: u32,
    /// How many `SIDR_REQ`s of others are remembered, and how many own ones may be in flight.
    pub max_sidr: usize,
}

impl Default for CmConfig {
    /// No GUID; 15 retries, 268 ms to answer, 67 ms of packet life time; a silent consumer has 60 s.
    ///
    /// A message without an answer is sent again after 403 ms, and given up after 6.4 s. Linux waits
    /// for 6.1 s and for 98 s, and takes over for REP what the REQ says. A MRA asks for 4.3 s, where
    /// Linux asks for 69 s: with 15 retries that is as long as a consumer may be silent.
    fn default() -> Self {
        Self {
            ca_guid: Guid::ZERO,
            ece: None,
            retries: 15,
            response_timeout: 16,
            packet_life_time: 14,
            service_timeout: 20,
            longest_timeout: 24,
            consumer_timeout: Duration::from_secs(60),
            time_wait: None,
            answer_time: Duration::from_secs(8),
            max_connections: 65_536,
            max_half_open: 1_024,
            half_open_time: Duration::from_secs(15),
            refusals_per_second: 2_000,
            max_sidr: 1_024,
        }
    }
}

impl CmConfig {
    /// Returns how long the answer to a message is awaited: what the peer may take and two ways.
    pub(super) fn interval(&self) -> Duration {
        timeout(self.response_timeout) + 2 * timeout(self.packet_life_time)
    }

    /// Returns true if a REQ or REP has the vendor ID and the options of this configuration.
    pub(super) fn shares_ece(&self, mad: &Mad, vendor_id: u32) -> bool {
        self.ece == Some(Ece { vendor_id, options: mad.attribute_modifier() })
    }

    /// Returns a time that a peer asks for, within what is sensible.
    ///
    /// The lower limit keeps a peer that asks for nothing from being flooded.
    pub(super) fn granted(&self, exponent: u8) -> Duration {
        timeout(exponent.min(self.longest_timeout).max(SHORTEST_TIMEOUT))
    }
}

/// 16.8 ms: the shortest time after which a message is sent again.
const SHORTEST_TIMEOUT: u8 = 12;

/// Returns 4.096 µs × 2^exponent; exponents above 31 count as 31, which is 2 h 26 min.
///
/// IBTA volume 1, chapters 9.7.6.1.3 and 12.7.
#[must_use]
pub const fn timeout(exponent: u8) -> Duration {
    let exponent = if exponent > 31 { 31 } else { exponent };
    Duration::from_nanos(4_096 << exponent)
}

/// What a connection manager has seen, and why it dropped what it dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CmCounters {
    /// Datagrams of the class that came in.
    pub received: u64,
    /// Datagrams handed out.
    pub sent: u64,
    /// Messages sent again because no answer came in time.
    pub resent: u64,
    /// Dropped: not version 2 of the class, not a Send, or a queue pair that cannot be.
    pub malformed: u64,
    /// Dropped: a message that is not spoken, such as SAP and APR.
    pub unsupported: u64,
    /// Dropped or answered without a connection: numbers that belong to none.
    pub unknown: u64,
    /// Messages that came before; some were answered once more.
    pub duplicates: u64,
    /// Dropped: the state of the connection does not allow the message.
    pub unexpected: u64,
    /// Dropped: a DREQ or LAP for another queue pair than that of the connection.
    pub wrong_qpn: u64,
    /// REQs and `SIDR_REQ`s that were refused without asking the consumer.
    pub refused: u64,
    /// Connections whose queue pair the peer uses for another one.
    pub stale: u64,
    /// Refusals not sent because there were too many in a second.
    pub limited: u64,
    /// Answers not sent because [`poll_transmit`](super::Cm::poll_transmit) was not called for too
    /// long.
    pub overflowed: u64,
}
