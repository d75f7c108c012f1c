//! Subnets on a real ibsim that lose and gain links while `ibfabric sm` or OpenSM manages them.
//!
//! The result is checked independently of the SM: `ibnetdiscover` and `dump_fts` read links and tables by directed
//! routes. The route of every pair of hosts is then followed through these tables.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use ib_topology::generate::{self, Kind as FabricKind};
use ib_topology::{Fabric, NodeId, PortId};
use ib_types::rng::Rng;

use super::ours;
use super::scene::{Gear, Scene, patient};
use crate::clients::manager;
use crate::clients::server::{Kind, Order};
use crate::clients::stage::StageError;

/// The fabrics from which a run chooses one. They are small: ibsim starts the largest one within about a second.
const FABRICS: [&str; 10] = [
    "fat-tree 4 2",
    "fat-tree 4 3",
    "xgft 2,2,4 1,2,2",
    "xgft 3,3,4 1,2,2",
    "torus 4x4 hosts=1",
    "torus 6 hosts=1",
    "mesh 4x4 hosts=1",
    "hypercube 4 hosts=1",
    "dragonfly a=4 p=1 h=1",
    "random switches=12 ports=6 hosts=2",
];

/// The lists of routing engines from which a run chooses one. OpenSM and `ibfabric sm` support all of these engines. An
/// empty list stands for `auto` with `ibfabric sm`, and for `minhop` with OpenSM.
const ENGINES: [&str; 7] = ["", "", "minhop", "updn", "ftree,updn", "lash", "dor"];

/// Time after a cable change in which the SM must make all pairs of hosts reachable.
const SETTLES_WITHIN: Duration = Duration::from_secs(40);

/// The SM that manages the fabric in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Managed {
    /// `ibfabric sm`.
    Ours,
    /// Debian's OpenSM.
    OpenSm,
}

/// Results of all runs.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Number of cable changes after which all pairs of hosts were checked.
    pub events: usize,
    /// Number of checked pairs of hosts.
    pub pairs: usize,
    /// The cable changes after which some pairs of hosts remained unreachable although cables connect them.
    pub dead: Vec<String>,
    /// Number of cable changes after which the tables have a credit loop on a single VL.
    pub loops: usize,
    /// The cable changes after which the tables have a credit loop on a single VL, but `ibfabric sm` logged no alarm.
    pub silent_loops: Vec<String>,
    /// Times from a cable change until a reading of the tables shows that all pairs of hosts are reachable. If a later
    /// reading shows an unreachable pair, a second time is recorded for this change.
    pub settled_after: Vec<Duration>,
}

impl Tally {
    /// Adds the results of other runs to this tally.
    pub fn merge(&mut self, other: Self) {
        self.events += other.events;
        self.pairs += other.pairs;
        self.dead.extend(other.dead);
        self.loops += other.loops;
        self.silent_loops.extend(other.silent_loops);
        self.settled_after.extend(other.settled_after);
    }
}

/// Links, LIDs and tables of the fabric as `ibnetdiscover` and `dump_fts` read them.
#[derive(Default)]
struct Truth {
    /// The peer port of each port with a link. Ports are identified by node and port number.
    peers: BTreeMap<(String, u8), (String, u8)>,
    /// The LID of each host.
    lids: BTreeMap<String, u16>,
    /// For each switch, the output port of each LID.
    tables: BTreeMap<String, BTreeMap<u16, u8>>,
}

/// A cable, identified by a node's name and a port number at one end.
type Cable = (String, u8);

/// Cables that are cut or restored at the same time. The flag is true if they are cut.
type Batch = (Vec<Cable>, bool);

/// A directed link between switches: the switch that sends, and its output port.
type Channel = (String, u8);

impl Truth {
    /// Parses the output of `ibnetdiscover` and `dump_fts`. Nodes are identified by their node GUIDs.
    fn read(discovered: &str, tables: &str) -> Self {
        let mut this = Self::default();
        let quoted = |line: &str| {
            let (_, rest) = line.split_once('"')?;
            rest.split_once('"').map(|(name, rest)| (name.to_owned(), rest.to_owned()))
        };
        let number = |text: &str| text.split_once('[')?.1.split_once(']')?.0.parse::<u8>().ok();
        let guid = |name: &str| name.split_once('-').map_or(String::new(), |(_, it)| it.to_owned());
        let lid = |text: &str| -> Option<u16> {
            text.split_once(" lid ")?.1.split(' ').next()?.parse().ok()
        };
        let mut node: Option<(String, bool)> = None;
        for line in discovered.lines() {
            if line.starts_with("Switch") || line.starts_with("Ca") {
                node = quoted(line).map(|(name, _)| (guid(&name), line.starts_with("Switch")));
            } else if let (Some((own, is_switch)), Some(port), Some((peer, rest))) =
                (&node, number(line).filter(|_| line.starts_with('[')), quoted(line))
                && let Some(peer_port) = number(&rest)
            {
                this.peers.insert((own.clone(), port), (guid(&peer), peer_port));
                if !is_switch {
                    this.lids.insert(own.clone(), lid(line).unwrap_or(0));
                }
            }
        }
        let mut switch = String::new();
        for line in tables.lines() {
            if let Some((_, rest)) = line.split_once(" guid 0x") {
                switch = rest.chars().take_while(char::is_ascii_hexdigit).collect();
                this.tables.entry(switch.clone()).or_default();
            } else if let Some(rest) = line.strip_prefix("0x") {
                let mut words = rest.split_whitespace();
                let entry = words.next().and_then(|lid| u16::from_str_radix(lid, 16).ok());
                let port = words.next().and_then(|port| port.parse::<u8>().ok());
                if let (Some(lid), Some(port)) = (entry, port) {
                    this.tables.entry(switch.clone()).or_default().insert(lid, port);
                }
            }
        }
        this
    }

    /// Follows the route of every pair of hosts. Returns the number of pairs, the unreachable pairs, and whether there
    /// is a credit loop.
    fn walk(&self) -> (usize, Vec<String>, bool) {
        let (mut pairs, mut dead) = (0, Vec::new());
        let mut waits: BTreeMap<Channel, BTreeSet<Channel>> = BTreeMap::new();
        for from in self.lids.keys() {
            for (to, &lid) in self.lids.iter().filter(|(to, _)| *to != from) {
                pairs += 1;
                match self.path(from, to, lid) {
                    Ok(channels) => {
                        for pair in channels.windows(2) {
                            let [held, wanted] = pair else { continue };
                            waits.entry(held.clone()).or_default().insert(wanted.clone());
                        }
                    }
                    Err(why) => dead.push(format!("{from} to {to}: {why}")),
                }
            }
        }
        loop {
            let before: BTreeSet<Channel> = waits.keys().cloned().collect();
            waits.retain(|_, wanted| wanted.iter().any(|channel| before.contains(channel)));
            if waits.len() == before.len() {
                return (pairs, dead, !waits.is_empty());
            }
        }
    }

    /// Returns the links between switches that a packet takes. The error names the place where the packet is dropped.
    fn path(&self, from: &str, to: &str, lid: u16) -> Result<Vec<Channel>, String> {
        let start = self.peers.range((from.to_owned(), 0)..).next();
        let mut at = start.map(|(_, (node, _))| node.clone()).unwrap_or_default();
        let mut channels = Vec::new();
        for _ in 0..=self.tables.len() {
            let Some(table) = self.tables.get(&at) else {
                return Err(format!("{at} has no table"));
            };
            let Some(&port) = table.get(&lid) else {
                return Err(format!("{at} has no entry for LID {lid}"));
            };
            let Some((next, _)) = self.peers.get(&(at.clone(), port)) else {
                return Err(format!("{at} sends LID {lid} out of port {port}, which has no link"));
            };
            if next == to {
                return Ok(channels);
            }
            channels.push((at, port));
            at = next.clone();
        }
        Err(format!("LID {lid} is in a forwarding loop"))
    }
}

/// Runs an SM on a fabric that the seed selects. For two of three seeds, links between switches are cut one by one
/// until 40 % are cut, and then restored, three at a time. For other seeds, the links of all switches but one are cut
/// before the SM starts. They are then restored as if the switches were powered on in groups of one to three.
///
/// # Errors
/// Fails if a program cannot be started.
pub fn run(
    gear: &Gear,
    seed: u64,
    managed: Managed,
    directory: &Path,
) -> Result<Tally, StageError> {
    let mut rng = Rng::stream(seed, 0x1b_51a);
    let kind = FABRICS[rng.below(FABRICS.len())];
    let engines = ENGINES[rng.below(ENGINES.len())];
    let fabric = generated(kind);
    let name = |port: PortId| {
        let port = fabric.port(port);
        (fabric.node(port.node).name.clone(), port.number)
    };
    let is_switch = |port: PortId| fabric.node(fabric.port(port).node).kind.is_switch();
    let trunks = fabric.links().filter(|&(one, other)| is_switch(one) && is_switch(other));
    let mut cables: Vec<(String, u8)> = trunks.map(|(one, _)| name(one)).collect();
    let staged = seed % 3 == 2;
    let first_host = fabric.nodes().find(|(_, node)| !node.kind.is_switch()).map(|(id, _)| id);
    let leaf = first_host.and_then(|id| {
        fabric.ports_of(id).find_map(|(_, port)| Some(fabric.port(port.peer?).node))
    });
    let batches: Vec<Batch> = if staged {
        let switches = fabric.nodes().filter(|(_, node)| node.kind.is_switch()).map(|(id, _)| id);
        let mut off: Vec<NodeId> = switches.filter(|&id| Some(id) != leaf).collect();
        shuffle(&mut rng, &mut off);
        let mut bursts: Vec<Vec<NodeId>> = Vec::new();
        while !off.is_empty() {
            let burst = (1 + rng.below(3)).min(off.len());
            bursts.push(off.drain(..burst).collect());
        }
        // A cable is restored when the nodes at both ends are powered on.
        let works_from = |port: PortId| {
            let node = fabric.port(port).node;
            bursts.iter().position(|burst| burst.contains(&node)).map_or(0, |number| number + 1)
        };
        let from = |number| {
            let links = fabric.links();
            let links = links.filter(move |&(a, b)| works_from(a).max(works_from(b)) == number);
            links.map(|(one, _)| name(one)).collect::<Vec<Cable>>()
        };
        let later: Vec<Vec<Cable>> = (1..=bursts.len()).map(from).collect();
        let first = (later.concat(), true);
        std::iter::once(first).chain(later.into_iter().map(|cables| (cables, false))).collect()
    } else {
        shuffle(&mut rng, &mut cables);
        cables.truncate((cables.len() * 2 / 5).max(1));
        let cut = cables.chunks(1).map(|cables| (cables.to_vec(), true));
        let mended = cables.chunks(3).map(|cables| (cables.to_vec(), false));
        cut.chain(mended).collect()
    };
    let mut scene = Scene::open(gear, &Kind::Ibsim, &fabric, &gear.debian, directory)?;
    let describe = format!("seed {seed}, {kind}, engines '{engines}', staged: {staged}");
    let mut tally = Tally::default();
    let more = ["-s", "3"];
    let mut batches = batches.into_iter();
    if staged && let Some((cables, cut)) = batches.next() {
        order(&mut scene, &cables, cut)?;
    }
    let engine = if engines.is_empty() { "minhop" } else { engines };
    let own_engine = if engines.is_empty() { "auto" } else { engines };
    let _manager: Box<dyn std::any::Any> = match managed {
        Managed::Ours => {
            let options = ours::Options { engine: own_engine, more: &more, ..Default::default() };
            Box::new(scene.manage(&options)?)
        }
        Managed::OpenSm => {
            let options = manager::Options { engine, more: &more, ..Default::default() };
            Box::new(scene.manage_by_opensm(&options)?)
        }
    };
    for (cables, cut) in batches {
        order(&mut scene, &cables, cut)?;
        let what = format!("{describe}: {} {cables:?}", if cut { "cut" } else { "restored" });
        settle(&mut scene, managed, &what, &mut tally)?;
    }
    let _ = scene.close();
    Ok(tally)
}

fn shuffle<T>(rng: &mut Rng, list: &mut [T]) {
    for last in (1..list.len()).rev() {
        list.swap(last, rng.below(last + 1));
    }
}

/// Cuts or restores cables.
fn order(scene: &mut Scene<'_>, cables: &[Cable], cut: bool) -> Result<(), StageError> {
    for (node, port) in cables {
        scene.order(if cut { Order::Unlink(node, *port) } else { Order::Relink(node, *port) })?;
    }
    Ok(())
}

/// Waits until all pairs of hosts are reachable, or until the time limit expires. Then adds the unreachable pairs and
/// credit loops to `tally`.
fn settle(
    scene: &mut Scene<'_>,
    managed: Managed,
    what: &str,
    tally: &mut Tally,
) -> Result<(), StageError> {
    let start = Instant::now();
    let mut sound = 0;
    loop {
        let discovered = scene.run_client(&patient("ibnetdiscover"))?.0.output;
        let tables = scene.run_client(&patient("dump_fts"))?.0.output;
        let (pairs, dead, has_loop) = Truth::read(&discovered, &tables).walk();
        // All pairs must be reachable in two consecutive readings, because the SM may be writing tables.
        sound = if dead.is_empty() { sound + 1 } else { 0 };
        if sound == 1 {
            tally.settled_after.push(start.elapsed());
        }
        if sound == 2 || start.elapsed() > SETTLES_WITHIN {
            tally.events += 1;
            tally.pairs += pairs;
            // This check assumes that all routes use a single VL. lash uses several VLs, so credit loops of lash are
            // ignored.
            let is_lash = match managed {
                Managed::Ours => scene_engine(scene) == "lash",
                Managed::OpenSm => what.contains("'lash'"),
            };
            let has_loop = has_loop && !is_lash;
            tally.loops += usize::from(has_loop);
            if let Some(first) = dead.first() {
                tally.dead.push(format!(
                    "{what}: {} of {pairs} pairs unreachable, first {first}",
                    dead.len()
                ));
            }
            if has_loop && managed == Managed::Ours {
                let log = std::fs::read_to_string(scene.directory.join("ours/sm.err"));
                let log = log.unwrap_or_default();
                if !log.contains("ALARM: ") {
                    tally.silent_loops.push(what.to_owned());
                }
            }
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(300));
    }
}

/// Returns the engine whose tables `ibfabric sm` has programmed last.
fn scene_engine(scene: &Scene<'_>) -> String {
    let text = std::fs::read_to_string(scene.directory.join("ours/sm.out")).unwrap_or_default();
    let line = text.lines().rev().find(|line| line.starts_with("SUBNET UP"));
    let engine = line.and_then(|line| line.split_once(" routed with "));
    engine.and_then(|(_, rest)| rest.split(' ').next()).unwrap_or_default().to_owned()
}

fn generated(kind: &str) -> Fabric {
    let words: Vec<&str> = kind.split(' ').collect();
    let kind = FabricKind::parse(words[0], &words[1..]).expect("the listed kinds are valid");
    generate::generate(&kind, &generate::Options::default())
        .expect("the parameters of the listed fabrics are valid")
}

#[cfg(test)]
mod tests;
