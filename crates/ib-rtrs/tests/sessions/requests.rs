//! Requests and responses without faults.

use std::time::Duration;

use ib_rtrs::{
    ClientConfig, ClientEvent, Direction, Errno, PathState, Request, RequestError, Segment,
    ServerConfig, ServerEvent,
};

use crate::lab::{Lab, quick_client, small_server};

const SOON: Duration = Duration::from_secs(5);

fn pattern(length: usize, salt: u8) -> Vec<u8> {
    (0..length).map(|at| (at as u8).wrapping_mul(31) ^ salt ^ (at >> 8) as u8).collect()
}

/// Writes data of various lengths and reads it back. Then submits 16 writes at a time, and checks the statistics.
fn writes_and_reads(client: ClientConfig, server: ServerConfig) {
    let mut lab = Lab::connected(7, 1, client, server);
    let most = lab.client.max_io_size();
    for (round, length) in [512, 1, 4096, most, 0, 1000].into_iter().enumerate() {
        let (at, bytes) = (round as u64 * 20_000, pattern(length as usize, round as u8));
        lab.memory.write(0, &bytes).expect("the range is within the memory");
        lab.io(Direction::Write, at, (0, length), 1).expect("a path is connected");
        lab.run_until(SOON, |lab| lab.done.len() == 1);
        lab.io(Direction::Read, at, (100_000, length), 2).expect("a path is connected");
        lab.run_until(SOON, |lab| lab.done.len() == 2);
        assert!(lab.done.drain(..).all(|it| it.outcome.errno().is_ok()), "{length} bytes");
        assert_eq!(
            lab.memory.to_vec(100_000, length as usize).expect("the range is within the memory"),
            bytes,
            "{length} bytes"
        );
    }
    // Eight times, 16 writes use all 16 chunks of the server at once.
    for round in 0..8_u64 {
        for user in 0..16 {
            let at = user * 4096;
            lab.memory
                .fill(at as usize, 4096, (round * 16 + user) as u8)
                .expect("the range is within the memory");
            lab.io(Direction::Write, at, (at as usize, 4096), user).expect("a path is connected");
        }
        assert_eq!(lab.io(Direction::Read, 0, (0, 1), 0), Err(RequestError::NoPermit(16)));
        lab.run_until(SOON, |lab| lab.done.len() == 16);
        lab.done.clear();
    }
    let path = lab.paths[0];
    assert_eq!((lab.client.requests(), lab.client.inflight(path)), (0, Some(0)));
    let stats = lab.client.stats(path).expect("the path exists");
    assert_eq!((stats.traffic.writes, stats.traffic.reads), (6 + 128, 6));
    assert_eq!(stats.latencies.counts.iter().flatten().sum::<u64>(), 140);
    assert!(stats.migrated_to[0] > 0, "all completions arrive at processor 0");
    assert_eq!(stats.failed_over, 0);
    let far = lab.server.paths().next().expect("the server has the path");
    assert_eq!(lab.server.stats(far).expect("the path exists").traffic, stats.traffic);
    assert_eq!(lab.server.inflight(far), Some(0));
}

#[test]
fn data_is_written_and_read() {
    writes_and_reads(quick_client(), small_server());
}

#[test]
fn data_is_written_and_read_without_new_keys() {
    let server = ServerConfig { always_invalidate: false, ..small_server() };
    writes_and_reads(quick_client(), server);
}

#[test]
fn data_is_written_and_read_with_server_invalidation() {
    let client = ClientConfig { need_invalidation: true, ..quick_client() };
    writes_and_reads(client.clone(), small_server());
    let server = ServerConfig { always_invalidate: false, ..small_server() };
    writes_and_reads(client, server);
}

#[test]
fn data_is_written_and_read_over_one_connection_as_linux() {
    let client = ClientConfig { connections: 1, fence: false, ..quick_client() };
    writes_and_reads(client, small_server());
    let server = ServerConfig { fence: false, ..small_server() };
    writes_and_reads(quick_client(), server);
}

#[test]
fn reads_return_data_of_a_store() {
    let mut lab = Lab::connected(5, 2, quick_client(), small_server());
    lab.answer_from_disk();
    let most = lab.client.max_io_size();
    let disk = pattern(lab.disk.len(), 9);
    lab.disk.write(0, &disk).unwrap();
    for (user, (at, length)) in
        [(0, most), (5, 1), (70_001, 4097), (1 << 19, 512)].into_iter().enumerate()
    {
        lab.memory.fill(0, 20_000, 0xaa).unwrap();
        lab.io(Direction::Read, at, (0, length), user as u64).unwrap();
        lab.run_until(SOON, |lab| !lab.done.is_empty());
        assert!(lab.done.drain(..).all(|it| it.outcome.errno().is_ok()));
        let (from, length) = (at as usize, length as usize);
        assert_eq!(lab.memory.to_vec(0, length).unwrap(), disk[from..from + length]);
        assert_eq!(lab.memory.to_vec(length, 1).unwrap(), [0xaa]);
    }
    // READ data was sent from the memory of the disk, without a copy in the session's memory.
    let session = lab.server.sessions().next().unwrap();
    let chunks = lab.server.memory(session).unwrap();
    let data = chunks.to_vec(0, 4096).unwrap();
    assert!(!data.windows(64).any(|window| window == &disk[..64]));
    // Reads over both paths return the data of the last write.
    for user in 10..20 {
        let bytes = pattern(3000, user as u8);
        lab.memory.write(0, &bytes).unwrap();
        lab.io(Direction::Write, 9000, (0, 3000), user).unwrap();
        lab.run_until(SOON, |lab| !lab.done.is_empty());
        lab.done.clear();
        lab.io(Direction::Read, 9000, (5000, 3000), user).unwrap();
        lab.run_until(SOON, |lab| !lab.done.is_empty());
        assert!(lab.done.drain(..).all(|it| it.outcome.errno().is_ok()));
        assert_eq!(lab.memory.to_vec(5000, 3000).unwrap(), bytes);
    }
}

/// When the server closes a path, it deregisters the stores (memory with READ data) that were registered for the path.
#[test]
fn store_registrations_end_with_their_path() {
    let mut lab = Lab::connected(6, 1, quick_client(), small_server());
    lab.answer_from_disk();
    for _ in 0..3 {
        lab.io(Direction::Read, 0, (0, 512), 1).unwrap();
        lab.run_until(SOON, |lab| !lab.done.is_empty());
        lab.done.clear();
        let path = lab.server.paths().next().unwrap();
        lab.server.disconnect_path(lab.now, &mut lab.sides[1], path);
        lab.run_for(Duration::from_secs(10));
        assert!(lab.server.paths().next().is_some_and(|it| it != path), "the client reconnects");
    }
    let path = lab.server.paths().next().unwrap();
    lab.server.disconnect_path(lab.now, &mut lab.sides[1], path);
    lab.run_for(Duration::from_millis(100));
    assert_eq!(lab.sides[1].0[0].hca.region_count(), 0);
}

#[test]
fn requests_with_many_segments_keep_their_order() {
    let mut lab = Lab::connected(3, 1, quick_client(), small_server());
    for count in [2_usize, 3, 29, 30, 40] {
        let pieces: Vec<Segment> = (0..count)
            .map(|at| Segment {
                buffer: lab.buffer,
                offset: at * 1000 + 3,
                length: 100 + at as u32,
            })
            .collect();
        let length: u32 = pieces.iter().map(|piece| piece.length).sum();
        let mut expected = Vec::new();
        for (at, piece) in pieces.iter().enumerate() {
            let bytes = pattern(piece.length as usize, at as u8);
            lab.memory.write(piece.offset, &bytes).unwrap();
            expected.extend(bytes);
        }
        let header = 4096_u64.to_le_bytes();
        for (user, direction) in [(1, Direction::Write), (2, Direction::Read)] {
            if direction == Direction::Read {
                lab.memory.fill(0, 100_000, 0xaa).unwrap();
            }
            let data = &pieces[..];
            let request =
                Request { cpu: 0, direction, header: &header, data, user, is_admin: false };
            lab.client.request(lab.now, &mut lab.sides[0], &request).unwrap();
            lab.run_until(SOON, |lab| lab.done.len() == user as usize);
        }
        assert!(lab.done.drain(..).all(|it| it.outcome.errno().is_ok()));
        assert_eq!(lab.disk.to_vec(4096, length as usize).unwrap(), expected);
        for (at, piece) in pieces.iter().enumerate() {
            let read = lab.memory.to_vec(piece.offset, piece.length as usize).unwrap();
            assert_eq!(read, pattern(piece.length as usize, at as u8), "piece {at} of {count}");
        }
    }
    let stats = lab.client.stats(lab.paths[0]).unwrap();
    assert_eq!(stats.sg_entries[0][1], 2);
    assert_eq!(stats.sg_entries[0][15], 6);
}

#[test]
fn errors_of_the_server_user_reach_the_client() {
    let mut lab = Lab::connected(3, 1, quick_client(), small_server());
    lab.memory.fill(0, 4096, 0x55).unwrap();
    lab.io(Direction::Read, 1 << 40, (0, 4096), 1).unwrap();
    lab.io(Direction::Write, 1 << 40, (0, 4096), 2).unwrap();
    lab.run_until(SOON, |lab| lab.done.len() == 2);
    assert!(lab.done.iter().all(|it| it.outcome.errno() == Errno::EIO));
    assert_eq!(lab.memory.to_vec(0, 4096).unwrap(), [0x55; 4096]);
}

#[test]
fn invalid_requests_are_refused() {
    let mut lab = Lab::new(3, 1, quick_client(), small_server());
    assert_eq!(lab.io(Direction::Read, 0, (0, 1), 0), Err(RequestError::NoPath));
    lab.add_path(0);
    lab.run_until(SOON, |lab| lab.has(&ClientEvent::Up));
    let most = lab.client.max_io_size();
    let refused = lab.io(Direction::Read, 0, (0, most + 1), 0);
    assert_eq!(refused, Err(RequestError::TooLong { found: u64::from(most) + 1, most }));
    let refused = lab.io(Direction::Read, 0, (usize::MAX, 1), 0);
    assert_eq!(refused, Err(RequestError::Segment(0)));
    let refused = lab.ask(Direction::Write, &[0; 600], (0, 1), 0);
    assert!(matches!(refused, Err(RequestError::HeaderTooLong { found: 600, .. })));
    assert_eq!(lab.client.requests(), 0);
}

#[test]
fn invalid_session_names_are_refused() {
    for (name, is_good) in [("a-client", true), ("", false), ("a/b", false), ("a.b", false)] {
        assert_eq!(ClientConfig::new(name).check_name().is_ok(), is_good, "{name}");
    }
    assert!(ClientConfig::new("x".repeat(254)).check_name().is_ok());
    assert!(ClientConfig::new("x".repeat(255)).check_name().is_err());
}

#[test]
fn session_starts_and_ends_at_both_sides() {
    let mut lab = Lab::connected(3, 2, quick_client(), small_server());
    let names = lab.server_events.iter().filter_map(|(_, event)| match event {
        ServerEvent::SessionUp { name, .. } => Some(name.clone()),
        _ => None,
    });
    assert_eq!(names.collect::<Vec<_>>(), [b"a-client".to_vec()]);
    lab.client.close(lab.now, &mut lab.sides[0]);
    lab.run_until(SOON, |lab| lab.has(&ClientEvent::Closed));
    lab.run_for(Duration::from_secs(1));
    let is_down = |event: &ServerEvent| matches!(event, ServerEvent::SessionDown { .. });
    assert_eq!(lab.server_events.iter().filter(|(_, event)| is_down(event)).count(), 1);
    assert_eq!((lab.server.paths().count(), lab.client.paths().count()), (0, 0));
    // After the session has ended, each HCA can still create and destroy a protection domain.
    for node in lab.sides.iter_mut().flat_map(|side| &mut side.0) {
        let pd = node.hca.alloc_pd().unwrap();
        node.hca.dealloc_pd(pd).unwrap();
    }
}

#[test]
fn idle_paths_stay_connected_by_heartbeats() {
    let mut lab = Lab::connected(3, 1, quick_client(), small_server());
    lab.run_for(Duration::from_secs(600));
    assert_eq!(lab.client.path_state(lab.paths[0]), Some(PathState::Connected));
    assert_eq!(lab.server.paths().count(), 1);
    let latency = lab.client.latency(lab.paths[0]).unwrap();
    assert!(latency > Duration::from_micros(10) && latency < Duration::from_millis(1));
}
