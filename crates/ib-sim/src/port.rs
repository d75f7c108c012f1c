//! A port: its attributes, counters, tables and output queue.

use std::sync::LazyLock;

use ib_topology::{LinkRate, NodeId, PortId};
use ib_types::{Guid, Instant, LinkSpeed, LinkWidth, Mtu, NodeKind, PKey, VirtualLane};
use ib_wire::mad::sm::{
    CapabilityMask, CapabilityMask2, LinkWidthMask, MlnxExtPortInfo, MtuCode, PhysState, PortInfo,
    PortState, SlToVl, SpeedSet, VlCap,
};

use crate::arbiter::ArbitrationTables;
use crate::counters::{Counters, ticks};
use crate::fault::PortFaults;
use crate::packet::MANAGEMENT_VL;
use crate::queue::Queues;

/// Length of the P_Key table of an HCA port.
pub(crate) const ADAPTER_P_KEYS: u16 = 64;
/// Length of the P_Key table of port 0 of a switch.
pub(crate) const SWITCH_P_KEYS: u16 = 8;
/// Length of the P_Key table of an external switch port.
pub(crate) const ENFORCED_P_KEYS: u16 = 64;

/// A port of a node. HCAs also have a port 0, which is not used.
///
/// The fields that every packet needs are the first, and begin at a cache line; the packet counters
/// follow. This order matters because fabrics are larger than CPU caches.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Port {
    /// Time at which the port's current transmission ends.
    pub(crate) busy_until: Instant,
    /// LinkWidthEnabled of the port, if the fabric file contains it.
    file_widths: Option<u8>,
    /// The port at the other end of the cable.
    pub(crate) cable: Option<PortId>,
    /// The output queues. They are created when a packet has to wait for the first time.
    pub(crate) queues: Option<Box<Queues>>,
    /// The available credits of each VL in blocks. `None` means that all credits are available, because the port
    /// has not yet sent data in this epoch of the link.
    pub(crate) credits: Option<Box<[u32; 15]>>,
    pub(crate) faults: Option<Box<PortFaults>>,
    /// Transmission time of a byte, in picoseconds.
    pub(crate) picos_per_byte: u32,
    /// Epoch of the link: the number of times that it went up or down. Packets that were sent in an
    /// earlier epoch are lost.
    pub(crate) epoch: u32,
    /// Number of client reregistration requests of subnet managers.
    pub(crate) registrations: u32,
    pub(crate) node: NodeId,
    pub(crate) number: u8,
    /// True if an event is scheduled for the end of the transmission.
    pub(crate) armed: bool,
    /// Number of flaps and of [`Sim::hold_down`](crate::Sim::hold_down) calls that now keep the link down, whatever
    /// a subnet manager sets.
    pub(crate) held_down: u16,
    pub(crate) counters: Counters,
    pub(crate) info: PortInfo,
    /// The amounts that PortCounters subtracts from the 64-bit counters; `None` if all are 0.
    pub(crate) short_base: Option<Box<Counters>>,
    pub(crate) guid: Guid,
    /// The tables of the port; `None` if none was written since the last reset.
    pub(crate) tables: Option<Box<Tables>>,
    /// Mellanox's vendor attribute for the link speed FDR10.
    pub(crate) mellanox: MlnxExtPortInfo,
    /// The highest rate that the port supports.
    pub(crate) best: LinkRate,
    /// Time at which the M_Key lease ends; `None` if no lease is running.
    pub(crate) lease_ends: Option<Instant>,
    /// Number of dropped packets. A Set of PortCounters does not reset this number.
    pub(crate) dropped: u64,
    /// The time when the port last left the state Active; zero if it was never Active.
    pub(crate) inactive_since: Instant,
}

/// The P_Key, SL-to-VL, VL arbitration and GUID tables of a port.
#[derive(Clone, Debug)]
pub(crate) struct Tables {
    pub(crate) p_keys: Vec<PKey>,
    /// SL-to-VL tables. A switch port has a table for each ingress port; an HCA port has one table.
    pub(crate) sl_to_vl: Vec<SlToVl>,
    pub(crate) arbitration: ArbitrationTables,
    /// The GUID table of the port without its first entry, which is the port GUID.
    pub(crate) guids: Vec<Guid>,
}

/// Returns ibsim's initial SL-to-VL table: each SL from 0 to 14 has the VL of the same number, and
/// SL 15 has VL 7.
pub(crate) fn default_sl_to_vl() -> SlToVl {
    let vl = |level| VirtualLane::new(if level == 15 { 7 } else { level as u8 });
    SlToVl { lanes: std::array::from_fn(|level| vl(level).expect("the VL is below 16")) }
}

impl Tables {
    /// Returns the tables of an unconfigured port.
    pub(crate) fn new(kind: NodeKind, number: u8, node_ports: u8) -> Self {
        let arrivals = if kind.is_switch() { usize::from(node_ports) + 1 } else { 1 };
        let mut p_keys = vec![PKey(0); usize::from(p_key_capacity(kind, number))];
        p_keys[0] = PKey::DEFAULT;
        Self {
            p_keys,
            sl_to_vl: vec![default_sl_to_vl(); arrivals],
            arbitration: ArbitrationTables::default(),
            guids: Vec::new(),
        }
    }
}

/// Returns the length of the P_Key table of a port.
pub(crate) const fn p_key_capacity(kind: NodeKind, number: u8) -> u16 {
    match (kind.is_switch(), number) {
        (true, 0) => SWITCH_P_KEYS,
        (true, _) => ENFORCED_P_KEYS,
        (false, _) => ADAPTER_P_KEYS,
    }
}

impl Port {
    pub(crate) fn new(
        node: NodeId,
        kind: NodeKind,
        number: u8,
        guid: Guid,
        rate: LinkRate,
    ) -> Self {
        let mut port = Self {
            node,
            number,
            guid,
            info: initial_info(kind, number),
            mellanox: MlnxExtPortInfo::zeroed(),
            best: rate,
            file_widths: None,
            cable: None,
            picos_per_byte: 0,
            epoch: 0,
            registrations: 0,
            counters: Counters::default(),
            short_base: None,
            busy_until: Instant::ZERO,
            armed: false,
            held_down: 0,
            queues: None,
            credits: None,
            tables: None,
            faults: None,
            lease_ends: None,
            dropped: 0,
            inactive_since: Instant::ZERO,
        };
        port.set_capabilities(rate);
        port.set_active(rate);
        port
    }

    /// Sets the supported and enabled widths and speeds to those that do not exceed a rate.
    pub(crate) fn set_capabilities(&mut self, rate: LinkRate) {
        // By default, ports that are faster than FDR10 do not support FDR10.
        let speeds: SpeedSet = LinkSpeed::ALL
            .into_iter()
            .filter(|&speed| speed == rate.speed || speed < rate.speed && speed != LinkSpeed::Fdr10)
            .collect();
        self.info.set_enabled_speeds(speeds);
        self.info.set_supported_speeds(speeds);
        self.mellanox.link_speed_supported = speeds.mellanox;
        self.mellanox.link_speed_enabled = speeds.mellanox;
        // As in ibsim, a 4x port also supports 1x, and a 12x port also supports 1x and 4x.
        self.info.link_width_enabled = [LinkWidth::X1, LinkWidth::X4, rate.width]
            .into_iter()
            .filter(|width| width.lanes() <= rate.width.lanes())
            .collect();
        self.info.link_width_supported = self.info.link_width_enabled;
        if let Some(mask) = self.file_widths {
            let supported = self.info.link_width_supported.0;
            self.info.link_width_enabled = LinkWidthMask(mask & supported);
        }
        if self.number == 0 {
            // Port 0 of a switch has no link, so only the width of `rate` is enabled.
            self.info.link_width_enabled = rate.width.into();
        }
        if self.info.capability_mask.contains(CapabilityMask::CAPABILITY_MASK2)
            && rate.speed >= LinkSpeed::Ndr
        {
            self.info.capability_mask2 =
                self.info.capability_mask2 | CapabilityMask2::LINK_SPEED_NDR;
        }
    }

    /// Enables only the widths in a mask from the fabric file, now and after each reset.
    pub(crate) fn enable_widths(&mut self, mask: u8) {
        self.file_widths = Some(mask);
        self.set_capabilities(self.best);
    }

    /// Sets the supported MTU, except for port 0 of a switch, which has a fixed one.
    pub(crate) fn set_mtu_cap(&mut self, kind: NodeKind, most: Mtu) {
        if self.number != 0 || !kind.is_switch() {
            self.info.mtu_cap = MtuCode(most.code());
            self.info.neighbor_mtu = self.info.mtu_cap;
        }
    }

    /// Resets the configuration of the port, but not the state of its link.
    pub(crate) fn reset(&mut self, kind: NodeKind) {
        let (state, phys) = (self.info.port_state, self.info.phys_state);
        let fresh = initial_info(kind, self.number);
        let capability = self.info.capability_mask;
        self.info = fresh;
        self.info.capability_mask = capability;
        self.set_capabilities(self.best);
        self.set_active(self.best);
        if !(kind.is_switch() && self.number == 0) {
            (self.info.port_state, self.info.phys_state) = (state, phys);
        }
        self.tables = None;
        self.lease_ends = None;
    }

    /// Sets the rate of the link.
    pub(crate) fn set_active(&mut self, rate: LinkRate) {
        let active = SpeedSet::from_active(rate.speed);
        self.info.set_active_speeds(active);
        self.mellanox.link_speed_active = active.mellanox;
        self.info.link_width_active = LinkWidthMask::from(rate.width);
        self.picos_per_byte = picos_per_byte(rate);
    }

    /// Returns true if the physical link is up, so that SMPs can pass.
    #[inline]
    pub(crate) const fn is_up(&self) -> bool {
        self.cable.is_some() && self.info.port_state.0 >= PortState::INIT.0
    }

    /// Returns true if the port's state lets it send data packets.
    #[inline]
    pub(crate) const fn sends_data(&self) -> bool {
        self.cable.is_some() && self.info.port_state.0 >= PortState::ACTIVE.0
    }

    /// Returns true if the port's state lets it receive data packets.
    #[inline]
    pub(crate) const fn receives_data(&self) -> bool {
        self.cable.is_some() && self.info.port_state.0 >= PortState::ARMED.0
    }

    /// Returns true if a LID belongs to the port.
    #[inline]
    pub(crate) const fn has_lid(&self, lid: u16) -> bool {
        let mask = !((1u16 << self.info.lmc) - 1);
        self.info.lid != 0 && lid & mask == self.info.lid & mask
    }

    /// Returns the transmission time of `bytes` bytes in nanoseconds, rounded up.
    #[inline]
    pub(crate) const fn nanos(&self, bytes: usize) -> u64 {
        (bytes as u64 * self.picos_per_byte as u64).div_ceil(1000)
    }

    /// Returns the number of data VLs in use.
    #[inline]
    pub(crate) fn data_vls(&self) -> u8 {
        VlCap(self.info.operational_vls.0).lanes().unwrap_or(1)
    }

    /// Returns the maximum length of a packet on the link in bytes: the MTU plus 126 bytes of
    /// headers.
    #[inline]
    pub(crate) fn longest_packet(&self) -> usize {
        usize::from(self.info.neighbor_mtu.bytes().unwrap_or(256)) + 126
    }

    /// Returns the VL that sends next. `ready` has a bit for each VL with packets and credits. VL
    /// 15 has precedence.
    pub(crate) fn choose_vl(&mut self, ready: u16) -> Option<u8> {
        static INITIAL: LazyLock<ArbitrationTables> = LazyLock::new(ArbitrationTables::default);
        if ready >> MANAGEMENT_VL & 1 == 1 {
            return Some(MANAGEMENT_VL);
        }
        let tables = self.tables.as_ref().map_or(&*INITIAL, |tables| &tables.arbitration);
        let PortInfo { vl_arbitration_high_cap, vl_arbitration_low_cap, vl_high_limit, .. } =
            self.info;
        let arbiter = self.queues.as_mut()?.arbiter();
        arbiter.choose(
            tables,
            vl_arbitration_high_cap,
            vl_arbitration_low_cap,
            vl_high_limit,
            ready,
        )
    }

    /// Returns the number of waiting packets of all VLs.
    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        self.queues.as_ref().map_or(0, |queues| queues.len())
    }

    /// Sets the 64-bit counters, and the saturated values that PortCounters returns.
    pub(crate) fn store_counters(&mut self, full: Counters, short: &Counters, now: Instant) {
        self.counters = full;
        let base = full.minus(short);
        self.short_base = (base != Counters::default()).then(|| Box::new(base));
        // The written `xmit_wait` replaces the wait for credits up to `now`. If the port is still waiting,
        // only the time after `now` is added later.
        if let Some(queues) = &mut self.queues {
            queues.restart_starvation(now);
        }
    }

    /// Starts a new epoch of the link, because the state of the link has changed. Returns the packets
    /// that waited in the output queues.
    pub(crate) fn restart_link(&mut self, up: bool, powered: bool, now: Instant) -> Vec<u32> {
        self.epoch = self.epoch.wrapping_add(1);
        self.credits = None;
        self.busy_until = now;
        self.armed = false;
        if up {
            self.info.phys_state = PhysState::LINK_UP;
        } else {
            self.counters.link_downed += u64::from(powered);
            if self.info.phys_state != PhysState::DISABLED {
                self.info.phys_state = PhysState::POLLING;
            }
        }
        self.end_starvation(now);
        self.queues.take().map_or_else(Vec::new, |queues| queues.into_packets())
    }

    /// If the port was waiting for credits, ends the wait and adds its duration to `xmit_wait`.
    pub(crate) fn end_starvation(&mut self, now: Instant) {
        if let Some(since) = self.queues.as_mut().and_then(|queues| queues.end_starvation()) {
            self.counters.xmit_wait += ticks(now.since(since));
        }
    }

    /// Returns the tables of the port for writing. Creates the initial tables if the port has no tables.
    pub(crate) fn tables_mut(&mut self, kind: NodeKind, node_ports: u8) -> &mut Tables {
        let number = self.number;
        self.tables.get_or_insert_with(|| Box::new(Tables::new(kind, number, node_ports)))
    }

    /// Returns the P_Key at an index of the P_Key table.
    pub(crate) fn p_key(&self, index: usize) -> PKey {
        match &self.tables {
            Some(tables) => tables.p_keys.get(index).copied().unwrap_or(PKey(0)),
            None if index == 0 => PKey::DEFAULT,
            None => PKey(0),
        }
    }

    /// Returns true if the P_Key of a packet matches an entry of the P_Key table.
    pub(crate) fn admits(&self, key: PKey) -> bool {
        match &self.tables {
            Some(tables) => tables.p_keys.iter().any(|&own| own.matches(key)),
            None => PKey::DEFAULT.matches(key),
        }
    }

    /// Returns true if the P_Key table contains the partition of a packet. Membership (full or
    /// limited) is ignored.
    ///
    /// A switch calls this function for the ingress port of a packet. The P_Key table of this port has the P_Keys of
    /// the HCA at its link. A limited P_Key in the table does not match the same P_Key in a packet, so the switch
    /// ignores membership. The port of the receiving HCA checks membership with [`Self::admits`].
    pub(crate) fn lets_in(&self, key: PKey) -> bool {
        let has = |own: PKey| own.partition() != 0 && own.partition() == key.partition();
        match &self.tables {
            Some(tables) => tables.p_keys.iter().any(|&own| has(own)),
            None => has(PKey::DEFAULT),
        }
    }

    /// Returns this port's P_Key for the partition of an admitted packet. Responses contain this
    /// P_Key.
    pub(crate) fn own_key(&self, key: PKey) -> PKey {
        match &self.tables {
            Some(tables) => {
                tables.p_keys.iter().copied().find(|own| own.matches(key)).unwrap_or(key)
            }
            None => PKey::DEFAULT,
        }
    }

    /// Returns the VL on which this port sends packets of an SL. `arrival` is the number of the port at which the
    /// packets have arrived at the node.
    #[inline]
    pub(crate) fn vl(&self, arrival: u8, level: ib_types::ServiceLevel) -> u8 {
        match &self.tables {
            Some(tables) => {
                let table = tables.sl_to_vl.get(usize::from(arrival));
                table.or(tables.sl_to_vl.first()).map_or(MANAGEMENT_VL, |t| t.lane(level).get())
            }
            None if level.get() == 15 => 7,
            None => level.get(),
        }
    }
}

/// Returns the transmission time of a byte at the data rate in picoseconds. The data rate is the
/// signalling rate minus the overhead of the line code.
fn picos_per_byte(rate: LinkRate) -> u32 {
    let signalling = u64::from(rate.megabits_per_second());
    // The line code is 8b/10b up to QDR, and 64b/66b for higher speeds.
    let (data, line) = if rate.speed <= LinkSpeed::Qdr { (8, 10) } else { (64, 66) };
    (8_000_000 * line / (signalling * data)) as u32
}

/// Returns the initial PortInfo, as in ibsim.
fn initial_info(kind: NodeKind, number: u8) -> PortInfo {
    let mut info = PortInfo::zeroed();
    info.link_down_default_state = PhysState::POLLING;
    info.vl_cap = VlCap::VL0_7;
    info.operational_vls = VlCap::VL0_7;
    info.vl_arbitration_high_cap = 8;
    info.vl_arbitration_low_cap = 8;
    info.mtu_cap = MtuCode::MTU_2048;
    info.neighbor_mtu = MtuCode::MTU_2048;
    info.vl_stall_count = 7;
    info.port_state = PortState::DOWN;
    info.phys_state = PhysState::POLLING;
    let end_port = CapabilityMask::TRAP
        | CapabilityMask::SL_MAPPING
        | CapabilityMask::EXTENDED_SPEEDS
        | CapabilityMask::CAPABILITY_MASK2;
    match (kind.is_switch(), number) {
        (true, 0) => {
            info.capability_mask = end_port;
            info.m_key_lease_period = 4089;
            info.neighbor_mtu = MtuCode::MTU_256;
            info.mtu_cap = MtuCode::MTU_1024;
            info.vl_stall_count = 0;
            info.guid_cap = 1;
            info.subnet_timeout = 31;
            info.resp_time_value = 8;
            info.port_state = PortState::ACTIVE;
            info.phys_state = PhysState::LINK_UP;
        }
        (true, _) => {}
        (false, _) => {
            info.capability_mask =
                end_port | CapabilityMask::VENDOR_CLASS | CapabilityMask::CAPABILITY_MASK_NOTICE;
            info.m_key_lease_period = 4089;
            info.guid_cap = 32;
            info.subnet_timeout = 31;
        }
    }
    if number == 0 || !kind.is_switch() {
        info.capability_mask2 = CapabilityMask2::LINK_WIDTH_2X | CapabilityMask2::LINK_SPEED_HDR;
    }
    info
}
