//! The list of test cases.

use std::process::Command;
use std::time::Duration;

use interop::RunError;

use super::theirs::{PERFTEST, UCMATOSE};
use super::{Case, Scene};

/// Returns the cases that must pass. If `self_test` is true, returns the cases with a deliberate error instead.
#[must_use]
pub fn cases(self_test: bool) -> Vec<Case> {
    if self_test {
        WRONG.to_vec()
    } else {
        [&GOOD[..], &super::ours::OURS, &UCMATOSE, &PERFTEST, &super::run::RUN].concat()
    }
}

/// Cases in which programs in the guest run with each other. They test the guest and the harness.
const GOOD: [Case; 13] = [
    Case::of_guest("the device has the path MTU of its link", path_mtu),
    Case::of_guest("concurrent commands, some of them killed", at_once),
    Case::of_guest("a program on the host reaches the guest, IPv4", |scene| {
        reach(scene, "192.168.77.1")
    }),
    Case::of_guest("a program on the host reaches the guest, IPv6", |scene| {
        reach(scene, "fd00:77::1")
    }),
    Case::of_guest("rping, IPv4", |scene| rping(scene, "0.0.0.0", "192.168.77.1")),
    Case::of_guest("rping, IPv6", |scene| rping(scene, "::", "fd00:77::1")),
    Case::of_guest("ibv_rc_pingpong", |scene| pingpong(scene, "ibv_rc_pingpong", 4096)),
    Case::of_guest("ibv_uc_pingpong", |scene| pingpong(scene, "ibv_uc_pingpong", 4096)),
    Case::of_guest("ibv_ud_pingpong", |scene| pingpong(scene, "ibv_ud_pingpong", 1024)),
    Case::of_guest("ucmatose", ucmatose),
    Case::of_guest("ib_write_bw", ib_write_bw),
    Case::of_guest("the disk is written and flushed", disk),
    Case::of_guest("RTRS and RNBD are loaded, listen, and are unloaded", rtrs),
];

const WRONG: [Case; 4] = [
    Case::of_guest("rping to a port without a listener", unheard_rping)
        .expecting_fault("RDMA_CM_EVENT_REJECTED"),
    Case::of_guest("a program that the guest does not have", unknown_program)
        .expecting_fault("ended with status 127"),
    Case::of_guest("a program that does not end", endless_program)
        .expecting_fault("did not exit within"),
    Case::of_guest("a counter that has grown", moved_counter)
        .expecting_fault("rdma_sends has grown by"),
];

/// Time limit for a server to start listening.
pub(super) const LISTENS: Duration = Duration::from_secs(10);

fn path_mtu(scene: &mut Scene<'_>) -> Result<(), RunError> {
    let shown = scene.guest.start("ibv_devinfo -d rxe0")?;
    let shown = scene.succeeds(shown)?;
    let expected = scene.link.path_mtu;
    let line = shown.output.lines().find(|line| line.contains("active_mtu")).unwrap_or_default();
    scene.checked.check(line.split_whitespace().any(|word| word == expected.to_string()), || {
        format!("expected the path MTU {expected}, found {line:?}")
    });
    Ok(())
}

fn at_once(scene: &mut Scene<'_>) -> Result<(), RunError> {
    let endless = scene.guest.start("echo begun; sleep 1000 & sleep 1000")?;
    let forgotten = scene.guest.start("sleep 1000 | sleep 1000")?;
    let sleepers: Result<Vec<_>, _> = (0..10)
        .map(|number| scene.guest.start(&format!("sleep 1; echo number {number}")))
        .collect();
    for (number, sleeper) in sleepers?.into_iter().enumerate() {
        let sleeper = scene.succeeds(sleeper)?;
        scene.checked.check(sleeper.output == format!("number {number}\n"), || {
            format!("unexpected output of {}: {:?}", sleeper.command, sleeper.output)
        });
    }
    endless.until("begun", LISTENS)?;
    drop(forgotten);
    let killed = endless.kill()?;
    scene.checked.check(killed.status == 137, || {
        format!("exit status of a killed command: {}, expected 137", killed.status)
    });
    let left = scene.guest.start("sleep 0.5; ! pgrep sleep -a -x sleep")?;
    scene.succeeds(left)?;
    Ok(())
}

fn reach(scene: &mut Scene<'_>, address: &str) -> Result<(), RunError> {
    let server = scene.guest.start("echo from the guest | nc -l -p 5000")?;
    scene.guest.await_tcp_listener(5000, LISTENS)?;
    let mut client = Command::new("bash");
    client.args(["-c", &format!("exec cat </dev/tcp/{address}/5000")]);
    let client = scene.guest.start_beside(&client)?;
    let client = scene.succeeds(client)?;
    scene.expect_lines(&client, "from the guest", 1);
    scene.succeeds(server)?;
    Ok(())
}

fn rping(scene: &mut Scene<'_>, any: &str, address: &str) -> Result<(), RunError> {
    let server = scene.guest.start(&format!("rping -s -a {any} -C 10 -v"))?;
    scene.guest.await_listener(7174, LISTENS)?;
    let client = scene.guest.start(&format!("rping -c -a {address} -C 10 -v"))?;
    let client = scene.succeeds(client)?;
    scene.expect_lines(&client, "ping data: rdma-ping-", 10);
    let server = scene.ends(server, LISTENS)?;
    scene.expect_lines(&server, "server ping data: rdma-ping-", 10);
    scene.gained("rdma_sends", 20..=100)?;
    scene.repeats_nothing()
}

fn pingpong(scene: &mut Scene<'_>, program: &str, size: u32) -> Result<(), RunError> {
    let common = format!("{program} -d rxe0 -g 1 -n 200 -s {size}");
    let server = scene.guest.start(&common)?;
    scene.guest.await_tcp_listener(18515, LISTENS)?;
    let client = scene.guest.start(&format!("{common} 192.168.77.1"))?;
    for end in [client, server] {
        let end = scene.succeeds(end)?;
        scene.expect_lines(&end, "200 iters in", 1);
    }
    // The program sets an ACK timeout of 67 ms. It may expire in a busy emulator although no packet is lost, so
    // retransmissions are permitted.
    scene.gained("retry_exceeded_err", 0..=0)
}

fn ucmatose(scene: &mut Scene<'_>) -> Result<(), RunError> {
    let server = scene.guest.start("ucmatose")?;
    scene.guest.await_listener(7471, LISTENS)?;
    let client = scene.guest.start("ucmatose -s 192.168.77.1")?;
    for end in [client, server] {
        let end = scene.succeeds(end)?;
        scene.expect_lines(&end, "data transfers complete", 1);
        scene.expect_lines(&end, "return status 0", 1);
    }
    scene.repeats_nothing()
}

fn ib_write_bw(scene: &mut Scene<'_>) -> Result<(), RunError> {
    let server = scene.guest.start("ib_write_bw -R -n 50 -s 65536")?;
    scene.guest.await_listener(18515, LISTENS)?;
    let client = scene.guest.start("ib_write_bw -R -n 50 -s 65536 192.168.77.1")?;
    for end in [client, server] {
        let end = scene.succeeds(end)?;
        scene.expect_lines(&end, " 65536      50 ", 1);
    }
    scene.gained("retry_exceeded_err", 0..=0)
}

fn disk(scene: &mut Scene<'_>) -> Result<(), RunError> {
    let copy =
        "dd if=/init of=/dev/vda bs=4096 conv=fsync && cmp -n $(stat -c %s /init) /init /dev/vda";
    let copied = scene.guest.start(copy)?;
    scene.succeeds(copied)?;
    Ok(())
}

fn rtrs(scene: &mut Scene<'_>) -> Result<(), RunError> {
    let load = "modprobe brd rd_nr=1 rd_size=65536 && modprobe rnbd_client && modprobe rnbd_server";
    let loaded = scene.guest.start(load)?;
    scene.succeeds(loaded)?;
    scene.guest.await_listener(1234, LISTENS)?;
    // `modprobe -r` also unloads the modules that only rnbd_server and rnbd_client use.
    let unloaded = scene
        .guest
        .start("modprobe -r rnbd_server rnbd_client; rmmod brd; ! lsmod | grep -E 'rtrs|rnbd'")?;
    scene.succeeds(unloaded)?;
    Ok(())
}

fn unheard_rping(scene: &mut Scene<'_>) -> Result<(), RunError> {
    let client = scene.guest.start("rping -c -a 192.168.77.1 -p 9 -C 10 -v")?;
    scene.succeeds(client)?;
    Ok(())
}

fn endless_program(scene: &mut Scene<'_>) -> Result<(), RunError> {
    let server = scene.guest.start("rping -s -a 0.0.0.0 -C 10 -v")?;
    scene.ends(server, Duration::from_secs(1))?;
    Ok(())
}

fn unknown_program(scene: &mut Scene<'_>) -> Result<(), RunError> {
    let unknown = scene.guest.start("no-such-program")?;
    scene.succeeds(unknown)?;
    Ok(())
}

fn moved_counter(scene: &mut Scene<'_>) -> Result<(), RunError> {
    rping(scene, "0.0.0.0", "192.168.77.1")?;
    scene.gained("rdma_sends", 0..=0)
}
