//! `opensm-lid-matrix.dump`: the hops from every switch to every switch LID, by output port.

use std::io::{self, Write};

use ib_topology::ParseError;
use ib_topology::text::{Fault, Line, Lines, checked};
use ib_types::Lid;

use super::Loaded;
use crate::hops::{HopMatrix, NO_HOPS};
use crate::subnet::{EndPort, Subnet, SwitchId};

/// Writes `opensm-lid-matrix.dump`. The file contains only LIDs of switches, because the hops to a channel adapter are
/// counted only up to its switch.
///
/// # Errors
/// Fails if writing to the output fails.
pub fn write(out: &mut dyn Write, subnet: &Subnet<'_>, hops: &HopMatrix) -> io::Result<()> {
    let mut targets: Vec<(&EndPort, _)> =
        subnet.switch_ids().map(|id| (subnet.end_port(subnet.switch(id).end_port), id)).collect();
    targets.sort_by_key(|(end_port, _)| end_port.base_lid);
    let mut block = Vec::new();
    for (from, switch) in subnet.switch_ids().zip(subnet.switches()) {
        block.clear();
        writeln!(block, "Switch: guid {}", switch.guid)?;
        for &(end_port, to) in &targets {
            if hops.least(from, to) == NO_HOPS {
                continue;
            }
            write!(block, "{:#06x}:", end_port.base_lid)?;
            for port in 0..=switch.ports {
                write!(block, " {:02x}", hops.through(subnet, from, port, to))?;
            }
            writeln!(block, " # portguid {}", end_port.guid)?;
        }
        out.write_all(&block)?;
    }
    Ok(())
}

/// Reads `opensm-lid-matrix.dump` for a subnet.
///
/// A row belongs to the switch with the port GUID in the row. A row without a port GUID belongs to the switch with the
/// LID in the row. Rows for other LIDs and for switches outside the subnet are skipped. Pairs of switches without a row
/// are unreachable. Notes report skipped lines, and switches without rows.
///
/// # Errors
/// Fails on the first malformed line, on a row with more or fewer ports than the switch, and if no row belongs to this
/// subnet.
pub fn read(
    file: &str,
    bytes: &[u8],
    subnet: &Subnet<'_>,
) -> Result<Loaded<HopMatrix>, ParseError> {
    let text = checked(file, bytes)?;
    let blocks = subnet
        .switches()
        .iter()
        .map(|switch| vec![NO_HOPS; (usize::from(switch.ports) + 1) * subnet.switches().len()])
        .collect();
    let rows = vec![false; subnet.switches().len().pow(2)];
    let mut reader = Reader { subnet, blocks, rows, at: None, opened: false, skipped: 0 };
    for line in Lines::new(text, 0, 1) {
        reader.line(line).map_err(|fault| fault.at(file))?;
    }
    if !reader.rows.contains(&true) {
        let location = ib_topology::text::Location { source: 0, line: 1, column: 1 };
        let message =
            "found no hops between switches of this subnet, expected `Switch: guid` and rows";
        return Err(location.fault(message).at(file));
    }
    let mut notes = Vec::new();
    if reader.skipped > 0 {
        let skipped = reader.skipped;
        notes.push(format!("lines for nodes outside the subnet: {skipped}; they are skipped"));
    }
    let rows = reader.rows.chunks(subnet.switches().len());
    let empty = rows.filter(|rows| !rows.contains(&true)).count();
    if empty > 0 {
        notes.push(format!("switches of the subnet without a row in the file: {empty}"));
    }
    Ok(Loaded { value: HopMatrix::explicit(subnet, reader.blocks), notes })
}

struct Reader<'a> {
    subnet: &'a Subnet<'a>,
    blocks: Vec<Vec<u8>>,
    /// Indexed by two switches: true if the file has a row for this pair.
    rows: Vec<bool>,
    at: Option<SwitchId>,
    opened: bool,
    skipped: usize,
}

impl Reader<'_> {
    fn line(&mut self, mut line: Line<'_>) -> Result<(), Fault> {
        line.skip_blanks();
        match line.peek() {
            None | Some(b'#') => Ok(()),
            Some(b'S') if line.eat("Switch:") => {
                line.skip_blanks();
                line.demand("guid 0x")?;
                let guid = line.whole_guid("the GUID of a switch")?;
                self.at = self.subnet.find_switch(guid);
                self.opened = true;
                self.skipped += usize::from(self.at.is_none());
                Ok(())
            }
            Some(_) => self.row(line),
        }
    }

    fn row(&mut self, mut line: Line<'_>) -> Result<(), Fault> {
        let start = line.location();
        line.demand("0x")?;
        let lid = line.hexadecimal("a unicast LID, 1 to bfff", u64::from(Lid::MAX_UNICAST))? as u16;
        line.demand(":")?;
        if !self.opened {
            return Err(start.fault("found a row of hops, expected `Switch: guid` before it"));
        }
        let mut row = Vec::new();
        loop {
            line.skip_blanks();
            if matches!(line.peek(), None | Some(b'#')) {
                break;
            }
            row.push(line.hexadecimal("hops, 00 to ff", 0xff)? as u8);
        }
        let Some(from) = self.at else {
            self.skipped += 1;
            return Ok(());
        };
        let stride = usize::from(self.subnet.switch(from).ports) + 1;
        if row.len() != stride {
            return Err(start.fault(format!(
                "found hops for {} ports, expected {stride}: ports 0 to {}",
                row.len(),
                stride - 1
            )));
        }
        // The entry of port 0 is the minimum over all ports.
        row[0] = row.iter().copied().min().unwrap_or(NO_HOPS);
        match self.target(&mut line, lid)? {
            Some(to) => {
                let block = &mut self.blocks[from.index()];
                block[to.index() * stride..][..stride].copy_from_slice(&row);
                self.rows[from.index() * self.subnet.switches().len() + to.index()] = true;
            }
            None => self.skipped += 1,
        }
        Ok(())
    }

    fn target(&self, line: &mut Line<'_>, lid: u16) -> Result<Option<SwitchId>, Fault> {
        const KEY: &str = " portguid 0x";
        let owner = match line.rest().find(KEY) {
            Some(at) => {
                line.seek(line.position() + at + KEY.len());
                let guid = line.whole_guid("a port GUID")?;
                self.subnet.find_end_port(guid)
            }
            None => self.subnet.lid_owner(lid),
        };
        Ok(owner.and_then(|id| match self.subnet.end_port(id).attachment {
            crate::subnet::Attachment::Management(switch) => Some(switch),
            crate::subnet::Attachment::Port(..) | crate::subnet::Attachment::Direct => None,
        }))
    }
}
