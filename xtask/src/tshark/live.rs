//! Captures of software HCAs on loopback, made by the processes that contain the HCAs.

use std::io::{BufRead as _, BufReader};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

/// The name of each client, and its arguments of `ibfabric rdma`.
const CLIENTS: [(&str, &[&str]); 5] = [
    ("send", &["bw", "127.0.0.1", "--op", "send", "-s", "3000", "-n", "40"]),
    ("write", &["bw", "127.0.0.1", "--op", "write", "-s", "70000", "-n", "20"]),
    ("read", &["bw", "127.0.0.1", "--op", "read", "-s", "9001", "-n", "20"]),
    ("lat", &["lat", "127.0.0.1", "--op", "write", "-s", "8", "-n", "40", "--pcap-payload", "4"]),
    ("ping", &["ping", "127.0.0.1", "-C", "5"]),
];

/// Runs a server, and clients at another loopback address. Returns the capture files of all processes, and the UDP port
/// of the RoCEv2 packets.
pub(super) fn capture(binary: &Path, directory: &Path) -> Fallible<(Vec<PathBuf>, u16)> {
    std::fs::create_dir_all(directory)?;
    let (udp, service, rping) = (free_port()?, free_port()?, free_port()?);
    let [udp_text, service, rping] = [udp, service, rping].map(|port| port.to_string());
    let path = |name: &str| directory.join(name).with_extension("pcapng");
    let mut files = vec![path("server")];
    let clients = CLIENTS.len().to_string();
    let mut server = Command::new(binary);
    server.args([
        "rdma",
        "serve",
        "--listen",
        "127.0.0.1",
        "--udp-port",
        &udp_text,
        "-p",
        &service,
    ]);
    server.args(["--rping", "--rping-port", &rping, "--exit-after", &clients, "--pcap"]);
    let mut server = Server(server.arg(&files[0]).stdout(Stdio::piped()).spawn()?);
    let mut line = String::new();
    BufReader::new(server.0.stdout.as_mut().ok_or("the output is not piped")?)
        .read_line(&mut line)?;
    for (name, words) in CLIENTS {
        let file = path(name);
        let port = if name == "ping" { &rping } else { &service };
        let mut client = Command::new(binary);
        client.arg("rdma").args(words).args(["--from", "127.0.0.2", "--udp-port", &udp_text]);
        let output = client.args(["-p", port, "--pcap"]).arg(&file).output()?;
        if !output.status.success() {
            return Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        files.push(file);
    }
    if !server.0.wait()?.success() {
        return Err("the server has failed".into());
    }
    Ok((files, udp))
}

/// A server that is killed when dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // An error is ignored, because the process may have exited.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Returns a free UDP port.
fn free_port() -> std::io::Result<u16> {
    Ok(UdpSocket::bind("127.0.0.1:0")?.local_addr()?.port())
}
