//! Tests that measured figures in the documents are those of `docs/benchmarks.md`, which `bench` writes.

use std::fs;

use crate::root;

/// Sections that quote benchmarks: the document, the heading of the section, and a text. Table rows that contain this
/// text are checked. An empty heading selects the whole document.
const QUOTES: [(&str, &str, &str); 3] = [
    ("README.md", "## Performance", "|"),
    ("README.md", "## Compared with other programs", "."),
    ("docs/compare.md", "", "(benchmarks.md)"),
];

/// Returns the numbers of a text that have a fraction or at least three digits. Ignores versions such as
/// 3.3.23, and text in backquotes.
fn figures(text: &str) -> Vec<(String, f64)> {
    let prose: String = text.split('`').step_by(2).collect();
    let words = prose.split(|it: char| !(it.is_ascii_digit() || it == '.' || it == ','));
    let words = words.map(|word| word.trim_matches(['.', ',']).replace(',', ""));
    let long = words.filter(|word| word.contains('.') || word.len() > 2);
    long.filter_map(|word| word.parse().ok().map(|value| (word, value))).collect()
}

/// Returns true if a quoted figure equals a measured figure or a thousandth of it. Measured figures are rounded to as
/// many decimals as the quoted figure has.
fn is_measured(quoted: &(String, f64), measured: &[f64]) -> bool {
    let decimals = quoted.0.split_once('.').map_or(0, |(_, digits)| digits.len());
    let half =
        0.5 * 10_f64.powi(-i32::try_from(decimals).expect("decimals fit an `i32`")) * 1.000_001;
    measured
        .iter()
        .any(|value| [*value, value / 1000.0].iter().any(|value| (value - quoted.1).abs() <= half))
}

/// Returns the text below a heading, or the whole text if the heading is empty.
fn section<'a>(text: &'a str, heading: &str) -> &'a str {
    if heading.is_empty() {
        return text;
    }
    let start = text.find(heading).expect("the document has the heading") + heading.len();
    let rest = &text[start..];
    rest.find("\n## ").map_or(rest, |end| &rest[..end])
}

#[test]
fn quoted_figures_are_those_of_the_benchmarks() {
    let read = |name: &str| fs::read_to_string(root().join(name)).expect("the file is readable");
    let measured: Vec<f64> =
        figures(&read("docs/benchmarks.md").replace('`', "")).into_iter().map(|it| it.1).collect();
    let (mut checked, mut wrong) = (0, Vec::new());
    for (document, heading, mark) in QUOTES {
        let text = read(document);
        for row in
            section(&text, heading).lines().filter(|it| it.starts_with('|') && it.contains(mark))
        {
            for quoted in figures(row) {
                checked += 1;
                if !is_measured(&quoted, &measured) {
                    wrong.push(format!(
                        "{document}: found {}, expected a figure of docs/benchmarks.md: {row}",
                        quoted.0
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 10, "only {checked} figures were found");
}

#[test]
fn figures_are_compared_with_their_decimals() {
    assert!(is_measured(&("4.0".to_owned(), 4.0), &[3.98]));
    assert!(is_measured(&("47.5".to_owned(), 47.5), &[47509.0]));
    assert!(!is_measured(&("3.97".to_owned(), 3.97), &[3.98]));
    let names: Vec<String> = figures("OpenSM 3.3.23: 11,664 hosts, `1.5`, 0.96 s, 12.")
        .into_iter()
        .map(|it| it.0)
        .collect();
    assert_eq!(names, ["11664", "0.96"]);
}
