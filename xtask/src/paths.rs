//! Checks that all paths in the documents exist.

use std::fs;
use std::path::PathBuf;

use crate::{TaskResult, root};

/// Documents outside `docs`.
const DOCUMENTS: [&str; 7] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "examples/README.md",
    "tests/interop/README.md",
];

/// A text in a document is treated as a path of the checkout if it starts with one of these.
const ROOT_ENTRIES: [&str; 8] =
    ["crates/", "docs/", "examples/", "tests/", "fuzz/", "xtask/", ".ci/", ".cargo/"];

/// Returns the paths of all documents, relative to the root of the checkout.
pub(crate) fn documents() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("docs")).expect("the checkout has a folder `docs`");
    let mut documents: Vec<PathBuf> = entries
        .map(|entry| PathBuf::from("docs").join(entry.expect("`docs` is readable").file_name()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .chain(DOCUMENTS.map(PathBuf::from))
        .collect();
    documents.sort();
    documents
}

/// Checks that the paths in backquotes and the targets of links exist.
pub(crate) fn check() -> TaskResult {
    let mut missing = Vec::new();
    let mut found = 0;
    let documents = documents();
    for document in &documents {
        let name = document.display();
        let text = fs::read_to_string(root().join(document))
            .map_err(|error| format!("{name}: {error}"))?;
        for (number, line) in text.lines().enumerate() {
            for path in line.split(['`', '(', ')', ' ']).filter(|word| is_path(word)) {
                let path = path.trim_end_matches(['.', ',', ':', ';']);
                found += 1;
                if !root().join(path).exists() {
                    missing.push(format!("{name}:{}: {path} does not exist", number + 1));
                }
            }
        }
    }
    if missing.is_empty() {
        eprintln!("{found} paths in {} documents exist", documents.len());
        return Ok(());
    }
    Err(missing.join("\n").into())
}

fn is_path(word: &str) -> bool {
    ROOT_ENTRIES.iter().any(|room| word.starts_with(room)) && !word.contains(['*', '<', '{', '…'])
}
