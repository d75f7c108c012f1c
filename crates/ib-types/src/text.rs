//! Escapes text of other programs and hosts, so that terminals and logs can safely show it.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

/// Escapes control and formatting characters as Rust does, for example as `\u{1b}` or `\n`.
///
/// Names and messages of peers are printed with this function. They can then neither control a terminal nor forge a log
/// line.
#[must_use]
pub fn escaped(text: &str) -> Escaped<'_> {
    Escaped { text, keeps_lines: false }
}

/// Escapes text as [`escaped`] does, but keeps newlines and tabs.
#[must_use]
pub fn escaped_lines(text: &str) -> Escaped<'_> {
    Escaped { text, keeps_lines: true }
}

/// Escapes a message of several lines for a log, as [`escaped_lines`] does, and indents all lines after the first.
///
/// The indentation distinguishes these lines from new log messages.
#[must_use]
pub fn escaped_message(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let escaped = escaped_lines(text).to_string();
    let mut message = String::with_capacity(escaped.len());
    let mut lines = escaped.split('\n');
    message.push_str(lines.next().unwrap_or_default());
    for line in lines {
        message.push('\n');
        if !line.is_empty() && !line.starts_with([' ', '\t']) {
            message.push_str("  ");
        }
        message.push_str(line);
    }
    Cow::Owned(message)
}

/// Returns true if a character can control a terminal, end a line, or change the text direction.
#[must_use]
pub fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}'
                | '\u{200e}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}'
        )
}

/// Text that is escaped when it is [displayed](fmt::Display); see [`escaped`].
#[derive(Clone, Copy, Debug)]
pub struct Escaped<'a> {
    text: &'a str,
    keeps_lines: bool,
}

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_escaped =
            |it: char| is_unsafe(it) && !(self.keeps_lines && matches!(it, '\n' | '\t'));
        let mut rest = self.text;
        while let Some(at) = rest.find(is_escaped) {
            f.write_str(&rest[..at])?;
            let mut characters = rest[at..].chars();
            for escape in characters.next().into_iter().flat_map(char::escape_default) {
                f.write_char(escape)?;
            }
            rest = characters.as_str();
        }
        f.write_str(rest)
    }
}

#[cfg(test)]
mod tests;
