//! What stands behind some counters, counters by lane, and samples; IBTA volume 1, chapters 16.1.3
//! and 16.1.4.

use std::fmt;

use crate::mad::attribute;
use crate::mad::dump::{Hex, line};

crate::layout! {
    /// What `rcv_errors` are made of.
    pub struct PortRcvErrorDetails: 16 {
        /// The port.
        pub port_select: u8 = bits(1, 0, 8),
        /// The counters that a Set writes, one bit each.
        pub counter_select: u16 = bits(2, 0, 16),
        /// Packets with errors of the physical layer.
        pub local_physical_errors: u16 = bits(4, 0, 16),
        /// Malformed packets.
        pub malformed_packet_errors: u16 = bits(6, 0, 16),
        /// Packets without buffer.
        pub buffer_overrun_errors: u16 = bits(8, 0, 16),
        /// Packets whose DLID has no port.
        pub dlid_mapping_errors: u16 = bits(10, 0, 16),
        /// Packets whose service level has no lane.
        pub vl_mapping_errors: u16 = bits(12, 0, 16),
        /// Packets that would leave by the port they came in.
        pub looping_errors: u16 = bits(14, 0, 16),
    }
}

attribute!(PortRcvErrorDetails = PORT_RCV_ERROR_DETAILS in PERFORMANCE);

impl fmt::Display for PortRcvErrorDetails {
    /// Writes the lines of perfquery, each with its end.
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
    /// What `xmit_discards` are made of.
    pub struct PortXmitDiscardDetails: 12 {
        /// The port.
        pub port_select: u8 = bits(1, 0, 8),
        /// The counters that a Set writes, one bit each.
        pub counter_select: u16 = bits(2, 0, 16),
        /// Packets for a port that is not active.
        pub inactive_discards: u16 = bits(4, 0, 16),
        /// Packets longer than the MTU.
        pub neighbor_mtu_discards: u16 = bits(6, 0, 16),
        /// Packets too long in the switch.
        pub switch_lifetime_discards: u16 = bits(8, 0, 16),
        /// Packets too long at the head of a queue.
        pub switch_hoq_lifetime_discards: u16 = bits(10, 0, 16),
    }
}

attribute!(PortXmitDiscardDetails = PORT_XMIT_DISCARD_DETAILS in PERFORMANCE);

impl fmt::Display for PortXmitDiscardDetails {
    /// Writes the lines of perfquery, each with its end.
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
    /// Packets with one operation code.
    pub struct PortOpRcvCounters: 12 {
        /// The port.
        pub port_select: u8 = bits(1, 0, 8),
        /// The counters that a Set writes, one bit each.
        pub counter_select: u16 = bits(2, 0, 16),
        /// Packets received.
        pub packets: u32 = bits(4, 0, 32),
        /// Data received, in units of 4 bytes.
        pub data: u32 = bits(8, 0, 32),
    }
}

attribute!(PortOpRcvCounters = PORT_OP_RCV_COUNTERS in PERFORMANCE);

impl fmt::Display for PortOpRcvCounters {
    /// Writes the lines of perfquery, each with its end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        line(f, "PortSelect", self.port_select)?;
        line(f, "CounterSelect", Hex(self.counter_select.into(), 4))?;
        line(f, "PortOpRcvPkts", self.packets)?;
        line(f, "PortOpRcvData", self.data)
    }
}

crate::layout! {
    /// Packets of flow control.
    pub struct PortFlowCtlCounters: 12 {
        /// The port.
        pub port_select: u8 = bits(1, 0, 8),
        /// The counters that a Set writes, one bit each.
        pub counter_select: u16 = bits(2, 0, 16),
        /// Packets sent.
        pub xmit_packets: u32 = bits(4, 0, 32),
        /// Packets received.
        pub rcv_packets: u32 = bits(8, 0, 32),
    }
}

attribute!(PortFlowCtlCounters = PORT_FLOW_CTL_COUNTERS in PERFORMANCE);

impl fmt::Display for PortFlowCtlCounters {
    /// Writes the lines of perfquery, each with its end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        line(f, "PortSelect", self.port_select)?;
        line(f, "CounterSelect", Hex(self.counter_select.into(), 4))?;
        line(f, "PortXmitFlowPkts", self.xmit_packets)?;
        line(f, "PortRcvFlowPkts", self.rcv_packets)
    }
}

crate::layout! {
    /// Packets by lane.
    pub struct PortVlOpPackets: 36 {
        /// The port.
        pub port_select: u8 = bits(1, 0, 8),
        /// The counters that a Set writes, one bit each.
        pub counter_select: u16 = bits(2, 0, 16),
        /// The counter of each lane.
        pub lanes: [u16; 16] = bits(4, 0, 256),
    }
}

attribute!(PortVlOpPackets = PORT_VL_OP_PACKETS in PERFORMANCE);

crate::layout! {
    /// Data by lane, in units of 4 bytes.
    pub struct PortVlOpData: 68 {
        /// The port.
        pub port_select: u8 = bits(1, 0, 8),
        /// The counters that a Set writes, one bit each.
        pub counter_select: u16 = bits(2, 0, 16),
        /// The counter of each lane.
        pub lanes: [u32; 16] = bits(4, 0, 512),
    }
}

attribute!(PortVlOpData = PORT_VL_OP_DATA in PERFORMANCE);

crate::layout! {
    /// Ticks in which data waited for credits, by lane.
    pub struct PortVlXmitWaitCounters: 36 {
        /// The port.
        pub port_select: u8 = bits(1, 0, 8),
        /// The counters that a Set writes, one bit each.
        pub counter_select: u16 = bits(2, 0, 16),
        /// The counter of each lane.
        pub lanes: [u16; 16] = bits(4, 0, 256),
    }
}

attribute!(PortVlXmitWaitCounters = PORT_VL_XMIT_WAIT_COUNTERS in PERFORMANCE);

/// A counter of 0 to 3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count2(pub u8);

crate::field!(Count2(u8));

crate::layout! {
    /// Missing updates of flow control by lane.
    pub struct PortVlXmitFlowCtlUpdateErrors: 8 {
        /// The port.
        pub port_select: u8 = bits(1, 0, 8),
        /// The counters that a Set writes, one bit each.
        pub counter_select: u16 = bits(2, 0, 16),
        /// The counter of each lane, 0 to 3; lane 0 stands in the highest bits.
        pub lanes: [Count2; 16] = bits(4, 0, 32),
    }
}

attribute!(PortVlXmitFlowCtlUpdateErrors = PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS in PERFORMANCE);

crate::layout! {
    /// How samples are taken; IBTA volume 1, chapter 16.1.3.2.
    pub struct PortSamplesControl: 80 {
        /// The operation code that some samples count.
        pub op_code: u8 = bits(0, 0, 8),
        /// The port.
        pub port_select: u8 = bits(1, 0, 8),
        /// The length of a tick, as a code.
        pub tick: u8 = bits(2, 0, 8),
        /// The width of the counters, as a code.
        pub counter_width: u8 = bits(3, 5, 3),
        /// What counter 0 can count.
        pub counter_mask0: u8 = bits(4, 2, 3),
        /// What counters 1 to 9 can count, three bits each.
        pub counter_masks1to9: u32 = bits(4, 5, 27),
        /// What counters 10 to 14 can count, three bits each.
        pub counter_masks10to14: u16 = bits(8, 1, 15),
        /// How many sampling mechanisms there are besides the first.
        pub sample_mechanisms: u8 = bits(10, 0, 8),
        /// 0 done, 1 started, 2 running.
        pub sample_status: u8 = bits(11, 6, 2),
        /// The optional counters that are supported.
        pub option_mask: u64 = bits(12, 0, 64),
        /// The vendor's counters that are supported.
        pub vendor_mask: u64 = bits(20, 0, 64),
        /// Ticks until sampling starts.
        pub sample_start: u32 = bits(28, 0, 32),
        /// Ticks of sampling.
        pub sample_interval: u32 = bits(32, 0, 32),
        /// The number of the sampling, to find its result.
        pub tag: u16 = bits(36, 0, 16),
        /// What the counters count.
        pub counter_select: [u16; 15] = bits(38, 0, 240),
        /// The optional counters that only samples count.
        pub samples_only_option_mask: u64 = bits(72, 0, 64),
    }
}

attribute!(PortSamplesControl = PORT_SAMPLES_CONTROL in PERFORMANCE);

crate::layout! {
    /// What samples counted; IBTA volume 1, chapter 16.1.3.4.
    pub struct PortSamplesResult: 64 {
        /// The number of the sampling.
        pub tag: u16 = bits(0, 0, 16),
        /// 0 done, 1 started, 2 running.
        pub sample_status: u8 = bits(3, 6, 2),
        /// The counters.
        pub counters: [u32; 15] = bits(4, 0, 480),
    }
}

attribute!(PortSamplesResult = PORT_SAMPLES_RESULT in PERFORMANCE);

crate::layout! {
    /// Errors of links of FDR and above, by lane of the link.
    pub struct PortExtSpeedsCounters: 140 {
        /// The port.
        pub port_select: u8 = bits(1, 0, 8),
        /// The counters that a Set writes, one bit each.
        pub counter_select: u64 = bits(8, 0, 64),
        /// Blocks with a bad header.
        pub sync_header_errors: u16 = bits(16, 0, 16),
        /// Blocks of an unknown kind.
        pub unknown_blocks: u16 = bits(18, 0, 16),
        /// Errors found.
        pub error_detections: [u16; 12] = bits(20, 0, 192),
        /// Blocks that forward error correction mended.
        pub fec_correctable_blocks: [u32; 12] = bits(44, 0, 384),
        /// Blocks that it could not mend.
        pub fec_uncorrectable_blocks: [u32; 12] = bits(92, 0, 384),
    }
}

attribute!(PortExtSpeedsCounters = PORT_EXT_SPEEDS_COUNTERS in PERFORMANCE);
