//! Services on a fabric that loses packets, whose hosts restart, whose LIDs change and whose managers fail.
//!
//! Every request ends while that goes on. When all is mended and the services have had their time, every address is
//! resolved, and every path leads to its owner.
//!
//! `ACM_RUNS` is the number of runs and `ACM_FIRST` the seed of the first one: a run that failed is run again with
//! `ACM_FIRST=SEED ACM_RUNS=1`. `cargo xtask campaign acm --runs 5000` runs many.

use std::collections::BTreeMap;
use std::time::Duration;

use ib_acm::config::options::RouteProtocol;
use ib_acm::{Address, ServiceConfig};
use ib_routing::LidOptions;
use ib_sim::Options;
use ib_sm::SmConfig;
use ib_types::rng::Rng;
use ib_types::{Gid, Instant};
use ib_wire::mad::sm::PortState;

use crate::lab::{Lab, destination, ip, ip6, name};

const FABRICS: [(&str, &str); 4] = [
    ("fat-tree 4 2", "minhop"),
    ("xgft 2,3 1,2", "updn"),
    ("mesh 2x2 hosts=2", "dor"),
    ("torus 3x3 hosts=1", "lash"),
];

/// The time in which things happen, and the time after it in which nothing does.
const BAD: Duration = Duration::from_secs(30);
const QUIET: Duration = Duration::from_secs(60);

/// The longest that a request may take, with its time in the queue.
const LIMIT: Duration = Duration::from_secs(6);

/// Random numbers of a run.
struct Draw(Rng);

impl Draw {
    fn below(&mut self, limit: u64) -> u64 {
        self.0.next_u64() % limit
    }
}

/// What runs have met.
#[derive(Debug, Default)]
struct Tally {
    asked: u64,
    failed: u64,
    reboots: u64,
    moves: u64,
    failovers: u64,
    faults: u64,
    resolved: u64,
    /// Paths that led elsewhere while things happened.
    astray: u64,
}

fn run(seed: u64, tally: &mut Tally) {
    let mut draw = Draw(Rng::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d)));
    let (kind, engine) = FABRICS[draw.below(4) as usize];
    let route_protocol = if draw.below(2) == 0 { RouteProtocol::Sa } else { RouteProtocol::Acm };
    let config = ServiceConfig {
        timeout: Duration::from_millis(500),
        route_protocol,
        sa_depth: 4,
        address_timeout: Some(Duration::from_secs(600)),
        // A route of the SA is as old as that at most.
        route_timeout: Some(Duration::from_secs(20)),
        check_interval: Some(Duration::from_secs(5)),
        check_routes: draw.below(4) > 0,
        ..ServiceConfig::default()
    };
    let mut lab = Lab::new(kind, Options { seed, ..Options::default() }, engine, config);
    let count = lab.hosts.len();
    let standby = lab.hosts[count - 1].port;
    let patience = Duration::from_millis(500);
    let other = SmConfig {
        sweep_interval: Some(Duration::from_secs(5)),
        sminfo_polling_timeout: patience,
        sminfo_polling_retries: 3,
        ..SmConfig::default()
    };
    lab.managed.add_manager(standby, other);
    lab.managed.manage();
    lab.run_for(Duration::from_secs(2));
    let begun = lab.managed.sim.now();
    let bad_ends = begun + BAD;
    let mut open: BTreeMap<(usize, u64), (usize, Instant)> = BTreeMap::new();
    let mut has_failed_over = false;
    while lab.managed.sim.now() < bad_ends {
        lab.run_for(Duration::from_millis(50 + draw.below(500)));
        match draw.below(12) {
            0 => {
                let host = draw.below(count as u64) as usize;
                // Whoever has asked there is gone, too.
                open.retain(|&(asker, _), _| asker != host);
                lab.reboot(host);
                tally.reboots += 1;
            }
            1 => {
                let mut ports = lab.managed.end_ports();
                let first = draw.below(ports.len() as u64) as usize;
                ports.rotate_left(first);
                let range = |(place, &port): (usize, &ib_topology::PortId)| {
                    let lid = 40 + place as u16;
                    (lab.managed.sim.link_port(port).port_guid, (lid, lid))
                };
                let guid2lid = ports.iter().enumerate().map(range).collect();
                let lids = LidOptions { reassign: true, guid2lid, ..LidOptions::default() };
                lab.managed.reassign(lids);
                tally.moves += 1;
            }
            2 if !has_failed_over => {
                has_failed_over = true;
                lab.managed.kill_manager();
                tally.failovers += 1;
            }
            3..=5 => {
                let host = draw.below(count as u64) as usize;
                let target = lab.host_name(host);
                let loss = ["0.05", "0.3", "0.9"][draw.below(3) as usize];
                lab.managed.command(&format!("fault \"{target}\"[1] loss={loss}"));
                tally.faults += 1;
            }
            6 => {
                let host = draw.below(count as u64) as usize;
                let target = lab.host_name(host);
                lab.managed.command(&format!("fault \"{target}\"[1] none"));
            }
            7 => {
                let host = draw.below(count as u64) as usize;
                let target = lab.host_name(host);
                lab.managed.command(&format!("flap \"{target}\"[1] 200ms 10ms 1"));
                tally.faults += 1;
            }
            _ => {}
        }
        for _ in 0..draw.below(6) {
            let (from, to) = (draw.below(count as u64) as usize, draw.below(count as u64 + 1));
            let to = to as usize;
            // One more than there are hosts: nobody has its addresses.
            let all = match to {
                to if to < count => lab.addresses(to),
                _ => [name(to), ip(to), ip6(to), Address::Gid(Gid(1)), Address::Lid(0xbfff)],
            };
            let address = &all[draw.below(5) as usize];
            if *address == Address::Lid(0) {
                continue;
            }
            tally.asked += 1;
            match lab.ask(from, vec![destination(address)]) {
                (_, Some(answer)) => tally.failed += u64::from(answer.is_err()),
                (number, None) => {
                    open.insert((from, number), (to, lab.managed.sim.now()));
                }
            }
        }
        take(&mut lab, &mut open, tally);
    }
    for host in 0..count {
        let target = lab.host_name(host);
        lab.managed.command(&format!("fault \"{target}\"[1] none"));
    }
    lab.run_for(LIMIT);
    take(&mut lab, &mut open, tally);
    assert!(open.is_empty(), "requests have not ended: {open:?}");
    // The managers have their time first: until nothing has been mended for so long.
    loop {
        let ups = lab.managed.ups;
        lab.run_for(QUIET);
        if lab.managed.ups == ups {
            break;
        }
        assert!(
            lab.managed.sim.now().since(begun) < 20 * QUIET,
            "the fabric does not come to rest"
        );
    }
    for from in 0..count {
        for to in 0..count {
            for address in lab.addresses(to) {
                let answer = lab.resolve(from, &address);
                let path = answer.unwrap_or_else(|status| {
                    let events = |host: usize| {
                        let events = lab.hosts[host].events.iter().map(|(at, it)| {
                            format!("{:.3} {it}", at.as_nanos() as f64 / 1e9)
                        });
                        events.collect::<Vec<_>>().join("\n  ")
                    };
                    let (one, other) = (events(from), events(to));
                    let now = lab.managed.sim.now();
                    let down = not_active(&lab);
                    panic!(
                        "{kind} {engine} {route_protocol:?}, another manager: {has_failed_over}, not active: \
                         {down:?}: {from} cannot resolve {address} at {now:?}: {status}\n{from}: {one}\n\
                         {to}: {other}"
                    )
                });
                let there = lab.managed.sim.link_port(lab.hosts[to].port);
                let known = lab.hosts[from].service.cached(lab.managed.sim.now(), Some(&address));
                assert!(
                    lab.leads(from, to, &path),
                    "{kind} {engine} {route_protocol:?}: {from} to {address} at LID {}: {path:?}, {known:?}",
                    there.lid
                );
                tally.resolved += 1;
            }
        }
    }
}

/// Returns the ports with a link that are not in service, by the names of their nodes, and in what state they are.
fn not_active(lab: &Lab) -> Vec<(String, u8, PortState)> {
    let sim = &lab.managed.sim;
    let nodes = sim.node_ids();
    let ports = nodes.flat_map(|node| (1..=64).filter_map(move |at| sim.find_port(node, at)));
    let linked = ports.filter(|&port| sim.peer(port).is_some());
    let states = linked.map(|port| {
        let (node, number) = sim.place(port);
        (sim.node_name(node).to_owned(), number, sim.port_info(port).port_state)
    });
    states.filter(|&(.., state)| state != PortState::ACTIVE).collect()
}

/// Takes answers, none of which may have come late.
fn take(lab: &mut Lab, open: &mut BTreeMap<(usize, u64), (usize, Instant)>, tally: &mut Tally) {
    let now = lab.managed.sim.now();
    for from in 0..lab.hosts.len() {
        while let Some((number, answer)) = lab.hosts[from].answers.pop_first() {
            let Some((to, _)) = open.remove(&(from, number)) else { continue };
            match answer {
                Err(_) => tally.failed += 1,
                Ok(path) if !lab.leads(from, to, &path) => tally.astray += 1,
                Ok(_) => {}
            }
        }
    }
    for (request, (to, since)) in open {
        let age = now.since(*since);
        assert!(age <= LIMIT, "{request:?} for {to} waits for {age:?}");
    }
}

#[test]
fn paths_are_right_once_a_fabric_among_faults_has_come_to_rest() {
    let number = |name: &str, or: u64| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(or)
    };
    let (first, runs) = (number("ACM_FIRST", 0), number("ACM_RUNS", 10));
    let mut tally = Tally::default();
    let begun = std::time::Instant::now();
    for seed in first..first + runs {
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(seed, &mut tally)));
        assert!(done.is_ok(), "seed {seed}: again with ACM_FIRST={seed} ACM_RUNS=1");
    }
    assert!(tally.resolved > 0);
    eprintln!("{runs} runs in {:.1} s: {tally:?}", begun.elapsed().as_secs_f64());
}
