//! The simulator under test: Debian's ibsim or `ibfabric sim`.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::process::{Group, Usage};
use crate::opensm::{PeerError, ibsim_limits, is_listening};

/// Kind of the simulator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Debian's ibsim.
    Ibsim,
    /// The program at this path, run as `ibfabric sim`.
    Ibfabric(PathBuf),
    /// `ibfabric sim` with agents for ibtracer and ibping on all nodes.
    WithAgents(PathBuf),
}

impl Kind {
    /// Returns the simulator's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Ibsim => "ibsim",
            Self::Ibfabric(_) => "ibfabric sim",
            Self::WithAgents(_) => "ibfabric sim --agents",
        }
    }

    /// Starts the simulator, and returns when it accepts clients.
    ///
    /// The simulator's log is `server.log` in the directory, which must exist.
    ///
    /// # Errors
    /// Fails if the simulator cannot be started, rejects the net file, or is not ready within a minute.
    pub fn start(
        &self,
        net: &Path,
        directory: &Path,
        socket: &str,
    ) -> Result<Box<dyn Server>, PeerError> {
        Ok(match self {
            Self::Ibsim => Box::new(RealIbsim::start(net, directory, socket)?),
            Self::Ibfabric(binary) => Box::new(OurSim::start(binary, net, directory, socket, &[])?),
            Self::WithAgents(binary) => {
                let more = ["--agents".as_ref()];
                Box::new(OurSim::start(binary, net, directory, socket, &more)?)
            }
        })
    }
}

/// Starts the program at the given path as `ibfabric sim`, which writes a capture file.
///
/// # Errors
/// See [`Kind::start`].
pub fn start_capturing(
    binary: &Path,
    net: &Path,
    directory: &Path,
    socket: &str,
    capture: &Path,
) -> Result<Box<dyn Server>, PeerError> {
    let more = ["--pcap".as_ref(), capture.as_os_str()];
    Ok(Box::new(OurSim::start(binary, net, directory, socket, &more)?))
}

/// A command to a running simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order<'a> {
    /// Unplugs the cable at a port of a node.
    Unlink(&'a str, u8),
    /// Plugs the cable at a port of a node again.
    Relink(&'a str, u8),
    /// Sets an M_Key and its protection level at a port of a node. ibsim does not support this.
    MKey(&'a str, u8, u64, u8),
    /// Drops a percentage of the responses that a node's port sends.
    Error(&'a str, u8, u8),
    /// Makes a switch send packets for the first port out of the second port. ibsim does not support this.
    Misroute(&'a str, u8, u8),
}

/// A running simulator, which is killed when dropped.
pub trait Server {
    /// Executes a command in the running simulator.
    ///
    /// # Errors
    /// Fails if the simulator does not accept the command.
    fn order(&mut self, order: Order<'_>) -> io::Result<()>;

    /// Returns the resources that the simulator's process has used; `None` if the process has ended.
    fn usage(&self) -> Option<Usage>;

    /// Ends `ibfabric sim` with SIGTERM, and kills ibsim. Returns a description of the error if `ibfabric sim` does not
    /// end successfully.
    fn stop(self: Box<Self>) -> Option<String>;
}

const START: Duration = Duration::from_secs(60);

struct RealIbsim(Group);

impl RealIbsim {
    fn start(net: &Path, directory: &Path, socket: &str) -> Result<Self, PeerError> {
        let text = fs::read_to_string(net).map_err(file(net))?;
        let (path, output, errors) = log(directory)?;
        let group = Group::start(
            Group::bound("ibsim")
                .arg("-s")
                .args(ibsim_limits(&text))
                .arg(net)
                .current_dir(directory)
                .env("IBSIM_SOCKNAME", socket)
                // Standard input is ibsim's console. The pipe keeps it open, because ibsim uses all CPU time after its
                // console is closed.
                .stdin(Stdio::piped())
                .stdout(output)
                .stderr(errors),
        );
        let mut group = group.map_err(missing("ibsim", "ibsim-utils"))?;
        let end = Instant::now() + START;
        while !is_listening(socket) {
            if !matches!(group.ended(), Ok(None)) {
                return Err(PeerError::Refused(last_line(&path)));
            }
            if Instant::now() > end {
                return Err(PeerError::Timeout { program: "ibsim", seconds: START.as_secs() });
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(Self(group))
    }
}

impl Server for RealIbsim {
    fn order(&mut self, order: Order<'_>) -> io::Result<()> {
        let line = match order {
            Order::Unlink(node, port) => format!("Unlink \"{node}\"[{port}]\n"),
            Order::Relink(node, port) => format!("ReLink \"{node}\"[{port}]\n"),
            Order::Error(node, port, rate) => format!("Error \"{node}\"[{port}] {rate}\n"),
            Order::MKey(..) | Order::Misroute(..) => {
                return Err(io::Error::new(
                    io::ErrorKind::Unsupported,
                    "ibsim has no commands to set M_Keys or to misroute packets",
                ));
            }
        };
        let console = self.0.child().stdin.as_mut().expect("ibsim's standard input is a pipe");
        console.write_all(line.as_bytes())?;
        console.flush()
    }

    fn usage(&self) -> Option<Usage> {
        self.0.usage()
    }

    fn stop(self: Box<Self>) -> Option<String> {
        None
    }
}

struct OurSim {
    group: Group,
    binary: PathBuf,
    socket: String,
}

impl OurSim {
    fn start(
        binary: &Path,
        net: &Path,
        directory: &Path,
        socket: &str,
        more: &[&OsStr],
    ) -> Result<Self, PeerError> {
        let (path, _, errors) = log(directory)?;
        let group = Group::start(
            Group::bound(binary)
                .arg("sim")
                .arg(net)
                .args(["--name", socket])
                .args(more)
                .current_dir(directory)
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(errors),
        );
        let mut group = group.map_err(missing("ibfabric", "none"))?;
        let output = group.child().stdout.take().expect("standard output is a pipe");
        let (ready, is_ready) = mpsc::channel();
        // Reads all output, because the simulator would block if its pipe were full.
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if line == "READY" {
                    let _ = ready.send(());
                }
            }
        });
        match is_ready.recv_timeout(START) {
            Ok(()) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                return Err(PeerError::Refused(last_line(&path)));
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {
                return Err(PeerError::Timeout { program: "ibfabric", seconds: START.as_secs() });
            }
        }
        Ok(Self { group, binary: binary.to_owned(), socket: socket.to_owned() })
    }
}

impl Server for OurSim {
    fn order(&mut self, order: Order<'_>) -> io::Result<()> {
        let (verb, node, port, more) = match order {
            Order::Unlink(node, port) => ("unlink", node, port, Vec::new()),
            Order::Relink(node, port) => ("relink", node, port, Vec::new()),
            Order::MKey(node, port, key, level) => {
                ("mkey", node, port, vec![format!("{key:#x}"), level.to_string()])
            }
            Order::Error(node, port, rate) => ("error", node, port, vec![rate.to_string()]),
            Order::Misroute(node, port, other) => {
                ("misroute", node, 0, vec![port.to_string(), other.to_string()])
            }
        };
        let target = match order {
            Order::Misroute(..) => format!("\"{node}\""),
            _ => format!("\"{node}\"[{port}]"),
        };
        let output = Command::new("timeout")
            .args(["-s", "KILL", "20"])
            .arg(&self.binary)
            .args(["sim", "ctl", "--name", &self.socket, verb])
            .arg(target)
            .args(more)
            .stdin(Stdio::null())
            .output()?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(io::Error::other(format!("sim ctl {verb}: {}: {}", output.status, said.trim())))
    }

    fn usage(&self) -> Option<Usage> {
        self.group.usage()
    }

    fn stop(mut self: Box<Self>) -> Option<String> {
        self.group.terminate();
        match self.group.wait(Duration::from_secs(10)) {
            Ok(Some(status)) if status.success() => None,
            Ok(Some(status)) => Some(format!("the simulator ends with {status} on SIGTERM")),
            Ok(None) => Some("the simulator does not end on SIGTERM".to_owned()),
            Err(error) => Some(error.to_string()),
        }
    }
}

fn log(directory: &Path) -> Result<(PathBuf, fs::File, fs::File), PeerError> {
    let path = directory.join("server.log");
    let output = fs::File::create(&path).map_err(file(&path))?;
    let errors = output.try_clone().map_err(file(&path))?;
    Ok((path, output, errors))
}

fn file(path: &Path) -> impl Fn(io::Error) -> PeerError {
    let path = path.to_owned();
    move |source| PeerError::File { path: path.clone(), source }
}

fn missing(program: &'static str, package: &'static str) -> impl Fn(io::Error) -> PeerError {
    move |source| PeerError::Missing { program, package, source }
}

fn last_line(path: &Path) -> String {
    let log = fs::read_to_string(path).unwrap_or_default();
    log.lines().last().unwrap_or("the simulator ended without output").to_owned()
}
