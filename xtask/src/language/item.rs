//! Finds the code that a comment or message belongs to.

/// How many lines of an item are shown: enough for a signature.
const SHOWN: usize = 3;

/// Returns the lines of code to which the passage in this line belongs: the headers of the enclosing items, from the
/// outermost, and the first lines of the item itself. A comment on a module has no such lines.
pub(super) fn lines(source: &str, line: usize) -> Vec<&str> {
    let all: Vec<&str> = source.lines().collect();
    let Some(first) = line.checked_sub(1).filter(|&first| first < all.len()) else {
        return Vec::new();
    };
    if all[first].trim_start().starts_with("//!") {
        return Vec::new();
    }
    let own = (first..all.len()).find(|&at| is_code(all[at])).unwrap_or(first);
    let mut shown = Vec::new();
    let mut depth = indentation(all[own]);
    for &before in all[..own].iter().rev() {
        if is_code(before) && indentation(before) < depth {
            depth = indentation(before);
            shown.push(before);
        }
    }
    shown.reverse();
    for &code in all[own..].iter().take(SHOWN) {
        shown.push(code);
        if code.ends_with(['{', ';', ',', '}']) {
            break;
        }
    }
    shown
}

/// Returns true unless a line is empty, a comment, or an attribute.
fn is_code(line: &str) -> bool {
    let line = line.trim_start();
    !(line.is_empty()
        || line.starts_with("//")
        || line.starts_with("#[")
        || line.starts_with("#!["))
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn item_is_shown_with_the_types_around_it() {
        let source = "//! Module.\nimpl Path {\n    /// Closes it.\n    #[must_use]\n    fn close(\n        \
                      &self,\n    ) -> bool {\n        warn(\"a message\");\n    }\n}\n";
        assert!(lines(source, 1).is_empty());
        assert_eq!(lines(source, 3), ["impl Path {", "    fn close(", "        &self,"]);
        let of_message = ["impl Path {", "    ) -> bool {", "        warn(\"a message\");"];
        assert_eq!(lines(source, 8), of_message);
    }
}
