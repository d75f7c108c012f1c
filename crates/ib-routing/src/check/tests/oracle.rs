//! Reference check, which follows every packet individually.

use std::collections::{BTreeMap, BTreeSet};

use ib_types::rng::Rng;
use ib_types::{Lmc, ServiceLevel, VirtualLane};
use proptest::prelude::*;

use super::net::{Net, corrupt};
use crate::check::dependency::Graph;
use crate::check::*;
use crate::engine::Engine;
use crate::engine::minhop::MinHop;
use crate::hops::{HopMatrix, LinkWeights};
use crate::subnet::{Attachment, EndPortId};

/// A VL of a directed link between switches: the sending switch, its output port, and the VL.
type Channel = (SwitchId, u8, u8);

/// The path of a packet, and how it ends.
struct Walk {
    /// The switches on the path, each with the packet's input port and the LFT entry.
    steps: Vec<(SwitchId, u8, u8)>,
    end: PathEnd,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PathEnd {
    Arrives,
    NoEntry,
    Lost,
    Loops,
}

fn walk(subnet: &Subnet<'_>, lfts: &Lfts, from: (SwitchId, u8), lid: u16) -> Walk {
    let owner = subnet.lid_owner(lid).expect("the LID belongs to a port of the subnet");
    let (mut at, mut in_port) = from;
    let mut steps = Vec::new();
    loop {
        let entry = lfts.port(at, lid);
        steps.push((at, in_port, entry));
        if steps.len() > subnet.switches().len() {
            return Walk { steps, end: PathEnd::Loops };
        }
        let node = subnet.switch(at).node;
        let fabric = subnet.fabric();
        let arrives_at =
            |port: EndPortId| if port == owner { PathEnd::Arrives } else { PathEnd::Lost };
        let end = match fabric.port_id(node, entry).map(|id| fabric.port(id)) {
            _ if entry == 255 => PathEnd::NoEntry,
            Some(port) if port.number == 0 => arrives_at(subnet.switch(at).end_port),
            Some(port) => match port.peer.map(|id| (id, fabric.port(id))) {
                Some((id, peer)) => match subnet.switch_of(peer.node) {
                    Some(next) => {
                        (at, in_port) = (next, peer.number);
                        continue;
                    }
                    None => arrives_at(
                        subnet
                            .find_end_port(fabric.port(id).guid)
                            .expect("the peer is an end port"),
                    ),
                },
                None => PathEnd::Lost,
            },
            None => PathEnd::Lost,
        };
        return Walk { steps, end };
    }
}

/// The results of a check that can be counted packet by packet.
#[derive(Default)]
struct Expected {
    unreachable: u64,
    /// Number of pairs of a host and a LID of another host whose packets are lost because of the LFTs.
    host_pairs: u64,
    /// Number of pairs of a host and a LID of another host whose packets an SL-to-VL table discards.
    discarded_host_pairs: u64,
    switch_pairs: u64,
    looping: BTreeSet<u16>,
    histogram: BTreeMap<usize, u64>,
    longer: u64,
    worst_excess: usize,
    load: BTreeMap<(SwitchId, u8), u32>,
    starting: BTreeMap<EndPortId, u32>,
    turns: BTreeSet<(Channel, Channel)>,
    discards: BTreeSet<Discard>,
}

/// A packet that an SL-to-VL table discards: its LID, the switch, and the previous switch with its output port.
type Discard = (u16, SwitchId, Option<(SwitchId, u8)>);

type VlOf<'a> = &'a dyn Fn(SwitchId, u8, u8, ServiceLevel) -> VirtualLane;

fn expected(
    subnet: &Subnet<'_>,
    (lfts, layers): (&Lfts, &Layers),
    scope: Scope,
    vl_of: VlOf<'_>,
) -> Expected {
    let mut expected = Expected::default();
    let matrix = HopMatrix::shortest(subnet, &LinkWeights::default());
    let entrance = |port: EndPortId| match subnet.end_port(port).attachment {
        Attachment::Management(switch) => (switch, 0),
        Attachment::Port(switch, number) => (switch, number),
        Attachment::Direct => unreachable!("all hosts are at switches"),
    };
    for to in subnet.end_port_ids() {
        let port = subnet.end_port(to);
        for lid in port.lid_range() {
            for switch in subnet.switch_ids() {
                let walk = walk(subnet, lfts, (switch, 0), lid);
                let has_host = subnet.peers(switch).iter().any(|p| matches!(p, Peer::EndPort(_)));
                let here = walk.end == PathEnd::NoEntry && walk.steps.len() == 1;
                match walk.end {
                    PathEnd::Arrives => continue,
                    PathEnd::Loops => drop(expected.looping.insert(lid)),
                    PathEnd::NoEntry | PathEnd::Lost => {}
                }
                let own = port.attachment == Attachment::Management(switch);
                if here && !own && (port.is_switch() || !has_host) {
                    expected.switch_pairs += 1;
                } else {
                    expected.unreachable += 1;
                }
            }
            for from in subnet.end_port_ids().filter(|&from| from != to) {
                let ends = [from, to].map(|end| subnet.end_port(end).is_switch());
                let considered = match scope {
                    Scope::Hosts => ends == [false, false],
                    Scope::Management => ends != [true, true],
                    Scope::Everything => true,
                };
                if !considered {
                    continue;
                }
                let walk = walk(subnet, lfts, entrance(from), lid);
                let is_host_pair = ends == [false, false];
                expected.host_pairs += u64::from(is_host_pair && walk.end != PathEnd::Arrives);
                if is_host_pair && walk.end == PathEnd::Arrives {
                    let hops = walk.steps.len() - 1;
                    *expected.histogram.entry(hops).or_default() += 1;
                    let least = usize::from(matrix.least(entrance(from).0, entrance(to).0));
                    expected.longer += u64::from(hops > least);
                    expected.worst_excess = expected.worst_excess.max(hops - least);
                    *expected.starting.entry(from).or_default() += 1;
                    for &(switch, _, out) in &walk.steps {
                        *expected.load.entry((switch, out)).or_default() += 1;
                    }
                }
                if walk.end != PathEnd::Loops {
                    let level = layers.level(entrance(from).0, entrance(to).0);
                    let discarded = expected.add_turns(&walk, lid, level, vl_of);
                    let lost = is_host_pair && discarded && walk.end == PathEnd::Arrives;
                    expected.discarded_host_pairs += u64::from(lost);
                }
            }
        }
    }
    expected
}

impl Expected {
    /// Adds the turns of a packet. Returns true if an SL-to-VL table discards it.
    fn add_turns(&mut self, walk: &Walk, lid: u16, level: ServiceLevel, vl_of: VlOf<'_>) -> bool {
        let (mut before, mut came_from) = (None, None);
        for (index, &(switch, in_port, out)) in walk.steps.iter().enumerate() {
            let last = index + 1 == walk.steps.len();
            // At the last switch, a VL is needed only if the packet goes to its destination host: port 0 has no VLs.
            if last && (walk.end != PathEnd::Arrives || out == 0) {
                return false;
            }
            let vl = vl_of(switch, in_port, out, level).get();
            if vl == 15 {
                self.discards.insert((lid, switch, came_from));
                return true;
            }
            if !last {
                let channel = (switch, out, vl);
                self.turns.extend(before.map(|before| (before, channel)));
                before = Some(channel);
                came_from = Some((switch, out));
            }
        }
        false
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn report_matches_individual_packets(seed: u64, percent in 0usize..=100, lmc in 0u8..=2) {
        let mut rng = Rng::new(seed);
        let net = Net::random(&mut rng);
        let subnet = net.subnet_with(Lmc::new(lmc).expect("the LMC is at most 2"));
        let mut lfts =
            MinHop.route(&subnet, &Default::default()).expect("minhop routes every subnet").lfts;
        // Squaring the percentage yields many tables with few changes, but also tables with mostly changed entries.
        corrupt(&subnet, &mut lfts, &mut rng, percent * percent / 100);
        let switches = subnet.switches().len();
        let layers = match rng.below(2) {
            0 => Layers::uniform(ServiceLevel::new(3).expect("3 is a service level")),
            _ => Layers::per_pair(
                switches,
                (0..switches * switches).map(|_| rng.below(3) as u8 * 5).collect(),
            ),
        };
        let same = |_: SwitchId, _: u8, _: u8, level: ServiceLevel| {
            VirtualLane::new(level.get()).expect("there are as many VLs as service levels")
        };
        let salt = rng.next_u64();
        let mixed = move |switch: SwitchId, in_port: u8, out: u8, level: ServiceLevel| {
            let parts = [u64::from(switch.0), in_port.into(), out.into(), level.get().into()];
            let key = parts.into_iter().fold(salt, |key, part| Rng::stream(key, part).next_u64());
            VirtualLane::new([0, 0, 1, 7, 14, 15][(key % 6) as usize])
                .expect("the VL is at most 15")
        };
        for scope in [Scope::Hosts, Scope::Management, Scope::Everything] {
            for vl_map in [None, Some(&mixed as &dyn VlMap)] {
                let vl_of: VlOf<'_> = if vl_map.is_some() { &mixed } else { &same };
                let expected = expected(&subnet, (&lfts, &layers), scope, vl_of);
                let options = CheckOptions { scope, vl_map, samples: 1000, unknown: None };
                let report = check_with(&subnet, &lfts, &layers, &options);
                compare(&subnet, &report, &expected)?;
                let starting = subnet.end_port_ids().map(|from| expected.starting.get(&from));
                let starting: Vec<u32> = starting.map(|it| it.copied().unwrap_or(0)).collect();
                prop_assert_eq!(report.load.starting(&subnet, &lfts), starting);
                let tables = (&lfts, &layers);
                let wiring = Wiring::new(&subnet);
                let turns = match vl_map {
                    None => turns(&subnet, &wiring, tables, scope, SameNumber),
                    Some(map) => {
                        let vls = Mapped { map, wiring: &wiring };
                        turns(&subnet, &wiring, tables, scope, vls)
                    }
                };
                prop_assert_eq!(turns, expected.turns);
            }
        }
    }
}

fn compare(
    subnet: &Subnet<'_>,
    report: &CheckReport,
    expected: &Expected,
) -> Result<(), TestCaseError> {
    let reach = &report.reach;
    let lost = expected.unreachable + expected.discards.len() as u64;
    prop_assert_eq!(reach.unreachable, lost);
    prop_assert_eq!(reach.unreachable_switch_pairs, expected.switch_pairs);
    let lost_pairs = expected.host_pairs + expected.discarded_host_pairs;
    if expected.discards.is_empty() {
        prop_assert_eq!(reach.unreachable_host_pairs, expected.host_pairs);
    } else {
        prop_assert!(reach.unreachable_host_pairs >= lost_pairs);
    }
    prop_assert_eq!(reach.looping_lids, expected.looping.len());
    prop_assert_eq!(reach.loops.is_empty(), expected.looping.is_empty());
    for lost in reach.first.iter().chain(&reach.first_switch_pairs) {
        prop_assert!(!lost.describe(subnet).is_empty());
    }

    let histogram: BTreeMap<usize, u64> =
        report.hops.histogram.iter().copied().enumerate().filter(|&(_, n)| n > 0).collect();
    prop_assert_eq!(&histogram, &expected.histogram);
    prop_assert_eq!(report.hops.longer_than_minimum, expected.longer);
    prop_assert_eq!(usize::from(report.hops.worst_excess), expected.worst_excess);
    for switch in subnet.switch_ids() {
        for port in 0..=255 {
            let load = expected.load.get(&(switch, port)).copied().unwrap_or(0);
            prop_assert_eq!(report.load.load(switch, port), load);
        }
    }

    let edge = |from: &HeldChannel, to: &HeldChannel| {
        let channel = |held: &HeldChannel| (held.switch, held.port, held.vl.get());
        (channel(from), channel(to))
    };
    for found in &report.credit.first {
        for (index, held) in found.cycle.iter().enumerate() {
            let next = &found.cycle[(index + 1) % found.cycle.len()];
            prop_assert!(expected.turns.contains(&edge(held, next)));
        }
    }
    Ok(())
}

/// Returns all edges of the channel dependency graph for the given tables.
fn turns<L: VlRule>(
    subnet: &Subnet<'_>,
    wiring: &Wiring,
    (lfts, layers): (&Lfts, &Layers),
    scope: Scope,
    vls: L,
) -> BTreeSet<(Channel, Channel)> {
    let graph = &crate::hops::Graph::new(subnet);
    let tables = Tables { lfts, layers, wiring, graph, unknown: None };
    let found = Pass::new(subnet, tables, vls, scope, 0).run::<Turns>();
    let graph = Graph::new(wiring, &found.turns);
    let channel = |node| {
        let (channel, vl) = graph.channel_and_vl(node);
        let (switch, port) = wiring.port(channel);
        (switch, port, vl)
    };
    (0..graph.nodes() as u32)
        .flat_map(|node| graph.targets(node).iter().map(move |&target| (node, target)))
        .map(|(node, target)| (channel(node), channel(target)))
        .collect()
}
