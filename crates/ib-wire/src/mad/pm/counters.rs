//! PortCounters, which has saturating counters of 4 to 32 bits, and PortCountersExtended, which has
//! 64-bit counters.

use crate::mad::attribute;
use crate::mad::codes::masks;

crate::layout! {
    /// The mandatory counters of a port; IBTA volume 1, chapter 16.1.3.5.
    pub struct PortCounters: 44 {
        /// The number of the port that has the counters; [`ALL_PORTS`](super::ALL_PORTS) to select the sum
        /// over all ports.
        pub port_select: u8 = bits(1, 0, 8),
        /// Mask of the counters that a Set writes.
        pub counter_select: CounterSelect = bits(2, 0, 16),
        /// Symbol errors.
        pub symbol_errors: u16 = bits(4, 0, 16),
        /// Successful link error recoveries.
        pub link_error_recoveries: u8 = bits(6, 0, 8),
        /// Failed link error recoveries, after which the link went down.
        pub link_downed: u8 = bits(7, 0, 8),
        /// Received packets with errors.
        pub rcv_errors: u16 = bits(8, 0, 16),
        /// Received packets that are marked as bad with the end-bad-packet (EBP) delimiter.
        pub rcv_remote_physical_errors: u16 = bits(10, 0, 16),
        /// Received packets that the switch could not forward.
        pub rcv_switch_relay_errors: u16 = bits(12, 0, 16),
        /// Packets that the port discarded instead of sending them.
        pub xmit_discards: u16 = bits(14, 0, 16),
        /// Packets not transmitted because of partition or raw-packet filters.
        pub xmit_constraint_errors: u8 = bits(16, 0, 8),
        /// Received packets discarded because of partition or raw-packet filters.
        pub rcv_constraint_errors: u8 = bits(17, 0, 8),
        /// A second mask of the counters that a Set writes: bit 0 selects `xmit_wait`.
        pub counter_select2: u8 = bits(18, 0, 8),
        /// The number of times that local physical errors exceeded their threshold.
        pub local_link_integrity_errors: u8 = bits(19, 0, 4),
        /// The number of times that buffer overruns exceeded their threshold.
        pub excessive_buffer_overrun_errors: u8 = bits(19, 4, 4),
        /// Packets to QP1 dropped because of resource limits.
        pub qp1_dropped: u16 = bits(20, 0, 16),
        /// SMPs on VL15 dropped because of resource limits.
        pub vl15_dropped: u16 = bits(22, 0, 16),
        /// Data sent, in units of 4 bytes.
        pub xmit_data: u32 = bits(24, 0, 32),
        /// Data received, in units of 4 bytes.
        pub rcv_data: u32 = bits(28, 0, 32),
        /// Packets sent.
        pub xmit_packets: u32 = bits(32, 0, 32),
        /// Packets received.
        pub rcv_packets: u32 = bits(36, 0, 32),
        /// Ticks ([`PortSamplesControl::tick`](super::PortSamplesControl::tick)) in which data was
        /// ready to be sent, but waited for credits.
        pub xmit_wait: u32 = bits(40, 0, 32),
    }
}

attribute!(PortCounters = PORT_COUNTERS in PERFORMANCE);

masks! {
    /// Mask of the counters that a Set of [`PortCounters`] writes.
    CounterSelect(u16) {
        /// `symbol_errors`.
        SYMBOL_ERRORS = 0 "SymbolErrorCounter",
        /// `link_error_recoveries`.
        LINK_ERROR_RECOVERIES = 1 "LinkErrorRecoveryCounter",
        /// `link_downed`.
        LINK_DOWNED = 2 "LinkDownedCounter",
        /// `rcv_errors`.
        RCV_ERRORS = 3 "PortRcvErrors",
        /// `rcv_remote_physical_errors`.
        RCV_REMOTE_PHYSICAL_ERRORS = 4 "PortRcvRemotePhysicalErrors",
        /// `rcv_switch_relay_errors`.
        RCV_SWITCH_RELAY_ERRORS = 5 "PortRcvSwitchRelayErrors",
        /// `xmit_discards`.
        XMIT_DISCARDS = 6 "PortXmitDiscards",
        /// `xmit_constraint_errors`.
        XMIT_CONSTRAINT_ERRORS = 7 "PortXmitConstraintErrors",
        /// `rcv_constraint_errors`.
        RCV_CONSTRAINT_ERRORS = 8 "PortRcvConstraintErrors",
        /// `local_link_integrity_errors`.
        LOCAL_LINK_INTEGRITY_ERRORS = 9 "LocalLinkIntegrityErrors",
        /// `excessive_buffer_overrun_errors`.
        EXCESSIVE_BUFFER_OVERRUN_ERRORS = 10 "ExcessiveBufferOverrunErrors",
        /// `vl15_dropped`.
        VL15_DROPPED = 11 "VL15Dropped",
        /// `xmit_data`.
        XMIT_DATA = 12 "PortXmitData",
        /// `rcv_data`.
        RCV_DATA = 13 "PortRcvData",
        /// `xmit_packets`.
        XMIT_PACKETS = 14 "PortXmitPkts",
        /// `rcv_packets`.
        RCV_PACKETS = 15 "PortRcvPkts",
    }
}

/// Copies from `$from` to `$to` each counter whose bit is set in `$mask`.
macro_rules! write_selected {
    ($from:ident to $to:ident, $mask:expr, $($bit:literal $field:ident),+ $(,)?) => {
        $( if $mask >> $bit & 1 != 0 { $to.$field = $from.$field; } )+
    };
}

impl PortCounters {
    /// Executes a Set: overwrites the selected counters with the values in the request, which are
    /// usually zero.
    pub fn write_selected(&mut self, request: &Self) {
        write_selected!(request to self, request.counter_select.0,
            0 symbol_errors, 1 link_error_recoveries, 2 link_downed, 3 rcv_errors,
            4 rcv_remote_physical_errors, 5 rcv_switch_relay_errors, 6 xmit_discards,
            7 xmit_constraint_errors, 8 rcv_constraint_errors, 9 local_link_integrity_errors,
            10 excessive_buffer_overrun_errors, 11 vl15_dropped, 12 xmit_data, 13 rcv_data,
            14 xmit_packets, 15 rcv_packets);
        write_selected!(request to self, request.counter_select2, 0 xmit_wait);
    }
}

crate::layout! {
    /// Counters of 64 bits; IBTA volume 1, chapter 16.1.4.11.
    pub struct PortCountersExtended: 184 {
        /// The number of the port that has the counters; [`ALL_PORTS`](super::ALL_PORTS) to select the sum
        /// over all ports.
        pub port_select: u8 = bits(1, 0, 8),
        /// Mask of the data counters that a Set writes.
        pub counter_select: ExtendedSelect = bits(2, 0, 16),
        /// Mask of the error counters that a Set writes; bit 0 is `symbol_errors`.
        pub counter_select2: u32 = bits(4, 0, 32),
        /// Data sent, in units of 4 bytes.
        pub xmit_data: u64 = bits(8, 0, 64),
        /// Data received, in units of 4 bytes.
        pub rcv_data: u64 = bits(16, 0, 64),
        /// Packets sent.
        pub xmit_packets: u64 = bits(24, 0, 64),
        /// Packets received.
        pub rcv_packets: u64 = bits(32, 0, 64),
        /// Unicast packets sent.
        pub unicast_xmit_packets: u64 = bits(40, 0, 64),
        /// Unicast packets received.
        pub unicast_rcv_packets: u64 = bits(48, 0, 64),
        /// Multicast packets sent.
        pub multicast_xmit_packets: u64 = bits(56, 0, 64),
        /// Multicast packets received.
        pub multicast_rcv_packets: u64 = bits(64, 0, 64),
        /// Symbol errors.
        pub symbol_errors: u64 = bits(72, 0, 64),
        /// Successful link error recoveries.
        pub link_error_recoveries: u64 = bits(80, 0, 64),
        /// Failed link error recoveries, after which the link went down.
        pub link_downed: u64 = bits(88, 0, 64),
        /// Received packets with errors.
        pub rcv_errors: u64 = bits(96, 0, 64),
        /// Received packets that are marked as bad with the end-bad-packet (EBP) delimiter.
        pub rcv_remote_physical_errors: u64 = bits(104, 0, 64),
        /// Received packets that the switch could not forward.
        pub rcv_switch_relay_errors: u64 = bits(112, 0, 64),
        /// Packets that the port discarded instead of sending them.
        pub xmit_discards: u64 = bits(120, 0, 64),
        /// Packets not transmitted because of partition or raw-packet filters.
        pub xmit_constraint_errors: u64 = bits(128, 0, 64),
        /// Received packets discarded because of partition or raw-packet filters.
        pub rcv_constraint_errors: u64 = bits(136, 0, 64),
        /// The number of times that local physical errors exceeded their threshold.
        pub local_link_integrity_errors: u64 = bits(144, 0, 64),
        /// The number of times that buffer overruns exceeded their threshold.
        pub excessive_buffer_overrun_errors: u64 = bits(152, 0, 64),
        /// SMPs on VL15 dropped because of resource limits.
        pub vl15_dropped: u64 = bits(160, 0, 64),
        /// Ticks ([`PortSamplesControl::tick`](super::PortSamplesControl::tick)) in which data was
        /// ready to be sent, but waited for credits.
        pub xmit_wait: u64 = bits(168, 0, 64),
        /// Packets to QP1 dropped because of resource limits.
        pub qp1_dropped: u64 = bits(176, 0, 64),
    }
}

attribute!(PortCountersExtended = PORT_COUNTERS_EXTENDED in PERFORMANCE);

masks! {
    /// Mask of the data counters that a Set of [`PortCountersExtended`] writes.
    ExtendedSelect(u16) {
        /// `xmit_data`.
        XMIT_DATA = 0 "PortXmitData",
        /// `rcv_data`.
        RCV_DATA = 1 "PortRcvData",
        /// `xmit_packets`.
        XMIT_PACKETS = 2 "PortXmitPkts",
        /// `rcv_packets`.
        RCV_PACKETS = 3 "PortRcvPkts",
        /// `unicast_xmit_packets`.
        UNICAST_XMIT_PACKETS = 4 "PortUnicastXmitPkts",
        /// `unicast_rcv_packets`.
        UNICAST_RCV_PACKETS = 5 "PortUnicastRcvPkts",
        /// `multicast_xmit_packets`.
        MULTICAST_XMIT_PACKETS = 6 "PortMulticastXmitPkts",
        /// `multicast_rcv_packets`.
        MULTICAST_RCV_PACKETS = 7 "PortMulticastRcvPkts",
    }
}

impl PortCountersExtended {
    /// Executes a Set: overwrites the selected counters with the values in the request, which are
    /// usually zero.
    pub fn write_selected(&mut self, request: &Self) {
        write_selected!(request to self, request.counter_select.0,
            0 xmit_data, 1 rcv_data, 2 xmit_packets, 3 rcv_packets, 4 unicast_xmit_packets,
            5 unicast_rcv_packets, 6 multicast_xmit_packets, 7 multicast_rcv_packets);
        write_selected!(request to self, request.counter_select2,
            0 symbol_errors, 1 link_error_recoveries, 2 link_downed, 3 rcv_errors,
            4 rcv_remote_physical_errors, 5 rcv_switch_relay_errors, 6 xmit_discards,
            7 xmit_constraint_errors, 8 rcv_constraint_errors, 9 local_link_integrity_errors,
            10 excessive_buffer_overrun_errors, 11 vl15_dropped, 12 xmit_wait, 13 qp1_dropped);
    }
}
