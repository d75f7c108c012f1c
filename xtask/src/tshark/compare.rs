//! Compares the fields that tshark reads from a capture file with the expected fields.

use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use super::Expected;

/// The result of a comparison.
pub(super) struct Outcome {
    packets: usize,
    compared: usize,
    pub(super) checksums: usize,
    /// Number of checksums that tshark does not show.
    pub(super) hidden: usize,
    pub(super) faults: Vec<String>,
}

impl Outcome {
    pub(super) fn print(&self, what: &str) {
        let Self { packets, compared, checksums, hidden, faults } = self;
        let differ = faults.len();
        eprintln!("{what}: {packets} packets, {compared} fields compared, {differ} differ");
        eprintln!("{checksums} checksums compared; tshark does not show {hidden} other checksums");
    }
}

/// Compares the fields that tshark has read (`rows`) with the expected fields. If `shows_all` returns true for a
/// packet, tshark must show all checksums of this packet.
pub(super) fn compare(
    expected: &[Expected],
    rows: &[Vec<String>],
    names: &[&str],
    shows_all: impl Fn(&Expected) -> bool,
) -> Result<Outcome, Box<dyn std::error::Error>> {
    if rows.len() != expected.len() {
        let (found, wanted) = (rows.len(), expected.len());
        return Err(format!("tshark reads {found} packets: expected {wanted}").into());
    }
    let packets = rows.len();
    let mut outcome = Outcome { packets, compared: 0, checksums: 0, hidden: 0, faults: Vec::new() };
    for (number, (packet, row)) in expected.iter().zip(rows).enumerate() {
        let all = shows_all(packet);
        for (name, found) in names.iter().zip(row) {
            let Some(wanted) = packet.get(name) else { continue };
            if name.ends_with(".crc") {
                if found.is_empty() && !all {
                    outcome.hidden += 1;
                    continue;
                }
                outcome.checksums += 1;
            }
            outcome.compared += 1;
            if !same(wanted, found) {
                let about = packet.get("frame.comment").map(|about| format!(" ({about})"));
                outcome.faults.push(format!(
                    "packet {}{}: {name} is {found:?}: expected {wanted:?}",
                    number + 1,
                    about.unwrap_or_default()
                ));
            }
        }
    }
    Ok(outcome)
}
/// Returns the names of all expected fields.
pub(super) fn fields(expected: &[Expected]) -> Vec<&'static str> {
    let mut names: Vec<_> = expected.iter().flat_map(|packet| packet.keys().copied()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns the fields of each packet as tshark reads them.
pub(super) fn read(
    file: &Path,
    names: &[&str],
) -> Result<Vec<Vec<String>>, Box<dyn std::error::Error>> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(file).args(["-o", "ip.check_checksum:TRUE", "-n"]);
    // Disables two dissectors of tshark whose heuristics match arbitrary payloads.
    command.args(["--disable-protocol", "rpcordma", "--disable-protocol", "infiniband.eoib"]);
    command.args(["-T", "fields", "-E", "separator=|", "-E", "occurrence=f"]);
    for name in names {
        command.args(["-e", name]);
    }
    let output = command.output().map_err(missing)?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let lines = String::from_utf8(output.stdout)?;
    Ok(lines.lines().map(|line| line.split('|').map(str::to_owned).collect()).collect())
}

/// Returns a message that explains why tshark cannot be run.
#[allow(clippy::needless_pass_by_value, reason = "`map_err` needs this signature")]
pub(super) fn missing(error: std::io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => {
            "cannot run tshark: it is not installed; install Debian's package tshark".to_owned()
        }
        _ => format!("cannot run tshark: {error}"),
    }
}

/// Compares numbers independently of their format, and all other values as text.
fn same(wanted: &str, found: &str) -> bool {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    match (number(wanted), number(found)) {
        (Some(wanted), Some(found)) => wanted == found,
        _ => wanted == found,
    }
}
