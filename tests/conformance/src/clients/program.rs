//! Runs a client and records its output.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::process::Group;

/// The exit status that is recorded for a client that a signal has terminated.
const SIGNALLED: i32 = -1;

/// Environment of clients: the simulator's name, the preloaded library, the node, the directory.
#[derive(Clone, Debug)]
pub struct Seat {
    /// The simulator's socket name.
    pub socket: String,
    /// The library that converts umad calls to messages of ibsim.
    pub preload: PathBuf,
    /// Name of the node on which clients run if they specify no other node.
    pub node: String,
    /// Working directory of the clients. The preloaded library writes its sysfs files there.
    pub directory: PathBuf,
}

impl Seat {
    /// Sets the environment variables of a client. If `node` is `None`, the client runs on the default node.
    pub fn dress(&self, command: &mut Command, node: Option<&str>) {
        command
            .env("LD_PRELOAD", &self.preload)
            .env("IBSIM_SOCKNAME", &self.socket)
            .env("SIM_HOST", node.unwrap_or(&self.node));
    }

    /// Runs a client until it ends. Its outputs are written to files whose names start with `name`.
    ///
    /// If a signal terminates `ibqueryerrors`, it is run up to two more times. `ibqueryerrors` reads the service levels
    /// of all path records in OpenSM's response, but libumad2sim.so returns only the first 256 bytes of the response.
    /// The memory after these bytes has arbitrary content. So `ibqueryerrors` sometimes writes beyond its table of
    /// LIDs.
    ///
    /// # Errors
    /// Fails if the files cannot be written or the program cannot be started.
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

    /// Starts a client. It is killed when the returned [`Group`] is dropped, or at its time limit.
    ///
    /// # Errors
    /// Fails if the files cannot be written or the program cannot be started.
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
    /// The node on which the client runs; `None` for the default node of the [`Seat`].
    pub node: Option<String>,
    /// True if the client runs with `SIM_SET_ISSM=1`, which registers its port for messages to an SM.
    pub manages: bool,
    /// True if the response has several MADs. libumad2sim.so, Debian's library, returns only the first MAD.
    pub many: bool,
    /// Time limit.
    pub limit: Duration,
}

impl Question {
    /// Parses a command line that contains no quotes.
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

    /// Makes the client run on the given node instead of the default node.
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

/// Exit status and output of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Exit status; -1 if a signal has terminated the client, `None` if the client was killed at the time limit.
    pub code: Option<i32>,
    /// Standard output.
    pub output: String,
    /// Standard error.
    pub errors: String,
}
