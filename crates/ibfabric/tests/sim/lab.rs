//! Common parts of the simulator's tests: a running simulator, and a client.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use ib_ibsim::message::{Connect, Control, Request, kind};
use ib_wire::mad::{AttributeId, Mad, Method, TransactionId, smp};
use serde_json::Value;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_ibfabric");

/// A simulator that is killed at the end of the test.
pub(crate) struct Simulator {
    pub(crate) child: Child,
    pub(crate) socket: String,
    pub(crate) place: tempfile::TempDir,
}

impl Simulator {
    /// Starts a simulator of a mesh of 2 × 2 switches with one host each.
    pub(crate) fn start(options: &[&str]) -> Self {
        Self::serve(mesh(), options)
    }

    /// Starts a simulator of the 2 × 2 mesh on the given UDP port.
    pub(crate) fn on_port(port: u16) -> Self {
        let port = port.to_string();
        Self::run(Command::new(PROGRAM), mesh(), &["--port", &port], port.clone())
    }

    /// Starts a simulator of the fabric that `net`, the content of a net file, describes.
    pub(crate) fn of(net: &str, options: &[&str]) -> Self {
        let place = tempfile::tempdir().expect("a temporary directory can be created");
        fs::write(place.path().join("net"), net).expect("the file can be written");
        Self::serve(place, options)
    }

    /// Starts a simulator of the 2 × 2 mesh. Each of its files is limited to `kib` KiB, as on a full disk.
    pub(crate) fn on_full_disk(kib: u32, options: &[&str]) -> Self {
        let mut command = Command::new("bash");
        let script = format!("trap '' XFSZ; ulimit -f {kib}; exec '{PROGRAM}' \"$@\"");
        command.args(["-c", &script, "bash"]);
        Self::serve_by(command, mesh(), options)
    }

    /// Starts a simulator of the 2 × 2 mesh. The process may have at most `count` open file descriptors.
    pub(crate) fn with_descriptors(count: u32) -> Self {
        let mut command = Command::new("bash");
        let script = format!("ulimit -n {count}; exec '{PROGRAM}' \"$@\"");
        command.args(["-c", &script, "bash"]);
        Self::serve_by(command, mesh(), &[])
    }

    /// Starts a simulator of the fabric that the file `net` in the directory `place` describes.
    fn serve(place: tempfile::TempDir, options: &[&str]) -> Self {
        Self::serve_by(Command::new(PROGRAM), place, options)
    }

    fn serve_by(command: Command, place: tempfile::TempDir, options: &[&str]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let socket = format!("ibfabric-test-{}-{number}", std::process::id());
        let options = [&["--name", &socket], options].concat();
        Self::run(command, place, &options, socket.clone())
    }

    fn run(
        mut command: Command,
        place: tempfile::TempDir,
        options: &[&str],
        socket: String,
    ) -> Self {
        let mut child = command
            .args(["sim", "net"])
            .args(options)
            .current_dir(place.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program can be started");
        let mut line = String::new();
        let stdout = child.stdout.as_mut().expect("standard output is piped");
        BufReader::new(stdout).read_line(&mut line).expect("the program prints a line");
        assert_eq!(line, "READY\n");
        Self { child, socket, place }
    }

    pub(crate) fn ctl(&self, words: &[&str]) -> Output {
        Command::new(PROGRAM)
            .args(["sim", "ctl", "--name", &self.socket])
            .args(words)
            .output()
            .expect("the program can be started")
    }

    pub(crate) fn json(&self, words: &[&str]) -> Value {
        let output = self.ctl(&[&["--json"], words].concat());
        serde_json::from_slice(&output.stdout).expect("the text is JSON")
    }

    /// Stops the simulator by a signal, and returns its exit status and standard error.
    pub(crate) fn end(mut self, signal: &str) -> (Option<i32>, String) {
        let process = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args([signal, &process])
                .status()
                .expect("the program can be started")
                .success()
        );
        let status = self.child.wait().expect("the process can be awaited");
        let mut printed = String::new();
        let stderr = self.child.stderr.as_mut().expect("standard error is piped");
        stderr.read_to_string(&mut printed).expect("the output is UTF-8");
        (status.code(), printed)
    }

    pub(crate) fn file(&self, name: &str) -> String {
        fs::read_to_string(self.place.path().join(name)).expect("the file can be read")
    }
}

/// Returns a new directory whose file `net` describes a mesh.
fn mesh() -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("a temporary directory can be created");
    let net = place.path().join("net");
    let words = ["gen", "mesh", "2x2", "-o", net.to_str().expect("the path is UTF-8")];
    assert!(
        Command::new(PROGRAM).args(words).status().expect("the program can be started").success()
    );
    place
}

impl Drop for Simulator {
    fn drop(&mut self) {
        // Killing the process fails only if it has already exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client that encodes the messages of ibsim's protocol itself.
pub(crate) struct Client {
    pub(crate) control: UnixDatagram,
    pub(crate) data: UnixDatagram,
    pub(crate) number: u32,
}

impl Client {
    /// Attaches a client to the first host. `id` is part of the client's socket names.
    pub(crate) fn attach(socket: &str, id: u32) -> Option<Self> {
        Self::attach_to(socket, id, "")
    }

    /// Attaches a client to the node with this name. `id` is part of the client's socket names.
    pub(crate) fn attach_to(socket: &str, id: u32, node: &str) -> Option<Self> {
        let address = |what: &str| {
            SocketAddr::from_abstract_name(format!("{socket}:{what}\0")).expect("the name is valid")
        };
        let open = |what: &str| {
            let socket = UnixDatagram::bind_addr(&address(&format!("{what}{id}")))
                .expect("the name is free");
            socket
                .set_read_timeout(Some(Duration::from_secs(20)))
                .expect("the time limit can be set");
            socket
        };
        let (control, data) = (open("ctl"), open("in"));
        control.connect_addr(&address("ctl")).expect("the simulator listens");
        let connect = Connect { id, queue_pair: 0, is_sm: false, node: node.to_owned() };
        let mut client = Self { control, data, number: 0 };
        let answer = client.query(kind::CONNECT, &connect.to_bytes());
        if answer.kind == kind::ERROR {
            return None;
        }
        client.number = Connect::parse(&answer.payload).id;
        client
            .data
            .connect_addr(&address(&format!("out{}", client.number)))
            .expect("the simulator listens");
        Some(client)
    }

    pub(crate) fn query(&self, kind: u32, payload: &[u8]) -> Control {
        self.control
            .send(&Control::new(self.number, kind, payload).to_bytes())
            .expect("the message can be sent");
        let mut bytes = [0; Control::LENGTH];
        // If the test process is stopped and continued, `recv` with a timeout fails with EINTR and is repeated.
        let length = loop {
            match self.control.recv(&mut bytes) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                result => break result.expect("the response is received"),
            }
        };
        assert_eq!(length, bytes.len());
        Control::parse(&bytes).expect("the message is well-formed")
    }

    pub(crate) fn send(&self, mad: &Mad, lid: u16) {
        self.data.send(&request(mad, lid).to_bytes()).expect("the message can be sent");
    }

    pub(crate) fn receive(&self) -> Request {
        let mut bytes = [0; Request::LENGTH];
        assert_eq!(self.data.recv(&mut bytes).expect("the response is received"), bytes.len());
        Request::parse(&bytes).expect("the message is well-formed")
    }
}

pub(crate) fn request(mad: &Mad, lid: u16) -> Request {
    Request {
        dlid: lid,
        slid: 0,
        destination_queue_pair: 0,
        source_queue_pair: 0,
        status: 0,
        length: 256,
        mad: mad.0,
    }
}

pub(crate) fn node_info(transaction: u64, path: &[u8]) -> Mad {
    let what = (AttributeId::NODE_INFO, 0);
    smp::directed_request(Method::GET, TransactionId(transaction), what, path)
}
