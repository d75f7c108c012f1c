use super::{Line, Lines, checked};

fn line(text: &str) -> Line<'_> {
    Lines::new(text, 0, 1).next().expect("the text has a line")
}

#[test]
fn lf_and_crlf_line_ends_are_accepted() {
    let texts: Vec<_> =
        Lines::new("a\r\n\nb\r\n c", 0, 7).map(|line| line.text().to_owned()).collect();
    assert_eq!(texts, ["a", "", "b", " c"]);
    let places: Vec<_> = Lines::new("a\nb\n", 3, 7).map(|line| line.location()).collect();
    assert_eq!(places.iter().map(|location| location.line).collect::<Vec<_>>(), [7, 8]);
    assert!(places.iter().all(|location| location.source == 3 && location.column == 1));
}

#[test]
fn numbers_are_read_as_c_reads_them() {
    let cases = [("0x1F ", 31), ("0X1f", 31), ("017", 15), ("17", 17), ("0", 0), ("0x", 0)];
    for (text, expected) in cases {
        assert_eq!(line(text).number("a number", 0, u64::MAX).ok(), Some(expected), "{text}");
    }
    // `strtoul` reads the zero as an octal number and stops at the 8.
    let mut eight = line("08");
    assert_eq!(eight.number("a number", 0, 9).ok(), Some(0));
    assert_eq!(eight.rest(), "8");
}

#[test]
fn numbers_out_of_range_are_refused() {
    for text in ["18446744073709551616", "0x10000000000000000", "300", " ", "x", "-1"] {
        let mut line = line(text);
        let fault = line.number("a number", 0, 299).expect_err(text);
        assert_eq!(fault.location.column, 1, "{text}");
        assert_eq!(line.position(), 0, "{text}");
    }
    assert!(line("12345678123456781").hexadecimal("a GUID", u64::MAX).is_err());
    assert_eq!(
        line("1234567812345678").hexadecimal("a GUID", u64::MAX).ok(),
        Some(0x1234_5678_1234_5678)
    );
}

#[test]
fn eat_word_matches_only_whole_words() {
    let mut port = line("portal port  0");
    assert!(!port.eat_word("port"));
    assert!(port.eat("portal "));
    assert!(port.eat_word("port"));
    assert_eq!(port.rest(), "0");
}

#[test]
fn long_tokens_are_truncated_in_messages() {
    let text = "é".repeat(50);
    let fault = line(&text).expected("something short");
    assert_eq!(fault.message, format!("found `{}…`, expected something short", "é".repeat(40)));
    assert_eq!(line("  a b").expected("c").message, "found `a`, expected c");
    assert_eq!(line("  ").expected("c").message, "found the end of the line, expected c");
}

#[test]
fn control_characters_in_any_block_are_found() {
    for length in [0, 1, 255, 256, 257, 1000] {
        let mut bytes = vec![b'x'; length];
        assert!(checked("f", &bytes).is_ok());
        bytes.push(0);
        let error = checked("f", &bytes).expect_err("the text has a zero byte");
        assert_eq!((error.line, error.column), (1, length + 1));
        bytes[length] = b'\r';
        assert!(checked("f", &bytes).is_ok(), "a carriage return may end the text");
        bytes.push(b'\n');
        assert!(checked("f", &bytes).is_ok());
        bytes[length + 1] = b'x';
        assert!(checked("f", &bytes).is_err());
    }
}
