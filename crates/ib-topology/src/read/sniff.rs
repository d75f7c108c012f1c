//! Finds out the format of a fabric file.

use super::Format;
use crate::text::Lines;

/// Returns the format that the first telling line belongs to; ibsim's when none does.
pub(super) fn format(text: &str) -> Format {
    let mut is_first = true;
    for line in Lines::new(text, 0, 1) {
        let line = line.text().trim_ascii_start();
        if line.is_empty() {
            continue;
        }
        if is_first && line.starts_with('{') {
            return Format::SubnetList;
        }
        is_first = false;
        if is_ibnetdiscover(line) {
            return Format::Ibnetdiscover;
        }
        if IBSIM_ONLY.iter().any(|keyword| line.starts_with(keyword)) {
            return Format::Ibsim;
        }
    }
    Format::Ibsim
}

/// What lines start with that ibnetdiscover never prints.
const IBSIM_ONLY: [&str; 9] =
    ["Hca", "hcaguid", "include", "do ", "width", "speed", "extspeed", "module", "@"];

fn is_ibnetdiscover(line: &str) -> bool {
    if line.starts_with('[') {
        let declaration = line.split('#').next().unwrap_or_default();
        return declaration.contains("](");
    }
    line.starts_with("# Topology file: generated on")
        || (line.starts_with("switchguid=") && line.contains('('))
}

#[cfg(test)]
mod tests;
