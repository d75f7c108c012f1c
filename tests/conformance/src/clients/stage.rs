//! A simulator, its SM and its clients, and a record of the clients' output.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use ib_topology::Fabric;

use super::fabrics::{Plan, write_net};
use super::manager::{Manager, Options};
use super::normal::normal;
use super::process::Group;
use super::program::{Answer, Question, Seat};
use super::questions::Actors;
use super::server::{Kind, Server};
use crate::opensm::{PeerError, first_adapter};
use crate::routing::RecipeError;

/// An error of a stage.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StageError {
    /// A program has failed.
    #[error(transparent)]
    Peer(#[from] PeerError),
    /// The net file cannot be generated.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// A file cannot be read or written, or a client cannot be started.
    #[error("cannot run clients: {0}")]
    Io(#[from] io::Error),
    /// The simulator or OpenSM has ended.
    #[error("{program} has ended while `{question}` was running")]
    Gone {
        /// The program that has ended.
        program: &'static str,
        /// The command line of the client that was running when `program` ended.
        question: String,
    },
    /// A client or the simulator has failed for the given reason.
    #[error("{0}")]
    Failed(String),
    /// The fabric has too few nodes with LIDs.
    #[error(
        "OpenSM has assigned no LID to the first, second or last host, or to one of their switches"
    )]
    NoActors,
}

/// Parameters of a stage.
#[derive(Clone, Debug)]
pub struct Setup<'a> {
    /// How the fabric was generated, and which tests run on it.
    pub plan: Plan,
    /// The fabric.
    pub fabric: &'a Fabric,
    /// The simulator.
    pub server: &'a Kind,
    /// Path of the library that is preloaded into the clients and into OpenSM.
    pub preload: &'a Path,
    /// True if the preloaded library returns all MADs of a response.
    pub complete: bool,
    /// True if this stage is compared with a stage that uses another preloaded library.
    pub mixed: bool,
    /// The routing engine of OpenSM.
    pub engine: &'a str,
    /// The directory for the files of the stage. It must not exist yet.
    pub directory: PathBuf,
}

/// The result of a client, without the parts that may differ between simulators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Command line.
    pub command: String,
    /// Exit status, standard output and standard error, without the parts that may differ.
    pub text: String,
    /// Path of the file that contains the unchanged standard output. Standard error is in a file with the same name and
    /// the extension `err`.
    pub kept: PathBuf,
    /// True if the response that the client receives has several MADs, so that libumad2sim.so truncates it.
    pub many: bool,
}

/// Results of a stage.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The results of the clients, in the order in which the clients ran.
    pub entries: Vec<Entry>,
    /// The failed checks.
    pub faults: Vec<String>,
    /// The routing engine that configured the switches.
    pub engine: String,
    /// Number of checks within this stage. Comparisons of its clients' results with those of another stage are not
    /// counted.
    pub checks: usize,
}

/// A running stage.
pub struct Stage<'a> {
    /// The parameters of the stage.
    pub setup: &'a Setup<'a>,
    /// OpenSM.
    pub manager: Manager,
    /// The socket name, library, default node and directory with which the clients run.
    pub seat: Seat,
    /// The nodes that appear in the command lines of the clients.
    pub actors: Actors,
    /// True if the stage has stopped OpenSM.
    pub ended: bool,
    /// The results of the clients and checks that have run so far.
    pub record: Record,
    /// The simulator. It is dropped last, after OpenSM.
    pub server: Box<dyn Server>,
}

impl<'a> Stage<'a> {
    /// Starts the simulator and OpenSM, and returns after SUBNET UP.
    ///
    /// # Errors
    /// See [`StageError`].
    pub fn start(setup: &'a Setup<'a>) -> Result<Self, StageError> {
        let directory = &setup.directory;
        let work = directory.join("clients");
        fs::create_dir_all(&work)?;
        let directory = directory.canonicalize()?;
        let net = directory.join("net");
        write_net(setup.fabric, &net)?;
        let socket = socket_name();
        let server = setup.server.start(&net, &directory, &socket)?;
        let text = fs::read_to_string(&net)?;
        let seat = Seat {
            socket,
            preload: setup.preload.to_owned(),
            node: first_adapter(&text).unwrap_or_default().to_owned(),
            directory: work,
        };
        let options = Options {
            engine: setup.engine,
            lmc: setup.plan.lmc,
            log_flags: 0x43,
            ..Options::default()
        };
        let manager = Manager::start(&seat, &directory, &options)?;
        let actors = Actors::choose(setup.fabric, &manager.lids()?).ok_or(StageError::NoActors)?;
        let record = Record { engine: manager.engine(), ..Record::default() };
        Ok(Self { setup, manager, seat, actors, ended: false, record, server })
    }

    /// Runs a client, and records its result.
    ///
    /// # Errors
    /// Fails if the client cannot be started.
    pub fn ask(&mut self, question: &Question) -> Result<Answer, StageError> {
        let (answer, kept) = self.run_client(question)?;
        let (command, text) = (question.to_string(), normal(question, &answer, self.setup.mixed));
        let many = question.many;
        self.record.entries.push(Entry { command, text, kept, many });
        Ok(answer)
    }

    /// Runs a client without recording its result. Also returns the path of the file with its output.
    ///
    /// # Errors
    /// Fails if the client cannot be started.
    pub fn run_client(&mut self, question: &Question) -> Result<(Answer, PathBuf), StageError> {
        let name = self.place(question);
        let answer = self.seat.ask(question, &name)?;
        if answer.code.is_none() && !self.ended {
            let question = question.to_string();
            if self.server.usage().is_none() {
                return Err(StageError::Gone { program: "the simulator", question });
            }
            if !self.manager.is_alive() {
                return Err(StageError::Gone { program: "OpenSM", question });
            }
        }
        Ok((answer, name.with_extension("out")))
    }

    /// Starts a client, and returns while the client is still running.
    ///
    /// # Errors
    /// Fails if the client cannot be started.
    pub fn start_client(&mut self, question: &Question) -> Result<Group, StageError> {
        let name = self.place(question);
        Ok(self.seat.start(question, &name)?)
    }

    /// Records a text that is not the output of a client.
    pub fn note(&mut self, title: &str, text: String) {
        let (command, kept) = (title.to_owned(), self.setup.directory.clone());
        self.record.entries.push(Entry { command, text, kept, many: false });
    }

    /// Counts a check. If the check has failed, records a fault.
    pub fn check(&mut self, good: bool, fault: impl FnOnce() -> String) {
        self.record.checks += 1;
        if !good {
            self.record.faults.push(fault());
        }
    }

    /// Ends OpenSM and the simulator, and returns the results of the stage.
    #[must_use]
    pub fn finish(self) -> Record {
        let Self { manager, mut record, server, .. } = self;
        drop(manager);
        record.checks += 1;
        if let Some(fault) = server.stop() {
            record.faults.push(fault);
        }
        record
    }

    /// Returns a new path for the outputs of a client, without an extension.
    fn place(&self, question: &Question) -> PathBuf {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        let words: String = question.words.join(" ").chars().map(plain).take(60).collect();
        self.setup.directory.join(format!("{number:05}-{words}"))
    }
}

/// Returns a socket name that the simulator of no other run uses.
#[must_use]
pub fn socket_name() -> String {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("ibfabric-{}-{number}", std::process::id())
}
