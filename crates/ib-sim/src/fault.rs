//! Faults of a port and its link.

use std::time::Duration;

use ib_wire::mad::AttributeId;

/// The faults of a port, which affect packets that it sends and requests that arrive at it.
/// Probabilities are from 0 to 1, except for `unanswered`, which is in per cent.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PortFaults {
    /// Probability that a packet is lost.
    pub(crate) loss: f64,
    /// Probability that a packet is corrupted. The receiving port detects the corruption and drops
    /// the packet.
    pub(crate) corruption: f64,
    /// Probability that a packet is duplicated.
    pub(crate) duplication: f64,
    /// Probability that a packet is delayed so that later packets overtake it.
    pub(crate) reordering: f64,
    /// Maximum delay of reordered packets. Zero means the transmission time of eight packets of
    /// maximum length.
    pub(crate) held_back: Duration,
    /// Additional latency of every packet.
    pub(crate) delay: Duration,
    /// Percentage of requests to agents that the port loses. If `unanswered_attribute` is `None`, the port also loses
    /// this percentage of all arriving packets, and counts them as receive errors.
    pub(crate) unanswered: f64,
    /// If set, only requests for this attribute are lost.
    pub(crate) unanswered_attribute: Option<AttributeId>,
}

impl PortFaults {
    /// Removes the faults for the packets that the port sends. The loss of requests is unchanged.
    pub(crate) fn mend_link(&mut self) {
        let Self { unanswered, unanswered_attribute, .. } = *self;
        *self = Self { unanswered, unanswered_attribute, ..Self::default() };
    }

    /// Returns the probability that a request for this attribute is lost.
    pub(crate) fn unanswered(&self, id: AttributeId) -> f64 {
        let applies = self.unanswered_attribute.is_none_or(|only| only == id);
        if applies { self.unanswered / 100.0 } else { 0.0 }
    }

    /// Returns the probability that a packet is lost when it enters the port.
    pub(crate) fn entering(&self) -> f64 {
        if self.unanswered_attribute.is_none() { self.unanswered / 100.0 } else { 0.0 }
    }

    /// Returns true if the port has no faults.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Returns true with the given probability, at a resolution of 32 bits. Probabilities 0 and 1 use
/// no random number.
pub(crate) fn happens(rng: &mut ib_types::rng::Rng, probability: f64) -> bool {
    match (probability.clamp(0.0, 1.0) * 4_294_967_296.0) as u32 {
        0 => false,
        u32::MAX => true,
        parts => (rng.next_u64() >> 32) < u64::from(parts),
    }
}
