use super::*;

fn sets(all: &[&[u8]]) -> Vec<BTreeSet<u8>> {
    all.iter().map(|set| set.iter().copied().collect()).collect()
}

#[test]
fn shared_component_is_the_smallest_candidate() {
    let conflicts = sets(&[&[1, 2], &[2, 3], &[2, 4]]);
    assert_eq!(candidates(&conflicts, 4), sets(&[&[2]]));
}

#[test]
fn all_smallest_candidates_are_returned() {
    let conflicts = sets(&[&[1, 2], &[3, 4]]);
    assert_eq!(candidates(&conflicts, 4), sets(&[&[1, 3], &[1, 4], &[2, 3], &[2, 4]]));
}

#[test]
fn only_the_sole_member_of_a_conflict_is_certain() {
    let conflicts = sets(&[&[1, 2], &[2]]);
    assert!(is_certain(&2, &conflicts));
    assert!(!is_certain(&1, &conflicts));
}

#[test]
fn no_candidate_exceeds_the_limit() {
    assert!(candidates(&sets(&[&[1], &[2], &[3]]), 2).is_empty());
    assert_eq!(candidates::<u8>(&[], 2), vec![BTreeSet::new()]);
}

/// Compares the candidates with the result of an exhaustive search among all subsets of eight components.
#[test]
fn candidates_are_those_of_an_exhaustive_search() {
    let mut state = 1_u32;
    let mut next = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 24
    };
    for _ in 0..300 {
        let masks: Vec<u32> = (0..1 + next() % 4).map(|_| 1 + next() % 255).collect();
        let set = |mask: u32| (0..8).filter(|bit| mask >> bit & 1 != 0).collect();
        let conflicts: Vec<BTreeSet<u32>> = masks.iter().map(|&mask| set(mask)).collect();
        let hits = |&chosen: &u32| masks.iter().all(|mask| mask & chosen != 0);
        let least = (0..256)
            .filter(hits)
            .map(u32::count_ones)
            .min()
            .expect("the set of all components hits every conflict");
        let all = (0_u32..256).filter(hits).filter(|it| it.count_ones() == least).map(set);
        let expected: BTreeSet<BTreeSet<u32>> = all.collect();
        let found = candidates(&conflicts, 8);
        assert_eq!(found.len(), expected.len().min(MAX_CANDIDATES));
        assert!(found.iter().all(|it| expected.contains(it)));
    }
}
