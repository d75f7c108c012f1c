//! Preloaded routes that an SM has dumped: the file `ibacm_route.data`.
//!
//! The format is the full output of OpenSM's plugin `dump_pr`: a block for each port, with a line for each destination
//! LID. MTUs and rates are written as their codes.
//!
//! ```text
//! Channel Adapter 0x0002c90300a1b2c3, base LID 1, "node-1 HCA-1", port 1
//! # LID  : SL : MTU : RATE
//! 0x0001 : 0  : 4   : 3
//! 0x0002 : 0  : 4   : 3
//! 0x0003 : UNREACHABLE
//! ```
//!
//! Such a file may have hundreds of megabytes. A service needs only the block of its port, and the headers of the other
//! blocks, which assign GUIDs to LIDs. Therefore the file is read line by line, and other lines are not stored.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::{self, BufRead, Read};

use ib_types::{Guid, Lid, Mtu, NodeKind, ServiceLevel};
use ib_wire::mad::sa::RateCode;

use super::{Parsed, text};

/// Maximum number of bytes that are read of a line. The header of a block has about 150 bytes.
const LONGEST_LINE: u64 = 1_024;

/// Contents of a file of routes: the routes of the local port, and the source ports of all blocks. The local port is
/// the one that the caller of [`Routes::read`] specifies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routes {
    /// True if the file has a block of the local port.
    pub found: bool,
    /// Routes that start at the local port, in the order of their destination LIDs.
    pub routes: Vec<Route>,
    /// LIDs that are unreachable from the local port, in ascending order.
    pub unreachable: Vec<Lid>,
    /// Source ports of all blocks: base LID and GUID, in the order of the LIDs.
    pub ports: Vec<(Lid, Guid)>,
}

/// A route to a LID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Destination LID.
    pub dlid: Lid,
    /// Service level.
    pub sl: ServiceLevel,
    /// MTU.
    pub mtu: Mtu,
    /// Rate, one of [`RateCode::RATES`].
    pub rate: RateCode,
}

/// A line of a block in a file of routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    /// A route.
    Route(Route),
    /// An unreachable LID.
    Unreachable(Lid),
}

/// A block of a file of routes, without its rows. The fields describe the port at which the routes of the block start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block<'d> {
    /// Type of the port's node.
    pub kind: NodeKind,
    /// GUID of the port. For a switch, it is the GUID of port 0.
    pub guid: Guid,
    /// Base LID of the port.
    pub base_lid: Lid,
    /// Node description.
    pub description: &'d str,
    /// Port number on the node.
    pub port: u8,
}

/// Error when reading a file of routes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RoutesError {
    /// The file cannot be read.
    #[error("{file}:{line}: {error}")]
    Read {
        /// File name.
        file: String,
        /// Line number, from 1.
        line: usize,
        /// Error that the operating system returned.
        #[source]
        error: io::Error,
    },
}

impl Routes {
    /// Reads the block of the port with the given GUID and base LID, and the headers of all blocks.
    ///
    /// Lines of other blocks are not parsed. Invalid lines of the port's block, and lines with unknown codes, are
    /// ignored with a warning. If several lines have the same LID, the last one is used. A file without a block of the
    /// port causes a warning.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn read(
        file: &str,
        mut input: impl BufRead,
        guid: Guid,
        base_lid: Lid,
    ) -> Result<Parsed<Self>, RoutesError> {
        let mut reader = Reader {
            guid,
            base_lid,
            line: 0,
            own: false,
            rows: BTreeMap::new(),
            ports: BTreeMap::new(),
            parsed: Parsed::default(),
        };
        let mut line = Vec::new();
        loop {
            line.clear();
            let (some, cut) = next(&mut input, &mut line).map_err(|error| {
                let (file, line) = (file.to_owned(), reader.line + 1);
                RoutesError::Read { file, line, error }
            })?;
            if !some {
                return Ok(reader.end());
            }
            reader.line += 1;
            reader.handle_line(&line, cut);
        }
    }
}

impl Block<'_> {
    /// Returns the text of the block, which ends with an empty line.
    ///
    /// Quotes and control characters in the node description become dots.
    #[must_use]
    pub fn to_text(&self, rows: impl IntoIterator<Item = Row>) -> String {
        let Self { kind, guid, base_lid, description, port } = self;
        let legible = |sign: char| if sign == '"' || sign.is_control() { '.' } else { sign };
        let description: String = description.chars().map(legible).collect();
        let mut text =
            format!("{kind} {guid}, base LID {base_lid}, \"{description}\", port {port}\n");
        text += "# LID  : SL : MTU : RATE\n";
        for row in rows {
            let done = match row {
                Row::Unreachable(lid) => writeln!(text, "{lid:#06x} : UNREACHABLE"),
                Row::Route(Route { dlid, sl, mtu, rate }) => {
                    let (sl, mtu) = (sl.get(), mtu.code());
                    writeln!(text, "{dlid:#06x} : {sl:<2} : {mtu:<3} : {}", rate.0)
                }
            };
            done.expect("writing to a string never fails");
        }
        text += "\n";
        text
    }
}

/// Reads the next line up to [`LONGEST_LINE`] bytes, and skips the rest of the line. Returns two flags: true if there
/// is a line, and true if the line was truncated.
fn next(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<(bool, bool)> {
    let length = (&mut *input).take(LONGEST_LINE).read_until(b'\n', line)?;
    let whole = (length as u64) < LONGEST_LINE || line.ends_with(b"\n");
    Ok((length != 0, !whole && input.skip_until(b'\n')? != 0))
}

/// Reads the routes of the local port from a file of routes. `rows`, `ports` and `parsed` contain the data of the lines
/// that were read so far.
struct Reader {
    /// GUID of the local port.
    guid: Guid,
    /// Base LID of the local port.
    base_lid: Lid,
    /// Number of the current line, from 1.
    line: usize,
    /// True if the current line is in the block of the local port.
    own: bool,
    /// Routes from the local port, by destination LID; `None` for unreachable LIDs.
    rows: BTreeMap<Lid, Option<Route>>,
    ports: BTreeMap<Lid, Guid>,
    parsed: Parsed<Routes>,
}

impl Reader {
    /// Processes a line. `cut` is true if the line was truncated.
    fn handle_line(&mut self, bytes: &[u8], cut: bool) {
        let bytes = bytes.trim_ascii();
        let row = match bytes.first() {
            None | Some(b'#') => return,
            Some(first) => first.is_ascii_digit(),
        };
        if row && !self.own {
            return;
        }
        // Headers end with a node description, which may contain any bytes. Bytes that are not UTF-8 are replaced.
        let text = String::from_utf8_lossy(bytes);
        let taken = if row { self.row(&text) } else { self.head(&text) };
        if let Err(expected) = taken {
            let so = match row {
                true => "the line is ignored",
                // Without a valid header, the source port of the block's lines is unknown.
                false => "this line and the lines of its block are ignored",
            };
            self.parsed.warn(self.line, &text, expected, so);
        } else if cut {
            let expected = format!("a line of at most {LONGEST_LINE} bytes");
            self.parsed.warn(self.line, &text, expected, "the rest of the line is ignored");
        }
    }

    /// Processes the header of a block.
    fn head(&mut self, text: &str) -> Result<(), String> {
        self.own = false;
        let expected = "Channel Adapter, Switch or Router, a GUID and a base LID";
        let (guid, lid) = head(text).ok_or(expected)?;
        let owner = *self.ports.entry(lid).or_insert(guid);
        if owner != guid {
            return Err(format!("a LID other than that of {owner}"));
        }
        self.own = (guid, lid) == (self.guid, self.base_lid);
        if guid == self.guid && !self.own {
            let expected = format!("base LID {}, which the port has now", self.base_lid);
            self.parsed.warn(self.line, text, expected, "the block is ignored");
        }
        self.parsed.value.found |= self.own;
        Ok(())
    }

    /// Processes a line of the port's block.
    fn row(&mut self, text: &str) -> Result<(), String> {
        let mut words = text.split([' ', '\t', ':']).filter(|word| !word.is_empty());
        let mut number = |most: u64| {
            let word = words.next().unwrap_or("");
            text::number(word).filter(|&number| number <= most).ok_or(word)
        };
        let lid = number(u32::MAX.into()).map_err(|_| "a LID, 1 to 49151")?;
        let dlid = Lid::unicast(lid as u32).map_err(|_| "a LID, 1 to 49151")?;
        let route = match number(15) {
            Err(word) if word.eq_ignore_ascii_case("UNREACHABLE") => None,
            Err(_) => return Err("UNREACHABLE or a service level, 0 to 15".to_owned()),
            Ok(sl) => {
                let sl = ServiceLevel::new(sl as u8).expect("`number` returned at most 15");
                let mtu = number(5).ok().and_then(|code| Mtu::from_code(code as u8));
                let mtu = mtu.ok_or("an MTU code, 1 to 5")?;
                let rate = number(63).ok().map(|code| RateCode(code as u8));
                let rate = rate.filter(|rate| rate.megabits_per_second().is_some());
                let rate = rate.ok_or("a rate code, 2 to 24")?;
                Some(Route { dlid, sl, mtu, rate })
            }
        };
        let rest: Vec<_> = words.take_while(|word| !word.starts_with('#')).collect();
        self.parsed.end(self.line, &rest);
        if self.rows.insert(dlid, route).is_some() {
            let so = "this line overrides the earlier one";
            self.parsed.warn(self.line, text, "a LID that no earlier line has", so);
        }
        Ok(())
    }

    fn end(mut self) -> Parsed<Routes> {
        if !self.parsed.value.found {
            let expected = format!("a block of {}, base LID {}", self.guid, self.base_lid);
            self.parsed.warn(self.line.max(1), "", expected, "no routes are preloaded");
        }
        for (lid, route) in self.rows {
            match route {
                Some(route) => self.parsed.value.routes.push(route),
                None => self.parsed.value.unreachable.push(lid),
            }
        }
        self.parsed.value.ports = self.ports.into_iter().collect();
        self.parsed
    }
}

/// Parses the GUID and the base LID of a header.
fn head(text: &str) -> Option<(Guid, Lid)> {
    let kinds = ["Channel Adapter", "Switch", "Router"];
    let rest = kinds.iter().find_map(|kind| text.strip_prefix(kind))?;
    let (guid, rest) = rest.strip_prefix([' ', '\t'])?.split_once(',')?;
    let rest = rest.trim_start().strip_prefix("base LID")?;
    let lid = rest.split(',').next()?.trim();
    let lid = u32::try_from(text::number(lid)?).ok()?;
    let guid: Guid = guid.trim().parse().ok()?;
    Some((guid, Lid::unicast(lid).ok()?)).filter(|_| !guid.is_zero())
}

#[cfg(test)]
mod tests;
