//! What is written to files.

use super::LONGEST;
use crate::address::PathAddress;
use crate::client::Policy;

/// The most attempts to connect a path that can be asked for, as with Linux.
const MOST_ATTEMPTS: u32 = 9999;

/// Returns what was written as text, without the space around it.
pub(super) fn text(bytes: &[u8]) -> Result<&str, String> {
    if bytes.len() > LONGEST {
        return Err(format!("{} bytes: expected at most {LONGEST}", bytes.len()));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "expected text of UTF-8".to_owned())?;
    Ok(text.trim())
}

/// Takes what has something done.
pub(super) fn one(text: &str) -> Result<(), String> {
    expect(text == "1", text, "1")
}

/// Takes what sets statistics to zero: 0 as IBTRS, or 1 as Linux has it.
pub(super) fn reset(text: &str) -> Result<(), String> {
    expect(matches!(text, "0" | "1"), text, "0 or 1")
}

/// Takes the most attempts to connect a path; -1 stands for any number.
pub(super) fn attempts(text: &str) -> Result<Option<u32>, String> {
    let number = if text == "-1" { Some(None) } else { text.parse().ok().map(Some) };
    let number = number.filter(|number| number.is_none_or(|number| number <= MOST_ATTEMPTS));
    number.ok_or_else(|| wrong(text, &format!("-1 to {MOST_ATTEMPTS}")))
}

/// Takes a policy: its number, its name or its short name.
pub(super) fn policy(text: &str) -> Result<Policy, String> {
    match text.to_ascii_lowercase().as_str() {
        "0" | "rr" | "round-robin" => Ok(Policy::RoundRobin),
        "1" | "mi" | "min-inflight" => Ok(Policy::MinInflight),
        "2" | "ml" | "min-latency" => Ok(Policy::MinLatency),
        _ => Err(wrong(text, "round-robin, min-inflight, min-latency, rr, mi, ml, 0, 1 or 2")),
    }
}

/// Takes the ends of a path.
pub(super) fn address(text: &str) -> Result<PathAddress, String> {
    text.parse().map_err(|error: crate::address::AddressError| error.to_string())
}

fn expect(is_right: bool, text: &str, expected: &str) -> Result<(), String> {
    if is_right { Ok(()) } else { Err(wrong(text, expected)) }
}

fn wrong(text: &str, expected: &str) -> String {
    format!("found `{}`, expected {expected}", text.escape_debug())
}

#[cfg(test)]
mod tests;
