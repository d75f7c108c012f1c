//! The conditions of a pure tree: all switches of a rank have the same links up and down.

use super::super::EngineError;
use super::groups::Groups;
use super::ranking::Ranks;
use super::{switch_name, unsuitable};
use crate::subnet::{Subnet, SwitchId};

/// Compares every switch with the first switch of its rank.
///
/// All switches of a rank must have the same number of neighbours above, and the same number of links to each of them.
/// All switches except leaves must also have the same number of neighbours below. Like OpenSM, this function compares
/// only the links to the first neighbour below.
///
/// # Errors
/// Fails if a switch differs from the first one of its rank.
pub(super) fn validate(
    subnet: &Subnet<'_>,
    ranks: &Ranks,
    groups: &Groups,
) -> Result<(), EngineError> {
    let mut first_of_rank: Vec<Option<SwitchId>> = vec![None; usize::from(ranks.leaf) + 1];
    for id in subnet.switch_ids() {
        let Some(slot) = first_of_rank.get_mut(usize::from(ranks.of(id))) else { continue };
        let Some(model) = *slot else {
            *slot = Some(id);
            continue;
        };
        if let Some(difference) = difference(groups, model, id, ranks.of(id) == ranks.leaf) {
            return unsuitable(format_args!(
                "{} of rank {} has {}, and {} of the same rank has {}; expected the same of both, \
                 as in any pure fat tree, or a list of root GUIDs",
                switch_name(subnet, id),
                ranks.of(id),
                difference.found,
                switch_name(subnet, model),
                difference.expected,
            ));
        }
    }
    Ok(())
}

struct Difference {
    found: String,
    expected: String,
}

fn difference(
    groups: &Groups,
    model: SwitchId,
    switch: SwitchId,
    is_leaf: bool,
) -> Option<Difference> {
    let counted = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    };
    let neighbours = |way: &str, expected: usize, found: usize| {
        let text = |count| format!("{} {way}", counted(count, "neighbour"));
        (expected != found).then(|| Difference { found: text(found), expected: text(expected) })
    };
    let links = |way: &str, expected: u8, found: u8| {
        let text = |count| format!("{} to a neighbour {way}", counted(usize::from(count), "link"));
        (expected != found).then(|| Difference { found: text(found), expected: text(expected) })
    };
    let (up, model_up) = (groups.up(switch), groups.up(model));
    let (down, model_down) = (groups.down(switch), groups.down(model));
    let width = |position: usize| groups.groups[position].links;
    neighbours("above", model_up.len(), up.len())
        .or_else(|| if is_leaf { None } else { neighbours("below", model_down.len(), down.len()) })
        .or_else(|| {
            let expected = width(model_up.clone().next()?);
            up.clone().find_map(|position| links("above", expected, width(position)))
        })
        .or_else(|| {
            let (expected, found) = (model_down.clone().next()?, down.clone().next()?);
            if is_leaf { None } else { links("below", width(expected), width(found)) }
        })
}

#[cfg(test)]
mod tests;
