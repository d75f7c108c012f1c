use super::*;

const SOUND: TableQuality =
    TableQuality { unreachable_host_pairs: 0, unreachable: 0, credit_loops: 0 };
const LOOP: TableQuality = TableQuality { credit_loops: 2, ..SOUND };
const DEAD: TableQuality = TableQuality { unreachable_host_pairs: 6, unreachable: 3, ..SOUND };
const DEAD_LOOP: TableQuality = TableQuality { credit_loops: 1, ..DEAD };
/// Tables with fewer unreachable host pairs than [`DEAD`].
const FEWER_DEAD: TableQuality =
    TableQuality { unreachable_host_pairs: 2, unreachable: 9, ..SOUND };

const QUALITIES: [TableQuality; 5] = [SOUND, LOOP, DEAD, DEAD_LOOP, FEWER_DEAD];

fn configured(quality: TableQuality) -> Candidate {
    Candidate { quality, is_configured: true }
}

fn complete(quality: TableQuality) -> Option<InUse> {
    Some(InUse { quality, is_complete: true })
}

/// Decisions for one candidate and the tables in use. Each column is a quality of the candidate, in the order of
/// `QUALITIES`. N: the candidate is programmed. K: the tables in use are kept. R: the candidate is refused.
#[test]
fn one_candidate_and_tables_in_use() {
    let incomplete = Some(InUse { quality: SOUND, is_complete: false });
    let rows: [(Option<InUse>, &str, &str); 7] = [
        // Each row has: the tables in use, the decisions by default, and the decisions with `requires_deadlock_free`.
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

/// Alarms for a candidate of a configured engine and a candidate of another engine. Each row is a quality of the
/// configured candidate. Each column is a quality of the other candidate, in the order of `QUALITIES`. L: an alarm
/// about credit loops; l: this alarm names the other candidate. U: an alarm about unreachable pairs; u: this alarm
/// names the other candidate.
#[test]
fn alarms_name_the_candidate_without_their_reason() {
    let rows = [
        (SOUND, ["", "", "", "", ""]),
        (LOOP, ["l", "L", "L", "L", "L"]),
        (DEAD, ["u", "u", "U", "U", "u"]),
        (DEAD_LOOP, ["lu", "Lu", "lU", "LU", "lu"]),
        (FEWER_DEAD, ["u", "u", "U", "U", "U"]),
    ];
    for (programmed, expected) in rows {
        let alarms = QUALITIES.map(|quality| {
            let other = Candidate { quality, is_configured: false };
            let decision = decide(None, &[configured(programmed), other], false);
            assert_eq!(decision.quality, Some(programmed));
            let letter = |alarm: &TableAlarm| match alarm {
                TableAlarm::CreditLoops { avoided_by: None } => 'L',
                TableAlarm::CreditLoops { avoided_by: Some(1) } => 'l',
                TableAlarm::Unreachable { reached_by: None } => 'U',
                TableAlarm::Unreachable { reached_by: Some(1) } => 'u',
                _ => '?',
            };
            decision.alarms.iter().map(letter).collect::<String>()
        });
        assert_eq!(alarms, expected, "{programmed:?}");
    }
}

/// One engine reaches the most pairs, and another engine avoids the credit loop. Each alarm names the engine that would
/// clear it.
#[test]
fn alarms_name_different_candidates() {
    let others = [LOOP, DEAD].map(|quality| Candidate { quality, is_configured: false });
    let decision = decide(None, &[configured(DEAD_LOOP), others[0], others[1]], false);
    let expected = [
        TableAlarm::CreditLoops { avoided_by: Some(2) },
        TableAlarm::Unreachable { reached_by: Some(1) },
    ];
    assert_eq!(decision.alarms, expected);
}

/// Calls `check` for the decision about every combination of up to three candidates and tables in use.
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
    let Decision { choice, quality, alarms } = decide(in_use, list, requires);
    check_alarms(quality, &alarms, list, &context);
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
            assert_eq!(
                first,
                Some(number),
                "an engine of lower preference was chosen: {}",
                context()
            );
        }
        Choice::InUse => {
            let kept = in_use.expect("tables are in use");
            assert!(kept.is_complete, "{}", context());
            assert_eq!(quality, Some(kept.quality), "{}", context());
        }
        Choice::Refuse => {
            assert_eq!(quality, in_use.map(|it| it.quality), "{}", context());
            // If deadlock freedom is not required and an engine could route, some tables must be programmed.
            assert!(eligible.is_empty(), "{}", context());
            return;
        }
    }
    let quality = quality.expect("the chosen tables have a quality");
    assert!(allowed(&quality), "{}", context());
    let kept = in_use.filter(|it| it.is_complete && allowed(&it.quality)).map(|it| it.quality);
    for other in eligible.iter().copied().chain(kept) {
        // No other tables that may be programmed have fewer unreachable pairs than the chosen tables.
        let lost = |it: TableQuality| (it.unreachable_host_pairs, it.unreachable);
        assert!(lost(quality) <= lost(other), "{}", context());
        // If the chosen tables have a credit loop, so do all other tables that may be programmed and have as few
        // unreachable pairs as the chosen tables.
        if lost(quality) == lost(other) && other.credit_loops == 0 {
            assert_eq!(quality.credit_loops, 0, "{}", context());
        }
    }
}

/// Checks that alarms are raised exactly if the tables in the switches have credit loops or unreachable pairs.
/// `quality` is the quality of these tables.
///
/// * An alarm about credit loops must name a candidate without credit loops that has no more unreachable pairs than
///   these tables.
/// * An alarm about unreachable pairs must name a candidate that has fewer unreachable pairs than these tables.
///
/// If there is no such candidate, the alarm must name none.
fn check_alarms(
    quality: Option<TableQuality>,
    alarms: &[TableAlarm],
    list: &[Candidate],
    context: &dyn Fn() -> String,
) {
    let now = quality.unwrap_or(SOUND);
    let lost = |it: TableQuality| (it.unreachable_host_pairs, it.unreachable);
    let avoids = |it: &Candidate| it.quality.credit_loops == 0 && lost(it.quality) <= lost(now);
    let reaches_more = |it: &Candidate| lost(it.quality) < lost(now);
    let has_loop = alarms.iter().any(|it| matches!(it, TableAlarm::CreditLoops { .. }));
    let loses = alarms.iter().any(|it| matches!(it, TableAlarm::Unreachable { .. }));
    assert_eq!((has_loop, loses), (now.credit_loops > 0, lost(now) != (0, 0)), "{}", context());
    for alarm in alarms {
        let (named, is_right): (_, &dyn Fn(&Candidate) -> bool) = match alarm {
            TableAlarm::CreditLoops { avoided_by } => (avoided_by, &avoids),
            TableAlarm::Unreachable { reached_by } => (reached_by, &reaches_more),
        };
        assert_eq!(named.is_some(), list.iter().any(is_right), "{}", context());
        assert!(named.is_none_or(|it| is_right(&list[it])), "{}", context());
    }
}

#[test]
fn refusal_reports_the_quality_of_the_tables_in_the_switches() {
    let in_use = Some(InUse { quality: DEAD, is_complete: false });
    let decision = decide(in_use, &[configured(LOOP)], true);
    let alarms = vec![TableAlarm::Unreachable { reached_by: Some(0) }];
    assert_eq!(decision, Decision { choice: Choice::Refuse, quality: Some(DEAD), alarms });
    assert_eq!(decide(None, &[], false).choice, Choice::Refuse);
}
