//! Loss recovery of a send queue: the events that retransmit packets, and those that use up a retry.
//!
//! | event | retransmits | uses up a retry |
//! |---|---|---|
//! | ACK timeout | all unacknowledged packets | yes |
//! | NAK or implied NAK, the first since the last progress | all unacknowledged packets | yes |
//! | NAK or implied NAK, a later one without progress | the same, after a time that doubles | no |
//! | response to a packet that this round has not retransmitted yet | no packets: the response belongs to an older round | no |
//! | progress: an acknowledged packet, or the next READ response | no packets | restores all retries |
//!
//! An implied NAK is a response behind a missing READ or atomic response. Responses carry no number of the round that
//! they answer. An ACK timeout is longer than any packet is in flight, so that each retry stands for a lost packet. A
//! NAK, however, may answer an earlier transmission of the packet.

use std::time::Duration;

use ib_types::{Instant, Psn};

use super::acked::Failed;
use super::core::{Core, Cx};
use super::send::SendQueue;
use crate::objects::WcStatus;

/// Minimum time without a response before the last packet is retransmitted as a probe.
const LEAST_PROBE: Duration = Duration::from_micros(10);

/// Maximum number of doublings of the time between retransmissions.
const MOST_DOUBLINGS: u32 = 10;

/// The state of loss recovery.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    /// The last round of retransmissions: the oldest unacknowledged packet and the time when it began.
    round: Option<(Psn, Instant)>,
    /// The number of rounds since the last progress or timeout.
    stalled: u32,
    /// True if a NAK has used up a retry since the last progress.
    is_counted: bool,
    /// A suspected loss, reported too early to belong to the current round: the oldest unacknowledged packet. At the
    /// given time the packet is considered lost if it is still the oldest.
    suspected: Option<(Psn, Instant)>,
}

impl Recovery {
    /// Records progress.
    pub(super) const fn progress(&mut self) {
        (self.stalled, self.is_counted) = (0, false);
    }

    /// Returns the time at which a suspected loss is considered a loss.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.suspected.map(|(_, at)| at)
    }
}

/// Round-trip time estimator.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrip {
    /// The smoothed round-trip time and its variation, as in RFC 6298.
    smoothed: Duration,
    variation: Duration,
}

impl RoundTrip {
    /// Returns the estimate with another sample.
    fn with(earlier: Option<Self>, took: Duration) -> Self {
        let Some(Self { smoothed, variation }) = earlier else {
            return Self { smoothed: took, variation: took / 2 };
        };
        Self {
            smoothed: smoothed * 7 / 8 + took / 8,
            variation: variation * 3 / 4 + smoothed.abs_diff(took) / 4,
        }
    }

    /// Returns the retransmission timeout: a packet is rarely in flight for longer.
    pub(super) fn patience(self) -> Duration {
        (self.smoothed + 4 * self.variation).max(LEAST_PROBE)
    }
}

impl SendQueue {
    /// Adds a round-trip sample. The first one may be that of a retransmitted packet: an estimate that is too short
    /// is better than no estimate.
    pub(super) fn time(&mut self, psn: Psn, now: Instant) {
        if self.round_trip.is_none()
            && self.timed.is_none()
            && let Some((_, began)) = self.recovery.round
        {
            self.round_trip = Some(RoundTrip::with(None, now.since(began)));
        }
        if let Some((timed, since)) = self.timed
            && !psn.is_before(timed)
        {
            self.round_trip = Some(RoundTrip::with(self.round_trip, now.since(since)));
            self.timed = None;
        }
    }

    /// Processes a NAK or implied NAK: a response of this PSN shows that the oldest unacknowledged packet is missing.
    pub(super) fn missing(&mut self, core: &Core, now: Instant, psn: Psn) -> Result<(), Failed> {
        // After an RNR NAK all unacknowledged packets are retransmitted in any case.
        if self.pause.is_some() || !psn.is_before(self.next) {
            return Ok(());
        }
        let oldest = self.unacked;
        if let Some((first, began)) = self.recovery.round
            && let until = began + self.wait(core, first == oldest)
            && now < until
        {
            if self.recovery.suspected.is_none_or(|(suspected, _)| suspected != oldest) {
                self.recovery.suspected = Some((oldest, until));
            }
            return Ok(());
        }
        self.retransmit_missing(now)
    }

    /// Returns the time in which NAKs may still answer packets sent before the current round.
    fn wait(&self, core: &Core, is_stalled: bool) -> Duration {
        let unknown = self.timeout(core).map_or(LEAST_PROBE, |timeout| timeout / 4);
        match self.round_trip {
            Some(time) if is_stalled => {
                let doublings = self.recovery.stalled.saturating_sub(1).min(MOST_DOUBLINGS);
                time.patience() * (1 << doublings)
            }
            Some(time) => time.smoothed,
            None => unknown,
        }
    }

    fn retransmit_missing(&mut self, now: Instant) -> Result<(), Failed> {
        if !self.recovery.is_counted {
            self.use_retry()?;
            self.recovery.is_counted = true;
        }
        self.retransmit(now);
        Ok(())
    }

    /// Uses up a retry. The next packet restarts the ACK timeout.
    fn use_retry(&mut self) -> Result<(), Failed> {
        if self.retries_left == 0 {
            return Err(WcStatus::RetryExcErr);
        }
        self.retries_left -= 1;
        self.deadline = None;
        Ok(())
    }

    /// Starts a round: all unacknowledged packets are retransmitted.
    fn retransmit(&mut self, now: Instant) {
        self.shrink();
        self.go_back(self.unacked);
        self.recovery.round = Some((self.unacked, now));
        self.recovery.stalled += 1;
        self.recovery.suspected = None;
    }

    /// Retransmits after an ACK timeout, or when a suspected loss is considered a loss.
    pub(super) fn handle_loss(&mut self, cx: &mut Cx<'_>) -> Result<(), Failed> {
        let now = cx.now;
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            cx.counters.timeouts += 1;
            self.use_retry()?;
            self.recovery.stalled = 0;
            self.retransmit(now);
            return Ok(());
        }
        if let Some((oldest, _)) = self.recovery.suspected.take_if(|(_, at)| *at <= now)
            && oldest == self.unacked
            && oldest.is_before(self.next)
            && self.pause.is_none()
        {
            return self.retransmit_missing(now);
        }
        Ok(())
    }
}
