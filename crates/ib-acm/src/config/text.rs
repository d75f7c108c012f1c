//! What the files have in common: lines, words and numbers.

use std::fmt::{self, Write};

/// A word that can stand in a file: not empty, without blanks and control characters, and not starting
/// with `#`. Names of files are such words.
///
/// ibacm cuts lines after 119 bytes, so a name of a file there has about 100.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Word(Box<str>);

impl Word {
    /// Makes a word of a text; `None` when it cannot stand in a file.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        (stands(text) && !text.chars().any(char::is_control)).then(|| Self(text.into()))
    }

    /// Makes a word of a text that is known to be one.
    pub(super) fn of(text: &str) -> Self {
        Self::new(text).expect("a word")
    }

    /// Returns the text.
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

/// Says whether a text is read as one word.
pub(super) fn stands(text: &str) -> bool {
    text.split_ascii_whitespace().eq([text]) && !text.starts_with('#')
}

/// Writes a text with its control characters escaped.
pub(super) fn visible(text: &str) -> impl fmt::Display + '_ {
    fmt::from_fn(move |f| {
        let mut signs = text.chars();
        signs.try_for_each(|sign| match sign.is_control() {
            true => write!(f, "{}", sign.escape_default()),
            false => f.write_char(sign),
        })
    })
}

/// Returns the lines with their numbers, counted from 1. A byte order mark is left out.
pub(super) fn lines(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    (1..).zip(bytes.split(|&byte| byte == b'\n'))
}

/// Returns the words of a line before a comment.
///
/// # Errors
/// Fails when they are not UTF-8, with a rendering of them. What a comment consists of does not matter.
pub(super) fn words(line: &[u8]) -> Result<Vec<&str>, String> {
    let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    words
        .take_while(|word| word[0] != b'#')
        .map(str::from_utf8)
        .collect::<Result<_, _>>()
        .map_err(|_| String::from_utf8_lossy(line.trim_ascii()).into_owned())
}

/// Returns the number that a word is: decimal without leading zeros, or hexadecimal behind `0x`.
pub(super) fn number(word: &str) -> Option<u64> {
    let digits = |text: &str, radix| {
        let legal = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        legal.then(|| u64::from_str_radix(text, radix).ok()).flatten()
    };
    match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(hexadecimal) => digits(hexadecimal, 16),
        // Some readers take a zero at the start for octal.
        None if word.len() > 1 && word.starts_with('0') => None,
        None => digits(word, 10),
    }
}
