//! Checks the language of comments, messages and documents. Counts idioms that a reader has to decode, per file.
//!
//! | module | holds |
//! |---|---|
//! | `idioms` | the idioms and what to write instead |
//! | `item` | finds the code that a comment or message belongs to |
//! | `sentences` | finds long sentences in documents that users follow |
//! | `text` | extracts comments and messages of Rust files, and prose of documents |
//!
//! `xtask/language.txt` contains the accepted number of idioms of each file. A file must not have more idioms than
//! accepted. A file that is not listed must have none.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::{TaskResult, root};

mod idioms;
mod item;
mod sentences;
mod text;

use idioms::{Finding, findings};
use text::{Passage, passages, without_code};

/// The file with the accepted number of idioms of each file, relative to the root of the checkout.
const ACCEPTED: &str = "xtask/language.txt";

/// How many of the files with the most idioms are printed.
const WORST: usize = 20;

/// Folders that contain Rust files.
const FOLDERS: [&str; 5] = ["crates", "tests", "xtask/src", "fuzz/fuzz_targets", "fuzz/src"];

/// The comments, messages or paragraphs of a file.
type Passages = Vec<Passage>;

/// Options of `check-language`.
#[derive(clap::Args)]
pub(crate) struct CheckArgs {
    /// Writes the number of expressions to avoid in each file to xtask/language.txt, as the accepted number.
    #[arg(long)]
    write: bool,
    /// Prints each idiom in the files below these paths, with its line.
    paths: Vec<PathBuf>,
}

/// Options of `sample-language`.
#[derive(clap::Args)]
pub(crate) struct SampleArgs {
    /// Seed of the random choice of comments and messages.
    #[arg(long)]
    seed: u64,
    /// Number of comments and messages to print.
    #[arg(long, default_value_t = 220)]
    count: usize,
    /// Chooses sentences of documents, of the commands' help and of error messages instead.
    #[arg(long)]
    documents: bool,
}

/// Fails if a file has more idioms than accepted, or a sentence that is too long.
pub(crate) fn check(args: &CheckArgs) -> TaskResult {
    let mut counts = BTreeMap::new();
    let mut listing = String::new();
    let mut faults = String::new();
    for (file, passages) in read_all()? {
        if sentences::is_followed(&file) {
            for sentences::Long { line, words, text } in sentences::long_sentences(&passages) {
                let limit = sentences::LIMIT;
                writeln!(
                    faults,
                    "{file}:{line}: found a sentence of {words} words, expected at most {limit}: {text}"
                )?;
            }
        }
        let is_listed = args.paths.iter().any(|path| Path::new(&file).starts_with(path));
        let mut count = 0;
        for Passage { line, text } in &passages {
            for Finding { found, instead } in findings(&without_code(text)) {
                count += 1;
                if is_listed {
                    writeln!(listing, "{file}:{line}: `{found}`: {instead}: {text}")?;
                }
            }
        }
        if count > 0 {
            counts.insert(file, count);
        }
    }
    if !args.paths.is_empty() {
        io::stdout().write_all(listing.as_bytes())?;
        return Ok(());
    }
    if args.write {
        let lines: Vec<String> =
            counts.iter().map(|(file, count)| format!("{count} {file}\n")).collect();
        fs::write(root().join(ACCEPTED), lines.concat())?;
    }
    print_worst(&counts);
    faults += &compare(&counts, &accepted()?)?;
    if faults.is_empty() { Ok(()) } else { Err(faults.trim_end().into()) }
}

/// Prints the number of idioms of each crate, and the files with the most idioms.
fn print_worst(counts: &BTreeMap<String, usize>) {
    let mut folders: BTreeMap<String, usize> = BTreeMap::new();
    for (file, count) in counts {
        let parts: Vec<&str> = file.split('/').collect();
        let depth = if parts[0] == "crates" { 2 } else { 1 };
        *folders.entry(parts[..depth.min(parts.len())].join("/")).or_default() += count;
    }
    let mut files: Vec<_> = counts.iter().collect();
    files.sort_by_key(|&(file, count)| (std::cmp::Reverse(count), file));
    for (folder, count) in &folders {
        eprintln!("{count:6} {folder}");
    }
    eprintln!("{:6} in all; files with the most idioms:", counts.values().sum::<usize>());
    for (file, count) in files.iter().take(WORST) {
        eprintln!("{count:6} {file}");
    }
}

/// Returns the files with more idioms than accepted, or an empty text.
fn compare(
    counts: &BTreeMap<String, usize>,
    accepted: &BTreeMap<String, usize>,
) -> Result<String, Box<dyn Error>> {
    let mut worse = String::new();
    for (file, &count) in counts {
        let most = accepted.get(file).copied().unwrap_or(0);
        if count > most {
            writeln!(worse, "{file}: {count} idioms, expected at most {most}")?;
        }
    }
    if !worse.is_empty() {
        worse += "run `cargo xtask check-language FILE` to list them with replacements";
    }
    Ok(worse)
}

fn accepted() -> Result<BTreeMap<String, usize>, Box<dyn Error>> {
    let mut accepted = BTreeMap::new();
    for (line, number) in fs::read_to_string(root().join(ACCEPTED))?.lines().zip(1..) {
        let parsed =
            line.split_once(' ').and_then(|(count, file)| Some((count.parse().ok()?, file)));
        let (count, file) =
            parsed.ok_or_else(|| format!("{ACCEPTED}:{number}: expected COUNT FILE"))?;
        accepted.insert(file.to_owned(), count);
    }
    Ok(accepted)
}

/// Prints comments and messages that are chosen at random with the given seed, each with the code it belongs to.
pub(crate) fn sample(args: &SampleArgs) -> TaskResult {
    if args.documents {
        return sample_documents(args);
    }
    let mut all = Vec::new();
    for (file, passages) in read_all()? {
        if file.ends_with(".rs") {
            all.extend(passages.into_iter().map(|passage| (file.clone(), passage)));
        }
    }
    let mut listing = String::new();
    let mut random = ib_types::rng::Rng::new(args.seed);
    for _ in 0..args.count.min(all.len()) {
        let chosen = (random.next_u64() % all.len() as u64) as usize;
        let (file, Passage { line, text }) = all.swap_remove(chosen);
        let source = fs::read_to_string(root().join(&file))?;
        writeln!(listing, "{file}:{line}: {text}")?;
        for code in item::lines(&source, line) {
            writeln!(listing, "    | {code}")?;
        }
    }
    Ok(io::stdout().write_all(listing.as_bytes())?)
}

/// Prints sentences of documents and error messages that are chosen at random with the given seed: a sentence with its
/// section, a table row with the table's head, an error message with its item. The documents in
/// docs/reference/commands contain the commands' help.
fn sample_documents(args: &SampleArgs) -> TaskResult {
    let mut all = Vec::new();
    for (file, passages) in read_all()? {
        let source = fs::read_to_string(root().join(&file))?;
        let lines: Vec<&str> = source.lines().collect();
        for Passage { line, text } in passages {
            let before = &lines[..line - 1];
            if !file.ends_with(".rs") {
                let section = before.iter().rfind(|line| line.starts_with('#')).copied();
                let table = before.iter().rposition(|line| line.starts_with("|---"));
                let head = table.filter(|_| text.starts_with('|')).map(|at| lines[at - 1]);
                for sentence in sentences::sentences(&text) {
                    let context: Vec<String> =
                        section.into_iter().chain(head).map(str::to_owned).collect();
                    all.push((format!("{file}:{line}: {sentence}"), context));
                }
            } else if lines[line - 1].contains("#[error(") {
                let context = item::lines(&source, line).into_iter().map(str::to_owned).collect();
                all.push((format!("{file}:{line}: {text}"), context));
            }
        }
    }
    let mut listing = String::new();
    let mut random = ib_types::rng::Rng::new(args.seed);
    for _ in 0..args.count.min(all.len()) {
        let chosen = (random.next_u64() % all.len() as u64) as usize;
        let (passage, context) = all.swap_remove(chosen);
        writeln!(listing, "{passage}")?;
        for line in context {
            writeln!(listing, "    | {line}")?;
        }
    }
    Ok(io::stdout().write_all(listing.as_bytes())?)
}

/// Returns the comments, messages and paragraphs of all files, by file name.
fn read_all() -> Result<Vec<(String, Passages)>, Box<dyn Error>> {
    let mut files = Vec::new();
    for folder in FOLDERS {
        collect(&root().join(folder), &mut files)?;
    }
    let mut all = Vec::new();
    let documents = crate::paths::documents();
    for path in files.into_iter().chain(documents.into_iter().map(|path| root().join(path))) {
        let text =
            fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let is_rust = path.extension().is_some_and(|extension| extension == "rs");
        let name = path.strip_prefix(root())?.display().to_string();
        all.push((name, passages(&text, is_rust)));
    }
    all.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(all)
}

/// Adds the Rust files in a folder and its subfolders.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> TaskResult {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            let is_foreign = path.ends_with("node_modules") || path.ends_with("target");
            if !is_foreign {
                collect(&path, files)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs")
            // This file contains the list of idioms.
            && !path.ends_with("language/idioms.rs")
        {
            files.push(path);
        }
    }
    Ok(())
}
