//! Model-based diagnosis: finds the sets of faults that explain all observations.
//!
//! A *conflict* is a set of components of which at least one must be faulty, because a probe that depends on
//! all of them was not answered. A *candidate* is a set of faults that contains a component of every conflict
//! (a hitting set: de Kleer and Williams 1987, Reiter 1987). A component is proven faulty if it is in every
//! candidate of any size. This is the case exactly if a conflict has this component as its only member.

use std::collections::BTreeSet;

/// Maximum number of candidates (sets of faults) that are returned.
const MAX_CANDIDATES: usize = 16;

/// Maximum number of conflicts that the search for candidates considers.
const MAX_CONFLICTS: usize = 64;

/// Returns true if a component is in every candidate, whatever the number of faults.
pub(crate) fn is_certain<C: Ord>(component: &C, conflicts: &[BTreeSet<C>]) -> bool {
    conflicts.iter().any(|conflict| conflict.len() == 1 && conflict.contains(component))
}

/// Returns the candidates with the fewest components, in ascending order. The result is empty if every
/// candidate has more than `most` components.
pub(crate) fn candidates<C: Ord + Copy>(
    conflicts: &[BTreeSet<C>],
    most: usize,
) -> Vec<BTreeSet<C>> {
    let conflicts = &conflicts[..conflicts.len().min(MAX_CONFLICTS)];
    for size in 0..=most {
        let mut found = BTreeSet::new();
        extend(conflicts, &mut BTreeSet::new(), size, &mut found);
        if !found.is_empty() {
            return found.into_iter().collect();
        }
    }
    Vec::new()
}

/// Adds candidates to `found` that consist of the components in `chosen` and of at most `left` other components.
fn extend<C: Ord + Copy>(
    conflicts: &[BTreeSet<C>],
    chosen: &mut BTreeSet<C>,
    left: usize,
    found: &mut BTreeSet<BTreeSet<C>>,
) {
    if found.len() >= MAX_CANDIDATES {
        return;
    }
    let Some(open) = conflicts.iter().find(|conflict| conflict.is_disjoint(chosen)) else {
        found.insert(chosen.clone());
        return;
    };
    if left == 0 {
        return;
    }
    for &component in open {
        chosen.insert(component);
        extend(conflicts, chosen, left - 1, found);
        chosen.remove(&component);
    }
}

#[cfg(test)]
mod tests;
