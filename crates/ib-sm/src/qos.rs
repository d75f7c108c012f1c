//! Service levels on virtual lanes, and VL arbitration entries: what `-Q` writes; IBTA volume 1, chapters
//! 7.6 and 14.2.5.8 and 14.2.5.9. Names and defaults are those of OpenSM's `qos_` keys.

use ib_types::{NodeKind, VirtualLane};
use ib_wire::mad::sm::{SlToVl, VlArbitration, VlArbitrationEntry, VlCap};

/// The most turns that a table can have.
pub const MAX_TURNS: usize = 64;

/// The turns in a block of a table.
const TURNS: usize = 32;

/// What every kind of port is told of VLs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QosConfig {
    /// Channel adapters.
    pub ca: PortQos,
    /// Routers.
    pub router: PortQos,
    /// Port 0 of switches that have an enhanced one.
    pub switch0: PortQos,
    /// The other ports of switches.
    pub switch_external: PortQos,
}

/// What a port is told of VLs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortQos {
    /// The most data VLs that are used, 1 to 15.
    pub max_vls: u8,
    /// How much may be sent by the high-priority table before the other one has its turn, in units of
    /// 4 KiB; 255 for no limit, 0 for one packet.
    pub high_limit: u8,
    /// The turns of high priority, 64 at most.
    pub vlarb_high: Vec<VlArbitrationEntry>,
    /// The turns of low priority, 64 at most.
    pub vlarb_low: Vec<VlArbitrationEntry>,
    /// The VL of each service level; VL 15 drops.
    pub sl2vl: [VirtualLane; 16],
}

/// Why a text says nothing about VLs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QosError {
    /// A turn is not a VL and a weight.
    #[error("'{0}': expected a VL of 0 to 14, a colon and a weight of 0 to 255, such as 3:64")]
    Turn(String),
    /// There are more turns than a table can have.
    #[error("{0} turns: expected {MAX_TURNS} at most")]
    TooManyTurns(usize),
    /// A VL is none.
    #[error("'{0}': expected a VL of 0 to 15")]
    Vl(String),
    /// The number of VLs is not that of the service levels.
    #[error("{0} VLs: expected one for each of the 16 service levels")]
    VlCount(usize),
}

impl Default for PortQos {
    /// OpenSM's: SL n on VL n and SL 15 on VL 7, VL 0 of high priority, the others of low.
    fn default() -> Self {
        let turn = |vl, weight| VlArbitrationEntry { lane: vl, weight };
        let vls = || (0..15).filter_map(VirtualLane::new);
        let is_first = |vl: VirtualLane| vl.get() == 0;
        let sl2vl = |level: usize| VirtualLane::new(if level == 15 { 7 } else { level as u8 });
        Self {
            max_vls: 15,
            high_limit: 0,
            vlarb_high: vls().map(|vl| turn(vl, 4 * u8::from(is_first(vl)))).collect(),
            vlarb_low: vls().map(|vl| turn(vl, 4 * u8::from(!is_first(vl)))).collect(),
            sl2vl: std::array::from_fn(|level| sl2vl(level).expect("at most 15")),
        }
    }
}

impl QosConfig {
    /// Returns what a port of a node is told.
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
    /// Reads turns such as `0:4,1:0,2:64`.
    ///
    /// # Errors
    /// Fails when a turn is not a VL and a weight, and when there are more than 64.
    pub fn turns(text: &str) -> Result<Vec<VlArbitrationEntry>, QosError> {
        let turn = |word: &str| {
            let (vl, weight) = word.split_once(':')?;
            let vl = vl.trim().parse().ok().filter(|&vl| vl < 15);
            let vl = vl.and_then(VirtualLane::new)?;
            Some(VlArbitrationEntry { lane: vl, weight: weight.trim().parse().ok()? })
        };
        let words: Vec<&str> = text.split(',').map(str::trim).collect();
        if words.len() > MAX_TURNS {
            return Err(QosError::TooManyTurns(words.len()));
        }
        let all = words.iter().map(|word| turn(word).ok_or_else(|| QosError::Turn((*word).into())));
        all.collect()
    }

    /// Reads the VLs of the 16 service levels, such as `0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3`.
    ///
    /// # Errors
    /// Fails when there are not 16 VLs of 0 to 15.
    pub fn lanes(text: &str) -> Result<[VirtualLane; 16], QosError> {
        let vl = |word: &str| {
            let vl = word.trim().parse().ok().and_then(VirtualLane::new);
            vl.ok_or_else(|| QosError::Vl(word.trim().to_owned()))
        };
        let vls: Vec<VirtualLane> = text.split(',').map(vl).collect::<Result<_, _>>()?;
        <[VirtualLane; 16]>::try_from(vls).map_err(|vls| QosError::VlCount(vls.len()))
    }

    /// Returns the code of as many VLs as may be used.
    pub(crate) fn vl_cap(&self) -> VlCap {
        let fits = |code: &u8| VlCap(*code).lanes().is_some_and(|vls| vls <= self.max_vls);
        VlCap((1..=5).rev().find(fits).unwrap_or(VlCap::VL0.0))
    }

    /// Returns the VL of each service level at a port that uses some VLs; the others share these.
    pub(crate) fn sl_to_vl(&self, vls: VlCap) -> SlToVl {
        SlToVl { lanes: self.sl2vl.map(|vl| within(vl, vls)) }
    }

    /// Returns the blocks of turns that a port has room for, by number: 1 and 2 are of low priority, 3
    /// and 4 of high. The rooms are the numbers of entries that the tables of the port hold.
    pub(crate) fn arbitration(
        &self,
        vls: VlCap,
        low_room: u8,
        high_room: u8,
    ) -> Vec<(u8, VlArbitration)> {
        let mut blocks = Vec::new();
        for (first, turns, room) in
            [(1, &self.vlarb_low, low_room), (3, &self.vlarb_high, high_room)]
        {
            let room = usize::from(room).min(MAX_TURNS);
            for (number, start) in (first..).zip((0..room).step_by(TURNS)) {
                let mut block = VlArbitration::zeroed();
                let turns = turns.iter().take(room).skip(start);
                for (entry, turn) in block.entries.iter_mut().zip(turns) {
                    *entry = VlArbitrationEntry { lane: within(turn.lane, vls), ..*turn };
                }
                blocks.push((number, block));
            }
        }
        blocks
    }
}

/// Returns a VL that a port uses: those that it does not use share the others, as OpenSM does it.
/// Lane 15 stays, since it drops.
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
