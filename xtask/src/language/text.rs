//! Extracts comments and messages from Rust files, and prose from documents.

/// A comment, a message or a paragraph of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Passage {
    /// Number of the passage's first line in its file.
    pub(super) line: usize,
    pub(super) text: String,
}

/// Returns the passages of a file.
pub(super) fn passages(text: &str, is_rust: bool) -> Vec<Passage> {
    if is_rust { rust(text) } else { document(text) }
}

/// Returns the paragraphs of a document, except code blocks.
fn document(text: &str) -> Vec<Passage> {
    let mut all: Vec<Passage> = Vec::new();
    let (mut is_code, mut continues) = (false, false);
    for (line, number) in text.lines().zip(1..) {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        let is_prose = !is_code && !line.trim().is_empty() && !line.starts_with("```");
        let is_row = line.starts_with('|') || line.starts_with('#');
        if !is_prose {
            continues = false;
            continue;
        }
        match all.last_mut() {
            Some(last) if continues && !is_row => {
                last.text.push(' ');
                last.text.push_str(line.trim());
            }
            _ => all.push(Passage { line: number, text: line.trim().to_owned() }),
        }
        continues = !is_row;
    }
    all
}

/// Returns the comments of a Rust file, and its string literals that contain a space.
fn rust(text: &str) -> Vec<Passage> {
    let mut all: Vec<Passage> = Vec::new();
    let mut rest = text;
    let mut last_comment = 0;
    let line_of = |rest: &str| 1 + text[..text.len() - rest.len()].matches('\n').count();
    while let Some(next) = rest.find(['/', '"', '\'', 'r']) {
        let before = rest[..next].chars().next_back();
        rest = &rest[next..];
        let is_word = before.is_some_and(|it| it.is_alphanumeric() || it == '_');
        if rest.starts_with("//") {
            let end = rest.find('\n').unwrap_or(rest.len());
            let line = line_of(rest);
            let comment = rest[..end].trim_start_matches(['/', '!']).trim();
            let is_table = comment.starts_with('|');
            match all.last_mut() {
                Some(last) if last_comment + 1 == line && !comment.is_empty() && !is_table => {
                    last.text.push(' ');
                    last.text.push_str(comment);
                }
                _ => all.push(Passage { line, text: comment.to_owned() }),
            }
            last_comment = if comment.is_empty() || is_table { 0 } else { line };
            rest = &rest[end..];
        } else if rest.starts_with('"') {
            let length = string_length(&rest[1..]);
            push_message(&mut all, line_of(rest), &rest[1..=length]);
            rest = rest.get(length + 2..).unwrap_or("");
        } else if let Some(length) = raw_string(rest).filter(|_| !is_word) {
            push_message(&mut all, line_of(rest), &rest[..length]);
            rest = &rest[length..];
        } else if rest.starts_with('\'') {
            rest = &rest[character_length(rest)..];
        } else {
            rest = &rest[1..];
        }
    }
    all.retain(|passage| !passage.text.is_empty());
    all
}

fn push_message(all: &mut Vec<Passage>, line: usize, literal: &str) {
    if literal.contains(' ') {
        let words: Vec<&str> = literal.split_whitespace().filter(|word| *word != "\\").collect();
        all.push(Passage { line, text: words.join(" ") });
    }
}

/// Returns the length of a string literal's content. `rest` starts after the opening quote.
fn string_length(rest: &str) -> usize {
    let mut is_escaped = false;
    for (place, byte) in rest.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return place,
            _ => {}
        }
    }
    rest.len()
}

/// Returns the length of the raw string literal at the start of `rest`, or `None` if none starts there.
fn raw_string(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix('r')?;
    let hashes = after.bytes().take_while(|byte| *byte == b'#').count();
    after[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let start = 2 + hashes;
    Some(rest[start..].find(&end).map_or(rest.len(), |found| start + found + end.len()))
}

/// Returns the length of the character literal at the start of `rest`, or 1 if the quote belongs to a lifetime.
fn character_length(rest: &str) -> usize {
    let mut characters = rest.char_indices().skip(1);
    match characters.next() {
        Some((_, '\\')) => rest[3..].find('\'').map_or(1, |end| 3 + end + 1),
        Some(_) => match characters.next() {
            Some((place, '\'')) => place + 1,
            _ => 1,
        },
        None => 1,
    }
}

/// Replaces each text in backquotes by an ellipsis.
pub(super) fn without_code(text: &str) -> String {
    text.split('`').step_by(2).collect::<Vec<_>>().join("`…`")
}

#[cfg(test)]
mod tests;
