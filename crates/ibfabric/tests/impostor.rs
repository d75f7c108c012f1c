//! Every client refuses an impostor: a server of another user that has taken the name or path of a local socket first.

use std::io::{BufRead as _, BufReader, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::Path;
use std::process::Output;
use std::time::Duration;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::Uid;

#[expect(dead_code, reason = "these tests use only a part of the module")]
mod program;

use program::{ibfabric, text};

/// The user `nobody`.
const OTHER_USER: u32 = 65_534;

/// The response of an impostor to a console command. It reports success, and its text has an escape sequence.
const ANSWER: &[u8] = b"{\"ok\":true,\"text\":\"\\u001b[31mforged\",\"data\":null}\n";

/// Returns true if a thread can change to another user. If not, prints the reason.
fn can_be_another_user() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        let mut out = std::io::stderr();
        writeln!(out, "NOT RUN: impostors: only root can be another user")
            .expect("standard error can be written");
    }
    is_root
}

/// Runs an impostor in a thread with another user ID. The socket is open when the function returns.
fn impostor<S: Send + 'static>(
    open: impl FnOnce() -> S + Send + 'static,
    serve: impl FnOnce(S) + Send + 'static,
) {
    let (ready, wait) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        // The system call changes the user of this thread only.
        let user = Uid::from_raw(OTHER_USER);
        rustix::thread::set_thread_res_uid(user, user, user).expect("root can change the user ID");
        let socket = open();
        ready.send(()).expect("the test waits for this message");
        serve(socket);
    });
    wait.recv().expect("the socket is open");
}

#[expect(clippy::needless_pass_by_value, reason = "the thread owns its listener")]
fn serve_lines(listener: UnixListener) {
    while let Ok((mut stream, _)) = listener.accept() {
        let copy = stream.try_clone().expect("the descriptor can be duplicated");
        let mut lines = BufReader::new(copy).lines();
        while let Some(Ok(_)) = lines.next() {
            if stream.write_all(ANSWER).is_err() {
                break;
            }
        }
    }
}

/// Runs an impostor of a console socket with an abstract name.
fn console(name: &str) {
    let address =
        SocketAddr::from_abstract_name(format!("{name}:console")).expect("the name is valid");
    impostor(move || UnixListener::bind_addr(&address).expect("the name is free"), serve_lines);
}

/// Runs an impostor of the stream socket at this path. All users can write to its directory.
fn path(path: &Path) {
    let path = path.to_owned();
    impostor(move || UnixListener::bind(path).expect("the path is free"), serve_lines);
}

/// Runs an impostor of a simulator's socket for HCAs.
fn data(name: &str) {
    let address = SocketAddrUnix::new_abstract_name(format!("{name}:data").as_bytes());
    let address = address.expect("the name is valid");
    let open = move || -> OwnedFd {
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None);
        let socket = socket.expect("the socket can be created");
        rustix::net::bind(&socket, &address).expect("the name is free");
        rustix::net::listen(&socket, 8).expect("the socket can listen");
        socket
    };
    impostor(open, |listener| {
        while let Ok(socket) = rustix::net::accept(&listener) {
            let mut bytes = [MaybeUninit::uninit(); 4096];
            if rustix::net::recv(&socket, &mut bytes, RecvFlags::empty()).is_ok() {
                let answer = br#"{"Refused":{"why":"\u001b[31mforged"}}"#;
                let _ = rustix::net::send(&socket, answer, SendFlags::NOSIGNAL);
            }
        }
    });
}

/// Runs an impostor of a simulator's socket for control messages of ibsim's protocol. Its reply is a copy of the
/// request.
fn ibsim(name: &str) {
    let address =
        SocketAddr::from_abstract_name(format!("{name}:ctl\0")).expect("the name is valid");
    let open = move || UnixDatagram::bind_addr(&address).expect("the name is free");
    impostor(open, |socket| {
        let mut bytes = [0; 4096];
        while let Ok((length, from)) = socket.recv_from(&mut bytes) {
            let _ = socket.send_to_addr(&bytes[..length], &from);
        }
    });
}

/// Checks that a command refused the impostor: the error names the impostor's user, and no response is printed.
fn is_refused(output: &Output) {
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.code().is_some_and(|status| status > 1), "{output:?}");
    // `acme` prints errors to standard output, like ib_acme, so the error can be in either output.
    let refused = "user 65534 serves the socket: expected user 0 or root";
    assert!(stderr.contains(refused) || stdout.contains(refused), "{output:?}");
    assert!(!stdout.contains("forged") && !stderr.contains("forged"), "{output:?}");
    assert!(!stdout.contains('\x1b') && !stderr.contains('\x1b'), "{output:?}");
}

fn run(words: &[&str]) -> Output {
    ibfabric(words).output().expect("the program runs")
}

#[test]
fn consoles_of_other_users_are_refused() {
    if !can_be_another_user() {
        return;
    }
    let name = format!("impostor-{}", std::process::id());
    console(&name);
    is_refused(&run(&["sim", "ctl", "--name", &name, "dump"]));
    is_refused(&run(&["sm", "ctl", "--name", &name, "status"]));
    let folder = tempfile::tempdir().expect("a temporary directory can be created");
    let socket = folder.path().canonicalize().expect("the directory exists").join("acm.sock");
    console(&format!("ibfabric-acm:{}", socket.display()));
    for question in ["status", "flush", "reload"] {
        is_refused(&run(&["acm", "ctl", "--socket", &socket.display().to_string(), question]));
    }
}

#[test]
fn sockets_of_other_users_in_shared_folders_are_refused() {
    if !can_be_another_user() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary directory can be created");
    let all = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(folder.path(), all).expect("the directory belongs to this user");
    let socket = folder.path().join("socket");
    path(&socket);
    let socket = socket.display().to_string();
    is_refused(&run(&["rtrs", "ctl", "--socket", &socket, "list"]));
    is_refused(&run(&["acme", "-S", &socket, "-P"]));
    is_refused(&run(&["acme", "-S", &socket, "-f", "n", "-d", "host-1"]));
}

#[test]
fn simulators_of_other_users_are_refused() {
    if !can_be_another_user() {
        return;
    }
    let name = format!("impostor-sim-{}", std::process::id());
    data(&name);
    ibsim(&name);
    // The impostors' sockets are open. During this pause, the impostors' threads begin to wait for requests.
    std::thread::sleep(Duration::from_millis(10));
    is_refused(&run(&["rdma", "ping", "node", "--attach", &name, "--node", "a"]));
    is_refused(&run(&["agent", "--attach", &name, "--node", "a"]));
    is_refused(&run(&["agent", &format!("--attach={name}"), "--node", "a"]));
}

/// Runs an impostor of the capture socket of another process.
fn captures(pid: u32) {
    let name = format!("ibfabric-capture-{pid}-0");
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).expect("the name is valid");
    let open = move || -> OwnedFd {
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None);
        let socket = socket.expect("the socket can be created");
        rustix::net::bind(&socket, &address).expect("the name is free");
        rustix::net::listen(&socket, 8).expect("the socket can listen");
        socket
    };
    impostor(open, |listener| {
        while let Ok(socket) = rustix::net::accept(&listener) {
            let answer = br#"{"program":{"pid":1,"command":"\u001b[31mforged","adapters":[],
                "more_from":null,"captures":[],"more_captures_from":null}}"#;
            let _ = rustix::net::send(&socket, answer, SendFlags::NOSIGNAL);
        }
    });
}

#[test]
fn captures_of_other_users_processes_are_refused() {
    if !can_be_another_user() {
        return;
    }
    captures(1);
    for words in [&["list"][..], &["start", "-w", "/dev/null"], &["stop"]] {
        let output = run(&[&["capture"], words, &["--pid", "1"]].concat());
        let printed = text(&output.stderr) + &text(&output.stdout);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {printed}");
        assert!(printed.contains("process 1 has no queue pairs"), "{printed}");
        assert!(!printed.contains("forged"), "{printed}");
    }
}

#[test]
fn mounts_and_attached_hcas_refuse_servers_of_other_users() {
    if !can_be_another_user() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary directory can be created");
    let all = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(folder.path(), all).expect("the directory belongs to this user");
    let socket = folder.path().join("socket");
    path(&socket);
    let socket = socket.display().to_string();
    let words = ["rtrs", "ctl", "--socket", &socket, "get", "a"];
    is_refused(&run(&words));
    console("ibfabric-rdma-127.0.0.99-4791");
    let output = run(&["rdma", "devinfo", "-v", "--from", "127.0.0.99"]);
    let printed = text(&output.stderr) + &text(&output.stdout);
    assert!(!printed.contains("forged") && !printed.contains('\x1b'), "{printed}");
    let name = format!("impostor-sm-{}", std::process::id());
    ibsim(&name);
    std::thread::sleep(Duration::from_millis(10));
    is_refused(&run(&["tracer", &format!("--attach={name}"), "--lid", "1"]));
    is_refused(&run(&["sm", &format!("--attach={name}"), "--once"]));
}
