//! Checks that invalid options and malformed input are rejected.

use super::*;

#[test]
fn unusable_options_are_rejected_with_reason() {
    let place = tempfile::tempdir().expect("a temporary directory can be created");
    let inside =
        |name: &str| place.path().join(name).to_str().expect("the path is UTF-8").to_owned();
    let server = Server::start();
    let refused = |words: &[&str], expected: &str| {
        let output = server.capture(&["start"], words);
        let printed = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {printed}");
        assert!(printed.contains(expected), "{words:?}: {printed}");
    };
    let message = format!("ibfabric: cannot capture into {}: No such file", inside("no/where"));
    refused(&["-w", &inside("no/where")], &message);
    refused(&["-w", &inside("a"), "--payload", "5000"], "expected a number of 0 to 4096");
    refused(&["-w", &inside("a"), "--buffer-size", "100000"], "expected a power of two");
    refused(&["-w", &inside("a"), "-b", "files:3"], "a condition that starts the next file");
    refused(&["-w", &inside("a"), "-b", "sizes:3"], "expected duration:S");
    for limit in ["files:3", "foo:2", "packets", "packets:x"] {
        let expected = "expected duration:S, filesize:KB or packets:N\n";
        refused(&["-w", &inside("a"), "-a", limit], expected);
    }
    for (option, limit) in [("-a", "packets:0"), ("-b", "duration:0"), ("-b", "files:0")] {
        refused(&["-w", &inside("a"), option, limit], &format!("`{limit}` is not more than 0"));
    }
    refused(&["-w", &inside("a"), "--peer", "nobody"], "expected an IP address, a GID or a LID");
    refused(&["-w", &inside("a"), "--opcode", "teleport"], "expected a code of 0 to 255");
    refused(&["-w", &inside("a"), "--trigger", "rain"], "expected error, retransmission or drop");
    refused(&["-w", &inside("a"), "--keep", "5"], "--trigger");
    refused(&["-w", "-", "-b", "packets:5"], "standard output cannot be rotated");
    let output = server.capture(&["stop"], &["77"]);
    assert!(text(&output.stderr).contains("there is no capture 77"), "{}", text(&output.stderr));
    let output = server.capture(&["list"], &["--messages", "0xabcdef"]);
    assert!(text(&output.stderr).contains("no program has a queue pair 0xabcdef"));
    let output =
        ibfabric(&["capture", "list", "--pid", "1"]).output().expect("the program can be started");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).starts_with("ibfabric: process 1 has no queue pairs that could be"),
        "{}",
        text(&output.stderr)
    );
    for words in [&["list"][..], &["start", "-w", "a"], &["stop"], &["change", "1"]] {
        let words = [&["capture"], words, &["--pid", "999999999"]].concat();
        let output = ibfabric(&words).output().expect("the program can be started");
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(text(&output.stderr), "ibfabric: there is no process 999999999\n");
    }
    let output = server.capture(&["list"], &["--messages", "1"]);
    let printed = text(&output.stderr);
    assert!(printed.contains("carries MADs") && printed.contains("start --qpn 1"), "{printed}");
    // If the capture file cannot be written, the server still serves clients. `stop` reports the error.
    server.object(&["start"], &["-w", "/dev/full"]);
    let client = server.client(100, &[]).output().expect("the program can be started");
    assert!(client.status.success(), "{}", text(&client.stderr));
    let output = server.capture(&["stop"], &[]);
    let stopped: Value = serde_json::from_slice(&output.stdout).expect("the text is JSON");
    assert_eq!(output.status.code(), Some(1));
    let error = stopped["error"].as_str().expect("an error is reported");
    assert!(error.starts_with("/dev/full: byte 0: No space left"), "{error}");
    check_counts(&stopped);
    assert_eq!(number(&stopped["captured"]), 0);
}

/// Malformed requests get an error reply.
#[test]
fn malformed_requests_do_not_affect_other_clients() {
    use rustix::net::{
        AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketType, connect, recv, send,
        socket,
    };
    let server = Server::start();
    let name = format!("ibfabric-capture-{}-0", server.pid());
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).expect("the name is valid");
    for nonsense in ["", "{", "{\"start\":{}}", "[1,2]", "\"describe\"", &"x".repeat(60_000)] {
        let socket = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None)
            .expect("the socket can be created");
        connect(&socket, &address).expect("the server listens");
        send(&socket, nonsense.as_bytes(), SendFlags::NOSIGNAL).expect("the peer accepts data");
        if nonsense.is_empty() {
            continue;
        }
        let mut answer = [0; 4096];
        let (length, _) =
            recv(&socket, &mut answer, RecvFlags::empty()).expect("the response is received");
        assert!(text(&answer[..length]).contains("invalid request"), "{nonsense}");
    }
    // Clients that have disconnected do not count towards the limit of clients.
    let many: Vec<_> = (0..40)
        .map(|_| {
            let socket = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None)
                .expect("the socket can be created");
            connect(&socket, &address).expect("the server listens");
            socket
        })
        .collect();
    drop(many);
    wait(|| server.capture(&["list"], &[]).status.success().then_some(()));
}

/// A program is listed safely although its arguments contain invalid UTF-8 and an escape sequence.
#[test]
fn arguments_of_any_bytes_do_not_panic() {
    use std::os::unix::ffi::OsStrExt;
    let place = tempfile::tempdir().expect("a temporary directory can be created");
    let file = place.path().join(std::ffi::OsStr::from_bytes(b"a\xff\x1b[31m.pcapng"));
    let udp = (44_000 + std::process::id() % 4000).to_string();
    let words = ["rdma", "serve", "--listen", "127.0.0.1", "--udp-port", &udp, "-p", "19591"];
    let mut command = ibfabric(&words);
    let mut child = command
        .arg("--pcap")
        .arg(&file)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().expect("standard output is piped"))
        .read_line(&mut line)
        .expect("the program prints a line");
    let pid = child.id().to_string();
    let output =
        ibfabric(&["capture", "list", "--pid", &pid]).output().expect("the program can be started");
    let printed = text(&output.stdout);
    assert!(output.status.success() && printed.contains("rdma serve"), "{printed}");
    assert!(!printed.lines().next().expect("a line is printed").contains('\x1b'), "{printed:?}");
    Command::new("kill").args(["-INT", &pid]).status().expect("kill runs");
    assert!(child.wait().expect("the process can be awaited").success());
}

/// If a program cannot write the file of its option --pcap, its exit status reports the error.
#[test]
fn unwritten_own_capture_is_reported() {
    let server = Server::start();
    let output =
        server.client(10, &["--pcap", "/dev/full"]).output().expect("the program can be started");
    let printed = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(
        printed.contains("/dev/full: byte 0: No space left") && !output.stdout.is_empty(),
        "{printed}"
    );
    let words = ["rdma", "bw", "127.0.0.1", "--udp-port", &server.udp, "-p", &server.port];
    let output = ibfabric(&words).output().expect("the program can be started");
    let printed = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{printed}");
    assert!(printed.contains("cannot connect to itself: expected --from ADDR"), "{printed}");
}
