//! `ibfabric-levels.dump`: the service level of the paths between every pair of switches.
//!
//! ```text
//! # from switch      to switch          SL
//! 0x0002c90000200000 0x0002c90000200001 0
//! ```

use std::io::{self, Write};

use ib_topology::ParseError;
use ib_topology::text::{Fault, Line, Lines, checked};
use ib_types::Guid;

use super::Loaded;
use crate::layers::Layers;
use crate::subnet::Subnet;

/// Writes `ibfabric-levels.dump`.
///
/// # Errors
/// Fails if writing to the output fails.
pub fn write(out: &mut dyn Write, subnet: &Subnet<'_>, layers: &Layers) -> io::Result<()> {
    writeln!(out, "# from switch      to switch          SL")?;
    for (from, source) in subnet.switch_ids().zip(subnet.switches()) {
        for (to, destination) in subnet.switch_ids().zip(subnet.switches()) {
            let level = layers.level(from, to).get();
            writeln!(out, "{} {} {level}", source.guid, destination.guid)?;
        }
    }
    Ok(())
}

/// Reads `ibfabric-levels.dump` for a subnet. The file may omit the pair of a switch and itself, which then has SL 0.
///
/// # Errors
/// Fails on the first malformed line, and if a pair of two switches of the subnet is missing.
pub fn read(file: &str, bytes: &[u8], subnet: &Subnet<'_>) -> Result<Loaded<Layers>, ParseError> {
    let text = checked(file, bytes)?;
    let switches = subnet.switches().len();
    let mut levels = vec![0; switches * switches];
    let mut known = vec![false; switches * switches];
    let mut skipped = 0;
    for line in Lines::new(text, 0, 1) {
        let Some((from, to, level)) = entry(line).map_err(|fault| fault.at(file))? else {
            continue;
        };
        match (subnet.find_switch(from), subnet.find_switch(to)) {
            (Some(from), Some(to)) => {
                levels[from.index() * switches + to.index()] = level;
                known[from.index() * switches + to.index()] = true;
            }
            _ => skipped += 1,
        }
    }
    let missing = known.iter().filter(|&&known| !known).count().saturating_sub(switches);
    if missing > 0 {
        let line = text.lines().count() as u32 + 1;
        let location = ib_topology::text::Location { source: 0, line, column: 1 };
        let message = format!(
            "found the end of the file, expected the levels of {missing} more pairs of switches of \
             this subnet"
        );
        return Err(location.fault(message).at(file));
    }
    let note =
        format!("pairs with a switch that is not in the subnet: {skipped}; they are skipped");
    let notes = (skipped > 0).then_some(note).into_iter().collect();
    Ok(Loaded { value: Layers::per_pair(switches, levels), notes })
}

fn entry(mut line: Line<'_>) -> Result<Option<(Guid, Guid, u8)>, Fault> {
    line.skip_blanks();
    if matches!(line.peek(), None | Some(b'#')) {
        return Ok(None);
    }
    let mut guid = || -> Result<Guid, Fault> {
        line.demand("0x")?;
        let guid = line.whole_guid("the GUID of a switch")?;
        line.skip_blanks();
        Ok(guid)
    };
    let (from, to) = (guid()?, guid()?);
    let level = line.decimal("a service level", 0, 15)? as u8;
    line.end("the end of the line")?;
    Ok(Some((from, to, level)))
}
