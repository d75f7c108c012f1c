//! The idioms, and what to write instead.

/// An idiom in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    /// The words of the text.
    pub(super) found: String,
    /// What to write instead.
    pub(super) instead: &'static str,
}

/// Idioms as sequences of words. Alternatives of a word are separated by `|`, and `^` stands for the start of a
/// sentence.
const IDIOMS: &[(&str, &str)] = &[
    (
        "^ what|who|whoever|nobody|somebody|everything|those",
        "start with a noun of the field or a verb",
    ),
    (
        "whoever|whomever|anybody|everybody|nobody|somebody|no-one",
        "name the client, the user, the process",
    ),
    ("tell|tells|told|telling", "report, return, notify"),
    ("say|says|said|saying", "print, specify, state"),
    ("ask|asks|asked|asking|asker", "query, request"),
    ("ways", "paths, routes, links"),
    ("the|a|this|that|which|another|other|each|its|one way", "path, route, link"),
    ("goes|go|went|going round|astray", "forwarding loop; is misrouted"),
    ("goes|go|went|going on", "continues"),
    ("has|have|had gone", "disconnected, exited"),
    ("under way", "outstanding, in flight"),
    ("to and fro", "round trip"),
    ("there and back", "round trip"),
    ("anew", "re-…, again"),
    ("for ever", "indefinitely"),
    ("again and again", "repeatedly"),
    ("so many", "N"),
    ("heir|heirs", "successor"),
    ("gives|give|given way", "yields"),
    ("passed over", "ignored"),
    ("written over", "overwritten"),
    ("is|are none", "is not a …"),
    ("is|are|was wanted", "is requested; no longer: closed, removed, cancelled"),
    ("lane|lanes", "VL, VLs"),
    ("adapter|adapters", "HCA"),
    ("moment|moments", "time"),
    ("tour|exercise", "self-test, load generator"),
    ("patience", "timeout"),
    ("question|questions", "query, request"),
    ("all is well", "all checks passed"),
    ("foreign", "non-RDMA; of another …"),
    ("lie|lies|lied|lying", "is inconsistent"),
    ("stays|stay", "keeps running, remains"),
    ("without it|them|one", "[default: …]; if none"),
    ("service of names", "ACM service"),
    ("heard", "received, last seen"),
    ("goes|go|went to sleep", "sleeps"),
    ("let|lets in|out|go", "accept, send, release"),
];

/// Returns the idioms of a text.
pub(super) fn findings(text: &str) -> Vec<Finding> {
    let words = words(text);
    let mut all = Vec::new();
    for &(pattern, instead) in IDIOMS {
        let pattern: Vec<Vec<&str>> =
            pattern.split(' ').map(|word| word.split('|').collect()).collect();
        for start in 0..words.len() {
            let rest = &words[start..];
            let is_found = pattern.len() <= rest.len()
                && pattern.iter().zip(rest).all(|(any, word)| any.contains(&word.as_str()));
            if is_found {
                let found = rest[..pattern.len()].join(" ");
                all.push(Finding { found: found.trim_start_matches("^ ").to_owned(), instead });
            }
        }
    }
    all
}

/// Returns the lower-case words of a text, with `^` before the first one of each sentence.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut begins = true;
    for word in text.split_whitespace() {
        let bare = word.trim_matches(|it: char| !it.is_alphanumeric() && it != '-');
        let is_word = !bare.is_empty() && bare.chars().all(|it| it.is_alphabetic() || it == '-');
        if begins && !bare.is_empty() {
            words.push("^".to_owned());
            begins = false;
        }
        // A word of code breaks sequences.
        words.push(if is_word { bare.to_lowercase() } else { "…".to_owned() });
        begins |= word.ends_with(['.', '!', '?', '|']);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        findings(text).into_iter().map(|finding| finding.found).collect()
    }

    #[test]
    fn idioms_are_found_at_their_places() {
        assert_eq!(found("Returns what is left. Who waits is told."), ["who", "told"]);
        assert_eq!(
            found("The packet goes on its way."),
            ["goes on", "its way"].map(str::to_owned).iter().rev().cloned().collect::<Vec<_>>()
        );
        assert_eq!(found("An HCA sends packets to the SM in one direction."), [""; 0]);
        assert_eq!(found("Two requests are under way."), ["under way"]);
    }
}
