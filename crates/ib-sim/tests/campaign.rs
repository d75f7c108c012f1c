//! Runs with random faults: a client that walks the fabric by directed routes, with deadlines and
//! retries of its own, comes to an end whatever happens, and the same seed gives the same run.
//!
//! `SIM_RUNS` sets the number of runs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use ib_link::{Datagram, Incoming, Remote};
use ib_sim::{ClientOptions, LogLevel, Options, Sim, random_faults};
use ib_topology::Fabric;
use ib_topology::generate::{Kind, generate};
use ib_types::{Guid, Instant};
use ib_wire::mad::sm::NodeInfo;
use ib_wire::mad::{AttributeId, MadStatus, Method, TransactionId, smp};

const KINDS: [&str; 4] =
    ["k-ary-n-tree 2 3", "torus 3x3 hosts=1", "dragonfly p=1 a=2 h=1", "mesh 2x2"];
const TIMEOUT: Duration = Duration::from_millis(2);
const TRIES: u8 = 3;
const WINDOW: usize = 8;

fn fabric(kind: &str) -> Fabric {
    let words: Vec<&str> = kind.split(' ').collect();
    let kind = Kind::parse(words[0], &words[1..]).expect("a kind of fabric");
    generate(&kind, &ib_topology::generate::Options::default()).expect("a fabric")
}

/// What a walk has seen and what became of its questions.
#[derive(Debug, Default, PartialEq, Eq)]
struct Walk {
    nodes: BTreeSet<Guid>,
    answered: u32,
    timed_out: u32,
    log: String,
}

fn walk(fabric: &Fabric, seed: u64, faults: usize) -> Walk {
    let mut sim = Sim::new(fabric, Options { seed, log: LogLevel::Events, ..Options::default() });
    let steps = random_faults(fabric, seed, (Duration::from_millis(50), faults));
    sim.load_script(&steps).expect("the faults are of this fabric");
    let port = sim.first_end_port().expect("a host");
    let client = sim.attach(port, ClientOptions::default());
    let mut walk = Walk::default();
    let mut to_ask = VecDeque::from([(Vec::new(), 1)]);
    let mut asked: BTreeMap<u64, (Vec<u8>, u8, Instant)> = BTreeMap::new();
    let mut transaction = 0;
    while !to_ask.is_empty() || !asked.is_empty() {
        while asked.len() < WINDOW
            && let Some((path, tries)) = to_ask.pop_front()
        {
            transaction += 1;
            let what = (AttributeId::NODE_INFO, 0);
            let mad = smp::directed_request(Method::GET, TransactionId(transaction), what, &path);
            asked.insert(transaction, (path, tries, sim.now() + TIMEOUT));
            sim.submit(client, &Datagram::new(Remote::directed(), mad));
        }
        let deadline = asked.values().map(|(_, _, at)| *at).min().expect("something was asked");
        if sim.next_at().is_none_or(|at| at > deadline) || !sim.run_step(deadline) {
            sim.run_until(deadline);
        }
        while let Some(incoming) = sim.receive(client) {
            let Incoming::Received(answer) = incoming else { panic!("nobody is told of losses") };
            // A late or doubled answer is nobody's any more.
            let id = answer.mad.transaction_id().0;
            let Some((path, ..)) = asked.remove(&id) else { continue };
            assert_eq!(answer.mad.status(), MadStatus::OK);
            let info: NodeInfo = answer.mad.attribute().expect("it was asked for");
            walk.answered += 1;
            let switch = info.node_type.0 == 2;
            if walk.nodes.insert(info.node_guid) && (switch || path.is_empty()) {
                let ports = if path.is_empty() { 1 } else { info.num_ports };
                to_ask.extend(
                    (1..=ports).map(|port| (path.iter().copied().chain([port]).collect(), 1)),
                );
            }
        }
        let now = sim.now();
        let late: Vec<u64> =
            asked.iter().filter(|(_, (_, _, at))| *at <= now).map(|(&id, _)| id).collect();
        for id in late {
            let (path, tries, _) = asked.remove(&id).expect("it was asked");
            if tries < TRIES {
                to_ask.push_back((path, tries + 1));
            } else {
                walk.timed_out += 1;
            }
        }
        assert!(transaction < 100_000, "a walk comes to an end");
    }
    walk.log = sim.take_log();
    walk
}

#[test]
fn a_walk_among_faults_ends_and_can_be_run_again() {
    let runs = std::env::var("SIM_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(40);
    let (mut complete, mut logged) = (0, BTreeSet::new());
    for seed in 0..runs {
        let fabric = fabric(KINDS[seed as usize % KINDS.len()]);
        let first = walk(&fabric, seed, seed as usize % 40);
        assert_eq!(first, walk(&fabric, seed, seed as usize % 40), "seed {seed}");
        assert!(first.answered > 0);
        assert!(first.nodes.len() <= fabric.node_count());
        complete += u32::from(first.nodes.len() == fabric.node_count());
        logged.insert(first.log);
    }
    assert!(
        complete > 0 && logged.len() > runs as usize / 2,
        "{complete} of {runs} saw everything"
    );
}

#[test]
fn a_walk_without_faults_sees_everything() {
    for kind in KINDS {
        let fabric = fabric(kind);
        let walk = walk(&fabric, 1, 0);
        let all: BTreeSet<Guid> = fabric.nodes().map(|(_, node)| node.guid).collect();
        assert_eq!(walk.nodes, all, "{kind}");
    }
}
