//! Parsers of values that are written to files. Their errors are the reasons of a [`TreeError`](super::TreeError).

use super::MAX_WRITE;
use crate::address::PathAddress;
use crate::client::Policy;

/// Maximum value of `max_reconnect_attempts`, as in Linux.
const MAX_ATTEMPTS: u32 = 9999;

/// Decodes written bytes as UTF-8, and removes surrounding white space.
pub(super) fn text(bytes: &[u8]) -> Result<&str, String> {
    if bytes.len() > MAX_WRITE {
        return Err(format!("found {} bytes, expected at most {MAX_WRITE}", bytes.len()));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "found invalid UTF-8".to_owned())?;
    Ok(text.trim())
}

/// Accepts only `1`, the value that starts the action of a file.
pub(super) fn action(text: &str) -> Result<(), String> {
    expect(text == "1", text, "1")
}

/// Accepts only the values that reset statistics: `0` as in IBTRS, `1` as in Linux.
pub(super) fn reset(text: &str) -> Result<(), String> {
    expect(matches!(text, "0" | "1"), text, "0 or 1")
}

/// Parses the maximum number of attempts to connect a path. `-1` means no limit.
pub(super) fn attempts(text: &str) -> Result<Option<u32>, String> {
    let number = if text == "-1" { Some(None) } else { text.parse().ok().map(Some) };
    let number = number.filter(|number| number.is_none_or(|number| number <= MAX_ATTEMPTS));
    number.ok_or_else(|| wrong(text, &format!("-1 to {MAX_ATTEMPTS}")))
}

/// Parses a policy. It can be written as number, name or short name.
pub(super) fn policy(text: &str) -> Result<Policy, String> {
    match text.to_ascii_lowercase().as_str() {
        "0" | "rr" | "round-robin" => Ok(Policy::RoundRobin),
        "1" | "mi" | "min-inflight" => Ok(Policy::MinInflight),
        "2" | "ml" | "min-latency" => Ok(Policy::MinLatency),
        _ => Err(wrong(text, "round-robin, min-inflight, min-latency, rr, mi, ml, 0, 1 or 2")),
    }
}

/// Parses the addresses of a path.
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
