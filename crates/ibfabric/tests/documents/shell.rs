//! The shell that runs the commands of a document in one temporary directory and, if possible, in its own
//! network namespace.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::blocks::Step;
use crate::expected::{Numbers, begins, difference, fits};
use crate::programs::{ordinary_path, search_path};

/// A foreground command has to exit within this time. A background command has to print the expected output within
/// this time.
const LIMIT: Duration = Duration::from_secs(60);

/// At the end of the document, the remaining programs get SIGTERM. Programs that do not exit within this time are
/// killed.
const FAREWELL: Duration = Duration::from_secs(3);

/// The script that replaces `cargo run` in the shell: it starts the program that was built for the test.
const CARGO: &str = r#"#!/bin/bash
case " $* " in
    *" --package ibfabric -- "*) ;;
    *) echo "expected --package ibfabric --" >&2; exit 2 ;;
esac
while [ "$1" != "--" ]; do shift; done
shift
exec ibfabric "$@"
"#;

/// A running shell, with the processes that its commands have started.
pub(crate) struct Shell {
    bash: Child,
    input: Option<ChildStdin>,
    /// The temporary directory for all files of the document.
    place: tempfile::TempDir,
    commands: usize,
    has_background: bool,
    /// The background commands of the current block. Their output has not been checked yet.
    started: Vec<Background>,
}

/// A background command whose output is still to be checked.
struct Background {
    shown: Vec<String>,
    numbers: Numbers,
    output: Output,
    limit: Instant,
}

/// The output of a command.
struct Output {
    path: PathBuf,
    /// Pairs of a text that differs from run to run, such as the path of a temporary directory, and the text that
    /// documents show instead, such as `/home/ann`.
    public: [(String, &'static str); 3],
}

/// The mode in which the lines of a document are entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// A line is entered when the preceding line has printed the output that the document shows.
    Watched,
    /// Whole blocks are pasted. The output of background commands is awaited only at the end of the block.
    Pasted,
    /// Like `Watched`. After the first background command, each line is entered only after a pause of this duration.
    Typed(Duration),
}

/// The reason why the rest of a document cannot be run.
pub(crate) struct Stuck(pub(crate) String);

/// Returns the command that runs a shell in its own network namespace. Returns `None` if no such command works; then
/// the documents are run one after the other.
pub(crate) fn apart() -> Option<Vec<&'static str>> {
    let ways: [&[&str]; 2] = [
        &["unshare", "--net"],
        &["unshare", "--user", "--map-current-user", "--keep-caps", "--net"],
    ];
    let works = |words: &&[&str]| {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).args(["bash", "-c", "ip link set lo up"]);
        command.env("PATH", search_path()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    ways.iter().find(|words| works(words)).map(|words| words.to_vec())
}

impl Shell {
    /// Starts a shell. Its directory contains the repository's files that documents name.
    pub(crate) fn start(root: &Path, apart: Option<&[&str]>) -> Self {
        let place = tempfile::Builder::new()
            .prefix("doc")
            .tempdir()
            .expect("a temporary directory can be created");
        let at = |name: &str| place.path().join(name);
        for name in ["run", "tmp", "bin", "errors", "work/target/release"] {
            let mut builder = fs::DirBuilder::new();
            builder
                .recursive(true)
                .mode(0o700)
                .create(at(name))
                .expect("the directory can be created");
        }
        let program = Path::new(env!("CARGO_BIN_EXE_ibfabric"));
        symlink(program, at("bin/ibfabric")).expect("the link can be created");
        symlink(program, at("work/target/release/ibfabric")).expect("the link can be created");
        let test = std::env::current_exe().expect("the path of the test program is known");
        let library = test.parent().expect("the path has a parent").join("libib_preload.so");
        symlink(library, at("work/target/release/libib_preload.so"))
            .expect("the link can be created");
        for name in ["examples", "docs", "crates"] {
            symlink(root.join(name), at("work").join(name)).expect("the link can be created");
        }
        fs::write(at("bin/cargo"), CARGO).expect("the file can be written");
        fs::set_permissions(at("bin/cargo"), fs::Permissions::from_mode(0o755))
            .expect("the mode can be changed");
        let mut command = match apart {
            Some(words) => {
                let mut command = Command::new(words[0]);
                let shell = "ip link set lo up && exec bash --norc --noprofile";
                command.args(&words[1..]).args(["bash", "-c", shell]);
                command
            }
            None => {
                let mut command = Command::new("bash");
                command.args(["--norc", "--noprofile"]);
                command
            }
        };
        let log = File::create(at("errors/bash")).expect("the file can be created");
        command
            .env_clear()
            .env("PATH", format!("{}:{}", at("bin").display(), search_path()))
            .env("HOME", at("work"))
            .env("XDG_RUNTIME_DIR", at("run"))
            .env("TMPDIR", at("tmp"))
            .env("LANG", "C.UTF-8")
            .env("USER", "ann")
            .env("DESTDIR", at("image"))
            .env("IBFABRIC_DOCUMENT", place.path())
            .current_dir(at("work"))
            .stdin(Stdio::piped())
            .stdout(log.try_clone().expect("the descriptor can be duplicated"))
            .stderr(log);
        let mut bash = command.spawn().expect("the shell can be started");
        let mut input = bash.stdin.take().expect("standard input is piped");
        // If the test is killed, the shell's standard input ends. Then the shell exits and kills its background
        // processes.
        writeln!(input, "trap 'kill $(jobs -p) 2>/dev/null' EXIT")
            .expect("the shell reads its input");
        let path = format!("{}:{}", at("bin").display(), ordinary_path());
        writeln!(input, "PATH='{path}'").expect("the shell reads its input");
        Self {
            bash,
            input: Some(input),
            place,
            commands: 0,
            has_background: false,
            started: Vec::new(),
        }
    }

    /// Returns the path of a file in the shell's directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.place.path().join("work").join(name)
    }

    /// Runs a command. Returns the differences between its output and the output in the document. If whole blocks are
    /// pasted, [`Shell::end_block`] compares the output of background commands.
    pub(crate) fn run(
        &mut self,
        step: &Step,
        numbers: Numbers,
        pace: Pace,
    ) -> Result<Option<String>, Stuck> {
        if let Pace::Typed(pause) = pace
            && self.has_background
        {
            thread::sleep(pause);
        }
        self.has_background |= step.background;
        self.commands += 1;
        let errors =
            |what: &str| self.place.path().join("errors").join(format!("{}{what}", self.commands));
        let (script, output, status) = (errors(".sh"), errors(".out"), errors(".status"));
        fs::write(&script, format!("{}\n", step.command)).expect("the file can be written");
        let [read, write, done] =
            [&script, &output, &status].map(|path| path.display().to_string());
        let line = format!(
            "source {read} >{write} 2>&1 </dev/null\necho $? >{done}.new; mv {done}.new {done}\n"
        );
        let output = self.output(output, &read);
        let input = self.input.as_mut().expect("the input is open until `drop`");
        if input.write_all(line.as_bytes()).is_err() {
            return Err(Stuck("the shell exited before this command".to_owned()));
        }
        let limit = Instant::now() + LIMIT;
        let code = loop {
            if let Ok(code) = fs::read_to_string(&status) {
                break code.trim().parse::<i32>().expect("the shell writes a number");
            }
            if !matches!(self.bash.try_wait(), Ok(None)) {
                let printed = output.text();
                return Err(Stuck(format!(
                    "the shell exited while it ran this command\n{printed}"
                )));
            }
            if Instant::now() > limit {
                let printed = output.text();
                return Err(Stuck(format!(
                    "has not ended after {LIMIT:?}; it has printed\n{printed}"
                )));
            }
            thread::sleep(Duration::from_millis(3));
        };
        let mut wrong = String::new();
        if code != step.status {
            write!(wrong, "exit status {code}, expected {}", step.status)
                .expect("a `String` accepts text");
            if step.output.is_none() {
                write!(wrong, "; it has printed\n{}", output.text())
                    .expect("a `String` accepts text");
            }
        }
        match step.output.clone() {
            Some(shown) if step.background => {
                self.started.push(Background { shown, numbers, output, limit });
                if pace != Pace::Pasted {
                    wrong.extend(self.end_block());
                }
            }
            Some(shown) => {
                let text = output.text();
                let printed = lines(&text);
                if !fits(&shown, &printed, numbers) {
                    write!(wrong, "\n{}", difference(&shown, &printed, numbers))
                        .expect("a `String` accepts text");
                }
            }
            None => {}
        }
        Ok((!wrong.is_empty()).then_some(wrong))
    }

    /// Waits until the background commands of a block have printed the output that the document shows. After the time
    /// limit, returns the differences.
    pub(crate) fn end_block(&mut self) -> Option<String> {
        let mut wrong = String::new();
        for Background { shown, numbers, output, limit } in self.started.drain(..) {
            let mut text = output.text();
            while !begins(&shown, &lines(&text), numbers) {
                if Instant::now() > limit {
                    let printed = difference(&shown, &lines(&text), numbers);
                    write!(wrong, "\n{printed}").expect("a `String` accepts text");
                    break;
                }
                thread::sleep(Duration::from_millis(10));
                text = output.text();
            }
        }
        (!wrong.is_empty()).then_some(wrong)
    }

    /// Returns the [`Output`] of a command that writes to the file `path`. The shell reads the command from `script`.
    fn output(&self, path: PathBuf, script: &str) -> Output {
        let directory = |name: &str| self.place.path().join(name).display().to_string();
        let public = [
            (format!("{script}: line "), "bash: line "),
            (directory("work"), "/home/ann"),
            (directory("run"), "/run/user/1000"),
        ];
        Output { path, public }
    }

    /// Returns the processes, including daemons, whose environment variable `IBFABRIC_DOCUMENT` names this shell's
    /// directory.
    fn processes(&self) -> Vec<Pid> {
        let mark = format!("IBFABRIC_DOCUMENT={}\0", self.place.path().display());
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let of_ours = |path: &Path| {
            let environment = fs::read(path.join("environ")).unwrap_or_default();
            environment.windows(mark.len()).any(|bytes| bytes == mark.as_bytes())
        };
        processes
            .filter(|entry| of_ours(&entry.path()))
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter_map(Pid::from_raw)
            .collect()
    }
}

impl Output {
    /// Returns the command's output so far, with the replacements of `public`.
    fn text(&self) -> String {
        let bytes = fs::read(&self.path).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        self.public.iter().fold(text, |text, (own, public)| text.replace(own, public))
    }
}

/// Sends a signal to a process. If the process has exited, the error is ignored.
fn signal(process: Pid, which: Signal) {
    let _ = kill_process(process, which);
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().collect()
}

impl Drop for Shell {
    /// Stops all processes of the document, also after an error.
    fn drop(&mut self) {
        drop(self.input.take());
        let end = Instant::now() + FAREWELL;
        let mut is_signaled = false;
        loop {
            let left = self.processes();
            if left.is_empty() {
                break;
            }
            if Instant::now() > end {
                left.iter().for_each(|&process| signal(process, Signal::KILL));
            } else if !is_signaled {
                left.iter().for_each(|&process| signal(process, Signal::TERM));
                is_signaled = true;
            }
            thread::sleep(Duration::from_millis(10));
        }
        drop(self.bash.wait());
    }
}
