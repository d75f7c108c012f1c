//! Parses the forwarding tables that different programs print, and compares them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ib_topology::Fabric;
use ib_types::Guid;

use super::expect;
use super::program::Question;

/// For each switch, the output port of each LID that has a route.
pub type Tables = BTreeMap<Guid, BTreeMap<u16, u8>>;

/// Number of LIDs in a block of an LFT.
pub const BLOCK: u16 = 64;

/// Parses the output of `dump_lfts` or `ibroute`, or OpenSM's `opensm-lfts.dump`.
///
/// LIDs without a route, and text that is not a table entry, are skipped.
#[must_use]
pub fn parse(text: &str) -> Tables {
    let mut tables = Tables::new();
    let mut switch = None;
    for line in text.lines() {
        if line.starts_with("Unicast lids") {
            let guid = line.split(" guid 0x").nth(1).and_then(|rest| rest.split(' ').next());
            switch = guid.and_then(|hex| u64::from_str_radix(hex, 16).ok()).map(Guid);
            if let Some(guid) = switch {
                tables.entry(guid).or_default();
            }
        } else if let Some(guid) = switch
            && let Some((lid, port)) = entry(line)
            && port != 255
        {
            tables.entry(guid).or_default().insert(lid, port);
        }
    }
    tables
}

fn entry(line: &str) -> Option<(u16, u8)> {
    let mut words = line.strip_prefix("0x")?.split_ascii_whitespace();
    let lid = u16::from_str_radix(words.next()?, 16).ok()?;
    Some((lid, words.next()?.parse().ok()?))
}

/// Returns a `smpdump` query for the last LFT block of each switch if `dump_lfts` omits this block.
///
/// If the highest LID is the only LID of the last block, `dump_lfts` does not read this block. Each element contains
/// the switch's GUID, the highest LID and the query. [`first_entry`] parses the response.
#[must_use]
pub fn last_block(fabric: &Fabric, node: &str, expected: &Tables) -> Vec<(Guid, u16, Question)> {
    let top = expected.values().filter_map(|table| table.keys().last()).max();
    let Some(&lid) = top.filter(|&top| top % BLOCK == 0) else { return Vec::new() };
    let Some(start) = expect::seat_port(fabric, node) else { return Vec::new() };
    let routes = expect::directed_routes(fabric, start).into_iter();
    let switches = routes.filter(|&(id, _)| fabric.node(id).kind.is_switch());
    let question = |route: &str| Question::new(&format!("smpdump -D {route} 0x19 {}", lid / BLOCK));
    switches.map(|(id, route)| (fabric.node(id).guid, lid, question(&route))).collect()
}

/// Parses the output port of the first LID in the block that `smpdump` prints.
#[must_use]
pub fn first_entry(smpdump: &str) -> Option<u8> {
    smpdump.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok())
}

/// Returns the first differences between OpenSM's and the simulator's tables; an empty text if the tables are equal.
#[must_use]
pub fn differences(expected: &Tables, found: &Tables) -> String {
    differences_between(["OpenSM", "the simulator"], expected, found)
}

/// Returns the first differences between two sets of tables with the given names; an empty text if they are equal.
#[must_use]
pub fn differences_between(names: [&str; 2], expected: &Tables, found: &Tables) -> String {
    let [first, second] = names;
    let mut text = String::new();
    let mut count = 0;
    let guids = expected.keys().chain(found.keys().filter(|guid| !expected.contains_key(guid)));
    for guid in guids {
        let (Some(a), Some(b)) = (expected.get(guid), found.get(guid)) else {
            let who = if expected.contains_key(guid) { first } else { second };
            write!(text, "\n  only {who} has the switch {guid}")
                .expect("writing to a string succeeds");
            continue;
        };
        let lids = a.keys().chain(b.keys().filter(|lid| !a.contains_key(lid)));
        for lid in lids.filter(|lid| a.get(lid) != b.get(lid)) {
            count += 1;
            if count <= 5 {
                let shown = |port: Option<&u8>| port.map_or("none".to_owned(), ToString::to_string);
                let (a, b) = (shown(a.get(lid)), shown(b.get(lid)));
                write!(text, "\n  {guid} LID {lid}: {first} has port {a}, {second} {b}")
                    .expect("writing to a string succeeds");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests;
