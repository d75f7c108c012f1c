//! Parses the arguments that follow the name of a kind of fabric.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::error::GenerateError;

/// The arguments that follow the name of a kind: positional arguments in order, and `key=value` arguments.
#[derive(Debug)]
pub(super) struct Arguments<'a> {
    usage: &'static str,
    positional: std::vec::IntoIter<&'a str>,
    keyed: BTreeMap<&'a str, &'a str>,
}

impl<'a> Arguments<'a> {
    /// Splits arguments into positional arguments and `key=value` arguments.
    ///
    /// # Errors
    /// Fails if a key is not in `keys`, or if a key is repeated.
    pub(super) fn split(
        args: &[&'a str],
        keys: &[&str],
        usage: &'static str,
    ) -> Result<Self, GenerateError> {
        let mut positional = Vec::new();
        let mut keyed = BTreeMap::new();
        for &argument in args {
            let Some((key, value)) = argument.split_once('=') else {
                positional.push(argument);
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

    /// Returns the next positional argument, if any.
    pub(super) fn next(&mut self) -> Option<&'a str> {
        self.positional.next()
    }

    /// Returns the next positional argument, and fails if there is none.
    pub(super) fn require(&mut self, parameter: &'static str) -> Result<&'a str, GenerateError> {
        self.next().ok_or(GenerateError::MissingArgument { parameter, usage: self.usage })
    }

    /// Returns the value of the argument `key=value`, if there is one.
    pub(super) fn value(&self, key: &str) -> Option<&'a str> {
        self.keyed.get(key).copied()
    }

    /// Returns the value of the argument `key=value` as a number, if there is one.
    pub(super) fn number(&self, key: &'static str) -> Result<Option<u32>, GenerateError> {
        self.value(key).map(|text| number(text, key)).transpose()
    }

    /// Returns the value of the argument `key=value` as a number, and fails if there is none.
    pub(super) fn require_number(&self, key: &'static str) -> Result<u32, GenerateError> {
        self.number(key)?
            .ok_or(GenerateError::MissingArgument { parameter: key, usage: self.usage })
    }

    /// Fails if a positional argument was not read.
    pub(super) fn finish(mut self) -> Result<(), GenerateError> {
        match self.positional.next() {
            None => Ok(()),
            Some(argument) => {
                Err(GenerateError::ExtraArgument { found: argument.to_owned(), usage: self.usage })
            }
        }
    }
}

/// Parses a decimal number. The caller must check its range.
pub(super) fn number(text: &str, parameter: &'static str) -> Result<u32, GenerateError> {
    decimal(text).ok_or_else(|| GenerateError::BadArgument {
        parameter,
        found: text.to_owned(),
        expected: "a decimal number below 2^32".to_owned(),
    })
}

/// Parses a list of decimal numbers with the given separator between them.
pub(super) fn list(
    text: &str,
    separator: char,
    parameter: &'static str,
) -> Result<Vec<u32>, GenerateError> {
    text.split(separator).map(decimal).collect::<Option<_>>().ok_or_else(|| {
        GenerateError::BadArgument {
            parameter,
            found: text.to_owned(),
            expected: format!("decimal numbers below 2^32 with `{separator}` between them"),
        }
    })
}

fn decimal(text: &str) -> Option<u32> {
    // `u32::from_str` would also accept a plus sign, which is not allowed here.
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// Formats numbers with the given separator between them, so that [`list`] can parse them.
pub(super) fn join(numbers: &[u32], separator: &str) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(separator)
}

/// Checks that the value of a parameter is in range.
pub(super) fn in_range(
    parameter: impl Into<String>,
    found: u64,
    range: RangeInclusive<u64>,
) -> Result<(), GenerateError> {
    if range.contains(&found) {
        return Ok(());
    }
    let (low, high) = range.into_inner();
    Err(GenerateError::OutOfRange { parameter: parameter.into(), found, low, high })
}
