//! Paths that a subnet manager wrote down, so that nobody has to ask for them: `ibacm_route.data`.
//!
//! It is what OpenSM's plugin `dump_pr` writes in its full form: a block for each port, with a line for each
//! LID that it may send to. MTUs and rates are codes.
//!
//! ```text
//! Channel Adapter 0x0002c90300a1b2c3, base LID 1, "node-1 HCA-1", port 1
//! # LID  : SL : MTU : RATE
//! 0x0001 : 0  : 4   : 3
//! 0x0002 : 0  : 4   : 3
//! 0x0003 : UNREACHABLE
//! ```
//!
//! Such a file may have hundreds of megabytes, of which a port needs its own block and the heads of the
//! others, which tell whose LIDs they are. So it is read line by line, and only that is kept.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::{self, BufRead, Read};

use ib_types::{Guid, Lid, Mtu, NodeKind, ServiceLevel};
use ib_wire::mad::sa::RateCode;

use super::{Parsed, text};

/// How much of a line is looked at, in bytes; a port's head has some 150.
const LONGEST_LINE: u64 = 1_024;

/// What a file has for a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routes {
    /// Whether the port's block is there.
    pub found: bool,
    /// The paths from it, in the order of their LIDs.
    pub routes: Vec<Route>,
    /// The LIDs that it does not reach, in order.
    pub unreachable: Vec<Lid>,
    /// The ports with blocks by their base LIDs, in order: whose LIDs they are.
    pub ports: Vec<(Lid, Guid)>,
}

/// A path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The LID that it leads to.
    pub dlid: Lid,
    /// The service level.
    pub sl: ServiceLevel,
    /// The MTU.
    pub mtu: Mtu,
    /// The rate, one of [`RateCode::RATES`].
    pub rate: RateCode,
}

/// A line of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    /// A path.
    Route(Route),
    /// A LID that is not reached.
    Unreachable(Lid),
}

/// The head of a block: the port that its paths start at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block<'d> {
    /// What the node is.
    pub kind: NodeKind,
    /// The port's GUID; that of a switch is its port 0's.
    pub guid: Guid,
    /// The port's first LID.
    pub base_lid: Lid,
    /// The node's description.
    pub description: &'d str,
    /// The number of the port.
    pub port: u8,
}

/// Why a file of routes was not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RoutesError {
    /// The file cannot be read.
    #[error("{file}:{line}: {error}")]
    Read {
        /// The name of the file.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// Why.
        #[source]
        error: io::Error,
    },
}

impl Routes {
    /// Reads what a file has for the port with a GUID and a base LID.
    ///
    /// The lines of other ports' blocks are not looked at. A line of the port's own that is none is passed
    /// over with a warning, as is one whose codes are not known. Of a LID that stands there twice the
    /// later line counts. A file without the port's block is one without routes; there is a warning.
    ///
    /// # Errors
    /// Fails when the file cannot be read.
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
            reader.take(&line, cut);
        }
    }
}

impl Block<'_> {
    /// Returns the text of the block, with an empty line behind it; a file is several of them.
    ///
    /// Quotes and control characters of the description become dots.
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
            done.expect("a string takes everything");
        }
        text += "\n";
        text
    }
}

/// Reads the start of the next line and passes over its rest. Returns whether there is a line, and whether
/// it has such a rest.
fn next(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<(bool, bool)> {
    let length = (&mut *input).take(LONGEST_LINE).read_until(b'\n', line)?;
    let whole = (length as u64) < LONGEST_LINE || line.ends_with(b"\n");
    Ok((length != 0, !whole && input.skip_until(b'\n')? != 0))
}

/// A file that is being read.
struct Reader {
    guid: Guid,
    base_lid: Lid,
    /// The number of the line, counted from 1.
    line: usize,
    /// Whether the block is the port's own.
    own: bool,
    /// The paths of the port's own block; `None` to what it does not reach.
    rows: BTreeMap<Lid, Option<Route>>,
    ports: BTreeMap<Lid, Guid>,
    parsed: Parsed<Routes>,
}

impl Reader {
    /// Takes a line, whose rest was perhaps cut off.
    fn take(&mut self, bytes: &[u8], cut: bool) {
        let bytes = bytes.trim_ascii();
        let row = match bytes.first() {
            None | Some(b'#') => return,
            Some(first) => first.is_ascii_digit(),
        };
        if row && !self.own {
            return;
        }
        // The names of nodes, at the end of heads, may be anything.
        let text = String::from_utf8_lossy(bytes);
        let taken = if row { self.row(&text) } else { self.head(&text) };
        if let Err(expected) = taken {
            let so = match row {
                true => "the line is passed over",
                // Whose the lines below are is not known.
                false => "it and the lines below it are passed over",
            };
            self.parsed.warn(self.line, &text, expected, so);
        } else if cut {
            let expected = format!("a line of at most {LONGEST_LINE} bytes");
            self.parsed.warn(self.line, &text, expected, "the rest is passed over");
        }
    }

    /// Takes the head of a block.
    fn head(&mut self, text: &str) -> Result<(), String> {
        self.own = false;
        let expected = "Channel Adapter, Switch or Router, a GUID and a base LID";
        let (guid, lid) = head(text).ok_or(expected)?;
        let known = *self.ports.entry(lid).or_insert(guid);
        if known != guid {
            return Err(format!("a LID other than that of {known}"));
        }
        self.own = (guid, lid) == (self.guid, self.base_lid);
        if guid == self.guid && !self.own {
            let expected = format!("base LID {}, which the port has now", self.base_lid);
            self.parsed.warn(self.line, text, expected, "the block is passed over");
        }
        self.parsed.value.found |= self.own;
        Ok(())
    }

    /// Takes a line of the port's own block.
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
                let sl = ServiceLevel::new(sl as u8).expect("a number of at most 15");
                let mtu = number(5).ok().and_then(|code| Mtu::from_code(code as u8));
                let mtu = mtu.ok_or("an MTU's code, 1 to 5")?;
                let rate = number(63).ok().map(|code| RateCode(code as u8));
                let rate = rate.filter(|rate| rate.megabits_per_second().is_some());
                let rate = rate.ok_or("a rate's code, 2 to 24")?;
                Some(Route { dlid, sl, mtu, rate })
            }
        };
        let rest: Vec<_> = words.take_while(|word| !word.starts_with('#')).collect();
        self.parsed.end(self.line, &rest);
        if self.rows.insert(dlid, route).is_some() {
            let so = "this line counts, not the earlier one";
            self.parsed.warn(self.line, text, "a LID that is not there yet", so);
        }
        Ok(())
    }

    fn end(mut self) -> Parsed<Routes> {
        if !self.parsed.value.found {
            let expected = format!("a block of {}, base LID {}", self.guid, self.base_lid);
            self.parsed.warn(self.line.max(1), "", expected, "there are no routes");
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

/// Returns the GUID and the base LID of a head.
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
