//! Escaping, number formats and templates.

/// Replaces the placeholders of a template, `{{name}}`, by their values.
///
/// Values are not searched for placeholders, so they may contain braces.
///
/// # Panics
/// Panics if a placeholder has no value.
pub(crate) fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut filled = String::with_capacity(
        template.len() + values.iter().map(|(_, value)| value.len()).sum::<usize>(),
    );
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").expect("the placeholder is closed");
        let (_, value) =
            values.iter().find(|(known, _)| *known == name).expect("every placeholder has a value");
        filled.push_str(before);
        filled.push_str(value);
        rest = after;
    }
    filled.push_str(rest);
    filled
}

/// The contents of an HTML page.
pub(crate) struct Page<'a> {
    pub(crate) title: &'a str,
    pub(crate) heading: &'a str,
    pub(crate) style: &'a str,
    pub(crate) verdict: &'a str,
    /// HTML of the page's part below the verdict.
    pub(crate) main: &'a str,
    /// Definitions of terms, at the end of the page.
    pub(crate) about: &'a str,
    /// HTML of the page's script elements.
    pub(crate) script: &'a str,
}

impl Page<'_> {
    /// Returns the HTML of the whole page.
    pub(crate) fn fill(&self) -> String {
        fill(
            include_str!("page.html"),
            &[
                ("title", self.title),
                ("heading", self.heading),
                ("style", self.style),
                ("verdict", self.verdict),
                ("main", self.main),
                ("about", self.about),
                ("version", env!("CARGO_PKG_VERSION")),
                ("script", self.script),
            ],
        )
    }
}

/// Escapes text for HTML elements and quoted attributes. Control characters, which HTML does not allow, become U+FFFD.
pub(crate) fn text(raw: &str) -> String {
    let mut safe = String::with_capacity(raw.len());
    for character in raw.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            character if character.is_control() && character != '\n' => {
                safe.push(char::REPLACEMENT_CHARACTER);
            }
            character => safe.push(character),
        }
    }
    safe
}

/// Returns an HTML list of the given lines. The lines are escaped.
pub(crate) fn list(kind: &str, lines: impl IntoIterator<Item = String>) -> String {
    let items: String =
        lines.into_iter().map(|line| format!("<li><bdi>{}</bdi></li>\n", text(&line))).collect();
    format!("<{kind}>\n{items}</{kind}>\n")
}

/// Formats an integer with grouped thousands.
pub(crate) fn count(number: impl TryInto<u64>) -> String {
    let digits = number.try_into().unwrap_or(u64::MAX).to_string();
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats a non-negative number with grouped thousands and a fixed number of decimal places.
pub(crate) fn decimal(number: f64, places: usize) -> String {
    let plain = format!("{number:.places$}");
    match plain.split_once('.') {
        Some((whole, fraction)) => {
            format!("{}.{fraction}", count(whole.parse::<u64>().unwrap_or(u64::MAX)))
        }
        None => count(plain.parse::<u64>().unwrap_or(u64::MAX)),
    }
}

/// Formats a number in at most four characters: 950, 12k, 4.6M.
pub(crate) fn short(number: u64) -> String {
    let scaled = |unit: u64, suffix: char| {
        let tenths = (number * 10 + unit / 2) / unit;
        if tenths < 100 && !tenths.is_multiple_of(10) {
            format!("{}.{}{suffix}", tenths / 10, tenths % 10)
        } else {
            format!("{}{suffix}", (number + unit / 2) / unit)
        }
    };
    match number {
        0..1000 => number.to_string(),
        1000..999_500 => scaled(1000, 'k'),
        999_500..999_500_000 => scaled(1_000_000, 'M'),
        _ => scaled(1_000_000_000, 'G'),
    }
}

/// Formats a number and its noun, in the singular or plural.
pub(crate) fn counted(number: impl TryInto<u64>, one: &str, many: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    format!("{} {}", count(number), if number == 1 { one } else { many })
}
