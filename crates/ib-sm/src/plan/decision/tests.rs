use super::*;

const SOUND: TableQuality =
    TableQuality { unreachable_host_pairs: 0, unreachable: 0, credit_loops: 0 };
const LOOP: TableQuality = TableQuality { credit_loops: 2, ..SOUND };
const DEAD: TableQuality = TableQuality { unreachable_host_pairs: 6, unreachable: 3, ..SOUND };
const DEAD_LOOP: TableQuality = TableQuality { credit_loops: 1, ..DEAD };
/// Fewer host pairs are lost than with [`DEAD`].
const FEWER_DEAD: TableQuality =
    TableQuality { unreachable_host_pairs: 2, unreachable: 9, ..SOUND };

const QUALITIES: [TableQuality; 5] = [SOUND, LOOP, DEAD, DEAD_LOOP, FEWER_DEAD];

fn configured(quality: TableQuality) -> Candidate {
    Candidate { quality, is_configured: true }
}

fn complete(quality: TableQuality) -> Option<InUse> {
    Some(InUse { quality, is_complete: true })
}

/// One candidate beside the tables in use. Columns: what the candidate does, in the order of
/// `QUALITIES`. N: the candidate is programmed. K: the tables in use are kept. R: refused.
#[test]
fn one_candidate_and_tables_in_use() {
    let incomplete = Some(InUse { quality: SOUND, is_complete: false });
    let rows: [(Option<InUse>, &str, &str); 7] = [
        // In use, by default, with requires_deadlock_free.
        (None, "NNNNN", "NRNRN"),
        (incomplete, "NNNNN", "NRNRN"),
        (complete(SOUND), "NKKKK", "NKKKK"),
        (complete(LOOP), "NNKKK", "NRNRN"),
        (complete(DEAD), "NNNKN", "NKNKN"),
        (complete(DEAD_LOOP), "NNNNN", "NRNRN"),
        (complete(FEWER_DEAD), "NNKKN", "NKKKN"),
    ];
    for (in_use, by_default, required) in rows {
        for (requires, expected) in [(false, by_default), (true, required)] {
            let choices = QUALITIES.map(|quality| {
                match decide(in_use, &[configured(quality)], requires).choice {
                    Choice::Candidate(0) => 'N',
                    Choice::Candidate(_) => '?',
                    Choice::InUse => 'K',
                    Choice::Refuse => 'R',
                }
            });
            let choices: String = choices.iter().collect();
            assert_eq!(choices, expected, "{in_use:?}, requires_deadlock_free: {requires}");
        }
    }
}

/// Every combination of up to three candidates and the tables in use keeps the rules.
#[test]
fn every_combination_keeps_the_rules() {
    let candidates: Vec<Candidate> = QUALITIES
        .iter()
        .flat_map(|&quality| {
            [true, false].map(|is_configured| Candidate { quality, is_configured })
        })
        .collect();
    let mut lists: Vec<Vec<Candidate>> = vec![Vec::new()];
    for length in 0..3 {
        let shorter: Vec<_> = lists.iter().filter(|it| it.len() == length).cloned().collect();
        for list in shorter {
            lists.extend(candidates.iter().map(|&last| [&list[..], &[last]].concat()));
        }
    }
    assert_eq!(lists.len(), 1 + 10 + 100 + 1000);
    let mut in_use = vec![None];
    in_use.extend(QUALITIES.iter().flat_map(|&quality| {
        [true, false].map(|is_complete| Some(InUse { quality, is_complete }))
    }));
    for list in &lists {
        for &in_use in &in_use {
            for requires in [false, true] {
                check(in_use, list, requires);
            }
        }
    }
}

fn check(in_use: Option<InUse>, list: &[Candidate], requires: bool) {
    let context = || format!("{in_use:?}, {list:?}, requires_deadlock_free: {requires}");
    let Decision { choice, quality, better } = decide(in_use, list, requires);
    let allowed = |it: &TableQuality| !requires || it.credit_loops == 0;
    let eligible: Vec<TableQuality> = list
        .iter()
        .filter(|it| it.is_configured && allowed(&it.quality))
        .map(|it| it.quality)
        .collect();
    match choice {
        Choice::Candidate(number) => {
            assert!(list[number].is_configured, "{}", context());
            assert_eq!(quality, Some(list[number].quality), "{}", context());
            let first = list.iter().position(|it| *it == list[number]);
            assert_eq!(first, Some(number), "an engine of lower preference: {}", context());
        }
        Choice::InUse => {
            let kept = in_use.expect("tables are in use");
            assert!(kept.is_complete, "{}", context());
            assert_eq!(quality, Some(kept.quality), "{}", context());
        }
        Choice::Refuse => {
            assert_eq!(quality, in_use.map(|it| it.quality), "{}", context());
            // Without the requirement, something is always programmed if an engine could route.
            assert!(eligible.is_empty(), "{}", context());
            return;
        }
    }
    let quality = quality.expect("tables are programmed");
    assert!(allowed(&quality), "{}", context());
    let kept = in_use.filter(|it| it.is_complete && allowed(&it.quality)).map(|it| it.quality);
    for other in eligible.iter().copied().chain(kept) {
        // No eligible tables reach more.
        let lost = |it: TableQuality| (it.unreachable_host_pairs, it.unreachable);
        assert!(lost(quality) <= lost(other), "{}", context());
        // None reach the same without a credit loop, unless these have none either.
        if lost(quality) == lost(other) && other.credit_loops == 0 {
            assert_eq!(quality.credit_loops, 0, "{}", context());
        }
    }
    let sound = list.iter().any(|it| it.quality == SOUND);
    assert_eq!(better.is_some_and(|it| list[it].quality == SOUND), sound && quality != SOUND);
    if let Some(better) = better {
        assert_ne!(choice, Choice::Candidate(better), "{}", context());
    }
}

#[test]
fn a_refusal_reports_what_the_tables_in_the_switches_do() {
    let in_use = Some(InUse { quality: DEAD, is_complete: false });
    let decision = decide(in_use, &[configured(LOOP)], true);
    assert_eq!(decision, Decision { choice: Choice::Refuse, quality: Some(DEAD), better: Some(0) });
    assert_eq!(decide(None, &[], false).choice, Choice::Refuse);
}
