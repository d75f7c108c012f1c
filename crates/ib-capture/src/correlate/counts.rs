//! Counters of a capture file.

use ib_pcap::Statistics;

/// Counters of a capture file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileCounts {
    /// Number of RDMA packets.
    pub captured: u64,
    /// Number of frames that have no RDMA packet or no time.
    pub foreign: u64,
    /// Number of packets that were overwritten before they could be captured; `None` if the file
    /// does not report it.
    pub overwritten: Option<u64>,
    /// Number of packets that HCAs have traced; `None` if the file does not report it.
    pub noted: Option<u64>,
    /// Number of frames that report packets lost in the network.
    pub lost: u64,
    /// Times of the earliest and the latest packet.
    pub times: Option<(u64, u64)>,
    /// True if the file reports the direction of all its packets.
    pub has_directions: bool,
}

impl FileCounts {
    /// Adds the counters of an interface.
    pub(super) fn count(&mut self, statistics: &Statistics) {
        let Some(dropped) = statistics.dropped else { return };
        *self.overwritten.get_or_insert(0) += dropped;
        // Other programs may count other packets as received. `received` is therefore added to `noted` only if the
        // statistics have the comment that ibfabric writes.
        let is_noted = |comment: &String| comment.contains(" packets noted in both directions");
        if let Some(noted) =
            statistics.received.filter(|_| statistics.comments.iter().any(is_noted))
        {
            *self.noted.get_or_insert(0) += noted;
        }
    }
}
