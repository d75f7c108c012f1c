//! The files by which the service is told what to do and what is known before it asks.
//!
//! | module | file of ibacm | holds |
//! |---|---|---|
//! | [`options`] | `ibacm_opts.cfg` | [`Options`]: how names, addresses and routes are resolved |
//! | [`addresses`] | `ibacm_addr.cfg` | [`AddressFile`]: the names and addresses of the machine's own endpoints |
//! | [`hosts`] | `ibacm_hosts.data` | [`HostFile`]: GIDs of other machines' names and addresses |
//! | [`routes`] | `ibacm_route.data` | [`Routes`]: paths that a subnet manager wrote down |
//!
//! Nothing here opens a file: readers take bytes and the name that messages are to have, writers return text.
//! Lines end with a line feed, with or without a carriage return; a word that starts with `#` begins a comment.
//!
//! Readers accept what ibacm accepts, and pass over what it passes over, but each time they say so: what was
//! found, what was expected and what comes of it is a [`Warning`].
//!
//! ```
//! use ib_acm::config::Options;
//!
//! let read = Options::read("ibacm_opts.cfg", b"timeout 500 ms\nroute_prot acm\n")?;
//! assert_eq!(read.value.timeout.as_millis(), 500);
//! assert_eq!(
//!     read.warnings[0].at("ibacm_opts.cfg").to_string(),
//!     "ibacm_opts.cfg:1: found `ms`, expected the end of the line; it is passed over",
//! );
//! # Ok::<(), ib_acm::config::OptionsError>(())
//! ```

use std::fmt;

pub mod addresses;
pub mod hosts;
pub mod options;
pub mod routes;
mod text;

pub use addresses::{AddressFile, AddressLine};
pub use hosts::{HostFile, HostLine};
pub use options::{Options, OptionsError};
pub use routes::{Routes, RoutesError};
pub use text::Word;

/// The most warnings that are kept of a file.
pub const MOST_WARNINGS: usize = 1_000;

/// What a file holds, and what about it is strange.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed<T> {
    /// What was read.
    pub value: T,
    /// What is strange, in the order of the file; the first 1,000.
    pub warnings: Vec<Warning>,
    /// How many warnings there are beyond those.
    pub more_warnings: usize,
}

/// A part of a file that does not mean what it may be thought to mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The line, counted from 1.
    pub line: usize,
    /// What was found, cut after 80 characters; empty for nothing.
    pub found: String,
    /// What was expected instead.
    pub expected: String,
    /// What comes of it.
    pub so: &'static str,
}

impl Warning {
    /// Returns the message with the name of the file before it: `file:line: found …, expected …; …`.
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
    /// Adds a warning, or counts it where there are many.
    fn warn(&mut self, line: usize, found: &str, expected: impl Into<String>, so: &'static str) {
        if self.warnings.len() == MOST_WARNINGS {
            self.more_warnings += 1;
            return;
        }
        let found = found.chars().take(80).collect();
        self.warnings.push(Warning { line, found, expected: expected.into(), so });
    }

    /// Returns the words of a line before a comment; `None` after a warning when they are no text.
    fn words<'t>(&mut self, line: usize, bytes: &'t [u8]) -> Option<Vec<&'t str>> {
        match text::words(bytes) {
            Ok(words) => Some(words),
            Err(found) => {
                self.warn(line, &found, "UTF-8 text", "the line is passed over");
                None
            }
        }
    }

    /// Warns of words behind the last that means something.
    fn end(&mut self, line: usize, words: &[&str]) {
        if !words.is_empty() {
            self.warn(line, &words.join(" "), "the end of the line", "it is passed over");
        }
    }
}
