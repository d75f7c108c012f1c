//! Finds sentences that are too long for documents that users follow.

use super::text::Passage;

/// The largest number of words of a sentence in README, tutorials and how-to guides.
pub(super) const LIMIT: usize = 30;

/// Documents in which long sentences are errors.
const FOLLOWED: [&str; 3] = ["README.md", "docs/tutorials/", "docs/how-to/"];

/// A sentence with too many words.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Long {
    /// Number of the first line of the passage that contains the sentence.
    pub(super) line: usize,
    pub(super) words: usize,
    pub(super) text: String,
}

/// Returns true if long sentences are errors in a document.
pub(super) fn is_followed(file: &str) -> bool {
    FOLLOWED.iter().any(|name| file == *name || (name.ends_with('/') && file.starts_with(name)))
}

/// Returns the sentences of a paragraph that have at least three words. The cells of a table row are one sentence.
pub(super) fn sentences(text: &str) -> Vec<String> {
    if text.starts_with('|') {
        return if text.contains("---") { Vec::new() } else { vec![text.to_owned()] };
    }
    let mut found = vec![String::new()];
    for word in text.split(' ') {
        if let Some(sentence) = found.last_mut() {
            sentence.push_str(word);
            sentence.push(' ');
        }
        if word.ends_with(['.', '?', '!']) {
            found.push(String::new());
        }
    }
    found.iter().map(|it| it.trim().to_owned()).filter(|it| it.split(' ').count() > 2).collect()
}

/// Returns the sentences of a document that have too many words. Each cell of a table has sentences of its own. A text
/// in backquotes counts as one word, and the target of a link is ignored.
pub(super) fn long_sentences(passages: &[Passage]) -> Vec<Long> {
    let mut long = Vec::new();
    for Passage { line, text } in passages {
        let text = without_targets(&with_single_words(text));
        for part in text.split(" | ").flat_map(|cell| cell.split(" * ")) {
            let mut words = Vec::new();
            for word in part.split_whitespace().filter(|it| it.contains(char::is_alphanumeric)) {
                words.push(word);
                let end = word.trim_end_matches([')', '*', '"']);
                if end.ends_with(['.', '?', '!']) {
                    long.extend(too_long(*line, &words));
                    words.clear();
                }
            }
            long.extend(too_long(*line, &words));
        }
    }
    long
}

fn too_long(line: usize, words: &[&str]) -> Option<Long> {
    let is_long = words.len() > LIMIT;
    is_long.then(|| Long { line, words: words.len(), text: words.join(" ") })
}

/// Replaces each text in backquotes by one word without punctuation.
fn with_single_words(text: &str) -> String {
    text.split('`').enumerate().map(|(at, part)| if at % 2 == 1 { "code" } else { part }).collect()
}

/// Removes the targets of links.
fn without_targets(text: &str) -> String {
    let mut parts = text.split("](");
    let first = parts.next().unwrap_or("").to_owned();
    parts.fold(first, |kept, part| kept + part.split_once(')').map_or("", |(_, rest)| rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words_of(text: &str) -> Vec<usize> {
        let passage = Passage { line: 1, text: text.to_owned() };
        long_sentences(&[passage]).into_iter().map(|long| long.words).collect()
    }

    #[test]
    fn sentences_beyond_the_limit_are_found() {
        let exact = vec!["word"; LIMIT].join(" ");
        assert_eq!(words_of(&format!("{exact}. {exact}.")), Vec::<usize>::new());
        assert_eq!(words_of(&format!("{exact} more. Short.")), [LIMIT + 1]);
        assert_eq!(words_of(&format!("| {exact} | more |")), Vec::<usize>::new());
        assert_eq!(words_of(&format!("{exact} `a b. c` [d](e f g).")), [LIMIT + 2]);
    }

    #[test]
    fn only_documents_that_users_follow_are_checked() {
        assert!(is_followed("docs/tutorials/ci.md") && is_followed("README.md"));
        assert!(!is_followed("docs/reference/sm.md") && !is_followed("crates/ib-sm/README.md"));
    }
}
