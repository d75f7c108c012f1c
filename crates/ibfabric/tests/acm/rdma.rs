//! The connection manager of ibfabric queries an ACM service for paths, and falls back to the SA.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ib_acm::Address;
use ib_acm::client::{Client, ClientOptions, ResolveOptions, ServiceAddress};
use ib_wire::acm::{
    ByteOrder, ClientHeader, ClientStatus, Entry, EntryFlags, HEADER_LENGTH, Resolve,
};

use ib_wire::mad::sa::PathRecord;
use ib_wire::mad::sm::MtuCode;
use serde_json::Value;

use super::{HOSTS, Lab, Running, ibfabric, text};

/// A stub of an ACM service. It replies to all requests with the same path, and counts the requests.
struct OnePath {
    socket: PathBuf,
    requests: Arc<AtomicUsize>,
}

impl OnePath {
    fn start(socket: PathBuf, path: PathRecord) -> Self {
        let listener = UnixListener::bind(&socket).expect("the socket path is free");
        let requests = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&requests);
        // The thread of the service runs until the test process exits.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("a client can be accepted");
                while let Some(header) = request(&mut stream) {
                    counted.fetch_add(1, Ordering::Relaxed);
                    stream.write_all(&answer_to(header, &path)).expect("the peer accepts data");
                }
            }
        });
        Self { socket, requests }
    }
}

/// Reads a request. Returns its header, or `None` if the client has disconnected.
fn request(stream: &mut UnixStream) -> Option<ClientHeader> {
    let mut bytes = [0; HEADER_LENGTH];
    stream.read_exact(&mut bytes).ok()?;
    let header = ClientHeader::parse(&bytes);
    let (length, _) = header.length().expect("the length is valid");
    stream.read_exact(&mut vec![0; length - HEADER_LENGTH]).ok()?;
    Some(header)
}

fn answer_to(header: ClientHeader, path: &PathRecord) -> Vec<u8> {
    let header =
        ClientHeader { opcode: header.opcode.answer(), status: ClientStatus::SUCCESS, ..header };
    let mut bytes = Vec::new();
    Resolve { header, entries: vec![Entry::path(EntryFlags::PATH, path)] }
        .put(ByteOrder::NATIVE, &mut bytes);
    bytes
}

/// Runs an ACM service at the third host until it has resolved the path to the second host. Returns the path.
fn real_path(lab: &Lab) -> PathRecord {
    let (socket, config) = (lab.path(8), lab.directory.path().join("config"));
    let words = ["acm", "--attach", &lab.simulator, "--node", "host-2", "--socket"];
    let more = [
        socket.to_str().expect("the path is UTF-8"),
        "--config",
        config.to_str().expect("the path is UTF-8"),
    ];
    let _service = Running::start(&[&words[..], &more[..]].concat());
    let service = ServiceAddress::Unix(socket);
    let mut client =
        Client::connect(&service, ClientOptions::default()).expect("the server listens");
    let to = Address::name(HOSTS[1]).expect("the name is valid");
    client.resolve(None, &to, ResolveOptions::default()).expect("the host can be resolved").path
}

/// Runs `rdma bw` at the third host with the second host as peer. Returns the JSON result and the standard error.
fn write(lab: &Lab, service: Option<&Path>) -> (Value, String) {
    write_over(lab, service, "1")
}

/// Like `write`, but over `queue_pairs` queue pairs.
fn write_over(lab: &Lab, service: Option<&Path>, queue_pairs: &str) -> (Value, String) {
    let mut command = ibfabric(&["rdma", "bw", "--attach", &lab.simulator, "--node", "host-2"]);
    command.args([HOSTS[1], "-n", "10", "-s", "3000", "-q", queue_pairs, "--json"]);
    match service {
        Some(service) => command.arg("--acm").arg(service),
        None => command.env("RDMA_CM_USE_IB_ACM", "1"),
    };
    let output = command.output().expect("the program can be started");
    let printed = text(&output.stderr);
    (serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{printed}")), printed)
}

#[test]
fn rdma_uses_acm_path_and_falls_back_to_sa() {
    let mut lab = Lab::new("rdma", &[]);
    let path = real_path(&lab);
    // The second host's service exits, so that only the RDMA server uses the host's port.
    drop(lab.services.pop());
    let serve = ["rdma", "serve", "--attach", &lab.simulator, "--node", HOSTS[1]];
    let _server = Running::start(&serve);
    let [good, other, odd] = [11, 12, 13].map(|number| lab.path(number));
    // The MTU of the stub's path is 512 bytes, less than that of the SA's path. So the MTU reveals the path in use.
    let small = PathRecord { mtu: MtuCode(2), ..path };
    let good = OnePath::start(good, small);
    let (found, printed) = write(&lab, Some(&good.socket));
    assert_eq!((&found["mtu"], printed.as_str()), (&512.into(), ""));
    assert_eq!(good.requests.load(Ordering::Relaxed), 1);
    // The program does not cache paths, so each connection queries the service.
    write_over(&lab, Some(&good.socket), "3");
    assert_eq!(good.requests.load(Ordering::Relaxed), 4);
    // The client queries the SA if the service is missing, or if the service's path starts at another port or has
    // an unknown MTU.
    let other = OnePath::start(other, PathRecord { sgid: path.dgid, ..small });
    let odd = OnePath::start(odd, PathRecord { mtu: MtuCode(60), ..path });
    let gone = lab.directory.path().join("gone.sock");
    for (socket, why) in [
        (&other.socket, "expected one from fe80:"),
        (&odd.socket, "MTU code 60"),
        (&gone, "gone.sock: "),
    ] {
        let (found, printed) = write(&lab, Some(socket));
        assert!(found["mtu"].as_u64() > Some(512), "{found}");
        assert!(printed.contains("no path by ACM: ") && printed.contains(why), "{printed}");
    }
    // librdmacm's environment variable `RDMA_CM_USE_IB_ACM` selects ibacm's default socket. If no ACM service runs on
    // this machine, the program reports that the socket is missing.
    if !fs::exists("/run/ibacm.sock").expect("the directory can be searched") {
        let (_, printed) = write(&lab, None);
        assert!(printed.contains("/run/ibacm.sock: "), "{printed}");
    }
}

/// Returns the preload library, which provides a umad device for a simulator's port. cargo builds it with the tests.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("the path of the test is known");
    let library = test.parent().expect("the path has a parent").join("libib_preload.so");
    assert!(library.exists(), "{} is not built", library.display());
    library
}

#[test]
fn umad_service_and_hca_share_a_node() {
    let mut lab = Lab::new("shared", &[]);
    lab.resolves(&mut lab.client());
    let gid =
        lab.ctl(&["cache", HOSTS[1]])[0]["gid"].as_str().expect("the value is a string").to_owned();
    let status = ibfabric(&["acm", "ctl", "status", "--json", "--socket"])
        .arg(lab.path(1))
        .output()
        .expect("the program can be started");
    let status: Value = serde_json::from_slice(&status.stdout).expect("the text is JSON");
    let addresses = status["endpoints"][0]["addresses"].as_array().expect("the value is a list");
    let lines = addresses.iter().filter_map(Value::as_str).map(|it| format!("{it} {gid}\n"));
    let config = lab.directory.path().join("over-umad");
    fs::create_dir_all(&config).expect("the directory can be created");
    fs::write(config.join("hosts"), lines.collect::<String>()).expect("the file can be written");
    let hosts = config.join("hosts");
    let options = format!("addr_preload acm_hosts\naddr_data_file {}\n", hosts.display());
    fs::write(config.join("ibacm_opts.cfg"), options).expect("the file can be written");
    // The second host's service exits, so that only the RDMA server uses the host's port.
    drop(lab.services.pop());
    let serve = ["rdma", "serve", "--attach", &lab.simulator, "--node", HOSTS[1]];
    let _server = Running::start(&serve);
    let socket = lab.path(14);
    let mut command = ibfabric(&["acm", "--umad", "ibsim0:1", "--socket"]);
    command.arg(&socket).arg("--config").arg(&config).current_dir(&config);
    command.env("LD_PRELOAD", library());
    command.env("IBSIM_SOCKNAME", &lab.simulator).env("SIM_HOST", "host-2");
    let _service = Running::ready(command);
    for number in 1..=2 {
        let (found, printed) = write(&lab, Some(&socket));
        assert_eq!(printed, "", "the path is not from the service");
        assert!(found["mtu"].as_u64().is_some_and(|mtu| mtu > 512), "{found}");
        let status = ibfabric(&["acm", "ctl", "status", "--socket"]).arg(&socket).output();
        let status = text(&status.expect("the program can be started").stdout);
        assert!(status.contains(&format!("Resolve Count: {number}\n")), "{status}");
    }
}

#[test]
fn attached_service_and_program_share_a_node() {
    let lab = Lab::new("beside", &[]);
    let _third = lab.serve(2, &[]).in_service(&lab.path(2), 1);
    // The RDMA server and the RDMA client each share their port with an ACM service.
    let serve = ["rdma", "serve", "--attach", &lab.simulator, "--node", HOSTS[1]];
    let _server = Running::start(&serve);
    let socket = lab.path(2);
    for _ in 0..2 {
        let (found, printed) = write(&lab, Some(&socket));
        assert_eq!(printed, "", "the path is not from the service");
        assert!(found["mtu"].as_u64() > Some(512), "{found}");
    }
    // The ACM services still reach each other after RDMA clients have attached and exited.
    lab.resolves(&mut lab.client());
    let status = ibfabric(&["acm", "ctl", "status", "--socket"]).arg(&socket).output();
    let status = text(&status.expect("the program can be started").stdout);
    assert!(status.contains("Resolve Count: 2\n"), "{status}");
    // A port accepts one ACM service and one HCA, but not a second of either.
    let refused = |words: &[&str]| {
        let output = ibfabric(words).output().expect("the program can be started");
        assert_eq!(output.status.code(), Some(2));
        text(&output.stderr)
    };
    let other = lab.path(9);
    let service = ["acm", "--attach", &lab.simulator, "--node", HOSTS[1], "--socket"];
    let service = [&service[..], &[other.to_str().expect("the path is UTF-8")]].concat();
    assert!(refused(&service).contains("has a service already"));
    assert!(refused(&serve).contains("has an HCA already"));
}
