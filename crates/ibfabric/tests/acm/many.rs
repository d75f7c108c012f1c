//! A service raises its limit of open files: it serves 10,000 clients although the soft limit is 1,024 at its start.

use std::fs;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use ib_wire::acm::ClientStatus;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::start::path;
use super::{HOSTS, Lab, Running, answer, destination};

/// Raises the test process's limit of open files to `files` if it is lower. Returns false if the system forbids this.
fn allow(files: u64) -> bool {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let is_enough = |limit: Option<u64>| limit.is_none_or(|limit| limit >= files);
    let raised = Rlimit { current: Some(files), maximum };
    is_enough(current) || is_enough(maximum) && setrlimit(Resource::Nofile, raised).is_ok()
}

#[test]
fn ten_thousand_clients_fit_into_default_file_limit() {
    const COUNT: usize = 10_000;
    if !allow(COUNT as u64 + 500) {
        eprintln!("skipped: the system limits this process to too few open files");
        return;
    }
    let lab = Lab::new("many", &[]);
    let socket = lab.path(3);
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -S -n 1024 && exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_ibfabric")]);
    command.args([
        "acm",
        "--attach",
        &lab.simulator,
        "--node",
        "host-2",
        "--socket",
        path(&socket),
    ]);
    command.args(["--config", path(lab.directory.path())]).stdout(Stdio::piped());
    let service = Running::ready(command);
    let limits = fs::read_to_string(format!("/proc/{}/limits", service.0.id()))
        .expect("the file can be read");
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"))
        .expect("the limit is listed");
    let soft = line.split_whitespace().nth(3).and_then(|word| word.parse::<usize>().ok());
    assert!(soft.is_none_or(|soft| soft > COUNT), "{line}");
    let mut all: Vec<UnixStream> = Vec::with_capacity(COUNT);
    for _ in 0..COUNT {
        let stream = UnixStream::connect(&socket).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("the time limit can be set");
        all.push(stream);
    }
    let request = destination(HOSTS[1]);
    for stream in &mut all {
        stream.write_all(&request).expect("the peer accepts data");
    }
    for (number, stream) in all.iter_mut().enumerate() {
        let (header, _) = answer(stream).unwrap_or_else(|| panic!("client {number} got no reply"));
        assert_eq!(header.status, ClientStatus::SUCCESS);
    }
}
