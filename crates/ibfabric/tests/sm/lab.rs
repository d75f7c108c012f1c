//! Common parts of the SM's tests: a simulator, and an SM that manages its fabric.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_ibfabric");

/// A condition has to hold within this time. The time limit allows for a machine with high load.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// A process that is killed at the end of a test.
pub(crate) struct Killed(Child);

impl Killed {
    /// Kills the process.
    pub(crate) fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A simulator of a mesh of 2 × 2 switches with one host each, and the directory of its files.
pub(crate) struct Lab {
    pub(crate) simulator: Killed,
    pub(crate) socket: String,
    pub(crate) place: tempfile::TempDir,
}

impl Lab {
    pub(crate) fn start(options: &[&str]) -> Self {
        let place = tempfile::tempdir().expect("a temporary directory can be created");
        mesh(place.path());
        Self::again(place, options)
    }

    /// Starts a simulator of the fabric that the file `net` in the directory describes.
    pub(crate) fn again(place: tempfile::TempDir, options: &[&str]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let socket = format!("ibfabric-sm-test-{}-{number}", std::process::id());
        let child = Command::new(PROGRAM)
            .args(["sim", "net", "--name", &socket])
            .args(options)
            .current_dir(place.path())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program can be started");
        let mut simulator = Killed(child);
        let mut line = String::new();
        let output = simulator.0.stdout.take().expect("standard output is piped");
        BufReader::new(output).read_line(&mut line).expect("the program prints a line");
        assert_eq!(line, "READY\n");
        Self { simulator, socket, place }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// Sends a command to the simulator.
    pub(crate) fn run_command(&self, command: &str) {
        let mut words = Command::new(PROGRAM);
        words.args(["sim", "ctl", "--name", &self.socket, command]);
        assert!(words.status().expect("the program can be started").success(), "{command}");
    }

    /// Queries the SM that the simulator runs (`sim --sm`).
    pub(crate) fn query_manager(&self, question: &[&str]) -> Value {
        query(&format!("{}-sm", self.socket), question)
    }

    /// Returns the command that starts an SM.
    pub(crate) fn command(&self, options: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command
            .arg("sm")
            .arg(format!("--attach={}", self.socket))
            .args(["--name", &self.console()])
            .args(options)
            .current_dir(self.place.path())
            .env_remove("NOTIFY_SOCKET")
            .stdout(Stdio::null());
        command
    }

    fn console(&self) -> String {
        format!("{}-daemon", self.socket)
    }
}

/// A running SM.
pub(crate) struct Daemon {
    pub(crate) child: Child,
    console: String,
}

impl Daemon {
    pub(crate) fn start(lab: &Lab, options: &[&str]) -> Self {
        Self::of(lab, lab.command(options))
    }

    pub(crate) fn of(lab: &Lab, mut command: Command) -> Self {
        Self { child: command.spawn().expect("the program can be started"), console: lab.console() }
    }

    /// Waits until the subnet has come up `sweeps` times.
    pub(crate) fn is_up(&self, sweeps: u64) {
        wait_for("the subnet", || {
            let output = self.ctl(&["status", "--json"]);
            let status: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            status["sweeps"].as_u64() >= Some(sweeps) && status["activity"] == "idle"
        });
    }

    /// Waits until the SM is in the given state.
    pub(crate) fn is_in(&self, state: &str) {
        wait_for(state, || {
            let output = self.ctl(&["status", "--json"]);
            let status: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            status["state"] == state
        });
    }

    pub(crate) fn ctl(&self, question: &[&str]) -> Output {
        let mut command = Command::new(PROGRAM);
        command.args(["sm", "ctl", "--name", &self.console]).args(question);
        command.output().expect("the program can be started")
    }

    pub(crate) fn query(&self, question: &[&str]) -> Value {
        query(&self.console, question)
    }

    /// Stops the SM by SIGTERM, and checks that its exit status is 0.
    pub(crate) fn end(&mut self) {
        signal(&self.child, "TERM");
        let status = self.child.wait().expect("the process can be awaited");
        assert_eq!(status.code(), Some(0));
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn query(console: &str, question: &[&str]) -> Value {
    let mut command = Command::new(PROGRAM);
    command.args(["sm", "ctl", "--name", console, "--json"]).args(question);
    let output = command.output().expect("the program can be started");
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("the text is JSON")
}

/// Writes the fabric file `net` of a lab into the given directory.
pub(crate) fn mesh(directory: &Path) {
    let net = directory.join("net");
    let words = ["gen", "mesh", "2x2", "-o", net.to_str().expect("the path is UTF-8")];
    assert!(
        Command::new(PROGRAM).args(words).status().expect("the program can be started").success()
    );
}

/// Sends the signal with this name to a process.
pub(crate) fn signal(child: &Child, name: &str) {
    let mut command = Command::new("kill");
    command.args([format!("-{name}"), child.id().to_string()]);
    assert!(command.status().expect("the program can be started").success());
}

/// Waits until a condition holds.
pub(crate) fn wait_for(what: &str, so: impl Fn() -> bool) {
    let end = Instant::now() + TIME_LIMIT;
    while !so() {
        assert!(Instant::now() < end, "expected {what} in time");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Returns a free TCP port.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a TCP port is free");
    listener.local_addr().expect("the socket is bound").port()
}

/// Returns the page of metrics, or an empty text if the request fails.
pub(crate) fn page(port: u16) -> String {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return String::new() };
    let sent = stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n");
    let mut answer = String::new();
    let read = sent.and_then(|()| stream.read_to_string(&mut answer));
    if read.is_ok() { answer } else { String::new() }
}
