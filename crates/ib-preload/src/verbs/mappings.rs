//! Mapped address ranges of the process, from `/proc/self/maps`. Only mapped ranges can be
//! registered.

use std::ops::Range;

/// Returns true if the whole address range is mapped and readable, and also writable if
/// `is_written` is true. If `/proc` cannot be read, returns true for every range.
pub(super) fn is_mapped(range: Range<usize>, is_written: bool) -> bool {
    match std::fs::read_to_string("/proc/self/maps") {
        Ok(maps) => covers(&maps, range, is_written),
        Err(_) => true,
    }
}

fn covers(maps: &str, range: Range<usize>, is_written: bool) -> bool {
    let mut next = range.start;
    for line in maps.lines() {
        let Some((mapped, flags)) = mapping(line) else { continue };
        if mapped.end <= next {
            continue;
        }
        let is_allowed = flags.starts_with(if is_written { "rw" } else { "r" });
        if mapped.start > next || !is_allowed {
            return false;
        }
        next = mapped.end;
        if next >= range.end {
            return true;
        }
    }
    false
}

/// Returns the address range and the flags in a line of `/proc/self/maps`.
fn mapping(line: &str) -> Option<(Range<usize>, &str)> {
    let mut words = line.split(' ');
    let (start, end) = words.next()?.split_once('-')?;
    let start = usize::from_str_radix(start, 16).ok()?;
    let end = usize::from_str_radix(end, 16).ok()?;
    Some((start..end, words.next()?))
}

#[cfg(test)]
mod tests;
