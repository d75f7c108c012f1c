//! `opensm-sl2vl.dump`: the SL-to-VL tables of the switches.
//!
//! OpenSM writes this file if QoS is enabled (`-Q`). The file has one block per node:
//!
//! ```text
//! Switch 0x0002c90000200000, base LID 4, "leaf"
//! #in out : 0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 15
//! #--------------------------------------------------------
//! 0   1   : 0  1  2  3  4  5  6  7  0  1  2  3  4  5  6  7
//! ```

use std::collections::BTreeMap;

use ib_topology::ParseError;
use ib_topology::text::{Fault, Line, Lines, checked};
use ib_types::{ServiceLevel, VirtualLane};

use super::Loaded;
use crate::check::VlMap;
use crate::subnet::{Peer, Subnet, SwitchId};

/// The VL of every service level, for a pair of ports.
type VlRule = [u8; 16];

/// The table of pairs of ports that are not listed in the file: SL n uses VL n.
const SAME_NUMBER: VlRule = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// The SL-to-VL tables of the switches of a subnet, read from a file.
///
/// The file may omit pairs of ports whose output port has no link. For these pairs, SL n uses VL n.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sl2Vl {
    /// Each different SL-to-VL table of a pair of ports, stored once. The first one is [`SAME_NUMBER`].
    tables: Vec<VlRule>,
    /// By switch, an index into `tables` for each `[input port][output port]`. Empty for switches that the file does
    /// not list.
    switches: Vec<Vec<u16>>,
    /// Number of ports of each switch, including port 0.
    ports: Vec<usize>,
}

impl VlMap for Sl2Vl {
    fn vl(&self, switch: SwitchId, from: u8, out: u8, level: ServiceLevel) -> VirtualLane {
        let at = usize::from(from) * self.ports[switch.index()] + usize::from(out);
        let table = self.switches[switch.index()].get(at).copied().unwrap_or_default();
        let vl = self.tables[usize::from(table)][usize::from(level.get())];
        VirtualLane::new(vl).expect("the reader accepts only VLs 0 to 15")
    }
}

/// Reads `opensm-sl2vl.dump` for a subnet.
///
/// Blocks of switches outside the subnet are skipped, and a note reports their number. Blocks of channel adapters are
/// ignored.
///
/// # Errors
/// Fails on the first malformed line, on a port that the switch does not have, on a VL above 15, and on a repeated
/// block or pair of ports. Also fails if the file has no block for a switch of the subnet, or no line for a pair of
/// ports whose output port has a link.
pub fn read(file: &str, bytes: &[u8], subnet: &Subnet<'_>) -> Result<Loaded<Sl2Vl>, ParseError> {
    let text = checked(file, bytes)?;
    let mut reader = Reader {
        subnet,
        map: Sl2Vl {
            tables: vec![SAME_NUMBER],
            switches: vec![Vec::new(); subnet.switches().len()],
            ports: subnet.switches().iter().map(|switch| usize::from(switch.ports) + 1).collect(),
        },
        known: BTreeMap::from([(SAME_NUMBER, 0)]),
        block: None,
        skipped: 0,
    };
    for line in Lines::new(text, 0, 1) {
        reader.line(line).map_err(|fault| fault.at(file))?;
    }
    let mut notes = Vec::new();
    if reader.skipped > 0 {
        let skipped = reader.skipped;
        notes.push(format!("the tables of {skipped} switches not in the subnet are skipped"));
    }
    if let Some(message) = reader.gap() {
        let line = text.lines().count() as u32 + 1;
        let location = ib_topology::text::Location { source: 0, line, column: 1 };
        return Err(location.fault(message).at(file));
    }
    for tables in &mut reader.map.switches {
        for table in tables.iter_mut().filter(|table| **table == UNSET) {
            *table = 0;
        }
    }
    Ok(Loaded { value: reader.map, notes })
}

/// Table index of a pair of ports that has not been listed yet.
const UNSET: u16 = u16::MAX;

/// The node to which the current block belongs.
#[derive(Clone, Copy)]
enum Block {
    Switch(SwitchId),
    Other,
}

struct Reader<'a> {
    subnet: &'a Subnet<'a>,
    map: Sl2Vl,
    known: BTreeMap<VlRule, u16>,
    block: Option<Block>,
    skipped: usize,
}

impl Reader<'_> {
    /// Returns an error message if the file lacks a switch, or a pair of ports whose output port has a link.
    fn gap(&self) -> Option<String> {
        for id in self.subnet.switch_ids() {
            let tables = &self.map.switches[id.index()];
            let guid = self.subnet.switch(id).guid;
            if tables.is_empty() {
                return Some(format!(
                    "found the end of the file, expected a block for switch {guid}"
                ));
            }
            let ports = self.map.ports[id.index()];
            for (out, peer) in self.subnet.peers(id).iter().enumerate().skip(1) {
                let missing = (0..ports).find(|from| tables[from * ports + out] == UNSET);
                if let (false, Some(from)) = (*peer == Peer::None, missing) {
                    return Some(format!(
                        "found the end of the file, expected a line for input port {from} and \
                         output port {out} of switch {guid}"
                    ));
                }
            }
        }
        None
    }

    fn line(&mut self, mut line: Line<'_>) -> Result<(), Fault> {
        line.skip_blanks();
        match line.peek() {
            None | Some(b'#') => Ok(()),
            Some(b'0'..=b'9') => self.entry(line),
            Some(_) => self.open(line),
        }
    }

    fn open(&mut self, mut line: Line<'_>) -> Result<(), Fault> {
        let start = line;
        let switch = match line.letters() {
            "Switch" => true,
            "Channel" => {
                line.skip_blanks();
                line.demand("Adapter")?;
                false
            }
            "Router" => false,
            _ => return Err(start.expected("`Switch`, `Channel Adapter`, `Router` or two ports")),
        };
        line.skip_blanks();
        line.demand("0x")?;
        let location = line.location();
        let guid = line.whole_guid("a port GUID")?;
        self.block = Some(match self.subnet.find_switch(guid).filter(|_| switch) {
            Some(id) => {
                let tables = &mut self.map.switches[id.index()];
                if !tables.is_empty() {
                    return Err(location.fault(format!(
                        "found switch {guid} again, expected one block per switch"
                    )));
                }
                let ports = self.map.ports[id.index()];
                tables.resize(ports * ports, UNSET);
                Block::Switch(id)
            }
            None => {
                self.skipped += usize::from(switch);
                Block::Other
            }
        });
        Ok(())
    }

    fn entry(&mut self, mut line: Line<'_>) -> Result<(), Fault> {
        let start = line.location();
        let Some(block) = self.block else {
            return Err(start.fault("found an entry, expected `Switch` and a GUID before it"));
        };
        let highest = match block {
            Block::Switch(id) => self.subnet.switch(id).ports,
            Block::Other => u8::MAX,
        };
        let from = line.decimal("an input port of the switch", 0, u64::from(highest))?;
        line.skip_blanks();
        let out = line.decimal("an output port of the switch", 0, u64::from(highest))?;
        line.skip_blanks();
        line.demand(":")?;
        let mut vls = SAME_NUMBER;
        for vl in &mut vls {
            line.skip_blanks();
            *vl = line.decimal("a VL", 0, 15)? as u8;
        }
        line.end("the end of the line after 16 VLs")?;
        let Block::Switch(id) = block else { return Ok(()) };
        let next = u16::try_from(self.map.tables.len()).unwrap_or(UNSET);
        let table = *self.known.entry(vls).or_insert(next);
        if table == UNSET {
            return Err(start.fault("found one more table, expected at most 65,535 different ones"));
        }
        if table == next {
            self.map.tables.push(vls);
        }
        let at = from as usize * self.map.ports[id.index()] + out as usize;
        let slot = &mut self.map.switches[id.index()][at];
        if *slot != UNSET {
            return Err(start
                .fault(format!("found ports {from} and {out} again, expected one line for them")));
        }
        *slot = table;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
