//! Seeded trials: each trial injects zero to four faults of any kind into one of twelve topologies. The ground
//! truth never comes from the tracer: each path is followed hop by hop through the simulator's tables, links and
//! faults.
//!
//! `TRACER_RUNS` and `TRACER_FIRST` set the number of trials and the first seed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use ib_topology::NodeId;
use ib_tracer::{FactSource, Target};
use ib_types::rng::Rng;
use ib_types::{Guid, Lmc};
use ib_wire::mad::sm::{NodeInfo, PortInfo, PortState};
use ib_wire::mad::{AttributeId, MadStatus, MgmtClass};

use crate::lab::Lab;
use crate::verdicts::{Judged, judged};

const KINDS: [&str; 12] = [
    "fat-tree 4",
    "xgft 3,3 1,3",
    "torus 3x3 hosts=1",
    "mesh 3x2 hosts=2",
    "xgft 2,3,2 1,2,2",
    "fat-tree 8 parallel=2 leaves=4",
    "xgft 3,4 1,2 1,2",
    "hypercube 3 hosts=1",
    "dragonfly a=3 p=1 h=1",
    "xgft 3,3,4 1,2,2",
    "mesh 5x1 hosts=2",
    "random switches=6 ports=8 hosts=2 links=9",
];

/// Maximum number of paths in a trial.
const PATHS: usize = 60;

/// Number of trials if `TRACER_RUNS` is not set.
const USUAL_RUNS: u64 = 240;

/// A fault, and the reports of the tracer that are correct for this fault.
#[derive(Clone, Debug)]
struct Fault {
    name: &'static str,
    /// Ports that the tracer may report as faulty. For a cable, these are the ports at both ends.
    ports: BTreeSet<(Guid, u8)>,
    /// Nodes that the tracer may report as faulty.
    nodes: BTreeSet<Guid>,
    /// True if the tracer must not report a path over the fault as good.
    breaks: bool,
    /// For a duplicate GUID: the two nodes that have it.
    twins: Option<[NodeId; 2]>,
    /// The node whose agent is faulty.
    agent: Option<NodeId>,
}

/// Results of all trials.
#[derive(Debug, Default)]
struct Tally {
    trials: u64,
    paths: u64,
    good: u64,
    not_proven: u64,
    bad: u64,
    over_faults: u64,
    good_over_faults: u64,
    false_reports: u64,
    healthy_unproven: u64,
    mads: u64,
    /// By name of the fault: number of faults on traced paths, and how many of these the tracer reported, only
    /// suspected, and missed.
    faults: BTreeMap<&'static str, [u64; 4]>,
    errors: Vec<String>,
}

#[test]
fn no_path_over_a_fault_is_good() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let runs: u64 = number("TRACER_RUNS").unwrap_or(USUAL_RUNS);
    let first: u64 = number("TRACER_FIRST").unwrap_or(0);
    let mut tally = Tally::default();
    let begun = Instant::now();
    for seed in first..first + runs {
        trial(seed, &mut tally);
    }
    let seconds = begun.elapsed().as_secs_f64();
    print(&tally, seconds);
    assert!(
        tally.good_over_faults == 0 && tally.false_reports == 0,
        "{:#?}",
        &tally.errors[..tally.errors.len().min(12)]
    );
}

#[expect(clippy::print_stderr, reason = "`cargo xtask campaign` shows the counts")]
fn print(tally: &Tally, seconds: f64) {
    let Tally { trials, paths, good, not_proven, bad, over_faults, .. } = tally;
    let Tally { good_over_faults, false_reports, healthy_unproven, mads, .. } = tally;
    let each = |count: f64| count / (*trials).max(1) as f64;
    eprintln!(
        "{trials} trials, {paths} paths: {good} proven good, {not_proven} not proven ({healthy_unproven} \
         of them without a fault), {bad} proven bad"
    );
    eprintln!(
        "{over_faults} paths over faults, {good_over_faults} of them good; {false_reports} healthy ports or nodes reported"
    );
    eprintln!("{:.0} MADs and {:.1} ms for each trial", each(*mads as f64), each(seconds * 1e3));
    for (name, [crossed, reported, suspected, unseen]) in &tally.faults {
        eprintln!(
            "{name:<22} {crossed:>6} crossed {reported:>6} reported {suspected:>6} suspected {unseen:>6} not seen"
        );
    }
}

fn trial(seed: u64, tally: &mut Tally) {
    let mut rng = Rng::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5eed);
    let kind = KINDS[(seed % KINDS.len() as u64) as usize];
    let agents = [1, 1, 2, 3][rng.below(4)];
    let lmc = if rng.below(8) == 0 { 1 } else { 0 };
    let mut lab = Lab::with(
        kind,
        "minhop",
        |number| number % agents == 0,
        |it| {
            it.routing.lids.lmc = Lmc::new(lmc).expect("the LMC is at most 7");
        },
    );
    lab.drop_traps();
    let via = if rng.below(2) == 0 { FactSource::DirectedRoutes } else { FactSource::SaRecords };
    lab.configure(|config| config.via = via);
    let lids: Vec<u16> =
        lab.host_lids().into_iter().flat_map(|lid| lid..lid + (1 << lmc)).collect();
    let all = lids.iter().flat_map(|&from| lids.iter().map(move |&to| (from, to)));
    let all: Vec<(u16, u16)> = all.filter(|(from, to)| from >> lmc != to >> lmc).collect();
    let step = all.len().div_ceil(PATHS).max(1);
    let pairs: Vec<(u16, u16)> = all.into_iter().skip(rng.below(step)).step_by(step).collect();
    let owners: BTreeMap<u16, NodeId> =
        lids.iter().map(|&lid| (lid, lab.owner(lid).expect("a host has the LID"))).collect();
    let count = rng.below(5);
    let mut changes = ResponseChanges::default();
    let mut misroutes = BTreeMap::new();
    let mut faults = Vec::new();
    for _ in 0..count {
        // A trial has only one fault with packet loss, because a second loss rate of a port would replace the first.
        let is_lossy = faults.iter().any(|fault: &Fault| fault.name.contains("loss"));
        let places = (agents, is_lossy);
        faults.extend(inject(&mut lab, &mut rng, &mut changes, &mut misroutes, places));
    }
    lab.corrupt(move |datagram| changes.apply(datagram));
    let what = format!(
        "seed {seed} {kind} {via:?} agents 1/{agents} {:?}",
        faults
            .iter()
            .map(|it| (it.name, it.ports.iter().take(6).collect::<Vec<_>>(), &it.nodes))
            .collect::<Vec<_>>()
    );
    let targets: Vec<_> =
        pairs.iter().map(|&(from, to)| (Some(Target::Lid(from)), Target::Lid(to))).collect();
    let (traces, tracer) = lab.trace_with(&targets);
    tally.trials += 1;
    tally.mads += tracer.counters().traffic.sent;
    let known_errors = tally.errors.len();
    let (mut crossed, mut reported, mut suspected) =
        (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let truths: Vec<Truth> = pairs
        .iter()
        .map(|&(from, to)| {
            let mut truth = follow(&lab, &misroutes, owners[&from], to);
            // If the source has lost its LID, or the path ends at another node than the destination, the path counts as
            // not arriving.
            let has =
                |lid| lab.sim.end_port(owners[&lid]).is_some_and(|port| lab.sim.has_lid(port, lid));
            truth.arrives = truth.end == Some(owners[&to]) && has(from);
            truth
        })
        .collect();
    let visited: BTreeSet<NodeId> =
        truths.iter().flat_map(|truth| truth.visited.iter().copied()).collect();
    let hides = |fault: &Fault| {
        ["loss", "one-way", "unlink", "changed", "wrong"].iter().any(|it| fault.name.contains(it))
    };
    let is_hidden = faults.iter().any(hides);
    for fault in &mut faults {
        if let Some([one, other]) = fault.twins {
            // The tracer recognizes a duplicate GUID only if it can read both nodes.
            let is_seen = visited.contains(&one) && visited.contains(&other) && !is_hidden;
            fault.breaks &= is_seen && lab.guid(one) == lab.guid(other);
        }
        if let Some(node) = fault.agent {
            // A faulty agent has to be reported only if its responses reach the tracer.
            let own = lab.node_of_first_host();
            let reaches = |from, to: NodeId| {
                let lid = lab.sim.end_port(to).map_or(0, |port| lab.sim.link_port(port).lid);
                follow(&lab, &misroutes, from, lid).end == Some(to)
            };
            fault.breaks &= !is_hidden && reaches(own, node) && reaches(node, own);
        }
    }
    for ((&(from, to), trace), truth) in pairs.iter().zip(&traces).zip(&truths) {
        let on_path = |fault: &Fault| {
            if let Some(twins) = fault.twins {
                return twins.iter().any(|node| truth.visited.contains(node));
            }
            let mut ports = fault.ports.iter();
            ports.any(|port| truth.ports.contains(port))
                || fault.nodes.iter().any(|node| truth.nodes.contains(node))
        };
        let is_over = !truth.arrives || faults.iter().any(|fault| fault.breaks && on_path(fault));
        crossed.extend((0..faults.len()).filter(|&number| on_path(&faults[number])));
        let judged = judged(trace, &tracer);
        tally.paths += 1;
        tally.over_faults += u64::from(is_over);
        match judged.good {
            Some(true) => {
                tally.good += 1;
                if is_over {
                    tally.good_over_faults += 1;
                    let over: Vec<_> = faults
                        .iter()
                        .filter(|it| it.breaks && on_path(it))
                        .map(|fault| fault.name)
                        .collect();
                    let arrives = truth.arrives;
                    tally.errors.push(format!(
                        "{what}: LID {from} to LID {to} is good, arrives: {arrives}, over {over:?}: {trace:?}"
                    ));
                }
            }
            Some(false) => tally.bad += 1,
            None => {
                tally.not_proven += 1;
                tally.healthy_unproven += u64::from(!is_over);
            }
        }
        let Judged { ports, nodes, suspects, .. } = judged;
        for (fault, Fault { ports: mine, nodes: own, .. }) in faults.iter().enumerate() {
            if ports.iter().any(|it| mine.contains(it)) || nodes.iter().any(|it| own.contains(it)) {
                reported.insert(fault);
            }
            let is_suspect = |(guid, port): &(Guid, Option<u8>)| match port {
                Some(port) => mine.contains(&(*guid, *port)),
                None => own.contains(guid) || mine.iter().any(|(node, _)| node == guid),
            };
            if suspects.iter().any(is_suspect) {
                suspected.insert(fault);
            }
        }
        let is_guilty_port =
            |port: &(Guid, u8)| faults.iter().any(|fault| fault.ports.contains(port));
        let is_guilty_node = |node: &Guid| faults.iter().any(|fault| fault.nodes.contains(node));
        // Every reported port has to be faulty, or belong to a faulty node. If nodes are reported, at least one of them
        // has to be faulty.
        let is_false_report =
            ports.iter().any(|port| !is_guilty_port(port) && !is_guilty_node(&port.0))
                || !nodes.is_empty() && !nodes.iter().any(is_guilty_node);
        if is_false_report {
            tally.false_reports += 1;
            tally.errors.push(format!(
                "{what}: LID {from} to LID {to} reports {ports:?} {nodes:?}: {trace:?}"
            ));
        }
    }
    tally.errors.truncate(known_errors + 1);
    for number in crossed {
        let counts = tally.faults.entry(faults[number].name).or_default();
        counts[0] += 1;
        let place = match (reported.contains(&number), suspected.contains(&number)) {
            (true, _) => 1,
            (false, true) => 2,
            (false, false) => 3,
        };
        counts[place] += 1;
    }
}

/// The path to a LID according to the tables, up to the first misrouted port.
#[derive(Default)]
struct Truth {
    /// The egress ports of the path.
    ports: BTreeSet<(Guid, u8)>,
    nodes: BTreeSet<Guid>,
    visited: BTreeSet<NodeId>,
    /// The node at which the path ends.
    end: Option<NodeId>,
    arrives: bool,
}

/// Follows the path from a node to a LID through the simulator's tables and links.
fn follow(lab: &Lab, misroutes: &BTreeMap<(NodeId, u8), u8>, from: NodeId, lid: u16) -> Truth {
    let mut truth = Truth::default();
    let Some(mut at) = lab.sim.end_port(from) else { return truth };
    for _ in 0..64 {
        let (node, number) = lab.sim.place(at);
        // `nodes` does not contain the source, because no packet arrives there, and its agent is not probed.
        if node != from {
            truth.nodes.insert(lab.guid(node));
        }
        truth.visited.insert(node);
        let out = if lab.sim.is_switch(node) {
            if lab.sim.end_port(node).is_some_and(|it| lab.sim.has_lid(it, lid)) {
                truth.end = Some(node);
                return truth;
            }
            let table = lab.sim.forwarding_table(node);
            let entry = table.get(usize::from(lid)).copied().unwrap_or(255);
            if entry == 0 || misroutes.contains_key(&(node, entry)) {
                truth.ports.insert((lab.guid(node), entry));
                return truth;
            }
            entry
        } else if lab.sim.has_lid(at, lid) {
            truth.end = Some(node);
            return truth;
        } else if node == from {
            number
        } else {
            return truth;
        };
        truth.ports.insert((lab.guid(node), out));
        let Some(port) = lab.sim.find_port(node, out) else { return truth };
        let Some(peer) = lab.sim.peer(port) else { return truth };
        if lab.sim.port_info(port).port_state != PortState::ACTIVE {
            return truth;
        }
        at = peer;
    }
    truth
}

/// Changes that are made to the responses of nodes before the tracer receives them.
#[derive(Debug, Default)]
struct ResponseChanges {
    /// By the LID of an agent: the wrong arrival port that its response reports, together with field code 7.
    status: BTreeMap<u16, u8>,
    routes: BTreeSet<u16>,
    silent: BTreeSet<u16>,
    /// By the GUID of a node: the value that is added to `LocalPortNum`.
    ports: BTreeMap<Guid, u8>,
    /// By LID: the wrong LID in PortInfo.
    lids: BTreeMap<u16, u16>,
}

impl ResponseChanges {
    /// Changes a response; returns false if it is dropped.
    fn apply(&self, datagram: &mut ib_link::Datagram) -> bool {
        let lid = datagram.remote.lid;
        let mad = &mut datagram.mad;
        match (mad.class(), mad.attribute_id()) {
            (MgmtClass::TRACER, AttributeId::SOURCE_ROUTE) => {
                if self.silent.contains(&lid) {
                    return false;
                }
                if let Some(&port) = self.status.get(&lid) {
                    mad.set_status(MadStatus::BAD_FIELD);
                    mad.data_mut()[0] = port;
                }
                if self.routes.contains(&lid) {
                    mad.data_mut()[3] ^= 0x40;
                }
            }
            (class, AttributeId::NODE_INFO) if class.is_smp() => {
                let Some(mut info) = mad.attribute::<NodeInfo>() else { return true };
                if let Some(add) = self.ports.get(&info.node_guid) {
                    info.local_port = (info.local_port + add - 1) % info.num_ports.max(1) + 1;
                    mad.set_attribute(&info);
                }
            }
            (class, AttributeId::PORT_INFO) if class.is_smp() => {
                let Some(mut info) = mad.attribute::<PortInfo>() else { return true };
                if let Some(&lid) = self.lids.get(&info.lid) {
                    info.lid = lid;
                    mad.set_attribute(&info);
                }
            }
            _ => {}
        }
        true
    }
}

/// Injects a random fault; returns `None` if the fabric has no suitable port or node.
fn inject(
    lab: &mut Lab,
    rng: &mut Rng,
    changes: &mut ResponseChanges,
    misroutes: &mut BTreeMap<(NodeId, u8), u8>,
    (agents, is_lossy): (usize, bool),
) -> Option<Fault> {
    let nodes: Vec<NodeId> = lab.sim.node_ids().collect();
    let switches: Vec<NodeId> =
        nodes.iter().copied().filter(|&node| lab.sim.is_switch(node)).collect();
    let own = lab.node_of_first_host();
    let switch = switches[rng.below(switches.len())];
    let node = nodes[rng.below(nodes.len())];
    let guid = |lab: &Lab, node: NodeId| lab.guid(node);
    let lid_of = |lab: &Lab, node: NodeId| {
        lab.sim.end_port(node).map_or(0, |port| lab.sim.link_port(port).lid)
    };
    let lids_of = |lab: &Lab, node: NodeId| {
        let port = lab.sim.end_port(node);
        let lmc = port.map_or(0, |port| lab.sim.port_info(port).lmc);
        lid_of(lab, node)..=lid_of(lab, node) | ((1 << lmc) - 1)
    };
    let linked = |lab: &Lab, node: NodeId| -> Vec<u8> {
        let is_linked =
            |&port: &u8| lab.sim.find_port(node, port).is_some_and(|it| lab.sim.peer(it).is_some());
        (1..=lab.ports(node)).filter(is_linked).collect()
    };
    let name = |lab: &Lab, node: NodeId| lab.sim.node_name(node).to_owned();
    let mut fault = Fault {
        name: "",
        ports: BTreeSet::new(),
        nodes: BTreeSet::new(),
        breaks: true,
        twins: None,
        agent: None,
    };
    match rng.below(15) {
        // The fault is a misroute at one, two or all ports of a switch.
        number @ 0..=3 => {
            let mut ports = linked(lab, switch);
            let (word, count) = match number {
                0 | 1 => ("misroute one", 1),
                2 => ("misroute two", 2),
                _ => ("misroute all", ports.len()),
            };
            fault.name = word;
            let highest = lab.ports(switch);
            if highest < 2 || ports.is_empty() {
                return None;
            }
            for _ in 0..count.min(ports.len()) {
                let port = ports.swap_remove(rng.below(ports.len()));
                let mut other = rng.below(usize::from(highest)) as u8 + 1;
                if other == port {
                    other = other % highest + 1;
                }
                lab.command(&format!("Misroute \"{}\" {port} {other}", name(lab, switch)));
                misroutes.insert((switch, port), other);
                fault.ports.insert((guid(lab, switch), port));
            }
        }
        // The fault is packet loss on a cable, partial or total, in one or both directions.
        4..=7 if is_lossy => return None,
        number @ 4..=6 => {
            let ports = linked(lab, node);
            let port = *ports.get(rng.below(ports.len().max(1)))?;
            let is_total = number == 6 && node != own;
            let loss = if is_total { 1.0 } else { [0.001, 0.01, 0.1, 0.5][rng.below(4)] };
            fault.name = if is_total { "one-way loss of all" } else { "loss of one" };
            fault.breaks = is_total;
            let peer = lab.sim.peer(lab.sim.find_port(node, port)?)?;
            let (next, enters) = lab.sim.place(peer);
            if is_total && next == own {
                return None;
            }
            lab.command(&format!("Fault \"{}\"[{port}] loss={loss}", name(lab, node)));
            if number == 5 {
                lab.command(&format!("Fault \"{}\"[{enters}] loss={loss}", name(lab, next)));
            }
            fault.ports.extend([(guid(lab, node), port), (guid(lab, next), enters)]);
        }
        7 => {
            fault.name = "loss of all";
            fault.breaks = false;
            let loss = [0.001, 0.01, 0.1, 0.3][rng.below(4)];
            for &switch in &switches {
                for port in linked(lab, switch) {
                    lab.command(&format!("Fault \"{}\"[{port}] loss={loss}", name(lab, switch)));
                    fault.ports.insert((guid(lab, switch), port));
                }
            }
        }
        8 => {
            fault.name = "unlink";
            let ports = linked(lab, switch);
            let port = *ports.get(rng.below(ports.len().max(1)))?;
            let (next, enters) = lab.sim.place(lab.sim.peer(lab.sim.find_port(switch, port)?)?);
            if next == own {
                return None;
            }
            lab.command(&format!("Unlink \"{}\"[{port}]", name(lab, switch)));
            fault.ports.extend([(guid(lab, switch), port), (guid(lab, next), enters)]);
        }
        9 => {
            fault.name = "duplicate GUID";
            let other = switches[rng.below(switches.len())];
            if other == switch {
                return None;
            }
            let found = guid(lab, other);
            fault.nodes.extend([found, guid(lab, switch)]);
            lab.command(&format!("Guid \"{}\" {found}", name(lab, switch)));
            fault.twins = Some([switch, other]);
        }
        10 => {
            fault.name = "changed LID";
            if node == own {
                return None;
            }
            let lid = if rng.below(2) == 0 {
                4000 + rng.below(90) as u16
            } else {
                let other = nodes[rng.below(nodes.len())];
                if other == node || other == own { return None } else { lid_of(lab, other) }
            };
            // The tracer may report any of the nodes that have the same LID.
            let sharing: Vec<NodeId> =
                nodes.iter().copied().filter(|&it| lid_of(lab, it) == lid).collect();
            fault.nodes.insert(guid(lab, node));
            fault.nodes.extend(sharing.into_iter().map(|it| guid(lab, it)));
            let port = linked(lab, node).first().copied()?;
            let port = if lab.sim.is_switch(node) { 0 } else { port };
            lab.command(&format!("Baselid \"{}\"[{port}] {lid}", name(lab, node)));
            // The tracer may report the ports at both ends of this node's links, because paths to the old LID of the
            // node end at these links.
            for port in linked(lab, node) {
                let (next, enters) = lab.sim.place(lab.sim.peer(lab.sim.find_port(node, port)?)?);
                fault.ports.extend([(guid(lab, next), enters), (guid(lab, node), port)]);
            }
            fault.breaks = false;
        }
        11 => {
            fault.name = "status 7";
            let number = nodes.iter().position(|&it| it == node).unwrap_or_default();
            fault.breaks = number % agents == 0;
            fault.agent = Some(node);
            if node == own {
                return None;
            }
            for lid in lids_of(lab, node) {
                changes.status.insert(lid, 77);
            }
            fault.nodes.insert(guid(lab, node));
        }
        12 => {
            fault.name = "other route";
            let number = nodes.iter().position(|&it| it == node).unwrap_or_default();
            fault.breaks = number % agents == 0;
            fault.agent = Some(node);
            if node == own {
                return None;
            }
            changes.routes.extend(lids_of(lab, node));
            fault.nodes.insert(guid(lab, node));
        }
        13 => {
            fault.name = "silent agent";
            changes.silent.extend(lids_of(lab, node));
            fault.nodes.insert(guid(lab, node));
            fault.breaks = false;
        }
        _ => {
            fault.name = "wrong NodeInfo or LID";
            fault.nodes.insert(guid(lab, node));
            fault.breaks = false;
            if node == own {
                return None;
            }
            if rng.below(2) == 0 {
                changes.ports.insert(guid(lab, node), 1);
                fault.breaks = lab.ports(node) > 1;
            } else {
                let other = nodes[rng.below(nodes.len())];
                if other == node || other == own {
                    return None;
                }
                let foreign = lid_of(lab, other);
                fault.nodes.insert(guid(lab, other));
                changes.lids.insert(lid_of(lab, node), foreign);
            }
            for port in linked(lab, node) {
                let (next, enters) = lab.sim.place(lab.sim.peer(lab.sim.find_port(node, port)?)?);
                fault.ports.extend([(guid(lab, next), enters), (guid(lab, node), port)]);
            }
        }
    }
    Some(fault)
}
