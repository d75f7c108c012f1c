//! Counters of a port.

use ib_wire::mad::Mad;
use ib_wire::mad::pm::{
    PortCounters, PortCountersExtended, PortRcvErrorDetails, PortXmitDiscardDetails,
};

/// The counters of a port, with 64 bits each.
///
/// The counters are those of PortCounters and PortCountersExtended (IBTA volume 1, chapter 16.1.3).
/// Values in PortCounters saturate. The counters that change with every packet are the first
/// fields, so that they are adjacent in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counters {
    /// Sent data in units of four bytes, without VCRC.
    pub xmit_data: u64,
    /// Received data in units of four bytes, without VCRC.
    pub rcv_data: u64,
    /// Sent packets.
    pub xmit_packets: u64,
    /// Received packets.
    pub rcv_packets: u64,
    /// Sent unicast packets.
    pub unicast_xmit_packets: u64,
    /// Received unicast packets.
    pub unicast_rcv_packets: u64,
    /// Sent multicast packets.
    pub multicast_xmit_packets: u64,
    /// Received multicast packets.
    pub multicast_rcv_packets: u64,
    /// Ticks during which packets were waiting for credits.
    pub xmit_wait: u64,
    /// Received packets that were damaged on the link, were malformed, or found no buffer space.
    pub rcv_errors: u64,
    /// Received packets that the sender marked as bad.
    pub rcv_remote_physical_errors: u64,
    /// Received packets that a switch could not forward: no LFT entry, or an invalid entry or VL.
    pub rcv_switch_relay_errors: u64,
    /// Packets that were discarded before they were sent, for example because the port was down or
    /// their lifetime was exceeded.
    pub xmit_discards: u64,
    /// Packets that were not sent because of their partition, or because they are raw packets.
    pub xmit_constraint_errors: u64,
    /// Received packets that were dropped because of their partition, or because they are raw
    /// packets.
    pub rcv_constraint_errors: u64,
    /// Bit errors on the link.
    pub symbol_errors: u64,
    /// Successful link retrainings.
    pub link_recoveries: u64,
    /// Failed link retrainings, after which the link went down.
    pub link_downed: u64,
    /// Number of times that local link errors exceeded the threshold.
    pub local_link_integrity_errors: u64,
    /// Number of times that buffer overruns exceeded the threshold.
    pub excessive_buffer_overruns: u64,
    /// Received SMPs that were dropped because the buffer for SMPs was full.
    pub vl15_dropped: u64,
    /// Received MADs to QP 1 that were dropped.
    pub qp1_dropped: u64,
    /// Part of `rcv_errors`: packets that were damaged on the link.
    pub local_physical_errors: u64,
    /// Part of `rcv_errors`: malformed packets.
    pub malformed_packet_errors: u64,
    /// Part of `rcv_errors`: packets for which there was no buffer space.
    pub buffer_overrun_errors: u64,
    /// Part of `rcv_switch_relay_errors`: packets without LFT entry.
    pub dlid_mapping_errors: u64,
    /// Part of `rcv_switch_relay_errors`: packets whose SL has no VL.
    pub vl_mapping_errors: u64,
    /// Part of `rcv_switch_relay_errors`: packets whose egress port would be their ingress port.
    pub looping_errors: u64,
    /// Part of `xmit_discards`: packets for a link that was down or not active.
    pub inactive_discards: u64,
    /// Part of `xmit_discards`: packets longer than the MTU.
    pub neighbor_mtu_discards: u64,
    /// Part of `xmit_discards`: packets that exceeded the switch lifetime limit.
    pub lifetime_discards: u64,
    /// Part of `xmit_discards`: packets that exceeded the head-of-queue lifetime limit.
    pub hoq_life_discards: u64,
}

impl Counters {
    /// Counts a sent packet of `bytes` bytes.
    pub(crate) const fn sent(&mut self, bytes: usize, multicast: bool) {
        self.xmit_data += (bytes / 4) as u64;
        self.xmit_packets += 1;
        self.multicast_xmit_packets += multicast as u64;
        self.unicast_xmit_packets += !multicast as u64;
    }

    /// Counts a packet that was damaged on the link.
    pub(crate) const fn damaged(&mut self) {
        self.rcv_errors += 1;
        self.local_physical_errors += 1;
    }

    /// Counts a received packet of `bytes` bytes.
    pub(crate) const fn received(&mut self, bytes: usize, multicast: bool) {
        self.rcv_data += (bytes / 4) as u64;
        self.rcv_packets += 1;
        self.multicast_rcv_packets += multicast as u64;
        self.unicast_rcv_packets += !multicast as u64;
    }
}

/// Length of a tick, the unit of `xmit_wait`, in nanoseconds.
pub const TICK_NANOS: u64 = 8;

/// Returns the number of ticks in a duration.
pub(crate) const fn ticks(time: std::time::Duration) -> u64 {
    time.as_nanos() as u64 / TICK_NANOS
}

/// Counters that are in both PortCounters and PortCountersExtended.
///
/// Each line lists a field of [`Counters`], the name of the field in both attributes, the bit in
/// CounterSelect, and the maximum value in PortCounters.
macro_rules! shared {
    ($apply:ident) => {
        $apply! {
            symbol_errors: symbol_errors 0 0xffff,
            link_recoveries: link_error_recoveries 1 0xff,
            link_downed: link_downed 2 0xff,
            rcv_errors: rcv_errors 3 0xffff,
            rcv_remote_physical_errors: rcv_remote_physical_errors 4 0xffff,
            rcv_switch_relay_errors: rcv_switch_relay_errors 5 0xffff,
            xmit_discards: xmit_discards 6 0xffff,
            xmit_constraint_errors: xmit_constraint_errors 7 0xff,
            rcv_constraint_errors: rcv_constraint_errors 8 0xff,
            local_link_integrity_errors: local_link_integrity_errors 9 0xf,
            excessive_buffer_overruns: excessive_buffer_overrun_errors 10 0xf,
            vl15_dropped: vl15_dropped 11 0xffff,
            xmit_data: xmit_data 12 0xffff_ffff,
            rcv_data: rcv_data 13 0xffff_ffff,
            xmit_packets: xmit_packets 14 0xffff_ffff,
            rcv_packets: rcv_packets 15 0xffff_ffff,
        }
    };
}

/// Calls a macro with the names of all fields of [`Counters`].
macro_rules! all {
    ($apply:ident) => {
        $apply!(xmit_data rcv_data xmit_packets rcv_packets multicast_xmit_packets
            multicast_rcv_packets unicast_xmit_packets unicast_rcv_packets xmit_wait symbol_errors link_recoveries link_downed rcv_errors
            local_physical_errors malformed_packet_errors buffer_overrun_errors
            rcv_remote_physical_errors rcv_switch_relay_errors dlid_mapping_errors
            vl_mapping_errors looping_errors xmit_discards inactive_discards
            neighbor_mtu_discards lifetime_discards hoq_life_discards xmit_constraint_errors rcv_constraint_errors
            local_link_integrity_errors excessive_buffer_overruns vl15_dropped qp1_dropped)
    };
}

impl Counters {
    /// Adds the counters of another port.
    pub(crate) const fn add(&mut self, other: &Self) {
        macro_rules! add {
            ($($name:ident)+) => {{
                $( self.$name = self.$name.saturating_add(other.$name); )+
            }};
        }
        all!(add);
    }

    /// Returns these counters minus `other`, modulo 2^64.
    #[must_use]
    pub(crate) const fn minus(&self, other: &Self) -> Self {
        let mut result = *self;
        macro_rules! subtract {
            ($($name:ident)+) => {{
                $( result.$name = self.$name.wrapping_sub(other.$name); )+
            }};
        }
        all!(subtract);
        result
    }

    /// Returns all counters with their names.
    #[must_use]
    pub fn named(&self) -> Vec<(&'static str, u64)> {
        macro_rules! named {
            ($($name:ident)+) => { vec![$( (stringify!($name), self.$name) ),+] };
        }
        all!(named)
    }

    /// Writes the counters into PortCounters, saturated at the maximum of each field.
    pub(crate) fn show(&self, shown: &mut PortCounters) {
        macro_rules! show {
            ($($own:ident: $name:ident $bit:literal $most:literal),+ $(,)?) => {
                $( shown.$name = self.$own.min($most) as _; )+
            };
        }
        shared!(show);
        shown.qp1_dropped = self.qp1_dropped.min(0xffff) as u16;
        shown.xmit_wait = self.xmit_wait.min(0xffff_ffff) as u32;
    }

    /// Writes the counters into PortCountersExtended.
    pub(crate) const fn show_extended(&self, shown: &mut PortCountersExtended) {
        macro_rules! show {
            ($($own:ident: $name:ident $bit:literal $most:literal),+ $(,)?) => {
                $( shown.$name = self.$own; )+
            };
        }
        shared!(show);
        shown.qp1_dropped = self.qp1_dropped;
        shown.xmit_wait = self.xmit_wait;
        shown.multicast_xmit_packets = self.multicast_xmit_packets;
        shown.multicast_rcv_packets = self.multicast_rcv_packets;
        shown.unicast_xmit_packets = self.unicast_xmit_packets;
        shown.unicast_rcv_packets = self.unicast_rcv_packets;
    }

    /// Applies a Set of a counter attribute: writes the counters that the MAD selects.
    pub(crate) fn write(&mut self, mad: &Mad) {
        if let Some(request) = mad.attribute::<PortCounters>() {
            let mut shown = PortCounters::zeroed();
            self.show(&mut shown);
            shown.write_selected(&request);
            macro_rules! write {
                ($($own:ident: $name:ident $bit:literal $most:literal),+ $(,)?) => {
                    $(
                        if request.counter_select.0 >> $bit & 1 == 1 {
                            self.$own = u64::from(shown.$name);
                        }
                    )+
                };
            }
            shared!(write);
            if request.counter_select2 & 1 == 1 {
                self.xmit_wait = u64::from(shown.xmit_wait);
            }
        } else if let Some(request) = mad.attribute::<PortCountersExtended>() {
            let mut shown = PortCountersExtended::zeroed();
            self.show_extended(&mut shown);
            shown.write_selected(&request);
            macro_rules! write {
                ($($own:ident: $name:ident $bit:literal $most:literal),+ $(,)?) => {
                    $( self.$own = shown.$name; )+
                };
            }
            shared!(write);
            (self.xmit_wait, self.qp1_dropped) = (shown.xmit_wait, shown.qp1_dropped);
            self.multicast_xmit_packets = shown.multicast_xmit_packets;
            self.multicast_rcv_packets = shown.multicast_rcv_packets;
            self.unicast_xmit_packets = shown.unicast_xmit_packets;
            self.unicast_rcv_packets = shown.unicast_rcv_packets;
        } else if let Some(request) = mad.attribute::<PortRcvErrorDetails>() {
            let selected = |bit: u16| request.counter_select >> bit & 1 == 1;
            if selected(0) {
                self.local_physical_errors = request.local_physical_errors.into();
            }
            if selected(1) {
                self.malformed_packet_errors = request.malformed_packet_errors.into();
            }
            if selected(2) {
                self.buffer_overrun_errors = request.buffer_overrun_errors.into();
            }
            if selected(3) {
                self.dlid_mapping_errors = request.dlid_mapping_errors.into();
            }
            if selected(4) {
                self.vl_mapping_errors = request.vl_mapping_errors.into();
            }
            if selected(5) {
                self.looping_errors = request.looping_errors.into();
            }
        } else if let Some(request) = mad.attribute::<PortXmitDiscardDetails>() {
            let selected = |bit: u16| request.counter_select >> bit & 1 == 1;
            if selected(0) {
                self.inactive_discards = request.inactive_discards.into();
            }
            if selected(1) {
                self.neighbor_mtu_discards = request.neighbor_mtu_discards.into();
            }
            if selected(2) {
                self.lifetime_discards = request.switch_lifetime_discards.into();
            }
            if selected(3) {
                self.hoq_life_discards = request.switch_hoq_lifetime_discards.into();
            }
        }
    }
}
