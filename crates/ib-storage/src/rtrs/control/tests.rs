use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use ib_rtrs::Errno;
use ib_rtrs::tree::{Entry, Kind, TreeError};

use super::*;

/// A thread that responds to control requests until `Program` is dropped.
pub(in crate::rtrs) struct Program {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Program {
    /// Starts a thread that responds to the requests of a control socket. If `answer` returns
    /// `None`, the request never gets a response.
    pub(in crate::rtrs) fn start(
        mut control: Control,
        mut answer: impl FnMut(ControlRequest) -> Option<Reply> + Send + 'static,
    ) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&ends);
        let thread = std::thread::spawn(move || {
            let mut kept = Vec::new();
            while !flag.load(Ordering::SeqCst) {
                while let Some((ask, request)) = control.take() {
                    match answer(ask) {
                        Some(reply) => request.respond(reply.to_line()),
                        None => kept.push(request),
                    }
                }
                if !control.begin_wait() {
                    ib_os::poll::wait(control.as_fd(), false, 20)
                        .expect("the descriptor can be polled");
                }
            }
        });
        Self { ends, thread: Some(thread) }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
        self.thread
            .take()
            .expect("the thread is joined only once")
            .join()
            .expect("the thread has not panicked");
    }
}

fn error(path: &str) -> Reply {
    message::failed(&TreeError::new(Errno::ENOENT, path, "there is no such file or directory"))
}

#[test]
fn requests_and_replies_are_lines_of_json() {
    let asks = [
        (ControlRequest::List("a/b".to_owned()), r#"{"list":"a/b"}"#),
        (ControlRequest::Kind(String::new()), r#"{"kind":""}"#),
        (ControlRequest::Read("a\nb".to_owned()), r#"{"read":"a\nb"}"#),
        (ControlRequest::Metrics, r#""metrics""#),
        (
            ControlRequest::Write { path: "a".to_owned(), value: "1\n".to_owned() },
            r#"{"write":{"path":"a","value":"1\n"}}"#,
        ),
    ];
    for (ask, line) in asks {
        assert_eq!(ask.to_line(), line);
        assert_eq!(ControlRequest::parse(line), Ok(ask));
    }
    for line in ["", "list", "{}", r#"{"list":1}"#, r#"{"list":"","more":1}"#, r#"{"steal":""}"#] {
        let reply = ControlRequest::parse(line).expect_err(line);
        assert!(!reply.ok && reply.data["errno"] == 22, "{reply:?}");
    }
    let entries = [
        Entry { name: "paths".to_owned(), kind: Kind::Directory },
        Entry { name: "add_path".to_owned(), kind: Kind::File { is_writable: true } },
    ];
    assert_eq!(message::list(&entries).text, "paths/\nadd_path\n");
    assert_eq!(
        error("x").to_line(),
        r#"{"ok":false,"text":"x: there is no such file or directory (ENOENT)","data":{"errno":2}}"#
    );
}

#[test]
fn socket_is_private_and_removed_with_the_program() {
    let dir = tempfile::tempdir().expect("a directory can be created");
    let socket = dir.path().join("control");
    // The socket file that an exited program has left is replaced.
    drop(UnixListener::bind(&socket).expect("the socket can be bound"));
    let control = Control::open(Some(&socket), None).expect("the socket is free");
    let mode = std::fs::metadata(&socket).expect("the socket file exists").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let second = Control::open(Some(&socket), None).map(drop).expect_err("the socket is in use");
    assert!(matches!(&second, OpenError::Socket { path, .. } if *path == socket), "{second}");
    drop(control);
    assert!(!socket.exists());
    std::fs::write(&socket, "a file").expect("the file can be written");
    Control::open(Some(&socket), None).map(drop).expect_err("the file is not a socket");
    assert_eq!(std::fs::read(&socket).expect("the file can be read"), b"a file");
}

#[test]
fn slow_silent_or_invalid_clients_do_not_block_others() {
    let dir = tempfile::tempdir().expect("a directory can be created");
    let socket = dir.path().join("control");
    let control = Control::open(Some(&socket), None).expect("the socket is free");
    let long = "x".repeat(4_000_000);
    let program = Program::start(control, move |ask| match ask {
        ControlRequest::Read(path) if path == "long" => Some(message::read(&path, long.clone())),
        ControlRequest::Read(path) if path == "never" => None,
        ControlRequest::Read(path) => Some(message::read(&path, format!("{path}\n"))),
        ask => Some(error(&ask.to_line())),
    });
    let connect = || UnixStream::connect(&socket).expect("the server listens");
    let mut silent = connect();
    let mut slow = connect();
    slow.write_all(b"{\"read\":\"long\"}\n{\"read\":\"next\"}\n").expect("the socket is writable");
    let mut waits = connect();
    waits.write_all(b"{\"read\":\"never\"}\n").expect("the socket is writable");
    let mut gone = connect();
    gone.write_all(b"{\"read\":\"never\"}\n").expect("the socket is writable");
    drop(gone);
    let mut rude = connect();
    rude.write_all(&[0xff; 1000]).expect("the socket is writable");
    rude.write_all(b"\n").expect("the socket is writable");
    for round in 0..200 {
        let mut client = ControlClient::connect(&socket).expect("the server listens");
        assert_eq!(client.read("state").expect("the server replies"), "state\n", "{round}");
        let refused = client.list("none").expect_err("the directory does not exist");
        assert_eq!(refused.errno(), Errno::ENOENT);
    }
    let mut first = [0; 11];
    rude.read_exact(&mut first).expect("the server replies");
    assert_eq!(&first, b"{\"ok\":false");
    silent.write_all(b"{\"read\":\"late\"}\n").expect("the connection is open");
    let mut answer = [0; 10];
    silent.read_exact(&mut answer).expect("the server replies");
    // The slow client receives both replies in full.
    let mut taken = Vec::new();
    let mut bytes = [0; 65_536];
    while taken.iter().filter(|byte| **byte == b'\n').count() < 2 {
        let length = slow.read(&mut bytes).expect("the server sends both replies");
        assert!(length > 0, "the server has closed the connection after {} bytes", taken.len());
        taken.extend_from_slice(&bytes[..length]);
    }
    assert!(taken.len() > 8_000_000 && taken.ends_with(b"\"value\":\"next\\n\"}}\n"));
    // A client does not wait indefinitely for a reply.
    let mut client = ControlClient::connect(&socket).expect("the server listens");
    client.set_timeout(Duration::from_millis(50)).expect("the timeout is not zero");
    assert_eq!(client.read("never").expect_err("no reply is sent").errno(), Errno::ETIMEDOUT);
    drop(program);
    // When the server stops, it closes the connection of a client that still waits for a reply.
    waits.set_read_timeout(Some(Duration::from_secs(10))).expect("the timeout is not zero");
    assert_eq!(waits.read(&mut [0; 1]).expect("the connection is closed"), 0);
}

#[test]
fn metrics_are_served_at_an_address() {
    let address = {
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
        free.local_addr().expect("the socket is bound")
    };
    let control = Control::open(None, Some(address)).expect("the port is free");
    let taken = Control::open(None, Some(address)).map(drop).expect_err("the port is in use");
    assert!(matches!(taken, OpenError::Metrics { address: it, .. } if it == address), "{taken}");
    let _program = Program::start(control, |ask| {
        assert_eq!(ask, ControlRequest::Metrics);
        Some(message::metrics("ibfabric_rtrs_server_sessions 1\n".to_owned()))
    });
    let mut stream = TcpStream::connect(address).expect("the server listens");
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").expect("the socket is writable");
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("the server replies");
    assert!(page.ends_with("\r\n\r\nibfabric_rtrs_server_sessions 1\n"), "{page}");
}
