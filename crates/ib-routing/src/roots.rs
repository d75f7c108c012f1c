//! The root switches, which are configured or detected by their distances from the channel adapters.

use std::collections::BTreeMap;

use ib_types::Guid;

use crate::hops::{HopMatrix, NO_HOPS};
use crate::subnet::{Attachment, Subnet, SwitchId};

/// Returns the switches with the given root GUIDs. A root GUID is the node GUID of a switch, or a node or port GUID of
/// a channel adapter or router. The latter selects the switches to which this node or port is linked.
///
/// The result contains each switch once, in ascending order. Notes report GUIDs that are not in the subnet.
pub(crate) fn from_guids(
    subnet: &Subnet<'_>,
    guids: &[Guid],
    notes: &mut Vec<String>,
) -> Vec<SwitchId> {
    let mut roots = std::collections::BTreeSet::new();
    for &guid in guids {
        let found = selected_switches(subnet, guid);
        if found.is_empty() {
            notes.push(format!("root GUID {guid} is not in the subnet; it is skipped"));
        }
        roots.extend(found);
    }
    roots.into_iter().collect()
}

fn selected_switches(subnet: &Subnet<'_>, guid: Guid) -> Vec<SwitchId> {
    if let Some(switch) = subnet.find_switch(guid) {
        return vec![switch];
    }
    let attached = |id| match subnet.end_port(id).attachment {
        Attachment::Port(switch, _) | Attachment::Management(switch) => Some(switch),
        Attachment::Direct => None,
    };
    if let Some(node) = subnet.fabric().find_guid(guid) {
        let ports = subnet.fabric().ports_of(node).filter(|(_, port)| !port.guid.is_zero());
        return ports
            .filter_map(|(_, port)| subnet.find_end_port(port.guid))
            .filter_map(attached)
            .collect();
    }
    subnet.find_end_port(guid).and_then(attached).into_iter().collect()
}

/// Result of root detection.
pub(crate) struct Detected {
    pub(crate) roots: Vec<SwitchId>,
    /// Lines with the histograms of hops. Switches with the same histogram form a group and share a line; roots come
    /// first, then the largest groups.
    pub(crate) histogram: Vec<String>,
}

/// Number of bars of a histogram: one for each number of hops from 0 to 63.
const BARS: usize = 64;

/// Maximum number of groups of switches that the notes list.
const GROUPS_SHOWN: usize = 6;

/// Detects the root switches, from which nearly all channel adapters and routers have the same distance.
///
/// The histogram of a switch counts channel adapters and routers by their hops from this switch. The switch is a root
/// if one bar has more than 90 % of them, and all other bars have at most 5 %.
pub(crate) fn detect(subnet: &Subnet<'_>, hops: &HopMatrix) -> Detected {
    let mut adapters = vec![0u32; subnet.switches().len()];
    for end_port in subnet.end_ports() {
        if let Attachment::Port(switch, _) = end_port.attachment {
            adapters[switch.index()] += 1;
        }
    }
    let total: u32 = adapters.iter().sum();
    let (high, low) = (f64::from(total) * 0.9, f64::from(total) * 0.05);
    let mut roots = Vec::new();
    let mut groups: BTreeMap<Vec<u32>, (usize, bool)> = BTreeMap::new();
    for id in subnet.switch_ids() {
        let mut bars = vec![0u32; BARS];
        for (&distance, &count) in hops.least_row(id).iter().zip(&adapters) {
            if distance != NO_HOPS && usize::from(distance) < BARS {
                bars[usize::from(distance)] += count;
            }
        }
        let over = |limit: f64| bars.iter().filter(|&&bar| f64::from(bar) > limit).count();
        let is_root = over(high) == 1 && over(low) == 1;
        if is_root {
            roots.push(id);
        }
        while bars.last() == Some(&0) {
            bars.pop();
        }
        let group = groups.entry(bars).or_insert((0, is_root));
        group.0 += 1;
    }
    Detected { roots, histogram: describe(groups, total) }
}

fn describe(groups: BTreeMap<Vec<u32>, (usize, bool)>, total: u32) -> Vec<String> {
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, (switches, is_root))| (!is_root, std::cmp::Reverse(*switches)));
    let mut lines = vec![format!("histogram of the {total} hosts by hops from the switches:")];
    for (bars, (switches, is_root)) in groups.iter().take(GROUPS_SHOWN) {
        let bars: Vec<String> = bars
            .iter()
            .enumerate()
            .filter(|&(_, &bar)| bar > 0)
            .map(|(hops, &bar)| {
                let percent = f64::from(bar) * 100.0 / f64::from(total.max(1));
                format!("{bar} ({percent:.1} %) at {hops}")
            })
            .collect();
        let verdict = if *is_root { "root" } else { "not a root" };
        let switches = if *switches == 1 { "1 switch" } else { &format!("{switches} switches") };
        lines.push(format!("  {switches}, {verdict}: {}", bars.join(", ")));
    }
    if groups.len() > GROUPS_SHOWN {
        let more: usize = groups[GROUPS_SHOWN..].iter().map(|(_, (switches, _))| switches).sum();
        let switches = if more == 1 { "switch" } else { "switches" };
        lines.push(format!("  {more} more {switches}, with other distances"));
    }
    lines
}
