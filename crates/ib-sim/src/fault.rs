//! What can be wrong with a port and its link.

use std::time::Duration;

use ib_wire::mad::AttributeId;

/// The faults of a port: those of packets that it sends, and of requests that it answers.
///
/// Probabilities are parts of 2^32.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PortFaults {
    /// A packet vanishes.
    pub(crate) loss: u32,
    /// A bit of a packet flips; the receiver sees that and drops it.
    pub(crate) corruption: u32,
    /// A packet arrives twice.
    pub(crate) duplication: u32,
    /// A packet is held back, so that later ones pass it.
    pub(crate) reordering: u32,
    /// How long a packet is held back at most; zero for some times of a packet of the link.
    pub(crate) held_back: Duration,
    /// What every packet takes longer.
    pub(crate) delay: Duration,
    /// A packet vanishes when it enters the port, and is counted as an error.
    pub(crate) entering: u32,
    /// A request that the port's agent should answer is lost.
    pub(crate) unanswered: u32,
    /// Only requests for this attribute are lost.
    pub(crate) unanswered_attribute: Option<AttributeId>,
}

/// Returns a probability as parts of 2^32; 1 becomes the highest of them.
pub(crate) fn parts(probability: f64) -> u32 {
    (probability.clamp(0.0, 1.0) * 4_294_967_296.0) as u32
}

impl PortFaults {
    /// Mends what is wrong with packets that the port sends; what `Error` has set stays.
    pub(crate) fn mend_link(&mut self) {
        let Self { entering, unanswered, unanswered_attribute, .. } = *self;
        *self = Self { entering, unanswered, unanswered_attribute, ..Self::default() };
    }

    /// Returns true when nothing is wrong.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Draws whether something of a probability happens.
pub(crate) fn happens(rng: &mut ib_topology::rng::Rng, parts: u32) -> bool {
    match parts {
        0 => false,
        u32::MAX => true,
        parts => (rng.next_u64() >> 32) < u64::from(parts),
    }
}
