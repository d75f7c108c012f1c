//! Tests that every `cargo xtask` command in the documents can be parsed, whether it is in a code block or in a
//! sentence.

use std::fs;
use std::path::PathBuf;

use clap::Parser as _;

use crate::{Cli, paths, root};

/// Splits a command line into words. Words in single quotes may contain spaces. A `#` starts a comment.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (at, part) in line.split('\'').enumerate() {
        if at % 2 == 1 {
            words.push(part.to_owned());
            continue;
        }
        let (said, remark) =
            part.split_once('#').map_or((part, None), |(said, remark)| (said, Some(remark)));
        words.extend(said.split_whitespace().map(str::to_owned));
        if remark.is_some() {
            break;
        }
    }
    words
}

#[test]
fn every_line_of_the_documents_is_a_command_line() {
    let mut found = 0;
    let others = ["tests/interop/README.md", "fuzz/README.md"].map(PathBuf::from);
    for document in paths::documents().into_iter().chain(others) {
        let text = fs::read_to_string(root().join(&document)).expect("the document is readable");
        for part in text.lines().flat_map(|line| line.split('`')) {
            let Some(line) = part.trim_start_matches("$ ").strip_prefix("cargo xtask ") else {
                continue;
            };
            if line.contains('…') {
                continue;
            }
            found += 1;
            let words = ["xtask".to_owned()].into_iter().chain(words(line));
            if let Err(error) = Cli::try_parse_from(words) {
                panic!("{}: cargo xtask {line}: {error}", document.display());
            }
        }
    }
    assert!(found > 30, "found only {found} command lines");
}

#[test]
fn words_end_at_a_remark() {
    assert_eq!(words("sm --only 'long answer'   # some of it"), ["sm", "--only", "long answer"]);
}
