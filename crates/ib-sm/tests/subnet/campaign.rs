//! SMs that manage subnets with random faults.
//!
//! Links fail, flap and lose packets. Nodes lose power. SMs fail, restart and take over from each other. Packets over
//! active links must never loop. After all faults are repaired, the whole fabric must come up.
//!
//! `SM_RUNS` is the number of runs, and `SM_FIRST` is the seed of the first run. `SM_FIRST=SEED SM_RUNS=1` repeats a
//! failed run. `cargo xtask campaign managed --runs 5000` runs many seeds.

use std::time::{Duration, Instant};

use ib_sim::command::Fault;
use ib_sim::{Command, Options, Sim, Step, random_faults};
use ib_sm::{QosConfig, RoutingConfig, SmConfig};
use ib_wire::mad::sm::SmState;

use crate::lab::{Lab, generated};

/// The fabrics, each with an engine whose routes on it are free of deadlocks.
const FABRICS: [(&str, &str); 8] = [
    ("torus 3x3 hosts=1", "lash"),
    ("mesh 3x3 hosts=1", "dor"),
    ("xgft 2,2,4 1,2,2", "updn"),
    ("xgft 2,2,4 1,2,2", "ftree"),
    ("xgft 2,3 1,2", "minhop"),
    ("hypercube 3 hosts=1", "dor"),
    ("torus 4x4 hosts=1", "lash"),
    ("mesh 2x4 hosts=2", "lash"),
];

/// Duration of the period with faults.
const BAD: Duration = Duration::from_secs(40);
/// Duration of the period without faults that follows [`BAD`].
const QUIET: Duration = Duration::from_secs(90);

/// Returns a random number below `below`. Each value of `what` has its own random stream.
fn draw(seed: u64, what: u64, below: u64) -> u64 {
    let mut value =
        seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ what.wrapping_mul(0xd1b5_4a32_d192_ed03);
    value ^= value >> 32;
    value = value.wrapping_mul(0xd6e8_feb8_6659_fd93);
    (value ^ value >> 32) % below
}

/// Counters of all runs.
#[derive(Default)]
struct Tally {
    sweeps: usize,
    loop_checks: u64,
    cleared: u64,
    handovers: usize,
    /// Number of partial discoveries.
    partial_discoveries: u64,
    /// Number of plans from the unicast cache.
    cached: u64,
}

fn run(seed: u64) -> Tally {
    let (kind, engine) = FABRICS[draw(seed, 1, FABRICS.len() as u64) as usize];
    let fabric = generated(kind);
    let mut sim = Sim::new(&fabric, Options { seed, ..Options::default() });
    let count = draw(seed, 2, 12) as usize;
    // Wrong forwarding, and SMPs that arrive after their timeout, are excluded, because the SM cannot prevent the loops
    // that they cause. Swapped cables are excluded, because they can turn correct tables into loops.
    let honest = |step: &Step| match &step.command {
        Command::Misroute(..) | Command::IgnoreLft(..) | Command::MKey(..) | Command::Swap(..) => {
            false
        }
        Command::Fault(_, faults) => !faults.iter().any(|fault| matches!(fault, Fault::Delay(_))),
        _ => true,
    };
    let faults = random_faults(&fabric, seed, BAD, count);
    let faults: Vec<Step> = faults.into_iter().filter(honest).collect();
    sim.load_script(&faults).expect("the fabric has all faulty nodes");
    if std::env::var_os("SM_FIRST").is_some() {
        eprintln!("{kind}, {engine}, {} faults", faults.len());
        faults.iter().for_each(|step| eprintln!("  {:?} {:?}", step.at, step.command));
    }
    let mut lab = Lab::with(sim);
    lab.watch_for_loops();
    let config = |priority: u8| SmConfig {
        sm_priority: priority,
        max_smps: 1 + draw(seed, 3, 32) as usize,
        use_ucast_cache: draw(seed, 5, 2) == 0,
        qos: (draw(seed, 6, 4) == 0).then(QosConfig::default),
        routing: RoutingConfig {
            engines: format!("{engine},no_fallback,minhop")
                .parse()
                .expect("the engine list is valid"),
            ..RoutingConfig::default()
        },
        ..SmConfig::default()
    };
    let hosts = lab.hosts() as u64;
    lab.add(0, config(5));
    let pauses = 1 + draw(seed, 4, 4);
    let mut tally = Tally::default();
    for pause in 0..pauses {
        lab.run_for(BAD / pauses as u32);
        match draw(seed, 10 + pause, 4) {
            0 => {
                let host = draw(seed, 20 + pause, hosts) as usize;
                if lab.sms.iter().all(|sm| sm.port() != lab.host(host)) {
                    lab.add(host, config(draw(seed, 30 + pause, 10) as u8));
                }
            }
            1 if lab.sms.len() > 1 => lab.kill(0),
            2 => {
                let port = lab.sms[0].port();
                lab.kill(0);
                lab.add_at(port, config(5));
            }
            _ => {}
        }
    }
    lab.run_for(QUIET);
    if std::env::var_os("SM_FIRST").is_some() {
        lab.sms.iter().for_each(|sm| eprintln!("{sm}"));
    }
    lab.check();
    let masters: Vec<_> =
        lab.sms.iter().filter(|it| it.manager.info().state == SmState::MASTER).collect();
    assert_eq!(masters.len(), 1, "there must be exactly one master");
    let plan = &masters[0].last().plan;
    let loops = plan.report.credit.loops;
    assert_eq!(loops, 0, "credit loops of {} on {kind}: {:?}", plan.routing.engine, plan.refusals);
    tally.loop_checks = lab.loop_checks();
    for sm in &lab.sms {
        tally.sweeps += sm.reports.len();
        let counters = sm.manager.counters();
        tally.partial_discoveries += counters.partial_discoveries;
        tally.cached += counters.cached_plans;
        tally.handovers += sm.states.len().saturating_sub(1);
        tally.cleared += sm.reports.iter().map(|it| it.written.cleared).sum::<u64>();
    }
    tally
}

#[test]
fn managed_fabric_recovers_from_random_faults() {
    let number = |name: &str, default: u64| match std::env::var(name) {
        Ok(text) => {
            text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}: expected a number"))
        }
        Err(_) => default,
    };
    let (first, runs) = (number("SM_FIRST", 0), number("SM_RUNS", 30));
    let start = Instant::now();
    let mut all = Tally::default();
    for seed in first..first + runs {
        let run = std::panic::catch_unwind(|| run(seed));
        let Ok(tally) = run else {
            panic!("seed {seed} has failed: SM_FIRST={seed} SM_RUNS=1 repeats it")
        };
        all.sweeps += tally.sweeps;
        all.loop_checks += tally.loop_checks;
        all.cleared += tally.cleared;
        all.handovers += tally.handovers;
        all.partial_discoveries += tally.partial_discoveries;
        all.cached += tally.cached;
    }
    assert!(all.partial_discoveries > 0, "no discovery was partial");
    assert!(all.cached > 0 || runs < 30, "no plan came from the cache");
    eprintln!(
        "{runs} runs in {:.1} s: {} sweeps, {} of them partial and {} with cached routes, {} \
         state changes of SMs, {} checks for forwarding loops, {} entries cleared temporarily",
        start.elapsed().as_secs_f64(),
        all.sweeps,
        all.partial_discoveries,
        all.cached,
        all.handovers,
        all.loop_checks,
        all.cleared
    );
}
