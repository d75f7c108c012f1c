//! Totals of the whole fabric.

use std::collections::BTreeMap;

use crate::loss::Loss;

/// What happened so far, in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets that arrived at a port at the other end of a link.
    pub hops: u64,
    /// Packets that reached the agent or client they were for.
    pub delivered: u64,
    /// Requests that agents of nodes have answered.
    pub answered: u64,
    /// Steps of scripts that could not be done.
    pub failed_steps: u64,
    /// Lost packets by reason.
    pub lost: BTreeMap<&'static str, u64>,
}

impl Stats {
    pub(crate) fn lose(&mut self, why: Loss) {
        *self.lost.entry(why.name()).or_default() += 1;
    }
}
