//! Configuration and counters of the connection manager (CM).

use std::time::Duration;

use ib_types::Guid;
use ib_wire::mad::Mad;

/// Enhanced connection establishment (ECE): vendor data that HCAs exchange in REQ and REP.
///
/// A REP has a vendor ID only if the REQ has the same one: librdmacm closes the connection otherwise. librdmacm
/// repeats the ID of an unknown vendor, with options 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ece {
    /// The vendor ID: 24 bits, not zero.
    pub vendor_id: u32,
    /// The vendor's options, in the attribute modifier; not zero.
    pub options: u32,
}

/// Configuration of a CM.
///
/// Timeouts that are exponents mean 4.096 µs × 2^value, 0 to 31; see [`timeout`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CmConfig {
    /// GUID of the local HCA. Peers distinguish connections by it: the GUID must be unique among all CMs that a peer may
    /// communicate with within one time-wait, including the next run of a program.
    pub ca_guid: Guid,
    /// The ECE that REQ offers, if any.
    ///
    /// A peer that offers or confirms the same one is an HCA of ibfabric. Its packets have an ICRC
    /// that is never weak ([`Route::is_weak`](ib_link::Route::is_weak)).
    pub ece: Option<Ece>,
    /// Number of retransmissions of REQ, `SIDR_REQ` and the active side's DREQ, 0 to 15. The REQ carries it to the
    /// peer, which uses it for REP.
    pub retries: u8,
    /// Response timeout of each side, an exponent, 0 to 31.
    pub response_timeout: u8,
    /// Packet life time, an exponent, 0 to 31.
    pub packet_life_time: u8,
    /// Service timeout in an MRA, an exponent, 0 to 31. An MRA is sent if a message is repeated before the consumer has
    /// answered. A peer also waits for this time if the answer after the MRA is lost.
    pub service_timeout: u8,
    /// Maximum accepted timeout in a REQ or MRA, an exponent; larger values are limited to it.
    pub longest_timeout: u8,
    /// Time that the consumer has to answer a REQ, REP or `SIDR_REQ` before the CM rejects it.
    pub consumer_timeout: Duration,
    /// Duration of time-wait; `None` for the ACK timeout in the REQ, within which packets of the connection may still
    /// arrive.
    pub time_wait: Option<Duration>,
    /// Maximum time for which a REJ and a `SIDR_REP` are cached after the last request, to answer a repeated
    /// request. The service timeout of an MRA is added.
    pub answer_time: Duration,
    /// Maximum number of connections, including those in time-wait.
    pub max_connections: usize,
    /// Maximum number of received requests that are not established (half-open).
    ///
    /// At the limit, a further request ends a connection that waits for its RTU: the oldest one of
    /// the address with the most of them. So no address can shut out others. The request is
    /// rejected if no connection waits for its RTU.
    pub max_half_open: usize,
    /// Maximum time that an accepted request waits for its RTU.
    pub half_open_time: Duration,
    /// Maximum number of responses a second to peers without a connection, mostly REJs.
    pub refusals_per_second: u32,
    /// Maximum number of cached `SIDR_REQ`s of peers, and of own outstanding ones.
    pub max_sidr: usize,
}

impl Default for CmConfig {
    /// Returns no GUID, 15 retries, a response timeout of 268 ms, a packet life time of 67 ms, and
    /// a consumer timeout of 60 s.
    ///
    /// A message without a response is retransmitted after 403 ms, and given up after 6.4 s. Linux uses
    /// 6.1 s and 98 s, and for a REP the values of the REQ. An MRA has a service timeout of 4.3 s, that of
    /// Linux 69 s. With 15 retries, 4.3 s covers the time that a consumer may take.
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
    /// Returns the retransmission timeout: response timeout plus twice the packet life time.
    pub(crate) fn interval(&self) -> Duration {
        timeout(self.response_timeout) + 2 * timeout(self.packet_life_time)
    }

    /// Returns true if a REQ or REP has the vendor ID and the options of this configuration.
    pub(crate) fn shares_ece(&self, mad: &Mad, vendor_id: u32) -> bool {
        self.ece == Some(Ece { vendor_id, options: mad.attribute_modifier() })
    }

    /// Limits a timeout requested by a peer to a sensible range.
    ///
    /// The lower limit protects a peer with a timeout of 0 from being flooded.
    pub(crate) fn limited_timeout(&self, exponent: u8) -> Duration {
        timeout(exponent.min(self.longest_timeout).max(SHORTEST_TIMEOUT))
    }
}

/// Minimum retransmission timeout: 16.8 ms.
const SHORTEST_TIMEOUT: u8 = 12;

/// Returns 4.096 µs × 2^exponent; exponents above 31 count as 31, which is 2 h 26 min.
///
/// IBTA volume 1, chapters 9.7.6.1.3 and 12.7.
#[must_use]
pub const fn timeout(exponent: u8) -> Duration {
    let exponent = if exponent > 31 { 31 } else { exponent };
    Duration::from_nanos(4_096 << exponent)
}

/// Counters of a CM, including reasons of drops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CmCounters {
    /// Received MADs of the CM class.
    pub received: u64,
    /// MADs handed out for transmission.
    pub sent: u64,
    /// Messages retransmitted because no response came in time.
    pub resent: u64,
    /// Dropped: not class version 2, not a Send, or an invalid queue pair.
    pub malformed: u64,
    /// Dropped: an unsupported message, such as SAP and APR.
    pub unsupported: u64,
    /// Dropped or answered without a connection: unknown communication IDs.
    pub unknown: u64,
    /// Repeated messages; some were answered again.
    pub duplicates: u64,
    /// Dropped: the state of the connection does not allow the message.
    pub unexpected: u64,
    /// Dropped: a DREQ or LAP for another queue pair than that of the connection.
    pub wrong_qpn: u64,
    /// REQs and `SIDR_REQ`s rejected without the consumer.
    pub refused: u64,
    /// Half-open connections ended in favour of other requests.
    pub evicted: u64,
    /// Stale connections: the peer uses the queue pair for another connection.
    pub stale: u64,
    /// REJs not sent because of the limit per second.
    pub limited: u64,
    /// Responses dropped because [`poll_transmit`](super::Cm::poll_transmit) was not called for too long.
    pub overflowed: u64,
}
