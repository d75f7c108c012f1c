//! Loss recovery of a requester: which events cause retransmissions, and which of them use up a retry.
//!
//! | event | retransmits | uses up a retry |
//! |---|---|---|
//! | ACK timeout | all unacknowledged packets | yes |
//! | first NAK or implied NAK since the last progress | all unacknowledged packets | yes |
//! | later NAK or implied NAK without progress | all unacknowledged packets, after a wait that doubles per round | no |
//! | NAK or implied NAK with a PSN still to be retransmitted | no packets: the NAK answers an older transmission | no |
//! | progress: an acknowledged packet, or the next READ response | no packets | restores all retries |
//!
//! An implied NAK is a response that arrives while an earlier READ or atomic response is missing. A response does not
//! state which transmission of a packet it answers. The ACK timeout exceeds the time that any packet is in flight, so
//! each ACK timeout stands for a lost packet and uses up a retry. A repeated NAK, however, may answer an earlier
//! transmission, so only the first NAK since the last progress uses up a retry.

use std::time::Duration;

use ib_types::{Instant, Psn};

/// Minimum time without a response after which the last packet is retransmitted as a probe.
const LEAST_PROBE: Duration = Duration::from_micros(10);

/// The time between retransmissions doubles at most this many times.
const MOST_DOUBLINGS: u32 = 10;

/// Minimum congestion window in packets.
const LEAST_WINDOW: u32 = 16;

/// Value of the RNR retry count for an unlimited number of retries.
const UNLIMITED: u8 = 7;

/// Error: all retries are used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoRetriesLeft;

/// State of loss recovery: the last round of retransmissions, and the retries left. A round retransmits all
/// unacknowledged packets.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    /// The last round of retransmissions: PSN of the oldest unacknowledged packet, and start time of the round.
    round: Option<(Psn, Instant)>,
    /// Number of retransmission rounds since the requester last made progress or an ACK timeout expired.
    stalled: u32,
    /// True if a NAK has used up a retry since the requester last made progress.
    is_counted: bool,
    /// A suspected loss: a NAK has arrived too early to answer the current round. The values are the PSN of the oldest
    /// unacknowledged packet, and the time from which this packet counts as lost.
    suspected: Option<(Psn, Instant)>,
    retries_left: u8,
    rnr_retries_left: u8,
}

impl Recovery {
    /// Records that a packet was acknowledged or the next READ response has arrived: restores all retries.
    pub(super) const fn progress(&mut self, retries: u8, rnr_retries: u8) {
        (self.stalled, self.is_counted) = (0, false);
        (self.retries_left, self.rnr_retries_left) = (retries, rnr_retries);
    }

    /// Returns the time from which the suspected loss counts as a loss.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.suspected.map(|(_, at)| at)
    }

    /// Returns the start time of the last round of retransmissions.
    pub(super) fn round_began(&self) -> Option<Instant> {
        self.round.map(|(_, began)| began)
    }

    /// Processes a NAK or implied NAK: the oldest unacknowledged packet is missing. Returns true if the caller has to
    /// retransmit packets now. Returns false if the NAK may answer a packet sent before the current round. The loss is
    /// then only suspected until `deadline`.
    ///
    /// A NAK that arrives within this time after the start of the round may answer a packet sent before the round:
    /// - the retransmission timeout, if `oldest` was also the oldest packet at the start of the round; the time doubles
    ///   with each further round without progress
    /// - the smoothed round-trip time, if another packet was the oldest one at the start of the round
    /// - a quarter of the ACK timeout, if no round-trip time has been measured; 10 µs if there is no ACK timeout
    pub(super) fn report_missing(
        &mut self,
        oldest: Psn,
        now: Instant,
        round_trip: Option<RoundTrip>,
        ack_timeout: Option<Duration>,
    ) -> bool {
        let Some((first, began)) = self.round else { return true };
        let until = began
            + match round_trip {
                Some(time) if first == oldest => {
                    let doublings = self.stalled.saturating_sub(1).min(MOST_DOUBLINGS);
                    time.timeout() * (1 << doublings)
                }
                Some(time) => time.smoothed,
                None => ack_timeout.map_or(LEAST_PROBE, |timeout| timeout / 4),
            };
        if now >= until {
            return true;
        }
        if self.suspected.is_none_or(|(suspected, _)| suspected != oldest) {
            self.suspected = Some((oldest, until));
        }
        false
    }

    /// Removes the suspected loss if its waiting time is over. Returns true if the suspected packet is still the oldest
    /// unacknowledged packet, and therefore counts as lost.
    pub(super) fn take_suspected(&mut self, oldest: Psn, now: Instant) -> bool {
        self.suspected.take_if(|(_, at)| *at <= now).is_some_and(|(psn, _)| psn == oldest)
    }

    /// Starts a round of retransmissions with the packet that has PSN `oldest`.
    pub(super) const fn start_round(&mut self, oldest: Psn, now: Instant) {
        self.round = Some((oldest, now));
        self.stalled += 1;
        self.suspected = None;
    }

    /// Uses up a retry after an ACK timeout.
    pub(super) fn use_retry_for_timeout(&mut self) -> Result<(), NoRetriesLeft> {
        self.use_retry()?;
        self.stalled = 0;
        Ok(())
    }

    /// Processes a loss that a NAK reports. Uses up a retry and returns true. Returns false if a NAK has already used
    /// up a retry and the requester has made no progress since.
    pub(super) fn use_retry_for_nak(&mut self) -> Result<bool, NoRetriesLeft> {
        if self.is_counted {
            return Ok(false);
        }
        self.use_retry()?;
        self.is_counted = true;
        Ok(true)
    }

    fn use_retry(&mut self) -> Result<(), NoRetriesLeft> {
        self.retries_left = self.retries_left.checked_sub(1).ok_or(NoRetriesLeft)?;
        Ok(())
    }

    /// Uses up a retry after an RNR NAK. `limit` is the RNR retry count of the connection.
    pub(super) fn use_rnr_retry(&mut self, limit: u8) -> Result<(), NoRetriesLeft> {
        let left = self.rnr_retries_left.checked_sub(1).ok_or(NoRetriesLeft)?;
        if limit != UNLIMITED {
            self.rnr_retries_left = left;
        }
        Ok(())
    }
}

/// Round-trip time estimate, as in RFC 6298.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrip {
    smoothed: Duration,
    variation: Duration,
}

impl RoundTrip {
    /// Returns the `earlier` estimate, updated with the measured round-trip time `took`.
    fn with(earlier: Option<Self>, took: Duration) -> Self {
        let Some(Self { smoothed, variation }) = earlier else {
            return Self { smoothed: took, variation: took / 2 };
        };
        Self {
            smoothed: smoothed * 7 / 8 + took / 8,
            variation: variation * 3 / 4 + smoothed.abs_diff(took) / 4,
        }
    }

    /// Returns the retransmission timeout: the smoothed round-trip time and four times its variation, at least 10 µs.
    pub(super) fn timeout(self) -> Duration {
        (self.smoothed + 4 * self.variation).max(LEAST_PROBE)
    }
}

/// Round-trip time estimator. It measures one packet at a time.
#[derive(Debug, Default)]
pub(super) struct RoundTripTimer {
    /// The packet whose round-trip time is being measured, and the time at which it was sent.
    timed: Option<(Psn, Instant)>,
    pub(super) estimate: Option<RoundTrip>,
}

impl RoundTripTimer {
    /// Records the first transmission of a packet.
    #[inline]
    pub(super) const fn sent(&mut self, psn: Psn, now: Instant) {
        if self.timed.is_none() {
            self.timed = Some((psn, now));
        }
    }

    /// Records that all packets up to `psn` are acknowledged.
    ///
    /// If there is neither an estimate nor a current measurement, the time since `round_began`, the start of the last
    /// retransmission round, becomes the first estimate. An estimate that is too short is better than no estimate.
    pub(super) fn acknowledged(&mut self, psn: Psn, now: Instant, round_began: Option<Instant>) {
        if self.estimate.is_none()
            && self.timed.is_none()
            && let Some(began) = round_began
        {
            self.estimate = Some(RoundTrip::with(None, now.since(began)));
        }
        if let Some((timed, since)) = self.timed
            && !psn.is_before(timed)
        {
            self.estimate = Some(RoundTrip::with(self.estimate, now.since(since)));
            self.timed = None;
        }
    }

    /// Cancels the current measurement of a round-trip time, because packets will be retransmitted.
    pub(super) const fn cancel(&mut self) {
        self.timed = None;
    }

    /// Returns the time after which a probe is sent if no response arrives.
    #[inline]
    pub(super) fn timeout(&self) -> Option<Duration> {
        self.estimate.map(RoundTrip::timeout)
    }
}

/// Tail loss probe: the last packet is retransmitted once if no response arrives within the retransmission timeout.
#[derive(Debug, Default)]
pub(super) struct Probe {
    /// Time at which the probe is due.
    pub(super) deadline: Option<Instant>,
    /// True if the next packet to send is the probe.
    is_next: bool,
    /// True if a probe was sent and no response has arrived since.
    is_sent: bool,
}

impl Probe {
    /// After a packet was sent, starts the probe timer, unless the timer is running or a probe awaits a response.
    #[inline]
    pub(super) fn sent(&mut self, now: Instant, timeout: Option<Duration>) {
        if self.deadline.is_none() && !self.is_sent {
            self.deadline = timeout.map(|after| now + after);
        }
    }

    /// Processes a response: allows another probe. While packets are in flight, keeps or starts the probe timer;
    /// otherwise stops it.
    pub(super) fn acknowledged(
        &mut self,
        now: Instant,
        is_in_flight: bool,
        timeout: Option<Duration>,
    ) {
        self.is_sent = false;
        if !is_in_flight {
            self.deadline = None;
        } else if self.deadline.is_none() {
            self.deadline = timeout.map(|after| now + after);
        }
    }

    /// If the probe timer has expired, requests the probe, unless a packet was sent within the last `timeout`.
    /// `timeout` is `None` if no packet is in flight or no round-trip time is known. Then no probe is requested.
    pub(super) fn handle_timeout(
        &mut self,
        now: Instant,
        last_sent: Instant,
        timeout: Option<Duration>,
    ) {
        if self.deadline.is_none_or(|at| at > now) {
            return;
        }
        self.deadline = None;
        let Some(after) = timeout else { return };
        if last_sent + after > now {
            self.deadline = Some(last_sent + after);
        } else if !self.is_sent {
            (self.is_next, self.is_sent) = (true, true);
        }
    }

    /// Returns true if the next packet to send is the probe.
    pub(super) const fn is_next(&self) -> bool {
        self.is_next
    }

    /// Returns true if the next packet to send is the probe, and resets this flag.
    #[inline]
    pub(super) const fn take(&mut self) -> bool {
        std::mem::replace(&mut self.is_next, false)
    }
}

/// Congestion window: the maximum number of packets in flight.
#[derive(Debug, Default)]
pub(super) struct CongestionWindow {
    size: u32,
    most: u32,
    /// Number of packets acknowledged since the window last grew or shrank.
    acknowledged: u32,
}

impl CongestionWindow {
    pub(super) const fn new(most: u32) -> Self {
        Self { size: most, most, acknowledged: 0 }
    }

    /// Returns the window: the maximum number of packets in flight.
    pub(super) const fn size(&self) -> u32 {
        self.size
    }

    /// Halves the window after a loss.
    pub(super) fn shrink(&mut self) {
        self.size = (self.size / 2).max(LEAST_WINDOW);
        self.acknowledged = 0;
    }

    /// Grows the window by one packet whenever a whole window of packets has been acknowledged.
    pub(super) fn grow(&mut self, packets: u32) {
        if self.size >= self.most {
            return;
        }
        self.acknowledged += packets;
        if self.acknowledged >= self.size {
            self.acknowledged = 0;
            self.size = (self.size + 1).min(self.most);
        }
    }
}

#[cfg(test)]
mod tests;
