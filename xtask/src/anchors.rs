//! Finds the links and the anchors of a document.

use std::collections::BTreeMap;

/// The target of a link, with the number of its line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Link<'a> {
    pub(crate) line: usize,
    pub(crate) target: &'a str,
}

/// Returns the lines of a document outside of code blocks, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        (!is_code && !is_fence).then_some((index + 1, line))
    })
}

/// Returns the links of a document. Text in backquotes is not a link.
pub(crate) fn links(text: &str) -> Vec<Link<'_>> {
    let mut links = Vec::new();
    for (line, text) in prose(text) {
        let mut is_code = false;
        for (at, byte) in text.bytes().enumerate() {
            if byte == b'`' {
                is_code = !is_code;
            } else if !is_code && text.as_bytes()[at..].starts_with(b"](") {
                let rest = &text[at + 2..];
                links.extend(rest.split_once(')').map(|(target, _)| Link { line, target }));
            }
        }
    }
    links
}

/// Returns names of documents, such as `sm.md`, that are not part of a link, with the numbers of their lines.
pub(crate) fn unlinked_names(text: &str) -> Vec<(usize, String)> {
    let mut names = Vec::new();
    for (line, text) in prose(text) {
        let words = without_links(text);
        let words = words.split(|it: char| !(it.is_alphanumeric() || "./_-".contains(it)));
        let is_name = |word: &&str| word.strip_suffix(".md").is_some_and(|stem| !stem.is_empty());
        let words = words.map(|word| word.trim_end_matches('.')).filter(is_name);
        names.extend(words.map(|word| (line, word.to_owned())));
    }
    names
}

/// Removes the links of a line, with their texts.
fn without_links(line: &str) -> String {
    let mut kept = String::new();
    let mut rest = line;
    while let Some(middle) = rest.find("](") {
        let start = rest[..middle].rfind('[').unwrap_or(middle);
        kept.push_str(&rest[..start]);
        let end = rest[middle..].find(')').map_or(rest.len(), |end| middle + end + 1);
        rest = &rest[end..];
    }
    kept + rest
}

/// Returns the anchors of a document's headings, as GitHub and mdBook form them.
pub(crate) fn anchors(text: &str) -> Vec<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let headings = prose(text).filter_map(|(_, line)| {
        let heading = line.trim_start_matches('#');
        (heading.len() < line.len()).then(|| heading.strip_prefix(' ')).flatten()
    });
    let mut anchors = Vec::new();
    for heading in headings {
        let anchor = anchor(heading.trim());
        let count = counts.entry(anchor.clone()).or_default();
        anchors.push(if *count == 0 { anchor } else { format!("{anchor}-{count}") });
        *count += 1;
    }
    anchors
}

/// Returns the anchor of a heading.
fn anchor(heading: &str) -> String {
    let is_kept = |it: &char| it.is_alphanumeric() || matches!(it, ' ' | '-' | '_');
    heading
        .to_lowercase()
        .chars()
        .filter(is_kept)
        .map(|it| if it == ' ' { '-' } else { it })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "# One `two`\n[a](b.md#c) and `[no](link)`\n```\n[no](code)\n# no\n```\n## Same\n## Same\n";

    #[test]
    fn links_in_code_are_ignored() {
        assert_eq!(links(TEXT), [Link { line: 2, target: "b.md#c" }]);
    }

    #[test]
    fn equal_headings_have_numbered_anchors() {
        assert_eq!(anchors(TEXT), ["one-two", "same", "same-1"]);
        assert_eq!(anchor("`sim` and its clients"), "sim-and-its-clients");
        assert_eq!(anchor("If the result is *not proven*"), "if-the-result-is-not-proven");
    }

    #[test]
    fn names_of_documents_need_links() {
        let text = "See a.md, [b.md](b.md) and `docs/c.md`.\n```\nd.md\n```\n";
        assert_eq!(unlinked_names(text), [(1, "a.md".to_owned()), (1, "docs/c.md".to_owned())]);
    }
}
