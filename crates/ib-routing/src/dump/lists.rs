//! The list files `guid2lid`, `opensm-ftree-ca-order.dump` and `opensm-updn-roots.dump`.

use std::collections::BTreeMap;
use std::io::{self, Write};

use ib_topology::ParseError;
use ib_topology::text::{Fault, Line, Lines, checked};
use ib_types::{Guid, Lid};

use crate::subnet::{EndPortId, Subnet, SwitchId};

/// Writes `guid2lid`: for every end port, a line with port GUID, first LID and last LID, and an empty line. The port
/// GUIDs are in ascending order.
///
/// Also writes the LID ranges that are reserved for missing ports ([`Subnet::absent_lids`]).
///
/// # Errors
/// Fails if writing to the output fails.
pub fn write_guid2lid(out: &mut dyn Write, subnet: &Subnet<'_>) -> io::Result<()> {
    let mut ranges = subnet.absent_lids().clone();
    for end_port in subnet.end_ports() {
        let first = end_port.base_lid.get();
        ranges.insert(end_port.guid, (first, first + end_port.lids - 1));
    }
    for (guid, (first, last)) in ranges {
        writeln!(out, "{guid} {first:#06x} {last:#06x}\n")?;
    }
    Ok(())
}

/// Reads `guid2lid`, which has the first and last LID of each port GUID.
///
/// # Errors
/// Fails on the first malformed line, and if a GUID is repeated.
pub fn read_guid2lid(file: &str, bytes: &[u8]) -> Result<BTreeMap<Guid, (u16, u16)>, ParseError> {
    let (ranges, errors) = read_cached_guid2lid(file, bytes)?;
    errors.into_iter().next().map_or(Ok(ranges), Err)
}

/// The first and the last LID of each port, by port GUID.
pub type LidRanges = BTreeMap<Guid, (u16, u16)>;

/// Reads the `guid2lid` file in OpenSM's cache directory. As in OpenSM, malformed lines, ranges whose last LID is below
/// the first one, and lines with a repeated GUID are skipped. They are returned as errors.
///
/// # Errors
/// Fails if the file is not UTF-8 text.
pub fn read_cached_guid2lid(
    file: &str,
    bytes: &[u8],
) -> Result<(LidRanges, Vec<ParseError>), ParseError> {
    let (mut ranges, mut errors) = (BTreeMap::new(), Vec::new());
    for line in Lines::new(checked(file, bytes)?, 0, 1) {
        let start = line.location();
        let taken = range(line).and_then(|range| match range {
            Some((guid, _)) if ranges.contains_key(&guid) => {
                Err(start.fault(format!("found GUID {guid} again, expected one line per GUID")))
            }
            Some((guid, range)) => {
                ranges.insert(guid, range);
                Ok(())
            }
            None => Ok(()),
        });
        errors.extend(taken.err().map(|fault| fault.at(file)));
    }
    Ok((ranges, errors))
}

/// A port GUID with its first and last LID.
type Range = (Guid, (u16, u16));

fn range(mut line: Line<'_>) -> Result<Option<Range>, Fault> {
    line.skip_blanks();
    if matches!(line.peek(), None | Some(b'#')) {
        return Ok(None);
    }
    line.demand("0x")?;
    let guid = Guid(line.hexadecimal("a port GUID", u64::MAX)?);
    line.skip_blanks();
    let max = u64::from(Lid::MAX_UNICAST);
    let what = named(line, "the first LID", "the first LID, 0x0 to 0xbfff");
    let first = line.number(what, 0, max)? as u16;
    line.skip_blanks();
    let what = named(line, "the last LID", "the last LID, 0x0 to 0xbfff");
    let last_line = line;
    let last = line.number(what, 0, max)? as u16;
    if last < first {
        return Err(last_line.expected("a last LID that is not below the first one"));
    }
    line.end("the end of the line")?;
    Ok(Some((guid, (first, last))))
}

/// Returns the text `hexadecimal` if the next number starts with `0x`, and the text `decimal` otherwise.
fn named<'n>(mut line: Line<'_>, decimal: &'n str, hexadecimal: &'n str) -> &'n str {
    if line.demand("0x").is_ok() { hexadecimal } else { decimal }
}

/// Writes `opensm-ftree-ca-order.dump`: LID and description of the compute nodes in routing order, with dummies in
/// place of missing compute nodes.
///
/// Fails if writing to the output fails.
pub fn write_ca_order(
    out: &mut dyn Write,
    subnet: &Subnet<'_>,
    order: &[Option<EndPortId>],
) -> io::Result<()> {
    for entry in order {
        match *entry {
            Some(id) => {
                let node = subnet.end_port_node(id);
                writeln!(out, "{:#06x}\t{}", subnet.end_port(id).base_lid, node.description)?;
            }
            None => writeln!(out, "0xFFFF\tDUMMY")?,
        }
    }
    Ok(())
}

/// Writes `opensm-updn-roots.dump`: the GUIDs of the root switches, without leading zeros.
///
/// # Errors
/// Fails if writing to the output fails.
pub fn write_roots(out: &mut dyn Write, subnet: &Subnet<'_>, roots: &[SwitchId]) -> io::Result<()> {
    for &root in roots {
        writeln!(out, "{:#x}", subnet.switch(root).guid)?;
    }
    Ok(())
}
