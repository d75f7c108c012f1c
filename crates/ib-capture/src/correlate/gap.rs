//! When packets are missing in a file, as far as it tells.

use std::collections::{BTreeMap, HashMap};

use ib_link::Direction;
use ib_types::Qpn;

/// Whose packets an interface has: those of a queue pair and a direction, or any.
type Owner = Option<(Qpn, Direction)>;

/// The times between which packets of a file are missing: 16 bytes for each place.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    /// When each interface of a section had its last frame.
    last: HashMap<(u32, u32), u64>,
    by_owner: BTreeMap<Owner, Vec<(u64, u64)>>,
}

impl Gaps {
    /// Notes a frame before which so many of its interface are missing.
    pub(super) fn frame(&mut self, place: (u32, u32), of: Owner, time: Option<u64>, lost: u64) {
        let Some(time) = time else { return };
        // Before the first one they can have been at any time.
        let before = self.last.insert(place, time).unwrap_or(0);
        if lost > 0 {
            self.by_owner.entry(of).or_default().push((before, time));
        }
    }

    /// Puts them into the order of time, each apart from the next.
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

    /// Returns those of a queue pair and a direction, and those that can be anybody's.
    pub(super) fn of(&self, qpn: Qpn, direction: Direction) -> [&[(u64, u64)]; 2] {
        [Some((qpn, direction)), None]
            .map(|owner| self.by_owner.get(&owner).map_or(&[][..], |it| it))
    }
}

/// Returns whether something is missing between two times, or two places.
pub(super) fn is_between<T: Ord + Copy>(gaps: &[(T, T)], from: T, to: T) -> bool {
    let next = gaps.partition_point(|gap| gap.1 <= from);
    gaps.get(next).is_some_and(|gap| gap.0 < to)
}
