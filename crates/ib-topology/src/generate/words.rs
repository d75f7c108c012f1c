//! Reading a kind's parameters from the words of a command line.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::error::GenerateError;

/// The words after a kind's name: positional ones in order, and `key=value` ones in any place.
#[derive(Debug)]
pub(super) struct Words<'a> {
    usage: &'static str,
    positional: std::vec::IntoIter<&'a str>,
    keyed: BTreeMap<&'a str, &'a str>,
}

impl<'a> Words<'a> {
    /// Sorts words into positional and keyed ones.
    ///
    /// # Errors
    /// Fails on a key that is not in `keys` and on one that stands twice.
    pub(super) fn split(
        args: &[&'a str],
        keys: &[&str],
        usage: &'static str,
    ) -> Result<Self, GenerateError> {
        let mut positional = Vec::new();
        let mut keyed = BTreeMap::new();
        for &word in args {
            let Some((key, value)) = word.split_once('=') else {
                positional.push(word);
                continue;
            };
            if !keys.contains(&key) {
                return Err(GenerateError::UnknownKey { key: key.to_owned(), usage });
            }
            if keyed.insert(key, value).is_some() {
                return Err(GenerateError::RepeatedKey { key: key.to_owned() });
            }
        }
        Ok(Self { usage, positional: positional.into_iter(), keyed })
    }

    /// Returns the next positional word, if there is one.
    pub(super) fn next(&mut self) -> Option<&'a str> {
        self.positional.next()
    }

    /// Returns the next positional word, or says what is missing.
    pub(super) fn expect(&mut self, what: &'static str) -> Result<&'a str, GenerateError> {
        self.next().ok_or(GenerateError::MissingWord { what, usage: self.usage })
    }

    /// Returns the value of a key, if it is given.
    pub(super) fn value(&self, key: &str) -> Option<&'a str> {
        self.keyed.get(key).copied()
    }

    /// Returns the number that a key has, if it is given.
    pub(super) fn number(&self, key: &'static str) -> Result<Option<u32>, GenerateError> {
        self.value(key).map(|text| number(text, key)).transpose()
    }

    /// Returns the number that a key has, or says that it is missing.
    pub(super) fn expect_number(&self, key: &'static str) -> Result<u32, GenerateError> {
        self.number(key)?.ok_or(GenerateError::MissingWord { what: key, usage: self.usage })
    }

    /// Checks that no positional word is left.
    pub(super) fn finish(mut self) -> Result<(), GenerateError> {
        match self.positional.next() {
            None => Ok(()),
            Some(word) => {
                Err(GenerateError::ExtraWord { found: word.to_owned(), usage: self.usage })
            }
        }
    }
}

/// Reads a decimal number; its range is checked where its meaning is known.
pub(super) fn number(text: &str, what: &'static str) -> Result<u32, GenerateError> {
    decimal(text).ok_or_else(|| GenerateError::BadWord {
        what,
        found: text.to_owned(),
        expected: "a decimal number below 2^32".to_owned(),
    })
}

/// Reads numbers with a separator between them.
pub(super) fn list(
    text: &str,
    separator: char,
    what: &'static str,
) -> Result<Vec<u32>, GenerateError> {
    text.split(separator).map(decimal).collect::<Option<_>>().ok_or_else(|| {
        GenerateError::BadWord {
            what,
            found: text.to_owned(),
            expected: format!("decimal numbers below 2^32 with `{separator}` between them"),
        }
    })
}

fn decimal(text: &str) -> Option<u32> {
    // The library's own reading would let a sign pass.
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// Writes numbers with a separator between them, as [`list`] reads them.
pub(super) fn join(numbers: &[u32], separator: &str) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(separator)
}

/// Checks that a parameter is in its range.
pub(super) fn in_range(
    what: impl Into<String>,
    found: u64,
    range: RangeInclusive<u64>,
) -> Result<(), GenerateError> {
    if range.contains(&found) {
        return Ok(());
    }
    let (low, high) = range.into_inner();
    Err(GenerateError::OutOfRange { what: what.into(), found, low, high })
}
