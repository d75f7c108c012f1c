//! Permitted differences between SA responses of OpenSM and of `ibfabric sm`, with reasons.

use crate::clients::normal::{Allowed, CAME_BY, Mask, PROCESS};

const BLOCK: &str = "OpenSM sends the number of a block of P_Keys in its machine's byte order, and \
                     saquery shows it as it comes; ours sends it as IBTA has it";

const PROMISE: &str = "each manager says what it can do, and how fast it answers";

const DOWN: &str = "OpenSM keeps nothing of a port that is down but its states, and says that the \
                    rest is zero; ours says what the port has";

/// What is allowed beside [`ALLOWED`], in words; [`without_order`] sees to it.
pub const ALSO: &[(&str, &str)] = &[
    ("the order of the records of a table", "it has none"),
    ("PortInfo of a port that is down, but for its states", DOWN),
];

/// The differences that are allowed; everything else must be the same, but for [`ALSO`].
pub const ALLOWED: &[Allowed] = &[
    PROCESS,
    CAME_BY,
    Allowed {
        programs: &["saquery"],
        mask: Mask::AnyNumber("ActCount"),
        reason: "each manager counts its activity in its own way",
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

/// Puts the records of an answer into an order, and leaves of PortInfo what is there while a port is
/// down.
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

/// Returns the lines of a record that count.
fn of_record<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let is = |line: &str, name: &str| line.trim_start().starts_with(name);
    let down = lines.iter().any(|line| is(line, "LinkState:") && line.ends_with(".Down"));
    if !down {
        return lines.to_vec();
    }
    // The states, and what says which port it is.
    let info = lines.iter().position(|line| is(line, "PortInfo dump:")).unwrap_or(lines.len());
    let (id, info) = lines.split_at(info);
    let states = info.iter().filter(|line| is(line, "LinkState:") || is(line, "PhysLinkState:"));
    id.iter().chain(states).copied().collect()
}

#[cfg(test)]
mod tests;
