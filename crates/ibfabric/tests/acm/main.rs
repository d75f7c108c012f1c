//! Runs ACM services and their clients as processes on a simulated fabric.

mod files;
mod many;
#[path = "../program/mod.rs"]
mod program;
mod rdma;
mod start;

use std::fs::{self, Permissions};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use ib_acm::Address;
use ib_acm::client::{Client, ClientOptions, ResolveOptions, ServiceAddress};
use ib_wire::acm::{
    ByteOrder, ClientHeader, ClientOpcode, ClientStatus, Entry, EntryFlags, HEADER_LENGTH, Resolve,
};
use serde_json::Value;

use program::{Running, ibfabric, text};

/// The node names of the three hosts in the fabric of [`Lab`].
const HOSTS: [&str; 3] = ["host-0", "host-1", "host-2"];

impl Running {
    fn start(words: &[&str]) -> Self {
        Self::ready(ibfabric(words))
    }

    /// Waits until the ACM service at `socket` has exactly `count` endpoints, and each endpoint is up and has joined a
    /// multicast group.
    fn in_service(self, socket: &Path, count: usize) -> Self {
        let end = Instant::now() + Duration::from_secs(60);
        let socket = ["--socket", socket.to_str().expect("the path is UTF-8"), "--json"];
        loop {
            let output = ibfabric(&["acm", "ctl", "status"]).args(socket).output();
            let output = output.expect("the program can be started");
            let status: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            let endpoints = status["endpoints"].as_array().cloned().unwrap_or_default();
            let is_in = |it: &&Value| {
                it["up"] == true && it["groups"].as_array().is_some_and(|groups| !groups.is_empty())
            };
            if endpoints.len() == count && endpoints.iter().filter(is_in).count() == count {
                return self;
            }
            assert!(Instant::now() < end, "{status}{}", text(&output.stderr));
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn signal(&self, name: &str) {
        let id = self.0.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status();
        assert!(sent.expect("kill runs").success());
    }
}

/// A fabric with two ACM services, at its first and second host.
struct Lab {
    directory: tempfile::TempDir,
    simulator: String,
    services: Vec<Running>,
    _sim: Running,
}

impl Lab {
    fn new(name: &str, more: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory can be created");
        let net = directory.path().join("tree.net");
        let text = "Switch 4 \"leaf\"\n[1] \"host-0\"[1]\n[2] \"host-1\"[1]\n[3] \"host-2\"[1]\n\n\
                    Ca 1 \"host-0\"\n[1] \"leaf\"[1]\n\nCa 1 \"host-1\"\n[1] \"leaf\"[2]\n\n\
                    Ca 1 \"host-2\"\n[1] \"leaf\"[3]\n";
        fs::write(&net, text).expect("the file can be written");
        let simulator = format!("acm-test-{name}-{}", std::process::id());
        let net = net.to_str().expect("the path is UTF-8");
        let sim = Running::start(&["sim", net, "--sm", "--name", &simulator]);
        let mut this = Self { directory, simulator, services: Vec::new(), _sim: sim };
        for number in 0..2 {
            let service = this.serve(number, more);
            this.services.push(service.in_service(&this.path(number), 1));
        }
        this
    }

    /// Starts an ACM service at the host `HOSTS[number]`.
    fn serve(&self, number: usize, more: &[&str]) -> Running {
        let (socket, config) = (self.path(number), self.directory.path().join("config"));
        fs::create_dir_all(&config).expect("the directory can be created");
        let words = ["acm", "--attach", &self.simulator, "--node", HOSTS[number], "--socket"];
        let socket = [
            socket.to_str().expect("the path is UTF-8"),
            "--config",
            config.to_str().expect("the path is UTF-8"),
        ];
        Running::start(&[&words[..], &socket[..], more].concat())
    }

    fn path(&self, number: usize) -> PathBuf {
        self.directory.path().join(format!("{number}.sock"))
    }

    fn client(&self) -> Client {
        let service = ServiceAddress::Unix(self.path(0));
        Client::connect(&service, ClientOptions::default()).expect("the server listens")
    }

    /// Checks that the first host's service, to which `client` is connected, resolves the second host's name.
    fn resolves(&self, client: &mut Client) {
        let to = Address::name(HOSTS[1]).expect("the name is valid");
        let found =
            client.resolve(None, &to, ResolveOptions::default()).expect("the host can be resolved");
        assert_ne!(found.path.dlid, found.path.slid);
    }

    fn acme(&self, words: &[&str]) -> Output {
        let socket = self.path(0);
        ibfabric(&["acme", "-S", socket.to_str().expect("the path is UTF-8")])
            .args(words)
            .output()
            .expect("the program can be started")
    }

    fn ctl(&self, words: &[&str]) -> Value {
        let socket = self.path(0);
        let socket = ["--socket", socket.to_str().expect("the path is UTF-8"), "--json"];
        let output = ibfabric(&["acm", "ctl"])
            .args(words)
            .args(socket)
            .output()
            .expect("the program can be started");
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("the text is JSON")
    }
}

fn destination(name: &str) -> Vec<u8> {
    let entry = Entry::name(EntryFlags::DESTINATION, name).expect("the name is valid");
    let mut bytes = Vec::new();
    Resolve::request([1; 8], vec![entry]).put(ByteOrder::NATIVE, &mut bytes);
    bytes
}

/// Reads a reply of the ACM service. Returns `None` if the service has closed the connection or does not reply in time.
fn answer(stream: &mut impl std::io::Read) -> Option<(ClientHeader, Vec<u8>)> {
    let mut header = [0; HEADER_LENGTH];
    stream.read_exact(&mut header).ok()?;
    let header = ClientHeader::parse(&header);
    let (length, _) = header.length().expect("the length is valid");
    let mut rest = vec![0; length - HEADER_LENGTH];
    stream.read_exact(&mut rest).ok()?;
    Some((header, rest))
}

#[test]
fn name_is_resolved_cached_and_flushed() {
    let lab = Lab::new("resolve", &[]);
    let output = lab.acme(&["-f", "n", "-d", HOSTS[1], "-v"]);
    let shown = text(&output.stdout);
    assert!(output.status.success(), "{shown}{}", text(&output.stderr));
    for line in ["Destination: host-1", "Source: host-0", "SA verification: success"] {
        assert!(shown.contains(line), "{line} is missing: {shown}");
    }
    let known = lab.ctl(&["cache", HOSTS[1]]);
    assert_eq!(known[0]["address"], HOSTS[1]);
    let status = lab.ctl(&["status"]);
    assert_eq!(status["endpoints"][0]["up"], true);
    assert!(lab.ctl(&["flush"])["forgotten"].as_u64().is_some_and(|count| count > 0));
    assert_eq!(lab.ctl(&["cache"]), Value::Array(Vec::new()));
    let output = lab.acme(&["-f", "n", "-d", "nobody", "-c", "--json"]);
    assert_eq!(output.status.code(), Some(255));
    let result: Value = serde_json::from_slice(&output.stdout).expect("the text is JSON");
    assert_eq!(result["services"][0]["paths"][0]["status"], 3);
}

#[test]
fn acme_prints_paths_then_counters_then_endpoints() {
    let lab = Lab::new("order", &[]);
    let output = lab.acme(&["-e", "-P", "-f", "n", "-d", HOSTS[1]]);
    let shown = text(&output.stdout);
    let at = |line: &str| shown.find(line).unwrap_or_else(|| panic!("{line} is missing: {shown}"));
    assert!(at("Path information") < at("svc,Error Count"), "{shown}");
    assert!(at("svc,Error Count") < at("svc,guid,port"), "{shown}");
    // acme takes the value ./0.sock as the path of a socket, not as the name of a host.
    let socket = lab.path(0);
    let directory = socket.parent().expect("the path has a parent");
    let output = ibfabric(&["acme", "-S", "./0.sock", "-e"])
        .current_dir(directory)
        .output()
        .expect("the program can be started");
    assert!(output.status.success(), "{}", text(&output.stdout));
    for list in ["h-[3-1]", "h-[0-99999999999]"] {
        assert_eq!(lab.acme(&["-f", "n", "-d", list]).status.code(), Some(2), "{list}");
    }
}

#[test]
fn pipelined_requests_are_answered_without_delay() {
    let lab = Lab::new("pipeline", &[]);
    lab.resolves(&mut lab.client());
    let mut stream = UnixStream::connect(lab.path(0)).expect("the server listens");
    let mut writer = stream.try_clone().expect("the descriptor can be duplicated");
    let writing = std::thread::spawn(move || {
        // The requests are written in pieces that do not end at message boundaries.
        let all = destination(HOSTS[1]).repeat(20_000);
        for piece in all.chunks(7_777) {
            writer.write_all(piece).expect("the peer accepts data");
        }
    });
    for _ in 0..20_000 {
        let (header, _) = answer(&mut stream).expect("the response is received");
        assert_eq!(header.status, ClientStatus::SUCCESS);
    }
    writing.join().expect("the writer has sent all requests");
}

#[test]
fn requests_before_half_close_are_all_answered() {
    let lab = Lab::new("much", &[]);
    lab.resolves(&mut lab.client());
    // The name `nobody` cannot be resolved. Its 1100 requests exceed the limit of 1024 pending requests per client. The
    // second host's name is cached, so its requests are answered at once.
    for (name, count) in [("nobody", 1100), (HOSTS[1], 30_000)] {
        let mut stream = UnixStream::connect(lab.path(0)).expect("the server listens");
        let mut writer = stream.try_clone().expect("the descriptor can be duplicated");
        let writing = std::thread::spawn(move || {
            writer.write_all(&destination(name).repeat(count)).expect("the peer accepts data");
            writer.shutdown(std::net::Shutdown::Write).expect("the socket is open");
        });
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("the time limit can be set");
        for number in 0..count {
            assert!(answer(&mut stream).is_some(), "{name}: found {number} replies");
        }
        assert!(answer(&mut stream).is_none());
        writing.join().expect("the writer has sent all requests");
    }
}

#[test]
fn malformed_requests_do_not_affect_other_clients() {
    let lab = Lab::new("nonsense", &[]);
    let mut client = lab.client();
    lab.resolves(&mut client);
    let call = || {
        let stream = UnixStream::connect(lab.path(0)).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("the time limit can be set");
        stream
    };
    // If a request has an invalid length, the service closes the connection.
    for length in [[0, 0], [15, 0], [0xff, 0xff], [0x51, 0x03]] {
        let mut stream = call();
        let header = ClientHeader { length, ..ClientHeader::new(ClientOpcode::RESOLVE, [0; 8]) };
        stream.write_all(&header.to_bytes()).expect("the peer accepts data");
        assert!(answer(&mut stream).is_none());
    }
    // A client that sends an incomplete request, or no request, does not block other clients.
    let mut half = call();
    half.write_all(&destination(HOSTS[1])[..50]).expect("the peer accepts data");
    let _silent = call();
    // The service stops reading from a client that does not read its replies.
    let mut greedy = call();
    greedy.set_nonblocking(true).expect("the socket can be made non-blocking");
    let requests = destination(HOSTS[1]).repeat(1000);
    let mut taken = 0;
    let end = Instant::now() + Duration::from_secs(2);
    while Instant::now() < end {
        // A request can be written in part, so the next write continues after the last byte that was written.
        match greedy.write(&requests[taken % requests.len()..]) {
            Ok(length) => taken += length,
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
    assert!(
        taken < 64 << 20,
        "{taken} bytes of requests were read from a client that reads no replies"
    );
    // A request with an unknown opcode gets a reply with the status `EINVAL`.
    let mut odd = call();
    let mut header = ClientHeader::new(ClientOpcode(99), [3; 8]);
    header.set_length(HEADER_LENGTH, ByteOrder::NATIVE);
    odd.write_all(&header.to_bytes()).expect("the peer accepts data");
    assert_eq!(answer(&mut odd).expect("the response is received").0.status, ClientStatus::EINVAL);
    lab.resolves(&mut client);
    half.write_all(&destination(HOSTS[1])[50..]).expect("the peer accepts data");
    assert_eq!(
        answer(&mut half).expect("the response is received").0.status,
        ClientStatus::SUCCESS
    );
    let counts = &lab.ctl(&["status"])["counts"];
    assert_eq!(counts["malformed_programs"], 4);
}

#[test]
fn disconnect_cancels_pending_requests() {
    let lab = Lab::new("leaves", &[]);
    for _ in 0..50 {
        let mut stream = UnixStream::connect(lab.path(0)).expect("the server listens");
        stream.write_all(&destination("nobody")).expect("the peer accepts data");
    }
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        let status = lab.ctl(&["status"]);
        if (&status["programs"], &status["waiting"]) == (&0.into(), &0.into()) {
            break;
        }
        assert!(Instant::now() < end, "{status}");
        std::thread::sleep(Duration::from_millis(200));
    }
    lab.resolves(&mut lab.client());
}

#[test]
fn socket_admits_owner_and_group_tcp_only_loopback() {
    let lab = Lab::new("access", &["--listen", "127.0.0.1:0"]);
    let mode = fs::metadata(lab.path(0)).expect("the socket exists").permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
    // Finds the listening TCP sockets of the service: /proc/ID/fd has the inode numbers of its sockets, and
    // /proc/ID/net/tcp has the addresses and states of all TCP sockets.
    let id = lab.services[0].0.id();
    let table = fs::read_to_string(format!("/proc/{id}/net/tcp")).expect("the file can be read");
    let own: Vec<String> = fs::read_dir(format!("/proc/{id}/fd"))
        .expect("the directory can be read")
        .filter_map(|file| fs::read_link(file.ok()?.path()).ok())
        .filter_map(|link| {
            let link = link.to_str()?.to_owned();
            Some(link.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
        })
        .collect();
    let listening: Vec<&str> = table
        .lines()
        .filter(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            words.get(3) == Some(&"0A")
                && words.get(9).is_some_and(|it| own.iter().any(|own| own == it))
        })
        .filter_map(|line| line.split_whitespace().nth(1))
        .collect();
    let [place] = listening[..] else { panic!("{listening:?}") };
    let (address, port) = place.split_once(':').expect("the local address has a port");
    assert_eq!(address, "0100007F");
    let port = u16::from_str_radix(port, 16).expect("the text is a port number");
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
    stream.write_all(&destination(HOSTS[0])).expect("the peer accepts data");
    assert_eq!(
        answer(&mut stream).expect("the response is received").0.status,
        ClientStatus::SUCCESS
    );
}

#[test]
fn reload_ignores_unusable_files() {
    let lab = Lab::new("reload", &[]);
    let config = lab.directory.path().join("config");
    fs::create_dir_all(&config).expect("the directory can be created");
    let addresses = config.join("ibacm_addr.cfg");
    fs::write(&addresses, "storage-7 host-0 1 default\n").expect("the file can be written");
    lab.ctl(&["reload"]);
    let has = |name: &str| {
        let status = lab.ctl(&["status"]);
        let addresses = status["endpoints"][0]["addresses"].clone();
        addresses.as_array().expect("the value is a list").contains(&name.into())
    };
    assert!(has("storage-7") && has("host-0"));
    fs::write(&addresses, "storage-8 host-0 1 default\n").expect("the file can be written");
    fs::set_permissions(&addresses, Permissions::from_mode(0o666))
        .expect("the mode can be changed");
    lab.ctl(&["reload"]);
    assert!(has("storage-7"), "the service has used a world-writable file");
    fs::set_permissions(&addresses, Permissions::from_mode(0o644))
        .expect("the mode can be changed");
    lab.services[0].signal("HUP");
    let end = Instant::now() + Duration::from_secs(10);
    while !has("storage-8") {
        assert!(Instant::now() < end, "SIGHUP has not made the service read its files again");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(!has("storage-7"));
}

#[test]
fn unusable_options_are_rejected_with_reason() {
    let lab = Lab::new("refuse", &[]);
    let config = lab.directory.path().join("bad");
    fs::create_dir_all(&config).expect("the directory can be created");
    let (own, other) = (lab.path(0), lab.path(7));
    let (own, other) =
        (own.to_str().expect("the path is UTF-8"), other.to_str().expect("the path is UTF-8"));
    let options = config.join("ibacm_opts.cfg");
    fs::write(&options, "log_file stderr\nretries many\n").expect("the file can be written");
    let config = config.to_str().expect("the path is UTF-8");
    let attach = ["--attach", &lab.simulator];
    let cases: [(Vec<&str>, &str); 5] = [
        (vec!["--socket", other], "expected --attach"),
        ([&attach[..], &["--node", "nowhere", "--socket", other]].concat(), "no port \"nowhere\""),
        (
            [&attach[..], &["--node", "host-0", "--socket", own]].concat(),
            "another service listens there",
        ),
        (
            [&attach[..], &["--config", config, "--socket", other]].concat(),
            "ibacm_opts.cfg:2: retries",
        ),
        (vec!["--attach", "nobody", "--socket", other], "no simulator listens"),
    ];
    for (words, why) in cases {
        let output = ibfabric(&["acm"]).args(&words).output().expect("the program can be started");
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        let printed = text(&output.stderr);
        assert!(printed.contains(why), "{words:?}: {printed}");
    }
    // The services that failed to start do not affect the running service.
    lab.resolves(&mut lab.client());
}

#[test]
fn terminated_service_removes_its_socket() {
    let mut lab = Lab::new("end", &[]);
    let mut stream = UnixStream::connect(lab.path(0)).expect("the server listens");
    let first = lab.services.remove(0);
    first.signal("TERM");
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).ok();
    let mut first = first;
    assert!(first.0.wait().expect("the process can be awaited").success());
    assert!(!lab.path(0).exists());
    // A new service replaces the socket that a killed service has left.
    let again = lab.serve(0, &[]);
    again.signal("KILL");
    let mut again = again;
    again.0.wait().expect("the process can be awaited");
    assert!(lab.path(0).exists());
    let last = lab.serve(0, &[]);
    lab.services.insert(0, last);
    lab.resolves(&mut lab.client());
}

#[test]
fn acme_writes_files_that_service_reads() {
    let lab = Lab::new("files", &[]);
    let directory = lab.directory.path().join("written");
    fs::create_dir(&directory).expect("the directory can be created");
    let place = directory.to_str().expect("the path is UTF-8");
    let by_ibsim = format!("--attach={}", lab.simulator);
    // acme attaches to the port of host-1 as an ACM service. A port accepts only one, so the running services exit.
    drop(lab.services.into_iter());
    let addresses = directory.join("ibacm_addr.cfg");
    for by in [&["--attach", &lab.simulator][..], &[&by_ibsim]] {
        let output = ibfabric(&["acme", "-A", "-O", "-V", "-D", place])
            .args(by)
            .args(["--node", "host-1"])
            .output()
            .expect("the program can be started");
        assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
        let written = fs::read_to_string(&addresses).expect("the file can be read");
        assert!(written.contains("host-1 host-1 1 default"), "{written}");
        fs::remove_file(&addresses).expect("the file exists");
    }
    let output = ibfabric(&["acme", "-A", "-D", place, "--attach=nobody"])
        .output()
        .expect("the program can be started");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("which `ibfabric sim` provides"), "{output:?}");
    let output = ibfabric(&["acme", "-A", "-D", place, "--node", "host-1"])
        .args(["--attach", &lab.simulator])
        .output()
        .expect("the program can be started");
    assert!(output.status.success(), "{output:?}");
    let options = fs::read(directory.join("ibacm_opts.cfg")).expect("the file can be read");
    let read = ib_acm::config::options::Options::read("ibacm_opts.cfg", &options);
    assert_eq!(read.expect("the file is valid").warnings, []);
    for name in ["ibacm_addr.cfg", "ibacm_opts.cfg"] {
        let mode =
            fs::metadata(directory.join(name)).expect("the file exists").permissions().mode();
        assert_eq!(
            mode & 0o022,
            0,
            "{name}: found mode {mode:o}, expected write permission for the owner only"
        );
    }
}
