//! Lines, words and numbers of configuration files.

use std::fmt::{self, Write};

/// A word of a configuration file, such as a file name. It is not empty, has no blanks and no control characters, and
/// does not start with `#`.
///
/// ibacm truncates lines after 119 bytes, so a file name that ibacm can read has at most about 100 bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Word(Box<str>);

impl Word {
    /// Creates a word; `None` if the text is not a valid word.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        (stands(text) && !text.chars().any(char::is_control)).then(|| Self(text.into()))
    }

    /// Creates a word from a constant text.
    ///
    /// # Panics
    /// Panics if the text is not a valid word.
    pub(super) fn of(text: &str) -> Self {
        Self::new(text).expect("the constant is a valid word")
    }

    /// Returns the text of the word.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns true if the readers accept the text as one word.
pub(super) fn stands(text: &str) -> bool {
    text.split_ascii_whitespace().eq([text]) && !text.starts_with('#')
}

/// Returns the text with escaped control characters, for messages.
pub(super) fn visible(text: &str) -> impl fmt::Display + '_ {
    fmt::from_fn(move |f| {
        let mut signs = text.chars();
        signs.try_for_each(|sign| match sign.is_control() {
            true => write!(f, "{}", sign.escape_default()),
            false => f.write_char(sign),
        })
    })
}

/// Returns the lines of a file with their numbers, which start with 1. A byte order mark is skipped.
pub(super) fn lines(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    (1..).zip(bytes.split(|&byte| byte == b'\n'))
}

/// Returns the words of a line, without its comment.
///
/// # Errors
/// Fails if the words are not UTF-8. The error is the line with replacement characters. Comments may have any bytes.
pub(super) fn words(line: &[u8]) -> Result<Vec<&str>, String> {
    let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    words
        .take_while(|word| word[0] != b'#')
        .map(str::from_utf8)
        .collect::<Result<_, _>>()
        .map_err(|_| String::from_utf8_lossy(line.trim_ascii()).into_owned())
}

/// Parses a number: decimal without leading zeros, or hexadecimal with `0x`.
pub(super) fn number(word: &str) -> Option<u64> {
    let digits = |text: &str, radix| {
        let legal = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        legal.then(|| u64::from_str_radix(text, radix).ok()).flatten()
    };
    match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(hexadecimal) => digits(hexadecimal, 16),
        // Leading zeros are refused, since some parsers read such a number as octal.
        None if word.len() > 1 && word.starts_with('0') => None,
        None => digits(word, 10),
    }
}
