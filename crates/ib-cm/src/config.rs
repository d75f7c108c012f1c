//! Configuration and counters of the connection manager (CM).

use std::time::Duration;

use ib_types::Guid;
use ib_wire::mad::Mad;

/// Enhanced connection establishment (ECE): vendor data that HCAs exchange in REQ and REP.
///
/// A REP may contain a vendor ID only if the REQ contains the same ID, because librdmacm otherwise closes the
/// connection. If librdmacm does not know the vendor ID of a REQ, its REP has the same ID, with options 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ece {
    /// The vendor ID: 24 bits, not zero.
    pub vendor_id: u32,
    /// The vendor's options, in the attribute modifier; not zero.
    pub options: u32,
}

/// Configuration of a CM.
///
/// A timeout that is an exponent, 0 to 31, stands for 4.096 µs × 2^exponent; see [`timeout`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CmConfig {
    /// GUID of the local HCA, by which peers distinguish connections. Two CMs that connect to the same peer need
    /// different GUIDs. So do two successive runs of a program, if the second run starts within the time-wait of the
    /// first run's connections.
    pub ca_guid: Guid,
    /// The ECE that the REQ offers, if any.
    ///
    /// A peer that offers or confirms the same ECE is an HCA of ibfabric. The ICRC of its packets can
    /// always be checked completely ([`Route::is_weak`](ib_link::Route::is_weak) is false).
    pub ece: Option<Ece>,
    /// Number of retransmissions of REQ, `SIDR_REQ` and the active side's DREQ, 0 to 15. The REQ contains this number,
    /// and the peer applies it to its REP.
    pub retries: u8,
    /// Response timeout of both sides: 4.096 µs × 2^exponent, with this exponent from 0 to 31.
    pub response_timeout: u8,
    /// Packet life time: 4.096 µs × 2^exponent, with this exponent from 0 to 31.
    pub packet_life_time: u8,
    /// Service timeout in an MRA: 4.096 µs × 2^exponent, with this exponent from 0 to 31. The CM sends an MRA if the
    /// peer repeats a message before the consumer has responded. If the response after the MRA is lost, the peer waits
    /// for this time before it repeats its message.
    pub service_timeout: u8,
    /// Maximum timeout: 4.096 µs × 2^exponent, with this exponent. A larger timeout in a REQ or MRA of a peer counts as
    /// this maximum.
    pub longest_timeout: u8,
    /// If the consumer does not respond to a REQ, REP or `SIDR_REQ` within this time, the CM rejects the message.
    pub consumer_timeout: Duration,
    /// Duration of time-wait, in which late packets of the connection may arrive; `None` for the ACK timeout in the
    /// REQ.
    pub time_wait: Option<Duration>,
    /// How long the CM caches a sent REJ of a REQ, or a sent `SIDR_REP`. If the peer repeats its request, the CM sends
    /// the cached message again, and this time restarts. The service timeout of a sent MRA is added.
    pub answer_time: Duration,
    /// Maximum number of connections, including those in time-wait.
    pub max_connections: usize,
    /// Maximum number of half-open connections: their REQ was received, but they are not established yet.
    ///
    /// If the limit is reached when a REQ arrives, the CM finds the peer address with the most connections that wait
    /// for their RTU, and ends the oldest of them. So no address can shut out others with REQs that it does not
    /// complete. If no connection waits for its RTU, the CM rejects the REQ.
    pub max_half_open: usize,
    /// Limits how long a connection waits for its RTU. The retransmission timeout of the REP is at most this time. The
    /// number of retransmissions is at most this time divided by the retransmission timeout.
    ///
    /// So the connection waits at most twice this time, plus the timeouts of MRAs that the peer sends.
    pub half_open_time: Duration,
    /// Maximum number of responses per second to peers without a connection. Most of these responses are REJs.
    pub refusals_per_second: u32,
    /// Maximum number of cached `SIDR_REQ`s of peers, and maximum number of outstanding `SIDR_REQ`s of this CM.
    pub max_sidr: usize,
}

impl Default for CmConfig {
    /// Returns a configuration without a GUID. It has 15 retries, a response timeout of 268 ms, a packet life
    /// time of 67 ms, and a consumer timeout of 60 s.
    ///
    /// If a message has no response, the CM retransmits it after 403 ms, and gives up after 6.4 s. Linux
    /// retransmits after 6.1 s and gives up after 98 s. For a REP, the CM and Linux use the values in the received REQ
    /// instead.
    ///
    /// The service timeout in an MRA is 4.3 s, and in Linux 69 s. A peer with 15 retries thus waits at least 64 s for
    /// the response. So the CM rejects the peer's message after the consumer timeout of 60 s, before the peer gives up.
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
    /// Returns the retransmission timeout: the response timeout plus twice the packet life time.
    pub(crate) fn interval(&self) -> Duration {
        timeout(self.response_timeout) + 2 * timeout(self.packet_life_time)
    }

    /// Returns true if a REQ or REP contains the ECE of this configuration: the same vendor ID and options.
    pub(crate) fn shares_ece(&self, mad: &Mad, vendor_id: u32) -> bool {
        self.ece == Some(Ece { vendor_id, options: mad.attribute_modifier() })
    }

    /// Returns the timeout that a peer has requested, limited to the range from [`SHORTEST_TIMEOUT`] to
    /// [`longest_timeout`](Self::longest_timeout).
    ///
    /// The lower limit prevents the CM from flooding a peer that requests a timeout of 0.
    pub(crate) fn limited_timeout(&self, exponent: u8) -> Duration {
        timeout(exponent.min(self.longest_timeout).max(SHORTEST_TIMEOUT))
    }
}

/// Minimum retransmission timeout as an exponent: 4.096 µs × 2^12 = 16.8 ms.
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
    /// MADs that [`poll_transmit`](super::Cm::poll_transmit) returned.
    pub sent: u64,
    /// Messages retransmitted because no response came in time.
    pub resent: u64,
    /// MADs dropped because of the version, a method other than Send, an invalid queue pair, or an ICRC that could be
    /// checked only in part.
    pub malformed: u64,
    /// MADs dropped because the message is not supported, such as SAP and APR.
    pub unsupported: u64,
    /// MADs with unknown communication IDs, which were dropped or rejected.
    pub unknown: u64,
    /// Messages that were received again. To some of them the CM has repeated its response.
    pub duplicates: u64,
    /// Messages that were dropped or rejected because they do not fit the state or the role of their connection. Also
    /// REPs in which the peer uses another communication ID than before.
    pub unexpected: u64,
    /// DREQs and LAPs dropped because they name another queue pair than the one of the connection.
    pub wrong_qpn: u64,
    /// REQs and `SIDR_REQ`s that the CM rejected itself, without asking the consumer.
    pub refused: u64,
    /// Half-open connections that the CM ended to make room for other requests.
    pub evicted: u64,
    /// Stale connections that the CM ended, because the peer uses its queue pair for another connection.
    pub stale: u64,
    /// REJs and other responses that were not sent because the limit of responses per second was reached.
    pub limited: u64,
    /// Responses dropped because too many were queued: [`poll_transmit`](super::Cm::poll_transmit) was called too late.
    pub overflowed: u64,
}
