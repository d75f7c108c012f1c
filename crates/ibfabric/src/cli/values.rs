//! Parsers of option values.

use ib_daemons::input::number;
use ib_types::{Lmc, Mtu};

/// Returns a parser of numbers from `min` to `max`, written as for OpenSM: decimal, hexadecimal after `0x` or
/// octal after `0`.
pub(crate) fn in_range(min: u64, max: u64) -> impl Fn(&str) -> Result<u64, String> + Clone {
    move |text| {
        number::<u64>(text)
            .filter(|value| (min..=max).contains(value))
            .ok_or_else(|| format!("expected a number of {min} to {max}"))
    }
}

/// Returns a parser of sizes from `min` to `max` bytes; the suffixes K, M and G are powers of 1024.
pub(crate) fn bytes<T: TryFrom<u64>>(
    min: u64,
    max: u64,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let value = number::<u64>(text).or_else(|| size(text).ok());
        let value = value.filter(|value| (min..=max).contains(value));
        let value = value.and_then(|value| T::try_from(value).ok());
        value.ok_or_else(|| format!("expected a number of {min} to {max}, or one with K, M or G"))
    }
}

/// Parses an LMC of 0 to 7.
pub(crate) fn lmc(text: &str) -> Result<Lmc, String> {
    let lmc = number(text).and_then(|value| Lmc::new(value).ok());
    lmc.ok_or_else(|| "expected an LMC of 0 to 7".to_owned())
}

/// Parses a fraction of 0 to 1.
pub(crate) fn fraction(text: &str) -> Result<f64, String> {
    let value = text.parse().ok().filter(|value| (0.0..=1.0).contains(value));
    value.ok_or_else(|| "expected a fraction of 0 to 1".to_owned())
}

/// Parses a size in bytes; the suffixes K, M, G and T are powers of 1024.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?}: expected a number of bytes, or one with K, M, G or T");
    let upper = text.to_ascii_uppercase();
    let bare = upper.strip_suffix("IB").or(upper.strip_suffix('B')).unwrap_or(&upper);
    let (digits, unit) = match bare.strip_suffix(['K', 'M', 'G', 'T']) {
        Some(digits) => (digits, 10 * (1 + "KMGT".find(&bare[digits.len()..]).unwrap_or(0) as u32)),
        None => (bare, 0),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(1 << unit).ok_or_else(wrong)
}

/// Parses an MTU in bytes.
pub(crate) fn mtu(text: &str) -> Result<Mtu, String> {
    let bytes = text.parse::<usize>().ok();
    let mtu = Mtu::ALL.into_iter().find(|mtu| Some(mtu.bytes()) == bytes);
    mtu.ok_or_else(|| "expected 256, 512, 1024, 2048 or 4096".to_owned())
}
