//! Brings a fabric up, and checks links, tables and traces.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use ib_topology::Fabric;
use ib_types::Guid;

use super::ours::{Options, Ours};
use super::scene::{Scene, patient};
use crate::clients::expect;
use crate::clients::fabrics::Plan;
use crate::clients::stage::StageError;
use crate::clients::tables::{self, Tables};

/// Maximum number of LID pairs that are traced.
pub const PAIRS: usize = 200;

/// The state of the fabric that is expected after the bring-up.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    /// The expected fabric. It differs from the simulator's fabric in cases with a deliberate error.
    pub fabric: &'a Fabric,
    /// The plan of the fabric, which contains the speed of the links and the LMC.
    pub plan: Plan,
    /// The routing engine with which `ibfabric route` computes tables.
    pub engine: &'a str,
    /// A LID that is traced in addition to those of the HCAs.
    pub also: Option<u16>,
}

/// Brings up the fabric of a scene, and checks it.
///
/// # Errors
/// Fails if a program cannot be started, or if the SM does not come up.
pub fn comes_up(
    scene: &mut Scene<'_>,
    engine: &str,
    expected: &Expected<'_>,
) -> Result<(), StageError> {
    let options = Options { engine, lmc: expected.plan.lmc, ..Options::default() };
    let mut ours = scene.manage(&options)?;
    all_active(scene, expected)?;
    let computed = routes(scene, &ours, expected)?;
    let lids = scene.lids()?;
    check_lids(scene, &lids, expected);
    same_tables(scene, &computed)?;
    traces(scene, &lids, expected)?;
    scene.check(ours.is_alive(), || {
        format!("ibfabric sm has ended unexpectedly: {}", ours.output())
    });
    let engine = ours.engine();
    if engine != expected.engine {
        scene.checked.note = format!("routed with {engine}");
    }
    Ok(())
}

/// Checks that both ends of every link are active, and that `ibnetdiscover` finds all nodes and links.
pub(super) fn all_active(scene: &mut Scene<'_>, expected: &Expected<'_>) -> Result<(), StageError> {
    let (answer, kept) = scene.run_client(&patient("iblinkinfo"))?;
    let found = expect::link_ends(&answer.output, expected.plan.speed);
    let ends = 2 * expected.fabric.link_count();
    scene.check(found == ends, || {
        let speed = expected.plan.speed;
        let kept = kept.display();
        format!("iblinkinfo shows {found} ends of active {speed} links, not {ends} ({kept})")
    });
    let (answer, kept) = scene.run_client(&patient("ibnetdiscover"))?;
    let faults = expect::discovered(expected.fabric, &answer.output);
    scene.check(faults.is_empty(), || format!("{} ({})", faults.join("\n"), kept.display()));
    Ok(())
}

/// Computes the tables with `ibfabric route`. Checks that the SM has used the same engine.
fn routes(
    scene: &mut Scene<'_>,
    ours: &Ours,
    expected: &Expected<'_>,
) -> Result<Tables, StageError> {
    let lmc = expected.plan.lmc.to_string();
    let net = scene.directory.join("net");
    let net = net.display().to_string();
    let arguments =
        ["route", &net, "--engine", expected.engine, "-l", &lmc, "--dump-dir", "computed"];
    let json = scene.run_own(&[&arguments[..], &["--json"]].concat())?;
    let value: serde_json::Value = serde_json::from_str(&json).map_err(|error| {
        StageError::Failed(format!("ibfabric route prints invalid JSON: {error}: {json}"))
    })?;
    let (engine, found) = (value["engine"].as_str().unwrap_or("none"), ours.engine());
    scene.check(engine == found, || {
        format!("the SM routed with {found}, ibfabric route with {engine}")
    });
    let dump = fs::read_to_string(scene.directory.join("computed/opensm-lfts.dump"))?;
    Ok(tables::parse(&dump))
}

/// Checks that every end port has a unique LID.
fn check_lids(scene: &mut Scene<'_>, lids: &BTreeMap<Guid, u16>, expected: &Expected<'_>) {
    let fabric = expected.fabric;
    let linked = fabric.nodes().map(|(id, node)| {
        let ports = fabric.ports_of(id).filter(|(_, port)| port.peer.is_some()).count();
        if node.kind.is_switch() { ports.min(1) } else { ports }
    });
    let (ports, found) = (linked.sum::<usize>(), lids.values().filter(|&&lid| lid != 0).count());
    scene.check(ports == found, || format!("{found} end ports have LIDs, not {ports}"));
    let mut own: Vec<u16> = lids.values().copied().collect();
    own.sort_unstable();
    let twice = own.windows(2).find(|pair| pair[0] == pair[1]);
    scene.check(twice.is_none(), || {
        format!("two end ports have LID {}", twice.map_or(0, |pair| pair[0]))
    });
}

/// Checks that the switches' tables equal those that `ibfabric route` has computed.
fn same_tables(scene: &mut Scene<'_>, computed: &Tables) -> Result<(), StageError> {
    let (answer, kept) = scene.run_client(&patient("dump_lfts"))?;
    let mut found = tables::parse(&answer.output);
    let node = scene.seat.node.clone();
    for (guid, lid, question) in tables::last_block(scene.fabric, &node, computed) {
        let (answer, kept) = scene.run_client(&question)?;
        let port = tables::first_entry(&answer.output);
        scene.check(port.is_some(), || format!("{question} shows no table ({})", kept.display()));
        if let Some(port) = port.filter(|&port| port != 255) {
            found.entry(guid).or_default().insert(lid, port);
        }
    }
    scene.check(computed.values().any(|table| !table.is_empty()), || {
        "ibfabric route has computed no tables".to_owned()
    });
    let names = ["ibfabric route", "the switches"];
    let differences = tables::differences_between(names, computed, &found);
    scene.check(differences.is_empty(), || {
        format!(
            "the tables of ibfabric route and of dump_lfts differ:{differences}\n{}",
            kept.display()
        )
    });
    Ok(())
}

/// Traces random pairs of the HCAs' LIDs. If there are few LIDs, traces all pairs.
///
/// Pairs of switches are not traced, because up/down and fat-tree routing leave some pairs of switches without a path.
/// This is also the case in OpenSM.
fn traces(
    scene: &mut Scene<'_>,
    lids: &BTreeMap<Guid, u16>,
    expected: &Expected<'_>,
) -> Result<(), StageError> {
    let is_switch = |guid: &Guid| {
        let node = expected.fabric.find_guid(*guid);
        node.is_some_and(|id| expected.fabric.node(id).kind.is_switch())
    };
    let lids: Vec<(u16, u16)> = lids
        .iter()
        .filter(|(guid, _)| !is_switch(guid))
        .flat_map(|(_, &base)| (0..1 << expected.plan.lmc).map(move |more| (base, base + more)))
        .chain(expected.also.map(|lid| (lid, lid)))
        .collect();
    let pairs = pairs(&lids, PAIRS);
    let file = scene.directory.join("pairs");
    let mut text = String::new();
    for &((_, from), (_, to)) in &pairs {
        writeln!(text, "{from} {to}").expect("writing to a string succeeds");
    }
    fs::write(&file, text)?;
    let question = patient("ibtracert --ports-file ../pairs");
    let (answer, kept) = scene.run_client(&question)?;
    let mut found = traced(&answer.output);
    let mut missing = Vec::new();
    for &((from_base, from), (to_base, to)) in &pairs {
        // `ibtracert` prints only the base LIDs of a path's two ports. With an LMC above 0, several paths have the same
        // base LIDs. Each pair of LIDs is matched with one of these paths.
        match found.get_mut(&(from_base, to_base)) {
            Some(count) if *count > 0 => *count -= 1,
            _ => missing.push(format!("{from} to {to}")),
        }
    }
    scene.check(missing.is_empty() && answer.code == Some(0), || {
        let first = missing.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
        let (count, status, kept) = (missing.len(), answer.code, kept.display());
        let last = answer.errors.lines().last().unwrap_or_default();
        format!(
            "ibtracert misses {count} of {} paths: {first}; exit status {status:?}, {last} ({kept})",
            pairs.len()
        )
    });
    Ok(())
}

/// In [`pairs`], the base LID of a port and one of the port's LIDs. In [`traced`], the base LIDs of a path's two ports.
type Address = (u16, u16);

/// Returns all pairs of LIDs of different ports. If there are too many, returns `most` random pairs.
fn pairs(lids: &[Address], most: usize) -> Vec<(Address, Address)> {
    let all = || {
        let pairs = lids.iter().flat_map(|&from| lids.iter().map(move |&to| (from, to)));
        pairs.filter(|(from, to)| from.0 != to.0)
    };
    if lids.len() * lids.len() <= 2 * most {
        return all().take(most).collect();
    }
    // A pair with the last LID is always included. The other pairs are chosen with xorshift.
    let mut chosen = BTreeSet::from([(lids[0], lids[lids.len() - 1])]);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        lids[(state % lids.len() as u64) as usize]
    };
    while chosen.len() < most {
        let (from, to) = (random(), random());
        if from.0 != to.0 {
            chosen.insert((from, to));
        }
    }
    chosen.into_iter().collect()
}

/// Counts the complete paths that `ibtracert` prints, by the base LIDs of their ends.
fn traced(text: &str) -> BTreeMap<Address, usize> {
    let lid = |line: &str| line.split_once(" lid ")?.1.split('-').next()?.parse().ok();
    let mut ways = BTreeMap::new();
    let mut from: Option<u16> = None;
    for line in text.lines() {
        if line.starts_with("From ") {
            from = lid(line);
        } else if line.starts_with("To ")
            && let (Some(from), Some(to)) = (from.take(), lid(line))
        {
            *ways.entry((from, to)).or_default() += 1;
        }
    }
    ways
}

#[cfg(test)]
mod tests;
