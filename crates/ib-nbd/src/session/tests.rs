use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};

use super::super::wire::{REPLY_MAGIC, REQUEST_MAGIC, SIMPLE_MAGIC, STRUCTURED_MAGIC};
use super::super::wire::{chunk, command, command_flags, error, flags, info, option, reply};
use super::*;
use ib_block::{Discard, Operation};

const SIZE: u64 = 1 << 20;

fn exports() -> Arc<[Export]> {
    let geometry = Geometry {
        discard: Some(Discard { granularity: 512, alignment: 0, max: 1 << 20 }),
        write_back: true,
        ..Geometry::new(SIZE, 512)
    };
    let export = |name: &str, geometry| Export {
        name: name.to_owned(),
        description: format!("what {name} is for"),
        geometry,
        preferred: 4096,
    };
    let read_only = Geometry { read_only: true, ..Geometry::new(2 * SIZE, 4096) };
    [export("disk0", geometry), export("disk1", read_only)].into()
}

/// A client that is connected to a session.
struct Program {
    session: Session,
    got: Vec<u8>,
}

impl Program {
    /// Connects and sends the client's flags.
    fn connect(client_flags: u32) -> Self {
        let mut program = Self { session: Session::new(exports()), got: Vec::new() };
        program.send(&client_flags.to_be_bytes());
        let hello = program.receive(18);
        assert_eq!(&hello[..16], b"NBDMAGICIHAVEOPT");
        assert_eq!(&hello[16..], [0, 3]);
        program
    }

    /// Connects and chooses a device.
    fn with(device: &str, structured: bool) -> Self {
        let mut program = Self::connect(3);
        if structured {
            assert_eq!(program.option(option::STRUCTURED_REPLY, b"").0, reply::ACK);
        }
        let mut data = named(device);
        data.extend([0, 0]);
        program.option(option::GO, &data);
        program.got.clear();
        assert!(program.session.export().is_some());
        program
    }

    fn send(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = self.session.room().expect("the session accepts input");
            let length = room.len().min(bytes.len());
            room[..length].copy_from_slice(&bytes[..length]);
            self.session.handle(length);
            bytes = &bytes[length..];
        }
        self.collect();
    }

    fn collect(&mut self) {
        unsent(&self.session, &mut self.got);
        let length = self.session.unsent();
        self.session.sent(length);
    }

    fn receive(&mut self, length: usize) -> Vec<u8> {
        self.collect();
        assert!(self.got.len() >= length, "received {} bytes, expected {length}", self.got.len());
        self.got.drain(..length).collect()
    }

    /// Sends an option; returns the type and the data of the first reply.
    fn option(&mut self, number: u32, data: &[u8]) -> (u32, Vec<u8>) {
        let mut bytes = wire::OPTION_MAGIC.to_be_bytes().to_vec();
        bytes.extend(number.to_be_bytes());
        bytes.extend((data.len() as u32).to_be_bytes());
        bytes.extend(data);
        self.send(&bytes);
        self.reply(number)
    }

    fn reply(&mut self, number: u32) -> (u32, Vec<u8>) {
        let head = self.receive(20);
        assert_eq!(head[..8], REPLY_MAGIC.to_be_bytes());
        assert_eq!(head[8..12], number.to_be_bytes());
        let word =
            |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().expect("the length is 4"));
        (word(12), self.receive(word(16) as usize))
    }

    fn request(&mut self, flags: u16, kind: u16, (offset, length): (u64, u32), data: &[u8]) {
        self.send(&request(flags, kind, 77, (offset, length), data));
    }

    /// Receives a simple reply and returns its error number.
    fn simple(&mut self) -> u32 {
        let head = self.receive(16);
        assert_eq!(head[..4], SIMPLE_MAGIC.to_be_bytes());
        assert_eq!(head[8..], 77_u64.to_be_bytes());
        u32::from_be_bytes(head[4..8].try_into().expect("the length is 4"))
    }

    /// Receives a reply of one chunk and returns its type and data.
    fn chunk(&mut self) -> (u16, Vec<u8>) {
        let head = self.receive(20);
        assert_eq!(head[..4], STRUCTURED_MAGIC.to_be_bytes());
        assert_eq!(head[4..6], chunk::DONE.to_be_bytes());
        assert_eq!(head[8..16], 77_u64.to_be_bytes());
        let length = u32::from_be_bytes(head[16..].try_into().expect("the length is 4"));
        (u16::from_be_bytes([head[6], head[7]]), self.receive(length as usize))
    }
}

fn request(
    flags: u16,
    kind: u16,
    cookie: u64,
    (offset, length): (u64, u32),
    data: &[u8],
) -> Vec<u8> {
    let mut bytes = REQUEST_MAGIC.to_be_bytes().to_vec();
    bytes.extend(flags.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes.extend(data);
    bytes
}

fn named(name: &str) -> Vec<u8> {
    let mut bytes = (name.len() as u32).to_be_bytes().to_vec();
    bytes.extend(name.as_bytes());
    bytes
}

/// Appends the output of a session to `bytes`.
fn unsent(session: &Session, bytes: &mut Vec<u8>) {
    session.output().for_each(|slice| slice.append_to(bytes));
}

#[test]
fn devices_are_listed_and_described() {
    let mut program = Program::connect(3);
    let (kind, data) = program.option(option::LIST, b"");
    assert_eq!((kind, &data[..]), (reply::SERVER, &b"\0\0\0\x05disk0what disk0 is for"[..]));
    assert_eq!(program.reply(option::LIST).1[4..9], *b"disk1");
    assert_eq!(program.reply(option::LIST), (reply::ACK, Vec::new()));
    let mut asked = named("disk1");
    asked.extend([0, 2]);
    asked.extend(info::NAME.to_be_bytes());
    asked.extend(info::DESCRIPTION.to_be_bytes());
    let (kind, data) = program.option(option::INFO, &asked);
    assert_eq!((kind, &data[..2]), (reply::INFO, &[0, 0][..]));
    assert_eq!(data[2..10], (2 * SIZE).to_be_bytes());
    let found = u16::from_be_bytes([data[10], data[11]]);
    assert_eq!(found & (flags::READ_ONLY | flags::SEND_TRIM), flags::READ_ONLY);
    assert_eq!(program.reply(option::INFO).1, b"\0\x01disk1");
    assert_eq!(program.reply(option::INFO).1, b"\0\x02what disk1 is for");
    let sizes = program.reply(option::INFO).1;
    assert_eq!(sizes[2..6], 4096_u32.to_be_bytes());
    assert_eq!(sizes[10..], MAX_DATA.to_be_bytes());
    assert_eq!(program.reply(option::INFO).0, reply::ACK);
    // No device is chosen yet, so the negotiation continues.
    assert_eq!(program.session.export(), None);
}

#[test]
fn export_name_option_selects_a_device() {
    for (client_flags, zeros) in [(3, 0), (1, 124), (0, 124)] {
        let mut program = Program::connect(client_flags);
        let mut bytes = wire::OPTION_MAGIC.to_be_bytes().to_vec();
        bytes.extend([0, 0, 0, 1, 0, 0, 0, 5]);
        bytes.extend(b"disk0");
        // A request follows in the same input as the option.
        bytes.extend(request(0, command::FLUSH, 77, (0, 0), b""));
        program.send(&bytes);
        let found = program.receive(10 + zeros);
        assert_eq!(found[..8], SIZE.to_be_bytes());
        assert!(program.got.is_empty());
        let token = program.session.poll_request().expect("the request is complete").token;
        program.session.complete(token, Errno::OK, Vec::new());
        assert_eq!(program.simple(), 0);
    }
}

#[test]
fn invalid_options_get_error_replies() {
    let mut program = Program::connect(3);
    let go = |name: &str, rest: &[u8]| [&named(name)[..], rest].concat();
    let cases: [(u32, Vec<u8>, u32); 11] = [
        (5, Vec::new(), reply::ERR_UNSUP),
        (4711, vec![1, 2, 3], reply::ERR_UNSUP),
        (option::LIST, vec![1], reply::ERR_INVALID),
        (option::STRUCTURED_REPLY, vec![1], reply::ERR_INVALID),
        (option::GO, Vec::new(), reply::ERR_INVALID),
        (option::GO, go("disk0", &[]), reply::ERR_INVALID),
        (option::GO, go("disk0", &[0, 1]), reply::ERR_INVALID),
        (option::GO, go("disk0", &[0, 0, 0]), reply::ERR_INVALID),
        (option::GO, go("disk2", &[0, 0]), reply::ERR_UNKNOWN),
        (option::SET_META_CONTEXT, go("disk0", &[0; 4]), reply::ERR_INVALID),
        (option::INFO, vec![0; LONGEST_AND_MORE], reply::ERR_TOO_BIG),
    ];
    for (number, data, expected) in cases {
        assert_eq!(program.option(number, &data).0, expected, "option {number}");
    }
    // After each refused option the negotiation can continue.
    program.option(option::STRUCTURED_REPLY, b"");
    assert_eq!(program.option(option::SET_META_CONTEXT, &go("disk0", &[0; 4])).0, reply::ACK);
    let kinds = go("disk0", &[&1_u32.to_be_bytes()[..], &named("base:allocation")].concat());
    assert_eq!(program.option(option::LIST_META_CONTEXT, &kinds), (reply::ACK, Vec::new()));
    assert_eq!(program.option(option::ABORT, b"").0, reply::ACK);
    assert!(program.session.is_over());
}

const LONGEST_AND_MORE: usize = (8 << 10) + 1;

#[test]
fn invalid_bytes_end_the_session() {
    let fails = |bytes: &[u8]| {
        let mut program = Program { session: Session::new(exports()), got: Vec::new() };
        program.send(bytes);
        assert!(program.session.is_over() && program.session.room().is_none());
        program.session.failed().cloned()
    };
    assert_eq!(fails(&[0, 0, 0, 4]), Some(NbdError::ClientFlags(4)));
    let option = |number: u32, length: u32| {
        let magic = wire::OPTION_MAGIC.to_be_bytes();
        [&[0, 0, 0, 3][..], &magic, &number.to_be_bytes(), &length.to_be_bytes()].concat()
    };
    let most = 8 << 10;
    let length = u32::MAX;
    let long = Some(NbdError::OptionLength { option: 7, length, most });
    assert_eq!(fails(&option(7, length)), long);
    let missing = [&option(1, 4)[..], b"none"].concat();
    assert_eq!(fails(&missing), Some(NbdError::NoExport("none".to_owned())));
    assert_eq!(fails(&[&[0, 0, 0, 3][..], &[0; 16]].concat()), Some(NbdError::OptionMagic(0)));

    let mut program = Program::with("disk0", false);
    program.send(&[9; 28]);
    assert_eq!(program.session.poll_request(), None);
    assert_eq!(program.session.failed(), Some(&NbdError::RequestMagic(0x0909_0909)));
    let mut program = Program::with("disk0", false);
    program.request(0, command::WRITE, (0, u32::MAX), b"");
    assert_eq!(program.session.poll_request(), None);
    assert_eq!(program.session.failed(), Some(&NbdError::WriteLength(u32::MAX)));
}

#[test]
fn requests_are_executed_and_answered() {
    for structured in [false, true] {
        let mut program = Program::with("disk0", structured);
        program.request(command_flags::FUA, command::WRITE, (512, 1024), &[5; 1024]);
        let NbdRequest { token, export, command, data } =
            program.session.poll_request().expect("the request is complete");
        let expected =
            Command { operation: Operation::Write, offset: 512, length: 1024, fua: true };
        assert_eq!((export, command, data), (0, expected, &[5; 1024][..]));
        program.session.complete(token, Errno::OK, Vec::new());
        match structured {
            true => assert_eq!(program.chunk(), (chunk::NONE, Vec::new())),
            false => assert_eq!(program.simple(), 0),
        }
        program.request(0, command::READ, (1024, 512), b"");
        let token = program.session.poll_request().expect("the request is complete").token;
        program.session.complete(token, Errno::OK, vec![7; 512]);
        if structured {
            let (kind, data) = program.chunk();
            assert_eq!((kind, &data[..8]), (chunk::OFFSET_DATA, &1024_u64.to_be_bytes()[..]));
            assert_eq!(data[8..], [7; 512]);
        } else {
            assert_eq!(program.simple(), 0);
            assert_eq!(program.receive(512), [7; 512]);
        }
        program.request(0, command::READ, (0, 512), b"");
        let token = program.session.poll_request().expect("the request is complete").token;
        program.session.complete(token, Errno::EROFS, Vec::new());
        match structured {
            true => {
                let (kind, data) = program.chunk();
                assert_eq!((kind, &data[..4]), (chunk::ERROR, &error::EPERM.to_be_bytes()[..]));
            }
            false => assert_eq!(program.simple(), error::EPERM),
        }
        // A second completion has no effect.
        program.session.complete(token, Errno::OK, vec![0; 512]);
        assert!(program.session.unsent() == 0);
    }
}

#[test]
fn invalid_requests_get_error_replies() {
    let mut program = Program::with("disk0", false);
    let end = SIZE - 512;
    let cases = [
        (0, command::READ, (1, 512), error::EINVAL),
        (0, command::READ, (0, 511), error::EINVAL),
        (0, command::READ, (0, 0), error::EINVAL),
        (0, command::READ, (end, 1024), error::EINVAL),
        (0, command::READ, (u64::MAX - 511, 512), error::EINVAL),
        (0, command::READ, (0, MAX_DATA + 512), error::EINVAL),
        (command_flags::DF, command::READ, (0, 512), error::EINVAL),
        (0, command::WRITE, (end, 1024), error::ENOSPC),
        (1 << 9, command::WRITE, (0, 512), error::EINVAL),
        (0, command::WRITE_ZEROES, (end, 1024), error::ENOSPC),
        (0, command::TRIM, (end, 1024), error::EINVAL),
        (0, 5, (0, 512), error::EINVAL),
        (0, 4711, (0, 512), error::EINVAL),
    ];
    for (flags, kind, place, expected) in cases {
        // The data of a refused write is skipped.
        let data = if kind == command::WRITE { vec![0x25; place.1 as usize] } else { Vec::new() };
        program.request(flags, kind, place, &data);
        assert_eq!(program.session.poll_request(), None);
        assert_eq!(program.simple(), expected, "{kind} at {place:?}");
    }
    program.request(0, command::FLUSH, (0, 0), b"");
    assert!(program.session.poll_request().is_some());

    let mut program = Program::with("disk1", true);
    for kind in [command::WRITE, command::WRITE_ZEROES] {
        let data = if kind == command::WRITE { vec![0; 4096] } else { Vec::new() };
        program.request(0, kind, (0, 4096), &data);
        assert_eq!(program.session.poll_request(), None);
        let (kind, data) = program.chunk();
        assert_eq!((kind, &data[..4]), (chunk::ERROR, &error::EPERM.to_be_bytes()[..]));
        let length = u16::from_be_bytes([data[4], data[5]]);
        assert_eq!(length as usize, data.len() - 6);
    }
}

#[test]
fn disconnect_completes_earlier_requests() {
    let mut program = Program::with("disk0", false);
    program.request(0, command::FLUSH, (0, 0), b"");
    program.request(0, command::DISC, (0, 0), b"");
    let token = program.session.poll_request().expect("the request is complete").token;
    assert_eq!(program.session.poll_request(), None);
    assert!(!program.session.is_over() && program.session.room().is_none());
    program.session.complete(token, Errno::OK, Vec::new());
    assert_eq!(program.simple(), 0);
    assert!(program.session.is_over() && program.session.failed().is_none());
}

#[test]
fn give_up_ends_only_the_negotiation() {
    let mut program = Program::connect(3);
    assert!(program.session.is_choosing());
    program.session.give_up();
    assert_eq!(
        (program.session.failed(), program.session.is_over()),
        (Some(&NbdError::Silent), true)
    );
    // A client that disconnects still gets the replies to its outstanding requests.
    let mut program = Program::with("disk0", false);
    program.request(0, command::READ, (0, 512), b"");
    let token = program.session.poll_request().expect("the request is complete").token;
    program.request(0, command::DISC, (0, 0), b"");
    assert!(program.session.poll_request().is_none() && !program.session.is_choosing());
    program.session.give_up();
    program.session.complete(token, Errno::OK, vec![7; 512]);
    assert_eq!(program.simple(), 0);
    assert_eq!(program.receive(512), [7; 512]);
    assert_eq!((program.session.failed(), program.session.is_over()), (None, true));
}

#[test]
fn input_stops_while_replies_are_unread() {
    let mut program = Program::with("disk0", false);
    let mut asked = 0;
    while program.session.room().is_some() {
        let bytes = request(0, command::READ, 77, (0, 1 << 20), b"");
        let room = program.session.room().expect("the session accepts input");
        room[..bytes.len()].copy_from_slice(&bytes);
        program.session.handle(bytes.len());
        let token = program.session.poll_request().expect("the request is complete").token;
        program.session.complete(token, Errno::OK, vec![0; 1 << 20]);
        asked += 1;
    }
    assert!(asked >= 64 && program.session.unsent() <= 66 << 20, "{asked}");
    program.collect();
    assert!(program.session.room().is_some());
    // The session accepts input until the maximum number of requests is outstanding.
    let mut tokens = Vec::new();
    while program.session.room().is_some() {
        program.request(0, command::FLUSH, (0, 0), b"");
        tokens.extend(program.session.poll_request().map(|request| request.token));
    }
    assert_eq!(tokens.len(), MAX_REQUESTS);
    program.session.complete(tokens[0], Errno::OK, Vec::new());
    assert!(program.session.room().is_some());
}

/// The limits on outstanding requests also hold for requests that arrive in a single read.
#[test]
fn limits_apply_to_requests_in_one_piece() {
    let mut program = Program::with("disk0", false);
    let bytes: Vec<u8> = (0..1000_u64)
        .flat_map(|number| request(0, command::READ, number, (0, SIZE as u32), b""))
        .collect();
    let room = program.session.room().expect("the session accepts input");
    room[..bytes.len()].copy_from_slice(&bytes);
    program.session.handle(bytes.len());
    let mut asked = 0;
    loop {
        let mut tokens = Vec::new();
        while let Some(request) = program.session.poll_request() {
            tokens.push(request.token);
        }
        if tokens.is_empty() {
            break;
        }
        asked += tokens.len();
        assert!(tokens.len() * SIZE as usize <= MAX_HELD + SIZE as usize, "{}", tokens.len());
        for token in tokens {
            program.session.complete(token, Errno::EIO, Vec::new());
        }
    }
    assert_eq!(asked, 1000);
}

/// The result must not depend on how the input is divided.
#[test]
fn result_is_independent_of_read_sizes() {
    let mut bytes = 3_u32.to_be_bytes().to_vec();
    bytes.extend(wire::OPTION_MAGIC.to_be_bytes());
    bytes.extend(option::GO.to_be_bytes());
    bytes.extend(11_u32.to_be_bytes());
    bytes.extend(named("disk0"));
    bytes.extend([0, 0]);
    for number in 0..40_u64 {
        let (place, data) = ((number * 512, 512 * (1 + number as u32 % 3)), vec![7; 1536]);
        let data = &data[..place.1 as usize];
        match number % 4 {
            0 => bytes.extend(request(0, command::READ, number, place, b"")),
            1 => bytes.extend(request(0, command::WRITE, number, place, data)),
            // The server refuses this write, because its flag is unknown.
            2 => bytes.extend(request(1 << 9, command::WRITE, number, place, data)),
            _ => bytes.extend(request(0, command::TRIM, number, place, b"")),
        }
    }
    let run = |cut: &mut dyn FnMut(usize) -> usize| {
        let mut session = Session::new(exports());
        let (mut rest, mut out, mut commands) = (&bytes[..], Vec::<u8>::new(), Vec::new());
        while !rest.is_empty() {
            let length = cut(rest.len());
            let room = session.room().expect("the session accepts input");
            room[..length].copy_from_slice(&rest[..length]);
            session.handle(length);
            rest = &rest[length..];
            while let Some(request) = session.poll_request() {
                commands.push((request.token, request.command, request.data.to_vec()));
                let (token, length) = (request.token, request.command.length as usize);
                session.complete(token, Errno::OK, vec![9; length]);
            }
            unsent(&session, &mut out);
            let sent = session.unsent();
            session.sent(sent);
        }
        (out, commands)
    };
    let whole = run(&mut |left| left);
    assert_eq!(whole.1.len(), 30);
    assert_eq!(run(&mut |_| 1), whole);
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    for _ in 0..20 {
        assert_eq!(run(&mut |left| rng.random_range(1..=left.min(700))), whole);
    }
}

/// Random input must not cause a panic.
#[test]
fn session_accepts_any_bytes() {
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    for round in 0..2000 {
        let mut program = Program::with("disk0", round % 2 == 0);
        for _ in 0..20 {
            let mut bytes = request(
                rng.random_range(0..6),
                rng.random_range(0..9),
                rng.random(),
                (rng.random_range(0..SIZE) / 512 * 512, rng.random_range(0..5) * 512),
                b"",
            );
            if rng.random_bool(0.2) {
                let at = rng.random_range(0..bytes.len());
                bytes[at] ^= 1 << rng.random_range(0..8);
            }
            let Some(room) = program.session.room() else { break };
            room[..bytes.len()].copy_from_slice(&bytes);
            program.session.handle(bytes.len());
            while let Some(NbdRequest { token, command, .. }) = program.session.poll_request() {
                let length = if command.operation == Operation::Read { command.length } else { 0 };
                program.session.complete(token, Errno::OK, vec![0; length as usize]);
            }
            program.collect();
        }
    }
}

/// Output that is sent in parts arrives completely. Long data is not copied, and its buffers return to the owner.
#[test]
fn long_data_is_sent_without_a_copy() {
    let mut program = Program::with("", true);
    let lengths: [u32; 5] = [512, 1 << 20, 1 << 14, 512, 1 << 15];
    for length in lengths {
        program.request(0, command::READ, (0, length), b"");
    }
    for (round, length) in (0..).zip(lengths) {
        let token = program.session.poll_request().expect("the request is complete").token;
        let data = vec![round; length as usize];
        let place = data.as_ptr();
        program.session.complete(token, Errno::OK, data);
        let is_there = program
            .session
            .output()
            .any(|it| matches!(it, Slice::Bytes(bytes) if bytes.as_ptr() == place));
        assert_eq!(is_there, length >= 1 << 14, "{length} bytes");
    }
    let mut sent = 1;
    while program.session.unsent() > 0 {
        let mut pieces = Vec::new();
        unsent(&program.session, &mut pieces);
        assert_eq!(pieces.len(), program.session.unsent());
        sent = (sent * 7 % 100_003).min(pieces.len());
        program.got.extend(&pieces[..sent]);
        program.session.sent(sent);
    }
    for (round, length) in (0_u8..).zip(lengths) {
        let (kind, data) = program.chunk();
        assert_eq!((kind, data.len()), (chunk::OFFSET_DATA, 8 + length as usize));
        assert!(data[8..].iter().all(|&byte| byte == round));
    }
    let used = std::iter::from_fn(|| program.session.poll_used());
    assert_eq!(used.count(), 5);
}

/// Output that was sent is freed even if the queue never becomes empty.
#[test]
fn output_buffer_does_not_grow_without_bound() {
    let mut program = Program::with("", true);
    for _ in 0..10_000 {
        program.session.room().expect("the session accepts input");
        let bytes = request(0, command::READ, 77, (0, 4096), b"");
        let room = program.session.room().expect("the session accepts input");
        room[..bytes.len()].copy_from_slice(&bytes);
        program.session.handle(bytes.len());
        let token = program.session.poll_request().expect("the request is complete").token;
        program.session.complete(token, Errno::OK, vec![1; 4096]);
        while program.session.poll_used().is_some() {}
        let unsent = program.session.unsent();
        program.session.sent(unsent.saturating_sub(100_000));
        assert!(program.session.output.held() < 1 << 20, "{unsent} bytes were unsent");
    }
}
