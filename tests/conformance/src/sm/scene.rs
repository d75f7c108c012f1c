//! A simulator with clients, and the results of checks.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use ib_topology::Fabric;
use ib_types::Guid;

use super::ours::{self, Ours};
use crate::clients::fabrics::write_net;
use crate::clients::manager::{self, Manager};
use crate::clients::process::Group;
use crate::clients::program::{Answer, Question, Seat};
use crate::clients::server::{Kind, Order, Server};
use crate::clients::stage::{StageError, socket_name};
use crate::opensm::first_adapter;

/// Paths of the programs and libraries that the cases use.
#[derive(Clone, Debug)]
pub struct Gear {
    /// Path of the program `ibfabric`.
    pub ibfabric: PathBuf,
    /// Path of Debian's umad library, which returns only the first MAD of a response.
    pub debian: PathBuf,
    /// Path of ibfabric's umad library, which returns all MADs of a response.
    pub own: PathBuf,
}

/// The result of a case.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// Number of checks.
    pub checks: usize,
    /// The failed checks.
    pub faults: Vec<String>,
    /// A remark about the case, which the report prints.
    pub note: String,
}

impl Checked {
    /// Counts a check. If the check has failed, records a fault.
    pub fn check(&mut self, good: bool, fault: impl FnOnce() -> String) {
        self.checks += 1;
        if !good {
            self.faults.push(fault());
        }
    }
}

/// The result of a case, or the error that has ended the case.
pub type Outcome = Result<Checked, StageError>;

/// A running simulator with clients.
pub struct Scene<'a> {
    /// Paths of the programs and libraries that the case uses.
    pub gear: &'a Gear,
    /// The simulator's fabric.
    pub fabric: &'a Fabric,
    /// Environment of the clients. Clients run on the first CA if they specify no other node.
    pub seat: Seat,
    /// The directory for all files of the case.
    pub directory: PathBuf,
    /// Results of the checks.
    pub checked: Checked,
    answers: usize,
    server: Box<dyn Server>,
}

/// Time limit for the bring-up of a fabric.
pub const BRING_UP: Duration = Duration::from_secs(90);

impl<'a> Scene<'a> {
    /// Starts a simulator.
    ///
    /// # Errors
    /// Fails if the simulator cannot be started or rejects the fabric.
    pub fn open(
        gear: &'a Gear,
        kind: &Kind,
        fabric: &'a Fabric,
        library: &Path,
        directory: &Path,
    ) -> Result<Self, StageError> {
        let work = directory.join("clients");
        fs::create_dir_all(&work)?;
        let directory = directory.canonicalize()?;
        let net = directory.join("net");
        write_net(fabric, &net)?;
        let socket = socket_name();
        let server = kind.start(&net, &directory, &socket)?;
        let text = fs::read_to_string(&net)?;
        let node = first_adapter(&text).unwrap_or_default().to_owned();
        let preload = library.to_owned();
        let seat = Seat { socket, preload, node, directory: directory.join("clients") };
        Ok(Self { gear, fabric, seat, directory, checked: Checked::default(), answers: 0, server })
    }

    /// Starts `ibfabric sm` on the first CA, and returns after SUBNET UP.
    ///
    /// # Errors
    /// Fails if `ibfabric sm` does not bring the subnet up.
    pub fn manage(&mut self, options: &ours::Options<'_>) -> Result<Ours, StageError> {
        let mut ours = self.launch_ours("ours", None, options)?;
        ours.comes_up(BRING_UP)?;
        Ok(ours)
    }

    /// Starts `ibfabric sm` on the given node, and returns immediately.
    ///
    /// # Errors
    /// Fails if `ibfabric sm` cannot be started.
    pub fn launch_ours(
        &mut self,
        name: &str,
        node: Option<&str>,
        options: &ours::Options<'_>,
    ) -> Result<Ours, StageError> {
        let (seat, place) = self.room(name, node)?;
        Ok(Ours::launch(&self.gear.ibfabric, &seat, &place, options)?)
    }

    /// Starts OpenSM on the given node, and returns immediately.
    ///
    /// # Errors
    /// Fails if OpenSM cannot be started.
    pub fn launch_opensm(
        &mut self,
        name: &str,
        node: Option<&str>,
        options: &manager::Options<'_>,
    ) -> Result<Manager, StageError> {
        let (seat, place) = self.room(name, node)?;
        Ok(Manager::launch(&seat, &place, options)?)
    }

    /// Starts OpenSM on the first CA, and returns after SUBNET UP.
    ///
    /// # Errors
    /// Fails if OpenSM does not bring the subnet up.
    pub fn manage_by_opensm(
        &mut self,
        options: &manager::Options<'_>,
    ) -> Result<Manager, StageError> {
        let (seat, place) = self.room("opensm", None)?;
        Ok(Manager::start(&seat, &place, options)?)
    }

    /// Creates the directory for an SM. Returns the SM's environment and this directory.
    fn room(&self, name: &str, node: Option<&str>) -> io::Result<(Seat, PathBuf)> {
        let place = self.directory.join(name);
        fs::create_dir_all(&place)?;
        let mut seat = self.seat.clone();
        if let Some(node) = node {
            seat.node = node.to_owned();
        }
        Ok((seat, place))
    }

    /// Runs a client until it ends. Returns its result, and the path of its standard output.
    ///
    /// # Errors
    /// Fails if the client cannot be started, or if the simulator has ended.
    pub fn run_client(&mut self, question: &Question) -> Result<(Answer, PathBuf), StageError> {
        let name = self.name(question);
        let answer = self.seat.ask(question, &name)?;
        if answer.code.is_none() && self.server.usage().is_none() {
            let question = question.to_string();
            return Err(StageError::Gone { program: "the simulator", question });
        }
        Ok((answer, name.with_extension("out")))
    }

    /// Runs a client on the given node, and returns its output.
    ///
    /// # Errors
    /// Fails like [`Self::run_client`].
    pub fn client_output(&mut self, line: &str, node: &str) -> Result<String, StageError> {
        let question = Question { node: Some(node.to_owned()), ..patient(line) };
        Ok(self.run_client(&question)?.0.output)
    }

    /// Starts a client, and returns while the client is still running.
    ///
    /// # Errors
    /// Fails if the client cannot be started.
    pub fn start_client(&mut self, question: &Question) -> Result<Group, StageError> {
        let name = self.name(question);
        Ok(self.seat.start(question, &name)?)
    }

    /// Runs ibfabric until it ends, and returns its output.
    ///
    /// # Errors
    /// Fails if ibfabric cannot be started or reports an error.
    pub fn run_own(&self, arguments: &[&str]) -> Result<String, StageError> {
        let output = Command::new("timeout")
            .args(["-s", "KILL", "120"])
            .arg(&self.gear.ibfabric)
            .args(arguments)
            .current_dir(&self.directory)
            .output()?;
        // ibfabric exits with status 1 if the fabric has a problem, such as a credit loop, and with 3 if the result is
        // inconclusive.
        if output.status.code().is_none_or(|code| !matches!(code, 0 | 1 | 3)) {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            let what = arguments.join(" ");
            return Err(StageError::Failed(format!("ibfabric {what}: {}: {said}", output.status)));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Executes a command of the simulator.
    ///
    /// # Errors
    /// Fails if the simulator rejects the command.
    pub fn order(&mut self, order: Order<'_>) -> Result<(), StageError> {
        Ok(self.server.order(order)?)
    }

    /// Counts a check. If the check has failed, records a fault.
    pub fn check(&mut self, good: bool, fault: impl FnOnce() -> String) {
        self.checked.check(good, fault);
    }

    /// Calls `look` every second until it returns true. Returns false if `look` has not returned true within the time
    /// limit.
    ///
    /// # Errors
    /// Fails if `look` fails.
    pub fn wait_until(
        &mut self,
        limit: Duration,
        mut look: impl FnMut(&mut Self) -> Result<bool, StageError>,
    ) -> Result<bool, StageError> {
        let end = Instant::now() + limit;
        loop {
            if look(self)? {
                return Ok(true);
            }
            if Instant::now() > end {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_secs(1));
        }
    }

    /// Returns the base LIDs of all end ports that `ibnetdiscover` finds, by the node GUID of a switch or the port GUID
    /// of an HCA.
    ///
    /// # Errors
    /// Fails if `ibnetdiscover` cannot be started.
    pub fn lids(&mut self) -> Result<BTreeMap<Guid, u16>, StageError> {
        let (answer, _) = self.run_client(&patient("ibnetdiscover"))?;
        Ok(read_lids(&answer.output))
    }

    /// Ends the simulator, and returns the results of the checks.
    #[must_use]
    pub fn close(self) -> Checked {
        let Self { mut checked, server, .. } = self;
        let fault = server.stop();
        checked.check(fault.is_none(), || fault.unwrap_or_default());
        checked
    }

    /// Returns a new path for the outputs of a client, without an extension.
    fn name(&mut self, question: &Question) -> PathBuf {
        self.answers += 1;
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        let words: String = question.words.join(" ").chars().map(plain).take(60).collect();
        self.directory.join(format!("{:05}-{words}", self.answers))
    }
}

/// Parses the command line of a client, and sets a time limit of two minutes. A client can read a whole fabric in this
/// time.
#[must_use]
pub fn patient(line: &str) -> Question {
    Question { limit: Duration::from_secs(120), ..Question::new(line) }
}

/// Parses the LIDs in the output of `ibnetdiscover`. The line of a switch contains
/// `# "description" … port 0 lid 5 lmc 0` after its GUID. The line of an HCA's port is `[1](guid) … # lid 7 lmc 0`.
fn read_lids(text: &str) -> BTreeMap<Guid, u16> {
    let mut lids = BTreeMap::new();
    let mut add = |guid: Option<&str>, line: &str| -> Option<()> {
        let guid = u64::from_str_radix(guid?, 16).ok()?;
        let lid = line.rsplit_once('#')?.1.split_once("lid ")?.1.split(' ').next()?.parse().ok()?;
        lids.entry(Guid(guid)).or_insert(lid);
        Some(())
    };
    let mut in_adapter = false;
    for line in text.lines() {
        let between =
            |open, close| line.split_once(open)?.1.split_once(close).map(|(guid, _)| guid);
        if line.starts_with("Switch") {
            in_adapter = false;
            add(between("\"S-", "\""), line);
        } else if line.starts_with("Ca") {
            in_adapter = true;
        } else if in_adapter && line.starts_with('[') {
            add(between("](", ")"), line);
        }
    }
    lids
}

#[cfg(test)]
mod tests;
