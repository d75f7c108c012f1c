//! Tests of the status with which commands complete after the loss of their path or session.

use std::time::Duration;

use ib_block::{Command, Errno, Operation};
use ib_rnbd::{DeviceId, ExportId, OpenError, RemoteEvent};
use ib_rtrs::{ClientConfig, ClientEvent, ServerConfig};
use ib_wire::rnbd::AccessMode;

use crate::lab::{Lab, NAMES};

const SECOND: Duration = Duration::from_secs(1);

fn command(operation: Operation) -> Command {
    Command { operation, offset: 0, length: 1024, fua: false }
}

/// Returns a lab with an open device. The device takes ten seconds for each command.
fn slow(links: usize, client: ClientConfig, server: ServerConfig) -> (Lab, DeviceId) {
    let client = ClientConfig { reconnect_delay: SECOND, ..client };
    // The seed selects the first value of `lab::DEPTHS`, so the client can have several commands in flight.
    let mut lab = Lab::new(4, links, vec![client], server);
    let device = lab.open(0, NAMES[0], AccessMode::READ_WRITE);
    lab.run_until(10 * SECOND, |lab| (0..links).all(|link| lab.guests[0].is_up(link)));
    lab.backend = Box::new(|_, _| 10 * SECOND);
    (lab, device)
}

fn server() -> ServerConfig {
    ServerConfig {
        queue_depth: 8,
        max_io_size: 15_360,
        max_header_size: 1024,
        ..ServerConfig::default()
    }
}

/// Submits a command, and runs until the device has started it.
fn ask(lab: &mut Lab, device: DeviceId, number: u64, operation: Operation) {
    let data = if operation == Operation::Write { vec![number as u8; 1024] } else { Vec::new() };
    lab.guests[0].remote.submit(device, number, command(operation), &data);
    lab.run_for(Duration::from_millis(1));
}

/// Loses the only path while four commands are in flight. Returns the number and the status of each command.
fn after_a_loss(fence: bool) -> Vec<(u64, Errno)> {
    let server = ServerConfig { fence, ..server() };
    let (mut lab, device) = slow(1, ClientConfig::new("guest"), server);
    let asked = [Operation::Read, Operation::Write, Operation::Flush, Operation::Discard];
    for (number, operation) in (1..).zip(asked) {
        ask(&mut lab, device, number, operation);
    }
    lab.backend = Box::new(|_, _| Duration::ZERO);
    lab.link_down(0, 0);
    lab.run_for(Duration::from_millis(1));
    assert_eq!(lab.count(0, &ClientEvent::Lost), 1);
    lab.link_up(0, 0);
    lab.run_until(60 * SECOND, |lab| lab.guests[0].done.len() == asked.len());
    let mut done: Vec<_> = lab.guests[0].done.iter().map(|it| (it.0, it.1)).collect();
    done.sort_unstable();
    done
}

#[test]
fn changes_are_not_retransmitted_after_loss_without_fences() {
    let unknown = Errno::ECONNABORTED;
    let expected = [(1, Errno::OK), (2, unknown), (3, Errno::OK), (4, unknown)];
    assert_eq!(after_a_loss(false), expected);
}

#[test]
fn all_commands_are_retransmitted_after_loss_with_fences() {
    assert_eq!(after_a_loss(true), [1, 2, 3, 4].map(|number| (number, Errno::OK)));
}

/// A write is not retransmitted after a restart of the server, since other clients may have written.
#[test]
fn write_is_not_retransmitted_after_restart_of_server() {
    for (fence, is_known_before, expected) in
        [(true, true, Errno::EIO), (true, false, Errno::EIO), (false, false, Errno::ECONNABORTED)]
    {
        let server = ServerConfig { fence, ..server() };
        let (mut lab, device) = slow(3, ClientConfig::new("guest"), server);
        ask(&mut lab, device, 1, Operation::Write);
        lab.backend = Box::new(|_, _| Duration::ZERO);
        let (used, others): (Vec<usize>, Vec<usize>) = (0..3).partition(|&link| {
            lab.guests[0].remote.rtrs().inflight(lab.guests[0].paths[link]) == Some(1)
        });
        let fail = |lab: &mut Lab| {
            lab.guests[0].links[used[0]].is_cut = true;
            lab.link_down(0, used[0]);
            lab.run_for(Duration::from_millis(1));
        };
        if is_known_before {
            fail(&mut lab);
        }
        // Another path reconnects. From then on, the client cannot exclude that the server has lost its session state,
        // although a path was always connected.
        lab.link_down(0, others[0]);
        lab.run_for(Duration::from_millis(1));
        lab.link_up(0, others[0]);
        lab.run_until(5 * SECOND, |lab| lab.guests[0].is_up(others[0]));
        lab.number_of_server = 2;
        lab.offer(1);
        ask(&mut lab, device, 2, Operation::Read);
        lab.run_until(SECOND, |lab| lab.guests[0].done.len() == 1);
        if !is_known_before {
            fail(&mut lab);
        }
        ask(&mut lab, device, 3, Operation::Write);
        lab.run_until(60 * SECOND, |lab| lab.guests[0].done.len() == 3);
        let mut done: Vec<_> = lab.guests[0].done.iter().map(|it| (it.0, it.1)).collect();
        done.sort_unstable();
        assert_eq!(done, [(1, expected), (2, Errno::OK), (3, Errno::OK)]);
    }
}

/// A server like Linux has lost its session state. A write with an old device number arrives late over another path.
#[test]
fn late_write_does_not_reach_next_device_of_its_number() {
    let server = ServerConfig { fence: false, ..server() };
    let client = ClientConfig { reconnect_delay: SECOND, ..ClientConfig::new("guest") };
    let mut lab = Lab::new(4, 3, vec![client], server);
    lab.is_linux = true;
    let devices = NAMES.map(|name| lab.open(0, name, AccessMode::READ_WRITE));
    lab.run_until(SECOND, |lab| (0..3).all(|link| lab.guests[0].is_up(link)));
    // The Linux server numbers devices in the order of opening. Since the first device is closed here, the other
    // devices get lower numbers in the next session.
    lab.guests[0].links[2].delay = Duration::from_millis(2);
    lab.guests[0].remote.close(devices[0]);
    lab.link_down(0, 1);
    lab.run_until(SECOND, |lab| !lab.guests[0].is_up(1));
    lab.link_up(0, 1);
    lab.run_until(60 * SECOND, |lab| lab.guests[0].is_up(1));
    lab.offer(1);
    let late = |lab: &mut Lab, is_cut| lab.guests[0].links[0].is_cut = is_cut;
    late(&mut lab, true);
    ask(&mut lab, devices[1], 1, Operation::Write);
    assert_eq!(lab.guests[0].remote.rtrs().inflight(lab.guests[0].paths[0]), Some(1));
    ask(&mut lab, devices[2], 2, Operation::Read);
    lab.run_for(Duration::from_millis(20));
    late(&mut lab, false);
    lab.run_until(60 * SECOND, |lab| lab.guests[0].done.len() == 2);
    assert!(lab.guests[0].done.iter().all(|it| it.1.is_ok()), "{:?}", lab.guests[0].done);
    let written = [0, 1, 2].map(|disk: usize| lab.disks[disk].cached.contains(&1));
    assert_eq!(written, [false, true, false]);
}

/// A message that waits for a permit while the server loses its state is not sent with the old device number.
#[test]
fn held_message_is_not_sent_with_an_old_number() {
    let (mut lab, device) = slow(2, ClientConfig::new("guest"), server());
    lab.link_down(0, 1);
    lab.run_until(SECOND, |lab| !lab.guests[0].is_up(1));
    lab.link_up(0, 1);
    lab.run_until(60 * SECOND, |lab| lab.guests[0].is_up(1));
    // Uses all permits but one.
    for number in 0..7 {
        ask(&mut lab, device, number, Operation::Read);
    }
    lab.backend = Box::new(|_, _| Duration::ZERO);
    lab.offer(1);
    lab.guests[0].remote.submit(device, 7, command(Operation::Read), &[]);
    ask(&mut lab, device, 8, Operation::Read);
    lab.run_until(60 * SECOND, |lab| lab.guests[0].done.len() == 9);
    assert!(lab.guests[0].done.iter().all(|it| it.1.is_ok()), "{:?}", lab.guests[0].done);
    assert_eq!(lab.unknown, 1, "only command 7 had the old device number");
}

/// If a command for a device that the user has closed fails with ENOTCONN, the client does not reopen other devices.
#[test]
fn closed_device_does_not_cause_reopening_of_others() {
    let (mut lab, device) = slow(2, ClientConfig::new("guest"), server());
    let other = lab.open(0, NAMES[1], AccessMode::READ_WRITE);
    lab.link_down(0, 1);
    lab.run_until(SECOND, |lab| !lab.guests[0].is_up(1));
    lab.link_up(0, 1);
    lab.run_until(60 * SECOND, |lab| lab.guests[0].is_up(1));
    lab.offer(1);
    for link in [0, 1] {
        lab.guests[0].links[link].delay = Duration::from_millis(5);
    }
    ask(&mut lab, device, 1, Operation::Read);
    lab.guests[0].remote.close(device);
    lab.run_for(SECOND);
    assert_eq!(lab.unknown, 1, "the device of the read is not open at the server");
    assert_eq!(lab.guests[0].done.iter().map(|it| it.1).collect::<Vec<_>>(), [Errno::ENODEV]);
    let is_other = |event: &RemoteEvent| matches!(event, RemoteEvent::Opened(id, _) | RemoteEvent::Refused(id, _) if *id == other);
    assert_eq!(lab.guests[0].events.iter().filter(|(_, event)| is_other(event)).count(), 1);
}

/// A device is closed at the server only after its commands in flight have completed.
#[test]
fn device_is_closed_after_its_commands_in_flight() {
    let (mut lab, device) = slow(2, ClientConfig::new("guest"), server());
    ask(&mut lab, device, 1, Operation::Write);
    lab.backend = Box::new(|_, _| Duration::ZERO);
    lab.guests[0].remote.close(device);
    let again =
        lab.guests[0].remote.open(NAMES[1], AccessMode::READ_WRITE).expect("the name is valid");
    lab.run_for(5 * SECOND);
    assert!(!lab.guests[0].is_open(again) && lab.guests[0].done.is_empty());
    let open = |lab: &Lab, export| lab.rnbd.openers(ExportId(export));
    assert_eq!([open(&lab, 0), open(&lab, 1)], [1, 0]);
    lab.run_until(60 * SECOND, |lab| lab.guests[0].is_open(again));
    assert_eq!([open(&lab, 0), open(&lab, 1)], [0, 1]);
    assert_eq!(lab.guests[0].done.iter().map(|it| it.1).collect::<Vec<_>>(), [Errno::OK]);
}

/// Open messages that wait for a buffer are sent, even if another path connects in the meantime.
#[test]
fn waiting_devices_are_opened_after_the_last_path_connects() {
    const MANY: usize = 400;
    let client = ClientConfig { reconnect_delay: SECOND, ..ClientConfig::new("guest") };
    let mut lab = Lab::new(4, 2, vec![client], server());
    lab.guests[0].links[1].is_cut = true;
    let first =
        lab.guests[0].remote.open(NAMES[0], AccessMode::READ_WRITE).expect("the name is valid");
    lab.run_until(10 * SECOND, |lab| lab.guests[0].is_up(0));
    lab.link_down(0, 0);
    lab.run_until(SECOND, |lab| !lab.guests[0].is_up(0));
    lab.link_up(0, 0);
    lab.run_until(60 * SECOND, |lab| lab.guests[0].is_open(first));
    // Packets over the first link take 20 ms, so the second path connects before all devices are open.
    lab.guests[0].links[0].delay = Duration::from_millis(20);
    let open =
        |_| lab.guests[0].remote.open(NAMES[1], AccessMode::READ_WRITE).expect("the name is valid");
    let devices: Vec<DeviceId> = (0..MANY).map(open).collect();
    lab.guests[0].links[1].is_cut = false;
    lab.run_until(60 * SECOND, |lab| lab.count(0, &ClientEvent::Up) == 1);
    assert!(devices.iter().any(|&device| !lab.guests[0].is_open(device)), "all devices are open");
    lab.run_until(60 * SECOND, |lab| devices.iter().all(|&it| lab.guests[0].is_open(it)));
}

#[test]
fn stuck_device_fails_commands_that_wait_for_its_fence() {
    let client = ClientConfig { fence_timeout: Some(2 * SECOND), ..ClientConfig::new("guest") };
    let (mut lab, device) = slow(2, client, server());
    ask(&mut lab, device, 1, Operation::Write);
    lab.backend = Box::new(|_, _| Duration::ZERO);
    for link in [0, 1] {
        if lab.guests[0].remote.rtrs().inflight(lab.guests[0].paths[link]) == Some(1) {
            lab.link_down(0, link);
        }
    }
    let begun = lab.now;
    lab.run_until(3 * SECOND, |lab| !lab.guests[0].done.is_empty());
    assert_eq!(lab.guests[0].done[0].1, Errno::ETIMEDOUT);
    assert!(lab.now.since(begun) >= 2 * SECOND);
    // While the device still executes the first command, another command for it succeeds.
    ask(&mut lab, device, 2, Operation::Read);
    lab.run_until(SECOND, |lab| lab.guests[0].done.len() == 2);
    assert_eq!(lab.guests[0].done[1].1, Errno::OK);
}

#[test]
fn queued_commands_fail_after_the_last_reconnect_attempt() {
    let client = ClientConfig { max_reconnect_attempts: Some(1), ..ClientConfig::new("guest") };
    let (mut lab, device) = slow(1, client, server());
    ask(&mut lab, device, 1, Operation::Read);
    lab.guests[0].links[0].is_cut = true;
    lab.run_until(100 * SECOND, |lab| lab.guests[0].done.len() == 1);
    ask(&mut lab, device, 2, Operation::Read);
    lab.run_until(100 * SECOND, |lab| lab.guests[0].done.len() == 2);
    assert!(lab.guests[0].done.iter().all(|it| it.1 == Errno::ECONNABORTED));
}

#[test]
fn device_reopens_after_close_despite_slow_path() {
    let (mut lab, mut device) = slow(2, ClientConfig::new("guest"), server());
    lab.backend = Box::new(|_, _| Duration::ZERO);
    // Packets take longer over the first path than over the second one.
    lab.guests[0].links[0].delay = Duration::from_millis(3);
    for number in 0..20 {
        lab.guests[0].remote.close(device);
        device = lab.open(0, NAMES[0], AccessMode::READ_WRITE);
        ask(&mut lab, device, number, Operation::Read);
        lab.run_until(SECOND, |lab| lab.guests[0].done.len() as u64 == number + 1);
    }
    assert!(lab.guests[0].done.iter().all(|it| it.1.is_ok()));
}

/// The data that a server still has after the loss of a session, and what the server reports about this data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// The server has kept all data, and reports no restart.
    Same,
    /// The server's machine was restarted, and the server reports the restart.
    Restarted,
    /// The server's machine was restarted, and the device no longer has a write cache.
    WithoutCache,
    /// A Linux server, which does not report restarts. The value is true if the client trusts the server to keep data.
    Linux(bool),
}

/// Cuts the only path of the only client, calls `meanwhile`, and repairs the path. Returns after the client has
/// reconnected it.
fn lose(lab: &mut Lab, meanwhile: impl FnOnce(&mut Lab)) {
    lab.link_down(0, 0);
    lab.run_for(Duration::from_millis(100));
    meanwhile(lab);
    lab.link_up(0, 0);
    lab.run_until(60 * SECOND, |lab| lab.guests[0].is_up(0));
    lab.run_for(SECOND);
}

#[test]
fn flush_fails_once_if_cached_writes_may_be_lost() {
    let (write, flush) = (command(Operation::Write), Command::FLUSH);
    let through = Command { fua: true, ..write };
    let (all, lost) = ([Errno::OK; 2], [Errno::EIO, Errno::OK]);
    for (after, before, expected) in [
        (After::Same, &[write][..], all),
        (After::Restarted, &[write], lost),
        (After::Linux(false), &[write], lost),
        (After::Linux(true), &[write], all),
        (After::Restarted, &[], all),
        (After::Restarted, &[write, flush], all),
        (After::Restarted, &[through], all),
        (After::Restarted, &[write, flush, command(Operation::Discard)], lost),
        (After::Linux(false), &[write, flush, write], lost),
        (After::WithoutCache, &[write], lost),
    ] {
        let client = ClientConfig { reconnect_delay: SECOND, ..ClientConfig::new("guest") };
        let mut lab = Lab::new(1, 1, Vec::new(), server());
        lab.is_linux = matches!(after, After::Linux(_));
        lab.add_guest(0, 1, (client, after == After::Linux(true)));
        let device = lab.open(0, NAMES[0], AccessMode::READ_WRITE);
        let mut number = 0;
        let mut ask = |lab: &mut Lab, command: Command| {
            number += 1;
            let data = vec![7; if command.operation == Operation::Write { 1024 } else { 0 }];
            lab.guests[0].remote.submit(device, number, command, &data);
            lab.run_until(SECOND, |lab| lab.guests[0].done.len() as u64 == number);
            lab.guests[0].done.last().expect("the command has completed").1
        };
        for &command in before {
            assert_eq!(ask(&mut lab, command), Errno::OK);
        }
        lose(&mut lab, |lab| {
            lab.caches = after != After::WithoutCache;
            lab.offer(if matches!(after, After::Restarted | After::WithoutCache) { 2 } else { 1 });
        });
        assert_eq!([(); 2].map(|()| ask(&mut lab, flush)), expected, "{after:?} {before:?}");
        // Only unflushed changes can be lost. No write has followed the flushes, so the second loss of the session has
        // no effect.
        lose(&mut lab, |lab| lab.offer(3));
        assert_eq!(ask(&mut lab, flush), Errno::OK, "{after:?} {before:?}");
    }
}

#[test]
fn flush_in_flight_during_loss_fails_too() {
    let (mut lab, device) = slow(1, ClientConfig::new("guest"), server());
    lab.backend = Box::new(|_, _| Duration::ZERO);
    ask(&mut lab, device, 1, Operation::Write);
    lab.backend = Box::new(|_, _| SECOND);
    ask(&mut lab, device, 2, Operation::Flush);
    lose(&mut lab, |lab| lab.offer(2));
    lab.run_until(10 * SECOND, |lab| lab.guests[0].done.len() == 2);
    let done: Vec<Errno> = lab.guests[0].done.iter().map(|it| it.1).collect();
    assert_eq!(done, [Errno::OK, Errno::EIO]);
}

#[test]
fn reopening_waits_for_another_writer_for_limited_time() {
    for leaves in [true, false] {
        let config = |name| ClientConfig { reconnect_delay: SECOND, ..ClientConfig::new(name) };
        let mut lab = Lab::new(1, 1, vec![config("first"), config("second")], server());
        let device = lab.open(0, NAMES[0], AccessMode::READ_WRITE);
        let mut other = None;
        lose(&mut lab, |lab| {
            let device = lab.open(1, NAMES[0], AccessMode::READ_WRITE);
            lab.guests[1].remote.submit(device, 1, command(Operation::Discard), b"");
            other = Some(device);
        });
        lab.guests[0].remote.submit(device, 1, command(Operation::Read), b"");
        lab.run_for(20 * SECOND);
        assert!(lab.guests[0].done.is_empty(), "the read waits");
        if leaves {
            lab.guests[1].remote.close(other.expect("the device was opened"));
        }
        lab.run_for(15 * SECOND);
        // If the second client has closed the device, the first client detects that the second one has written to it.
        // Otherwise, the server refuses to open the device for the first client.
        let errno = if leaves { Errno::EIO } else { Errno::EPERM };
        assert_eq!(lab.guests[0].done.iter().map(|it| it.1).collect::<Vec<_>>(), [errno]);
        let is_told = |event: &RemoteEvent| match event {
            RemoteEvent::Refused(_, OpenError::OtherData { .. }) => leaves,
            RemoteEvent::Refused(_, OpenError::Refused { errno: Errno::EPERM, .. }) => !leaves,
            _ => false,
        };
        let count = lab.guests[0].events.iter().filter(|(_, event)| is_told(event)).count();
        assert_eq!(count, 1);
    }
}

#[test]
fn reader_and_single_writer_continue_after_loss() {
    let config = |name| ClientConfig { reconnect_delay: SECOND, ..ClientConfig::new(name) };
    let (reads, writes) = (AccessMode::READ_ONLY, AccessMode::READ_WRITE);
    for (mode, other, other_writes) in
        [(reads, writes, true), (writes, reads, false), (writes, writes, false)]
    {
        let mut lab = Lab::new(1, 1, vec![config("first"), config("second")], server());
        let device = lab.open(0, NAMES[0], mode);
        lose(&mut lab, |lab| {
            let other = lab.open(1, NAMES[0], other);
            if other_writes {
                lab.guests[1].remote.submit(other, 9, command(Operation::Discard), b"");
                lab.run_for(Duration::from_millis(10));
            }
            lab.guests[1].remote.close(other);
        });
        ask(&mut lab, device, 1, Operation::Read);
        lab.run_until(SECOND, |lab| lab.guests[0].done.len() == 1);
        assert_eq!(lab.guests[0].done[0].1, Errno::OK, "{mode:?}");
    }
}

#[test]
fn device_errors_are_not_path_failures() {
    for errno in [Errno::ECONNABORTED, Errno::ETIMEDOUT] {
        let (mut lab, device) = slow(1, ClientConfig::new("guest"), server());
        lab.backend = Box::new(|_, _| Duration::ZERO);
        lab.device_says = errno;
        ask(&mut lab, device, 1, Operation::Read);
        lab.run_until(SECOND, |lab| lab.guests[0].done.len() == 1);
        assert_eq!(lab.guests[0].done[0].1, errno);
    }
}

#[test]
fn devices_are_reopened_a_limited_number_of_times() {
    // If no path has reconnected, the server still has the session. ENOTCONN then means that the administrator of the
    // server has closed the device, so the client does not reopen it.
    for (forgets, connects) in [(false, true), (true, true), (false, false)] {
        let (mut lab, device) = slow(2, ClientConfig::new("guest"), server());
        lab.backend = Box::new(|_, _| Duration::ZERO);
        lab.run_until(SECOND, |lab| lab.guests[0].is_up(0) && lab.guests[0].is_up(1));
        if connects {
            lab.link_down(0, 1);
            lab.run_until(SECOND, |lab| !lab.guests[0].is_up(1));
            lab.link_up(0, 1);
            lab.run_until(60 * SECOND, |lab| lab.guests[0].is_up(1));
        }
        // The session continues, but the server has closed all devices.
        lab.offer(1);
        if forgets {
            lab.device_says = Errno::ENOTCONN;
        }
        ask(&mut lab, device, 1, Operation::Read);
        lab.run_until(SECOND, |lab| lab.guests[0].done.len() == 1);
        let errno = if forgets || !connects { Errno::ENOTCONN } else { Errno::OK };
        assert_eq!(lab.guests[0].done[0].1, errno);
        assert_eq!(lab.count(0, &ClientEvent::Lost), 0);
    }
}

#[test]
fn refused_device_opens_once_its_writer_has_closed_it() {
    let config = |name| ClientConfig::new(name);
    let mut lab = Lab::new(1, 1, vec![config("first"), config("second")], server());
    let writer = lab.open(0, NAMES[0], AccessMode::READ_WRITE);
    let waits =
        lab.guests[1].remote.open(NAMES[0], AccessMode::READ_WRITE).expect("the name is valid");
    let refusals = |lab: &Lab| {
        let is_refusal = |event: &&(_, RemoteEvent)| matches!(&event.1, RemoteEvent::Refused(id, why) if *id == waits && why.is_temporary());
        lab.guests[1].events.iter().filter(is_refusal).count()
    };
    lab.run_until(10 * SECOND, |lab| refusals(lab) == 1);
    lab.guests[1].remote.retry_open(waits);
    lab.run_until(SECOND, |lab| refusals(lab) == 2);
    lab.guests[0].remote.close(writer);
    lab.run_for(SECOND);
    lab.guests[1].remote.retry_open(waits);
    lab.run_until(SECOND, |lab| lab.guests[1].is_open(waits));
}
