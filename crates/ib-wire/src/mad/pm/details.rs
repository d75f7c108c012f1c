//! Errors and discards by cause, counters by VL, and counter sampling; IBTA volume 1, chapters 16.1.3
//! and 16.1.4.

use std::fmt;

use crate::mad::attribute;
use crate::mad::dump::{Hex, line};

crate::layout! {
    /// The packets counted by [`PortCounters::rcv_errors`](super::PortCounters::rcv_errors) and
    /// [`PortCounters::rcv_switch_relay_errors`](super::PortCounters::rcv_switch_relay_errors), by
    /// cause.
    pub struct PortRcvErrorDetails: 16 {
        /// The port number.
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

impl fmt::Display for PortRcvErrorDetails {
    /// Writes the lines that perfquery prints, each with a newline.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        line(f, "PortSelect", self.port_select)?;
        line(f, "CounterSelect", Hex(self.counter_select.into(), 4))?;
        line(f, "PortLocalPhysicalErrors", self.local_physical_errors)?;
        line(f, "PortMalformedPktErrors", self.malformed_packet_errors)?;
        line(f, "PortBufferOverrunErrors", self.buffer_overrun_errors)?;
        line(f, "PortDLIDMappingErrors", self.dlid_mapping_errors)?;
        line(f, "PortVLMappingErrors", self.vl_mapping_errors)?;
        line(f, "PortLoopingErrors", self.looping_errors)
    }
}

crate::layout! {
    /// The packets counted by [`PortCounters::xmit_discards`](super::PortCounters::xmit_discards), by
    /// cause.
    pub struct PortXmitDiscardDetails: 12 {
        /// The port number.
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

impl fmt::Display for PortXmitDiscardDetails {
    /// Writes the lines that perfquery prints, each with a newline.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        line(f, "PortSelect", self.port_select)?;
        line(f, "CounterSelect", Hex(self.counter_select.into(), 4))?;
        line(f, "PortInactiveDiscards", self.inactive_discards)?;
        line(f, "PortNeighborMTUDiscards", self.neighbor_mtu_discards)?;
        line(f, "PortSwLifetimeLimitDiscards", self.switch_lifetime_discards)?;
        line(f, "PortSwHOQLifetimeLimitDiscards", self.switch_hoq_lifetime_discards)
    }
}

crate::layout! {
    /// Counters of the received packets that have the opcode [`PortSamplesControl::op_code`].
    pub struct PortOpRcvCounters: 12 {
        /// The port number.
        pub port_select: u8 = bits(1, 0, 8),
        /// Mask of the counters that a Set writes.
        pub counter_select: u16 = bits(2, 0, 16),
        /// Number of received packets with this opcode.
        pub packets: u32 = bits(4, 0, 32),
        /// Data of the received packets with this opcode, in units of 4 bytes.
        pub data: u32 = bits(8, 0, 32),
    }
}

attribute!(PortOpRcvCounters = PORT_OP_RCV_COUNTERS in PERFORMANCE);

impl fmt::Display for PortOpRcvCounters {
    /// Writes the lines that perfquery prints, each with a newline.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        line(f, "PortSelect", self.port_select)?;
        line(f, "CounterSelect", Hex(self.counter_select.into(), 4))?;
        line(f, "PortOpRcvPkts", self.packets)?;
        line(f, "PortOpRcvData", self.data)
    }
}

crate::layout! {
    /// Counters of flow control packets.
    pub struct PortFlowCtlCounters: 12 {
        /// The port number.
        pub port_select: u8 = bits(1, 0, 8),
        /// Mask of the counters that a Set writes.
        pub counter_select: u16 = bits(2, 0, 16),
        /// Flow control packets sent.
        pub xmit_packets: u32 = bits(4, 0, 32),
        /// Flow control packets received.
        pub rcv_packets: u32 = bits(8, 0, 32),
    }
}

attribute!(PortFlowCtlCounters = PORT_FLOW_CTL_COUNTERS in PERFORMANCE);

impl fmt::Display for PortFlowCtlCounters {
    /// Writes the lines that perfquery prints, each with a newline.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        line(f, "PortSelect", self.port_select)?;
        line(f, "CounterSelect", Hex(self.counter_select.into(), 4))?;
        line(f, "PortXmitFlowPkts", self.xmit_packets)?;
        line(f, "PortRcvFlowPkts", self.rcv_packets)
    }
}

crate::layout! {
    /// Counters by VL: received packets that have the opcode [`PortSamplesControl::op_code`].
    pub struct PortVlOpPackets: 36 {
        /// The port number.
        pub port_select: u8 = bits(1, 0, 8),
        /// Mask of the counters that a Set writes.
        pub counter_select: u16 = bits(2, 0, 16),
        /// For each VL: the number of received packets with this opcode.
        pub lanes: [u16; 16] = bits(4, 0, 256),
    }
}

attribute!(PortVlOpPackets = PORT_VL_OP_PACKETS in PERFORMANCE);

crate::layout! {
    /// Counters by VL: data of received packets that have the opcode [`PortSamplesControl::op_code`].
    pub struct PortVlOpData: 68 {
        /// The port number.
        pub port_select: u8 = bits(1, 0, 8),
        /// Mask of the counters that a Set writes.
        pub counter_select: u16 = bits(2, 0, 16),
        /// For each VL: the data of the received packets with this opcode, in units of 4 bytes.
        pub lanes: [u32; 16] = bits(4, 0, 512),
    }
}

attribute!(PortVlOpData = PORT_VL_OP_DATA in PERFORMANCE);

crate::layout! {
    /// Counters by VL: ticks ([`PortSamplesControl::tick`]) in which data waited for credits.
    pub struct PortVlXmitWaitCounters: 36 {
        /// The port number.
        pub port_select: u8 = bits(1, 0, 8),
        /// Mask of the counters that a Set writes.
        pub counter_select: u16 = bits(2, 0, 16),
        /// For each VL: the number of ticks in which data was ready to be sent, but waited for credits.
        pub lanes: [u16; 16] = bits(4, 0, 256),
    }
}

attribute!(PortVlXmitWaitCounters = PORT_VL_XMIT_WAIT_COUNTERS in PERFORMANCE);

/// A two-bit counter, 0 to 3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count2(pub u8);

crate::field!(Count2(u8));

crate::layout! {
    /// Counters of flow control update errors by VL.
    pub struct PortVlXmitFlowCtlUpdateErrors: 8 {
        /// The port number.
        pub port_select: u8 = bits(1, 0, 8),
        /// Mask of the counters that a Set writes.
        pub counter_select: u16 = bits(2, 0, 16),
        /// The counter of each VL. The counter of VL 0 is in the most significant bits.
        pub lanes: [Count2; 16] = bits(4, 0, 32),
    }
}

attribute!(PortVlXmitFlowCtlUpdateErrors = PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS in PERFORMANCE);

crate::layout! {
    /// The configuration of counter sampling, in which sampling counters count for a limited time;
    /// IBTA volume 1, chapter 16.1.3.2.
    pub struct PortSamplesControl: 80 {
        /// The opcode of the packets that [`PortOpRcvCounters`], [`PortVlOpPackets`] and
        /// [`PortVlOpData`] count.
        pub op_code: u8 = bits(0, 0, 8),
        /// The port number.
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
        /// The status of sampling: 0 done, 1 started, 2 running.
        pub sample_status: u8 = bits(11, 6, 2),
        /// Mask of the optional counters that the port supports.
        pub option_mask: u64 = bits(12, 0, 64),
        /// Mask of the vendor-specific counters that the port supports.
        pub vendor_mask: u64 = bits(20, 0, 64),
        /// The delay before sampling, in ticks.
        pub sample_start: u32 = bits(28, 0, 32),
        /// The duration of sampling, in ticks.
        pub sample_interval: u32 = bits(32, 0, 32),
        /// A number that identifies the sampling. [`PortSamplesResult::tag`] repeats this number.
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
        /// The status of sampling: 0 done, 1 started, 2 running.
        pub sample_status: u8 = bits(3, 6, 2),
        /// The values of the sampling counters 0 to 14.
        pub counters: [u32; 15] = bits(4, 0, 480),
    }
}

attribute!(PortSamplesResult = PORT_SAMPLES_RESULT in PERFORMANCE);

crate::layout! {
    /// Error counters of links with FDR or a higher speed, by physical lane.
    pub struct PortExtSpeedsCounters: 140 {
        /// The port number.
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
