//! Periods for which a file reports missing packets.

use std::collections::{BTreeMap, HashMap};

use ib_link::Direction;
use ib_types::Qpn;

/// Queue pair and direction of the packets of an interface, from the interface's name; `None` if the interface has no
/// such name.
type Owner = Option<(Qpn, Direction)>;

/// Gaps: periods in which packets are missing in a file. Each gap takes 16 bytes of memory.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    /// Time of the last frame of each interface, by section and interface.
    last: HashMap<(u32, u32), u64>,
    by_owner: BTreeMap<Owner, Vec<(u64, u64)>>,
}

impl Gaps {
    /// Records a frame of the interface `position` (section and interface number). `lost` frames of this interface are
    /// missing before the frame.
    pub(super) fn frame(&mut self, position: (u32, u32), of: Owner, time: Option<u64>, lost: u64) {
        let Some(time) = time else { return };
        // A gap before the first frame of an interface has no known start, so it begins at time 0.
        let before = self.last.insert(position, time).unwrap_or(0);
        if lost > 0 {
            self.by_owner.entry(of).or_default().push((before, time));
        }
    }

    /// Sorts the gaps and merges overlapping ones.
    pub(super) fn sorted(mut self) -> Self {
        self.last = HashMap::new();
        for gaps in self.by_owner.values_mut() {
            gaps.sort_unstable();
            gaps.dedup_by(|next, kept| {
                let touches = next.0 < kept.1;
                if touches {
                    kept.1 = kept.1.max(next.1);
                }
                touches
            });
            gaps.shrink_to_fit();
        }
        self
    }

    /// Returns the gaps of a queue pair in one direction, and the gaps whose queue pair is not known.
    pub(super) fn of(&self, qpn: Qpn, direction: Direction) -> [&[(u64, u64)]; 2] {
        [Some((qpn, direction)), None]
            .map(|owner| self.by_owner.get(&owner).map_or(&[][..], |it| it))
    }
}

/// Returns true if a gap overlaps the range from `from` to `to`. Gaps and range are measured in times, or in positions
/// (PSN and wrap-arounds) of a stream.
pub(super) fn is_between<T: Ord + Copy>(gaps: &[(T, T)], from: T, to: T) -> bool {
    let next = gaps.partition_point(|gap| gap.1 <= from);
    gaps.get(next).is_some_and(|gap| gap.0 < to)
}
