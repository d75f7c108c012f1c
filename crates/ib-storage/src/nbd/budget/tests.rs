use super::*;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

fn usage(kept: usize) -> Usage {
    Usage { kept, most: 8 * MIB, guaranteed: 512 * KIB }
}

#[test]
fn allocations_within_the_budget_are_admitted() {
    assert!(usage(0).admits(0, 8 * MIB));
    assert!(usage(7 * MIB).admits(7 * MIB, MIB));
    assert!(!usage(7 * MIB).admits(7 * MIB, MIB + 1));
}

#[test]
fn guarantee_is_admitted_beyond_the_budget() {
    let full = usage(8 * MIB);
    assert!(full.admits(0, 512 * KIB + INPUT));
    assert!(!full.admits(1, 512 * KIB + INPUT));
}

#[test]
fn clients_share_the_guarantees() {
    let mut budget = Budget::new();
    budget.limit = 8 * MIB;
    budget.orphaned = 5;
    let export = ib_nbd::Export {
        name: String::new(),
        description: String::new(),
        geometry: ib_block::Geometry::new(1 << 20, 512),
        preferred: 4096,
    };
    let sessions = [(); 4].map(|()| Session::new([export.clone()].into()));
    let usage = budget.usage(sessions.iter());
    assert_eq!((usage.guaranteed, usage.most), (512 * KIB, 8 * MIB + 4 * INPUT));
    assert_eq!(usage.kept, 5 + sessions.iter().map(Session::kept).sum::<usize>());
}

#[test]
fn half_of_the_budget_counts_as_half_full() {
    assert!(!usage(4 * MIB - 1).is_half_full());
    assert!(usage(4 * MIB).is_half_full());
}
