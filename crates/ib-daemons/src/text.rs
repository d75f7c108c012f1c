//! Plural forms of nouns in messages and reports.

/// Formats a number with its noun, which is in the singular or the plural.
#[must_use]
pub fn counted(number: impl TryInto<u64> + Copy, what: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    let ending = match what {
        _ if number == 1 => "",
        what if what.ends_with("ch") || what.ends_with("sh") => "es",
        _ => "s",
    };
    format!("{number} {what}{ending}")
}
