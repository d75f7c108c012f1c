//! Errors and discards by cause, and counter sampling; IBTA volume 1, chapters 16.1.3
//! and 16.1.4.

use crate::mad::attribute;

crate::layout! {
    /// The packets counted by [`PortCounters::rcv_errors`](super::PortCounters::rcv_errors) and
    /// [`PortCounters::rcv_switch_relay_errors`](super::PortCounters::rcv_switch_relay_errors), by
    /// cause.
    pub struct PortRcvErrorDetails: 16 {
        /// The number of the port that has the counters.
        pub port_select: u8 = bits(1, 0, 8),
        /// Mask of the counters that a Set writes.
        pub counter_select: u16 = bits(2, 0, 16),
        /// Received packets with physical errors.
        pub local_physical_errors: u16 = bits(4, 0, 16),
        /// Received malformed packets.
        pub malformed_packet_errors: u16 = bits(6, 0, 16),
        /// Received packets dropped because of buffer overruns.
        pub buffer_overrun_errors: u16 = bits(8, 0, 16),
        /// Received packets that the switch could not forward by their DLID.
        pub dlid_mapping_errors: u16 = bits(10, 0, 16),
        /// Received packets that could not be forwarded, since their SL is not mapped to a VL.
        pub vl_mapping_errors: u16 = bits(12, 0, 16),
        /// Received packets whose egress port would be their ingress port.
        pub looping_errors: u16 = bits(14, 0, 16),
    }
}

attribute!(PortRcvErrorDetails = PORT_RCV_ERROR_DETAILS in PERFORMANCE);

crate::layout! {
    /// The packets counted by [`PortCounters::xmit_discards`](super::PortCounters::xmit_discards), by
    /// cause.
    pub struct PortXmitDiscardDetails: 12 {
        /// The number of the port that has the counters.
        pub port_select: u8 = bits(1, 0, 8),
        /// Mask of the counters that a Set writes.
        pub counter_select: u16 = bits(2, 0, 16),
        /// Packets discarded because the port was not active.
        pub inactive_discards: u16 = bits(4, 0, 16),
        /// Packets discarded because they were longer than the neighbor MTU.
        pub neighbor_mtu_discards: u16 = bits(6, 0, 16),
        /// Packets discarded because their switch life time was exceeded.
        pub switch_lifetime_discards: u16 = bits(8, 0, 16),
        /// Packets discarded because their head-of-queue (HOQ) life time was exceeded.
        pub switch_hoq_lifetime_discards: u16 = bits(10, 0, 16),
    }
}

attribute!(PortXmitDiscardDetails = PORT_XMIT_DISCARD_DETAILS in PERFORMANCE);

crate::layout! {
    /// The configuration of counter sampling: up to 15 sampling counters count selected quantities
    /// during a limited interval; IBTA volume 1, chapter 16.1.3.2.
    pub struct PortSamplesControl: 80 {
        /// The opcode of the packets that `PortOpRcvCounters`, `PortVLOpPackets` and `PortVLOpData` count.
        pub op_code: u8 = bits(0, 0, 8),
        /// The number of the port whose quantities are sampled.
        pub port_select: u8 = bits(1, 0, 8),
        /// The length of a tick, the time unit of sampling, as a code.
        pub tick: u8 = bits(2, 0, 8),
        /// The width of the sampling counters, as a code.
        pub counter_width: u8 = bits(3, 5, 3),
        /// Mask of the kinds of quantities that sampling counter 0 can count.
        pub counter_mask0: u8 = bits(4, 2, 3),
        /// Masks like `counter_mask0` for sampling counters 1 to 9, with three bits for each counter.
        pub counter_masks1to9: u32 = bits(4, 5, 27),
        /// Masks like `counter_mask0` for sampling counters 10 to 14, with three bits for each counter.
        pub counter_masks10to14: u16 = bits(8, 1, 15),
        /// The number of sampling mechanisms in addition to the first.
        pub sample_mechanisms: u8 = bits(10, 0, 8),
        /// The status of sampling: 0 done, 1 in the delay before sampling, 2 running.
        pub sample_status: u8 = bits(11, 6, 2),
        /// Mask of the optional counters that the port supports.
        pub option_mask: u64 = bits(12, 0, 64),
        /// Mask of the vendor-specific counters that the port supports.
        pub vendor_mask: u64 = bits(20, 0, 64),
        /// The delay before sampling, in ticks.
        pub sample_start: u32 = bits(28, 0, 32),
        /// The duration of sampling, in ticks.
        pub sample_interval: u32 = bits(32, 0, 32),
        /// A number that the requester chooses. [`PortSamplesResult::tag`] repeats this number.
        pub tag: u16 = bits(36, 0, 16),
        /// For each sampling counter: the code of the quantity that it counts.
        pub counter_select: [u16; 15] = bits(38, 0, 240),
        /// Mask of the optional counters that are available only as sampling counters.
        pub samples_only_option_mask: u64 = bits(72, 0, 64),
    }
}

attribute!(PortSamplesControl = PORT_SAMPLES_CONTROL in PERFORMANCE);

crate::layout! {
    /// The result of counter sampling; IBTA volume 1, chapter 16.1.3.4.
    pub struct PortSamplesResult: 64 {
        /// The tag of the request that started the sampling.
        pub tag: u16 = bits(0, 0, 16),
        /// The status of sampling: 0 done, 1 in the delay before sampling, 2 running.
        pub sample_status: u8 = bits(3, 6, 2),
        /// The values of the sampling counters 0 to 14.
        pub counters: [u32; 15] = bits(4, 0, 480),
    }
}

attribute!(PortSamplesResult = PORT_SAMPLES_RESULT in PERFORMANCE);

crate::layout! {
    /// Error counters of links with FDR or a higher speed, by physical lane.
    pub struct PortExtSpeedsCounters: 140 {
        /// The number of the port that has the counters.
        pub port_select: u8 = bits(1, 0, 8),
        /// Mask of the counters that a Set writes.
        pub counter_select: u64 = bits(8, 0, 64),
        /// Number of received blocks with sync header errors.
        pub sync_header_errors: u16 = bits(16, 0, 16),
        /// Number of received blocks of unknown type.
        pub unknown_blocks: u16 = bits(18, 0, 16),
        /// Number of errors detected on each lane.
        pub error_detections: [u16; 12] = bits(20, 0, 192),
        /// Blocks that forward error correction (FEC) has corrected, by lane.
        pub fec_correctable_blocks: [u32; 12] = bits(44, 0, 384),
        /// Blocks that FEC could not correct, by lane.
        pub fec_uncorrectable_blocks: [u32; 12] = bits(92, 0, 384),
    }
}

attribute!(PortExtSpeedsCounters = PORT_EXT_SPEEDS_COUNTERS in PERFORMANCE);
