//! Escaping, numbers and the filling of templates.

/// Fills the places of a template, written `{{name}}`, with their values.
///
/// What is filled in is not looked through again, so that a value may hold braces itself.
///
/// # Panics
/// Panics when the template has a place without a value.
pub(crate) fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut filled = String::with_capacity(
        template.len() + values.iter().map(|(_, value)| value.len()).sum::<usize>(),
    );
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").expect("a place that is opened is closed");
        let (_, value) =
            values.iter().find(|(known, _)| *known == name).expect("every place has a value");
        filled.push_str(before);
        filled.push_str(value);
        rest = after;
    }
    filled.push_str(rest);
    filled
}

/// A page: what all of them have.
pub(crate) struct Page<'a> {
    pub(crate) title: &'a str,
    pub(crate) heading: &'a str,
    pub(crate) style: &'a str,
    pub(crate) verdict: &'a str,
    /// What stands below the verdict.
    pub(crate) main: &'a str,
    /// What its words mean, at the end.
    pub(crate) about: &'a str,
    /// Script elements.
    pub(crate) script: &'a str,
}

impl Page<'_> {
    /// Returns the whole page.
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

/// Makes text safe between tags and in quoted attributes; control characters, which HTML does not
/// allow, become U+FFFD.
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

/// Makes a list of lines that are not safe yet.
pub(crate) fn list(kind: &str, lines: impl IntoIterator<Item = String>) -> String {
    let items: String =
        lines.into_iter().map(|line| format!("<li><bdi>{}</bdi></li>\n", text(&line))).collect();
    format!("<{kind}>\n{items}</{kind}>\n")
}

/// Writes a number with commas between thousands.
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

/// Writes a number that is not negative with commas between thousands and a fixed number of
/// decimal places.
pub(crate) fn decimal(number: f64, places: usize) -> String {
    let plain = format!("{number:.places$}");
    match plain.split_once('.') {
        Some((whole, fraction)) => {
            format!("{}.{fraction}", count(whole.parse::<u64>().unwrap_or(u64::MAX)))
        }
        None => count(plain.parse::<u64>().unwrap_or(u64::MAX)),
    }
}

/// Writes a number in at most four characters where it is read at a glance: 950, 12k, 4.6M.
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

/// Writes a number and its noun.
pub(crate) fn counted(number: impl TryInto<u64>, one: &str, many: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    format!("{} {}", count(number), if number == 1 { one } else { many })
}
