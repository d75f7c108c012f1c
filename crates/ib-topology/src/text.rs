//! A parser for text files. It reads each line from left to right, and its errors have line and column.
//!
//! ```
//! use ib_topology::text::{Lines, checked};
//!
//! let text = checked("ports", b"port 300\n")?;
//! let mut line = Lines::new(text, 0, 1).next().expect("one line");
//! assert!(line.eat_word("port"));
//! let fault = line.decimal("a port number", 1, 254).expect_err("there is no port 300");
//! assert_eq!(
//!     fault.at("ports").to_string(),
//!     "ports:1:6: found `300`, expected a port number, 1 to 254"
//! );
//! # Ok::<(), ib_topology::ParseError>(())
//! ```

use ib_types::{Guid, Lid, Lmc};

use crate::error::ParseError;

/// Checks that a file is UTF-8 text. Tabs and line ends are allowed, but no other control characters.
///
/// Removes a byte order mark at the start.
///
/// # Errors
/// Fails at the first byte that is not allowed.
pub fn checked<'a>(file_name: &str, bytes: &'a [u8]) -> Result<&'a str, ParseError> {
    let fail = |at: usize, message: String| {
        let line_start = bytes[..at].iter().rposition(|&b| b == b'\n').map_or(0, |end| end + 1);
        ParseError {
            file: file_name.to_owned(),
            line: bytes[..at].iter().filter(|&&b| b == b'\n').count() + 1,
            column: at - line_start + 1,
            message,
        }
    };
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        fail(at, format!("found byte 0x{:02x}, expected UTF-8 text", bytes[at]))
    })?;
    let suspicious = |b: u8| (b < b' ' && b != b'\n' && b != b'\t') || b == 0x7f;
    // Few files have control characters, so blocks of bytes are tested without a branch for each byte.
    for (index, block) in bytes.chunks(BLOCK).enumerate() {
        if !block.iter().fold(false, |found, &b| found | suspicious(b)) {
            continue;
        }
        for (at, &byte) in (index * BLOCK..).zip(block).filter(|&(_, &b)| suspicious(b)) {
            if byte != b'\r' || bytes.get(at + 1).is_some_and(|&b| b != b'\n') {
                let message = format!("found control character 0x{byte:02x}, expected text");
                return Err(fail(at, message));
            }
        }
    }
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// Number of bytes that [`checked`] tests in one block.
const BLOCK: usize = 256;

/// A location in one of several files: the file, the line and the column.
#[derive(Clone, Copy, Debug)]
pub struct Location {
    /// The index of the file among the files that the reader loads, from 0.
    pub source: u32,
    /// The line, from 1.
    pub line: u32,
    /// The column in bytes, from 1.
    pub column: u32,
}

/// An error at a location in a file. [`Self::at`] adds the name of the file and returns a [`crate::ParseError`].
#[derive(Debug)]
pub struct Fault {
    /// The location of the error.
    pub location: Location,
    /// The text found and the text expected.
    pub message: String,
}

impl Fault {
    /// Adds the name of the file to the error.
    #[must_use]
    pub fn at(self, file: &str) -> ParseError {
        ParseError {
            file: file.to_owned(),
            line: self.location.line as usize,
            column: self.location.column as usize,
            message: self.message,
        }
    }
}

impl Location {
    /// Returns an error that states this location and `message`.
    pub fn fault(self, message: impl Into<String>) -> Fault {
        Fault { location: self, message: message.into() }
    }
}

/// The lines of a text, without their line ends.
#[derive(Clone, Debug)]
pub struct Lines<'a> {
    rest: &'a str,
    source: u32,
    number: u32,
}

impl<'a> Lines<'a> {
    /// Returns the lines of a text. `source` is the index of the file, and `first` is the number of the first line.
    pub fn new(text: &'a str, source: u32, first: u32) -> Self {
        Self { rest: text, source, number: first }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let end = self.rest.bytes().position(|b| b == b'\n').unwrap_or(self.rest.len());
        let text = &self.rest[..end];
        let rest = self.rest.get(end + 1..).unwrap_or_default();
        let text = text.strip_suffix('\r').unwrap_or(text);
        let line = Line { text, at: 0, source: self.source, number: self.number };
        self.rest = rest;
        self.number = self.number.saturating_add(1);
        Some(line)
    }
}

/// A line that is being read, and the position of the next unread byte.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    text: &'a str,
    at: usize,
    source: u32,
    number: u32,
}

impl<'a> Line<'a> {
    /// Returns the whole line.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// Returns the unread part of the line.
    pub fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Returns the next unread byte, if any.
    pub fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Returns the number of bytes of the line that have been read.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Moves to a byte offset in the line. It must be a character boundary.
    pub fn seek(&mut self, at: usize) {
        self.at = at;
    }

    /// Returns the location of the next unread byte.
    pub fn location(&self) -> Location {
        let column = u32::try_from(self.at + 1).unwrap_or(u32::MAX);
        Location { source: self.source, line: self.number, column }
    }

    /// Returns an error at the next unread byte. Its message has the text found there and a description of the text
    /// expected.
    pub fn expected(&self, expected: &str) -> Fault {
        let rest = self.rest().trim_ascii_start();
        if rest.is_empty() {
            return self
                .location()
                .fault(format!("found the end of the line, expected {expected}"));
        }
        let end = rest.find([' ', '\t']).unwrap_or(rest.len());
        let mut shown: String = rest[..end].chars().take(40).collect();
        if shown.len() < end {
            shown.push('…');
        }
        self.location().fault(format!("found `{shown}`, expected {expected}"))
    }

    /// Skips spaces and tabs.
    pub fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    /// Skips a string and returns true, if the unread part starts with it.
    pub fn eat(&mut self, text: &str) -> bool {
        // The strings are so short that a call of `memcmp` would take longer than this loop.
        let rest = &self.text.as_bytes()[self.at..];
        let found =
            rest.len() >= text.len() && rest.iter().zip(text.as_bytes()).all(|(a, b)| a == b);
        if found {
            self.at += text.len();
        }
        found
    }

    /// Skips a word and the blanks after it, and returns true, if the unread part starts with the word and no letter or
    /// digit follows.
    pub fn eat_word(&mut self, word: &str) -> bool {
        let mut ahead = *self;
        let found = ahead.eat(word) && !ahead.peek().is_some_and(|b| b.is_ascii_alphanumeric());
        if found {
            ahead.skip_blanks();
            *self = ahead;
        }
        found
    }

    /// Skips a string. Fails if the unread part does not start with it.
    pub fn demand(&mut self, text: &str) -> Result<(), Fault> {
        if self.eat(text) { Ok(()) } else { Err(self.expected(&format!("`{text}`"))) }
    }

    /// Skips blanks and a comment up to the end of the line. Fails if there is other text.
    pub fn end(&mut self, expected: &str) -> Result<(), Fault> {
        self.skip_blanks();
        match self.peek() {
            None | Some(b'#') => Ok(()),
            Some(_) => Err(self.expected(expected)),
        }
    }

    /// Reads ASCII letters up to the first character that is not one. Returns an empty string if there are none.
    pub fn letters(&mut self) -> &'a str {
        let rest = self.rest();
        let end = rest.bytes().position(|b| !b.is_ascii_alphabetic()).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// Reads a decimal number from `min` to `max`.
    pub fn decimal(&mut self, expected: &str, min: u64, max: u64) -> Result<u64, Fault> {
        self.digits(10, expected, min, max)
    }

    /// Reads a number from `min` to `max` as C's `strtoul` does with base 0. After `0x` it is hexadecimal, after `0` it
    /// is octal, and otherwise it is decimal.
    pub fn number(&mut self, expected: &str, min: u64, max: u64) -> Result<u64, Fault> {
        let bytes = &self.text.as_bytes()[self.at..];
        let hexadecimal = bytes.len() > 2
            && bytes[0] == b'0'
            && bytes[1] | 0x20 == b'x'
            && bytes[2].is_ascii_hexdigit();
        let radix = match bytes {
            _ if hexadecimal => 16,
            [b'0', b'0'..=b'9', ..] => 8,
            _ => 10,
        };
        let mut ahead = *self;
        ahead.at += if hexadecimal { 2 } else { 0 };
        let value = ahead.digits_from(radix, self, expected, min, max)?;
        *self = ahead;
        Ok(value)
    }

    /// Reads a number of up to 16 hexadecimal digits, up to `max`.
    pub fn hexadecimal(&mut self, expected: &str, max: u64) -> Result<u64, Fault> {
        self.digits(16, expected, 0, max)
    }

    /// Reads a GUID of exactly 16 hexadecimal digits, as tools print it.
    pub fn whole_guid(&mut self, expected: &str) -> Result<Guid, Fault> {
        let start = *self;
        let value = self.hexadecimal(expected, u64::MAX)?;
        if self.at - start.at != 16 {
            return Err(start.expected(&format!("{expected} of 16 hexadecimal digits")));
        }
        Ok(Guid(value))
    }

    fn digits(&mut self, radix: u32, expected: &str, min: u64, max: u64) -> Result<u64, Fault> {
        let start = *self;
        self.digits_from(radix, &start, expected, min, max)
    }

    fn digits_from(
        &mut self,
        radix: u32,
        start: &Line<'_>,
        expected: &str,
        min: u64,
        max: u64,
    ) -> Result<u64, Fault> {
        let first = self.at;
        let mut value = Some(0u64);
        while let Some(digit) = self.peek().and_then(|b| char::from(b).to_digit(radix)) {
            value = value
                .and_then(|value| value.checked_mul(u64::from(radix)))
                .and_then(|value| value.checked_add(u64::from(digit)));
            self.at += 1;
        }
        let longest = if radix == 16 { 16 } else { usize::MAX };
        match value.filter(|_| (1..=longest).contains(&(self.at - first))) {
            Some(value) if (min..=max).contains(&value) => Ok(value),
            _ if radix == 16 => Err(start.expected(expected)),
            _ => Err(start.expected(&format!("{expected}, {min} to {max}"))),
        }
    }

    /// Reads a GUID in parentheses. Returns `None` if the unread part does not start with a parenthesis.
    pub fn guid_in_parentheses(&mut self) -> Result<Option<Guid>, Fault> {
        if !self.eat("(") {
            return Ok(None);
        }
        let start = *self;
        let guid = Guid(self.hexadecimal("a port GUID of up to 16 hexadecimal digits", u64::MAX)?);
        if guid.is_zero() {
            return Err(start.expected("a port GUID other than zero"));
        }
        self.demand(")")?;
        Ok(Some(guid))
    }

    /// Reads a name in quotes. The name cannot contain quotes.
    pub fn quoted(&mut self, expected: &str) -> Result<&'a str, Fault> {
        let mut ahead = *self;
        if !ahead.eat("\"") {
            return Err(self.expected(&format!("{expected} in quotes")));
        }
        let rest = ahead.rest();
        let Some(end) = rest.bytes().position(|b| b == b'"') else {
            ahead.at = self.text.len();
            return Err(ahead.expected(&format!("the quote that closes {expected}")));
        };
        if end == 0 {
            return Err(self.expected(&format!("{expected} that is not empty")));
        }
        self.at = ahead.at + end + 1;
        Ok(&rest[..end])
    }

    /// Reads a description in quotes. It can contain quotes, because it ends at the last quote in the line.
    pub fn description(&mut self, expected: &str) -> Result<&'a str, Fault> {
        let mut ahead = *self;
        if !ahead.eat("\"") {
            return Err(self.expected(&format!("{expected} in quotes")));
        }
        let rest = ahead.rest();
        let Some(end) = rest.rfind('"') else {
            ahead.at = self.text.len();
            return Err(ahead.expected(&format!("the quote that closes {expected}")));
        };
        self.at = ahead.at + end + 1;
        Ok(&rest[..end])
    }

    /// Reads a LID. Returns `None` for zero, which means no LID.
    pub fn lid(&mut self) -> Result<Option<Lid>, Fault> {
        let value = self.number("a LID", 0, u64::from(Lid::MAX_UNICAST))?;
        Ok(u32::try_from(value).ok().and_then(|value| Lid::unicast(value).ok()))
    }

    /// Reads an LMC.
    pub fn lmc(&mut self) -> Result<Lmc, Fault> {
        let start = *self;
        let value = self.number("an LMC", 0, 7)?;
        let lmc = u8::try_from(value).ok().and_then(|value| Lmc::new(value).ok());
        lmc.ok_or_else(|| start.expected("an LMC, 0 to 7"))
    }
}

#[cfg(test)]
mod tests;
