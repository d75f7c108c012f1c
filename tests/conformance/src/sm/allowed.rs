//! Permitted differences between SA responses of OpenSM and of `ibfabric sm`, with reasons.

use crate::clients::normal::{Allowed, CAME_BY, Mask, PROCESS};

const BLOCK: &str = "OpenSM sends the block number in the byte order of its machine, and saquery prints it \
                     without conversion; ibfabric sm sends it in big-endian order, as IBTA specifies";

const PROMISE: &str = "the SMs have different capabilities and response times";

const DOWN: &str = "of a port that is down, OpenSM returns only the states, and zeros otherwise; ibfabric sm \
                    returns the values of the port";

/// The differences that [`without_order`] removes, and the reasons why they are permitted.
pub const ALSO: &[(&str, &str)] = &[
    ("the order of the records of a table", "records have no order"),
    ("PortInfo of a port that is down, except for its states", DOWN),
];

/// The permitted differences. Apart from these and [`ALSO`], responses must be equal.
pub const ALLOWED: &[Allowed] = &[
    PROCESS,
    CAME_BY,
    Allowed {
        programs: &["saquery"],
        mask: Mask::AnyNumber("ActCount"),
        reason: "the SMs count activity differently",
    },
    Allowed {
        programs: &["saquery PIR"],
        mask: Mask::Line("mad_dump_linkwidth: bad width 0"),
        reason: DOWN,
    },
    Allowed {
        programs: &["saquery PKTR", "saquery --smkey 1 PKTR"],
        mask: Mask::Rest("Block"),
        reason: BLOCK,
    },
    Allowed {
        programs: &["saquery CPI", "saquery -c"],
        mask: Mask::Rest("Capability mask"),
        reason: PROMISE,
    },
    Allowed {
        programs: &["saquery CPI", "saquery -c"],
        mask: Mask::Rest("Response time value"),
        reason: PROMISE,
    },
];

/// Sorts the records of a response. If a record contains the PortInfo of a port that is down, removes all fields of the
/// PortInfo except `LinkState` and `PhysLinkState`.
#[must_use]
pub fn without_order(text: &str) -> String {
    let (errors, lines): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.starts_with("stderr: "));
    let starts = |line: &str| line.ends_with(" dump:") && !line.starts_with(char::is_whitespace);
    let first = lines.iter().position(|line| starts(line)).unwrap_or(lines.len());
    let (head, records) = lines.split_at(first);
    let records = records.chunk_by(|_, next| !starts(next));
    let mut records: Vec<Vec<&str>> = records.map(of_record).collect();
    records.sort_unstable();
    [head, &records.concat(), &errors].concat().join("\n")
}

/// Returns the lines of a record that are compared.
fn of_record<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let is = |line: &str, name: &str| line.trim_start().starts_with(name);
    let down = lines.iter().any(|line| is(line, "LinkState:") && line.ends_with(".Down"));
    if !down {
        return lines.to_vec();
    }
    // Keeps the fields before the PortInfo, which identify the port. Of the PortInfo, keeps only the logical and the
    // physical state.
    let info = lines.iter().position(|line| is(line, "PortInfo dump:")).unwrap_or(lines.len());
    let (id, info) = lines.split_at(info);
    let states = info.iter().filter(|line| is(line, "LinkState:") || is(line, "PhysLinkState:"));
    id.iter().chain(states).copied().collect()
}

#[cfg(test)]
mod tests;
