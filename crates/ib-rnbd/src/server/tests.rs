use ib_wire::rnbd::Close;

use super::*;
use ib_block::Discard;

const SIZE: u64 = 1 << 20;

const ORIGIN: Origin = Origin { medium: 7, cache: 8 };

fn server() -> Server<u32> {
    let mut server = Server::new(1);
    let geometry = Geometry {
        discard: Some(Discard { granularity: 512, alignment: 0, max: SIZE }),
        secure_erase: true,
        write_back: true,
        fua: true,
        ..Geometry::new(SIZE, 512)
    };
    let plain = Geometry { read_only: true, ..Geometry::new(SIZE, 4096) };
    for (name, geometry) in [("disk0", geometry), ("dev/disk1", plain)] {
        server
            .offer(Export { name: name.to_owned(), geometry, origin: ORIGIN, writers: None })
            .expect("the name is free");
    }
    server
}

fn open(name: &[u8], access_mode: AccessMode) -> [u8; Open::LENGTH] {
    let mut padded = [0; 255];
    padded[..name.len()].copy_from_slice(name);
    Open { message_type: MessageType::OPEN, access_mode, name: padded }.to_bytes()
}

/// Opens a device, and returns the open response.
fn opened(
    server: &mut Server<u32>,
    session: u32,
    name: &[u8],
    mode: AccessMode,
) -> Result<OpenResponse, Errno> {
    match server.handle(session, (Direction::Read, 56), &open(name, mode)) {
        Response::Immediate(Errno::OK, bytes) => {
            Ok(OpenResponse::parse(bytes[..].try_into().expect("the response has 56 bytes")))
        }
        Response::Immediate(errno, bytes) => {
            assert!(bytes.is_empty());
            Err(errno)
        }
        Response::Execute(command) => panic!("{command:?}"),
    }
}

fn io(device_id: u32, code: Code, sector: u64, length: u32) -> [u8; Io::LENGTH] {
    let rw = IoFlags::of(code, IoFlags(0));
    Io { message_type: MessageType::IO, device_id, sector, rw, length, priority: 0 }.to_bytes()
}

#[test]
fn session_response_has_the_lower_version() {
    let mut server = server();
    for (version, expected) in [(1, 1), (2, 2), (200, 2)] {
        let message_type = MessageType::SESSION;
        let hello = SessionMessage { message_type, version, extension: 0, number: 0 }.to_bytes();
        let Response::Immediate(Errno::OK, bytes) = server.handle(1, (Direction::Read, 36), &hello)
        else {
            panic!("expected a session response");
        };
        let found = SessionMessage::parse(bytes[..].try_into().expect("the response has 36 bytes"));
        let message_type = MessageType::SESSION_RESPONSE;
        assert_eq!(
            found,
            SessionMessage { message_type, version: expected, extension: 0, number: 0 }
        );
        for wrong in [(Direction::Write, 36), (Direction::Read, 35)] {
            let refused = Response::Immediate(Errno::EINVAL, Vec::new());
            assert_eq!(server.handle(1, wrong, &hello), refused);
        }
    }
    // A client that announces the protocol extension of ibfabric receives the random number of the server.
    let message_type = MessageType::SESSION;
    let extension = SessionMessage::EXTENSION_REQUEST;
    let hello = SessionMessage { message_type, version: VERSION, extension, number: 9 }.to_bytes();
    let Response::Immediate(Errno::OK, bytes) = server.handle(1, (Direction::Read, 36), &hello)
    else {
        panic!("expected a session response");
    };
    let found = SessionMessage::parse(bytes[..].try_into().expect("the response has 36 bytes"));
    assert_eq!((found.extension, found.number), (SessionMessage::EXTENSION_RESPONSE, 1));
}

#[test]
fn open_response_describes_the_device() {
    let mut server = server();
    let found =
        opened(&mut server, 1, b"disk0", AccessMode::READ_WRITE).expect("the device is free");
    let expected = OpenResponse {
        message_type: MessageType::OPEN_RESPONSE,
        device_id: 0,
        sectors: 2048,
        max_hw_sectors: 2048,
        max_write_same_sectors: 0,
        max_discard_sectors: 2048,
        discard_granularity: 512,
        discard_alignment: 0,
        physical_block_size: 512,
        logical_block_size: 512,
        max_segments: 128,
        secure_discard: 1,
        cache_policy: CachePolicy(3),
        writers: found.writers,
        medium: 7,
        cache: 8,
    };
    assert_eq!(found, expected);
    assert_eq!(found.writers & OpenResponse::WRITERS_PERSISTENT, 0, "writers are not stored");
    let found =
        opened(&mut server, 1, b"//dev//disk1/", AccessMode::READ_ONLY).expect("disk1 is free");
    assert_eq!((found.device_id, found.logical_block_size, found.cache_policy.0), (1, 4096, 0));
    assert_eq!((found.max_discard_sectors, found.secure_discard), (0, 0));
}

/// No name in an open message gives a client access to anything but exported devices.
#[test]
fn path_traversal_in_device_names_is_refused() {
    let mut server = server();
    let mut refused = |name: &[u8], errno| {
        for mode in [AccessMode::READ_ONLY, AccessMode::READ_WRITE] {
            assert_eq!(opened(&mut server, 1, name, mode), Err(errno), "{name:?}");
        }
    };
    for name in [&b"../disk0"[..], b"dev/../disk0", b"..", b".", b"/", b"", b"\xff\xfe"] {
        refused(name, Errno::EINVAL);
    }
    refused(b"disk2", Errno::ENOENT);
    refused(b"disk0/more", Errno::ENOENT);
    // The name fills its field, so it has no terminating zero.
    refused(&[b'a'; 255], Errno::EINVAL);
    refused(&[b'a'; 254], Errno::ENOENT);
    let unknown = opened(&mut server, 1, b"disk0", AccessMode(3));
    assert_eq!(unknown, Err(Errno::EINVAL));
    let short = &open(b"disk0", AccessMode::READ_ONLY)[..200];
    let answer = server.handle(1, (Direction::Read, 56), short);
    assert_eq!(answer, Response::Immediate(Errno::EINVAL, Vec::new()));
    let mut offer = |name: &str| {
        let geometry = Geometry::new(SIZE, 512);
        server.offer(Export { name: name.to_owned(), geometry, origin: ORIGIN, writers: None })
    };
    assert_eq!(offer("disk0"), Err(ExportError::Duplicate("disk0".to_owned())));
    for name in ["", "../x", "/x", "a//b"] {
        assert_eq!(offer(name), Err(ExportError::Name(name.to_owned())));
    }
}

#[test]
fn two_writers_are_allowed_for_migration_only() {
    let mut server = server();
    let (ro, rw) = (AccessMode::READ_ONLY, AccessMode::READ_WRITE);
    let mut is_open = |session, mode| opened(&mut server, session, b"disk0", mode).map(drop);
    assert_eq!(is_open(1, rw), Ok(()));
    assert_eq!(is_open(2, rw), Err(Errno::EPERM));
    for session in 3..20 {
        assert_eq!(is_open(session, ro), Ok(()));
    }
    // A session that already has the device open can open it again, also with another access mode.
    assert_eq!(is_open(1, ro), Ok(()));
    assert_eq!(is_open(2, AccessMode::MIGRATION), Ok(()));
    assert_eq!(is_open(30, AccessMode::MIGRATION), Err(Errno::EPERM));
    assert_eq!(server.openers(ExportId(0)), 19);
    server.end(1);
    server.end(2);
    assert_eq!(opened(&mut server, 30, b"disk0", rw).map(drop), Ok(()));
    // A read-only device cannot be opened for writing.
    assert_eq!(opened(&mut server, 1, b"dev/disk1", rw), Err(Errno::EACCES));
    assert_eq!(opened(&mut server, 1, b"dev/disk1", ro).map(drop), Ok(()));
}

#[test]
fn invalid_commands_are_refused() {
    let mut server = server();
    opened(&mut server, 1, b"disk0", AccessMode::READ_WRITE).expect("the device is free");
    opened(&mut server, 1, b"dev/disk1", AccessMode::READ_ONLY).expect("the device is free");
    let (read, write) = (Direction::Read, Direction::Write);
    let end = SIZE / 512;
    let cases = [
        (io(0, Code::READ, 4, 1024), (read, 1024), Ok((Operation::Read, 2048, 1024))),
        (io(0, Code::READ, 4, 512), (read, 1024), Ok((Operation::Read, 2048, 512))),
        (io(0, Code::WRITE, 0, 512), (write, 512), Ok((Operation::Write, 0, 512))),
        (io(0, Code::FLUSH, u64::MAX, 0), (read, 0), Ok((Operation::Flush, 0, 0))),
        (io(0, Code::DISCARD, 8, 4096), (write, 0), Ok((Operation::Discard, 4096, 4096))),
        (io(0, Code::SECURE_ERASE, 0, 512), (write, 0), Ok((Operation::SecureErase, 0, 512))),
        // The length in the message exceeds the buffer of a read, or differs from the size of the data of a write.
        (io(0, Code::READ, 0, 1024), (read, 512), Err(Errno::EINVAL)),
        (io(0, Code::WRITE, 0, 1024), (write, 512), Err(Errno::EINVAL)),
        (io(0, Code::WRITE, 0, 512), (write, 1024), Err(Errno::EINVAL)),
        (io(0, Code::READ, 0, 512), (write, 512), Err(Errno::EINVAL)),
        (io(0, Code::WRITE, 0, 512), (read, 512), Err(Errno::EINVAL)),
        (io(0, Code::READ, 0, 100), (read, 512), Err(Errno::EINVAL)),
        (io(0, Code::READ, end, 512), (read, 512), Err(Errno::EIO)),
        (io(0, Code::READ, u64::MAX, 512), (read, 512), Err(Errno::EIO)),
        (io(0, Code::WRITE, end - 1, 1024), (write, 1024), Err(Errno::EIO)),
        (io(0, Code::DISCARD, 0, u32::MAX - 511), (write, 0), Err(Errno::EIO)),
        (io(0, Code::WRITE_SAME, 0, 512), (write, 512), Err(Errno::EOPNOTSUPP)),
        (io(0, Code(77), 0, 512), (write, 512), Err(Errno::EOPNOTSUPP)),
        (io(1, Code::WRITE, 0, 4096), (write, 4096), Err(Errno::EROFS)),
        (io(1, Code::DISCARD, 0, 4096), (write, 0), Err(Errno::EROFS)),
        (io(1, Code::READ, 1, 4096), (read, 4096), Err(Errno::EINVAL)),
        (io(2, Code::READ, 0, 512), (read, 512), Err(Errno::ENOTCONN)),
        (io(u32::MAX, Code::READ, 0, 512), (read, 512), Err(Errno::ENOTCONN)),
    ];
    for (message, data, expected) in cases {
        let found = match server.handle(1, data, &message) {
            Response::Execute(ServerCommand { command: it, .. }) => {
                Ok((it.operation, it.offset, it.length))
            }
            Response::Immediate(errno, _) => Err(errno),
        };
        assert_eq!(found, expected, "{:?}", Message::parse(&message));
    }
    // The device is not open in session 2.
    let stranger = server.handle(2, (read, 512), &io(0, Code::READ, 0, 512));
    assert_eq!(stranger, Response::Immediate(Errno::ENOTCONN, Vec::new()));
    // The oldest form of a read message has no field for the priority.
    let short = &io(0, Code::READ, 0, 512)[..Io::SHORTEST];
    assert!(matches!(server.handle(1, (read, 512), short), Response::Execute(_)));
    let too_short = &io(0, Code::READ, 0, 512)[..Io::SHORTEST - 1];
    let refused = Response::Immediate(Errno::EINVAL, Vec::new());
    assert_eq!(server.handle(1, (read, 512), too_short), refused);
}

#[test]
fn closed_device_refuses_commands() {
    let mut server = server();
    opened(&mut server, 1, b"disk0", AccessMode::READ_WRITE).expect("the device is free");
    for device_id in [0, 0, 99, u32::MAX] {
        let close = Close { message_type: MessageType::CLOSE, device_id }.to_bytes();
        let done = Response::Immediate(Errno::OK, Vec::new());
        assert_eq!(server.handle(1, (Direction::Write, 0), &close), done);
    }
    let read = server.handle(1, (Direction::Read, 512), &io(0, Code::READ, 0, 512));
    assert_eq!(read, Response::Immediate(Errno::ENOTCONN, Vec::new()));
    // The next opening of a device gets a new device number.
    let found =
        opened(&mut server, 1, b"dev/disk1", AccessMode::READ_ONLY).expect("the device is free");
    assert_eq!(found.device_id, 1, "device numbers are not reused");
}

#[test]
fn other_messages_are_refused() {
    let mut server = server();
    let refused = Response::Immediate(Errno::EINVAL, Vec::new());
    for kind in [1_u16, 3, 6, 99, u16::MAX] {
        let mut message = vec![0; 300];
        message[..2].copy_from_slice(&kind.to_le_bytes());
        assert_eq!(server.handle(1, (Direction::Read, 300), &message), refused, "type {kind}");
    }
    for length in 0..4 {
        assert_eq!(server.handle(1, (Direction::Read, 300), &[0; 4][..length]), refused);
    }
}

#[test]
fn length_beyond_the_data_is_refused() {
    let mut server = server();
    let device =
        opened(&mut server, 1, b"disk0", AccessMode::READ_WRITE).expect("the device is free");
    for (code, direction) in [(Code::READ, Direction::Read), (Code::WRITE, Direction::Write)] {
        for (length, data) in [(1024, 512), (512, 0), (u32::MAX - 511, 512)] {
            let header = io(device.device_id, code, 0, length);
            let answer = server.handle(1, (direction, data), &header);
            assert_eq!(answer, Response::Immediate(Errno::EINVAL, Vec::new()), "{length} {data}");
        }
    }
}

/// Outstanding commands of a disconnected writer must complete before another client may write.
#[test]
fn second_writer_waits_for_commands_of_the_first() {
    let close = |device_id| Close { message_type: MessageType::CLOSE, device_id }.to_bytes();
    for goes in [0, 1] {
        let mut server = server();
        let disk =
            opened(&mut server, 1, b"disk0", AccessMode::READ_WRITE).expect("the device is free");
        let write = io(disk.device_id, Code::WRITE, 0, 4096);
        let commands: Vec<ServerCommand> = (0..2)
            .map(|_| match server.handle(1, (Direction::Write, 4096), &write) {
                Response::Execute(command) => command,
                Response::Immediate(errno, _) => panic!("{errno}"),
            })
            .collect();
        match goes {
            0 => server.end(1),
            _ => drop(server.handle(1, (Direction::Read, 0), &close(disk.device_id))),
        }
        for command in &commands {
            let other = opened(&mut server, 2, b"disk0", AccessMode::READ_WRITE);
            assert_eq!(other, Err(Errno::EPERM));
            assert!(opened(&mut server, 3, b"disk0", AccessMode::READ_ONLY).is_ok());
            server.done(command);
        }
        assert!(opened(&mut server, 2, b"disk0", AccessMode::READ_WRITE).is_ok());
    }
}
