//! Parses all examples of the help texts, and runs examples that need no hardware.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use ibfabric::cli::{self, Cli};

const PROGRAM: &str = env!("CARGO_BIN_EXE_ibfabric");

/// Returns the names of all subcommands, as [`cli::examples`] expects them. A prefix distinguishes subcommands with
/// equal names.
fn names(command: &clap::Command, of: &str) -> Vec<String> {
    let below = command.get_subcommands().filter(|below| below.get_name() != "help");
    let name = |below: &clap::Command| match (of, below.get_name()) {
        ("sm", "ctl") => "sm-ctl".to_owned(),
        ("acm" | "acm-ctl", name) => format!("acm-{name}"),
        ("rtrs", name) => format!("rtrs-{name}"),
        ("rtrs-ctl", name) => format!("rtrs-ctl-{name}"),
        (_, name) => name.to_owned(),
    };
    below.flat_map(|below| [vec![name(below)], names(below, &name(below))].concat()).collect()
}

/// Splits a shell line into commands and their words. Handles only the syntax that examples use.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![vec![]];
    let (mut word, mut quote) = (None::<String>, None);
    for letter in line.chars() {
        match (quote, letter) {
            (Some(end), letter) if letter == end => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, '|' | '&' | '\n' | ' ') => {
                let command = commands.last_mut().expect("the list is not empty");
                command.extend(word.take());
                if letter != ' ' {
                    commands.push(vec![]);
                }
            }
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    commands.last_mut().expect("the list is not empty").extend(word);
    commands
}

#[test]
fn all_examples_parse() {
    let names = names(&cli::command(), "");
    assert!(names.contains(&"ctl".to_owned()) && names.contains(&"sm-ctl".to_owned()));
    for name in names {
        let examples = cli::examples(&name);
        assert!(!examples.is_empty(), "{name} has no examples");
        for (what, example) in examples {
            let own = commands(example)
                .into_iter()
                .filter(|words| words.first().is_some_and(|word| word == "ibfabric"));
            let own: Vec<_> = own.collect();
            assert!(!own.is_empty(), "{what} {example}");
            for words in own {
                let read = Cli::read(words.iter().map(Into::into));
                assert!(
                    read.is_ok(),
                    "{words:?}: {}",
                    read.expect_err("the result is an error").render()
                );
            }
        }
    }
}

/// A simulator that is killed at the end of the test.
struct Simulator(Child);

impl Drop for Simulator {
    fn drop(&mut self) {
        // Killing the process fails only if it has already exited.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A directory in which the examples run one after the other.
struct Directory(tempfile::TempDir);

impl Directory {
    fn shell(&self, line: &str) -> Command {
        let programs = Path::new(PROGRAM).parent().expect("the path has a parent");
        let mut path = vec![PathBuf::from(programs)];
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        let mut command = Command::new("sh");
        command
            .args(["-c", line])
            .env("PATH", std::env::join_paths(path).expect("no directory name contains a colon"))
            .current_dir(self.0.path());
        command
    }

    fn run(&self, line: &str) -> Output {
        self.shell(line).output().expect("the program can be started")
    }

    /// Starts a simulator and waits until it is ready.
    fn serve(&self, line: &str) -> Simulator {
        let mut command = self.shell(&format!("exec {line}"));
        let mut child =
            Simulator(command.stdout(Stdio::piped()).spawn().expect("the program can be started"));
        let mut printed = String::new();
        let stdout = child.0.stdout.as_mut().expect("standard output is piped");
        BufReader::new(stdout).read_line(&mut printed).expect("the program prints a line");
        assert_eq!(printed, "READY\n", "{line}");
        child
    }
}

fn examples(name: &str) -> impl Iterator<Item = &'static str> {
    cli::examples(name).iter().map(|(_, example)| *example)
}

#[test]
fn examples_run() {
    let directory = Directory(tempfile::tempdir().expect("a temporary directory can be created"));
    for example in ["gen", "route", "check"].into_iter().flat_map(examples) {
        // The output of ibnetdiscover and OpenSM's dump directory need a real fabric, so files of this test replace
        // them.
        let line =
            example.replace("ibnetdiscover |", "cat torus.net |").replace("/var/log/", "dumps/");
        // The test generates smaller fabrics than the examples show, so that it is fast.
        let line = line.replace("18,18,36 1,18,18", "4,4,4 1,2,2").replace("8x8x8", "4x4x4");
        let output = directory.run(&line);
        let printed = String::from_utf8_lossy(&output.stderr);
        assert_ne!(output.status.code(), Some(2), "{line}: {printed}");
    }
    assert!(
        fs::exists(directory.0.path().join("fabric.html")).expect("the directory can be searched")
    );

    let socket = format!("ibfabric-examples-{}", std::process::id());
    for example in examples("sim") {
        // Runs only the simulator: third-party tools may not be installed.
        let line = example.split('&').next().expect("the example is not empty");
        let named = line.replace("--name lab", "");
        let simulator = directory.serve(&format!("env IBSIM_SOCKNAME={socket} {named}"));
        for example in examples("ctl") {
            let line = example.replace("--name lab", "");
            let output = directory.run(&format!("IBSIM_SOCKNAME={socket} {line}"));
            let printed = String::from_utf8_lossy(&output.stderr);
            // The simulated fabric has no node leaf-1, so this example fails.
            let expected = i32::from(example.contains("leaf-1"));
            assert_eq!(output.status.code(), Some(expected), "{line}: {printed}");
            if example.contains("json") {
                serde_json::from_slice::<serde_json::Value>(&output.stdout)
                    .expect("the text is JSON");
            }
        }
        drop(simulator);
    }
}
