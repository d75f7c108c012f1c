use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use ib_block::{Geometry, ReadData};
use ib_nbd::wire::{self, command, option};

use super::*;

const SIZE: u64 = 1 << 20;

/// A device that completes requests only on demand.
#[derive(Default)]
struct Slow {
    asked: Vec<(u64, Command)>,
    ended: VecDeque<(u64, Command)>,
    /// Length in bytes of the last completed request's data.
    length: usize,
}

impl Backing for Slow {
    fn submit(&mut self, user: u64, command: Command, _: &[u8]) {
        self.asked.push((user, command));
    }

    fn poll(&mut self) -> Option<(u64, Errno)> {
        let (user, command) = self.ended.pop_front()?;
        self.length = command.length as usize;
        Some((user, Errno::OK))
    }

    fn take_data(&mut self) -> ReadData {
        vec![0; self.length].into()
    }

    fn give_back(&mut self, _: ReadData) {}

    fn losses(&self) -> u64 {
        0
    }
}

impl Slow {
    /// Completes all requests.
    fn end_all(&mut self) {
        self.ended.extend(self.asked.drain(..));
    }
}

struct Lab {
    server: NbdServer,
    disk: Slow,
    path: PathBuf,
    _directory: tempfile::TempDir,
}

impl Lab {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory can be created");
        let path = directory.path().join("nbd.sock");
        let export = Export {
            name: "disk0".to_owned(),
            description: String::new(),
            geometry: Geometry::new(SIZE, 512),
            preferred: 4096,
        };
        let server = NbdServer::listen(&NbdAddress::Unix(path.clone()), [export].into());
        let server = server.expect("the address is free");
        Self { server, disk: Slow::default(), path, _directory: directory }
    }

    /// Runs the server until it makes no progress.
    fn run(&mut self) {
        // A program that drives the server calls `interests` before each wait, so this test does too.
        self.server.interests(&mut Vec::new());
        while self.server.progress(&mut self.disk) {}
    }

    /// Runs the server. Returns true if a descriptor is ready although there is no work, so that
    /// the server would spin.
    fn spins(&mut self) -> bool {
        self.run();
        self.is_woken()
    }

    /// Returns true if a descriptor that the server waits for is ready.
    fn is_woken(&mut self) -> bool {
        let mut files = Vec::new();
        self.server.interests(&mut files);
        let mut files: Vec<_> = files.iter().map(Interest::watched).collect();
        poll::wait_any(&mut files, 0).expect("the descriptors can be polled");
        files.iter().any(|file| file.revents != 0)
    }

    /// Waits until a descriptor of the server is ready, the server has work, or the time is `until`,
    /// but at most 1 ms.
    fn wait(&mut self, until: Instant) {
        let mut files = Vec::new();
        let until = self.server.interests(&mut files).min(until);
        let mut files: Vec<_> = files.iter().map(Interest::watched).collect();
        // The calling thread is also the client, so the client cannot send during the wait. Therefore
        // the wait is short even if no descriptor is ready.
        let limit = until.since(clock::now()).min(Duration::from_millis(1));
        poll::wait_any_for(&mut files, limit).expect("the descriptors can be polled");
    }

    /// Connects a client, and finishes the handshake by `NBD_OPT_EXPORT_NAME`.
    fn program(&mut self) -> UnixStream {
        let mut program = UnixStream::connect(&self.path).expect("the server listens");
        program.set_read_timeout(Some(Duration::from_secs(10))).expect("the socket is open");
        let mut hello = 3_u32.to_be_bytes().to_vec();
        hello.extend(wire::OPTION_MAGIC.to_be_bytes());
        hello.extend(option::EXPORT_NAME.to_be_bytes());
        hello.extend(0_u32.to_be_bytes());
        program.write_all(&hello).expect("the socket is writable");
        self.run();
        // Reads the greeting of the server, and the size and flags of the device.
        let mut answer = [0; 18 + 10];
        program.read_exact(&mut answer).expect("the server replies");
        program
    }
}

/// Returns an NBD request that reads or writes 512 bytes.
fn request(kind: u16, offset: u64) -> Vec<u8> {
    request_of(kind, offset, 512)
}

fn request_of(kind: u16, offset: u64, length: u32) -> Vec<u8> {
    let mut bytes = wire::REQUEST_MAGIC.to_be_bytes().to_vec();
    bytes.extend([0; 2]);
    bytes.extend(kind.to_be_bytes());
    bytes.extend(9_u64.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    if kind == command::WRITE {
        bytes.extend([7; 512]);
    }
    bytes
}

/// The writes that a killed client has left are executed before later requests, as on a local disk.
#[test]
fn writes_of_a_disconnected_client_precede_later_requests() {
    let mut lab = Lab::new();
    let (mut first, mut second) = (lab.program(), lab.program());
    first.write_all(&request(command::WRITE, 0)).expect("the socket is writable");
    lab.run();
    assert_eq!(lab.disk.asked.len(), 1);
    second.write_all(&request(command::READ, 512)).expect("the socket is writable");
    lab.run();
    assert_eq!(lab.disk.asked.len(), 2, "connected clients do not block others");
    drop(first);
    second.write_all(&request(command::WRITE, 0)).expect("the socket is writable");
    // A new client can finish the handshake, but its request waits for the write of the first client.
    let mut third = lab.program();
    third.write_all(&request(command::READ, 0)).expect("the socket is writable");
    lab.run();
    assert_eq!(lab.disk.asked.len(), 2);
    assert!(!lab.spins(), "waiting requests must not wake the server");
    lab.disk.end_all();
    lab.run();
    assert_eq!(lab.disk.asked.len(), 2, "both requests waited for the write of the first client");
    lab.disk.end_all();
    lab.run();
    for mut program in [second, third] {
        let mut answer = [0; 16];
        program.read_exact(&mut answer).expect("the server replies");
        assert_eq!(answer[..4], wire::SIMPLE_MAGIC.to_be_bytes());
    }
    assert_eq!(lab.server.connections(), 2);
}

#[test]
fn reads_of_a_disconnected_client_do_not_block_others() {
    let mut lab = Lab::new();
    let (mut first, mut second) = (lab.program(), lab.program());
    first.write_all(&request(command::READ, 0)).expect("the socket is writable");
    lab.run();
    drop(first);
    second.write_all(&request(command::WRITE, 0)).expect("the socket is writable");
    lab.run();
    assert_eq!(lab.disk.asked.len(), 2);
}

/// `poll` reports a broken connection even if no events are requested, so the server must not poll
/// it.
#[test]
fn disconnected_client_does_not_wake_the_server_repeatedly() {
    let mut lab = Lab::new();
    let mut program = lab.program();
    program.write_all(&request(command::READ, 0)).expect("the socket is writable");
    lab.run();
    drop(program);
    assert!(!lab.spins());
    lab.disk.end_all();
    lab.run();
    assert_eq!(lab.server.connections(), 0);
}

#[test]
fn disconnected_client_with_unread_responses_does_not_block() {
    // In the first case, the unread responses reach the limit of 64 MiB of a session. In the second
    // case, they exceed the client's share of the budget.
    for (limit, answers) in [(Budget::new().limit, 70), (2 << 20, 8)] {
        disconnect_with_unread_responses(limit, answers);
    }
}

fn disconnect_with_unread_responses(limit: usize, answers: usize) {
    let mut lab = Lab::new();
    lab.server.budget.limit = limit;
    let (mut first, mut second) = (lab.program(), lab.program());
    for _ in 0..answers {
        first
            .write_all(&request_of(command::READ, 0, SIZE as u32))
            .expect("the socket is writable");
        lab.run();
        lab.disk.end_all();
        lab.run();
    }
    // The client sends another request, although the server cannot send more responses to it.
    first.write_all(&request(command::READ, 0)).expect("the socket is writable");
    second.write_all(&request(command::READ, 0)).expect("the socket is writable");
    first.shutdown(std::net::Shutdown::Write).expect("the socket is connected");
    lab.run();
    lab.disk.end_all();
    lab.run();
    second.write_all(&request(command::WRITE, 0)).expect("the socket is writable");
    lab.run();
    assert!(lab.disk.asked.iter().any(|(_, it)| it.operation == Operation::Write));
    assert!(!lab.spins());
}

/// The server reads both clients at once. The first client has disconnected before the second sent
/// its write, so the write of the first client must be executed first.
#[test]
fn unread_writes_of_a_disconnected_client_precede_others() {
    let mut lab = Lab::new();
    // Tests both orders in which the clients can connect.
    for turns in [false, true] {
        let mut programs = [lab.program(), lab.program()];
        if turns {
            programs.reverse();
        }
        let [mut first, mut second] = programs;
        first.write_all(&request(command::WRITE, 0)).expect("the socket is writable");
        drop(first);
        second.write_all(&request(command::WRITE, 512)).expect("the socket is writable");
        lab.run();
        let asked: Vec<u64> = lab.disk.asked.iter().map(|(_, command)| command.offset).collect();
        assert_eq!(asked, [0], "only the write of the disconnected client is executed");
        lab.disk.end_all();
        lab.run();
        let asked: Vec<u64> = lab.disk.asked.iter().map(|(_, command)| command.offset).collect();
        assert_eq!(asked, [512]);
        lab.disk.end_all();
        lab.run();
        drop(second);
        lab.run();
        assert_eq!(lab.server.connections(), 0);
    }
}

/// Clients whose requests wait while other code uses the device do not wake the server repeatedly.
#[test]
fn clients_that_wait_for_the_device_do_not_wake_the_server() {
    let mut lab = Lab::new();
    let (mut program, gone) = (lab.program(), lab.program());
    while lab.server.progress_without() {}
    program.write_all(&request(command::READ, 0)).expect("the socket is writable");
    drop(gone);
    while lab.server.progress_without() {}
    assert!(!lab.is_woken());
    lab.run();
    assert_eq!(lab.disk.asked.len(), 1);
}

#[test]
fn only_the_client_beyond_its_memory_share_waits() {
    const LONG: u32 = 512 << 10;
    let mut lab = Lab::new();
    lab.server.budget.limit = 2 << 20;
    let (mut greedy, mut other) = (lab.program(), lab.program());
    for _ in 0..16 {
        greedy.write_all(&request_of(command::READ, 0, LONG)).expect("the socket is writable");
    }
    lab.run();
    assert_eq!(lab.disk.asked.len(), 4);
    other.write_all(&request(command::READ, 512)).expect("the socket is writable");
    lab.run();
    assert_eq!(lab.disk.asked.len(), 5);
    // Responses that a client has not read use its share of the memory, and do not wake the server.
    lab.disk.end_all();
    lab.run();
    let asked = lab.disk.asked.len();
    assert!(asked <= 3, "{asked}");
    let mut answered = 0;
    while answered < 16 {
        lab.disk.end_all();
        lab.run();
        let mut answer = vec![0; 16 + LONG as usize];
        greedy.read_exact(&mut answer).expect("the server replies");
        answered += 1;
    }
    lab.run();
    assert!(!lab.spins());
}

#[test]
fn announced_writes_take_no_memory() {
    let mut lab = Lab::new();
    let mut programs: Vec<UnixStream> = (0..8).map(|_| lab.program()).collect();
    for program in &mut programs {
        let header = request_of(command::WRITE, 0, 32 << 20)[..28].to_vec();
        program.write_all(&header).expect("the socket is writable");
        lab.run();
    }
    let kept = lab.server.usage().kept;
    assert!(kept <= programs.len() * (256 << 10), "{kept}");
}

/// Half of each write exceeds the client's share of the memory.
#[test]
fn partial_writes_beyond_the_budget_finish_in_turns() {
    const LONG: usize = SIZE as usize;
    let mut lab = Lab::new();
    lab.server.budget.limit = 2 << 20;
    let mut programs: Vec<UnixStream> = (0..12).map(|_| lab.program()).collect();
    let mut wholes = Vec::new();
    for program in &programs {
        let mut whole = request_of(command::WRITE, 0, LONG as u32)[..28].to_vec();
        whole.resize(28 + LONG, 7);
        program.set_nonblocking(true).expect("the socket is open");
        wholes.push(whole);
    }
    let mut sent = vec![0; programs.len()];
    for round in 0..2000 {
        for ((program, whole), sent) in programs.iter_mut().zip(&wholes).zip(&mut sent) {
            // All clients first send half of their writes.
            let end = if round < 200 { whole.len() / 2 } else { whole.len() };
            *sent += program.write(&whole[*sent..end]).unwrap_or(0);
        }
        lab.run();
        lab.disk.end_all();
        lab.run();
    }
    assert!(sent.iter().all(|&sent| sent == 28 + LONG), "{sent:?}");
    for program in &mut programs {
        let mut answer = [0; 16];
        program.read_exact(&mut answer).expect("the server replies");
    }
    let kept = lab.server.usage().kept;
    assert!(kept <= lab.server.budget.limit + (4 << 20), "{kept}");
}

/// Connects 12 clients whose partial writes use up the budget.
fn partial_writes(lab: &mut Lab) -> Vec<UnixStream> {
    lab.server.budget.limit = 2 << 20;
    let mut programs: Vec<UnixStream> = (0..12).map(|_| lab.program()).collect();
    for program in &mut programs {
        let mut half = request_of(command::WRITE, 0, SIZE as u32)[..28].to_vec();
        half.resize(28 + SIZE as usize / 2, 7);
        program.set_nonblocking(true).expect("the socket is open");
        let mut sent = 0;
        for _ in 0..200 {
            sent += program.write(&half[sent..]).unwrap_or(0);
            lab.run();
        }
    }
    assert!(lab.server.usage().kept >= 2 << 20, "{}", lab.server.usage().kept);
    programs
}

/// Connects a client that writes 1 MiB, and reads the response.
fn write_whole(lab: &mut Lab) {
    let mut whole = request_of(command::WRITE, 0, SIZE as u32)[..28].to_vec();
    whole.resize(28 + SIZE as usize, 7);
    let mut program = lab.program();
    program.set_nonblocking(true).expect("the socket is open");
    let (mut sent, mut answer) = (0, [0; 16]);
    // The clients of `partial_writes` send nothing more. Four of the twelve have a turn at a time, and
    // lose it after `TURN`. So all lose their turns within `3 * TURN`; the limit is twice that.
    let until = clock::now() + 6 * TURN;
    while program.read(&mut answer).is_err() {
        assert!(clock::now() < until, "no response after {sent} bytes were sent");
        sent += program.write(&whole[sent..]).unwrap_or(0);
        lab.run();
        lab.disk.end_all();
        lab.run();
        lab.wait(until);
    }
    assert_eq!(answer[..4], wire::SIMPLE_MAGIC.to_be_bytes());
}

#[test]
fn silent_partial_writes_do_not_block_others() {
    let mut lab = Lab::new();
    let programs = partial_writes(&mut lab);
    write_whole(&mut lab);
    assert!(!lab.spins());
    drop(programs);
}

#[test]
fn partial_writes_of_disconnected_clients_are_dropped() {
    let mut lab = Lab::new();
    drop(partial_writes(&mut lab));
    for _ in 0..20 {
        lab.run();
    }
    assert_eq!(lab.server.connections(), 0);
    assert_eq!(lab.server.usage().kept, 0);
    write_whole(&mut lab);
}

#[test]
fn silent_client_loses_its_turn_if_others_wait() {
    let mut lab = Lab::new();
    let mut programs = partial_writes(&mut lab);
    let more = |lab: &mut Lab, programs: &mut [UnixStream]| {
        for program in programs {
            // Sending fails for clients that the server has disconnected.
            let _ = program.write(&[7; 4096]);
        }
        lab.run();
    };
    more(&mut lab, &mut programs);
    assert_eq!(lab.server.input_turns(), TURNS);
    let until = clock::now() + 5 * TURN;
    while lab.server.connections() > 12 - TURNS {
        assert!(clock::now() < until, "the server has not disconnected idle clients");
        lab.wait(until);
        lab.run();
    }
    assert_eq!(lab.server.connections(), 12 - TURNS);
    assert!(matches!(lab.server.poll_failed(), Some(NbdError::Unfinished(1))));
    drop(programs);
}

#[test]
fn connection_errors_are_returned_oldest_first() {
    let mut lab = Lab::new();
    let mut errors = Vec::new();
    for magic in [1_u32, 2, 3] {
        let mut program = lab.program();
        let mut bytes = magic.to_be_bytes().to_vec();
        bytes.extend([0; 24]);
        program.write_all(&bytes).expect("the socket is writable");
        lab.run();
        errors.push(NbdError::RequestMagic(magic));
    }
    let failed: Vec<NbdError> = std::iter::from_fn(|| lab.server.poll_failed()).collect();
    assert_eq!(failed, errors);
}

/// Forty clients request 1 MiB several times. The server must check the budget before it allocates memory for the data.
#[test]
fn clients_that_read_no_responses_stay_within_the_budget() {
    const LONG: u32 = 1 << 20;
    let mut lab = Lab::new();
    lab.server.budget.limit = 8 << 20;
    let mut slow: Vec<UnixStream> = (0..40).map(|_| lab.program()).collect();
    let mut peak = 0;
    for _ in 0..4 {
        for program in &mut slow {
            program.write_all(&request_of(command::READ, 0, LONG)).expect("the socket is writable");
        }
        lab.run();
        peak = peak.max(lab.server.usage().kept);
        lab.disk.end_all();
        lab.run();
        peak = peak.max(lab.server.usage().kept);
    }
    // The limit is the sum of the budget, 128 KiB of input of each client, the guarantees of all clients, and
    // one request for each of the four turns.
    let most = (8 << 20) + 40 * (128 << 10) + (2 << 20) + 4 * LONG as usize;
    assert!(peak <= most, "the clients used {peak} bytes: expected at most {most}");
    // Although the other clients use up the budget, a short request of a new client is executed.
    let mut other = lab.program();
    other.write_all(&request(command::READ, 0)).expect("the socket is writable");
    lab.run();
    lab.disk.end_all();
    lab.run();
    let mut answer = [0; 16 + 512];
    other.read_exact(&mut answer).expect("the server replies");
    assert!(!lab.spins());
    // After clients disconnect, their requests in flight use memory until the device completes them.
    // Requests that still wait are dropped, because the clients cannot read the responses.
    drop(slow);
    for _ in 0..2 {
        lab.run();
        lab.disk.end_all();
    }
    lab.run();
    assert_eq!(lab.server.connections(), 1);
    assert!(lab.server.usage().kept <= 128 << 10, "{}", lab.server.usage().kept);
    assert_eq!(lab.server.budget.orphaned, 0);
}
