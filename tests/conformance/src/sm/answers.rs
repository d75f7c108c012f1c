//! Subnet administration answers as OpenSM's does.

use std::path::Path;

use ib_topology::Fabric;

use super::allowed::{ALLOWED, without_order};
use super::ours;
use super::questions;
use super::scene::{Checked, Gear, Outcome, Scene};
use crate::clients::fabrics::Plan;
use crate::clients::manager;
use crate::clients::normal::{difference, normal_but};
use crate::clients::questions::Actors;
use crate::clients::server::Kind;
use crate::clients::stage::StageError;

/// What was answered: the questions, the answers without what may differ, and where they are.
type Answers = Vec<(String, String, std::path::PathBuf)>;

/// Asks OpenSM and ours the same, each on a simulator of its own.
///
/// `ours_on` is the fabric of our manager's simulator, which is the same unless a difference is to be
/// noticed.
///
/// # Errors
/// Fails when a program cannot be run.
pub fn run(
    gear: &Gear,
    kind: &Kind,
    plan: Plan,
    [theirs_on, ours_on]: [&Fabric; 2],
    directory: &Path,
) -> Outcome {
    let (theirs, ours) = std::thread::scope(|scope| {
        let theirs = scope.spawn(|| {
            let mut scene =
                Scene::open(gear, kind, theirs_on, &gear.own, &directory.join("opensm"))?;
            let options = manager::Options { lmc: plan.lmc, ..manager::Options::default() };
            let mut opensm = scene.manage_by_opensm(&options)?;
            let answers = ask(&mut scene)?;
            scene.check(opensm.is_alive(), || "OpenSM died of the questions".to_owned());
            drop(opensm);
            Ok::<_, StageError>((answers, scene.close()))
        });
        let ours = || {
            let mut scene = Scene::open(gear, kind, ours_on, &gear.own, &directory.join("ours"))?;
            let options = ours::Options { lmc: plan.lmc, ..ours::Options::default() };
            let mut ours = scene.manage(&options)?;
            let answers = ask(&mut scene)?;
            scene.check(ours.is_alive(), || {
                format!("ibfabric sm died of the questions: {}", ours.said())
            });
            drop(ours);
            Ok::<_, StageError>((answers, scene.close()))
        };
        let ours = ours();
        (theirs.join().expect("a scene does not panic"), ours)
    });
    let ((theirs, mut checked), (ours, own)) = (theirs?, ours?);
    checked.checks += own.checks;
    checked.faults.extend(own.faults);
    compare(&theirs, &ours, &mut checked);
    Ok(checked)
}

fn ask(scene: &mut Scene<'_>) -> Result<Answers, StageError> {
    let lids = scene.lids()?;
    let actors = Actors::choose(scene.fabric, &lids).ok_or(StageError::NoActors)?;
    let mut answers = Answers::new();
    for question in questions::all(&actors) {
        let (answer, kept) = scene.hear(&question)?;
        let text = without_order(&normal_but(&question, &answer, ALLOWED));
        answers.push((question.to_string(), text, kept));
    }
    Ok(answers)
}

fn compare(theirs: &Answers, ours: &Answers, checked: &mut Checked) {
    for ((question, a, kept_a), (other, b, kept_b)) in theirs.iter().zip(ours) {
        if question != other {
            checked.check(false, || format!("OpenSM was asked `{question}`, ours `{other}`"));
            return;
        }
        let difference = difference(a, b);
        checked.check(difference.is_none(), || {
            let difference = difference.unwrap_or_default();
            let (a, b) = (kept_a.display(), kept_b.display());
            format!("{question}\n{difference}\nthe whole: {a} and {b}")
        });
    }
    checked.check(!theirs.is_empty() && theirs.len() == ours.len(), || {
        format!("OpenSM gave {} answers, ours {}", theirs.len(), ours.len())
    });
    checked.note = format!("{} answers", ours.len());
}
