//! Runs all fenced code blocks of the documents. The section *Documents* of `CONTRIBUTING.md` contains the rules.

mod blocks;
mod chores;
mod examples;
mod expected;
mod marks;
mod programs;
mod shell;

use std::collections::BTreeSet;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use blocks::Block;
use expected::Numbers;
use marks::MARKS;
use shell::{Pace, Shell};

/// The directories of documents, relative to the root of the repository. Their subdirectories are searched, too.
const PLACES: [&str; 2] = ["docs", "examples"];

/// Documents whose blocks are not run.
const WITHOUT_BLOCKS: [&str; 1] = ["CHANGELOG.md"];

/// If each document runs in its own network namespace, this number of documents run concurrently.
const BESIDE: usize = 3;

/// The tutorials. Users paste or type their commands, so tests also run them with [`Pace::Pasted`] and
/// [`Pace::Typed`].
const FOLLOWED: [&str; 3] =
    ["docs/tutorials/first-ten-minutes.md", "docs/tutorials/storage.md", "docs/tutorials/ci.md"];

/// The pause between two slowly typed lines.
const PAUSE: Duration = Duration::from_secs(3);

/// A test holds this lock while it runs documents in the shared network namespace.
static NETWORK: Mutex<()> = Mutex::new(());

/// The result of running one document.
#[derive(Default)]
struct Report {
    blocks: usize,
    run: usize,
    chores: usize,
    marks: BTreeSet<usize>,
    missing: Vec<String>,
    wrong: Vec<String>,
}

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the repository exists")
}

/// Returns the paths of the documents, relative to the root of the repository.
fn documents(root: &Path) -> Vec<String> {
    let mut documents = Vec::new();
    let mut queue: Vec<PathBuf> = PLACES.iter().map(|place| root.join(place)).collect();
    let beside_readme = fs::read_dir(root).expect("the directory can be read");
    let mut files: Vec<PathBuf> = beside_readme.flatten().map(|entry| entry.path()).collect();
    while let Some(directory) = queue.pop() {
        let entries = fs::read_dir(directory).expect("the directory can be read").flatten();
        let (subdirectories, found): (Vec<_>, Vec<_>) =
            entries.map(|entry| entry.path()).partition(|path| path.is_dir());
        queue.extend(subdirectories);
        files.extend(found);
    }
    for path in files {
        let path = path.strip_prefix(root).expect("the path is below the root");
        let name = path.to_str().expect("the name is UTF-8");
        if name.ends_with(".md") && !WITHOUT_BLOCKS.contains(&name) {
            documents.push(name.to_owned());
        }
    }
    documents.sort();
    documents
}

#[test]
fn documents_show_actual_output() {
    let root = root();
    let documents = documents(&root);
    assert!(documents.len() > 40 && documents.contains(&"README.md".to_owned()), "{documents:?}");
    let only = env::var("IBFABRIC_DOCUMENT").ok();
    let queue =
        documents.iter().filter(|name| only.as_ref().is_none_or(|only| name.contains(only)));
    let queue = Mutex::new(queue.collect::<Vec<_>>().into_iter());
    let apart = shell::apart();
    let _turn = turn(apart.as_deref());
    let workers = if apart.is_some() { BESIDE } else { 1 };
    let reports = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().expect("no test thread panics").next();
                    let Some(name) = next else { break };
                    let begin = Instant::now();
                    let report = run(&root, name, apart.as_deref(), Pace::Watched);
                    reports.lock().expect("no test thread panics").push((
                        name,
                        report,
                        begin.elapsed(),
                    ));
                }
            });
        }
    });
    let mut reports = reports.into_inner().expect("no test thread panics");
    reports.sort_by_key(|(name, ..)| *name);
    let mut wrong = String::new();
    let mut marked: BTreeSet<usize> = BTreeSet::new();
    for (name, report, took) in &reports {
        let Report { blocks, run, chores, marks, missing, wrong: faults } = report;
        print_line(&format!(
            "{name}: {blocks} blocks, {run} commands run, {chores} cargo commands checked, {} lines marked, {} lines skipped; {:.1} s",
            marks.len(),
            missing.len(),
            took.as_secs_f64()
        ));
        missing.iter().for_each(|line| print_line(&format!("  not run: {line}")));
        faults
            .iter()
            .for_each(|fault| writeln!(wrong, "{fault}").expect("a `String` accepts text"));
        marked.extend(marks);
    }
    if only.is_none() {
        for (at, mark) in MARKS.iter().enumerate() {
            assert!(!mark.reason.is_empty(), "{}: `{}` has no reason", mark.file, mark.command);
            if !marked.contains(&at) {
                writeln!(
                    wrong,
                    "{}: found no line `{}`, which `MARKS` contains",
                    mark.file, mark.command
                )
                .expect("a `String` accepts text");
            }
        }
    }
    print_line(&format!("{} lines are marked as not to be run by a test", marked.len()));
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn followed_documents_run_when_blocks_are_pasted() {
    follow(Pace::Pasted);
}

#[test]
fn followed_documents_run_when_typed_slowly() {
    follow(Pace::Typed(PAUSE));
}

/// Runs the documents of [`FOLLOWED`] in the given input mode.
fn follow(pace: Pace) {
    let (root, apart) = (root(), shell::apart());
    let _turn = turn(apart.as_deref());
    let only = env::var("IBFABRIC_DOCUMENT").ok();
    let is_wanted = |name: &&&str| only.as_ref().is_none_or(|only| name.contains(only));
    let run = |name: &&str| run(&root, name, apart.as_deref(), pace).wrong;
    let faults: Vec<String> = FOLLOWED.iter().filter(is_wanted).flat_map(run).collect();
    assert!(faults.is_empty(), "{pace:?}:\n{}", faults.join("\n"));
}

/// If documents share a network namespace, waits until no other test runs documents. Other tests wait until the
/// returned guard is dropped.
fn turn(apart: Option<&[&str]>) -> Option<MutexGuard<'static, ()>> {
    apart.is_none().then(|| NETWORK.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Prints a line even if the test passes.
fn print_line(line: &str) {
    writeln!(std::io::stderr(), "{line}").expect("standard error can be written");
}

/// Runs a document.
fn run(root: &Path, name: &str, apart: Option<&[&str]>, pace: Pace) -> Report {
    let mut report = Report::default();
    let text = fs::read_to_string(root.join(name)).expect("the file exists");
    match blocks::blocks(&text) {
        Ok(blocks) if blocks.is_empty() => {}
        Ok(blocks) => {
            let mut shell = Shell::start(root, apart);
            for block in blocks {
                report.blocks += 1;
                if report.block(root, name, &block, (&mut shell, apart, pace)).is_err() {
                    break;
                }
            }
        }
        Err(fault) => report.wrong.push(format!("{name}:{fault}")),
    }
    report
}

/// The error if the rest of the document cannot be run.
struct End;

impl Report {
    fn block(
        &mut self,
        root: &Path,
        name: &str,
        block: &Block,
        (shell, apart, pace): (&mut Shell, Option<&[&str]>, Pace),
    ) -> Result<(), End> {
        if let Some(file) = block.file() {
            let path = shell.path(file);
            fs::create_dir_all(path.parent().expect("the path has a parent"))
                .expect("the directory can be created");
            fs::write(path, block.lines.join("\n") + "\n").expect("the file can be written");
            return Ok(());
        }
        if block.language() != "console" {
            self.wrong.push(format!(
                "{name}:{}: found a block of `{}`, expected `console`, or `file=NAME` after the language",
                block.line, block.info
            ));
            return Ok(());
        }
        let numbers = if block.numbers_vary() { Numbers::Vary } else { Numbers::Count };
        let steps = match block.steps() {
            Ok(steps) => steps,
            Err(fault) => {
                self.wrong.push(format!("{name}:{fault}"));
                return Ok(());
            }
        };
        for step in steps {
            let place = format!("{name}:{}: {}", step.line, step.command);
            if let Some((at, _)) = marks::find(name, &step.command) {
                self.marks.insert(at);
                continue;
            }
            if chores::is_chore(&step.command) {
                self.chores += 1;
                if let Err(fault) = chores::check(root, &step.command) {
                    self.wrong.push(format!("{place}: {fault}"));
                }
                continue;
            }
            if programs::lacks_fuse(&step.command, apart) {
                self.missing.push(format!(
                    "{place}: FUSE is not available; the rest of the block is skipped, too"
                ));
                return Ok(());
            }
            if let Some(program) = programs::missing(&step.command) {
                let what = format!(
                    "{place}: {program} is not installed; the rest of the block is skipped, too"
                );
                if env::var_os("IBFABRIC_ALL_PROGRAMS").is_some() {
                    self.wrong.push(what);
                } else {
                    self.missing.push(what);
                }
                return Ok(());
            }
            self.run += 1;
            match shell.run(&step, numbers, pace) {
                Ok(None) => {}
                Ok(Some(wrong)) => self.wrong.push(format!("{place}: {wrong}")),
                Err(shell::Stuck(wrong)) => {
                    self.wrong.push(format!("{place}: {wrong}"));
                    return Err(End);
                }
            }
        }
        if let Some(wrong) = shell.end_block() {
            self.wrong.push(format!("{name}:{}: {wrong}", block.line));
        }
        Ok(())
    }
}
