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

/// One of the two SMs of a handover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// Debian's OpenSM.
    OpenSm,
    /// `ibfabric sm`.
    Ours,
}

/// Parameters of a handover.
#[derive(Clone, Copy, Debug)]
pub struct Play {
    /// The SM that is master when the other SM starts.
    pub first: Who,
    /// The SM priorities of OpenSM and of `ibfabric sm`.
    pub priorities: [u8; 2],
    /// The SM that runs on the first HCA, which has the lowest GUID. The other SM runs on the last HCA.
    pub lower: Who,
    /// The SM that must be master after both SMs have started.
    pub master: Who,
}

impl Who {
    /// Returns the other one of the two SMs.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::OpenSm => Self::Ours,
            Self::Ours => Self::OpenSm,
        }
    }

    /// Returns the name of the SM program.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenSm => "opensm",
            Self::Ours => "ibfabric sm",
        }
    }
}

impl Play {
    /// Returns the name of the case.
    #[must_use]
    pub fn name(&self) -> String {
        let [theirs, ours] = self.priorities;
        let (first, second) = (self.first.name(), self.first.other().name());
        let order = if theirs == ours { "by GUID" } else { "by priority" };
        let what = if self.master == self.first { "remains master" } else { "hands over" };
        format!("{first} {what} when {second} starts, {order}; then the master is killed")
    }
}

/// The handovers, each tested on both simulators.
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

/// Time limit for the election of the master, and for the detection that the master is gone. A standby SM, of either
/// kind, polls the master every ten seconds. After four failed polls, it considers the master gone.
const PATIENCE: Duration = Duration::from_secs(100);

/// A running SM of either kind.
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

    /// Returns how often the SM has brought the subnet up.
    fn ups(&self) -> usize {
        match self {
            Self::OpenSm(manager) => manager.ups(),
            Self::Ours(ours) => ours.ups(),
        }
    }
}

/// The port at which an SM runs.
#[derive(Clone, Debug)]
struct ManagerPort {
    node: String,
    lid: u16,
    /// The GUID of the SM's port, in the format of `sminfo`.
    guid: String,
}

/// Runs a handover.
///
/// # Errors
/// Fails if a program cannot be started.
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
    let up = scene.wait_until(PATIENCE, |_| Ok(earlier.ups() > 0))?;
    scene.check(up, || format!("{} does not come up as the only SM", one.name()));
    if !up {
        return Ok(());
    }
    let lids = scene.lids()?;
    let port_of = |who: Who| {
        let (node, guid) = node(who);
        let lid = lids.get(&ib_types::Guid(*guid)).copied().unwrap_or_default();
        ManagerPort { node: node.clone(), lid, guid: format!("{guid:#x}") }
    };
    let [mine, others] = [port_of(one), port_of(one.other())];
    // The client runs on a node without an SM, so that no SM receives queries from its own node.
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
        scene.check(manager.is_alive(), || format!("{} has ended unexpectedly", who.name()));
    }
    if let Running::OpenSm(manager) = if standby == one { &earlier } else { &later } {
        let log = manager.log();
        scene.check(log.contains("Entering STANDBY state"), || {
            "OpenSM's log does not show that OpenSM enters the standby state".to_owned()
        });
    }

    if waits_in_vain {
        excused(scene, &mut later);
    }
    // The master is killed. The standby SM takes over.
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

/// Starts an SM on a node.
fn start(scene: &mut Scene<'_>, who: Who, node: &str, play: &Play) -> Result<Running, StageError> {
    let [theirs, ours] = play.priorities;
    Ok(match who {
        Who::OpenSm => {
            // OpenSM sweeps every 10 seconds, its default. In most other cases, it sweeps only after traps.
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

/// Returns true if the SM is an OpenSM that has been standby.
fn stood_by(manager: &Running) -> bool {
    matches!(manager, Running::OpenSm(opensm) if opensm.log().contains("Entering STANDBY state"))
}

/// Stops an OpenSM that has become master without a sweep, and checks in its log that it waited for a TrapRepress.
/// Records a note for the report.
///
/// This happens only on ibsim, and only if OpenSM was standby before the handover, which depends on timing. A standby
/// OpenSM reports its priority to the master with trap 144. It then waits for a TrapRepress, which ibsim drops. When
/// OpenSM exits, it logs that this trap is outstanding.
fn excused(scene: &mut Scene<'_>, manager: &mut Running) {
    let Running::OpenSm(opensm) = manager else { return };
    let ended = opensm.stop();
    let log = opensm.log();
    let waited = |line: &str| line.contains("evicting entry") && line.ends_with("mgmt class 0x1)");
    scene.check(ended && log.lines().any(waited), || {
        "OpenSM is the master and does not sweep, although it does not wait for a TrapRepress"
            .to_owned()
    });
    scene.checked.note = "ibsim dropped the TrapRepress that OpenSM waits for".to_owned();
}

/// Waits until an SM reports that it is master, and until a distant port has this SM's LID as its `SMLid`.
fn governs(
    scene: &mut Scene<'_>,
    who: Who,
    at: &ManagerPort,
    limit: Duration,
) -> Result<bool, StageError> {
    let is = is(scene, who, at, "MASTER", limit)?;
    let client = patient("smpquery -D portinfo 0");
    let mut shown = String::new();
    let told = scene.wait_until(limit, |scene| {
        let (answer, _) = scene.run_client(&client)?;
        shown = expect::field(&answer.output, "SMLid").unwrap_or("none").to_owned();
        Ok(shown == at.lid.to_string())
    })?;
    scene.check(told, || {
        format!("expected SMLid {} ({}) at a distant port, found {shown}", at.lid, who.name())
    });
    Ok(is && told)
}

/// Waits until an SM reports that it is standby.
fn waits(
    scene: &mut Scene<'_>,
    who: Who,
    at: &ManagerPort,
    limit: Duration,
) -> Result<bool, StageError> {
    is(scene, who, at, "STANDBY", limit)
}

fn is(
    scene: &mut Scene<'_>,
    who: Who,
    at: &ManagerPort,
    state: &str,
    limit: Duration,
) -> Result<bool, StageError> {
    let question = patient(&format!("sminfo {}", at.lid));
    let mut said = String::new();
    let good = scene.wait_until(limit, |scene| {
        let (answer, _) = scene.run_client(&question)?;
        said = format!("{}{}", answer.output, answer.errors);
        Ok(answer.output.contains(&format!("SMINFO_{state}")) && answer.output.contains(&at.guid))
    })?;
    scene.check(good, || {
        let last = said.lines().last().unwrap_or("nothing");
        format!(
            "{} at LID {} is not {state} after {limit:?}: sminfo prints {last}",
            who.name(),
            at.lid
        )
    });
    Ok(good)
}

/// Returns the node names and port GUIDs of the first and the last HCA, the lower GUID first.
fn ends(fabric: &Fabric) -> [(String, u64); 2] {
    let adapters = adapters(fabric);
    let mut ends = [adapters[0].clone(), adapters[adapters.len() - 1].clone()];
    ends.sort_by_key(|(_, guid)| *guid);
    ends
}

/// Returns an HCA in the middle of the list of HCAs.
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
