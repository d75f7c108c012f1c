//! Runs a client and records its output.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::process::Group;

/// What stands for the exit status of a client that a signal ended.
const SIGNALLED: i32 = -1;

/// Where clients run: the simulator's name, the preloaded library, the node, the directory.
#[derive(Clone, Debug)]
pub struct Seat {
    /// The simulator's socket name.
    pub socket: String,
    /// The library that turns umad calls into ibsim's messages.
    pub preload: PathBuf,
    /// The name of the node that clients run on unless they ask for another.
    pub node: String,
    /// The directory that clients run in; the library writes its sysfs there.
    pub directory: PathBuf,
}

impl Seat {
    /// Sets the environment of a client.
    pub fn dress(&self, command: &mut Command, node: Option<&str>) {
        command
            .env("LD_PRELOAD", &self.preload)
            .env("IBSIM_SOCKNAME", &self.socket)
            .env("SIM_HOST", node.unwrap_or(&self.node));
    }

    /// Runs a client to its end and keeps its outputs in files whose names start with `name`.
    ///
    /// `ibqueryerrors` is run again when a signal ends it, twice at most. It notes the service level
    /// of as many path records as OpenSM's answer had, but libumad2sim.so hands it only the first 256
    /// bytes; now and then the memory behind them makes it write beyond its own table of LIDs.
    ///
    /// # Errors
    /// Fails when the files cannot be written or the program cannot be started.
    pub fn ask(&self, question: &Question, name: &Path) -> io::Result<Answer> {
        let fragile = question.words.first().is_some_and(|program| program == "ibqueryerrors");
        for _ in 0..if fragile { 2 } else { 0 } {
            let answer = self.ask_once(question, name)?;
            if answer.code != Some(SIGNALLED) {
                return Ok(answer);
            }
        }
        self.ask_once(question, name)
    }

    fn ask_once(&self, question: &Question, name: &Path) -> io::Result<Answer> {
        let mut group = self.start(question, name)?;
        let code = group.wait(question.limit)?.map(|status| status.code().unwrap_or(SIGNALLED));
        drop(group);
        let read = |extension| {
            let bytes = fs::read(name.with_extension(extension)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        Ok(Answer { code, output: read("out"), errors: read("err") })
    }

    /// Starts a client that goes on until it is dropped, or its limit.
    ///
    /// # Errors
    /// Fails when the files cannot be written or the program cannot be started.
    pub fn start(&self, question: &Question, name: &Path) -> io::Result<Group> {
        let (program, arguments) =
            question.words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Group::limited(program, question.limit);
        command
            .args(arguments)
            .current_dir(&self.directory)
            .env("OSM_TMP_DIR", &self.directory)
            .env("OSM_CACHE_DIR", &self.directory)
            .stdin(Stdio::null())
            .stdout(fs::File::create(name.with_extension("out"))?)
            .stderr(fs::File::create(name.with_extension("err"))?);
        self.dress(&mut command, question.node.as_deref());
        if question.manages {
            command.env("SIM_SET_ISSM", "1");
        }
        Group::start(&mut command)
    }
}

/// A client and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The program and its arguments.
    pub words: Vec<String>,
    /// The node that it runs on, if not the seat's.
    pub node: Option<String>,
    /// Whether its port asks for the messages that a subnet manager gets.
    pub manages: bool,
    /// Whether the answer takes more MADs than one, of which Debian's library gives the first.
    pub many: bool,
    /// How long it may take.
    pub limit: Duration,
}

impl Question {
    /// Reads a command line of words without quotes.
    #[must_use]
    pub fn new(line: &str) -> Self {
        Self {
            words: line.split_ascii_whitespace().map(str::to_owned).collect(),
            node: None,
            manages: false,
            many: false,
            limit: Duration::from_secs(10),
        }
    }

    /// Runs it on another node.
    #[must_use]
    pub fn on(mut self, node: &str) -> Self {
        self.node = Some(node.to_owned());
        self
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(node) = &self.node {
            write!(f, "SIM_HOST={node} ")?;
        }
        if self.manages {
            f.write_str("SIM_SET_ISSM=1 ")?;
        }
        f.write_str(&self.words.join(" "))
    }
}

/// What a client said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its exit status; -1 after a signal, `None` when it had to be killed.
    pub code: Option<i32>,
    /// Its standard output.
    pub output: String,
    /// Its standard error.
    pub errors: String,
}
