//! Compares SA responses of `ibfabric sm` with OpenSM's.

use super::allowed::{ALLOWED, without_order};
use super::pair::Pair;
use super::questions;
use super::scene::{Checked, Outcome, Scene};
use crate::clients::normal::{difference, normal_but};
use crate::clients::questions::Actors;
use crate::clients::stage::StageError;

/// For each query: the query, the response without the parts that may differ, and the file with the whole response.
type Answers = Vec<(String, String, std::path::PathBuf)>;

/// Sends the same queries to OpenSM and to `ibfabric sm`, and compares the responses.
///
/// # Errors
/// Fails if a program cannot be started.
pub fn run(pair: &Pair<'_>) -> Outcome {
    let ([theirs, ours], mut checked) = pair.look(ask)?;
    compare(&theirs, &ours, pair.plan.lmc, &mut checked);
    Ok(checked)
}

fn ask(scene: &mut Scene<'_>) -> Result<Answers, StageError> {
    let lids = scene.lids()?;
    let actors = Actors::choose(scene.fabric, &lids).ok_or(StageError::NoActors)?;
    let mut answers = Answers::new();
    for question in questions::all(&actors) {
        let (answer, kept) = scene.run_client(&question)?;
        let text = without_order(&normal_but(&question, &answer, ALLOWED));
        answers.push((question.to_string(), text, kept));
    }
    Ok(answers)
}

/// Returns true if the query is for LinkRecords of a LID that is not a multiple of 2^LMC. The LID of a switch may be
/// such a LID, because switches have LMC 0. OpenSM returns no LinkRecords for it.
fn is_for_unaligned_link(question: &str, lmc: u8) -> bool {
    let words = question.split_once("saquery LR ").map_or("", |(_, words)| words);
    let lid = words.split(['/', ' ']).next().and_then(|lid| lid.parse::<u16>().ok());
    lid.is_some_and(|lid| lid % (1 << lmc) != 0)
}

fn compare(theirs: &Answers, ours: &Answers, lmc: u8, checked: &mut Checked) {
    for ((question, a, kept_a), (other, b, kept_b)) in theirs.iter().zip(ours) {
        if question != other {
            checked.check(false, || {
                format!("the queries differ: `{question}` for OpenSM, `{other}` for ibfabric sm")
            });
            return;
        }
        let has_records = [a, b].map(|text| text.contains("FromLID"));
        if is_for_unaligned_link(question, lmc) && has_records == [false, true] {
            checked.check(true, String::new);
            continue;
        }
        let difference = difference(a, b);
        checked.check(difference.is_none(), || {
            let difference = difference.unwrap_or_default();
            let (a, b) = (kept_a.display(), kept_b.display());
            format!("{question}\n{difference}\nwhole responses: {a} and {b}")
        });
    }
    checked.check(!theirs.is_empty() && theirs.len() == ours.len(), || {
        format!("expected {} responses as from OpenSM, found {}", theirs.len(), ours.len())
    });
    checked.note = format!("{} responses", ours.len());
}
