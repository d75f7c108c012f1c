use super::DeviceState::{Closed, Open, Reopened, ReopenedAfterRestart};
use super::Outcome::{Answered, Fenced, TimedOut, Unknown};
use super::Recovery::{Drop, End, Reopen, Resend, ResendLater};
use super::SessionLoss::{Excluded, Known, Possible, Repeated};
use super::*;

/// Outcomes, in the order of the columns of [`table`]. EPERM stands for all temporary refusals, and EIO for other
/// errors.
const OUTCOMES: [Option<Outcome>; 8] = [
    Some(Answered(Errno::OK)),
    Some(Answered(Errno::ENOTCONN)),
    Some(Answered(Errno::EPERM)),
    Some(Answered(Errno::EIO)),
    Some(Fenced),
    Some(Unknown),
    Some(TimedOut),
    None,
];

const OK: Recovery = End(Errno::OK);
const IO: Recovery = End(Errno::EIO);
const PERM: Recovery = End(Errno::EPERM);
const NOTCONN: Recovery = End(Errno::ENOTCONN);
const ABORTED: Recovery = End(Errno::ECONNABORTED);
const TIMEOUT: Recovery = End(Errno::ETIMEDOUT);

const fn open(is_outdated: bool, was_open: bool, refusals: u32) -> Message {
    Message::Open(OpenRequest { is_outdated, was_open, refusals })
}

const fn read(device: DeviceState) -> Message {
    Message::Command { is_change: false, device }
}

const fn write(device: DeviceState) -> Message {
    Message::Command { is_change: true, device }
}

/// Returns every message, and the expected recovery for each outcome.
#[rustfmt::skip]
fn table() -> Vec<(Message, [Recovery; 8])> {
    vec![
        // message                    OK      ENOTCONN EPERM        EIO     Fenced  Unknown  TimedOut not sent
        (Message::Session,           [OK,     NOTCONN, PERM,        IO,     Drop,   Drop,    Resend,  Resend]),
        (Message::Close,             [OK,     NOTCONN, PERM,        IO,     Drop,   Drop,    Resend,  Resend]),
        (open(false, false, 0),      [OK,     NOTCONN, PERM,        IO,     Drop,   Drop,    Resend,  Resend]),
        (open(false, false, 29),     [OK,     NOTCONN, PERM,        IO,     Drop,   Drop,    Resend,  Resend]),
        (open(false, false, 30),     [OK,     NOTCONN, PERM,        IO,     Drop,   Drop,    Resend,  Resend]),
        (open(false, true, 0),       [OK,     NOTCONN, ResendLater, IO,     Drop,   Drop,    Resend,  Resend]),
        (open(false, true, 29),      [OK,     NOTCONN, ResendLater, IO,     Drop,   Drop,    Resend,  Resend]),
        (open(false, true, 30),      [OK,     NOTCONN, PERM,        IO,     Drop,   Drop,    Resend,  Resend]),
        (open(true, false, 0),       [Resend, Resend,  Resend,      Resend, Drop,   Drop,    Resend,  Resend]),
        (open(true, false, 29),      [Resend, Resend,  Resend,      Resend, Drop,   Drop,    Resend,  Resend]),
        (open(true, false, 30),      [Resend, Resend,  Resend,      Resend, Drop,   Drop,    Resend,  Resend]),
        (open(true, true, 0),        [Resend, Resend,  Resend,      Resend, Drop,   Drop,    Resend,  Resend]),
        (open(true, true, 29),       [Resend, Resend,  Resend,      Resend, Drop,   Drop,    Resend,  Resend]),
        (open(true, true, 30),       [Resend, Resend,  Resend,      Resend, Drop,   Drop,    Resend,  Resend]),
        (read(Closed),               [OK,     Resend,  PERM,        IO,     Resend, Resend,  TIMEOUT, Resend]),
        (read(Open(Excluded)),       [OK,     NOTCONN, PERM,        IO,     Resend, Resend,  TIMEOUT, Resend]),
        (read(Open(Possible)),       [OK,     Reopen,  PERM,        IO,     Resend, Resend,  TIMEOUT, Resend]),
        (read(Open(Repeated)),       [OK,     NOTCONN, PERM,        IO,     Resend, Resend,  TIMEOUT, Resend]),
        (read(Open(Known)),           [OK,     Resend,  PERM,        IO,     Resend, Resend,  TIMEOUT, Resend]),
        (read(Reopened),             [OK,     Resend,  PERM,        IO,     Resend, Resend,  TIMEOUT, Resend]),
        (read(ReopenedAfterRestart), [OK,     Resend,  PERM,        IO,     Resend, Resend,  TIMEOUT, Resend]),
        (write(Closed),              [OK,     Resend,  PERM,        IO,     Resend, ABORTED, TIMEOUT, Resend]),
        (write(Open(Excluded)),      [OK,     NOTCONN, PERM,        IO,     Resend, ABORTED, TIMEOUT, Resend]),
        (write(Open(Possible)),      [OK,     Reopen,  PERM,        IO,     Resend, ABORTED, TIMEOUT, Resend]),
        (write(Open(Repeated)),      [OK,     NOTCONN, PERM,        IO,     Resend, ABORTED, TIMEOUT, Resend]),
        (write(Open(Known)),          [OK,     Resend,  PERM,        IO,     Resend, ABORTED, TIMEOUT, Resend]),
        (write(Reopened),            [OK,     Resend,  PERM,        IO,     Resend, ABORTED, TIMEOUT, Resend]),
        (write(ReopenedAfterRestart),[OK,     IO,      PERM,        IO,     IO,     ABORTED, TIMEOUT, IO]),
    ]
}

#[test]
fn every_message_and_outcome_has_its_recovery() {
    for (message, expected) in table() {
        for (outcome, expected) in OUTCOMES.into_iter().zip(expected) {
            assert_eq!(decide(message, outcome), expected, "{message:?}, {outcome:?}");
        }
    }
}

#[test]
fn table_has_every_message_once() {
    let mut messages = vec![Message::Session, Message::Close];
    for (is_outdated, was_open) in [(false, false), (false, true), (true, false), (true, true)] {
        let counts = [0, MAX_REFUSALS - 1, MAX_REFUSALS];
        messages.extend(counts.map(|count| open(is_outdated, was_open, count)));
    }
    let open = [Excluded, Possible, Repeated, Known].map(Open);
    for device in open.into_iter().chain([Closed, Reopened, ReopenedAfterRestart]) {
        messages.extend([read(device), write(device)]);
    }
    let table = table();
    assert_eq!(table.len(), messages.len());
    for message in messages {
        let rows = table.iter().filter(|(it, _)| *it == message);
        assert_eq!(rows.count(), 1, "{message:?}");
    }
}

#[test]
fn temporary_refusals() {
    let passing = [Errno::EPERM, Errno::EBUSY, Errno::ENOMEM];
    assert!(passing.into_iter().all(is_temporary));
    assert!(![Errno::OK, Errno::ENOENT, Errno::EACCES, Errno::EIO].into_iter().any(is_temporary));
}
