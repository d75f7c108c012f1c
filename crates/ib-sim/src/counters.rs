//! What a port counts.

/// The counters of a port, at their full width; PortCounters and PortCountersExtended of IBTA
/// volume 1, chapter 16.1.3. They are cut to what an attribute has room for when they are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Sent data in units of four bytes, without the CRCs of the link.
    pub xmit_data: u64,
    /// Received data in units of four bytes.
    pub rcv_data: u64,
    /// Sent packets.
    pub xmit_packets: u64,
    /// Received packets.
    pub rcv_packets: u64,
    /// Those of the sent packets that went to a multicast group.
    pub multicast_xmit_packets: u64,
    /// Those of the received packets that went to a multicast group.
    pub multicast_rcv_packets: u64,
    /// Ticks during which something was to be sent and could not for want of credits.
    pub xmit_wait: u64,
    /// Packets that arrived damaged.
    pub rcv_errors: u64,
    /// Packets that arrived marked as bad by the sender.
    pub rcv_remote_physical_errors: u64,
    /// Packets that could not be forwarded: no route, a wrong one, a bad VL.
    pub rcv_switch_relay_errors: u64,
    /// Packets that were discarded on their way out: port down, too old.
    pub xmit_discards: u64,
    /// Packets that were not sent because of their partition or because they are raw.
    pub xmit_constraint_errors: u64,
    /// Packets that were not taken because of their partition or because they are raw.
    pub rcv_constraint_errors: u64,
    /// Bit errors on the lanes.
    pub symbol_errors: u64,
    /// Successful retrainings.
    pub link_recoveries: u64,
    /// Failed retrainings: the link went down.
    pub link_downed: u64,
    /// Errors of the link beyond the threshold.
    pub local_link_integrity_errors: u64,
    /// Buffer overruns beyond the threshold.
    pub excessive_buffer_overruns: u64,
    /// Management packets that were dropped for want of a buffer.
    pub vl15_dropped: u64,
    /// Management packets to queue pair 1 that were dropped.
    pub qp1_dropped: u64,
}

impl Counters {
    /// Counts a packet that is sent, of so many bytes.
    pub(crate) const fn sent(&mut self, bytes: usize, multicast: bool) {
        self.xmit_data += (bytes / 4) as u64;
        self.xmit_packets += 1;
        self.multicast_xmit_packets += multicast as u64;
    }

    /// Counts a packet that was received, of so many bytes.
    pub(crate) const fn received(&mut self, bytes: usize, multicast: bool) {
        self.rcv_data += (bytes / 4) as u64;
        self.rcv_packets += 1;
        self.multicast_rcv_packets += multicast as u64;
    }
}

/// The length of a tick of `xmit_wait` in nanoseconds.
pub const TICK_NANOS: u64 = 8;

/// Returns a time in ticks.
pub(crate) const fn ticks(time: std::time::Duration) -> u64 {
    time.as_nanos() as u64 / TICK_NANOS
}
