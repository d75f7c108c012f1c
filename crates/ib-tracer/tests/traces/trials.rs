//! Seeded trials: traces paths through fabrics with up to four faults of any kind.
//!
//! The ground truth does not come from the tracer: each path is followed through the tables and the cables of
//! the simulator. A path over a fault must not be reported as good. A port or node without a fault must not
//! be reported as faulty. A report has to name the faulty port or node itself, not its neighbour.
//!
//! `TRACER_FIRST` is the first seed, and `TRACER_RUNS` is the number of seeds.

mod faults;
mod reading;
mod truth;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use ib_tracer::{FactSource, Target};
use ib_types::rng::Rng;

use crate::lab::Lab;
use faults::inject;
use reading::{Judged, called};
use truth::Truth;

/// The fabrics and their routing engines.
const TOPOLOGIES: [(&str, &str); 12] = [
    ("xgft 3,3 1,3", "minhop"),
    ("xgft 3,4 1,2 1,2", "minhop"),
    ("xgft 3,3,4 1,2,2", "updn"),
    ("xgft 2,3,2 1,2,2", "minhop"),
    ("fat-tree 4", "ftree"),
    ("fat-tree 8 oversubscription=2:1 parallel=2", "minhop"),
    ("torus 3x3 hosts=1", "dor"),
    ("torus 3x3 hosts=2", "lash"),
    ("torus 5 hosts=1", "minhop"),
    ("mesh 3x2 hosts=2", "minhop"),
    ("mesh 4x1 hosts=2", "minhop"),
    ("dragonfly a=4 p=1 h=1", "minhop"),
];

/// Maximum number of traced paths in a trial.
const MAX_PATHS: usize = 60;

/// The results of all trials.
#[derive(Debug, Default)]
struct Tally {
    trials: usize,
    paths: usize,
    good: usize,
    bad: usize,
    not_proven: usize,
    /// Number of paths over a fault: reported as good, as bad, and not proven.
    over_a_fault: [usize; 3],
    /// Number of faults on traced paths.
    faults: usize,
    reported: usize,
    suspected: usize,
    not_seen: usize,
    mads: u64,
    time: Duration,
    /// Paths over a fault that are reported as good. The test fails if there are any.
    false_good: Vec<String>,
    /// Reports of healthy ports or nodes. The test fails if there are any.
    false_reports: Vec<String>,
}

#[test]
fn no_path_over_a_fault_is_good() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = number("TRACER_FIRST").unwrap_or(0);
    let runs = number("TRACER_RUNS").unwrap_or(48);
    let mut tally = Tally::default();
    for seed in first..first + runs {
        trial(seed, &mut tally);
    }
    report(&tally);
    let wrong: Vec<&String> = tally.false_good.iter().chain(&tally.false_reports).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Two switches have the same LID, so counters that are read at this LID may belong to the wrong switch.
#[test]
fn counters_at_a_shared_lid_are_not_reported_as_a_fault() {
    let mut tally = Tally::default();
    trial(179, &mut tally);
    assert!(tally.false_reports.is_empty(), "{:#?}", tally.false_reports);
    assert!(tally.false_good.is_empty(), "{:#?}", tally.false_good);
}

/// A switch counts the responses that it sends, even if they are lost afterwards. The tracer must not take them for
/// probes that the switch has sent out of a wrong port.
#[test]
fn lost_responses_are_not_counted_as_a_fault() {
    let mut tally = Tally::default();
    trial(2809, &mut tally);
    assert!(tally.false_reports.is_empty(), "{:#?}", tally.false_reports);
    assert!(tally.false_good.is_empty(), "{:#?}", tally.false_good);
}

fn trial(seed: u64, tally: &mut Tally) {
    let mut rng = Rng::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x7ace);
    let (kind, engine) = TOPOLOGIES[seed as usize % TOPOLOGIES.len()];
    let share = rng.below(4);
    let mut lab = Lab::new(kind, engine, |number| share == 0 || number % (share + 1) != 1);
    lab.drop_traps();
    let via = if (seed / TOPOLOGIES.len() as u64).is_multiple_of(2) {
        FactSource::DirectedRoutes
    } else {
        FactSource::SaRecords
    };
    lab.configure(|config| config.via = via);
    let lids = lab.host_lids();
    let mut pairs: Vec<(u16, u16)> = lids
        .iter()
        .flat_map(|&from| lids.iter().map(move |&to| (from, to)))
        .filter(|(from, to)| from != to)
        .collect();
    rng.shuffle(&mut pairs);
    pairs.truncate(MAX_PATHS);
    let truth = Truth::of_lids(&lab);
    let count = rng.below(5);
    let injected = inject(&mut lab, &mut rng, count);
    let truth = truth.with_faults(&injected);
    let targets: Vec<_> =
        pairs.iter().map(|&(from, to)| (Some(Target::Lid(from)), Target::Lid(to))).collect();
    let begun = Instant::now();
    let (traces, tracer) = lab.trace_with(&targets);
    tally.time += begun.elapsed();
    tally.mads += lab.counters.traffic.sent;
    tally.trials += 1;
    let what = format!("seed {seed} {kind} {engine} {via:?} {:?}", injected.lines);
    let mut reported: BTreeSet<usize> = BTreeSet::new();
    let mut suspected: BTreeSet<usize> = BTreeSet::new();
    let mut relevant: BTreeSet<usize> = BTreeSet::new();
    for (&(from, to), trace) in pairs.iter().zip(&traces) {
        tally.paths += 1;
        let path = truth.path(&lab, from, to);
        let touched = truth.faults_on(&path);
        relevant.extend(&touched);
        let found = called(&lab, trace, &tracer);
        let index = match found.called {
            Judged::Good => 0,
            Judged::Bad => 1,
            Judged::NotProven => 2,
        };
        *[&mut tally.good, &mut tally.bad, &mut tally.not_proven][index] += 1;
        if path.is_over_a_fault {
            tally.over_a_fault[index] += 1;
            if found.called == Judged::Good {
                tally.false_good.push(format!("{what}: LID {from} to LID {to}: {trace:?}"));
            }
        }
        for report in &found.reported {
            let guilty = truth.guilty(&lab, report, &path);
            if guilty.is_none() {
                let text = format!("{what}: LID {from} to LID {to}: {report:?}: {trace:?}");
                tally.false_reports.push(text);
            }
            reported.extend(guilty.into_iter().flatten());
        }
        if found.called != Judged::Good {
            suspected.extend(&touched);
        }
    }
    tally.faults += relevant.len();
    tally.reported += relevant.intersection(&reported).count();
    let only_suspected = relevant.intersection(&suspected).filter(|it| !reported.contains(it));
    let only_suspected = only_suspected.count();
    tally.suspected += only_suspected;
    tally.not_seen +=
        relevant.iter().filter(|it| !reported.contains(it) && !suspected.contains(it)).count();
}

fn report(tally: &Tally) {
    use std::io::Write as _;
    let trials = tally.trials.max(1) as f64;
    let mut out = std::io::stderr();
    let [good, bad, not_proven] = tally.over_a_fault;
    let lines = [
        format!(
            "{} trials, {} paths: {} good, {} bad, {} not proven",
            tally.trials, tally.paths, tally.good, tally.bad, tally.not_proven
        ),
        format!("paths over a fault: {good} reported as good, {bad} bad, {not_proven} not proven"),
        format!("healthy ports or nodes reported: {}", tally.false_reports.len()),
        format!(
            "{} faults on traced paths: {} reported, {} suspected, {} not seen",
            tally.faults, tally.reported, tally.suspected, tally.not_seen
        ),
        format!(
            "{:.0} MADs and {:.2} ms per trial",
            tally.mads as f64 / trials,
            tally.time.as_secs_f64() * 1e3 / trials
        ),
    ];
    for line in lines {
        let _ = writeln!(out, "{line}");
    }
}
