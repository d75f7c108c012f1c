//! Counters of a capture file.

use ib_pcap::Statistics;

/// Counters of a capture file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileCounts {
    /// RDMA packets.
    pub captured: u64,
    /// Frames without one, or without a time.
    pub foreign: u64,
    /// Packets that were written over before they could be captured, as far as the file tells.
    pub overwritten: Option<u64>,
    /// Packets that the adapters have noted, as far as the file tells.
    pub noted: Option<u64>,
    /// How often the file tells that a packet was lost on its way.
    pub lost: u64,
    /// The times of the first and the last packet.
    pub times: Option<(u64, u64)>,
    /// Whether the file says which packets were sent and which were received.
    pub has_directions: bool,
}

impl FileCounts {
    /// Adds the statistics of an interface.
    pub(super) fn count(&mut self, statistics: &Statistics) {
        let Some(dropped) = statistics.dropped else { return };
        *self.overwritten.get_or_insert(0) += dropped;
        // Counters of received packets in files of other programs have no defined meaning.
        let is_noted = |comment: &String| comment.contains(" packets noted in both directions");
        if let Some(noted) =
            statistics.received.filter(|_| statistics.comments.iter().any(is_noted))
        {
            *self.noted.get_or_insert(0) += noted;
        }
    }
}
