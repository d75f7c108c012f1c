use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    let hex: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let pairs = hex.chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

/// An open response that the Linux kernel has sent.
const OPENED: &str = "03000000000000000020000000000000ff00000000000000000000000000000000000000
    00100002800000000000000000000000000000000000";

#[test]
fn linux_read_request_is_parsed() {
    let read = bytes("0400400000000000000000000000000000010000001000000044000000000000");
    let Ok(Message::Io(io)) = Message::parse(&read) else { panic!("not an I/O") };
    assert_eq!((io.device_id, io.sector, io.length, io.priority), (0, 0, 4096, 0x4400));
    assert_eq!((io.rw.operation(), io.rw.flags()), (Operation::READ, IoFlags::SYNC));
    assert_eq!(io.rw, IoFlags::of(Operation::READ, IoFlags::SYNC));
    // The message of an old client lacks the priority field.
    let Ok(Message::Io(short)) = Message::parse(&read[..24]) else { panic!("not an I/O") };
    assert_eq!(short, Io { priority: 0, ..io });
    assert_eq!(
        Message::parse(&read[..23]).unwrap_err().to_string(),
        "the RNBD message io has 23 bytes: expected at least 24"
    );
}

#[test]
fn linux_open_response_is_parsed() {
    let opened = bytes(OPENED);
    let Ok(Message::OpenResponse(found)) = Message::parse(&opened) else {
        panic!("not an open response")
    };
    assert_eq!((found.device_id, found.sectors, found.max_hw_sectors), (0, 0x2000, 255));
    assert_eq!((found.physical_block_size, found.logical_block_size), (4096, 512));
    assert_eq!((found.max_segments, found.max_discard_sectors), (128, 0));
    assert_eq!(found.cache_policy, CachePolicy(0));
}

#[test]
fn messages_survive_a_round_trip() {
    let open = Open { access_mode: AccessMode(9), ..Open::zeroed() };
    let mut open = Open { message_type: MessageType::OPEN, ..open };
    open.name[..4].copy_from_slice(b"ram0");
    let close = Close { message_type: MessageType::CLOSE, device_id: 0xdead_beef };
    let session = Session {
        message_type: MessageType::SESSION_RESPONSE,
        version: 2,
        extension: 0,
        number: 0,
    };
    let rw = IoFlags(0x0080_0377);
    let io = Io { message_type: MessageType::IO, rw, sector: u64::MAX, ..Io::zeroed() };
    let opened = OpenResponse::parse(bytes(OPENED).first_chunk().unwrap());
    let unknown = bytes("090001020304");
    let all = [
        Message::Open(open),
        Message::Close(close),
        Message::Session(session),
        Message::Io(io),
        Message::OpenResponse(opened),
        Message::Other(MessageType(9), &unknown[2..]),
    ];
    for message in all {
        let mut out = Vec::new();
        message.emit(&mut out);
        assert_eq!(Message::parse(&out), Ok(message));
        assert_eq!(out[..2], message.message_type().0.to_le_bytes());
        for length in 0..out.len() {
            let _ = Message::parse(&out[..length]);
        }
    }
    assert_eq!(open.name(), b"ram0");
    assert_eq!((rw.operation().to_string(), rw.flags()), ("0x77".to_owned(), IoFlags(0x0080_0300)));
}
