//! Runs `ibfabric rtrs` and `ibfabric nbd` as processes on loopback.
//!
//! | file | contents |
//! |---|---|
//! | `broken.rs` | tests of exported files that fail |
//! | `fabric.rs` | tests over a simulated fabric |
//! | `program.rs` | an NBD client |
//! | `mount.rs` | tests of `rtrs mount` |
//! | `tree.rs` | tests of `rtrs ctl` and of the metrics |
//! | `../program` | functions to start commands |

mod broken;
#[path = "../program/mod.rs"]
mod command;
mod fabric;
mod mount;
mod program;
mod tree;

use std::io::{Read as _, Write as _};
use std::net::UdpSocket;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use command::{Running, ibfabric, text};
use program::{FLUSH, Program, READ, TRIM, WRITE, ZEROES};

/// An RTRS server, and its UDP port.
struct Server {
    _running: Running,
    udp: String,
}

/// Returns a UDP port that is free at the addresses 127.0.0.1 to 127.0.0.5.
fn free_port() -> String {
    let free = |port: &u16| {
        (1..6).all(|last| UdpSocket::bind((format!("127.0.0.{last}").as_str(), *port)).is_ok())
    };
    let start = 20_000 + (std::process::id() % 12_000) as u16;
    static NEXT: std::sync::atomic::AtomicU16 = std::sync::atomic::AtomicU16::new(0);
    let begin = start + 16 * NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    (begin..begin + 16).find(free).expect("one of these UDP ports is free").to_string()
}

impl Server {
    fn start(words: &[&str]) -> Self {
        let udp = free_port();
        let common = ["rtrs", "serve", "--listen", "127.0.0.1", "--udp-port", &udp];
        let running = Running::ready(ibfabric(&[&common[..], words].concat()));
        Self { _running: running, udp }
    }

    fn bench(&self, words: &[&str]) -> Output {
        let common = ["rtrs", "bench", "--path", "127.0.0.1", "--udp-port", &self.udp];
        let words = [&common[..], &["--device", "disk0", "--json"], words].concat();
        ibfabric(&words).output().expect("the program can be started")
    }

    fn nbd(&self, socket: &str, words: &[&str]) -> Running {
        let common = ["nbd", "--path", "127.0.0.1", "--udp-port", &self.udp, "--socket", socket];
        Running::ready(ibfabric(&[&common[..], &["--device", "disk0"], words].concat()))
    }
}

fn number(output: &Output, key: &str) -> f64 {
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {} {}", text(&output.stdout), text(&output.stderr))
    });
    json[key].as_f64().unwrap_or_else(|| panic!("found no number `{key}` in {json}"))
}

#[test]
fn written_data_is_read_back() {
    let server = Server::start(&["--export", "disk0=mem:32M"]);
    // The request sizes are below and above the server's maximum I/O size of 124 KiB.
    for (rw, size) in
        [("randrw", "512"), ("randrw", "4K"), ("write", "125952"), ("randwrite", "1M")]
    {
        let words = ["--rw", rw, "--bs", size, "--verify", "--io-size", "24M", "--iodepth", "8"];
        let output = server.bench(&words);
        let printed = text(&output.stderr);
        assert!(output.status.success(), "{rw} {size}: {printed}");
        assert_eq!(number(&output, "errors"), 0.0, "{printed}");
        assert!(number(&output, "ios") >= 24.0 && number(&output, "mib_per_s") > 0.0);
    }
}

#[test]
fn random_sizes_with_flush_and_discard_are_verified() {
    let server = Server::start(&["--export", "disk0=mem:32M"]);
    let words = ["--rw", "randrw", "--bsrange", "512-1M", "--fsync", "8", "--trim", "16"];
    let more = ["--verify", "--io-size", "64M", "--iodepth", "4", "--numjobs", "2"];
    let output = server.bench(&[&words[..], &more].concat());
    let printed = text(&output.stderr);
    assert!(output.status.success(), "{printed}");
    assert_eq!(number(&output, "errors"), 0.0, "{printed}");
    assert!(number(&output, "flushes") >= 4.0, "{}", text(&output.stdout));
    assert_eq!((number(&output, "bs_min"), number(&output, "bs")), (512.0, 1048576.0));
    for (words, why) in [
        (&["--bsrange", "4K-1K"][..], "4096 is more than 1024"),
        (&["--bsrange", "4K"], "expected MIN-MAX"),
        (&["--runtime", "inf"], "expected seconds"),
        (&["--start-delay=-1"], "expected seconds"),
        (&["--bs", "4K", "--bsrange", "4K-8K"], "cannot be used with"),
    ] {
        let output = server.bench(words);
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(why), "{}", text(&output.stderr));
    }
}

#[test]
fn files_are_served_and_errors_reported() {
    let dir = tempfile::tempdir().expect("a temporary directory can be created");
    let file = dir.path().join("disk");
    std::fs::write(&file, vec![0; 8 << 20]).expect("the file can be written");
    let export = format!("disk0={}", file.display());
    let server = Server::start(&["--export", &export, "--no-always-invalidate"]);
    let words =
        ["--rw", "randwrite", "--bs", "64K", "--verify", "--io-size", "8M", "--iodepth", "4"];
    let output = server.bench(&words);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let written = std::fs::read(&file).expect("the file exists");
    assert!(written.iter().any(|byte| *byte != 0));

    let printed = |words: &[&str]| {
        let output = ibfabric(words).output().expect("the program can be started");
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", text(&output.stdout));
        text(&output.stderr)
    };
    let bench = |device: &str, more: &[&str]| {
        let common = ["rtrs", "bench", "--path", "127.0.0.1", "--udp-port", &server.udp];
        printed(&[&common[..], &["--device", device], more].concat())
    };
    assert!(bench("none", &[]).contains("refuses device none: ENOENT"));
    assert!(bench("../disk0", &[]).contains("EINVAL"));
    assert!(bench("disk0", &["--bs", "100"]).contains("expected multiples of 512"));
    assert!(bench("disk0", &["--size", "1T"]).contains("expected at most 8388608 bytes"));
    let udp = free_port();
    let serve = |words: &[&str]| {
        let common = ["rtrs", "serve", "--listen", "127.0.0.1", "--udp-port", &udp];
        printed(&[&common[..], words].concat())
    };
    assert!(serve(&["--export", "disk0=/nowhere"]).contains("/nowhere: No such file"));
    assert!(
        serve(&["--export", "a=mem:1M", "--export", "a=mem:1M"]).contains("a is exported already")
    );
    assert!(
        serve(&["--export", "../a=mem:1M"])
            .contains("expected 1 to 254 bytes without empty components, . and ..")
    );
    assert!(serve(&["--export", "a=mem:100"]).contains("expected a multiple of 512"));
    let long = ["--export", "a=mem:1M", "--max-io-size", "1048576", "--queue-depth", "8192"];
    assert!(serve(&long).contains("--max-io-size"), "{}", serve(&long));
}

#[test]
fn only_allowed_clients_with_key_connect() {
    let server = Server::start(&["--export", "disk0=mem:1M", "--allow", "127.0.0.3/32"]);
    let bench = |source: &str, more: &[&str]| {
        let path = format!("{source}@127.0.0.1");
        let common = ["rtrs", "bench", "--path", &path, "--udp-port", &server.udp];
        let rest = ["--device", "disk0", "--runtime", "0.1"];
        let child = ibfabric(&[&common[..], &rest, more].concat())
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn();
        child.expect("the program can be started")
    };
    let allowed = bench("127.0.0.3", &[]).wait_with_output().expect("the process can be awaited");
    assert!(allowed.status.success(), "{}", text(&allowed.stderr));
    assert!(first_line(bench("127.0.0.2", &[])).contains("EACCES"));

    let dir = tempfile::tempdir().expect("a temporary directory can be created");
    let file = |name: &str, key: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, key).expect("the file can be written");
        path.to_str().expect("the path is UTF-8").to_owned()
    };
    let key = file("key", "a key that nobody guesses\n");
    let server = Server::start(&["--export", "disk0=mem:1M", "--key-file", &key]);
    let bench = |more: &[&str]| {
        let common = ["rtrs", "bench", "--path", "127.0.0.1", "--udp-port", &server.udp];
        let rest = ["--device", "disk0", "--runtime", "0.1"];
        let child = ibfabric(&[&common[..], &rest, more].concat())
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn();
        child.expect("the program can be started")
    };
    let known =
        bench(&["--key-file", &key]).wait_with_output().expect("the process can be awaited");
    assert!(known.status.success(), "{}", text(&known.stderr));
    assert!(first_line(bench(&[])).contains("EACCES"));
    let other = file("other", "another key that nobody guesses");
    let refused = first_line(bench(&["--key-file", &other]));
    assert!(refused.contains("the server does not have the configured key"), "{refused}");
    let short = bench(&["--key-file", &file("short", "short")]);
    let short = short.wait_with_output().expect("the process can be awaited");
    assert!(text(&short.stderr).contains("a key of 5 bytes: expected at least 16"));
}

/// Returns the first line that a program prints, and stops the program.
fn first_line(mut child: Child) -> String {
    let mut line = Vec::new();
    let mut byte = [0];
    let stderr = child.stderr.as_mut().expect("standard error is piped");
    while stderr.read(&mut byte).is_ok_and(|length| length == 1) && byte[0] != b'\n' {
        line.push(byte[0]);
    }
    child.kill().ok();
    child.wait().expect("the process can be awaited");
    text(&line)
}

#[test]
fn nbd_clients_use_a_device() {
    let dir = tempfile::tempdir().expect("a temporary directory can be created");
    let socket = dir.path().join("nbd.sock");
    let socket = socket.to_str().expect("the path is UTF-8");
    let server = Server::start(&["--export", "disk0=mem:64M"]);
    let nbd = server.nbd(socket, &[]);
    let mut program = Program::connect(socket, "disk0");
    assert_eq!(program.size, 64 << 20);
    // Writes more than the server's maximum I/O size of 124 KiB, at an offset that is not a multiple of 4 KiB.
    let data: Vec<u8> = (0..3_000_320_u32).map(|at| (at % 251) as u8).collect();
    assert_eq!(program.request(WRITE, 512, &data), Ok(Vec::new()));
    assert_eq!(program.request(FLUSH, 0, &[]), Ok(Vec::new()));
    let read = program.read(0, 3_001_344).expect("the device can be read");
    assert!(read[512..512 + data.len()] == data && read[..512] == [0; 512]);
    assert_eq!(program.length(TRIM, 512, 1024), Ok(Vec::new()));
    assert_eq!(program.length(ZEROES, 4096, 1 << 20), Ok(Vec::new()));
    let read = program.read(0, 2 << 20).expect("the device can be read");
    assert!(read[512..1536].iter().all(|byte| *byte == 0) && read[2048] == data[1536]);
    assert!(read[4096..4096 + (1 << 20)].iter().all(|byte| *byte == 0));
    assert_eq!(program.length(READ, 64 << 20, 512), Err(22));
    // A second client reads the first client's data.
    let mut other = Program::connect(socket, "disk0");
    assert_eq!(
        other.read(512 + (2 << 20), 512).expect("the device can be read"),
        data[2 << 20..][..512]
    );
    // The server disconnects a client that sends garbage.
    let mut rude = std::os::unix::net::UnixStream::connect(socket).expect("the server listens");
    rude.write_all(&[9; 64]).expect("the peer accepts data");
    let mut rest = Vec::new();
    rude.read_to_end(&mut rest).expect("the server closes the connection");
    assert_eq!(other.request(FLUSH, 0, &[]), Ok(Vec::new()));
    drop(nbd);
}

#[test]
fn clients_use_mtu_of_reject_message() {
    let server = Server::start(&["--export", "disk0=mem:1M", "--mtu", "1024"]);
    let output = server.bench(&["--rw", "randrw", "--runtime", "0.2", "--connect-timeout", "5"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn nbd_waits_for_a_device_that_another_client_has_open() {
    let dir = tempfile::tempdir().expect("a temporary directory can be created");
    let socket = dir.path().join("nbd.sock");
    let socket = socket.to_str().expect("the path is UTF-8");
    let server = Server::start(&["--export", "disk0=mem:1M"]);
    std::thread::scope(|scope| {
        let owner = scope.spawn(|| server.bench(&["--rw", "randrw", "--runtime", "4"]));
        std::thread::sleep(Duration::from_secs(2));
        // The first client uses the default local address, so this client needs another address.
        let path = ["nbd", "--path", "127.0.0.5@127.0.0.1", "--udp-port", &server.udp];
        let words =
            [&path[..], &["--socket", socket, "--device", "disk0", "--connect-timeout"]].concat();
        let output = ibfabric(&[&words[..], &["0.5"]].concat()).output();
        let output = output.expect("the program can be started");
        let printed = text(&output.stderr);
        assert!(output.status.code() == Some(2) && printed.contains("EPERM"), "{printed}");
        let nbd = Running::ready(ibfabric(&[&words[..], &["60"]].concat()));
        assert!(owner.join().expect("the thread does not panic").status.success());
        assert_eq!(Program::connect(socket, "disk0").size, 1 << 20);
        drop(nbd);
    });
}

#[test]
fn waiting_nbd_server_survives_loss_of_one_of_two_paths() {
    let dir = tempfile::tempdir().expect("a temporary directory can be created");
    let path = |name: &str| dir.path().join(name).to_str().expect("the path is UTF-8").to_owned();
    let (owner, socket, control) = (path("owner"), path("nbd"), path("control"));
    let server = Server::start(&["--export", "disk0=mem:1M"]);
    let owner = server.nbd(&owner, &[]);
    let paths = ["127.0.0.4@127.0.0.1", "127.0.0.5@127.0.0.1"];
    let words = ["nbd", "--path", paths[0], "--path", paths[1], "--udp-port", &server.udp];
    let more = [
        "--socket",
        &socket,
        "--device",
        "disk0",
        "--control-socket",
        &control,
        "--connect-timeout",
        "60",
    ];
    let waiting = std::thread::spawn({
        let command = ibfabric(&[&words[..], &more, &["--session", "waiting"]].concat());
        move || Running::ready(command)
    });
    let file = |name: &str| format!("rtrs-client/waiting/paths/ip:127.0.0.4@ip:127.0.0.1/{name}");
    let ctl = |words: &[&str]| {
        let output = ibfabric(&[&["rtrs", "ctl", "--socket", &control], words].concat()).output();
        output.expect("the program can be started")
    };
    let end = Instant::now() + Duration::from_secs(30);
    while text(&ctl(&["get", &file("state")]).stdout).trim() != "connected" {
        assert!(Instant::now() < end, "expected a connected path in time");
        std::thread::sleep(Duration::from_millis(50));
    }
    let output = ctl(&["set", &file("disconnect"), "1"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    drop(owner);
    let _nbd = waiting.join().expect("the NBD server is ready");
    assert_eq!(Program::connect(&socket, "disk0").size, 1 << 20);
}

#[test]
fn read_only_device_rejects_writes() {
    let dir = tempfile::tempdir().expect("a temporary directory can be created");
    let socket = dir.path().join("nbd.sock");
    let socket = socket.to_str().expect("the path is UTF-8");
    let server = Server::start(&["--export", "disk0=mem:1M"]);
    let _nbd = server.nbd(socket, &["--read-only"]);
    let mut program = Program::connect(socket, "");
    assert_eq!(program.request(WRITE, 0, &[0; 512]), Err(1));
    assert_eq!(program.read(0, 512), Ok(vec![0; 512]));
    // A second server cannot listen on the same socket.
    let common = ["nbd", "--path", "127.0.0.9@127.0.0.1", "--udp-port", &server.udp];
    let again = ibfabric(
        &[&common[..], &["--device", "disk0", "--socket", socket, "--read-only"]].concat(),
    );
    let output = { again }.output().expect("the program can be started");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("nbd.sock"), "{}", text(&output.stderr));
    let tcp = ["--device", "disk0", "--listen", "0.0.0.0:0", "--read-only"];
    let output =
        ibfabric(&[&common[..], &tcp].concat()).output().expect("the program can be started");
    assert!(text(&output.stderr).contains("over loopback only"), "{}", text(&output.stderr));
}

/// Starts a program and sends SIGINT to it after the given time. Returns the program's output.
fn interrupted(mut command: Command, after: Duration) -> Output {
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    std::thread::sleep(after);
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::INT)
        .expect("the process exists");
    let begun = Instant::now();
    let output = child.wait_with_output().expect("the process can be awaited");
    assert!(begun.elapsed() < Duration::from_secs(10), "the program took 10 s or more to exit");
    output
}

/// After a client has exited for any reason, another client can open the device immediately.
#[test]
fn interrupted_client_releases_device() {
    let server = Server::start(&["--export", "disk0=mem:1M"]);
    let bench = ["rtrs", "bench", "--path", "127.0.0.1", "--udp-port", &server.udp];
    let bench = [&bench[..], &["--device", "disk0", "--rw", "randrw", "--runtime"]].concat();
    let one = [&bench[..], &["0.2"]].concat();
    let works = |after: &str| {
        let output = ibfabric(&one).output().expect("the program can be started");
        assert!(output.status.success(), "{after}: {}", text(&output.stderr));
    };
    let output = ibfabric(&[&one[..], &["--size", "1G"]].concat())
        .output()
        .expect("the program can be started");
    assert!(text(&output.stderr).contains("--size"), "{}", text(&output.stderr));
    works("a size beyond the end of the device");
    let nbd = ["nbd", "--path", "127.0.0.1", "--udp-port", &server.udp, "--device", "disk0"];
    let output = ibfabric(&[&nbd[..], &["--listen", "0.0.0.0:0"]].concat()).output();
    let printed = text(&output.expect("the program can be started").stderr);
    assert!(printed.contains("over loopback only"), "{printed}");
    works("an invalid TCP address");
    let long = ibfabric(&[&bench[..], &["60"]].concat());
    let output = interrupted(long, Duration::from_secs(1));
    let (printed, figures) = (text(&output.stderr), text(&output.stdout));
    assert!(printed.contains("interrupted: ") && figures.contains("IO/s"), "{printed}{figures}");
    assert_eq!(output.status.code(), Some(130));
    works("Ctrl-C");
    // No server listens at 127.0.0.77.
    let words = ["nbd", "--path", "127.0.0.9@127.0.0.77", "--device", "disk0", "--listen"];
    let output =
        interrupted(ibfabric(&[&words[..], &["127.0.0.1:0"]].concat()), Duration::from_millis(500));
    let printed = text(&output.stderr);
    assert!(
        output.status.code() == Some(130) && printed.contains("interrupted before"),
        "{printed}"
    );
    let output = ibfabric(&[&bench[..6], &["--verify", "--device", "disk0"]].concat()).output();
    let printed = text(&output.expect("the program can be started").stderr);
    assert!(printed.contains("--rw"), "{printed}");
}

/// SIGHUP stops a program cleanly, unless it was started by nohup.
#[test]
fn closed_terminal_stops_programs_cleanly() {
    let server = Server::start(&["--export", "disk0=mem:1M"]);
    let directory = tempfile::tempdir().expect("a temporary directory can be created");
    let socket = directory.path().join("nbd.sock");
    let words = ["nbd", "--path", "127.0.0.1", "--udp-port", &server.udp, "--device", "disk0"];
    let words = [&words[..], &["--socket", socket.to_str().expect("the path is UTF-8")]].concat();
    let hang_up = |running: &Running| {
        let process = rustix::process::Pid::from_child(&running.0);
        rustix::process::kill_process(process, rustix::process::Signal::HUP)
            .expect("the process exists");
    };
    // The test itself may run under nohup, so `env` restores the default action of SIGHUP.
    let mut usual = Command::new("env");
    usual.arg("--default-signal=HUP").arg(ibfabric(&[]).get_program()).args(&words);
    let mut running = Running::ready(usual);
    hang_up(&running);
    assert_eq!(running.0.wait().expect("the process can be awaited").code(), Some(0));
    assert!(!socket.exists());
    // The first program closed the device at its exit, so a second program, which ignores SIGHUP, can open it.
    let mut nohup = Command::new("nohup");
    nohup.arg(ibfabric(&[]).get_program()).args(&words);
    let mut running = Running::ready(nohup);
    hang_up(&running);
    std::thread::sleep(Duration::from_millis(300));
    let name = socket.to_str().expect("the path is UTF-8");
    assert_eq!(Program::connect(name, "disk0").read(0, 512), Ok(vec![0; 512]));
    assert!(running.0.try_wait().expect("the process is a child of the test").is_none());
    let process = rustix::process::Pid::from_child(&running.0);
    rustix::process::kill_process(process, rustix::process::Signal::TERM)
        .expect("the process exists");
    assert_eq!(running.0.wait().expect("the process can be awaited").code(), Some(0));
    assert!(!socket.exists());
}

/// A client chooses the name of its session. The server escapes the name when it prints it.
#[test]
fn session_name_cannot_forge_log_lines() {
    let udp = free_port();
    let words = ["rtrs", "serve", "--listen", "127.0.0.1", "--udp-port", &udp];
    let mut command = ibfabric(&[&words[..], &["--export", "disk0=mem:1M"]].concat());
    command.stderr(Stdio::piped());
    let mut server = Server { _running: Running::ready(command), udp };
    let name = "a\x1b[2J\nibfabric: session forged: connected";
    let output = server.bench(&["--session", name, "--rw", "read", "--runtime", "1"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let process = &mut server._running.0;
    process.kill().expect("the process exists");
    let mut printed = String::new();
    let stderr = process.stderr.as_mut().expect("standard error is piped");
    stderr.read_to_string(&mut printed).expect("the output is UTF-8");
    let expected = "ibfabric: session a\\u{1b}[2J\\nibfabric: session forged: connected: connected";
    assert!(printed.lines().any(|line| line == expected), "{printed}");
    assert!(!printed.contains('\x1b'), "{printed}");
}
