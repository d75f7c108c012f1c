//! Every path that the documents name exists.

use std::fs;

use crate::{Chored, root};

const DOCUMENTS: [&str; 8] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs/benchmarks.md",
    "docs/fabric-files.md",
    "docs/reports.md",
    "tests/interop/README.md",
];

/// The places that a path in a document starts with.
const ROOMS: [&str; 8] =
    ["crates/", "docs/", "examples/", "tests/", "fuzz/", "xtask/", ".ci/", ".cargo/"];

/// Checks the words in backquotes and the targets of links.
pub(crate) fn check() -> Chored {
    let mut missing = Vec::new();
    let mut found = 0;
    for document in DOCUMENTS {
        let text = fs::read_to_string(root().join(document))
            .map_err(|error| format!("{document}: {error}"))?;
        for (number, line) in text.lines().enumerate() {
            for path in line.split(['`', '(', ')', ' ']).filter(|word| is_path(word)) {
                let path = path.trim_end_matches(['.', ',', ':', ';']);
                found += 1;
                if !root().join(path).exists() {
                    missing.push(format!("{document}:{}: {path} does not exist", number + 1));
                }
            }
        }
    }
    if missing.is_empty() {
        eprintln!("{found} paths in {} documents exist", DOCUMENTS.len());
        return Ok(());
    }
    Err(missing.join("\n").into())
}

fn is_path(word: &str) -> bool {
    ROOMS.iter().any(|room| word.starts_with(room)) && !word.contains(['*', '<', '{', '…'])
}
