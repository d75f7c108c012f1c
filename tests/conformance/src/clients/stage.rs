//! A simulator, its SM and its clients, and the record of their output.

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

/// Why a stage did not come about.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StageError {
    /// A program did not do its part.
    #[error(transparent)]
    Peer(#[from] PeerError),
    /// The net file could not be made.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// A file could not be used, or a client not be started.
    #[error("cannot run clients: {0}")]
    Io(#[from] io::Error),
    /// What the clients talk to is gone.
    #[error("{program} has ended, so `{question}` waited in vain")]
    Gone {
        /// Which program.
        program: &'static str,
        /// The client that was waiting.
        question: String,
    },
    /// A client or the simulator is not well.
    #[error("{0}")]
    Unwell(String),
    /// The fabric is too small.
    #[error("OpenSM gave no LID to one of the first two hosts, the last one or their switches")]
    NoActors,
}

/// What is to be tried.
#[derive(Clone, Debug)]
pub struct Setup<'a> {
    /// Which fabric, and how thoroughly.
    pub plan: Plan,
    /// The fabric.
    pub fabric: &'a Fabric,
    /// The simulator.
    pub server: &'a Kind,
    /// The library that the clients and OpenSM are given.
    pub preload: &'a Path,
    /// Whether that library carries answers of more than one MAD.
    pub complete: bool,
    /// Whether what is compared with this stage has another library.
    pub mixed: bool,
    /// The engine of OpenSM.
    pub engine: &'a str,
    /// The directory of this stage; it must not exist.
    pub directory: PathBuf,
}

/// What a client said, without what may differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its command line.
    pub command: String,
    /// Its exit status, output and errors in normal form.
    pub text: String,
    /// Its whole output; the errors are beside it.
    pub kept: PathBuf,
    /// Whether Debian's library cuts the answer off.
    pub many: bool,
}

/// What a stage came to.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The answers, in the order of the questions.
    pub entries: Vec<Entry>,
    /// What was wrong by itself.
    pub faults: Vec<String>,
    /// The engine that configured the switches.
    pub engine: String,
    /// How many things were checked beside the entries.
    pub checks: usize,
}

/// A running stage.
pub struct Stage<'a> {
    /// What it was set up for.
    pub setup: &'a Setup<'a>,
    /// OpenSM.
    pub manager: Manager,
    /// Where clients run.
    pub seat: Seat,
    /// The nodes that the questions are about.
    pub actors: Actors,
    /// Whether OpenSM was ended on purpose.
    pub ended: bool,
    /// What was said so far.
    pub record: Record,
    /// The simulator; the last to go.
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

    /// Runs a client and records what it says.
    ///
    /// # Errors
    /// Fails when the client cannot be run.
    pub fn ask(&mut self, question: &Question) -> Result<Answer, StageError> {
        let (answer, kept) = self.hear(question)?;
        let (command, text) = (question.to_string(), normal(question, &answer, self.setup.mixed));
        let many = question.many;
        self.record.entries.push(Entry { command, text, kept, many });
        Ok(answer)
    }

    /// Runs a client and records nothing; returns where its output is kept.
    ///
    /// # Errors
    /// Fails when the client cannot be run.
    pub fn hear(&mut self, question: &Question) -> Result<(Answer, PathBuf), StageError> {
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

    /// Starts a client that goes on.
    ///
    /// # Errors
    /// Fails when the client cannot be run.
    pub fn leave_running(&mut self, question: &Question) -> Result<Group, StageError> {
        let name = self.place(question);
        Ok(self.seat.start(question, &name)?)
    }

    /// Records something that was found out otherwise.
    pub fn note(&mut self, title: &str, text: String) {
        let (command, kept) = (title.to_owned(), self.setup.directory.clone());
        self.record.entries.push(Entry { command, text, kept, many: false });
    }

    /// Counts a check, and records the fault when it fails.
    pub fn check(&mut self, good: bool, fault: impl FnOnce() -> String) {
        self.record.checks += 1;
        if !good {
            self.record.faults.push(fault());
        }
    }

    /// Ends the simulator and returns the record.
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

/// Returns a name for the simulator's sockets that no other run uses.
#[must_use]
pub fn socket_name() -> String {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("ibfabric-{}-{number}", std::process::id())
}
