//! Counters of packets, requests and script steps of the whole fabric.

use std::collections::BTreeMap;

use crate::loss::Loss;

/// Counters of packets, requests and script steps of the whole fabric since its creation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Number of times that a packet arrived at the other end of a link.
    pub hops: u64,
    /// Packets that were delivered to agents and clients.
    pub delivered: u64,
    /// Requests that agents of nodes have responded to.
    pub answered: u64,
    /// Script steps that have failed.
    pub failed_steps: u64,
    /// Lost packets by reason.
    pub lost: BTreeMap<&'static str, u64>,
}

impl Stats {
    pub(crate) fn lose(&mut self, why: Loss) {
        *self.lost.entry(why.name()).or_default() += 1;
    }
}
