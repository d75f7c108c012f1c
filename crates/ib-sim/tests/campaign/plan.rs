//! Random plans, which determine the fabric, the faults and the client of a run.

use std::time::Duration;

use ib_mad::{Backoff, OnLoss, RequesterConfig, Timing};
use ib_sim::{ClientOptions, Command, LogLevel, Options, Step, random_faults};
use ib_topology::Fabric;
use ib_topology::generate::{self, generate};
use ib_types::Instant;
use ib_types::rng::Rng;

use crate::bring_up::Configuration;

/// Kinds of fabrics. Each has fewer than 64 LIDs, which fit into one LFT block.
const KINDS: [&str; 7] = [
    "k-ary-n-tree 2 3",
    "torus 3x3 hosts=1",
    "dragonfly p=1 a=2 h=1",
    "mesh 2x2",
    "hypercube 3 hosts=1",
    "xgft 2,3 1,2",
    "random switches=8 ports=6 hosts=1 links=14",
];

/// Commands, faults and loss reasons that have to occur in a campaign of at least 100 runs.
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

/// A fabric and its configuration.
pub(crate) struct Kind {
    pub(crate) fabric: Fabric,
    pub(crate) configuration: Configuration,
}

impl Kind {
    fn new(words: &str) -> Self {
        let words: Vec<&str> = words.split(' ').collect();
        let kind =
            generate::Kind::parse(words[0], &words[1..]).expect("the words name a kind of fabric");
        let fabric =
            generate(&kind, &generate::Options::default()).expect("the kind and options are valid");
        let configuration = Configuration::of(&fabric);
        Self { fabric, configuration }
    }

    /// Returns the number of ports whose counters one discovery round queries if all nodes have
    /// LIDs.
    pub(crate) fn counted_ports(&self) -> u64 {
        let nodes = self.fabric.nodes();
        nodes.map(|(_, node)| if node.kind.is_switch() { u64::from(node.ports) } else { 1 }).sum()
    }
}

/// All kinds of fabric on which a campaign runs.
pub(crate) struct Kinds(Vec<Kind>);

impl Kinds {
    pub(crate) fn new() -> Self {
        Self(KINDS.map(Kind::new).into())
    }

    pub(crate) const fn len(&self) -> usize {
        self.0.len()
    }
}

/// The plan of a run.
pub(crate) struct Plan<'k> {
    pub(crate) kind: &'k Kind,
    pub(crate) seed: u64,
    /// True if LIDs and forwarding tables are configured before the faults start.
    pub(crate) configured: bool,
    /// Number of faults.
    pub(crate) faults: usize,
    /// Duration of the period with faults. When it ends, all faults are removed.
    pub(crate) time: Duration,
    /// Maximum number of discovery rounds during the faults.
    pub(crate) rounds: usize,
    /// True if losses are reported to the client.
    pub(crate) reports_losses: bool,
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
            reports_losses: rng.below(4) == 0,
            timing: Timing { timeout, retries: rng.below(4) as u32, backoff },
            on_loss: [OnLoss::Fail, OnLoss::Retry][rng.below(2)],
            requester: RequesterConfig {
                window: [1, 4, 16, 200][rng.below(4)],
                // In some runs, transaction IDs wrap around.
                first: if rng.below(8) == 0 { u32::MAX - 50 } else { 1 },
                ..RequesterConfig::default()
            },
        }
    }

    pub(crate) fn options(&self) -> Options {
        // In every fourth run, the log contains all MADs; in other runs, it contains only events.
        let log = if self.seed % 4 == 1 { LogLevel::Datagrams } else { LogLevel::Events };
        Options { seed: self.seed, log, ..Options::default() }
    }

    pub(crate) fn client(&self) -> ClientOptions {
        ClientOptions { reports_losses: self.reports_losses, ..ClientOptions::default() }
    }

    /// Returns the script steps that cause and remove the faults. The faults begin at `start` or
    /// later.
    pub(crate) fn steps(&self, start: Instant) -> Vec<Step> {
        let mut steps = random_faults(&self.kind.fabric, self.seed, self.time, self.faults);
        for step in &mut steps {
            step.at += start - Instant::ZERO;
        }
        steps
    }

    /// Returns true if no fault changes an M_Key. Then every node responds to directed-route SMPs
    /// after the faults.
    pub(crate) fn heals(&self) -> bool {
        let steps = self.steps(Instant::ZERO);
        !steps.iter().any(|step| matches!(step.command, Command::MKey(..)))
    }
}

/// Returns the names under which a command is counted: the name of the command, and the names of
/// its faults.
pub(crate) fn kinds(command: &Command) -> Vec<String> {
    let text = command.to_string();
    let name = text.split(' ').next().map(str::to_owned);
    let faults = text.split(' ').filter_map(|word| Some(word.split_once('=')?.0.to_owned()));
    name.into_iter().chain(faults).collect()
}
