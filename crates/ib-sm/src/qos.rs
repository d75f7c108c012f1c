//! Quality of service: SL-to-VL tables and VL arbitration entries, enabled by the option `-Q`. Names and defaults are
//! those of OpenSM's `qos_` keys. Source: IBTA volume 1, sections 7.6, 14.2.5.8 and 14.2.5.9.

use ib_types::{NodeKind, VirtualLane};
use ib_wire::mad::sm::{SlToVl, VlArbitration, VlArbitrationEntry, VlCap};

/// Maximum number of entries of a VL arbitration table.
pub const MAX_ARBITRATION_ENTRIES: usize = 64;

/// Number of entries in a block of a VL arbitration table.
const BLOCK_ENTRIES: usize = 32;

/// The VL settings for each kind of port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QosConfig {
    /// VL settings of ports of channel adapters.
    pub ca: PortQos,
    /// VL settings of ports of routers.
    pub router: PortQos,
    /// VL settings of enhanced ports 0 of switches.
    pub switch0: PortQos,
    /// VL settings of external ports of switches.
    pub switch_external: PortQos,
}

/// The VL settings for one kind of port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortQos {
    /// Maximum number of data VLs that the port uses, 1 to 15.
    pub max_vls: u8,
    /// `VLHighLimit`: after this many bytes of high-priority VLs, in units of 4 KiB, a low-priority packet is sent. 255
    /// means no limit, and 0 means one packet.
    pub high_limit: u8,
    /// Entries of the high-priority table, at most 64.
    pub vlarb_high: Vec<VlArbitrationEntry>,
    /// Entries of the low-priority table, at most 64.
    pub vlarb_low: Vec<VlArbitrationEntry>,
    /// VL of each service level. VL 15 means that the packets are discarded.
    pub sl2vl: [VirtualLane; 16],
}

/// The reason why VL settings cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QosError {
    /// An entry does not consist of a VL and a weight. Holds the entry.
    #[error("'{0}': expected a VL of 0 to 14, a colon and a weight of 0 to 255, such as 3:64")]
    Entry(String),
    /// The table has too many entries. Holds their number.
    #[error("found {0} entries, expected at most {MAX_ARBITRATION_ENTRIES}")]
    TooManyEntries(usize),
    /// A value is not a VL number. Holds the value.
    #[error("'{0}': expected a VL of 0 to 15")]
    Vl(String),
    /// The list does not have 16 VLs. Holds their number.
    #[error("found {0} VLs, expected 16: one for each service level")]
    VlCount(usize),
}

impl Default for PortQos {
    /// Returns OpenSM's defaults. SL n uses VL n, except that SL 15 uses VL 7. VL 0 has high priority, and all other
    /// VLs have low priority.
    fn default() -> Self {
        let entry = |vl, weight| VlArbitrationEntry { lane: vl, weight };
        let vls = || (0..15).filter_map(VirtualLane::new);
        let is_first = |vl: VirtualLane| vl.get() == 0;
        let sl2vl = |level: usize| VirtualLane::new(if level == 15 { 7 } else { level as u8 });
        Self {
            max_vls: 15,
            high_limit: 0,
            vlarb_high: vls().map(|vl| entry(vl, 4 * u8::from(is_first(vl)))).collect(),
            vlarb_low: vls().map(|vl| entry(vl, 4 * u8::from(!is_first(vl)))).collect(),
            sl2vl: std::array::from_fn(|level| sl2vl(level).expect("the VL is at most 15")),
        }
    }
}

impl QosConfig {
    /// Returns the settings for a port of the given node type and number.
    pub(crate) const fn of(&self, kind: NodeKind, port: u8) -> &PortQos {
        match kind {
            NodeKind::Switch if port == 0 => &self.switch0,
            NodeKind::Switch => &self.switch_external,
            NodeKind::Router => &self.router,
            NodeKind::ChannelAdapter => &self.ca,
        }
    }
}

impl PortQos {
    /// Parses VL arbitration entries, such as `0:4,1:0,2:64`.
    ///
    /// # Errors
    /// Fails if an entry does not consist of a VL and a weight, or if there are more than 64 entries.
    pub fn parse_arbitration(text: &str) -> Result<Vec<VlArbitrationEntry>, QosError> {
        let entry = |word: &str| {
            let (vl, weight) = word.split_once(':')?;
            let vl = vl.trim().parse().ok().filter(|&vl| vl < 15);
            let vl = vl.and_then(VirtualLane::new)?;
            Some(VlArbitrationEntry { lane: vl, weight: weight.trim().parse().ok()? })
        };
        let words: Vec<&str> = text.split(',').map(str::trim).collect();
        if words.len() > MAX_ARBITRATION_ENTRIES {
            return Err(QosError::TooManyEntries(words.len()));
        }
        let all =
            words.iter().map(|word| entry(word).ok_or_else(|| QosError::Entry((*word).into())));
        all.collect()
    }

    /// Parses the VLs of the 16 service levels, such as `0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3`.
    ///
    /// # Errors
    /// Fails unless the text lists 16 VLs, each of 0 to 15.
    pub fn parse_sl_to_vl(text: &str) -> Result<[VirtualLane; 16], QosError> {
        let vl = |word: &str| {
            let vl = word.trim().parse().ok().and_then(VirtualLane::new);
            vl.ok_or_else(|| QosError::Vl(word.trim().to_owned()))
        };
        let vls: Vec<VirtualLane> = text.split(',').map(vl).collect::<Result<_, _>>()?;
        <[VirtualLane; 16]>::try_from(vls).map_err(|vls| QosError::VlCount(vls.len()))
    }

    /// Returns the `VLCap` code with the largest number of VLs that does not exceed `max_vls`.
    pub(crate) fn vl_cap(&self) -> VlCap {
        let fits = |code: &u8| VlCap(*code).lanes().is_some_and(|vls| vls <= self.max_vls);
        VlCap((1..=5).rev().find(fits).unwrap_or(VlCap::VL0.0))
    }

    /// Returns the SL-to-VL table of a port that uses only the VLs `vls`. Other configured VLs are replaced by VLs
    /// among these.
    pub(crate) fn sl_to_vl(&self, vls: VlCap) -> SlToVl {
        SlToVl { lanes: self.sl2vl.map(|vl| within(vl, vls)) }
    }

    /// Returns the VL arbitration blocks that fit into a port's tables, with their numbers. Blocks 1 and 2 contain the
    /// low-priority table, and blocks 3 and 4 contain the high-priority table. `low_room` and `high_room` are the
    /// maximum numbers of entries in these tables.
    pub(crate) fn arbitration(
        &self,
        vls: VlCap,
        low_room: u8,
        high_room: u8,
    ) -> Vec<(u8, VlArbitration)> {
        let mut blocks = Vec::new();
        for (first, entries, room) in
            [(1, &self.vlarb_low, low_room), (3, &self.vlarb_high, high_room)]
        {
            let room = usize::from(room).min(MAX_ARBITRATION_ENTRIES);
            for (number, start) in (first..).zip((0..room).step_by(BLOCK_ENTRIES)) {
                let mut block = VlArbitration::zeroed();
                let entries = entries.iter().take(room).skip(start);
                for (slot, entry) in block.entries.iter_mut().zip(entries) {
                    *slot = VlArbitrationEntry { lane: within(entry.lane, vls), ..*entry };
                }
                blocks.push((number, block));
            }
        }
        blocks
    }
}

/// Maps a VL to a VL that is in use. As in OpenSM, this is the VL modulo the number of VLs in use, where 15 VLs count
/// as 16. VL 15, which discards packets, is unchanged.
fn within(vl: VirtualLane, vls: VlCap) -> VirtualLane {
    let mask = match vls.lanes() {
        Some(15) => 15,
        Some(vls) => vls - 1,
        None => 0,
    };
    if vl.get() == 15 { vl } else { VirtualLane::new(vl.get() & mask).unwrap_or_default() }
}

#[cfg(test)]
mod tests;
