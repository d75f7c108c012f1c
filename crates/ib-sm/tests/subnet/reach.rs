//! Subnets that lose and gain links and switches.
//!
//! After each event, the SM gets time to settle. The test then walks packets between all hosts, through the tables and
//! VLs of the switches, and requires:
//!
//! * The tables in the switches connect every pair of hosts that cables connect.
//! * Every linked port is Active.
//! * If the packets can form a credit loop, the SM has raised an alarm.
//! * No port discards packets because their service level has no VL at this port.
//!
//! `SM_REACH_RUNS` is the number of runs, and `SM_REACH_FIRST` is the first seed. `SM_REACH_FIRST=SEED SM_REACH_RUNS=1`
//! repeats a failed run. `cargo xtask campaign sm` runs many seeds.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ib_sim::{Command, Options, Sim, random_faults};
use ib_sm::{Alarm, PortQos, QosConfig, RoutingConfig, SmConfig};
use ib_topology::{Fabric, PortId};
use ib_types::rng::Rng;
use ib_types::{Lmc, NodeKind, ServiceLevel};
use ib_wire::mad::sm::VlCap;

use crate::lab::{Lab, generated};
use crate::walk::{Connected, Dependencies};

const FABRICS: [&str; 14] = [
    "fat-tree 4 2",
    "fat-tree 4 3",
    "xgft 2,2,4 1,2,2",
    "xgft 3,3,4 1,2,2",
    "xgft 2,4,6 1,2,3",
    "torus 4x4 hosts=1",
    "torus 5x5 hosts=2",
    "torus 6 hosts=2",
    "torus 3x3x3 hosts=1",
    "mesh 4x4 hosts=1",
    "hypercube 4 hosts=1",
    "dragonfly a=4 p=1 h=1",
    "random switches=12 ports=6 hosts=2",
    "random switches=20 ports=8 hosts=1 links=34",
];

/// The lists of routing engines from which each run draws one. An empty list means the default engines.
const ENGINES: [&str; 9] =
    ["", "", "", "minhop", "updn", "ftree,updn", "lash", "dor", "lash,updn,dor"];

/// The fabric must be up within this time after an event.
const SETTLES_WITHIN: Duration = Duration::from_secs(90);

/// After this time without changes, the fabric counts as settled. It is longer than the interval of light sweeps.
const QUIET: Duration = Duration::from_secs(15);

/// Within this time, light sweeps have read back all blocks of the tables: three blocks, one every 10 s.
const AUDITED_WITHIN: Duration = Duration::from_secs(45);

/// Counters of all runs.
#[derive(Default)]
struct Tally {
    events: usize,
    settled_after: Vec<Duration>,
    loops_accepted: usize,
    loops_checked: usize,
    /// Number of alarms about an accepted credit loop, by the engine that caused it and the engine that would avoid it.
    alarms: BTreeMap<String, usize>,
    dead: Vec<String>,
}

/// A run: a fabric, the events that happen to it, and its SM.
struct Run {
    lab: Lab,
    own: PortId,
    tally: Tally,
}

impl Run {
    fn new(
        fabric: &Fabric,
        seed: u64,
        (config, on_switch): (SmConfig, bool),
        off: &[String],
    ) -> Self {
        let sim = Sim::new(fabric, Options { seed, ..Options::default() });
        let mut lab = Lab::with(sim);
        off.iter().for_each(|name| lab.command(&format!("power \"{name}\" off")));
        let host = lab.host(0);
        let leaf = lab.sim.peer(host).map(|port| lab.sim.place(port).0);
        let port0 = leaf.and_then(|leaf| lab.sim.find_port(leaf, 0));
        let own = port0.filter(|_| on_switch).unwrap_or(host);
        lab.add_at(own, config);
        Self { lab, own, tally: Tally::default() }
    }

    /// Runs commands, and waits until the fabric has settled. Then records unreachable pairs and inactive ports.
    fn event(&mut self, commands: &[String]) {
        commands.iter().for_each(|command| self.lab.command(command));
        self.tally.events += 1;
        let start = self.lab.sim.now();
        let step = Duration::from_millis(500);
        let (mut quiet, mut up_at) = (Duration::ZERO, start);
        let mut reports = self.lab.sms[0].reports.len();
        while quiet < QUIET {
            self.lab.run_for(step);
            let now = self.lab.sms[0].reports.len();
            let idle = self.lab.sms[0].manager.activity() == "idle";
            if now != reports || !idle {
                (quiet, reports, up_at) = (Duration::ZERO, now, self.lab.sim.now());
            } else {
                quiet += step;
            }
            if self.lab.sim.now().since(start) > SETTLES_WITHIN {
                break;
            }
        }
        self.tally.settled_after.push(up_at.since(start));
        let connected = Connected::to(&self.lab.sim, self.own);
        let mut dead = connected.dead_pairs();
        dead.extend(connected.unconfigured_ports());
        let sm = &self.lab.sms[0];
        let alarms: Vec<String> = sm.manager.alarms().map(|it| it.alarm.to_string()).collect();
        let quality = sm.manager.quality();
        if dead.is_empty() && quality.is_none_or(|it| it.unreachable_host_pairs > 0) {
            self.tally.dead.push(format!(
                "all pairs are reachable, but the SM reports {quality:?} after {commands:?}"
            ));
        }
        if let (Some(first), count) = (dead.first(), dead.len()) {
            self.tally.dead.push(format!(
                "{count} pairs of {} are unreachable after {commands:?}, the first: {first}; alarms: {alarms:?}",
                connected.pairs()
            ));
        }
        self.check_loops();
    }

    /// Walks packets between all hosts, on the VLs of their service levels. Records a failure if a port discards
    /// packets, or if there is a credit loop without an alarm.
    fn check_loops(&mut self) {
        let sim = &self.lab.sim;
        let sm = &self.lab.sms[0];
        let Some(report) = sm.reports.last() else { return };
        let alarm = sm.manager.alarms().find_map(|it| match &it.alarm {
            Alarm::CreditLoops { engine, avoided_by, .. } => {
                Some(avoided_by.map_or(format!("{engine}, which no tried engine avoids"), |it| {
                    format!("{engine}, which {it} would avoid")
                }))
            }
            _ => None,
        });
        let connected = Connected::to(sim, self.own);
        let mut graph = Dependencies::new();
        let mut discarded = None;
        for from in &connected.hosts {
            for to in connected.hosts.iter().filter(|to| to.port != from.port) {
                let level = level(report, sim, (from.leaf, to.leaf));
                for offset in 0..1 << sim.port_info(to.port).lmc {
                    let mut held = None;
                    let walk = connected.walk_to(*from, (*to, offset), |(entered, out)| {
                        let arrival = sim.place(entered).1;
                        let vl = sim.vl(arrival, out, level);
                        if vl.is_none() {
                            discarded = Some(format!("SL {} at {:?}", level.get(), sim.place(out)));
                        }
                        let channel = (out, vl.unwrap_or(15));
                        if let Some(held) = held {
                            graph.add(held, channel);
                        }
                        held = Some(channel);
                    });
                    drop(walk);
                }
            }
        }
        self.tally.loops_checked += 1;
        match (&alarm, graph.has_cycle()) {
            (None, true) => self.tally.dead.push("a credit loop without an alarm".to_owned()),
            (Some(alarm), true) => {
                self.tally.loops_accepted += 1;
                *self.tally.alarms.entry(alarm.clone()).or_default() += 1;
            }
            // An alarm without a loop is allowed: the SM may count loops of routes to hosts that are powered off, which
            // this test does not walk.
            (Some(_) | None, false) => {}
        }
        if let Some(discarded) = discarded {
            self.tally.dead.push(format!("discarded: {discarded}"));
        }
    }
}

/// Returns the service level of paths between the hosts at two switches.
fn level(report: &ib_sm::SweepReport, sim: &Sim, (from, to): (PortId, PortId)) -> ServiceLevel {
    let plan = &report.plan;
    let row = |port: PortId| {
        let port0 = sim.find_port(sim.place(port).0, 0).expect("every switch has a port 0");
        let guid = sim.node_info(port0).node_guid;
        let row = plan.switches.iter().position(|&it| it == guid);
        row.map(|row| ib_routing::SwitchId(row as u16))
    };
    match (row(from), row(to)) {
        (Some(from), Some(to)) => plan.routing.layers.level(from, to),
        _ => ServiceLevel::default(),
    }
}

fn pick<'a, T>(rng: &mut Rng, list: &'a [T]) -> &'a T {
    &list[rng.below(list.len())]
}

fn shuffle<T>(rng: &mut Rng, list: &mut [T]) {
    for last in (1..list.len()).rev() {
        list.swap(last, rng.below(last + 1));
    }
}

/// Draws a random quality of service configuration and a random number of VLs.
fn draw_vls(rng: &mut Rng) -> (VlCap, Option<QosConfig>) {
    let max_op_vls = *pick(rng, &[VlCap::VL0, VlCap::VL0_1, VlCap::VL0_3, VlCap::VL0_7]);
    let port = |rng: &mut Rng| {
        let vls: Vec<String> = match rng.below(4) {
            0 => vec!["0".to_owned(); 16],
            1 => (0..16).map(|level| (level % 3).to_string()).collect(),
            2 => (0..16).map(|_| rng.below(8).to_string()).collect(),
            _ => (0..16).map(|level| (level % 8).to_string()).collect(),
        };
        let sl2vl = PortQos::parse_sl_to_vl(&vls.join(",")).expect("the list has 16 VLs");
        PortQos { sl2vl, max_vls: 1 + rng.below(8) as u8, ..PortQos::default() }
    };
    let qos = (rng.below(3) > 0).then(|| {
        let ca = port(rng);
        let switch_external = port(rng);
        QosConfig { ca, switch_external, ..QosConfig::default() }
    });
    (max_op_vls, qos)
}

fn run(seed: u64) -> Tally {
    let mut rng = Rng::stream(seed, 0x0005_eac4);
    let kind = *pick(&mut rng, &FABRICS);
    let engines = *pick(&mut rng, &ENGINES);
    let mut routing = RoutingConfig::default();
    if !engines.is_empty() {
        routing.engines = engines.parse().expect("the text lists engines");
    }
    let mut config = SmConfig {
        routing,
        use_ucast_cache: rng.below(3) == 0,
        max_smps: 1 + rng.below(32),
        ..SmConfig::default()
    };
    if rng.below(3) == 0 {
        (config.max_op_vls, config.qos) = draw_vls(&mut rng);
    }
    config.routing.lids.lmc = Lmc::new(*pick(&mut rng, &[0, 0, 0, 1, 2])).expect("0 to 2 are LMCs");
    let config = (config, rng.below(6) == 0);
    let fabric = generated(kind);
    let name = |port: PortId| {
        let port = fabric.port(port);
        format!("\"{}\"[{}]", fabric.node(port.node).name, port.number)
    };
    let is_switch = |port: PortId| fabric.node(fabric.port(port).node).kind.is_switch();
    let trunks: Vec<PortId> = fabric
        .links()
        .filter(|&(one, other)| is_switch(one) && is_switch(other))
        .map(|(one, _)| one)
        .collect();
    let mut cables: Vec<String> = trunks.iter().map(|&port| name(port)).collect();
    shuffle(&mut rng, &mut cables);
    let unlink = |it: &String| format!("unlink {it}");
    let relink = |it: &String| format!("relink {it}");
    let scenario = rng.below(5);
    let describe = format!("{kind}, engines '{engines}', scenario {scenario}");
    if std::env::var_os("SM_REACH_FIRST").is_some() {
        eprintln!("{describe}");
    }
    let run = match scenario {
        0 | 1 => {
            // Cables are pulled one by one until 40 % are pulled. Then they are plugged in again, in a different order.
            // In scenario 1, a quarter of all cables is pulled at the start and remains unplugged.
            let thinned = if scenario == 1 { cables.len() / 4 } else { 0 };
            let mut run = Run::new(&fabric, seed, config, &[]);
            let missing = cables.split_off(cables.len() - thinned);
            run.event(&missing.iter().map(unlink).collect::<Vec<_>>());
            cables.truncate((cables.len() * 2 / 5).max(1));
            cables.iter().for_each(|cable| run.event(&[unlink(cable)]));
            shuffle(&mut rng, &mut cables);
            let most = *pick(&mut rng, &[1, 4]);
            let mut left = &cables[..];
            while !left.is_empty() {
                let (now, later) = left.split_at((1 + rng.below(most)).min(left.len()));
                run.event(&now.iter().map(relink).collect::<Vec<_>>());
                left = later;
            }
            run
        }
        2 => {
            // At first, all switches except the one at host 0 are off. They are powered on in groups of one to four.
            let first = fabric.nodes().find(|(_, node)| !node.kind.is_switch()).map(|(id, _)| id);
            let own = first.and_then(|id| {
                fabric.ports_of(id).find_map(|(_, port)| Some(fabric.port(port.peer?).node))
            });
            let switches = fabric
                .nodes()
                .filter(|&(id, node)| node.kind == NodeKind::Switch && Some(id) != own);
            let mut off: Vec<String> = switches.map(|(_, node)| node.name.clone()).collect();
            shuffle(&mut rng, &mut off);
            let mut run = Run::new(&fabric, seed, config, &off);
            run.event(&[]);
            let mut left = &off[..];
            while !left.is_empty() {
                let (now, later) = left.split_at((1 + rng.below(4)).min(left.len()));
                let commands: Vec<String> =
                    now.iter().map(|name| format!("power \"{name}\" on")).collect();
                run.event(&commands);
                left = later;
            }
            run
        }
        3 => {
            // Cables and switches fail and are repaired in groups. Some of these events occur while the SM is still
            // busy.
            let mut run = Run::new(&fabric, seed, config, &[]);
            let own_leaf = run.lab.sim.peer(run.lab.host(0)).map(|it| run.lab.sim.place(it).0);
            let own_leaf = own_leaf.map(|it| run.lab.sim.node_name(it).to_owned());
            let switches = fabric.nodes().filter(|(_, node)| node.kind.is_switch());
            let mut switches: Vec<String> = switches.map(|(_, node)| node.name.clone()).collect();
            switches.retain(|name| Some(name) != own_leaf.as_ref());
            run.event(&[]);
            let mut pulled: BTreeSet<&String> = BTreeSet::new();
            for _ in 0..8 {
                let faults = 1 + rng.below(6);
                for _ in 0..faults {
                    let command = if rng.below(4) > 0 {
                        let cable = pick(&mut rng, &cables);
                        if pulled.remove(cable) {
                            relink(cable)
                        } else {
                            pulled.insert(cable);
                            unlink(cable)
                        }
                    } else {
                        let state = *pick(&mut rng, &["on", "off", "off"]);
                        format!("power \"{}\" {state}", pick(&mut rng, &switches))
                    };
                    run.lab.command(&command);
                    let pause = *pick(&mut rng, &[0, 50, 2000, 500_000]);
                    run.lab.run_for(Duration::from_micros(pause));
                }
                run.event(&[]);
            }
            let power = switches.iter().map(|name| format!("power \"{name}\" on"));
            let mended = pulled.into_iter().map(relink);
            run.event(&power.chain(mended).collect::<Vec<_>>());
            run
        }
        _ => {
            let mut run = Run::new(&fabric, seed, config, &[]);
            run.event(&[]);
            let time = Duration::from_secs(40);
            let faults = random_faults(&fabric, seed, time, 5 + rng.below(146));
            // Faults of switches that ignore table writes are left out: their tables would remain wrong.
            let honest = faults.into_iter().filter(|step| {
                !matches!(
                    step.command,
                    Command::Misroute(..) | Command::IgnoreLft(..) | Command::MKey(..)
                )
            });
            let start = run.lab.sim.now().since(ib_types::Instant::ZERO);
            let honest: Vec<_> = honest
                .map(|mut step| {
                    step.at += start;
                    step
                })
                .collect();
            run.lab.sim.load_script(&honest).expect("the fabric has all faulty nodes");
            // A delayed SMP can overwrite a newer table. Light sweeps detect this, because they read the tables back
            // block by block. The run therefore waits until they have read all blocks.
            run.lab.run_for(time + AUDITED_WITHIN);
            run.event(&[]);
            run
        }
    };
    let mut tally = run.tally;
    tally.dead =
        tally.dead.into_iter().map(|it| format!("seed {seed}, {describe}: {it}")).collect();
    tally
}

#[test]
fn cabled_hosts_stay_reachable() {
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |text| text.parse().expect("the variable is a number"))
    };
    let (first, runs) = (number("SM_REACH_FIRST", 0), number("SM_REACH_RUNS", 12));
    let mut all = Tally::default();
    for seed in first..first + runs {
        let tally = run(seed);
        all.events += tally.events;
        all.settled_after.extend(tally.settled_after);
        all.loops_accepted += tally.loops_accepted;
        all.loops_checked += tally.loops_checked;
        for (alarm, times) in tally.alarms {
            *all.alarms.entry(alarm).or_default() += times;
        }
        all.dead.extend(tally.dead);
    }
    all.settled_after.sort_unstable();
    let at = |part: usize| {
        let times = &all.settled_after;
        times[(times.len() * part / 100).min(times.len() - 1)].as_secs_f64()
    };
    eprintln!(
        "{runs} runs, {} events: settled after {:.1} s (median), {:.1} s (95 %), {:.1} s (longest); \
         {} walks for credit loops, {} accepted loops; {} failures",
        all.events,
        at(50),
        at(95),
        at(100),
        all.loops_checked,
        all.loops_accepted,
        all.dead.len()
    );
    for (alarm, times) in &all.alarms {
        eprintln!("accepted loops of {alarm}: {times}");
    }
    for dead in all.dead.iter().take(20) {
        eprintln!("{dead}");
    }
    assert_eq!(all.dead.len(), 0, "{:?}", all.dead.first());
}
