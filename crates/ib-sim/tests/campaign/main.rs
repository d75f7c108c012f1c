//! Discovery of fabrics under random faults.
//!
//! A client with the requester of `ib-mad` queries every node by directed route and every end port
//! by LID, in rounds. Meanwhile, random faults of every kind occur; they are removed before the
//! last round. Every request completes exactly once, with a response or a timeout. No request or
//! packet remains in the fabric. The same seed gives exactly the same run.
//!
//! | module | contents |
//! |---|---|
//! | `plan` | fabric, faults and client timing of a run, as the seed determines them |
//! | `bring_up` | LIDs, forwarding tables and port states, set as by a subnet manager |
//! | `discovery` | the client |
//!
//! `SIM_RUNS` is the number of runs, and `SIM_FIRST` the seed of the first run. To repeat a failed
//! run, set `SIM_FIRST=SEED SIM_RUNS=1`. `cargo xtask campaign discovery --runs 10000` does many
//! runs.

mod bring_up;
mod discovery;
mod paths;
mod plan;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use ib_link::{Incoming, MadLink};
use ib_sim::{Sim, SimLink};
use ib_types::Guid;

use discovery::Discovery;
use plan::{Kinds, Plan};

/// The results of a run. Two runs with the same seed have equal results.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    /// The completed queries of the client, in order.
    ends: String,
    /// The log of the fabric.
    log: String,
    tally: Tally,
    /// The nodes that the client discovered in its last round.
    nodes: BTreeSet<Guid>,
}

/// Counters of a run, or their sums over all runs of a campaign.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Tally {
    started: u64,
    answered: u64,
    timed_out: u64,
    lost: u64,
    retries: u64,
    late: u64,
    /// Number of responses to LID-routed requests.
    routed: u64,
    /// LFT writes that a switch has acknowledged, but ignored.
    ignored_tables: u64,
    /// Number of discovery rounds.
    rounds: u64,
    /// Number of lost packets by reason, and number of steps by command.
    kinds: BTreeMap<String, u64>,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        for (sum, part) in [
            (&mut self.started, other.started),
            (&mut self.answered, other.answered),
            (&mut self.timed_out, other.timed_out),
            (&mut self.lost, other.lost),
            (&mut self.retries, other.retries),
            (&mut self.late, other.late),
            (&mut self.routed, other.routed),
            (&mut self.ignored_tables, other.ignored_tables),
            (&mut self.rounds, other.rounds),
        ] {
            *sum += part;
        }
        for (kind, count) in &other.kinds {
            *self.kinds.entry(kind.clone()).or_default() += count;
        }
    }
}

/// Runs the fabric, the faults and the client of a plan.
fn run(plan: &Plan<'_>) -> Outcome {
    let mut sim = Sim::new(&plan.kind.fabric, plan.options());
    let port = sim.first_end_port().expect("the fabric has nodes");
    let mut link = SimLink::attach(&mut sim, port, plan.client())
        .expect("the port exists and no client is attached");
    if plan.configured {
        bring_up::run(&mut link, &plan.kind.configuration);
    }
    let start = link.now();
    let steps = plan.steps(start);
    link.sim().load_script(&steps).expect("the targets of all faults exist");
    let mut discovery = Discovery::new(plan);
    // Discovers the fabric repeatedly during the faults, and once after their removal. The last
    // discovery has to find the whole fabric.
    let mended = start + plan.time;
    for _ in 0..plan.rounds {
        discovery.round(&mut link);
        if link.now() >= mended {
            break;
        }
    }
    if link.now() < mended {
        link.sim().run_until(mended);
    }
    settle(&mut link, &mut discovery);
    discovery.round(&mut link);
    settle(&mut link, &mut discovery);
    let mut tally = discovery.tally();
    for step in &steps {
        for kind in plan::kinds(&step.command) {
            *tally.kinds.entry(kind).or_default() += 1;
        }
    }
    for (&why, &count) in &link.sim().stats().lost {
        *tally.kinds.entry(why.to_owned()).or_default() += count;
    }
    let log = link.sim().take_log();
    Outcome { ends: discovery.ends, log, tally, nodes: discovery.nodes }
}

/// Waits for all late responses, and checks that they complete no query a second time. Then checks
/// that no request is outstanding in the fabric.
fn settle(link: &mut SimLink<'_>, discovery: &mut Discovery<'_>) {
    assert_eq!(discovery.waiting(), 0, "no query is outstanding");
    let until = link.now() + Duration::from_secs(60);
    link.sim().run_until(until);
    let now = link.now();
    link.sim().settle(now);
    while let Some(incoming) = link.receive().expect("a simulated link does not fail") {
        discovery.late(now, &incoming);
        assert!(!matches!(incoming, Incoming::Lost(_)) || discovery.reports_losses());
    }
    assert_eq!(link.sim().outstanding(), 0, "no request is outstanding in the fabric");
}

/// Prints the seed if the test fails.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failed with SIM_FIRST={} SIM_RUNS=1", self.0);
        }
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .map_or(default, |text| text.parse().expect("the environment variable is a number"))
}

#[test]
fn discovery_under_faults_ends_and_is_reproducible() {
    let kinds = Kinds::new();
    let (first, runs) = (setting("SIM_FIRST", 0), setting("SIM_RUNS", 200));
    let (mut sum, mut whole, mut different) = (Tally::default(), 0, 0);
    let (began, mut logged) = (Instant::now(), 0);
    let mut before = Outcome::default();
    for seed in first..first + runs {
        let _guard = Seed(seed);
        let plan = Plan::new(&kinds, seed);
        let outcome = run(&plan);
        assert!(outcome == run(&plan), "two runs with the same seed are equal");
        let all: BTreeSet<Guid> = plan.kind.fabric.nodes().map(|(_, node)| node.guid).collect();
        assert!(outcome.nodes.is_subset(&all), "all found nodes are in the fabric");
        if plan.heals() {
            assert_eq!(outcome.nodes, all, "all nodes are found after the faults");
        }
        whole += u64::from(outcome.nodes == all);
        different += u64::from(outcome.log != before.log);
        logged += outcome.log.len();
        sum.add(&outcome.tally);
        before = outcome;
    }
    eprintln!(
        "{runs} runs and their repetitions in {:.1} s; all nodes were found in {whole} runs; \
         each pass logged the same {logged} bytes; {sum:#?}",
        began.elapsed().as_secs_f64(),
    );
    if runs >= 100 {
        assert!(different > runs / 2, "most runs differ from the run before");
        for (what, count) in [
            ("responses", sum.answered),
            ("timeouts", sum.timed_out),
            ("reported losses", sum.lost),
            ("retries", sum.retries),
            ("late responses", sum.late),
            ("responses by LID", sum.routed),
            ("ignored LFT writes", sum.ignored_tables),
        ] {
            assert!(count > 0, "no {what} in {runs} runs");
        }
        for kind in plan::EXPECTED {
            assert!(sum.kinds.contains_key(kind), "no {kind} in {runs} runs");
        }
    }
}

#[test]
fn discovery_without_faults_finds_all_nodes() {
    let kinds = Kinds::new();
    for seed in 0..4 * kinds.len() as u64 {
        let _guard = Seed(seed);
        let plan = Plan { faults: 0, ..Plan::new(&kinds, seed) };
        let outcome = run(&plan);
        let all: BTreeSet<Guid> = plan.kind.fabric.nodes().map(|(_, node)| node.guid).collect();
        assert_eq!(outcome.nodes, all);
        let Tally { started, answered, timed_out, lost, retries, late, routed, .. } = outcome.tally;
        assert_eq!((answered, timed_out, lost, retries, late), (started, 0, 0, 0, 0));
        assert_eq!(outcome.tally.ignored_tables, 0);
        // Every round queries the counters of every port of every node with a LID.
        let expected = if plan.configured { plan.kind.counted_ports() } else { 0 };
        assert_eq!(routed, outcome.tally.rounds * expected);
    }
}
