use super::message::InfoHeader;
use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    let hex: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let pairs = hex.chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

/// The private data of a REQ that the Linux kernel has sent, after the `rdma_cm` header.
fn request() -> Vec<u8> {
    let mut request = bytes(
        "0000bd1b0002000003000100af4d2ac7c21e4b34b6874df3044e572a
         2d6ff10b7cfc44878f49dbaadfc5711c01",
    );
    request.resize(ConnectRequest::LENGTH, 0);
    request
}

#[test]
fn linux_connect_request_is_parsed() {
    let bytes = request();
    let request = ConnectRequest::read(&bytes).unwrap();
    assert_eq!((request.connection, request.connections, request.reconnects), (0, 3, 1));
    assert_eq!((request.path_uuid[0], request.session_uuid[0]), (0xaf, 0x2d));
    assert_eq!(request.first_connection, 1);
    assert_eq!(request.to_bytes()[..], bytes);
}

#[test]
fn linux_connect_responses_are_parsed() {
    let mut accepted = bytes("bd1b00020000000200f001000010000002");
    accepted.resize(ConnectResponse::LENGTH, 0);
    let response = ConnectResponse::read(&accepted).unwrap();
    assert_eq!((response.error, response.queue_depth), (0, 512));
    assert_eq!((response.max_io_size, response.max_header_size), (126_976, 4096));
    assert_eq!(response.flags, ConnectFlags::NEW_KEYS);
    assert_eq!(response.to_bytes()[..], accepted);
    accepted[4..6].copy_from_slice(&[0xef, 0xff]);
    assert_eq!(ConnectResponse::read(&accepted).unwrap().error, -17);
}

#[test]
fn wrong_magic_version_and_length_are_rejected() {
    let mut data = request();
    data[5] = 1;
    assert_eq!(ConnectRequest::read(&data), Err(RtrsError::Version(0x0100)));
    data[2] = 0;
    assert_eq!(ConnectRequest::read(&data), Err(RtrsError::Magic(0x1b00)));
    assert_eq!(
        ConnectResponse::read(&data[..5]),
        Err(RtrsError::Truncated { what: "the RTRS connect response", expected: 56, found: 5 })
    );
}

#[test]
fn linux_immediate_data_is_decoded() {
    let requests = [(0x0008_1020, (1, 0x1020)), (0x48, (0, 0x48)), (0x0fff_ffff, (511, 0x7_ffff))];
    for (number, (chunk, offset)) in requests {
        let ImmediateKind::Request { payload } = Immediate(number).kind() else {
            panic!("{number}")
        };
        assert_eq!(Immediate::chunk_and_offset(payload, 512), (chunk, offset));
        assert_eq!(Immediate::request(512, chunk, offset), Immediate(number));
    }
    let responses =
        [(0x1000_0001, (false, 0, 1)), (0x2010_0000, (true, 2, 0)), (0x1358_0005, (false, 107, 5))];
    for (number, (has_invalidated, error, chunk)) in responses {
        let kind = ImmediateKind::Response { has_invalidated, error, chunk };
        assert_eq!(Immediate(number).kind(), kind);
        assert_eq!(Immediate::new(kind), Immediate(number));
    }
    assert_eq!(Immediate::HEARTBEAT, Immediate(0x8000_0000));
    assert_eq!(Immediate::HEARTBEAT_ACKNOWLEDGEMENT, Immediate(0x9000_0000));
}

#[test]
fn unknown_immediate_data_is_preserved() {
    for kind in 0..16 {
        for payload in [0, 1, 0x0fff_ffff, 0x0123_4567] {
            let immediate = Immediate(kind << 28 | payload);
            assert_eq!(Immediate::new(immediate.kind()), immediate);
            assert!(!immediate.to_string().is_empty());
        }
    }
}

#[test]
fn queue_depth_determines_the_bits_of_the_chunk() {
    for (depth, bits) in
        [(0, 28), (1, 28), (2, 27), (3, 26), (4, 26), (512, 19), (513, 18), (65_535, 12)]
    {
        assert_eq!(Immediate::chunk_and_offset(0x0fff_ffff, depth).1, (1 << bits) - 1, "{depth}");
    }
}

#[test]
fn messages_survive_a_round_trip() {
    let mut info = InfoHeader { message_type: MessageType::INFO_RESPONSE, count: 2, epoch: 0 }
        .to_bytes()
        .to_vec();
    info.extend(bytes("00000000dc03ca8affff1f03000000000200"));
    info.extend([0; 14]);
    let rkey = bytes("0400000020030000");
    let read = bytes("030020000100010000c0dbd9fc8bffff4504000000100000");
    let name = InfoRequest::new("test").to_bytes();
    let unknown = bytes("07000102030405");
    for bytes in [&info[..], &rkey, &read, &name, &bytes("02002000"), &unknown] {
        let message = Message::parse(bytes).unwrap();
        let mut out = Vec::new();
        message.emit(&mut out);
        assert_eq!(out, bytes, "{message:?}");
        for length in 2..bytes.len() {
            let cut = Message::parse(&bytes[..length]);
            assert_eq!(cut.is_ok(), bytes == unknown, "{length} bytes of {message:?}");
        }
    }
    assert_eq!(Message::parse(&unknown), Ok(Message::Other(MessageType(7), &unknown[2..])));
    let Ok(Message::InfoRequest(request)) = Message::parse(&name) else {
        panic!("not an info request")
    };
    assert_eq!(request.name(), b"test");
    let Ok(Message::RkeyResponse(response)) = Message::parse(&rkey) else {
        panic!("not an R_Key response")
    };
    assert_eq!((response.chunk, response.r_key), (0, 0x320));
}

#[test]
fn long_session_name_is_truncated() {
    let request = InfoRequest::new(&"x".repeat(300));
    assert_eq!(request.name().len(), 254);
}

#[test]
fn linux_read_request_is_parsed_at_the_end() {
    // The user header, which is an RNBD I/O message, then the RTRS read request.
    let written = bytes(
        "0400400000000000000000000000000000010000001000000044000000000000
         030020000100010000c0dbd9fc8bffff4504000000100000",
    );
    let (message, user) = Message::parse_at_end(&written, written.len(), 0x1020).unwrap();
    let Message::Read(header, descriptors) = message else { panic!("{message:?}") };
    assert_eq!((header.user_length, header.count), (32, 1));
    let found = descriptors.get(0).unwrap();
    assert_eq!((found.address, found.r_key, found.length), (0xffff_8bfc_d9db_c000, 0x445, 4096));
    assert_eq!(user, &written[..32]);
    // If the first byte of the user header is missing, the message cannot be parsed.
    assert_eq!(Message::parse_at_end(&written[1..], written.len(), 0x1020), None);
}

#[test]
fn write_request_is_parsed_at_the_end() {
    let mut written = vec![0xaa; 512];
    written.extend([7; 8]);
    written.extend(WriteHeader { message_type: MessageType::WRITE, user_length: 8 }.to_bytes());
    let offset = written.len() - 4;
    // Only the end of the written data is passed to the parser.
    let end = &written[500..];
    let (message, user) = Message::parse_at_end(end, written.len(), offset).unwrap();
    assert!(matches!(message, Message::Write(WriteHeader { user_length: 8, .. })));
    assert_eq!(user, [7; 8]);
    assert_eq!(Message::parse_at_end(end, written.len(), offset - 1), None);
    assert_eq!(Message::parse_at_end(&[], 0, 0), None);
}

#[test]
fn extension_uses_bytes_that_linux_ignores() {
    let known = Capabilities::FENCE | Capabilities::PROOF;
    let mut request: [u8; ConnectRequest::LENGTH] = request().try_into().unwrap();
    assert_eq!(Extension::of_request(&request), Capabilities(0));
    let before = ConnectRequest::read(&request).unwrap();
    Extension::new(known).put_into_request(&mut request);
    assert_eq!(Extension::of_request(&request), known);
    assert_eq!(ConnectRequest::read(&request), Ok(before), "the fields of RTRS are not changed");
    assert_eq!(request[45], 0);
    let mut response = [0; ConnectResponse::LENGTH];
    Extension::new(known).put_into_response(&mut response);
    assert_eq!(Extension::of_response(&response), known);
    assert_eq!(response[..20], [0; 20]);
    // An extension of another version, or a truncated one, announces no capabilities.
    response[22] += 1;
    assert_eq!(Extension::of_response(&response), Capabilities(0));
    assert_eq!(Extension::of_response(&response[..21]), Capabilities(0));
}

#[test]
fn extension_messages_survive_a_round_trip() {
    let fence =
        Fence { message_type: MessageType::FENCE, id: 7, path_uuid: [3; 16], reconnects: 0x1234 };
    assert_eq!(Fence::parse(&fence.to_bytes()), fence);
    let fenced = Fenced { message_type: MessageType::FENCED, id: 7 };
    assert_eq!(fenced.to_bytes(), [2, 0x80, 0, 0, 7, 0, 0, 0]);
    let proof = Proof { message_type: MessageType::PROOF, nonce: [1; 32], code: [2; 32] };
    assert_eq!(Proof::parse(&proof.to_bytes()), proof);
    // `Message::parse` does not decode messages of the extension.
    let bytes = fence.to_bytes();
    assert_eq!(Message::parse(&bytes), Ok(Message::Other(MessageType::FENCE, &bytes[2..])));
}
