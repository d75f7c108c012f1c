//! Failover of requests after failures of paths.

use std::time::Duration;

use ib_rtrs::{
    AdapterId, ClientConfig, ClientEvent, Direction, EndReason, Errno, Failure, Heartbeats,
    Outcome, PathState, RequestError, Server, ServerConfig, ServerEvent,
};
use ib_types::Instant;

use crate::lab::{Lab, quick_client, small_server};
use crate::wire::PORT;

const SOON: Duration = Duration::from_secs(5);

fn down_at(lab: &Lab, link: usize) -> Option<(Instant, Failure)> {
    lab.events.iter().find_map(|(at, event)| match event {
        ClientEvent::PathDown { path, why, .. } if *path == lab.paths[link] => {
            Some((*at, why.clone()))
        }
        _ => None,
    })
}

#[test]
fn requests_in_flight_fail_over_within_five_seconds() {
    let mut lab = Lab::connected(1, 2, quick_client(), small_server());
    lab.backend = Box::new(|rng, _| Duration::from_micros(rng.below(50)));
    for user in 0..16 {
        lab.memory.fill(user as usize * 4096, 4096, user as u8 + 1).unwrap();
        lab.io(Direction::Write, user * 4096, (user as usize * 4096, 4096), user).unwrap();
    }
    lab.links[0].is_cut = true;
    let cut = lab.now;
    lab.run_until(SOON, |lab| lab.done.len() == 16);
    assert!(lab.done.iter().all(|it| it.outcome.errno().is_ok()));
    assert!(lab.now.since(cut) < SOON, "{:?}", lab.now.since(cut));
    for user in 0..16 {
        assert_eq!(lab.disk.to_vec(user * 4096, 4096).unwrap(), [user as u8 + 1; 4096]);
    }
    let (_, why) = down_at(&lab, 0).unwrap();
    assert!(matches!(why, Failure::Transport(_)), "{why}");
    assert!(lab.client.stats(lab.paths[0]).unwrap().failed_over > 0);
    let is_fenced =
        |event: &ServerEvent| matches!(event, ServerEvent::PathDown { why: EndReason::Fenced, .. });
    assert!(lab.server_events.iter().any(|(_, event)| is_fenced(event)));
    // Once the link is back, the client reconnects the path.
    lab.events.clear();
    lab.links[0].is_cut = false;
    lab.run_until(Duration::from_secs(20), |lab| lab.has(&ClientEvent::PathUp(lab.paths[0])));
}

#[test]
fn requests_are_retransmitted_only_after_the_fence() {
    let mut lab = Lab::connected(1, 2, quick_client(), small_server());
    lab.holds = true;
    for user in 0..4 {
        lab.io(Direction::Write, 0, (0, 512), user).unwrap();
    }
    lab.run_for(Duration::from_millis(10));
    // From now on, the backend executes requests. Each takes 8 s.
    lab.holds = false;
    lab.backend = Box::new(|_, _| Duration::from_secs(8));
    lab.run_for(Duration::from_millis(10));
    assert_eq!(lab.served, 4);
    lab.client.link_down(lab.now, &mut lab.sides[0], AdapterId(0));
    lab.links[0].is_cut = true;
    lab.backend = Box::new(|_, _| Duration::ZERO);
    lab.run_for(Duration::from_secs(7));
    assert_eq!((lab.served, lab.done.len()), (4, 0));
    lab.run_until(SOON, |lab| lab.done.len() == 4);
    assert!(lab.done.iter().all(|it| it.outcome.errno().is_ok()));
    assert_eq!(lab.served, 6, "two requests were in flight on the failed path");
}

#[test]
fn retransmissions_without_fences_wait_for_their_chunks() {
    let client = ClientConfig { fence: false, ..quick_client() };
    let mut lab = Lab::connected(1, 2, client, small_server());
    lab.holds = true;
    for user in 0..4 {
        lab.io(Direction::Write, 0, (0, 512), user).unwrap();
    }
    lab.run_for(Duration::from_millis(10));
    lab.holds = false;
    lab.backend = Box::new(|_, _| Duration::from_secs(8));
    lab.run_for(Duration::from_millis(10));
    lab.backend = Box::new(|_, _| Duration::ZERO);
    lab.client.link_down(lab.now, &mut lab.sides[0], AdapterId(0));
    lab.run_for(Duration::from_millis(10));
    // The server still executes the two writes of the failed path. It holds the retransmissions until these writes have
    // completed.
    let inflight =
        |lab: &Lab| lab.server.paths().filter_map(|it| lab.server.inflight(it)).sum::<u32>();
    assert_eq!((lab.served, inflight(&lab), lab.done.len()), (4, 4, 0));
    lab.run_for(Duration::from_secs(9));
    assert_eq!((lab.served, lab.done.len()), (6, 4));
    assert!(lab.done.iter().all(|it| it.outcome.errno().is_ok()));
}

/// Returns a lab in which the server executes `writes` writes. Each of them takes the time `takes`. The client does not
/// ask the server to fence failed paths, so the server completes the writes of a failed path.
fn at_work(links: usize, writes: u64, takes: Duration) -> Lab {
    let client = ClientConfig { fence: false, ..quick_client() };
    let mut lab = Lab::connected(1, links, client, small_server());
    lab.backend = Box::new(move |_, _| takes);
    for user in 0..writes {
        lab.io(Direction::Write, 0, (0, 512), user).expect("a path is connected");
    }
    lab.run_for(Duration::from_millis(10));
    assert_eq!(lab.served, writes);
    lab
}

#[test]
fn request_waiting_for_its_chunk_ends_with_its_path() {
    let mut lab = at_work(3, 6, Duration::from_secs(8));
    lab.backend = Box::new(|_, _| Duration::ZERO);
    // Path 0 fails, then path 1. Together they carry four of the six writes. The server executes each of the four
    // twice: the original, and the retransmission over path 2. When path 1 fails, the server drops a retransmission
    // that has arrived over path 1 and waits for the original to complete.
    for link in [0, 1] {
        lab.client.link_down(lab.now, &mut lab.sides[0], AdapterId(link));
        lab.links[link as usize].is_cut = true;
        lab.run_for(Duration::from_millis(10));
        assert_eq!((lab.served, lab.done.len()), (6, 0));
    }
    lab.run_for(Duration::from_secs(9));
    assert_eq!((lab.served, lab.done.len()), (10, 6));
    assert!(lab.done.iter().all(|it| it.outcome.errno().is_ok()));
}

#[test]
fn request_without_fences_and_paths_completes_as_unknown() {
    let client = ClientConfig { fence: false, ..quick_client() };
    let mut lab = Lab::connected(1, 1, client, small_server());
    lab.holds = true;
    lab.io(Direction::Write, 0, (0, 512), 1).unwrap();
    lab.client.link_down(lab.now, &mut lab.sides[0], AdapterId(0));
    lab.run_for(Duration::from_millis(1));
    assert_eq!(lab.done.len(), 1);
    assert_eq!(lab.done[0].outcome.errno(), Errno::ECONNABORTED);
}

#[test]
fn requests_with_fences_wait_for_the_only_path() {
    let mut lab = Lab::connected(1, 1, quick_client(), small_server());
    lab.holds = true;
    lab.io(Direction::Write, 0, (0, 512), 1).unwrap();
    lab.run_for(Duration::from_millis(1));
    lab.client.link_down(lab.now, &mut lab.sides[0], AdapterId(0));
    lab.holds = false;
    lab.run_until(Duration::from_secs(10), |lab| lab.done.len() == 1);
    assert_eq!(lab.done[0].outcome.errno(), Errno::OK);
}

#[test]
fn requests_of_lost_session_are_returned_if_configured() {
    let client = ClientConfig { returns_lost: true, ..quick_client() };
    let mut lab = Lab::connected(1, 2, client, small_server());
    lab.holds = true;
    for user in 0..4 {
        lab.io(Direction::Write, 0, (0, 512), user).unwrap();
    }
    lab.run_for(Duration::from_millis(1));
    for link in [0, 1] {
        lab.client.link_down(lab.now, &mut lab.sides[0], AdapterId(link));
    }
    assert!(lab.done.is_empty());
    lab.holds = false;
    lab.run_until(Duration::from_secs(10), |lab| lab.done.len() == 4);
    assert!(lab.done.iter().all(|it| it.outcome == Outcome::Fenced));
    assert_eq!(lab.events.iter().filter(|(_, it)| *it == ClientEvent::Lost).count(), 1);
    assert_eq!(lab.events.iter().filter(|(_, it)| *it == ClientEvent::Restored).count(), 1);
}

#[test]
fn port_without_link_fails_its_paths_at_once() {
    let mut lab = Lab::connected(1, 2, quick_client(), small_server());
    let before = lab.now;
    lab.client.link_down(lab.now, &mut lab.sides[0], AdapterId(1));
    lab.run_for(Duration::from_millis(1));
    assert_eq!(down_at(&lab, 1), Some((before, Failure::LinkDown)));
    assert_eq!(lab.client.path_state(lab.paths[1]), Some(PathState::Waiting));
    lab.events.clear();
    lab.client.link_up(lab.now, &mut lab.sides[0], AdapterId(1));
    lab.run_until(Duration::from_millis(100), |lab| lab.has(&ClientEvent::PathUp(lab.paths[1])));
}

#[test]
fn acknowledgements_do_not_replace_heartbeat_responses() {
    let heartbeats = Heartbeats { interval: Duration::from_secs(1), missed_max: 3 };
    let client = ClientConfig { heartbeats, ..quick_client() };
    let rare = Heartbeats { interval: Duration::from_secs(1000), missed_max: 3 };
    let server = ServerConfig { heartbeats: rare, ..small_server() };
    let mut lab = Lab::connected(1, 1, client, server);
    // The client's heartbeats are changed into acknowledgements, to which the server does not respond.
    lab.tap = Box::new(|from, _, bytes| {
        if from == 0 && bytes[0] == 0x0b && bytes[28] == 0x80 {
            bytes[28] = 0x90;
        }
        true
    });
    lab.run_until(Duration::from_secs(6), |lab| down_at(lab, 0).is_some());
    assert_eq!(down_at(&lab, 0).unwrap().1, Failure::Heartbeat);
}

#[test]
fn request_over_io_timeout_fails_its_path() {
    let timeout = Duration::from_secs(3);
    let client = ClientConfig { io_timeout: Some(timeout), ..quick_client() };
    let mut lab = Lab::connected(1, 1, client, small_server());
    lab.holds = true;
    lab.io(Direction::Write, 0, (0, 512), 1).unwrap();
    lab.run_until(SOON, |lab| down_at(lab, 0).is_some());
    assert_eq!(down_at(&lab, 0).unwrap().1, Failure::IoTimeout(timeout));
    lab.holds = false;
    lab.run_until(SOON, |lab| lab.done.len() == 1);
    assert_eq!(lab.done[0].outcome.errno(), Errno::OK);
}

#[test]
fn requests_complete_after_the_last_reconnect_attempt() {
    let client = ClientConfig { max_reconnect_attempts: Some(2), ..quick_client() };
    let mut lab = Lab::connected(1, 1, client, small_server());
    lab.holds = true;
    lab.io(Direction::Write, 0, (0, 512), 1).unwrap();
    lab.links[0].is_cut = true;
    lab.run_until(Duration::from_secs(60), |lab| lab.done.len() == 1);
    assert_eq!(lab.done[0].outcome.errno(), Errno::ECONNABORTED);
    assert_eq!(lab.client.path_state(lab.paths[0]), Some(PathState::Disconnected));
    assert_eq!(lab.client.stats(lab.paths[0]).unwrap().reconnects.failed, 2);
}

#[test]
fn reconnect_before_server_detects_failure_replaces_path() {
    let mut lab = Lab::connected(1, 1, quick_client(), small_server());
    // The client's DREQs are lost, so only the client knows that the path has failed.
    lab.tap = Box::new(|from, _, bytes| from == 1 || bytes[0] != 0x64 || bytes[37] != 0x15);
    lab.client.link_down(lab.now, &mut lab.sides[0], AdapterId(0));
    lab.run_for(Duration::from_millis(10));
    assert_eq!(lab.server.paths().count(), 1);
    lab.events.clear();
    lab.run_until(SOON, |lab| lab.has(&ClientEvent::PathUp(lab.paths[0])));
    let is_replaced = |event: &ServerEvent| {
        matches!(event, ServerEvent::PathDown { why: EndReason::Replaced, .. })
    };
    assert!(lab.server_events.iter().any(|(_, event)| is_replaced(event)));
}

#[test]
fn session_restarts_only_after_earlier_requests_completed() {
    let mut lab = Lab::connected(1, 1, quick_client(), small_server());
    lab.backend = Box::new(|_, _| Duration::from_secs(6));
    lab.io(Direction::Write, 0, (0, 512), 1).unwrap();
    lab.run_for(Duration::from_millis(1));
    let asked = lab.now;
    lab.backend = Box::new(|_, _| Duration::ZERO);
    lab.client.link_down(lab.now, &mut lab.sides[0], AdapterId(0));
    lab.events.clear();
    lab.run_until(Duration::from_secs(20), |lab| lab.has(&ClientEvent::PathUp(lab.paths[0])));
    assert!(lab.now.since(asked) >= Duration::from_millis(5999));
}

#[test]
fn server_with_other_depth_or_shorter_data_is_refused() {
    let (depth, size) = (small_server().queue_depth, small_server().max_io_size);
    for (config, why) in [
        (
            ServerConfig { queue_depth: 8, ..small_server() },
            Failure::QueueDepth { found: 8, expected: depth },
        ),
        (
            ServerConfig { max_io_size: 4096, ..small_server() },
            Failure::MaxIoSize { found: 4096, expected: size },
        ),
    ] {
        let mut lab = Lab::connected(1, 1, quick_client(), small_server());
        let mut other = Lab::new(5, 1, quick_client(), config);
        std::mem::swap(&mut lab.server, &mut other.server);
        std::mem::swap(&mut lab.sides[1], &mut other.sides[1]);
        lab.events.clear();
        lab.client.link_down(lab.now, &mut lab.sides[0], AdapterId(0));
        lab.run_for(Duration::from_secs(20));
        let event = ClientEvent::PathDown { path: lab.paths[0], why, retried: false };
        assert!(lab.has(&event), "{:?}", lab.events);
        assert_eq!(lab.client.path_state(lab.paths[0]), Some(PathState::Disconnected));
    }
}

#[test]
fn wrapped_reconnect_count_is_accepted() {
    let mut lab = Lab::new(1, 1, quick_client(), small_server());
    // The first REQ has the reconnect count 65,535. In the next REQ, the count wraps to 0.
    let shift = |bytes: &mut Vec<u8>| {
        let count = u16::from_le_bytes([bytes[230], bytes[231]]).wrapping_add(0xfffe);
        bytes[230..232].copy_from_slice(&count.to_le_bytes());
    };
    lab.tap = Box::new(move |from, _, bytes| {
        let is_cm = from == 0 && bytes[0] == 0x64;
        if is_cm && bytes[37] == 0x10 {
            shift(bytes);
        }
        // The server does not receive the DREQs.
        !(is_cm && bytes[37] == 0x15)
    });
    lab.add_path(0);
    lab.run_until(SOON, |lab| lab.has(&ClientEvent::Up));
    for _ in 0..3 {
        lab.events.clear();
        let path = lab.paths[0];
        lab.client.reconnect_path(lab.now, &mut lab.sides[0], path);
        lab.run_until(SOON, |lab| lab.has(&ClientEvent::PathUp(path)));
    }
    assert_eq!(lab.server.paths().count(), 1);
}

#[test]
fn fence_timeout_completes_requests_and_keeps_chunks() {
    let client = ClientConfig { fence_timeout: Some(Duration::from_secs(4)), ..quick_client() };
    let server = ServerConfig { queue_depth: 2, ..small_server() };
    let mut lab = Lab::connected(1, 2, client, server);
    // The backend takes 60 s for the write on the first path, much longer than the fence timeout.
    lab.backend = Box::new(|_, _| Duration::from_secs(60));
    lab.io(Direction::Write, 0, (0, 512), 1).unwrap();
    lab.run_for(Duration::from_millis(1));
    assert_eq!((lab.served, lab.client.inflight(lab.paths[0])), (1, Some(1)));
    lab.backend = Box::new(|_, _| Duration::ZERO);
    lab.client.link_down(lab.now, &mut lab.sides[0], AdapterId(0));
    let cut = lab.now;
    lab.run_until(SOON, |lab| !lab.done.is_empty());
    assert_eq!(lab.done[0].outcome, Outcome::TimedOut);
    let took = lab.now.since(cut);
    assert!((4000..4010).contains(&took.as_millis()), "{took:?}");
    // The write has timed out, but the server still executes it, so its chunk remains in use.
    lab.io(Direction::Write, 512, (512, 512), 2).unwrap();
    let refused = lab.io(Direction::Write, 512, (512, 512), 3);
    assert_eq!(refused, Err(RequestError::NoPermit(2)));
    lab.run_until(SOON, |lab| lab.done.len() == 2);
    assert_eq!((lab.client.requests(), lab.client.chunks_in_use()), (0, 1));
    lab.run_until(Duration::from_secs(70), |lab| lab.client.chunks_in_use() == 0);
    assert_eq!(lab.done.len(), 2, "requests complete once");
}

/// The server is replaced by a server without support for fences. The new server never confirms the fence for which
/// the requests in flight wait.
#[test]
fn requests_complete_if_new_server_has_no_fences() {
    let client = ClientConfig { fence_timeout: Some(Duration::from_secs(4)), ..quick_client() };
    let mut lab = Lab::connected(1, 1, client, small_server());
    lab.backend = Box::new(|_, _| Duration::from_secs(600));
    lab.io(Direction::Write, 0, (0, 512), 1).unwrap();
    lab.run_for(Duration::from_millis(1));
    assert_eq!(lab.served, 1);
    lab.server.close(lab.now, &mut lab.sides[1]);
    lab.run_for(Duration::from_secs(1));
    lab.server = Server::new(ServerConfig { fence: false, ..small_server() }, [9; 32]);
    lab.server.listen(&mut lab.sides[1], AdapterId(0), PORT).unwrap();
    let path = lab.paths[0];
    lab.run_until(Duration::from_secs(20), |lab| {
        lab.client.path_state(path) == Some(PathState::Connected)
    });
    assert!(lab.done.is_empty());
    lab.run_until(SOON, |lab| !lab.done.is_empty());
    assert_eq!(lab.done[0].outcome, Outcome::TimedOut);
}

#[test]
fn restarted_session_is_lost_despite_connected_paths() {
    let client = ClientConfig { returns_lost: true, ..quick_client() };
    let mut lab = Lab::connected(1, 2, client, small_server());
    // The server closes both paths. The client detects this only for the second path, because the first link is cut.
    lab.links[0].is_cut = true;
    let paths: Vec<_> = lab.server.paths().collect();
    for path in paths {
        lab.server.disconnect_path(lab.now, &mut lab.sides[1], path);
    }
    lab.run_for(Duration::from_millis(1));
    let connected = Some(PathState::Connected);
    assert_eq!(lab.client.path_state(lab.paths[0]), connected);
    assert_ne!(lab.client.path_state(lab.paths[1]), connected);
    // A request that is in flight on the first path completes, because its session has ended.
    lab.io(Direction::Write, 0, (0, 512), 1).unwrap();
    let path = lab.paths[1];
    lab.client.reconnect_path(lab.now, &mut lab.sides[0], path);
    lab.run_until(Duration::from_millis(100), |lab| lab.has(&ClientEvent::Restored));
    assert!(lab.has(&ClientEvent::Lost));
    assert_eq!(down_at(&lab, 0).unwrap().1, Failure::SessionRestarted);
    lab.run_until(Duration::from_millis(100), |lab| lab.done.len() == 1);
    assert_eq!(lab.done[0].outcome, Outcome::Fenced);
    // The first path reconnects to the restarted session. The client does not report another loss of the session.
    lab.events.clear();
    lab.links[0].is_cut = false;
    lab.run_until(Duration::from_secs(10), |lab| lab.has(&ClientEvent::PathUp(lab.paths[0])));
    assert!(!lab.has(&ClientEvent::Lost));
}

#[test]
fn requests_wait_while_user_has_disconnected_all_paths() {
    for removes in [false, true] {
        let mut lab = Lab::connected(1, 1, quick_client(), small_server());
        lab.holds = true;
        lab.io(Direction::Write, 0, (0, 512), 1).unwrap();
        lab.run_for(Duration::from_millis(1));
        let path = lab.paths[0];
        if removes {
            lab.client.remove_path(lab.now, &mut lab.sides[0], path);
        } else {
            lab.client.disconnect_path(lab.now, &mut lab.sides[0], path);
        }
        lab.holds = false;
        lab.run_for(SOON);
        assert!(lab.done.is_empty());
        if removes {
            lab.add_path(0);
        } else {
            lab.client.reconnect_path(lab.now, &mut lab.sides[0], path);
        }
        lab.run_until(SOON, |lab| lab.done.len() == 1);
        assert_eq!(lab.done[0].outcome.errno(), Errno::OK);
    }
    // Requests of a disconnected path complete when the session is closed.
    let mut lab = Lab::connected(1, 1, quick_client(), small_server());
    lab.holds = true;
    lab.io(Direction::Write, 0, (0, 512), 1).unwrap();
    lab.client.disconnect_path(lab.now, &mut lab.sides[0], lab.paths[0]);
    lab.run_for(SOON);
    lab.client.close(lab.now, &mut lab.sides[0]);
    lab.run_for(SOON);
    assert!(lab.has(&ClientEvent::Closed));
    assert_eq!(lab.done[0].outcome.errno(), Errno::ECONNABORTED);
}

#[test]
fn last_path_reconnects_without_failed_requests() {
    let client = ClientConfig { max_reconnect_attempts: Some(0), ..quick_client() };
    let mut lab = Lab::connected(1, 2, client, small_server());
    lab.links[0].is_cut = true;
    lab.client.link_down(lab.now, &mut lab.sides[0], AdapterId(0));
    lab.run_for(Duration::from_millis(10));
    assert_eq!(lab.client.path_state(lab.paths[0]), Some(PathState::Disconnected));
    lab.backend = Box::new(|_, _| Duration::from_secs(1));
    for user in 0..4 {
        lab.io(Direction::Write, 0, (0, 512), user).unwrap();
    }
    lab.run_for(Duration::from_millis(10));
    // The client does not reconnect the failed first path, but the user reconnects the second path.
    assert!(lab.client.reconnect_path(lab.now, &mut lab.sides[0], lab.paths[1]));
    assert_eq!(lab.done.len(), 0);
    lab.run_until(Duration::from_secs(20), |lab| lab.done.len() == 4);
    assert!(lab.done.iter().all(|it| it.outcome.errno().is_ok()), "{:?}", lab.done);
}

#[test]
fn chunks_of_abandoned_requests_wait_for_the_server() {
    for fence in [true, false] {
        let client = ClientConfig { max_reconnect_attempts: Some(0), fence, ..quick_client() };
        let mut lab = Lab::connected(1, 2, client, small_server());
        lab.backend = Box::new(|_, _| Duration::from_secs(4));
        for user in 0..4 {
            lab.io(Direction::Write, 0, (0, 512), user).unwrap();
        }
        lab.run_for(Duration::from_millis(10));
        assert_eq!(lab.served, 4);
        for link in [1, 0] {
            lab.client.link_down(lab.now, &mut lab.sides[0], AdapterId(link));
        }
        lab.run_for(Duration::from_millis(10));
        assert!(
            lab.done.iter().all(|it| it.outcome.errno() == Errno::ECONNABORTED),
            "{:?}",
            lab.done
        );
        assert_eq!((lab.done.len(), lab.client.requests()), (4, 0));
        assert_eq!(
            lab.client.chunks_in_use(),
            4,
            "the server still executes the requests in these chunks"
        );
        let back = |lab: &mut Lab, link: usize| {
            assert!(lab.client.reconnect_path(lab.now, &mut lab.sides[0], lab.paths[link]));
            lab.run_until(Duration::from_secs(20), |lab| {
                lab.client.path_state(lab.paths[link]) == Some(PathState::Connected)
            });
        };
        back(&mut lab, 0);
        back(&mut lab, 1);
        lab.run_until(Duration::from_secs(20), |lab| lab.client.chunks_in_use() == 0);
        let worked = lab.now;
        assert!(worked.since(Instant::ZERO) > Duration::from_secs(4), "fence {fence}: {worked:?}");
    }
}

/// The failed path is removed, and no fence is requested. So the client does not know whether the server still executes
/// the requests of this path.
#[test]
fn chunks_of_removed_path_are_freed_by_path_of_same_ends() {
    let mut lab = at_work(2, 4, Duration::from_secs(4));
    lab.links[1].is_cut = true;
    lab.client.link_down(lab.now, &mut lab.sides[0], AdapterId(1));
    lab.run_until(Duration::from_secs(60), |lab| lab.done.len() == 4);
    assert!(lab.done.iter().all(|it| it.outcome.errno().is_ok()), "{:?}", lab.done);
    assert!(lab.client.remove_path(lab.now, &mut lab.sides[0], lab.paths[1]));
    lab.run_for(Duration::from_secs(40));
    assert!(lab.client.chunks_in_use() > 0, "the server may still use the chunks");
    lab.links[1].is_cut = false;
    let again = lab.add_path(1);
    lab.run_until(Duration::from_secs(60), |lab| {
        lab.client.path_state(again) == Some(PathState::Connected)
    });
    assert_eq!(lab.client.chunks_in_use(), 0);
}
