//! Handover between a real OpenSM and `ibfabric sm`, in both directions.

use std::time::Duration;

use ib_topology::Fabric;

use super::ours::{self, Ours};
use super::scene::{Scene, patient};
use super::up::{self, Expected};
use crate::clients::expect;
use crate::clients::fabrics::Plan;
use crate::clients::manager::{self, Manager};
use crate::clients::stage::StageError;

/// Who of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// Debian's OpenSM.
    OpenSm,
    /// `ibfabric sm`.
    Ours,
}

/// What is played.
#[derive(Clone, Copy, Debug)]
pub struct Play {
    /// Who is the master when the other one starts.
    pub first: Who,
    /// The priorities of OpenSM and of ours.
    pub priorities: [u8; 2],
    /// Who sits on the first adapter, whose GUID is the lowest; the other one is on the last.
    pub lower: Who,
    /// Who is the master when both run.
    pub master: Who,
}

impl Who {
    /// Returns the other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::OpenSm => Self::Ours,
            Self::Ours => Self::OpenSm,
        }
    }

    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenSm => "opensm",
            Self::Ours => "ours",
        }
    }
}

impl Play {
    /// Returns what is played in a few words.
    #[must_use]
    pub fn name(&self) -> String {
        let [theirs, ours] = self.priorities;
        let (first, second) = (self.first.name(), self.first.other().name());
        let order = if theirs == ours { "by GUID" } else { "by priority" };
        let what = if self.master == self.first { "stays" } else { "hands over" };
        format!("{first} {what} when {second} comes, {order}; then the master dies")
    }
}

/// What is played, each on both simulators.
pub const PLAYS: [Play; 6] = [
    play(Who::OpenSm, [5, 10], Who::OpenSm, Who::Ours),
    play(Who::Ours, [10, 5], Who::Ours, Who::OpenSm),
    play(Who::OpenSm, [7, 7], Who::OpenSm, Who::OpenSm),
    play(Who::Ours, [7, 7], Who::Ours, Who::Ours),
    play(Who::OpenSm, [7, 7], Who::Ours, Who::Ours),
    play(Who::Ours, [7, 7], Who::OpenSm, Who::OpenSm),
];

const fn play(first: Who, priorities: [u8; 2], lower: Who, master: Who) -> Play {
    Play { first, priorities, lower, master }
}

/// How long managers may take to agree, or to notice that the master is dead: both ask it every ten
/// seconds, four times.
const PATIENCE: Duration = Duration::from_secs(100);

/// A manager of one kind or the other.
enum Running {
    OpenSm(Manager),
    Ours(Ours),
}

impl Running {
    fn is_alive(&mut self) -> bool {
        match self {
            Self::OpenSm(manager) => manager.is_alive(),
            Self::Ours(ours) => ours.is_alive(),
        }
    }

    /// How often it brought the subnet up.
    fn ups(&self) -> usize {
        match self {
            Self::OpenSm(manager) => manager.ups(),
            Self::Ours(ours) => ours.ups(),
        }
    }
}

/// Where a manager sits.
#[derive(Clone, Debug)]
struct Place {
    node: String,
    lid: u16,
    /// The GUID of its port, as `sminfo` shows it.
    guid: String,
}

/// Plays it.
///
/// # Errors
/// Fails when a program cannot be run.
pub fn run(
    scene: &mut Scene<'_>,
    plan: Plan,
    play: Play,
    on_ibsim: bool,
) -> Result<(), StageError> {
    let fabric = scene.fabric;
    let [first, last] = ends(fabric);
    let node = |who: Who| if who == play.lower { &first } else { &last };
    let one = play.first;
    let mut earlier = start(scene, one, &node(one).0, &play)?;
    let up = scene.becomes(PATIENCE, |_| Ok(earlier.ups() > 0))?;
    scene.check(up, || format!("{} does not come up alone", one.name()));
    if !up {
        return Ok(());
    }
    let lids = scene.lids()?;
    let place = |who: Who| {
        let (node, guid) = node(who);
        let lid = lids.get(&ib_types::Guid(*guid)).copied().unwrap_or_default();
        Place { node: node.clone(), lid, guid: format!("{guid:#x}") }
    };
    let [mine, others] = [place(one), place(one.other())];
    // A client on a node of neither, so that no manager is asked by itself.
    let (second, _) = middle(fabric);
    scene.seat.node = second;
    governs(scene, one, &mine, PATIENCE)?;

    let mut later = start(scene, one.other(), &others.node, &play)?;
    let stays = play.master == one;
    let [(master, master_at), (standby, standby_at)] = if stays {
        [(one, &mine), (one.other(), &others)]
    } else {
        [(one.other(), &others), (one, &mine)]
    };
    let agreed = waits(scene, standby, standby_at, PATIENCE)?;
    let waits_in_vain = on_ibsim && !stays && stood_by(&later);
    if agreed && waits_in_vain {
        is(scene, master, master_at, "MASTER", PATIENCE)?;
    } else if agreed {
        governs(scene, master, master_at, PATIENCE)?;
    }
    let expected = Expected { fabric, plan, engine: "minhop", also: None };
    up::all_active(scene, &expected)?;
    for (who, manager) in [(one, &mut earlier), (one.other(), &mut later)] {
        scene.check(manager.is_alive(), || format!("{} has ended", who.name()));
    }
    if let Running::OpenSm(manager) = if standby == one { &earlier } else { &later } {
        let log = manager.log();
        scene.check(log.contains("Entering STANDBY state"), || {
            "OpenSM's log does not say that it stands by".to_owned()
        });
    }

    if waits_in_vain {
        excused(scene, &mut later);
    }
    // The master is killed: the one that stood by takes the subnet.
    let rest = if stays {
        drop(earlier);
        later
    } else {
        drop(later);
        earlier
    };
    governs(scene, standby, standby_at, PATIENCE)?;
    up::all_active(scene, &expected)?;
    drop(rest);
    Ok(())
}

/// Starts a manager on a node.
fn start(scene: &mut Scene<'_>, who: Who, node: &str, play: &Play) -> Result<Running, StageError> {
    let [theirs, ours] = play.priorities;
    Ok(match who {
        Who::OpenSm => {
            // It looks for changes as it does by default, not as other runs have it.
            let priority = theirs.to_string();
            let more = ["-p", &priority, "-s", "10"];
            let options = manager::Options { more: &more, ..manager::Options::default() };
            Running::OpenSm(scene.launch_opensm("opensm", Some(node), &options)?)
        }
        Who::Ours => {
            let options = ours::Options { priority: ours, ..ours::Options::default() };
            Running::Ours(scene.launch_ours("ours", Some(node), &options)?)
        }
    })
}

/// Says whether a manager is an OpenSM that has stood by.
fn stood_by(manager: &Running) -> bool {
    matches!(manager, Running::OpenSm(opensm) if opensm.log().contains("Entering STANDBY state"))
}

/// Notes why an OpenSM on ibsim becomes the master and does not sweep, and checks that this is so.
///
/// One that stands by tells the master of its priority by trap 144, and does nothing more until that
/// is repressed. ibsim swallows the TrapRepress. Whether it stood by before it was given the subnet is
/// a matter of time. At its end it says what it still waited for.
fn excused(scene: &mut Scene<'_>, manager: &mut Running) {
    let Running::OpenSm(opensm) = manager else { return };
    let ended = opensm.stop();
    let log = opensm.log();
    let waited = |line: &str| line.contains("evicting entry") && line.ends_with("mgmt class 0x1)");
    scene.check(ended && log.lines().any(waited), || {
        "OpenSM is the master and does not sweep, though it waits for no TrapRepress".to_owned()
    });
    scene.checked.note = "ibsim swallowed the TrapRepress that OpenSM waits for".to_owned();
}

/// Waits until a manager says that it is the master, and a port far away was told of it.
fn governs(
    scene: &mut Scene<'_>,
    who: Who,
    at: &Place,
    limit: Duration,
) -> Result<bool, StageError> {
    let is = is(scene, who, at, "MASTER", limit)?;
    let client = patient("smpquery -D portinfo 0");
    let mut shown = String::new();
    let told = scene.becomes(limit, |scene| {
        let (answer, _) = scene.hear(&client)?;
        shown = expect::field(&answer.output, "SMLid").unwrap_or("none").to_owned();
        Ok(shown == at.lid.to_string())
    })?;
    scene.check(told, || format!("a port has SMLid {shown}, not {} of {}", at.lid, who.name()));
    Ok(is && told)
}

/// Waits until a manager says that it stands by.
fn waits(scene: &mut Scene<'_>, who: Who, at: &Place, limit: Duration) -> Result<bool, StageError> {
    is(scene, who, at, "STANDBY", limit)
}

fn is(
    scene: &mut Scene<'_>,
    who: Who,
    at: &Place,
    state: &str,
    limit: Duration,
) -> Result<bool, StageError> {
    let question = patient(&format!("sminfo {}", at.lid));
    let mut said = String::new();
    let good = scene.becomes(limit, |scene| {
        let (answer, _) = scene.hear(&question)?;
        said = format!("{}{}", answer.output, answer.errors);
        Ok(answer.output.contains(&format!("SMINFO_{state}")) && answer.output.contains(&at.guid))
    })?;
    scene.check(good, || {
        let last = said.lines().last().unwrap_or("nothing");
        format!(
            "{} at LID {} is not {state} after {limit:?}: sminfo says {last}",
            who.name(),
            at.lid
        )
    });
    Ok(good)
}

/// Returns the names and the GUIDs of the ports of the first and the last adapter, the lower one first.
fn ends(fabric: &Fabric) -> [(String, u64); 2] {
    let adapters = adapters(fabric);
    let mut ends = [adapters[0].clone(), adapters[adapters.len() - 1].clone()];
    ends.sort_by_key(|(_, guid)| *guid);
    ends
}

/// Returns an adapter between them.
fn middle(fabric: &Fabric) -> (String, u64) {
    let adapters = adapters(fabric);
    adapters[adapters.len() / 2].clone()
}

fn adapters(fabric: &Fabric) -> Vec<(String, u64)> {
    let nodes = fabric.nodes().filter(|(_, node)| !node.kind.is_switch());
    let linked = nodes.filter_map(|(id, node)| {
        let (_, port) = fabric.ports_of(id).find(|(_, port)| port.peer.is_some())?;
        Some((node.name.clone(), port.guid.0))
    });
    linked.collect()
}
