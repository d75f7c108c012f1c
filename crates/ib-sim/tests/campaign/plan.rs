//! What a seed decides.

use std::time::Duration;

use ib_mad::{Backoff, OnLoss, RequesterConfig, Timing};
use ib_sim::{ClientOptions, Command, LogLevel, Options, Step, random_faults};
use ib_topology::Fabric;
use ib_topology::generate::{self, generate};
use ib_types::Instant;
use ib_types::rng::Rng;

use crate::bring_up::Configuration;

/// Fabrics with less than 64 LIDs, so that one block of a table holds all of them.
const KINDS: [&str; 7] = [
    "k-ary-n-tree 2 3",
    "torus 3x3 hosts=1",
    "dragonfly p=1 a=2 h=1",
    "mesh 2x2",
    "hypercube 3 hosts=1",
    "xgft 2,3 1,2",
    "random switches=8 ports=6 hosts=1 links=14",
];

/// What has to have happened in a campaign: commands, faults of ports, reasons of losses.
pub(crate) const EXPECTED: [&str; 23] = [
    "Unlink",
    "ReLink",
    "Flap",
    "Power",
    "Fault",
    "MKey",
    "Misroute",
    "IgnoreLft",
    "Swap",
    "loss",
    "corrupt",
    "duplicate",
    "reorder",
    "held",
    "delay",
    "link_down",
    "link_went_down",
    "misrouted",
    "fault",
    "damaged",
    "m_key",
    "turns_back",
    "no_route",
];

/// A fabric, and what a subnet manager would write into it.
pub(crate) struct Kind {
    pub(crate) fabric: Fabric,
    pub(crate) configuration: Configuration,
}

impl Kind {
    fn new(words: &str) -> Self {
        let words: Vec<&str> = words.split(' ').collect();
        let kind = generate::Kind::parse(words[0], &words[1..]).expect("a kind of fabric");
        let fabric = generate(&kind, &generate::Options::default()).expect("a fabric");
        let configuration = Configuration::of(&fabric);
        Self { fabric, configuration }
    }

    /// Returns how many ports a round asks for their counters when all nodes have LIDs.
    pub(crate) fn counted_ports(&self) -> u64 {
        let nodes = self.fabric.nodes();
        nodes.map(|(_, node)| if node.kind.is_switch() { u64::from(node.ports) } else { 1 }).sum()
    }
}

/// All kinds of fabric.
pub(crate) struct Kinds(Vec<Kind>);

impl Kinds {
    pub(crate) fn new() -> Self {
        Self(KINDS.map(Kind::new).into())
    }

    pub(crate) const fn len(&self) -> usize {
        self.0.len()
    }
}

/// A run.
pub(crate) struct Plan<'k> {
    pub(crate) kind: &'k Kind,
    pub(crate) seed: u64,
    /// Whether there are LIDs and tables before the faults begin.
    pub(crate) configured: bool,
    /// How many faults happen.
    pub(crate) faults: usize,
    /// For how long they do.
    pub(crate) time: Duration,
    /// How often the client begins anew at most, while they do.
    pub(crate) rounds: usize,
    /// Whether the client is told of losses.
    pub(crate) told: bool,
    pub(crate) timing: Timing,
    pub(crate) on_loss: OnLoss,
    pub(crate) requester: RequesterConfig,
}

impl<'k> Plan<'k> {
    pub(crate) fn new(kinds: &'k Kinds, seed: u64) -> Self {
        let mut rng = Rng::stream(seed, 0xca_0b);
        let micros = Duration::from_micros;
        let timeout = [micros(20), micros(100), micros(1000)][rng.below(3)];
        let backoff = match rng.below(2) {
            0 => Backoff::Fixed,
            _ => Backoff::Doubling { longest: 4 * timeout },
        };
        Self {
            kind: &kinds.0[seed as usize % kinds.len()],
            seed,
            configured: rng.below(4) > 0,
            faults: rng.below(40),
            time: [micros(50), micros(500), micros(5_000)][rng.below(3)],
            rounds: 3,
            told: rng.below(4) == 0,
            timing: Timing { timeout, retries: rng.below(4) as u32, backoff },
            on_loss: [OnLoss::Fail, OnLoss::Retry][rng.below(2)],
            requester: RequesterConfig {
                window: [1, 4, 16, 200][rng.below(4)],
                // Some numbers start over on the way.
                first: if rng.below(8) == 0 { u32::MAX - 50 } else { 1 },
                ..RequesterConfig::default()
            },
        }
    }

    pub(crate) fn options(&self) -> Options {
        // Every fourth log has each datagram, the others only what matters.
        let log = if self.seed % 4 == 1 { LogLevel::Datagrams } else { LogLevel::Events };
        Options { seed: self.seed, log, ..Options::default() }
    }

    pub(crate) fn client(&self) -> ClientOptions {
        ClientOptions { told_of_losses: self.told, ..ClientOptions::default() }
    }

    /// Returns the faults, counted from a moment.
    pub(crate) fn steps(&self, start: Instant) -> Vec<Step> {
        let mut steps = random_faults(&self.kind.fabric, self.seed, self.time, self.faults);
        for step in &mut steps {
            step.at += start - Instant::ZERO;
        }
        steps
    }

    /// Returns true when every node can be asked by directed route once the faults are over: nobody
    /// changed a key.
    pub(crate) fn heals(&self) -> bool {
        let steps = self.steps(Instant::ZERO);
        !steps.iter().any(|step| matches!(step.command, Command::MKey(..)))
    }
}

/// Returns by which names a command is counted: its own, and those of the faults in it.
pub(crate) fn kinds(command: &Command) -> Vec<String> {
    let text = command.to_string();
    let name = text.split(' ').next().map(str::to_owned);
    let faults = text.split(' ').filter_map(|word| Some(word.split_once('=')?.0.to_owned()));
    name.into_iter().chain(faults).collect()
}
