//! `opensm-lfts.dump`: the linear forwarding tables, one block per switch.

use std::collections::BTreeMap;
use std::io::{self, Write};

use ib_topology::ParseError;
use ib_topology::read::is_message;
use ib_topology::text::{Fault, Line, Lines, checked};
use ib_types::{Guid, Lid};

use super::{Loaded, owner_text};
use crate::lft::{Lfts, NO_PATH, UnknownEntries};
use crate::subnet::{Subnet, SwitchId};

/// Writes `opensm-lfts.dump`.
///
/// # Errors
/// Fails if writing to the output fails.
pub fn write(out: &mut dyn Write, subnet: &Subnet<'_>, lfts: &Lfts) -> io::Result<()> {
    let max_lid = lfts.max_lid();
    // The text after a LID is the same for every switch, so it is formatted once and copied.
    let owners: Vec<String> = (0..=max_lid)
        .map(|lid| {
            let owner = owner_text(subnet, lid);
            format!(" # {}\n", owner.as_deref().unwrap_or("unknown node and type"))
        })
        .collect();
    let mut block = Vec::new();
    for (id, switch) in subnet.switch_ids().zip(subnet.switches()) {
        block.clear();
        writeln!(
            block,
            "Unicast lids [0-{max_lid}] of switch Lid {} guid {} ('{}'):",
            subnet.switch_lid(id),
            switch.guid,
            subnet.switch_node(id).description
        )?;
        for ((lid, &port), owner) in lfts.table(id).iter().enumerate().zip(&owners) {
            if port <= switch.ports {
                write!(block, "{lid:#06x} {port:03}")?;
                block.extend_from_slice(owner.as_bytes());
            }
        }
        writeln!(block, "{max_lid} lids dumped")?;
        out.write_all(&block)?;
    }
    Ok(())
}

/// Selects the entries that apply to the port with the port GUID in the entry. If this port has another LID in the
/// subnet, that LID replaces the LID in the entry. The LMC bits do not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// All entries apply to the port with the GUID in the entry. Used to load tables, as OpenSM does.
    AllGuids,
    /// An entry applies to the port with the GUID in the entry only if the fabric file records no LID for this port.
    /// Other entries keep their LID. Used to check tables, which must have routes to the LIDs that the fabric file
    /// records.
    UnrecordedLids,
}

/// Tables that were read from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadLfts {
    /// The tables. Missing entries are [`NO_PATH`].
    pub lfts: Lfts,
    /// The entries that are unknown because the file has gaps.
    pub unknown: UnknownEntries,
}

/// Reads `opensm-lfts.dump`, or the output of `ibroute` for several switches, for a subnet.
///
/// If entries have port GUIDs, [`Follow`] selects the entries whose LID is replaced by the LID of the port. The notes
/// of the result list:
/// * skipped blocks of switches that are not in the subnet;
/// * entries whose LID was replaced;
/// * messages of `ibroute` and its libraries in the file;
/// * gaps, with switch and line: a switch without a block, a truncated block, a block with another number of entries
///   than stated, and a LID that a switch lists twice with different ports. With [`Follow::AllGuids`], the tables
///   contain the last of these ports, as in OpenSM; with [`Follow::UnrecordedLids`], they contain [`NO_PATH`];
/// * LIDs that have another port GUID than on an earlier line. Each line applies to the port with the GUID in this
///   line.
///
/// # Errors
/// Fails on the first malformed line, and if no block belongs to this subnet. Also fails if two entries of a switch
/// with different LIDs apply to the same LID of the subnet, and have different ports.
pub fn read(
    file: &str,
    bytes: &[u8],
    subnet: &Subnet<'_>,
    follow: Follow,
) -> Result<Loaded<ReadLfts>, ParseError> {
    let text = checked(file, bytes)?;
    let mut reader = Reader {
        subnet,
        lfts: Lfts::new(subnet),
        unknown: UnknownEntries::default(),
        seen: vec![false; subnet.switches().len()],
        known: vec![(Guid::ZERO, 0); usize::from(Lid::MAX_UNICAST) + 1],
        follow,
        block: None,
        blocks: 0,
        block_of_lid: vec![0; usize::from(Lid::MAX_UNICAST) + 1],
        skipped: 0,
        strangers: 0,
        moved: 0,
        gaps: Vec::new(),
        repeated: BTreeMap::new(),
        owners: None,
    };
    for line in Lines::new(text, 0, 1) {
        reader.line(line).map_err(|fault| fault.at(file))?;
    }
    reader.break_off();
    if !reader.seen.contains(&true) {
        let location = ib_topology::text::Location { source: 0, line: 1, column: 1 };
        let found = match reader.skipped {
            0 => "no `Unicast lids`".to_owned(),
            skipped => format!("only blocks of switches that are not in the subnet, {skipped}"),
        };
        let message = format!("found {found}, expected the tables of this subnet");
        return Err(location.fault(message).at(file));
    }
    Ok(reader.finish())
}

/// The block of a switch that is being read.
#[derive(Clone, Copy)]
struct Block {
    line: u32,
    guid: Guid,
    switch: Option<SwitchId>,
    /// True if an earlier block belongs to the same switch.
    is_repeated: bool,
    /// Number of entries read so far.
    entries: u64,
    /// LID of the last entry read.
    last: u16,
}

struct Reader<'a> {
    subnet: &'a Subnet<'a>,
    lfts: Lfts,
    unknown: UnknownEntries,
    seen: Vec<bool>,
    /// By LID in the file: the port GUID last read with this LID, and the LID in the subnet to which entries with this
    /// LID and port GUID apply.
    known: Vec<(Guid, u16)>,
    follow: Follow,
    block: Option<Block>,
    blocks: u32,
    /// By LID in the file: the number of the last block that lists this LID.
    block_of_lid: Vec<u32>,
    skipped: usize,
    strangers: usize,
    moved: usize,
    /// Gaps in the file, each with its line and a message.
    gaps: Vec<(u32, String)>,
    /// By switch that lists LIDs again with different ports: line and message of the first such entry, and the number
    /// of further such entries.
    repeated: BTreeMap<SwitchId, (u32, String, usize)>,
    /// Entries whose LID had another port GUID in an earlier entry: line number and message of the first of these
    /// entries, and the number of all of them. `None` if no such entry exists.
    owners: Option<(u32, String, usize)>,
}

impl Reader<'_> {
    fn line(&mut self, mut line: Line<'_>) -> Result<(), Fault> {
        line.skip_blanks();
        match line.peek() {
            None | Some(b'#') => Ok(()),
            Some(b'0') if line.rest().starts_with("0x") => self.entry(line),
            Some(b'0'..=b'9') => self.close(line),
            Some(_) if line.rest().starts_with("Unicast lids") => self.open(line),
            Some(_) if line.rest().starts_with("Multicast mlids") => {
                Err(line.expected("unicast tables"))
            }
            Some(_) if is_heading(line.rest()) => Ok(()),
            Some(_) if is_message(line.rest()) => {
                self.gaps
                    .push((line.location().line, format!("found `{}`", line.rest().trim_end())));
                Ok(())
            }
            Some(_) => Err(line.expected("`Unicast lids`, a LID, or `lids dumped`")),
        }
    }

    /// Ends the current block as truncated: its entries after the last read LID are unknown.
    fn break_off(&mut self) {
        let Some(block) = self.block.take() else { return };
        let missing = match block.entries {
            0 => "no entry of it is known".to_owned(),
            _ => format!("entries after LID {:#06x} are not known", block.last),
        };
        let message =
            format!("the table of switch {} ends without `lids dumped`: {missing}", block.guid);
        self.gaps.push((block.line, message));
        let Some(switch) = block.switch else { return };
        let first = if block.entries == 0 { 0 } else { block.last + 1 };
        self.mark_missing(switch, first);
    }

    /// Marks all missing entries of a switch as unknown, from the LID `first` on.
    fn mark_missing(&mut self, switch: SwitchId, first: u16) {
        let table = self.lfts.table(switch);
        for lid in (0..table.len()).skip(usize::from(first)).filter(|&lid| table[lid] == NO_PATH) {
            self.unknown.add(switch, lid as u16);
        }
    }

    fn open(&mut self, mut line: Line<'_>) -> Result<(), Fault> {
        self.break_off();
        let Some(at) = line.rest().find(" guid 0x") else {
            return Err(line.expected("` guid 0x` and the GUID of a switch"));
        };
        line.seek(line.position() + at + " guid 0x".len());
        let location = line.location();
        let guid = line.whole_guid("the GUID of a switch")?;
        self.blocks += 1;
        let switch = self.subnet.find_switch(guid);
        let mut is_repeated = false;
        match switch {
            Some(id) => is_repeated = std::mem::replace(&mut self.seen[id.index()], true),
            None => self.skipped += 1,
        }
        self.block =
            Some(Block { line: location.line, guid, switch, is_repeated, entries: 0, last: 0 });
        Ok(())
    }

    fn close(&mut self, mut line: Line<'_>) -> Result<(), Fault> {
        let start = line.location();
        let count = line.decimal("a number of LIDs", 0, u64::from(u32::MAX))?;
        line.skip_blanks();
        let counts_entries = line.eat_word("valid");
        if !line.eat("lids dumped") {
            return Err(line.expected("`lids dumped`"));
        }
        line.end("the end of the line")?;
        let Some(block) = self.block.take() else {
            return Err(start.fault("found the end of a block, expected `Unicast lids` before it"));
        };
        // In the last line of a block, OpenSM writes the highest LID, but `ibroute` the number of entries.
        if counts_entries && count != block.entries {
            let message = format!(
                "the table of switch {} has {} entries, expected {count}: those that are missing are \
                 not known",
                block.guid, block.entries
            );
            self.gaps.push((start.line, message));
            if let Some(switch) = block.switch {
                self.mark_missing(switch, 0);
            }
        }
        Ok(())
    }

    fn entry(&mut self, mut line: Line<'_>) -> Result<(), Fault> {
        let start = line.location();
        let Some(block) = &mut self.block else {
            return Err(start.fault("found an entry, expected `Unicast lids` before it"));
        };
        line.eat("0x");
        let lid = line.hexadecimal("a unicast LID, 0 to bfff", u64::from(Lid::MAX_UNICAST))? as u16;
        if !matches!(line.peek(), Some(b' ' | b'\t')) {
            return Err(line.expected("a blank and the output port"));
        }
        line.skip_blanks();
        let port = line.decimal("an output port", 0, 255)? as u8;
        if !matches!(line.peek(), None | Some(b' ' | b'\t')) {
            return Err(line.expected("a blank or the end of the line"));
        }
        block.entries += 1;
        block.last = lid;
        let Block { guid: owner, switch, is_repeated, .. } = *block;
        let Some(switch) = switch.filter(|_| lid != 0) else { return Ok(()) };
        let last = std::mem::replace(&mut self.block_of_lid[usize::from(lid)], self.blocks);
        let is_repeated = is_repeated || last == self.blocks;
        let guid = port_guid(&mut line)?;
        let here = self.map(start.line, lid, guid);
        self.moved += usize::from(here != lid);
        match self.lfts.table_mut(switch).get_mut(usize::from(here)) {
            Some(slot) if *slot == NO_PATH || *slot == port => *slot = port,
            Some(slot) if is_repeated => {
                let message = format!(
                    "switch {owner} lists LID {lid:#06x} again with port {port}, not {slot} as above"
                );
                *slot = port;
                let first = self.repeated.entry(switch);
                first.and_modify(|it| it.2 += 1).or_insert((start.line, message, 0));
                self.unknown.add(switch, here);
            }
            Some(slot) => {
                let renamed = if here == lid {
                    String::new()
                } else {
                    format!(
                        ", which is LID {here} of this subnet; were the tables made with another \
                         LMC?"
                    )
                };
                return Err(start.fault(format!(
                    "found port {port}, expected port {slot} as above for LID {lid:#06x}{renamed}"
                )));
            }
            None => self.strangers += 1,
        }
        Ok(())
    }

    /// Returns the LID in the subnet to which an entry with this LID and port GUID applies.
    fn map(&mut self, line: u32, lid: u16, guid: Guid) -> u16 {
        let known = self.known[usize::from(lid)];
        if guid.is_zero() {
            return lid;
        }
        if known.0 == guid {
            return known.1;
        }
        if !known.0.is_zero() {
            let first = || format!("LID {lid:#06x} is port GUID {guid}, not {} as above", known.0);
            self.owners.get_or_insert_with(|| (line, first(), 0)).2 += 1;
        }
        let owner = self.subnet.find_end_port(guid).map(|id| self.subnet.end_port(id));
        let recorded = |port| self.subnet.fabric().port(port).lid.is_some();
        let followed =
            owner.filter(|end_port| self.follow == Follow::AllGuids || !recorded(end_port.port));
        let here = match followed {
            Some(end_port) if !end_port.lid_range().contains(&lid) => {
                end_port.base_lid.get() + lid % end_port.lids
            }
            _ => lid,
        };
        self.known[usize::from(lid)] = (guid, here);
        here
    }

    fn finish(mut self) -> Loaded<ReadLfts> {
        let mut notes = Vec::new();
        let repeated = std::mem::take(&mut self.repeated).into_values();
        let owners = self.owners.take().map(|(line, first, lines)| (line, first, lines - 1));
        self.gaps.extend(repeated.chain(owners).map(|(line, first, more)| match more {
            0 => (line, first),
            _ => (line, format!("{first}, and {more} more")),
        }));
        self.gaps.sort_unstable();
        notes.extend(self.gaps.iter().map(|(line, message)| format!("line {line}: {message}")));
        if self.skipped > 0 {
            notes.push(format!(
                "blocks of switches that are not in the subnet: {}; they are skipped",
                self.skipped
            ));
        }
        if self.strangers > 0 {
            notes.push(format!(
                "entries for LIDs without a port: {}; they are skipped",
                self.strangers
            ));
        }
        if self.moved > 0 {
            notes.push(format!(
                "entries for ports with another LID in this subnet: {}; they apply to that LID",
                self.moved
            ));
        }
        let empty: Vec<SwitchId> =
            self.subnet.switch_ids().filter(|switch| !self.seen[switch.index()]).collect();
        if !empty.is_empty() {
            notes.push(format!(
                "switches of the subnet without a block in the file: {}",
                empty.len()
            ));
        }
        for switch in empty {
            self.mark_missing(switch, 0);
        }
        let Self { mut lfts, unknown, .. } = self;
        if self.follow == Follow::UnrecordedLids {
            for (switch, _) in unknown.switches() {
                for (lid, port) in (0..).zip(lfts.table_mut(switch)) {
                    if unknown.contains(switch, lid) {
                        *port = NO_PATH;
                    }
                }
            }
        }
        Loaded { value: ReadLfts { lfts, unknown }, notes }
    }
}

/// Returns true if a line is one of the two lines of column headings that `ibroute` prints.
fn is_heading(text: &str) -> bool {
    let mut words = text.split_ascii_whitespace();
    matches!(
        (words.next(), words.next()),
        (Some("Lid"), Some("Out")) | (Some("Port"), Some("Info"))
    )
}

/// Reads the port GUID after an entry. Returns zero if the line has no port GUID.
fn port_guid(line: &mut Line<'_>) -> Result<Guid, Fault> {
    const KEY: &str = " portguid 0x";
    let Some(at) = line.rest().find(KEY) else { return Ok(Guid::ZERO) };
    line.seek(line.position() + at + KEY.len());
    line.whole_guid("a port GUID")
}
