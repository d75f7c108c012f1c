//! Parses commands.

use std::str::FromStr;
use std::time::Duration;

use ib_types::Guid;
use ib_wire::mad::{AttributeId, MgmtClass};

use super::check::highest;
use super::{Command, Fault, Ignored, Target};

/// An error in the text of a command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: found {found}, expected {expected}")]
pub struct ParseCommandError {
    /// The column of the error, counted from 1.
    pub column: usize,
    /// The text that was found in this column.
    pub found: String,
    /// The text that is expected in this column.
    pub expected: String,
}

impl FromStr for Target {
    type Err = ParseCommandError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut words = Words::new(text);
        let target = words.target("a node or a port")?;
        words.end()?;
        Ok(target)
    }
}

impl Command {
    /// The names of all commands, for error messages.
    pub const NAMES: &str = "Link, Unlink, ReLink, Clear, Guid, Error, PerformanceSet, Baselid, \
                             Fault, Flap, Power, MKey, Misroute, IgnoreLft or Swap";
}

impl FromStr for Command {
    type Err = ParseCommandError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut words = Words::new(text);
        let name = words.word(Self::NAMES)?.to_ascii_lowercase();
        let command = match name.as_str() {
            "link" => Self::Link(words.port()?, words.port()?),
            "unlink" => Self::Unlink(words.target(NODE_OR_PORT)?),
            "relink" => Self::Relink(words.target(NODE_OR_PORT)?),
            "clear" => Self::Clear(words.target(NODE_OR_PORT)?),
            "guid" => {
                let target = words.target(NODE_OR_PORT)?;
                Self::Guid(target, Guid(words.number("a GUID")?))
            }
            "error" => words.error()?,
            "performanceset" => words.performance_set()?,
            "baselid" => {
                let target = words.target(NODE_OR_PORT)?;
                let lid = words.at_most(49_151, "a LID, 0 to 49151")? as u16;
                let lmc = if words.is_over() { 0 } else { words.at_most(7, "an LMC, 0 to 7")? };
                Self::BaseLid(target, lid, lmc as u8)
            }
            "fault" => words.fault()?,
            "flap" => Self::Flap(
                words.port()?,
                words.duration("the time that the link is down")?,
                words.duration("the time that the link is up")?,
                words.at_most(u64::from(u32::MAX), "the number of repetitions")? as u32,
            ),
            "power" => {
                let target = words.target("a node")?;
                let on = match words.word("on or off")? {
                    word if word.eq_ignore_ascii_case("on") => true,
                    word if word.eq_ignore_ascii_case("off") => false,
                    _ => return Err(words.wrong("on or off")),
                };
                Self::Power(target, on)
            }
            "mkey" => {
                let target = words.target(NODE_OR_PORT)?;
                let key = words.number("an M_Key")?;
                let protection = "a protection level, 0 to 3";
                let protect = if words.is_over() { 1 } else { words.at_most(3, protection)? };
                Self::MKey(target, key, protect as u8)
            }
            "misroute" => words.misroute()?,
            "ignorelft" => words.ignore_lft()?,
            "swap" => Self::Swap(words.port()?, words.port()?),
            _ => return Err(words.wrong(Self::NAMES)),
        };
        words.end()?;
        Ok(command)
    }
}

const NODE_OR_PORT: &str = "\"node\" or \"node\"[port]";

/// Parses a duration such as `250us`, `10ms` or `1.5s`. It has to be below 10^9 s, and is rounded
/// to nanoseconds.
#[must_use]
pub fn duration(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
    let (number, unit) = text.split_at(digits);
    let nanos: u64 = match unit {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && part.is_empty() {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    // The integer part is exact. The fraction is below 2^53 nanoseconds, so that an `f64` suffices
    // for it.
    let part: f64 = format!("0.{part}").parse().ok()?;
    let all = whole.checked_mul(nanos)?.checked_add((part * nanos as f64).round() as u64)?;
    (all < 1_000_000_000_000_000_000).then(|| Duration::from_nanos(all))
}

/// Returns the offset of the quote that ends a name. Doubled quotes belong to the name.
pub(crate) fn closing(quoted: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        let quote = at + quoted[at..].find('"')?;
        if !quoted[quote + 1..].starts_with('"') {
            return Some(quote);
        }
        at = quote + 2;
    }
}

/// The words of a line, the offset of the unread rest, and the offset of the last word read.
struct Words<'a> {
    text: &'a str,
    at: usize,
    last: usize,
}

impl<'a> Words<'a> {
    const fn new(text: &'a str) -> Self {
        Self { text, at: 0, last: 0 }
    }

    fn skip_blanks(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.last = self.at;
    }

    fn is_over(&mut self) -> bool {
        self.skip_blanks();
        self.at == self.text.len()
    }

    fn end(&mut self) -> Result<(), ParseCommandError> {
        if self.is_over() { Ok(()) } else { Err(self.wrong("the end of the line")) }
    }

    /// Returns an error at the word that was read last, or at the end of the line.
    fn wrong(&self, expected: &str) -> ParseCommandError {
        let rest = &self.text[self.last..];
        let word = rest.split_whitespace().next();
        ParseCommandError {
            column: self.text[..self.last].chars().count() + 1,
            found: word.map_or_else(|| "the end of the line".to_owned(), |w| format!("{w:?}")),
            expected: expected.to_owned(),
        }
    }

    fn word(&mut self, expected: &str) -> Result<&'a str, ParseCommandError> {
        if self.is_over() {
            return Err(self.wrong(expected));
        }
        let rest = &self.text[self.at..];
        let word = rest.split_whitespace().next().expect("the rest of the line is not blank");
        self.at += word.len();
        Ok(word)
    }

    fn number(&mut self, expected: &str) -> Result<u64, ParseCommandError> {
        let word = self.word(expected)?;
        parse_number(word).ok_or_else(|| self.wrong(expected))
    }

    fn at_most(&mut self, most: u64, expected: &str) -> Result<u64, ParseCommandError> {
        let number = self.number(expected)?;
        if number > most { Err(self.wrong(expected)) } else { Ok(number) }
    }

    fn duration(&mut self, expected: &str) -> Result<Duration, ParseCommandError> {
        let word = self.word(expected)?;
        duration(word)
            .ok_or_else(|| self.wrong(&format!("{expected}: a number and ns, us, ms or s")))
    }

    fn port(&mut self) -> Result<Target, ParseCommandError> {
        const EXPECTED: &str = "a port: \"node\"[port]";
        let target = self.target(EXPECTED)?;
        if target.port.is_none() {
            return Err(self.wrong(EXPECTED));
        }
        Ok(target)
    }

    fn target(&mut self, expected: &str) -> Result<Target, ParseCommandError> {
        if self.is_over() {
            return Err(self.wrong(expected));
        }
        let rest = &self.text[self.at..];
        let (node, after) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let end = closing(quoted).ok_or_else(|| self.wrong("a closing quote"))?;
                (quoted[..end].replace("\"\"", "\""), end + 2)
            }
            None => {
                let end = rest.find(|c: char| c.is_whitespace() || c == '[').unwrap_or(rest.len());
                (rest[..end].to_owned(), end)
            }
        };
        if node.is_empty() {
            return Err(self.wrong(expected));
        }
        self.at += after;
        let rest = &self.text[self.at..];
        let mut port = None;
        if let Some(inner) = rest.strip_prefix('[') {
            let end = inner.find(']').ok_or_else(|| self.wrong("a closing bracket"))?;
            let number = inner[..end].trim().parse().map_err(|_| self.wrong(expected))?;
            port = Some(number);
            self.at += end + 2;
        }
        if !self.text[self.at..].is_empty()
            && !self.text[self.at..].starts_with(char::is_whitespace)
        {
            return Err(self.wrong(expected));
        }
        Ok(Target { node, port })
    }

    fn error(&mut self) -> Result<Command, ParseCommandError> {
        const RATE: &str = "a rate in per cent, 0 to 100";
        let target = self.target(NODE_OR_PORT)?;
        let rate: f64 = self.word(RATE)?.parse().map_err(|_| self.wrong(RATE))?;
        if !(0.0..=100.0).contains(&rate) {
            return Err(self.wrong(RATE));
        }
        let attribute = if self.is_over() { None } else { Some(self.attribute()?) };
        Ok(Command::Error(target, rate, attribute))
    }

    /// Reads an attribute: its number, or its name in the subnet management or performance
    /// management class.
    fn attribute(&mut self) -> Result<AttributeId, ParseCommandError> {
        const EXPECTED: &str =
            "the number of an attribute, or its name, such as PortInfo or PortCounters";
        let word = self.word(EXPECTED)?;
        match parse_number(word) {
            Some(id) => u16::try_from(id).ok().map(AttributeId),
            None => [MgmtClass::SUBN_LID_ROUTED, MgmtClass::PERFORMANCE]
                .into_iter()
                .find_map(|class| AttributeId::by_name(word, class)),
        }
        .ok_or_else(|| self.wrong(EXPECTED))
    }

    fn performance_set(&mut self) -> Result<Command, ParseCommandError> {
        const EXPECTED: &str = "PortCounters.field=value";
        let target = self.port()?;
        let word = self.word(EXPECTED)?;
        let (name, value) = word.split_once('=').ok_or_else(|| self.wrong(EXPECTED))?;
        let (attribute, field) = name.split_once('.').ok_or_else(|| self.wrong(EXPECTED))?;
        if !["PortCounters", "PortCountersExtended"]
            .iter()
            .any(|known| known.eq_ignore_ascii_case(attribute))
        {
            return Err(self.wrong("PortCounters or PortCountersExtended"));
        }
        let value = parse_number(value).ok_or_else(|| self.wrong(EXPECTED))?;
        let extended = attribute.eq_ignore_ascii_case("PortCountersExtended");
        if let Some(most) = highest(field).filter(|&most| !extended && value > most) {
            return Err(self.wrong(&format!("at most {most}, the maximum of {field}")));
        }
        Ok(Command::PerformanceSet(target, field.to_owned(), value))
    }

    fn fault(&mut self) -> Result<Command, ParseCommandError> {
        const EXPECTED: &str =
            "loss=P, corrupt=P, duplicate=P, reorder=P, held=TIME, delay=TIME or none";
        const PROBABILITY: &str = "a probability from 0 to 1";
        const HELD: &str = "the maximum delay of reordered packets, a time such as 10us";
        const DELAY: &str = "the additional latency of every packet, a time such as 10us";
        let target = self.target(NODE_OR_PORT)?;
        let mut faults = Vec::new();
        loop {
            let word = self.word(EXPECTED)?;
            if word.eq_ignore_ascii_case("none") && faults.is_empty() {
                break;
            }
            let (name, value) = word.split_once('=').ok_or_else(|| self.wrong(EXPECTED))?;
            let probability = || {
                let value: f64 = value.parse().ok()?;
                (0.0..=1.0).contains(&value).then_some(value)
            };
            let (fault, expected) = match name.to_ascii_lowercase().as_str() {
                "loss" => (probability().map(Fault::Loss), PROBABILITY),
                "corrupt" => (probability().map(Fault::Corruption), PROBABILITY),
                "duplicate" => (probability().map(Fault::Duplication), PROBABILITY),
                "reorder" => (probability().map(Fault::Reordering), PROBABILITY),
                "held" => (duration(value).map(Fault::HeldBack), HELD),
                "delay" => (duration(value).map(Fault::Delay), DELAY),
                _ => return Err(self.wrong(EXPECTED)),
            };
            faults.push(fault.ok_or_else(|| self.wrong(expected))?);
            if self.is_over() {
                break;
            }
        }
        Ok(Command::Fault(target, faults))
    }

    fn misroute(&mut self) -> Result<Command, ParseCommandError> {
        const PORTS: &str = "two ports, or none";
        let target = self.target("a switch")?;
        let word = self.word(PORTS)?;
        if word.eq_ignore_ascii_case("none") {
            return Ok(Command::Misroute(target, None));
        }
        let from = word.parse().map_err(|_| self.wrong(PORTS))?;
        let to = self.word(PORTS)?.parse().map_err(|_| self.wrong(PORTS))?;
        Ok(Command::Misroute(target, Some((from, to))))
    }

    fn ignore_lft(&mut self) -> Result<Command, ParseCommandError> {
        const BLOCKS: &str = "all, none or numbers of blocks";
        let target = self.target("a switch")?;
        let mut blocks = Vec::new();
        loop {
            let word = self.word(BLOCKS)?;
            match word.to_ascii_lowercase().as_str() {
                "all" if blocks.is_empty() => {
                    return Ok(Command::IgnoreLft(target, Ignored::All));
                }
                "none" if blocks.is_empty() => {
                    return Ok(Command::IgnoreLft(target, Ignored::None));
                }
                _ => blocks.push(word.parse().map_err(|_| self.wrong(BLOCKS))?),
            }
            if self.is_over() {
                return Ok(Command::IgnoreLft(target, Ignored::Blocks(blocks)));
            }
        }
    }
}

/// Parses a decimal number, or a hexadecimal number after `0x`.
fn parse_number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok(),
        Some(_) => None,
        None => text.parse().ok(),
    }
}
