use super::*;

fn texts(text: &str, is_rust: bool) -> Vec<(usize, String)> {
    passages(text, is_rust)
        .into_iter()
        .map(|Passage { line, text }| (line, without_code(&text)))
        .collect()
}

#[test]
fn comments_and_messages_of_rust_are_found() {
    let source = r##"//! A module
//! of two lines.
//!
//! | a | table |
/// Returns `x`.
fn f<'a>(x: &'a str) -> char {
    let quote = '"';
    let escape = '\'';
    let text = "a \"quoted\" message \
                of two lines"; // Behind it.
    let raw = r#"raw "text" here"#;
    let word = "single";
    for_r("not raw: r");
    quote
}
"##;
    let expected = [
        (1, "A module of two lines."),
        (4, "| a | table |"),
        (5, "Returns `…`."),
        (9, "a \\\"quoted\\\" message of two lines"),
        (10, "Behind it."),
        (11, "r#\"raw \"text\" here\"#"),
        (13, "not raw: r"),
    ];
    assert_eq!(texts(source, true), expected.map(|(line, text)| (line, text.to_owned())));
}

#[test]
fn prose_of_documents_is_found() {
    let document = "# Title\nOne `x`\nline.\n\n```\ncode\n```\n| a | b |\n| c | d |\nEnd.\n";
    let expected =
        [(1, "# Title"), (2, "One `…` line."), (8, "| a | b |"), (9, "| c | d |"), (10, "End.")];
    assert_eq!(texts(document, false), expected.map(|(line, text)| (line, text.to_owned())));
}
