//! Invalid messages from peers. They are refused with the error numbers of Linux, and have no effect on other clients.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use ib_rtrs::{
    Client, ClientConfig, ClientEvent, Direction, EndReason, Errno, Failure, PathState,
    ServerConfig, ServerEvent, SharedKey,
};

use crate::lab::{Lab, Rng, quick_client, small_server};

const SOON: Duration = Duration::from_secs(3);

/// Offset of the RTRS private data in a packet with a REQ. The header of `rdma_cm` precedes it.
const REQ: usize = 220;
/// Offset of the RTRS private data in a packet with a REP.
const REP: usize = 80;

/// Returns true if a packet is a message of the connection manager with the given attribute ID.
fn is_cm(bytes: &[u8], attribute: u8) -> bool {
    bytes[0] == 0x64 && bytes[36..38] == [0, attribute]
}

fn is_req(bytes: &[u8]) -> bool {
    is_cm(bytes, 0x10)
}

fn is_rep(bytes: &[u8]) -> bool {
    is_cm(bytes, 0x13)
}

/// Returns true if a packet is a complete RTRS request: an RDMA WRITE ONLY with immediate data and payload.
fn is_request(bytes: &[u8]) -> bool {
    bytes[0] == 0x0b && bytes.len() > 36
}

/// Changes bytes of the client's first REQ, and returns the reason why the path has failed.
fn refused(at: usize, change: &'static [u8]) -> Failure {
    let mut lab = Lab::new(1, 1, quick_client(), small_server());
    lab.tap = Box::new(move |from, _, bytes| {
        if from == 0 && is_req(bytes) {
            bytes[REQ + at..REQ + at + change.len()].copy_from_slice(change);
        }
        true
    });
    lab.add_path(0);
    lab.run_until(SOON, |lab| !lab.events.is_empty());
    assert_eq!(lab.server.paths().count(), 0);
    why(&lab)
}

fn why(lab: &Lab) -> Failure {
    let why = lab.events.iter().find_map(|(_, event)| match event {
        ClientEvent::PathDown { why, .. } => Some(why.clone()),
        _ => None,
    });
    why.unwrap_or_else(|| panic!("the path has not failed: {:?}", lab.events))
}

#[test]
fn invalid_connect_requests_get_the_errors_of_linux() {
    let reset = Failure::Refused(Errno::ECONNRESET);
    assert_eq!(refused(2, &[0xbe]), reset, "magic");
    assert_eq!(refused(4, &[0, 1]), reset, "version 1.0");
    assert_eq!(refused(6, &[3, 0]), reset, "a connection beyond the last one");
    assert_eq!(refused(6, &[1, 0]), reset, "connection 1 before connection 0");
    assert_eq!(refused(8, &[0, 0]), reset, "no connections");
    assert_eq!(refused(8, &[1, 16]), reset, "4097 connections");
    assert_eq!(refused(44, &[0]), Failure::Refused(Errno::ENXIO), "an unknown session");
}

#[test]
fn minor_version_is_ignored() {
    let mut lab = Lab::new(1, 1, quick_client(), small_server());
    lab.tap = Box::new(|from, _, bytes| {
        if from == 0 && is_req(bytes) {
            bytes[REQ + 4] = 7;
        }
        true
    });
    lab.add_path(0);
    lab.run_until(SOON, |lab| lab.has(&ClientEvent::Up));
}

#[test]
fn second_path_between_same_addresses_is_refused() {
    let mut lab = Lab::connected(1, 1, quick_client(), small_server());
    lab.add_path(0);
    lab.run_until(SOON, |lab| lab.events.len() > 2);
    assert_eq!(why(&lab), Failure::Refused(Errno::EEXIST));
    assert_eq!(lab.client.path_state(lab.paths[0]), Some(PathState::Connected));
}

#[test]
fn uuid_of_a_connected_path_is_refused() {
    let mut lab = Lab::new(1, 2, quick_client(), small_server());
    let first: Rc<RefCell<Option<[u8; 16]>>> = Rc::default();
    lab.tap = Box::new(move |from, link, bytes| {
        if from == 0 && is_req(bytes) {
            let mut first = first.borrow_mut();
            let uuid = &mut bytes[REQ + 12..REQ + 28];
            if link == 0 {
                *first = uuid.try_into().ok();
            } else if let Some(first) = *first {
                uuid.copy_from_slice(&first);
            }
        }
        true
    });
    lab.add_path(0);
    lab.add_path(1);
    lab.run_until(SOON, |lab| lab.events.len() > 1);
    assert_eq!(why(&lab), Failure::Refused(Errno::ECONNRESET));
    assert_eq!(lab.client.path_state(lab.paths[0]), Some(PathState::Connected));
}

#[test]
fn name_of_another_session_is_refused() {
    let mut lab = Lab::connected(1, 1, quick_client(), small_server());
    lab.events.clear();
    // A second client on the same HCA, with the same session name.
    let mut other = Client::new(quick_client(), [77; 32]);
    std::mem::swap(&mut lab.client, &mut other);
    lab.add_path(0);
    lab.run_until(SOON, |lab| !lab.events.is_empty());
    assert_eq!(why(&lab), Failure::Disconnected);
    assert_eq!(lab.server.paths().count(), 1);
}

#[test]
fn invalid_info_requests_end_the_path() {
    type Change = fn(&mut Vec<u8>);
    let changes: [Change; 4] = [
        // The changes are: a name with a slash, an empty name, another message type, and a request before the info
        // request.
        |bytes| bytes[14] = b'/',
        |bytes| bytes[14] = 0,
        |bytes| bytes[12] = 2,
        |bytes| {
            bytes.truncate(12);
            bytes[0] = 0x0b;
            bytes.extend([0; 20]);
        },
    ];
    for change in changes {
        let mut lab = Lab::new(1, 1, quick_client(), small_server());
        lab.tap = Box::new(move |from, _, bytes| {
            if from == 0 && bytes[0] == 0x04 && bytes.len() == 12 + 272 {
                change(bytes);
            }
            true
        });
        lab.add_path(0);
        lab.run_until(SOON, |lab| !lab.events.is_empty());
        assert_eq!(why(&lab), Failure::Disconnected);
        assert!(lab.server_events.is_empty());
    }
}

/// Connects a client, and changes the packet of its first request. Returns the lab, and the reason why the server
/// closes the path.
fn ended_by(change: impl Fn(&mut Vec<u8>) + 'static, server: ServerConfig) -> (Lab, EndReason) {
    let mut lab = Lab::connected(1, 1, quick_client(), server);
    lab.disk.fill(0, 1 << 20, 0x11).expect("the range is within the memory");
    let mut is_done = false;
    lab.tap = Box::new(move |from, _, bytes| {
        if from == 0 && is_request(bytes) && !is_done {
            is_done = true;
            change(bytes);
        }
        true
    });
    lab.io(Direction::Read, 0, (0, 512), 1).expect("a path is connected");
    let end = |lab: &Lab| {
        lab.server_events.iter().find_map(|(_, event)| match event {
            ServerEvent::PathDown { why, .. } => Some(*why),
            _ => None,
        })
    };
    lab.run_until(SOON, |lab| end(lab).is_some());
    let end = end(&lab).expect("the server has closed the path");
    // The request is retransmitted once the path is connected again.
    lab.run_until(Duration::from_secs(10), |lab| lab.done.len() == 1);
    assert_eq!(lab.done[0].outcome.errno(), Errno::OK);
    (lab, end)
}

/// Offset of the payload in a packet with a complete request. The payload is 8 bytes of the user's header, then the
/// message.
const PAYLOAD: usize = 32;
const MESSAGE: usize = PAYLOAD + 8;

#[test]
fn user_header_beyond_message_offset_ends_the_path() {
    // With each of these lengths of the user's header, the computed length of the data would be negative.
    let lengths = [0xffff_u16, 0x209, 0x208];
    for length in lengths {
        let change = move |bytes: &mut Vec<u8>| {
            bytes[MESSAGE + 2..MESSAGE + 4].copy_from_slice(&length.to_le_bytes());
        };
        let (_, end) = ended_by(change, small_server());
        assert!(matches!(end, EndReason::Protocol(_)), "{end}");
    }
}

#[test]
fn invalid_request_messages_end_the_path() {
    type Change = fn(&mut Vec<u8>);
    let changes: [(&str, Change); 7] = [
        ("an unknown type", |bytes| bytes[MESSAGE] = 9),
        ("two descriptors", |bytes| bytes[MESSAGE + 6] = 2),
        ("a descriptor count of 0, but one descriptor", |bytes| bytes[MESSAGE + 6] = 0),
        ("a read longer than a chunk", |bytes| bytes[MESSAGE + 8 + 14] = 1),
        ("an offset behind the chunk", |bytes| bytes[28..32].copy_from_slice(&[0, 0, 0x40, 1])),
        ("an offset at the chunk's end", |bytes| {
            bytes[28..32].copy_from_slice(&[0, 0, 0x3f, 0xff]);
        }),
        ("an answer", |bytes| bytes[28] = 0x10),
    ];
    for (what, change) in changes {
        let (_, end) = ended_by(change, small_server());
        assert!(matches!(end, EndReason::Protocol(_)), "{what}: {end}");
    }
    // With a queue depth of 16, all values of the 4-bit chunk number are valid. With 9, values above 8 are invalid.
    let nine = ServerConfig { queue_depth: 9, ..small_server() };
    let (_, end) = ended_by(|bytes| bytes[28] |= 0x0f, nine);
    assert!(matches!(end, EndReason::Protocol(_)), "{end}");
}

#[test]
fn write_beyond_the_chunk_is_refused_by_its_key() {
    for always_invalidate in [true, false] {
        let server = ServerConfig { always_invalidate, ..small_server() };
        // The packet writes 40 bytes to an address 20 bytes before the end of the chunk.
        let change = |bytes: &mut Vec<u8>| {
            let addr = u64::from_be_bytes(bytes[12..20].try_into().unwrap());
            let end = addr - 512 + 0x4000 - 20;
            bytes[12..20].copy_from_slice(&end.to_be_bytes());
        };
        let (_, end) = ended_by(change, server);
        assert!(matches!(end, EndReason::Transport(_)), "{end}");
    }
}

#[test]
fn key_of_a_chunk_is_valid_for_one_request() {
    let mut lab = Lab::connected(1, 1, quick_client(), small_server());
    let seen: Rc<RefCell<Vec<Vec<u8>>>> = Rc::default();
    let kept = Rc::clone(&seen);
    lab.tap = Box::new(move |from, _, bytes| {
        if from == 0 && is_request(bytes) {
            kept.borrow_mut().push(bytes[12..24].to_vec());
        }
        true
    });
    for user in 1..=3 {
        lab.io(Direction::Read, 0, (0, 512), user).unwrap();
        lab.run_until(SOON, |lab| lab.done.len() == user as usize);
    }
    let seen = seen.borrow();
    assert!(
        seen[0][..8] == seen[1][..8] && seen[1][..8] == seen[2][..8],
        "all requests use the same chunk"
    );
    assert!(seen[0][8..11] == seen[1][8..11], "keys change only in their lowest byte");
    assert!(seen[0][11] != seen[1][11] && seen[1][11] != seen[2][11]);
}

#[test]
fn unfilled_read_data_has_no_stale_bytes() {
    let mut lab = Lab::connected(1, 1, quick_client(), small_server());
    lab.memory.fill(0, 4096, 0x77).unwrap();
    lab.io(Direction::Write, 0, (0, 4096), 1).unwrap();
    lab.run_until(SOON, |lab| lab.done.len() == 1);
    // The first read fills the server's buffer for READ data. The second read fills only a part of this buffer.
    lab.io(Direction::Read, 0, (0, 4096), 2).unwrap();
    lab.run_until(SOON, |lab| lab.done.len() == 2);
    lab.holds = true;
    lab.io(Direction::Read, 0, (0, 4096), 3).unwrap();
    lab.run_for(Duration::from_millis(1));
    let request = lab.server.poll_request().unwrap();
    assert!(lab.server.complete(lab.now, &mut lab.sides[1], request.id, Errno::OK, 100));
    assert!(!lab.server.complete(lab.now, &mut lab.sides[1], request.id, Errno::OK, 100));
    lab.run_until(SOON, |lab| lab.done.len() == 3);
    let read = lab.memory.to_vec(0, 4096).unwrap();
    assert!(read[..100].iter().all(|&byte| byte == 0x77));
    assert!(read[100..].iter().all(|&byte| byte == 0));
}

/// Changes bytes of the server's first REP, and returns the reason why the path has failed.
fn failure_after_changed_rep(at: usize, change: &'static [u8]) -> Failure {
    let mut lab = Lab::new(1, 1, quick_client(), small_server());
    lab.tap = Box::new(move |from, _, bytes| {
        if from == 1 && is_rep(bytes) {
            bytes[REP + at..REP + at + change.len()].copy_from_slice(change);
        }
        true
    });
    lab.add_path(0);
    lab.run_until(SOON, |lab| !lab.events.is_empty());
    why(&lab)
}

#[test]
fn connect_response_with_invalid_sizes_is_refused() {
    let is_protocol = |why: &Failure| matches!(why, Failure::Protocol(_));
    for (at, change) in [
        (0, &[0xbe][..]),
        (3, &[1]),
        (6, &[0, 0]),
        (6, &[0xff, 0xff]),
        (8, &[0, 0, 0, 0]),
        (8, &[0xff, 0xff, 0xff, 0xff]),
        (12, &[0, 0, 0, 0]),
        (12, &[0xff, 0xff, 0xff, 0xff]),
        (12, &[0, 0, 0x20, 0]),
    ] {
        let change: &'static [u8] = Box::leak(change.to_vec().into_boxed_slice());
        let why = failure_after_changed_rep(at, change);
        assert!(is_protocol(&why), "{at} {change:?}: {why}");
    }
}

#[test]
fn info_response_with_invalid_chunks_is_refused() {
    // Offsets in the info response: 0 and 2 are in its header; 20 and 8 are the length and address of the first chunk.
    for (at, change) in [
        (0, &[2][..]),
        (2, &[15]),
        (2, &[0, 0]),
        (20, &[0, 0, 0, 0]),
        (20, &[1]),
        (20, &[0, 0x80]),
        (8, &[0xff; 8]),
    ] {
        let change = change.to_vec();
        let mut lab = Lab::new(1, 1, quick_client(), small_server());
        lab.tap = Box::new(move |from, _, bytes| {
            if from == 1 && bytes[0] == 0x04 && bytes.len() == 12 + 8 + 16 * 16 {
                bytes[12 + at..12 + at + change.len()].copy_from_slice(&change);
            }
            true
        });
        lab.add_path(0);
        lab.run_until(SOON, |lab| !lab.events.is_empty());
        assert!(matches!(why(&lab), Failure::Protocol(_)), "{at}: {}", why(&lab));
    }
}

#[test]
fn response_without_request_ends_the_path() {
    for change in [0x10_00_00_0f_u32, 0x10_07_ff_ff, 0x00_00_00_01, 0x70_00_00_00] {
        let mut lab = Lab::connected(1, 1, quick_client(), small_server());
        let mut is_done = false;
        lab.tap = Box::new(move |from, _, bytes| {
            if from == 1 && bytes[0] == 0x05 && !is_done {
                is_done = true;
                bytes[12..16].copy_from_slice(&change.to_be_bytes());
            }
            true
        });
        lab.events.clear();
        lab.io(Direction::Read, 0, (0, 512), 1).unwrap();
        lab.run_until(SOON, |lab| !lab.events.is_empty());
        assert!(matches!(why(&lab), Failure::Protocol(_)));
    }
}

#[test]
fn path_operations_in_any_order_keep_requests() {
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let mut lab = Lab::connected(seed, 3, quick_client(), small_server());
        let mut asked = 0;
        for _ in 0..60 {
            let path = lab.paths[rng.below(lab.paths.len() as u64) as usize];
            let link = rng.below(3) as usize;
            let now = lab.now;
            match rng.below(8) {
                0 => drop(lab.client.reconnect_path(now, &mut lab.sides[0], path)),
                1 => drop(lab.client.disconnect_path(now, &mut lab.sides[0], path)),
                2 => drop(lab.client.remove_path(now, &mut lab.sides[0], path)),
                3 => drop(lab.add_path(link)),
                4 => {
                    let id = ib_rtrs::AdapterId(link as u32);
                    lab.client.link_down(now, &mut lab.sides[0], id);
                }
                5 => {
                    let path = lab.server.paths().next();
                    if let Some(path) = path {
                        lab.server.disconnect_path(now, &mut lab.sides[1], path);
                    }
                }
                _ => asked += usize::from(lab.io(Direction::Read, 0, (0, 512), 1).is_ok()),
            }
            let time = Duration::from_micros(rng.below(2_000) * rng.below(2_000));
            lab.run_for(time);
        }
        lab.client.close(lab.now, &mut lab.sides[0]);
        lab.run_until(Duration::from_secs(60), |lab| lab.has(&ClientEvent::Closed));
        assert_eq!(lab.done.len(), asked, "seed {seed}");
        lab.run_for(Duration::from_secs(60));
        assert_eq!(lab.server.paths().count(), 0);
    }
}

/// Returns a lab whose client and server have the given keys, and true if they have connected.
fn with_keys(client: Option<u8>, server: Option<u8>) -> (Lab, bool) {
    let key = |byte: u8| SharedKey::new(vec![byte; 32]);
    let client = ClientConfig { key: client.map(key), ..quick_client() };
    let server = ServerConfig { key: server.map(key), ..small_server() };
    let mut lab = Lab::new(1, 2, client, server);
    lab.add_path(0);
    lab.add_path(1);
    lab.run_for(SOON);
    let is_up = lab.has(&ClientEvent::Up);
    (lab, is_up)
}

#[test]
fn only_peers_with_the_same_key_connect() {
    let (mut lab, is_up) = with_keys(Some(1), Some(1));
    assert!(is_up);
    lab.io(Direction::Read, 0, (0, 512), 1).unwrap();
    lab.run_until(SOON, |lab| lab.done.len() == 1);
    let (lab, is_up) = with_keys(Some(1), Some(2));
    assert!(!is_up);
    assert_eq!(why(&lab), Failure::WrongKey);
    let (lab, is_up) = with_keys(None, Some(2));
    assert!(!is_up);
    assert_eq!(why(&lab), Failure::Refused(Errno::EACCES));
    let (lab, is_up) = with_keys(Some(2), None);
    assert!(!is_up);
    assert_eq!(why(&lab), Failure::WrongKey);
}

#[test]
fn unproven_sessions_do_not_block_clients_with_the_key() {
    let key = |byte: u8| Some(SharedKey::new(vec![byte; 32]));
    let strange = ClientConfig { key: key(2), ..quick_client() };
    let server = ServerConfig { key: key(1), max_sessions: 80, ..small_server() };
    let mut lab = Lab::new(1, 2, strange, server);
    // The clients' nonces are lost on the first link, so the server cannot detect that these clients do not have the
    // server's key.
    lab.tap = Box::new(|from, link, bytes| from == 1 || link == 1 || bytes[0] != 0x04);
    let mut rng = Rng::new(7);
    let begin = |lab: &mut Lab, rng: &mut Rng, number: usize| {
        let client = ClientConfig { key: key(2), ..ClientConfig::new(format!("{number}")) };
        lab.client = Client::new(client, rng.seed());
        lab.paths.clear();
        lab.add_path(0);
    };
    for number in 0..200 {
        begin(&mut lab, &mut rng, number);
        lab.run_for(Duration::from_millis(2));
    }
    assert!((1..=64).contains(&lab.server.paths().count()), "{}", lab.server.paths().count());
    // Clients without the server's key continue to connect while a client with this key connects.
    let own = ClientConfig { key: key(1), ..quick_client() };
    let mut own = Client::new(own, rng.seed());
    let buffer =
        own.register(&mut lab.sides[0], lab.memory.clone()).expect("the HCA has free regions");
    std::mem::swap(&mut lab.client, &mut own);
    (lab.buffer, lab.paths) = (buffer, Vec::new());
    lab.events.clear();
    lab.add_path(1);
    let mut is_up = false;
    for number in 200..1000 {
        lab.run_for(Duration::from_micros(20));
        is_up |= lab.has(&ClientEvent::Up);
        std::mem::swap(&mut lab.client, &mut own);
        begin(&mut lab, &mut rng, number);
        std::mem::swap(&mut lab.client, &mut own);
    }
    lab.run_for(Duration::from_millis(50));
    assert!(is_up || lab.has(&ClientEvent::Up));
}

#[test]
fn invalid_proof_does_not_open_the_session() {
    // The changed bytes are: the code of the proof, the message type of the proof, and the message type of the nonce.
    for (number, change) in [(1, 60), (1, 12), (0, 12)] {
        let key = Some(SharedKey::new(vec![1; 32]));
        let client = ClientConfig { key: key.clone(), ..quick_client() };
        let mut lab = Lab::new(1, 1, client, ServerConfig { key, ..small_server() });
        let mut seen = 0;
        lab.tap = Box::new(move |from, _, bytes| {
            if from == 0 && bytes[0] == 0x04 {
                if seen == number {
                    bytes[change] ^= 1;
                }
                seen += 1;
            }
            true
        });
        lab.add_path(0);
        lab.run_until(SOON, |lab| !lab.events.is_empty());
        assert_eq!(why(&lab), Failure::Disconnected);
        assert!(lab.server_events.is_empty());
    }
}

/// Sends REQs of new sessions over the first link. The server's REPs are never followed by an RTU.
fn flood(lab: &mut Lab, count: u32) {
    flood_with(lab, count, |_| ());
}

/// Sends REQs as [`flood`] does, with a further change to each REQ.
fn flood_with(lab: &mut Lab, count: u32, mut change: impl FnMut(&mut Vec<u8>)) {
    let mut other = Lab::new(1, 1, quick_client(), small_server());
    other.add_path(0);
    let (side, link, bytes, route) = other.catch(is_req);
    lab.tap = Box::new(|from, link, _| from == 0 || link != 0);
    for number in 0..count {
        let mut bytes = bytes.clone();
        let different = (number + 1).to_be_bytes();
        // The changed fields are: transaction ID, communication ID, node GUID and QPN, then the UUIDs of path and
        // session.
        for at in [32, 44, 64, REQ + 12, REQ + 28] {
            bytes[at..at + 4].copy_from_slice(&different);
        }
        bytes[77..79].copy_from_slice(&different[2..]);
        change(&mut bytes);
        lab.inject((side, link, bytes, route));
    }
    lab.run_for(Duration::from_millis(100));
}

fn is_connected(lab: &Lab) -> bool {
    lab.client.path_state(lab.paths[0]) == Some(PathState::Connected)
}

/// Returns the address space of this process in KiB.
fn address_space() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("procfs is mounted");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmSize:"))
        .expect("the file has a `VmSize` line");
    line.trim().trim_end_matches(" kB").parse().expect("the size is a number")
}

#[test]
fn half_open_flood_does_not_block_other_clients() {
    let server = ServerConfig { max_sessions: 48, ..small_server() };
    let mut lab = Lab::new(1, 2, quick_client(), server);
    flood(&mut lab, 100);
    let paths = lab.server.paths().count();
    assert_eq!(paths, 48, "the flood uses all sessions");
    lab.add_path(1);
    lab.run_until(SOON, is_connected);
    // The REQs of a second flood replace only half-open paths.
    flood(&mut lab, 200);
    assert!(is_connected(&lab));
}

#[test]
fn half_open_sessions_reserve_no_chunks() {
    let mut lab = Lab::new(1, 1, quick_client(), ServerConfig::default());
    let before = address_space();
    flood(&mut lab, 60);
    assert_eq!(lab.server.paths().count(), 60);
    // The chunks of each session would take 64 MiB, and the buffers for READ data would take as much: 128 MiB per
    // session. Concurrent tests also allocate memory, but much less.
    let grown = address_space().saturating_sub(before) >> 10;
    assert!(grown < 2048, "the address space has grown by {grown} MiB");
}

#[test]
fn half_open_paths_of_one_address_are_limited() {
    let mut lab = Lab::new(1, 1, quick_client(), small_server());
    flood(&mut lab, 200);
    assert_eq!(lab.server.paths().count(), 64);
}

/// The server evicts a half-open path. If it is the only path of its session, the session is also removed, and a REQ
/// for a second path of this session is refused.
#[test]
fn path_of_an_evicted_session_is_refused() {
    let mut lab = Lab::new(1, 1, quick_client(), small_server());
    let mut first = None;
    flood_with(&mut lab, 64, |bytes| first = first.take().or_else(|| Some(bytes.clone())));
    let first = first.expect("the flood has sent REQs");
    flood_with(&mut lab, 1, |bytes| {
        // This REQ requests a second path of the first session, over a new connection.
        bytes[REQ + 28..REQ + 44].copy_from_slice(&first[REQ + 28..REQ + 44]);
        for at in [32, 44, 64, REQ + 12] {
            bytes[at..at + 4].copy_from_slice(&[0xee; 4]);
        }
        bytes[77..79].copy_from_slice(&[0xee; 2]);
    });
    assert_eq!(lab.server.paths().count(), 63);
}
