//! Detects the format of a fabric file.

use super::port_list::{PROGRESS, is_port_line};
use super::{Format, is_message};
use crate::text::Lines;

/// Finds the first line that can occur in only one format, and returns this format. If there is no such line, the file
/// is an ibsim net file.
pub(super) fn format(text: &str) -> Format {
    let mut is_first = true;
    let mut is_identified = false;
    for line in Lines::new(text, 0, 1) {
        let line = line.text().trim_ascii_start();
        if is_message(line) {
            continue;
        }
        let (Some(&initial), Some(is_letter)) =
            (line.as_bytes().first(), line.as_bytes().first().map(u8::is_ascii_alphabetic))
        else {
            continue;
        };
        if is_first && (line.starts_with(PROGRESS) || is_port_line(line)) {
            return Format::Ibnetdiscover;
        }
        if std::mem::replace(&mut is_first, false) && initial == b'{' {
            return Format::SubnetList;
        }
        match initial {
            b'[' if has_port_guid(line) => return Format::Ibnetdiscover,
            b'#' if line.starts_with("# Topology file: generated on") => {
                return Format::Ibnetdiscover;
            }
            b's' if line.starts_with("switchguid=") && line.contains('(') => {
                return Format::Ibnetdiscover;
            }
            b'@' => return Format::Ibsim,
            _ if !is_letter => {}
            _ if IBSIM_ONLY.iter().any(|keyword| line.starts_with(keyword)) => {
                return Format::Ibsim;
            }
            // ibnetdiscover always prints the node GUID before a node header, so this file is not its output.
            b'S' | b'C' | b'R' if !is_identified => return Format::Ibsim,
            _ => is_identified = true,
        }
    }
    Format::Ibsim
}

/// The beginnings of lines that ibsim net files can contain, but ibnetdiscover never prints.
const IBSIM_ONLY: [&str; 8] =
    ["Hca", "hcaguid", "include", "do ", "width", "speed", "extspeed", "module"];

/// Returns true if a line is a port line, and one of its two port numbers is followed by a GUID in parentheses.
fn has_port_guid(line: &str) -> bool {
    let mut parts = line.splitn(3, '"');
    let own = parts.next().unwrap_or_default();
    let _name = parts.next();
    let remote = parts.next().and_then(|rest| rest.split('#').next()).unwrap_or_default();
    [own, remote].iter().any(|part| part.contains("](") || part.contains("] ("))
}

#[cfg(test)]
mod tests;
