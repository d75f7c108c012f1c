//! The language of comments, messages and documents: idioms that a reader has to decode, counted per file.
//!
//! | module | holds |
//! |---|---|
//! | `idioms` | the idioms and what to write instead |
//! | `text` | comments and messages of Rust files, prose of documents |
//!
//! `xtask/language.txt` has the accepted number of idioms of each file. A file may not exceed its number, and a file that
//! is not listed may have none.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::{TaskResult, root};

mod idioms;
mod text;

use idioms::{Finding, findings};
use text::{Passage, passages};

/// The accepted numbers, from the root of the checkout.
const ACCEPTED: &str = "xtask/language.txt";

/// Number of files that are printed.
const WORST: usize = 20;

/// Folders of Rust files.
const FOLDERS: [&str; 5] = ["crates", "tests", "xtask/src", "fuzz/fuzz_targets", "fuzz/src"];

/// The passages of a file.
type Passages = Vec<Passage>;

/// Options of `check-language`.
#[derive(clap::Args)]
pub(crate) struct CheckArgs {
    /// Writes the present numbers as the accepted ones.
    #[arg(long)]
    write: bool,
    /// Prints the findings of the files below these paths, line by line.
    paths: Vec<PathBuf>,
}

/// Options of `sample-language`.
#[derive(clap::Args)]
pub(crate) struct SampleArgs {
    /// Seed of the choice.
    #[arg(long)]
    seed: u64,
    /// Number of comments and messages.
    #[arg(long, default_value_t = 220)]
    count: usize,
}

/// Compares the numbers of idioms with the accepted ones.
pub(crate) fn check(args: &CheckArgs) -> TaskResult {
    let mut counts = BTreeMap::new();
    let mut listing = String::new();
    for (file, passages) in read_all()? {
        let is_listed = args.paths.iter().any(|path| Path::new(&file).starts_with(path));
        let mut count = 0;
        for Passage { line, text } in &passages {
            for Finding { found, instead } in findings(text) {
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
    compare(&counts, &accepted()?)
}

/// Prints the counts by crate and the worst files.
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
    eprintln!("{:6} in all; the worst files:", counts.values().sum::<usize>());
    for (file, count) in files.iter().take(WORST) {
        eprintln!("{count:6} {file}");
    }
}

fn compare(counts: &BTreeMap<String, usize>, accepted: &BTreeMap<String, usize>) -> TaskResult {
    let mut worse = String::new();
    for (file, &count) in counts {
        let most = accepted.get(file).copied().unwrap_or(0);
        if count > most {
            writeln!(worse, "{file}: {count} idioms, expected at most {most}")?;
        }
    }
    if worse.is_empty() {
        return Ok(());
    }
    let hint = "`cargo xtask check-language FILE` names them and what to write instead";
    Err(format!("{worse}{hint}").into())
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

/// Prints comments and messages that a seed chooses.
pub(crate) fn sample(args: &SampleArgs) -> TaskResult {
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
        writeln!(listing, "{file}:{line}: {text}")?;
    }
    Ok(io::stdout().write_all(listing.as_bytes())?)
}

/// Returns the passages of all files, by name.
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

/// Collects the Rust files below a folder.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> TaskResult {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            let is_foreign = path.ends_with("node_modules") || path.ends_with("target");
            if !is_foreign {
                collect(&path, files)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs")
            // It names the idioms.
            && !path.ends_with("language/idioms.rs")
        {
            files.push(path);
        }
    }
    Ok(())
}
