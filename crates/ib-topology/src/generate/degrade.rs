//! Drops random switches and links from the plan of a fabric.

use super::error::GenerateError;
use super::plan::Plan;
use ib_types::rng::Rng;

/// Identifier of the stream of random numbers that selects the dropped switches. Each stream is derived from the seed.
const SWITCH_STREAM: u64 = 1;

/// Identifier of the random stream that selects the dropped links.
const LINK_STREAM: u64 = 2;

/// Drops a fraction of the switches, then a fraction of the remaining links between switches.
pub(super) fn degrade(
    plan: &mut Plan,
    seed: u64,
    drop_switches: f64,
    drop_links: f64,
) -> Result<(), GenerateError> {
    let switches = plan.switch_count();
    let dropped = share(drop_switches, switches);
    let mut order: Vec<usize> = (0..switches).collect();
    for &mut index in Rng::stream(seed, SWITCH_STREAM).draw(&mut order, dropped) {
        plan.drop_switch(index);
    }
    if dropped > 0 {
        let mut switch_links = std::mem::take(&mut plan.switch_links);
        switch_links.retain(|ends| ends.iter().all(|end| !plan.is_dropped(end.node())));
        plan.switch_links = switch_links;
        let mut host_links = std::mem::take(&mut plan.host_links);
        host_links.retain(|[_, switch]| !plan.is_dropped(switch.node()));
        plan.host_links = host_links;
        if plan.host_links.is_empty() {
            return Err(GenerateError::NothingLeft { dropped, switches });
        }
    }
    let mut order: Vec<usize> = (0..plan.switch_links.len()).collect();
    let count = share(drop_links, order.len());
    let mut keep = vec![true; order.len()];
    for &mut index in Rng::stream(seed, LINK_STREAM).draw(&mut order, count) {
        keep[index] = false;
    }
    let mut keep = keep.into_iter();
    plan.switch_links.retain(|_| keep.next().unwrap_or(true));
    Ok(())
}

/// Returns `fraction` times `count`, rounded to the nearest integer. Halves such as 2.5 are rounded up.
fn share(fraction: f64, count: usize) -> usize {
    (fraction * count as f64).round() as usize
}
