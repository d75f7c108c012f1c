//! What can be wrong with a port and its link.

use std::time::Duration;

use ib_wire::mad::AttributeId;

/// The faults of a port: those of packets that it sends, and of requests that it answers. Probabilities
/// are as they were given, so that they can be told again.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PortFaults {
    /// A packet vanishes.
    pub(crate) loss: f64,
    /// A bit of a packet flips; the receiver sees that and drops it.
    pub(crate) corruption: f64,
    /// A packet arrives twice.
    pub(crate) duplication: f64,
    /// A packet is held back, so that later ones pass it.
    pub(crate) reordering: f64,
    /// How long a packet is held back at most; zero for some times of a packet of the link.
    pub(crate) held_back: Duration,
    /// What every packet takes longer.
    pub(crate) delay: Duration,
    /// A request that the port's agent should answer is lost: per cent. Without an attribute also a
    /// packet that enters the port, which is counted as an error.
    pub(crate) unanswered: f64,
    /// Only requests for this attribute are lost.
    pub(crate) unanswered_attribute: Option<AttributeId>,
}

impl PortFaults {
    /// Mends what is wrong with packets that the port sends; what `Error` has set stays.
    pub(crate) fn mend_link(&mut self) {
        let Self { unanswered, unanswered_attribute, .. } = *self;
        *self = Self { unanswered, unanswered_attribute, ..Self::default() };
    }

    /// Returns the probability with which a request that the port's agent should answer is lost.
    pub(crate) fn unanswered(&self, id: AttributeId) -> f64 {
        let applies = self.unanswered_attribute.is_none_or(|only| only == id);
        if applies { self.unanswered / 100.0 } else { 0.0 }
    }

    /// Returns the probability with which a packet that enters the port is lost.
    pub(crate) fn entering(&self) -> f64 {
        if self.unanswered_attribute.is_none() { self.unanswered / 100.0 } else { 0.0 }
    }

    /// Returns true when nothing is wrong.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Draws whether something of a probability happens, as exactly as 32 bits are. What never happens and
/// what always does takes no random number.
pub(crate) fn happens(rng: &mut ib_types::rng::Rng, probability: f64) -> bool {
    match (probability.clamp(0.0, 1.0) * 4_294_967_296.0) as u32 {
        0 => false,
        u32::MAX => true,
        parts => (rng.next_u64() >> 32) < u64::from(parts),
    }
}
