//! Damaged fabrics: `ibfabric tracer` and a real `ibtracert` trace the same paths of a fabric that a real OpenSM has
//! configured.
//!
//! OpenSM configures the LFTs and is stopped, and `ibtracert` prints the paths. Then faults are injected, and both
//! programs trace the same paths. The tracer must not report a path as good if it crosses a fault, or as bad if it
//! crosses none. The paths that `ibtracert` printed before the faults show which paths cross a fault.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::ops::AddAssign;
use std::path::Path;

use ib_types::rng::Rng;
use serde_json::Value;

use super::{HASTE, json, tracer};
use crate::clients::fabrics::Plan;
use crate::clients::manager;
use crate::clients::server::{Kind, Order};
use crate::clients::stage::StageError;
use crate::sm::scene::{Gear, Scene, patient};

const KINDS: [&str; 6] =
    ["xgft 3,3 1,3", "fat-tree 4", "torus 3x3", "mesh 3x2 hosts=2", "hypercube 3", "xgft 4,4 1,2"];

/// Maximum number of paths that one call of [`trial`] traces.
const PAIRS: usize = 25;

/// Counts of traced paths by verdict and by whether the path crosses a fault, and descriptions of errors.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Number of traced paths.
    pub paths: usize,
    /// Number of paths that cross a fault.
    pub damaged: usize,
    /// Number of paths that cross a fault, but that the tracer reports as good.
    pub good_over_damage: usize,
    /// Number of paths that cross a fault and that the tracer proves bad.
    pub bad_over_damage: usize,
    /// Number of paths that cross a fault and that the tracer does not prove good or bad.
    pub unproven_over_damage: usize,
    /// Number of paths without a fault that the tracer reports as bad.
    pub innocents: usize,
    /// Number of paths without a fault that the tracer proves good.
    pub sound_good: usize,
    /// Number of paths without a fault that the tracer does not prove good or bad.
    pub sound_unproven: usize,
    /// Number of paths that cross a fault, but that `ibtracert` prints completely.
    pub shown_over_damage: usize,
    /// Number of paths without a fault that `ibtracert` does not print completely.
    pub sound_not_shown: usize,
    /// Number of paths across a fault that the tracer proves bad, but that `ibtracert` prints completely. Only the
    /// tracer is right about these paths.
    pub tracer_right: usize,
    /// Number of paths across a fault that the tracer reports as good, but that `ibtracert` does not print completely.
    /// Only `ibtracert` is right about these paths.
    pub ibtracert_right: usize,
    /// Descriptions of wrong verdicts, of missing traces, and of packets that the tracer reports as seen at a switch
    /// that does not respond.
    pub errors: Vec<String>,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        let pairs = [
            (&mut self.paths, other.paths),
            (&mut self.damaged, other.damaged),
            (&mut self.good_over_damage, other.good_over_damage),
            (&mut self.bad_over_damage, other.bad_over_damage),
            (&mut self.unproven_over_damage, other.unproven_over_damage),
            (&mut self.innocents, other.innocents),
            (&mut self.sound_good, other.sound_good),
            (&mut self.sound_unproven, other.sound_unproven),
            (&mut self.shown_over_damage, other.shown_over_damage),
            (&mut self.sound_not_shown, other.sound_not_shown),
            (&mut self.tracer_right, other.tracer_right),
            (&mut self.ibtracert_right, other.ibtracert_right),
        ];
        for (sum, count) in pairs {
            *sum += count;
        }
        self.errors.extend(other.errors);
    }
}

/// The parts of the fabric that the injected faults affect.
#[derive(Debug, Default)]
struct Damage {
    /// Faulty egress ports, as node name and port number. A path that leaves a node by such a port crosses the fault.
    ports: BTreeSet<(String, u64)>,
    /// Switches whose own responses are lost. They forward packets, so paths over them are healthy. But the tracer must
    /// not report that it has observed a packet at such a switch.
    silent: BTreeSet<String>,
}

/// Traces paths of a fabric with random faults, on ibsim or on `ibfabric sim`. Faults that misroute packets are
/// injected only on `ibfabric sim`, because ibsim does not support them.
///
/// # Errors
/// Fails if a program cannot be started.
pub fn trial(
    gear: &Gear,
    is_ibsim: bool,
    seed: u64,
    directory: &Path,
) -> Result<Tally, StageError> {
    fs::create_dir_all(directory)?;
    let mut rng = Rng::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let plan = Plan::of(KINDS[(seed % KINDS.len() as u64) as usize]);
    let fabric = plan.fabric().map_err(|error| StageError::Failed(error.to_string()))?;
    let kind = if is_ibsim { Kind::Ibsim } else { Kind::Ibfabric(gear.ibfabric.clone()) };
    let mut scene = Scene::open(gear, &kind, &fabric, &gear.debian, directory)?;
    let opensm = scene.manage_by_opensm(&manager::Options::default())?;
    let lids: BTreeSet<u16> = scene
        .lids()?
        .into_iter()
        .filter(|(guid, _)| {
            fabric
                .find_port_guid(*guid)
                .is_some_and(|port| !fabric.node(fabric.port(port).node).kind.is_switch())
        })
        .map(|(_, lid)| lid)
        .collect();
    drop(opensm);
    let all = lids.iter().flat_map(|&from| lids.iter().map(move |&to| (from, to)));
    let all: Vec<(u16, u16)> = all.filter(|(from, to)| from != to).collect();
    let step = all.len().div_ceil(PAIRS).max(1);
    let pairs: Vec<(u16, u16)> = all.into_iter().skip(rng.below(step)).step_by(step).collect();
    let mut text = String::new();
    for (from, to) in &pairs {
        writeln!(text, "{from} {to}").expect("writing to a string succeeds");
    }
    let file = scene.directory.join("pairs");
    fs::write(&file, text)?;
    let mut paths = Vec::new();
    for &(from, to) in &pairs {
        paths.push(shown(&mut scene, (from, to))?.unwrap_or_default());
    }
    let damage = damage(&mut scene, &mut rng, is_ibsim)?;
    let file = file.display().to_string();
    let found =
        json(&tracer(&scene, &[&["--pairs", &file, "--json", "-v"][..], &HASTE].concat())?)?;
    let traces = found["traces"].as_array().cloned().unwrap_or_default();
    let mut tally = Tally::default();
    for ((pair, path), trace) in pairs.iter().zip(&paths).zip(&traces) {
        let is_shown = shown(&mut scene, *pair)?.is_some();
        let what = format!("seed {seed} {pair:?} {damage:?}");
        judge(&mut tally, path, &damage, (trace, is_shown), &what);
    }
    if traces.len() != pairs.len() {
        tally.errors.push(format!(
            "seed {seed}: the tracer printed {} of {} traces",
            traces.len(),
            pairs.len()
        ));
    }
    drop(scene.close());
    Ok(tally)
}

/// Compares the tracer's verdict on a path with the faults that the path crosses.
fn judge(
    tally: &mut Tally,
    path: &[(String, u64)],
    damage: &Damage,
    (trace, is_shown): (&Value, bool),
    what: &str,
) {
    let is_over = path.iter().any(|(node, port)| damage.ports.contains(&(node.clone(), *port)));
    let hops = trace["hops"].as_array().map_or(&[][..], Vec::as_slice);
    let claims = |hop: &&Value| {
        let is_silent = damage.silent.contains(hop["name"].as_str().unwrap_or_default());
        is_silent
            && matches!(hop["verdict"].as_str(), Some("validated" | "seen" | "seen_by_launch"))
    };
    if let Some(hop) = hops.iter().find(claims) {
        tally.errors.push(format!("{what} is observed at a switch that does not respond: {hop}"));
    }
    let judgement = trace["judgement"].as_str().unwrap_or_default();
    tally.paths += 1;
    match (is_over, judgement) {
        (true, "good") => {
            tally.good_over_damage += 1;
            tally.ibtracert_right += usize::from(!is_shown);
            tally.errors.push(format!("{what} crosses a fault, but is reported as good: {trace}"));
        }
        (true, "bad") => {
            tally.bad_over_damage += 1;
            tally.tracer_right += usize::from(is_shown);
        }
        (true, _) => tally.unproven_over_damage += 1,
        (false, "good") => tally.sound_good += 1,
        (false, "bad") => {
            tally.innocents += 1;
            tally.errors.push(format!("{what} crosses no fault, but is reported as bad: {trace}"));
        }
        (false, _) => tally.sound_unproven += 1,
    }
    tally.damaged += usize::from(is_over);
    tally.shown_over_damage += usize::from(is_over && is_shown);
    tally.sound_not_shown += usize::from(!is_over && !is_shown);
}

/// Runs `ibtracert`. Returns each node name of the printed path with the number of its egress port. Returns `None` if
/// `ibtracert` does not print the path completely.
fn shown(
    scene: &mut Scene<'_>,
    (from, to): (u16, u16),
) -> Result<Option<Vec<(String, u64)>>, StageError> {
    let (answer, _) = scene.run_client(&patient(&format!("ibtracert {from} {to}")))?;
    let name = |line: &str| line.split('"').nth(1).unwrap_or_default().to_owned();
    let (mut at, mut path, mut is_whole) = (String::new(), Vec::new(), false);
    for line in answer.output.lines() {
        if line.starts_with("From ") {
            at = name(line);
        } else if let Some(rest) = line.strip_prefix('[') {
            let out = rest.split(']').next().and_then(|text| text.parse().ok()).unwrap_or(0);
            path.push((std::mem::replace(&mut at, name(line)), out));
        } else if line.starts_with("To ") {
            path.push((at.clone(), 0));
            is_whole = true;
        }
    }
    Ok(is_whole.then_some(path))
}

/// Injects up to three random faults.
fn damage(scene: &mut Scene<'_>, rng: &mut Rng, is_ibsim: bool) -> Result<Damage, StageError> {
    let fabric = scene.fabric;
    let switches: Vec<_> = fabric.nodes().filter(|(_, node)| node.kind.is_switch()).collect();
    let own = scene.seat.node.clone();
    let mut damage = Damage::default();
    for _ in 0..rng.below(4) {
        let (id, node) = switches[rng.below(switches.len())];
        let name = node.name.clone();
        let shown = |node: &ib_topology::Node| node.description.clone();
        let number = 1 + rng.below(usize::from(node.ports)) as u8;
        let Some(port) = fabric.port_id(id, number) else { continue };
        let Some(peer) = fabric.peer(port) else { continue };
        let (port, next, enters) = (number, fabric.node(peer.node), peer.number);
        if next.name == own {
            continue;
        }
        match rng.below(if is_ibsim { 2 } else { 3 }) {
            0 => {
                if damage.ports.contains(&(shown(node), u64::from(port))) {
                    continue;
                }
                scene.order(Order::Unlink(&name, port))?;
                damage.ports.insert((shown(node), port.into()));
                damage.ports.insert((shown(next), enters.into()));
            }
            1 if is_ibsim => {
                scene.order(Order::Error(&name, 0, 100))?;
                damage.silent.insert(shown(node));
            }
            _ if is_ibsim => {}
            _ => {
                let other = port % node.ports + 1;
                scene.order(Order::Misroute(&name, port, other))?;
                damage.ports.insert((shown(node), port.into()));
            }
        }
    }
    Ok(damage)
}
