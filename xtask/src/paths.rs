//! Checks that all paths, links and anchors in the documents exist, and that the book contains all documents.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::anchors::{anchors, links, unlinked_names};
use crate::{TaskResult, root};

/// Documents outside `docs` and the crates.
const DOCUMENTS: [&str; 7] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "examples/README.md",
    "tests/interop/README.md",
];

/// Documents whose links are checked, but not their language.
const OTHERS: [&str; 2] = ["fuzz/README.md", "tests/browser/README.md"];

/// The folder of the documents that `man` generates.
pub(crate) const GENERATED: &str = "docs/reference/commands";

/// The table of exit statuses that `man` generates.
const STATUSES: &str = "docs/reference/exit-status.md";

/// The table of contents of the book.
const SUMMARY: &str = "docs/SUMMARY.md";

/// A text in a document is treated as a path of the checkout if it starts with one of these.
const ROOT_ENTRIES: [&str; 9] =
    ["crates/", "docs/", "examples/", "tests/", "fuzz/", "xtask/", ".ci/", ".cargo/", "book/"];

/// Returns the paths of all documents that authors write, relative to the root of the checkout.
pub(crate) fn documents() -> Vec<PathBuf> {
    let mut documents: Vec<PathBuf> = DOCUMENTS.map(PathBuf::from).to_vec();
    collect(Path::new("docs"), &mut documents);
    let is_generated = |path: &Path| path.starts_with(GENERATED) || path == Path::new(STATUSES);
    documents.retain(|path| !is_generated(path) && path != Path::new(SUMMARY));
    documents.sort();
    documents
}

/// Adds the documents in a folder and its subfolders.
fn collect(folder: &Path, documents: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(root().join(folder)).expect("the folder can be read") {
        let path = folder.join(entry.expect("the folder can be read").file_name());
        if root().join(&path).is_dir() {
            collect(&path, documents);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            documents.push(path);
        }
    }
}

/// Checks that the paths in backquotes and the targets of links exist, and that the book contains all documents.
pub(crate) fn check() -> TaskResult {
    let mut faults = Vec::new();
    let mut found = 0;
    let documents = documents();
    for document in &documents {
        let name = document.display();
        for (number, line) in read(document)?.lines().enumerate() {
            for path in line.split(['`', '(', ')', ' ']).filter(|word| is_path(word)) {
                let path = path.trim_end_matches(['.', ',', ':', ';']);
                let path = path.split_once('#').map_or(path, |(path, _)| path);
                found += 1;
                if !root().join(path).exists() {
                    faults.push(format!("{name}:{}: {path} does not exist", number + 1));
                }
            }
        }
    }
    let count = check_links(documents, &mut faults)?;
    if faults.is_empty() {
        eprintln!("{found} paths and {count} links in the documents exist");
        return Ok(());
    }
    Err(faults.join("\n").into())
}

/// Checks all links of the documents, and those of the crates' READMEs. Returns the number of links.
fn check_links(
    mut documents: Vec<PathBuf>,
    faults: &mut Vec<String>,
) -> Result<usize, Box<dyn std::error::Error>> {
    let mut in_book = Vec::new();
    collect(Path::new("docs"), &mut in_book);
    documents.extend(in_book.iter().cloned());
    documents.extend(OTHERS.map(PathBuf::from));
    for entry in fs::read_dir(root().join("crates"))? {
        let readme = Path::new("crates").join(entry?.file_name()).join("README.md");
        documents.extend(root().join(&readme).exists().then_some(readme));
    }
    documents.sort();
    documents.dedup();
    let mut targets: BTreeMap<PathBuf, Vec<String>> = BTreeMap::new();
    for document in &documents {
        targets.insert(document.clone(), anchors(&read(document)?));
    }
    let mut count = 0;
    let mut contents = Vec::new();
    for document in &documents {
        let text = read(document)?;
        let name = document.display();
        let folder = document.parent().unwrap_or(Path::new(""));
        for link in links(&text).iter().filter(|link| !link.target.contains("://")) {
            count += 1;
            let (path, anchor) = link.target.split_once('#').unwrap_or((link.target, ""));
            let target = match path {
                "" => document.clone(),
                path => normal(&folder.join(path)),
            };
            let place = format!("{name}:{}: {}", link.line, link.target);
            if !root().join(&target).exists() {
                faults.push(format!("{place}: there is no such file"));
            } else if !anchor.is_empty() {
                let is_known =
                    targets.get(&target).is_some_and(|all| all.iter().any(|it| it == anchor));
                if !is_known {
                    faults.push(format!("{place}: the document has no such heading"));
                }
            }
            if document == Path::new(SUMMARY) {
                contents.push(target);
            }
        }
        if document.starts_with("docs") || document == Path::new("README.md") {
            for (line, word) in unlinked_names(&text) {
                faults.push(format!("{name}:{line}: found the name {word}, expected a link to it"));
            }
        }
    }
    for document in in_book.iter().filter(|path| *path != Path::new(SUMMARY)) {
        let times = contents.iter().filter(|path| *path == document).count();
        if times != 1 {
            let name = document.display();
            faults.push(format!("{SUMMARY}: found {times} links to {name}, expected one"));
        }
    }
    Ok(count)
}

fn read(document: &Path) -> Result<String, String> {
    fs::read_to_string(root().join(document))
        .map_err(|error| format!("{}: {error}", document.display()))
}

/// Removes the components `.` and `..` of a path.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(normal.pop()),
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}

fn is_path(word: &str) -> bool {
    ROOT_ENTRIES.iter().any(|room| word.starts_with(room)) && !word.contains(['*', '<', '{', '…'])
}
