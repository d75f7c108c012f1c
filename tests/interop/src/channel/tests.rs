//! No guest runs in these tests. A Unix socket replaces the serial port, and the tests send the messages of the guest.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::time::Duration;

use super::{Message, Port};
use crate::error::RunError;
use crate::running::Running;

const LIMIT: Duration = Duration::from_secs(10);

#[test]
fn messages_of_the_guest_are_parsed() {
    assert_eq!(Message::parse("ready"), Some(Message::Ready));
    assert_eq!(
        Message::parse("out 7 two  words "),
        Some(Message::Out { id: 7, text: "two  words " })
    );
    assert_eq!(Message::parse("out 7 "), Some(Message::Out { id: 7, text: "" }));
    assert_eq!(Message::parse("end 7 134"), Some(Message::End { id: 7, status: 134 }));
    for line in ["", "end 7", "end 7 256", "out x text", "other 1 2"] {
        assert_eq!(Message::parse(line), None, "{line:?}");
    }
}

#[test]
fn concurrent_commands_get_their_own_output_and_status() {
    let (host, mut guest) = UnixStream::pair().unwrap();
    let (sender, receiver) = mpsc::channel();
    let port = Port::open(host, move || sender.send(()).unwrap()).unwrap();
    guest.write_all(b"ready\n").unwrap();
    receiver.recv_timeout(LIMIT).unwrap();
    let first = Running::in_guest(&port, "first command").unwrap();
    let second = Running::in_guest(&port, "second").unwrap();
    let mut lines = BufReader::new(guest.try_clone().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "start 1 first command");
    assert_eq!(lines.next().unwrap().unwrap(), "start 2 second");
    guest.write_all(b"out 2 b\nout 1 a\nout 2 c\nend 2 3\n").unwrap();
    let second = second.wait(LIMIT).unwrap();
    assert_eq!((second.status, &*second.output), (3, "b\nc\n"));
    first.until("a\n", LIMIT).unwrap();
    drop(first);
    assert_eq!(lines.next().unwrap().unwrap(), "kill 1 9");
}

#[test]
fn commands_fail_when_the_guest_exits() {
    let (host, guest) = UnixStream::pair().unwrap();
    let port = Port::open(host, || ()).unwrap();
    let running = Running::in_guest(&port, "command").unwrap();
    drop(guest);
    assert!(matches!(running.wait(LIMIT), Err(RunError::Gone { .. })));
    assert!(matches!(Running::in_guest(&port, "next"), Err(RunError::Gone { .. })));
    assert!(matches!(Running::in_guest(&port, "two\nlines"), Err(RunError::Lines(_))));
}
