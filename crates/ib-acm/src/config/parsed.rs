//! Contents of a configuration file, with warnings.

use std::fmt;

use super::text;

/// Maximum number of warnings that are stored for a file. Further warnings are only counted.
pub const MAX_WARNINGS: usize = 1_000;

/// Contents of a configuration file, and warnings about the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed<T> {
    /// The contents of the file.
    pub value: T,
    /// The first 1,000 warnings, in the order of the file.
    pub warnings: Vec<Warning>,
    /// Number of warnings beyond the first 1,000.
    pub more_warnings: usize,
}

/// A part of a file that the reader ignores, or interprets differently from what the author of the file may expect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Line number, counted from 1.
    pub line: usize,
    /// Found text, up to 80 characters; empty if there was none.
    pub found: String,
    /// Text that the reader expected.
    pub expected: String,
    /// Consequence, for example that the reader ignores the line.
    pub so: &'static str,
}

impl Warning {
    /// Returns the message, which begins with the file name: `file:line: found …, expected …; …`.
    #[must_use]
    pub fn at<'w>(&'w self, file: &'w str) -> impl fmt::Display + 'w {
        fmt::from_fn(move |f| write!(f, "{file}:{self}"))
    }
}

impl fmt::Display for Warning {
    /// Writes `line: found …, expected …; …`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, found, expected, so } = self;
        match found.as_str() {
            "" => write!(f, "{line}: found nothing, expected {expected}; {so}"),
            found => {
                write!(f, "{line}: found `{}`, expected {expected}; {so}", text::visible(found))
            }
        }
    }
}

impl<T> Parsed<T> {
    /// Adds a warning. If [`MAX_WARNINGS`] are stored already, only counts it.
    pub(super) fn warn(
        &mut self,
        line: usize,
        found: &str,
        expected: impl Into<String>,
        so: &'static str,
    ) {
        if self.warnings.len() == MAX_WARNINGS {
            self.more_warnings += 1;
            return;
        }
        let found = found.chars().take(80).collect();
        self.warnings.push(Warning { line, found, expected: expected.into(), so });
    }

    /// Returns the words of a line, without its comment. If they are not UTF-8, adds a warning and returns `None`.
    pub(super) fn words<'t>(&mut self, line: usize, bytes: &'t [u8]) -> Option<Vec<&'t str>> {
        match text::words(bytes) {
            Ok(words) => Some(words),
            Err(found) => {
                self.warn(line, &found, "UTF-8 text", "the line is ignored");
                None
            }
        }
    }

    /// Adds a warning if there are superfluous words at the end of a line.
    pub(super) fn end(&mut self, line: usize, words: &[&str]) {
        if !words.is_empty() {
            self.warn(line, &words.join(" "), "the end of the line", "the found text is ignored");
        }
    }
}
