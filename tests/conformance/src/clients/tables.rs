//! Forwarding tables, whoever wrote them, in one form.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ib_types::Guid;

/// The out port of every LID that has one, of every switch.
pub type Tables = BTreeMap<Guid, BTreeMap<u16, u8>>;

/// How many LIDs a block of a table has.
pub const BLOCK: u16 = 64;

/// Reads what `dump_lfts` and `ibroute` print and what OpenSM writes as `opensm-lfts.dump`.
///
/// LIDs without a route are left out, and so is whatever else the text says.
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

/// Returns the first differences; empty when the tables are the same.
#[must_use]
pub fn differences(expected: &Tables, found: &Tables) -> String {
    let mut text = String::new();
    let mut count = 0;
    let guids = expected.keys().chain(found.keys().filter(|guid| !expected.contains_key(guid)));
    for guid in guids {
        let (Some(a), Some(b)) = (expected.get(guid), found.get(guid)) else {
            let who =
                if expected.contains_key(guid) { "only OpenSM" } else { "only the simulator" };
            write!(text, "\n  {who} has the switch {guid}").expect("writing to a string succeeds");
            continue;
        };
        let lids = a.keys().chain(b.keys().filter(|lid| !a.contains_key(lid)));
        for lid in lids.filter(|lid| a.get(lid) != b.get(lid)) {
            count += 1;
            if count <= 5 {
                let shown = |port: Option<&u8>| port.map_or("none".to_owned(), ToString::to_string);
                let (a, b) = (shown(a.get(lid)), shown(b.get(lid)));
                write!(text, "\n  {guid} LID {lid}: OpenSM has port {a}, the simulator {b}")
                    .expect("writing to a string succeeds");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests;
