//! Compares a command's output with the output that the document shows.

/// The wildcard. Within a line, it stands for any text; alone on a line, for any number of lines.
const ANYTHING: char = '…';

/// Specifies whether numbers in the output have to match the document.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Numbers {
    Count,
    Vary,
}

/// Returns whether the output matches the document.
pub(crate) fn fits(shown: &[String], printed: &[&str], numbers: Numbers) -> bool {
    let shown: Vec<String> = shown.iter().map(|line| numbers.plain(line)).collect();
    let printed: Vec<String> = printed.iter().map(|line| numbers.plain(line)).collect();
    lines_fit(&shown, &printed)
}

/// Returns whether the first lines of the output match the document.
pub(crate) fn begins(shown: &[String], printed: &[&str], numbers: Numbers) -> bool {
    (0..=printed.len()).any(|end| fits(shown, &printed[..end], numbers))
}

fn lines_fit(shown: &[String], printed: &[String]) -> bool {
    let Some((first, rest)) = shown.split_first() else { return printed.is_empty() };
    if first.trim() == "…" {
        return (0..=printed.len()).any(|skipped| lines_fit(rest, &printed[skipped..]));
    }
    let Some((line, others)) = printed.split_first() else { return false };
    line_fits(first, line) && lines_fit(rest, others)
}

fn line_fits(shown: &str, printed: &str) -> bool {
    let mut parts = shown.split(ANYTHING);
    let first = parts.next().unwrap_or("");
    let Some(mut rest) = printed.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

impl Numbers {
    /// Returns a line in the form in which lines are compared. Trailing whitespace is removed.
    ///
    /// - With [`Numbers::Count`], each tab is replaced by four blanks.
    /// - With [`Numbers::Vary`], each number is replaced by `#`. Each run of whitespace is replaced by one blank, since
    ///   the widths of columns vary with the numbers.
    fn plain(self, line: &str) -> String {
        let line = line.trim_end();
        if self == Self::Count {
            return line.replace('\t', "    ");
        }
        let (mut plain, mut number) = (String::new(), String::new());
        for letter in line.chars().chain(['\0']) {
            let begins = number.is_empty() && letter.is_ascii_digit();
            let goes_on =
                !number.is_empty() && (letter.is_ascii_hexdigit() || ".x".contains(letter));
            if begins || goes_on {
                number.push(letter);
                continue;
            }
            if !number.is_empty() {
                plain.push('#');
                // A full stop or a unit after the digits is not a part of the number.
                let decimal = !number.starts_with("0x");
                let kept = number.trim_end_matches(|last: char| {
                    last == '.' || last == 'x' || decimal && last.is_ascii_alphabetic()
                });
                plain.push_str(&number[kept.len()..]);
                number.clear();
            }
            if letter.is_whitespace() {
                plain.extend((!plain.ends_with(' ')).then_some(' '));
            } else if letter != '\0' {
                plain.push(letter);
            }
        }
        plain
    }
}

/// Returns the difference: lines after `-` are only in the document, lines after `+` only in the output.
pub(crate) fn difference(shown: &[String], printed: &[&str], numbers: Numbers) -> String {
    // Computes the longest common subsequence of lines. Outputs are short, so quadratic time is sufficient.
    let (rows, columns) = (shown.len(), printed.len());
    let mut common = vec![vec![0_usize; columns + 1]; rows + 1];
    let same = |row: usize, column: usize| {
        line_fits(&numbers.plain(&shown[row]), &numbers.plain(printed[column]))
    };
    for row in (0..rows).rev() {
        for column in (0..columns).rev() {
            common[row][column] = if same(row, column) {
                common[row + 1][column + 1] + 1
            } else {
                common[row + 1][column].max(common[row][column + 1])
            };
        }
    }
    let (mut row, mut column, mut text) = (0, 0, String::new());
    while row < rows || column < columns {
        let both = row < rows && column < columns;
        if both && same(row, column) {
            text += &format!("    {}\n", printed[column]);
            (row, column) = (row + 1, column + 1);
        } else if column == columns || both && common[row + 1][column] >= common[row][column + 1] {
            text += &format!("  - {}\n", shown[row]);
            row += 1;
        } else {
            text += &format!("  + {}\n", printed[column]);
            column += 1;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|&line| line.to_owned()).collect()
    }

    #[test]
    fn lines_match_with_wildcards() {
        let fits = |shown: &[&str], printed: &[&str]| fits(&owned(shown), printed, Numbers::Count);
        assert!(fits(&["a … c", "…", "z"], &["a b b c", "x", "y", "z"]));
        assert!(fits(&["a", "…"], &["a"]));
        assert!(fits(&["took … ms of … s"], &["took 3 ms of 4 s"]));
        assert!(fits(&["same  ", "    tab"], &["same", "\ttab"]));
        assert!(!fits(&["a … c"], &["a b"]));
        assert!(!fits(&["a"], &["a", "b"]));
        assert!(!fits(&["a", "b"], &["a"]));
        assert!(!fits(&["ab…ba"], &["aba"]));
        assert!(!fits(&["…", "z"], &["z", "y"]));
        assert!(!fits(&["… a … b"], &["x b y a"]));
    }

    #[test]
    fn numbers_may_vary() {
        let plain = |text| Numbers::Vary.plain(text);
        assert_eq!(plain("qp 0x00ab12 took 12.5 us, 3 of 45."), "qp # took # us, # of #.");
        assert_eq!(plain("  1 \t 34ms 0x1 2"), " # #ms # #");
        assert_eq!(plain("[us] beef"), "[us] beef");
        assert_ne!(plain("1 errors"), plain("1 error"));
        let shown = owned(&["took 3 ms…7"]);
        assert!(fits(&shown, &["took 12 ms, seldom 9"], Numbers::Vary));
        assert!(!fits(&shown, &["took 12 ms, seldom 9"], Numbers::Count));
    }

    #[test]
    fn line_may_match_as_prefix() {
        let begins = |printed: &[&str]| begins(&owned(&["READY"]), printed, Numbers::Count);
        assert!(begins(&["READY", "more"]));
        assert!(!begins(&["more", "READY"]));
        assert!(!begins(&[]));
    }

    #[test]
    fn differences_are_printed_by_line() {
        let shown = owned(&["a …", "b", "c"]);
        let text = difference(&shown, &["a 1", "B", "c", "d"], Numbers::Count);
        assert_eq!(text, "    a 1\n  - b\n  + B\n    c\n  + d\n");
    }
}
