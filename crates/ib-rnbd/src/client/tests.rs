use super::super::{Export, Response, Server};
use super::*;
use ib_block::Operation;

const SIZE: u64 = 1 << 20;

const ORIGIN: Origin = Origin { medium: 7, cache: 8 };

fn export(name: &str, geometry: Geometry, origin: Origin) -> Export {
    Export { name: name.to_owned(), geometry, origin, writers: None }
}

fn server() -> Server<u32> {
    let mut server = Server::new(1);
    for (name, block) in [("disk0", 512), ("disk1", 4096)] {
        let geometry = Geometry { write_back: true, fua: true, ..Geometry::new(SIZE, block) };
        server.offer(export(name, geometry, ORIGIN)).expect("the name is free");
    }
    server
}

const fn answered(errno: Errno) -> Option<Outcome> {
    Some(Outcome::Answered(errno))
}

fn read(offset: u64) -> Command {
    Command { operation: Operation::Read, offset, length: 4096, fua: false }
}

/// Exchanges all pending messages with the server, and returns the commands that the client has sent.
fn carry(client: &mut Client, server: &mut Server<u32>, session: u32) -> Vec<Command> {
    let mut done = Vec::new();
    while let Some(out) = client.poll_transmit() {
        match server.handle(session, (out.direction, out.data_length), out.header()) {
            Response::Immediate(errno, bytes) => client.handle(out.tag, answered(errno), &bytes),
            Response::Execute(command) => {
                done.push(command.command);
                server.done(&command);
                client.handle(out.tag, answered(Errno::OK), b"");
            }
        }
    }
    done
}

fn events(client: &mut Client) -> Vec<ClientEvent> {
    std::iter::from_fn(|| client.poll_event()).collect()
}

#[test]
fn commands_wait_until_their_device_is_open() {
    let (mut client, mut server) = (Client::new(5), server());
    let disk = client.open("disk0", AccessMode::READ_WRITE).expect("the name is valid");
    client.submit(disk, 5, read(4096));
    assert_eq!(client.poll_transmit(), None);
    client.connected();
    assert_eq!(carry(&mut client, &mut server, 1), [read(4096)]);
    let geometry = Geometry { write_back: true, fua: true, ..Geometry::new(SIZE, 512) };
    let expected =
        [ClientEvent::Opened(disk, geometry, Kept::All), ClientEvent::Done(5, Errno::OK)];
    assert_eq!(events(&mut client), expected);
    assert_eq!(client.geometry(disk), Some(&geometry));
}

#[test]
fn commands_reach_the_server_unchanged() {
    let (mut client, mut server) = (Client::new(5), server());
    let disk = client.open("disk0", AccessMode::READ_WRITE).expect("the name is valid");
    client.connected();
    carry(&mut client, &mut server, 1);
    let command = |operation, fua| Command { operation, offset: 512, length: 1024, fua };
    let cases = [
        (command(Operation::Read, false), command(Operation::Read, false)),
        (command(Operation::Write, false), command(Operation::Write, false)),
        (command(Operation::Write, true), command(Operation::Write, true)),
        (command(Operation::WriteZeroes, true), command(Operation::Write, true)),
        (Command::FLUSH, Command::FLUSH),
    ];
    for (user, (asked, expected)) in cases.into_iter().enumerate() {
        client.submit(disk, user as u64, asked);
        assert_eq!(carry(&mut client, &mut server, 1), [expected]);
    }
    // The client refuses commands that the device does not support.
    events(&mut client);
    for (operation, errno) in
        [(Operation::Discard, Errno::EOPNOTSUPP), (Operation::SecureErase, Errno::EOPNOTSUPP)]
    {
        client.submit(disk, 9, command(operation, false));
        assert_eq!(carry(&mut client, &mut server, 1), []);
        assert_eq!(events(&mut client), [ClientEvent::Done(9, errno)]);
    }
    client.submit(disk, 10, read(SIZE));
    assert_eq!(carry(&mut client, &mut server, 1), []);
    assert_eq!(events(&mut client), [ClientEvent::Done(10, Errno::ENOSPC)]);
}

/// The server has lost all paths, and starts a new session on the next path. The client still counts an old path as
/// connected.
#[test]
fn version_is_sent_in_unnoticed_sessions_before_opening() {
    let (mut client, mut server) = (Client::new(5), server());
    client.path_connected();
    client.connected();
    carry(&mut client, &mut server, 1);
    for (asked_before, session) in [(false, 2), (true, 4)] {
        let disk = client.open("disk0", AccessMode::READ_WRITE).expect("the name is valid");
        let asked =
            asked_before.then(|| client.poll_transmit().expect("the client opens the device"));
        client.path_connected();
        server.end(session - 1);
        if let Some(out) = asked {
            let kind = (out.direction, out.data_length);
            let Response::Immediate(errno, bytes) = server.handle(session, kind, out.header())
            else {
                panic!("expected an open response");
            };
            client.handle(out.tag, answered(errno), &bytes);
            assert_eq!(events(&mut client), []);
        }
        let write = Command { operation: Operation::Write, ..read(0) };
        client.submit(disk, 1, write);
        assert_eq!(carry(&mut client, &mut server, session), [write]);
        // No other client writes before this client opens the device again.
        server.end(session);
        client.connected();
        carry(&mut client, &mut server, session + 1);
        let opened = |event: &&ClientEvent| matches!(event, ClientEvent::Opened(..));
        let found = events(&mut client);
        assert_eq!(found.iter().filter(opened).count(), 2, "{found:?}");
        assert_eq!(found.len(), 3, "{found:?}");
        client.close(disk);
        carry(&mut client, &mut server, session + 1);
    }
}

/// A new path leads to another server, while the client still counts an old path as connected.
#[test]
fn another_server_is_detected_by_its_number() {
    let (mut client, mut before) = (Client::new(5), server());
    let disk = client.open("disk0", AccessMode::READ_WRITE).expect("the name is valid");
    client.path_connected();
    client.connected();
    carry(&mut client, &mut before, 1);
    let opened = |found: &[ClientEvent]| {
        found.iter().filter(|event| matches!(event, ClientEvent::Opened(..))).count()
    };
    assert_eq!(opened(&events(&mut client)), 1);
    let mut after = Server::new(2 << 32);
    for (name, block) in [("disk0", 512), ("disk1", 4096)] {
        let geometry = Geometry { write_back: true, fua: true, ..Geometry::new(SIZE, block) };
        after.offer(export(name, geometry, ORIGIN)).expect("the name is free");
    }
    client.path_connected();
    client.open("disk1", AccessMode::READ_WRITE).expect("the name is valid");
    assert_eq!(client.number(disk), Some(0));
    carry(&mut client, &mut after, 1);
    assert_eq!(opened(&events(&mut client)), 2, "disk0 is reopened, disk1 is opened");
    // The second server uses other device numbers than the first.
    assert_eq!(client.number(disk), Some(2));
}

/// After a loss of the session the client reopens its devices, and sends queued commands with the new device numbers.
#[test]
fn devices_are_reopened_after_loss_of_the_session() {
    let (mut client, mut server) = (Client::new(5), server());
    let first = client.open("disk0", AccessMode::READ_WRITE).expect("the name is valid");
    let second = client.open("disk1", AccessMode::READ_WRITE).expect("the name is valid");
    client.connected();
    carry(&mut client, &mut server, 1);
    client.lost();
    server.end(1);
    client.submit(second, 7, read(8192));
    assert_eq!(client.poll_transmit(), None);
    // The first device is closed, so that the second one gets another number.
    client.close(first);
    events(&mut client);
    client.connected();
    assert_eq!(carry(&mut client, &mut server, 2), [read(8192)]);
    assert_eq!(events(&mut client).last(), Some(&ClientEvent::Done(7, Errno::OK)));
    assert_eq!(server.openers(super::super::ExportId(0)), 0);
}

#[test]
fn refused_devices_fail_their_queued_commands() {
    let (mut client, mut server) = (Client::new(5), server());
    let none = client.open("none", AccessMode::READ_WRITE).expect("the name is valid");
    let disk = client.open("disk0", AccessMode::READ_ONLY).expect("the name is valid");
    client.submit(none, 1, read(0));
    client.submit(disk, 2, read(0));
    client.connected();
    assert_eq!(carry(&mut client, &mut server, 1), [read(0)]);
    let (name, errno) = ("none".to_owned(), Errno::ENOENT);
    let found = events(&mut client);
    assert_eq!(found[0], ClientEvent::Refused(none, OpenError::Refused { name, errno }));
    assert_eq!(found[1], ClientEvent::Done(1, Errno::ENOENT));
    assert_eq!(found.last(), Some(&ClientEvent::Done(2, Errno::OK)));
    // Later commands for the refused device fail too. Writes to a device that is open read-only also fail.
    client.submit(none, 3, read(0));
    let write = Command { operation: Operation::Write, ..read(0) };
    client.submit(disk, 4, write);
    carry(&mut client, &mut server, 1);
    let done = [ClientEvent::Done(3, Errno::ENOENT), ClientEvent::Done(4, Errno::EROFS)];
    assert_eq!(events(&mut client), done);
    for name in ["", "a\0b", &"a".repeat(255)] {
        let refused = Err(OpenError::Name(name.to_owned()));
        assert_eq!(client.open(name, AccessMode::READ_ONLY), refused);
    }
}

#[test]
fn invalid_open_responses_are_refused() {
    let good = OpenResponse {
        message_type: MessageType::OPEN_RESPONSE,
        sectors: SIZE / 512,
        physical_block_size: 512,
        logical_block_size: 512,
        ..OpenResponse::parse(&[0; 56])
    };
    let bad = [
        OpenResponse { logical_block_size: 0, ..good },
        OpenResponse { logical_block_size: 513, ..good },
        OpenResponse { sectors: u64::MAX, ..good },
        OpenResponse { message_type: MessageType::CLOSE, ..good },
    ];
    let answers = bad.iter().map(|it| it.to_bytes().to_vec()).chain([vec![3, 0], Vec::new()]);
    for answer in answers {
        let mut client = Client::new(5);
        let disk = client.open("disk0", AccessMode::READ_WRITE).expect("the name is valid");
        client.submit(disk, 1, read(0));
        client.connected();
        let hello = client.poll_transmit().expect("the client sends its version");
        let message_type = MessageType::SESSION_RESPONSE;
        let version =
            SessionMessage { message_type, version: 2, extension: 0, number: 0 }.to_bytes();
        client.handle(hello.tag, answered(Errno::OK), &version);
        let open = client.poll_transmit().expect("the client opens the device");
        client.handle(open.tag, answered(Errno::OK), &answer);
        let found = events(&mut client);
        let is_nonsense =
            matches!(found[0], ClientEvent::Refused(_, OpenError::InvalidResponse { .. }));
        assert!(is_nonsense && found[1] == ClientEvent::Done(1, Errno::EIO), "{found:?}");
    }
}

/// Exchanges messages with a server whose responses have arbitrary bytes in fields that Linux does not set.
fn carry_to_linux(client: &mut Client, server: &mut Server<u32>, session: u32) {
    while let Some(out) = client.poll_transmit() {
        let answer = server.handle(session, (out.direction, out.data_length), out.header());
        let Response::Immediate(errno, mut bytes) = answer else {
            panic!("expected a message of the client, found a command with data")
        };
        match bytes.len() {
            36 => bytes[5..].fill(0xa5),
            56 => bytes[46..].fill(session as u8),
            _ => {}
        }
        client.handle(out.tag, answered(errno), &bytes);
    }
}

/// A server that behaves like Linux: it numbers the devices of each session from zero, and has no server number.
#[derive(Default)]
struct Linux {
    sessions: BTreeMap<u32, Vec<Option<String>>>,
    /// Executed commands: the name of the device, and the offset of the command.
    asked: Vec<(String, u64)>,
}

impl Linux {
    fn carry(&mut self, client: &mut Client, session: u32) {
        while let Some(out) = client.poll_transmit() {
            let open = self.sessions.entry(session).or_default();
            let mut errno = Errno::OK;
            let answer = match Message::parse(out.header()).expect("the message is valid") {
                Message::Session(_) => {
                    let message_type = MessageType::SESSION_RESPONSE;
                    SessionMessage { message_type, version: 2, extension: 0, number: 0 }
                        .to_bytes()
                        .to_vec()
                }
                Message::Open(it) => {
                    let name = String::from_utf8_lossy(&it.name).trim_matches('\0').to_owned();
                    let free = open.iter().position(Option::is_none).unwrap_or_else(|| {
                        open.push(None);
                        open.len() - 1
                    });
                    open[free] = Some(name);
                    OpenResponse {
                        message_type: MessageType::OPEN_RESPONSE,
                        device_id: free as u32,
                        sectors: SIZE / 512,
                        physical_block_size: 512,
                        logical_block_size: 512,
                        ..OpenResponse::parse(&[0; 56])
                    }
                    .to_bytes()
                    .to_vec()
                }
                Message::Close(it) => {
                    open[it.device_id as usize] = None;
                    Vec::new()
                }
                Message::Io(it) => {
                    match open.get(it.device_id as usize).and_then(Option::as_ref) {
                        Some(name) => self.asked.push((name.clone(), it.sector * 512)),
                        None => errno = Errno::ENOTCONN,
                    }
                    Vec::new()
                }
                other => panic!("clients do not send {other:?}"),
            };
            client.handle(out.tag, answered(errno), &answer);
        }
    }
}

/// In each session, a Linux server may give the same device numbers to other devices. Commands nevertheless reach their
/// device, even if the client has not noticed the new session.
#[test]
fn commands_reach_their_device_despite_reused_numbers() {
    let (mut client, mut server) = (Client::new(5), Linux::default());
    let names = ["disk0", "disk1", "disk2"];
    let disks =
        names.map(|name| client.open(name, AccessMode::READ_WRITE).expect("the name is valid"));
    client.path_connected();
    client.connected();
    server.carry(&mut client, 1);
    // The next device gets the number of the closed device.
    client.close(disks[0]);
    server.carry(&mut client, 1);
    let late = client.open("late", AccessMode::READ_WRITE).expect("the name is valid");
    let mut devices = vec![(disks[1], "disk1"), (disks[2], "disk2"), (late, "late")];
    let mut check = |client: &mut Client, session: u32, devices: &[(DeviceId, &str)]| {
        for (at, &(device, _)) in (1..).zip(devices) {
            client.submit(device, at, write(4096 * at));
        }
        server.carry(client, session);
        let mut asked = std::mem::take(&mut server.asked);
        asked.sort_unstable_by_key(|&(_, at)| at);
        let expected: Vec<(String, u64)> =
            (1..).zip(devices).map(|(at, (_, name))| ((*name).to_owned(), 4096 * at)).collect();
        assert_eq!(asked, expected, "session {session}");
        let failed = |event: &ClientEvent| {
            !matches!(event, ClientEvent::Done(_, Errno::OK) | ClientEvent::Opened(..))
        };
        let found = events(client);
        assert!(!found.iter().any(failed), "{found:?}");
    };
    check(&mut client, 1, &devices);
    // The server starts a new session, but the client only notices a new path.
    client.path_connected();
    let last = client.open("last", AccessMode::READ_WRITE).expect("the name is valid");
    devices.push((last, "last"));
    check(&mut client, 2, &devices);
    // The session was lost with all of its paths.
    client.lost();
    client.path_connected();
    client.connected();
    check(&mut client, 3, &devices);
}

#[test]
fn reopened_device_is_compared_with_its_earlier_state() {
    let usual = Geometry { write_back: true, fua: true, ..Geometry::new(SIZE, 512) };
    let plain = Geometry { write_back: false, ..usual };
    let changed = |size, found, expected| {
        Err(OpenError::SizeChanged { name: "disk0".to_owned(), size, found, expected })
    };
    let other = |evidence| Err(OpenError::OtherData { name: "disk0".to_owned(), evidence });
    let ours = Some(ORIGIN);
    for (before, origin, after, then, expected) in [
        (usual, ours, usual, ours, Ok(Kept::All)),
        (usual, ours, Geometry { size: 2 * SIZE, ..usual }, ours, Ok(Kept::All)),
        (usual, ours, plain, ours, Ok(Kept::All)),
        (usual, ours, usual, Some(Origin { cache: 9, ..ORIGIN }), Ok(Kept::Flushed)),
        (usual, None, usual, None, Ok(Kept::Unknown)),
        (
            usual,
            ours,
            Geometry { size: SIZE / 2, ..usual },
            ours,
            changed(Size::Device, SIZE / 2, SIZE),
        ),
        (
            usual,
            ours,
            Geometry { logical_block: 4096, physical_block: 4096, ..usual },
            ours,
            changed(Size::Block, 4096, 512),
        ),
        (plain, ours, usual, ours, other(OtherData::WriteCache)),
        (usual, ours, usual, Some(Origin { medium: 9, ..ORIGIN }), other(OtherData::Medium)),
        (usual, ours, usual, None, other(OtherData::Server)),
        (usual, None, usual, ours, other(OtherData::Server)),
    ] {
        let mut client = Client::new(5);
        let disk = client.open("disk0", AccessMode::READ_WRITE).expect("the name is valid");
        let mut all = Vec::new();
        for (session, (geometry, origin)) in [(1, (before, origin)), (2, (after, then))] {
            let mut server = Server::new(1);
            let export = export("disk0", geometry, origin.unwrap_or(ORIGIN));
            server.offer(export).expect("the name is free");
            client.lost();
            client.connected();
            match origin {
                Some(_) => drop(carry(&mut client, &mut server, session)),
                None => carry_to_linux(&mut client, &mut server, session),
            }
            all.extend(events(&mut client));
        }
        let last = match expected {
            Ok(kept) => ClientEvent::Opened(disk, after, kept),
            Err(why) => ClientEvent::Refused(disk, why),
        };
        assert_eq!(all, [ClientEvent::Opened(disk, before, Kept::All), last]);
    }
}

/// If the user closes a device before the open response is received, the client closes the device at the server.
#[test]
fn device_closed_before_open_response_is_closed() {
    let (mut client, mut server) = (Client::new(5), server());
    let disk = client.open("disk0", AccessMode::READ_WRITE).expect("the name is valid");
    client.connected();
    let hello = client.poll_transmit().expect("the client sends its version");
    let Response::Immediate(errno, bytes) = server.handle(1, (Direction::Read, 36), hello.header())
    else {
        panic!("expected a session response");
    };
    client.handle(hello.tag, answered(errno), &bytes);
    let open = client.poll_transmit().expect("the client opens the device");
    client.submit(disk, 3, read(0));
    client.close(disk);
    assert_eq!(events(&mut client), [ClientEvent::Done(3, Errno::ENODEV)]);
    let Response::Immediate(errno, bytes) = server.handle(1, (Direction::Read, 56), open.header())
    else {
        panic!("expected an open response");
    };
    client.handle(open.tag, answered(errno), &bytes);
    assert_eq!(server.openers(super::super::ExportId(0)), 1);
    carry(&mut client, &mut server, 1);
    assert_eq!(server.openers(super::super::ExportId(0)), 0);
}

/// A server that can be restarted. `kept` is its stored record of writers; `None` if the server stores no record.
struct RestartableServer {
    server: Server<u32>,
    kept: Option<Vec<u8>>,
    starts: u64,
}

impl RestartableServer {
    fn new(keeps: bool) -> Self {
        let mut place = Self { server: Server::new(0), kept: keeps.then(Vec::new), starts: 0 };
        place.start();
        place
    }

    fn start(&mut self) {
        self.starts += 1;
        self.server = Server::new(self.starts);
        let geometry = Geometry { write_back: true, fua: true, ..Geometry::new(SIZE, 512) };
        let export = Export { writers: self.kept.clone(), ..export("disk0", geometry, ORIGIN) };
        self.server.offer(export).expect("the name is free");
    }

    /// Connects a client in a session, exchanges all pending messages, and returns the events of the client.
    fn connect(&mut self, client: &mut Client, session: u32) -> Vec<ClientEvent> {
        client.connected();
        self.carry(client, session)
    }

    fn carry(&mut self, client: &mut Client, session: u32) -> Vec<ClientEvent> {
        while let Some(out) = client.poll_transmit() {
            let answer =
                self.server.handle(session, (out.direction, out.data_length), out.header());
            while let Some((_, kept)) = self.server.poll_writers() {
                self.kept = Some(kept);
            }
            match answer {
                Response::Immediate(errno, bytes) => {
                    client.handle(out.tag, answered(errno), &bytes);
                }
                Response::Execute(command) => {
                    self.server.done(&command);
                    client.handle(out.tag, answered(Errno::OK), b"");
                }
            }
        }
        events(client)
    }

    fn lose(&mut self, client: &mut Client, session: u32) {
        client.lost();
        self.server.end(session);
    }
}

fn write(offset: u64) -> Command {
    Command { operation: Operation::Write, ..read(offset) }
}

fn opened(events: &[ClientEvent]) -> bool {
    events.iter().any(|event| matches!(event, ClientEvent::Opened(_, _, Kept::All)))
}

fn refused(events: &[ClientEvent]) -> bool {
    events.iter().any(|event| matches!(event, ClientEvent::Refused(_, OpenError::OtherData { .. })))
}

#[test]
fn stored_writers_survive_a_restart_of_the_server() {
    let mut place = RestartableServer::new(true);
    let (mut one, mut two) = (Client::new(1), Client::new(2));
    let disks = [&mut one, &mut two].map(|it| it.open("disk0", AccessMode::READ_WRITE).unwrap());
    one.submit(disks[0], 1, write(0));
    assert!(opened(&place.connect(&mut one, 1)));
    // No other client has written, so the queued write is sent.
    place.lose(&mut one, 1);
    place.start();
    one.submit(disks[0], 2, write(0));
    let found = place.connect(&mut one, 2);
    assert!(opened(&found) && found.contains(&ClientEvent::Done(2, Errno::OK)), "{found:?}");
    // Client two writes to the device before the server restarts.
    place.lose(&mut one, 2);
    one.submit(disks[0], 3, write(0));
    two.submit(disks[1], 4, write(0));
    assert!(opened(&place.connect(&mut two, 3)));
    place.lose(&mut two, 3);
    place.start();
    let found = place.connect(&mut one, 4);
    assert!(refused(&found) && found.contains(&ClientEvent::Done(3, Errno::EIO)), "{found:?}");
    // Client two, which wrote last, can still write.
    two.submit(disks[1], 5, write(0));
    let found = place.connect(&mut two, 5);
    assert!(opened(&found) && found.contains(&ClientEvent::Done(5, Errno::OK)), "{found:?}");
}

#[test]
fn queued_changes_fail_if_writers_are_unknown() {
    let mut place = RestartableServer::new(false);
    let mut client = Client::new(1);
    let disk = client.open("disk0", AccessMode::READ_WRITE).unwrap();
    client.submit(disk, 1, write(0));
    assert!(opened(&place.connect(&mut client, 1)));
    place.lose(&mut client, 1);
    place.start();
    client.submit(disk, 2, write(0));
    client.submit(disk, 3, read(0));
    let found = place.connect(&mut client, 2);
    assert!(opened(&found) && found.contains(&ClientEvent::MaybeOverwritten(disk)), "{found:?}");
    assert!(found.contains(&ClientEvent::Done(2, Errno::EIO)), "{found:?}");
    assert!(found.contains(&ClientEvent::Done(3, Errno::OK)), "{found:?}");
    // Commands that are submitted from now on are executed, even after another loss of the session.
    place.lose(&mut client, 2);
    client.submit(disk, 4, write(0));
    let found = place.connect(&mut client, 3);
    assert!(opened(&found) && found.contains(&ClientEvent::Done(4, Errno::OK)), "{found:?}");
    assert!(!found.contains(&ClientEvent::MaybeOverwritten(disk)));
}

/// The last writer writes again after another client has opened the device.
#[test]
fn last_writer_writing_again_is_detected() {
    let mut place = RestartableServer::new(true);
    let (mut one, mut two) = (Client::new(1), Client::new(2));
    let disks = [&mut one, &mut two].map(|it| it.open("disk0", AccessMode::READ_WRITE).unwrap());
    two.submit(disks[1], 1, write(0));
    assert!(opened(&place.connect(&mut two, 1)));
    place.lose(&mut two, 1);
    assert!(opened(&place.connect(&mut one, 2)));
    place.lose(&mut one, 2);
    one.submit(disks[0], 2, write(0));
    two.submit(disks[1], 3, write(0));
    assert!(opened(&place.connect(&mut two, 3)));
    place.lose(&mut two, 3);
    let found = place.connect(&mut one, 4);
    assert!(refused(&found) && found.contains(&ClientEvent::Done(2, Errno::EIO)), "{found:?}");
}
