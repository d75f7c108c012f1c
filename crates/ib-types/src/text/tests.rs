use super::*;

#[test]
fn control_characters_are_escaped() {
    for (text, expected) in [
        ("plain é 漢", "plain é 漢"),
        ("\x1b[31mred", "\\u{1b}[31mred"),
        ("a\nb\tc\rd\x7f", "a\\nb\\tc\\rd\\u{7f}"),
        // CSI, which 8-bit terminals interpret, and characters that change the text direction.
        ("\u{9b}2J", "\\u{9b}2J"),
        ("x\u{202e}y\u{2066}\u{200f}", "x\\u{202e}y\\u{2066}\\u{200f}"),
        ("\u{2028}", "\\u{2028}"),
    ] {
        assert_eq!(escaped(text).to_string(), expected);
    }
    assert_eq!(escaped_lines("a\n\tb\x1bc\r\n").to_string(), "a\n\tb\\u{1b}c\\r\n");
}

#[test]
fn further_lines_of_message_are_indented() {
    assert_eq!(escaped_message("one"), "one");
    assert_eq!(escaped_message("one\ntwo\n  three\n"), "one\n  two\n  three\n");
    assert_eq!(escaped_message("a\nibfabric: forged"), "a\n  ibfabric: forged");
}
