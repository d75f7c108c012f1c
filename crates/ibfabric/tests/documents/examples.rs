//! Runs the examples of the crates. Each example prints the output that its first lines show.
//!
//! `cargo test --workspace` builds the examples with the tests. If only this test was built, examples that are
//! missing or older than their source are skipped and reported.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::expected::{Numbers, difference, fits};
use crate::{print_line, root};

/// Returns the sources of all examples.
fn sources(root: &Path) -> Vec<PathBuf> {
    let crates = fs::read_dir(root.join("crates")).expect("the directory can be read").flatten();
    let places = crates.filter_map(|entry| fs::read_dir(entry.path().join("examples")).ok());
    let mut sources: Vec<PathBuf> = places.flatten().flatten().map(|entry| entry.path()).collect();
    sources.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    sources.sort();
    sources
}

/// Returns the command and the expected output from the first lines of a source.
fn shown(text: &str) -> Option<(String, Vec<String>)> {
    let head = text.lines().map_while(|line| line.strip_prefix("//!"));
    let mut lines = head.map(|line| line.strip_prefix(' ').unwrap_or(line).to_owned());
    lines.find(|line| line == "```text")?;
    let command = lines.next()?.strip_prefix("$ ")?.to_owned();
    Some((command, lines.take_while(|line| line != "```").collect()))
}

#[test]
fn examples_print_what_they_show() {
    let root = root();
    let test = std::env::current_exe().expect("the path of the test is known");
    let built =
        test.parent().and_then(Path::parent).expect("the path has a parent").join("examples");
    let (mut found, mut run, mut wrong) = (0, 0, String::new());
    for source in sources(&root) {
        let text = fs::read_to_string(&source).expect("the file can be read");
        // Examples that need a file or an HCA show their command without `$ `. They are not run.
        let Some((command, lines)) = shown(&text) else { continue };
        found += 1;
        let name =
            source.file_stem().and_then(|name| name.to_str()).expect("the file name is UTF-8");
        let package =
            source.ancestors().nth(2).and_then(Path::file_name).expect("the path has a package");
        let expected = format!("cargo run -p {} --example {name}", package.display());
        if command != expected {
            wrong += &format!("{}: found `{command}`, expected `{expected}`\n", source.display());
        }
        let program = built.join(name);
        let time = |path: &Path| path.metadata().and_then(|it| it.modified()).ok();
        if time(&program).is_none_or(|made| time(&source).is_some_and(|changed| changed > made)) {
            print_line(&format!("not run: {} is not built", program.display()));
            if std::env::var_os("IBFABRIC_ALL_PROGRAMS").is_some() {
                wrong += &format!("{} is not built\n", program.display());
            }
            continue;
        }
        run += 1;
        let output = Command::new(program)
            .stdin(Stdio::null())
            .output()
            .expect("the program can be started");
        let printed =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        let printed: Vec<&str> = printed.lines().collect();
        if !output.status.success() || !fits(&lines, &printed, Numbers::Count) {
            let what = difference(&lines, &printed, Numbers::Count);
            wrong += &format!("{}: {}\n{what}", source.display(), output.status);
        }
    }
    assert!(found >= 13, "{found} examples show their output, expected at least 13");
    print_line(&format!("{run} of {found} examples run"));
    assert!(wrong.is_empty(), "\n{wrong}");
}
