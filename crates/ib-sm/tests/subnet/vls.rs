//! Credit loops on the VLs that ports really use. Service levels are taken from path records, hops from the tables in
//! the switches, and VLs from the ports' SL-to-VL tables and `OperVLs`.
//!
//! `SM_LANES_RUNS` is the number of runs, and `SM_LANES_FIRST` is the first seed.

use std::collections::BTreeMap;

use ib_sm::{Alarm, PortQos, QosConfig, RoutingConfig, SmConfig};
use ib_types::ServiceLevel;
use ib_types::rng::Rng;
use ib_wire::mad::Method;
use ib_wire::mad::sa::{ComponentMask, PathRecord};
use ib_wire::mad::sm::VlCap;

use crate::lab::Lab;
use crate::walk::{Connected, Dependencies};

const FABRICS: [&str; 10] = [
    "torus 5x5 hosts=2",
    "torus 4x4 hosts=1",
    "torus 7 hosts=1",
    "torus 3x3x3 hosts=1",
    "mesh 4x4 hosts=1",
    "hypercube 4 hosts=1",
    "dragonfly a=4 p=1 h=1",
    "xgft 2,2,4 1,2,2",
    "random switches=12 ports=6 hosts=2",
    "random switches=20 ports=8 hosts=1 links=34",
];

const ENGINES: [&str; 8] =
    ["", "lash", "lash,no_fallback", "lash,updn", "minhop", "dor", "updn", "updn,lash"];

/// The component number of SLID in PathRecord; IBTA volume 1, chapter 15.2.5.16.
const SLID: u8 = 5;

/// Results of a run: credit loops and discarded packets in the subnet, and the credit loops that its SM reports.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    has_cycle: bool,
    /// Number of pairs of hosts whose packets a port discards, because their service level has no VL at that port.
    discarded: usize,
    reported_loops: usize,
    /// The number of different service levels of all paths.
    levels: usize,
}

fn pick<'a, T>(rng: &mut Rng, list: &'a [T]) -> &'a T {
    &list[rng.below(list.len())]
}

/// Draws a random configuration: number of VLs, and quality of service.
fn draw(rng: &mut Rng) -> SmConfig {
    let max_op_vls =
        *pick(rng, &[VlCap::VL0, VlCap::VL0_1, VlCap::VL0_3, VlCap::VL0_7, VlCap::VL0_14]);
    let mut port = || {
        let vl = |rng: &mut Rng, kind: usize, level: usize| match kind {
            0 => 0,
            1 => level % 2,
            2 => level % 3,
            3 => rng.below(15),
            _ => level.min(14),
        };
        let kind = rng.below(8);
        let vls: Vec<String> = (0..16).map(|level| vl(rng, kind, level).to_string()).collect();
        let sl2vl = PortQos::parse_sl_to_vl(&vls.join(",")).expect("the list has 16 VLs");
        let max_vls = *pick(rng, &[1, 2, 3, 4, 8, 15]);
        PortQos { sl2vl, max_vls, ..PortQos::default() }
    };
    let qos = QosConfig { ca: port(), switch_external: port(), ..QosConfig::default() };
    let qos = (rng.below(4) > 0).then_some(qos);
    SmConfig { max_op_vls, qos, ..SmConfig::default() }
}

fn run(kind: &str, config: SmConfig) -> Option<Outcome> {
    let mut lab = Lab::new(kind);
    let own = lab.host(0);
    lab.add(0, config);
    lab.run_for(std::time::Duration::from_secs(5));
    if lab.sms[0].reports.is_empty() {
        // Lash without a fallback engine may need more VLs than exist. Then the SM writes no tables.
        assert_eq!(lab.sms[0].refusals.len(), 1);
        return None;
    }
    let levels = path_levels(&mut lab);
    let sim = &lab.sim;
    let connected = Connected::to(sim, own);
    assert_eq!(connected.dead_pairs(), [""; 0]);
    let lid = |port| sim.port_info(port).lid;
    let mut graph = Dependencies::new();
    let mut discarded = 0;
    for from in &connected.hosts {
        for to in connected.hosts.iter().filter(|to| to.port != from.port) {
            let level = levels[&(lid(from.port), lid(to.port))];
            let (mut held, mut is_discarded) = (None, false);
            let hop = |(entered, out)| {
                let vl = sim.vl(sim.place(entered).1, out, level);
                is_discarded |= vl.is_none();
                if let (Some(held), Some(vl)) = (held, vl) {
                    graph.add(held, (out, vl));
                }
                held = vl.map(|vl| (out, vl));
            };
            connected.walk(*from, *to, hop).expect("the pair is connected");
            discarded += usize::from(is_discarded);
        }
    }
    let loops = lab.sms[0].manager.alarms().find_map(|it| match it.alarm {
        Alarm::CreditLoops { loops, .. } => Some(loops),
        _ => None,
    });
    let mut used: Vec<u8> = levels.values().map(|level| level.get()).collect();
    used.sort_unstable();
    used.dedup();
    Some(Outcome {
        has_cycle: graph.has_cycle(),
        discarded,
        reported_loops: loops.unwrap_or(0),
        levels: used.len(),
    })
}

/// Queries the service level of the path from each LID to each other LID.
fn path_levels(lab: &mut Lab) -> BTreeMap<(u16, u16), ServiceLevel> {
    let mut client = lab.sa_client(1);
    let mut levels = BTreeMap::new();
    for host in 0..lab.hosts() {
        let slid = lab.lid(host);
        let template = PathRecord { slid, numb_path: 1, ..PathRecord::zeroed() };
        let mask = ComponentMask::of(&[SLID]);
        let answer = lab.ask_records(&mut client, (Method::GET_TABLE, mask), &template);
        for path in answer.records::<PathRecord>() {
            let level = ServiceLevel::new(path.sl).expect("the SA returns SLs below 16");
            levels.insert((slid, path.dlid), level);
        }
    }
    levels
}

#[test]
fn credit_loops_are_reported_on_the_vls_in_use() {
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |text| text.parse().expect("the variable is a number"))
    };
    let (first, runs) = (number("SM_LANES_FIRST", 0), number("SM_LANES_RUNS", 25));
    let (mut with_loops, mut layered, mut refused) = (0, 0, 0);
    for seed in first..first + runs {
        let mut rng = Rng::stream(seed, 0x1a_4e5);
        let kind = *pick(&mut rng, &FABRICS);
        let engines = *pick(&mut rng, &ENGINES);
        let mut config = draw(&mut rng);
        if !engines.is_empty() {
            let engines = engines.parse().expect("the text lists engines");
            config.routing = RoutingConfig { engines, ..RoutingConfig::default() };
        }
        let described = format!("seed {seed}: {kind}, '{engines}', {:?}", config.max_op_vls);
        let Some(outcome) = run(kind, config) else {
            refused += 1;
            continue;
        };
        assert_eq!(outcome.has_cycle, outcome.reported_loops > 0, "{described}: {outcome:?}");
        assert_eq!(outcome.discarded, 0, "{described}: {outcome:?}");
        with_loops += u64::from(outcome.has_cycle);
        layered += u64::from(outcome.levels > 1);
    }
    eprintln!(
        "{runs} runs: {with_loops} with a credit loop, all reported; {layered} with several service \
         levels; {refused} without a plan"
    );
    assert!(layered > 0 && with_loops > 0);
}

/// In these cases, the SM once reported that routes of lash had no credit loops, although they had some.
#[test]
fn lash_is_not_programmed_if_it_needs_too_many_vls() {
    let lash = RoutingConfig {
        engines: "lash".parse().expect("lash is an engine"),
        ..RoutingConfig::default()
    };
    let all_zero = PortQos::parse_sl_to_vl(&["0"; 16].join(",")).expect("the list has 16 VLs");
    let qos = |port: PortQos| {
        Some(QosConfig { ca: port.clone(), switch_external: port, ..QosConfig::default() })
    };
    let configs = [
        SmConfig { max_op_vls: VlCap::VL0, ..SmConfig::default() },
        SmConfig { max_op_vls: VlCap::VL0_1, ..SmConfig::default() },
        SmConfig { max_op_vls: VlCap::VL0_1, qos: qos(PortQos::default()), ..SmConfig::default() },
        SmConfig { qos: qos(PortQos { max_vls: 3, ..PortQos::default() }), ..SmConfig::default() },
        SmConfig {
            qos: qos(PortQos { sl2vl: all_zero, ..PortQos::default() }),
            ..SmConfig::default()
        },
    ];
    for config in configs {
        let config = SmConfig { routing: lash.clone(), ..config };
        let outcome = run("torus 5x5 hosts=2", config).expect("minhop routes the subnet");
        assert!(outcome.has_cycle && outcome.reported_loops > 0, "{outcome:?}");
    }
    let config = SmConfig { routing: lash, ..SmConfig::default() };
    let outcome = run("torus 5x5 hosts=2", config).expect("lash routes the subnet");
    let expected =
        Outcome { has_cycle: false, discarded: 0, reported_loops: 0, levels: outcome.levels };
    assert_eq!(outcome, expected);
    assert!(outcome.levels > 1);
}
