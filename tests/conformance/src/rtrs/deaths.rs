//! Cases in which client or server is killed and restarted.

use std::process::Command;

use interop::RunError;

use super::theirs::{PATH, fio};
use super::{
    LIMIT, MEMORY, UNMAP, check_kernel_log, end, map, our_client, our_server, run_in_guest, serve,
    unserve,
};
use crate::rxe::Scene;

/// The guest's address.
const GUEST: &str = "192.168.77.1";

/// ibfabric's client is killed with outstanding requests. The server detects this when heartbeats are missing. Until
/// then, no other client may write to the device. Afterwards any client may, even with the same session name.
pub(super) fn our_client_dies(scene: &mut Scene<'_>) -> Result<(), RunError> {
    serve(scene, "")?;
    let options =
        ["--rw", "randwrite", "--bs", "4K", "--iodepth", "4", "--runtime", "60", "--session"];
    let ours = our_client(scene, GUEST, &[&options[..], &["dies"]].concat())?;
    run_in_guest(scene, "sleep 2")?;
    let ours = ours.kill()?;
    scene.checked.check(!ours.success(), || {
        format!("the client ended before it was killed: {}", ours.output)
    });
    let ours = our_client(scene, GUEST, &["--rw", "randwrite", "--session", "another"])?;
    let ours = scene.fails(ours)?;
    // The client retries until the time of `--connect-timeout` has passed.
    scene.expect_lines(&ours, "EPERM, another client has the device open for writing; retrying", 1);
    scene.expect_lines(&ours, "not open after 30 s: the server refuses device dev/vda: EPERM", 1);
    let gone = "for n in $(seq 90); do [ -e /sys/devices/virtual/rtrs-server/dies ] || break; sleep 1; done; \
         [ ! -e /sys/devices/virtual/rtrs-server/dies ] && echo gone";
    let gone = run_in_guest(scene, gone)?;
    scene.expect_lines(&gone, "gone", 1);
    let options = ["--rw", "randrw", "--bs", "64K", "--verify", "--io-size", "32M", "--session"];
    let ours = our_client(scene, GUEST, &[&options[..], &["dies"]].concat())?;
    let ours = scene.succeeds(ours)?;
    scene.expect_lines(&ours, "0 errors", 1);
    unserve(scene)?;
    check_kernel_log(scene)
}

/// The server's modules are unloaded and loaded again while ibfabric's client reads. No read fails.
pub(super) fn their_server_leaves(scene: &mut Scene<'_>) -> Result<(), RunError> {
    serve(scene, "")?;
    let options = ["--rw", "randread", "--bsrange", "512-64K", "--runtime", "12"];
    let ours = our_client(scene, GUEST, &[&options[..], &["--reconnect-delay", "300"]].concat())?;
    run_in_guest(
        scene,
        "sleep 3; rmmod rnbd_server; rmmod rtrs_server; sleep 2; modprobe rtrs_server && modprobe rnbd_server",
    )?;
    let ours = scene.ends(ours, LIMIT)?;
    scene.checked.check(ours.success(), || format!("the client failed: {}", ours.output));
    scene.expect_lines(&ours, " 1 reconnect", 1);
    scene.expect_lines(&ours, "0 errors, ", 1);
    scene.expect_lines(&ours, "the device is open again", 1);
    let options = ["--rw", "randrw", "--bsrange", "512-64K", "--verify", "--io-size", "16M"];
    let ours = our_client(scene, GUEST, &options)?;
    let ours = scene.succeeds(ours)?;
    scene.expect_lines(&ours, "0 errors, ", 1);
    unserve(scene)?;
    check_kernel_log(scene)
}

/// Waits until the kernel's client is connected again. Then writes data, verifies it, and unmaps the device.
fn works_again(scene: &mut Scene<'_>) -> Result<(), RunError> {
    let state = "for n in $(seq 60); do \
         grep -q '^connected' /sys/devices/virtual/rtrs-client/guest/paths/*/state && \
         grep -q '^open' /sys/block/rnbd0/rnbd/state && echo again && break; sleep 1; done";
    let again = run_in_guest(scene, state)?;
    scene.expect_lines(&again, "again", 1);
    fio(scene, "--bsrange=512-256K --size=8M")?;
    run_in_guest(scene, UNMAP)?;
    Ok(())
}

/// ibfabric's server is killed while the kernel's client writes. The client's requests fail. After a restart of the
/// server, the device works without being mapped again.
pub(super) fn our_server_dies(scene: &mut Scene<'_>) -> Result<(), RunError> {
    let server = our_server(scene, MEMORY, &[])?;
    map(scene, PATH)?;
    let writes = scene.guest.start(
        "while dd if=/dev/zero of=/dev/rnbd0 bs=65536 count=512 oflag=direct 2>&1; do :; done; echo ended",
    )?;
    run_in_guest(scene, "sleep 2")?;
    server.kill()?;
    let writes = scene.ends(writes, LIMIT)?;
    scene.expect_lines(&writes, "ended", 1);
    scene.expect_lines(&writes, "Input/output error", 1);
    let server = our_server(scene, MEMORY, &[])?;
    works_again(scene)?;
    end(scene, server)?;
    check_kernel_log(scene)
}

/// The link to the kernel's client is down for longer than the heartbeat timeout. ibfabric's server closes the session,
/// so that another client may use the device. When the link is up again, the kernel reconnects.
pub(super) fn their_client_is_cut_off(scene: &mut Scene<'_>) -> Result<(), RunError> {
    let server = our_server(scene, MEMORY, &[])?;
    map(scene, PATH)?;
    fio(scene, "--bsrange=512-256K --size=8M")?;
    wire(scene, "down")?;
    server.until("session guest: ended", LIMIT)?;
    // ibfabric's server has detected that its link is down. The kernel's client detects the lost link when heartbeats
    // are missing.
    let found_out = "for n in $(seq 90); do grep -qx connected \
         /sys/devices/virtual/rtrs-client/guest/paths/*/state || { echo found out; break; }; sleep 1; done";
    let found_out = run_in_guest(scene, found_out)?;
    scene.expect_lines(&found_out, "found out", 1);
    wire(scene, "up")?;
    works_again(scene)?;
    end(scene, server)?;
    check_kernel_log(scene)
}

/// Sets the guest's network link up or down.
fn wire(scene: &mut Scene<'_>, state: &str) -> Result<(), RunError> {
    let mut command = Command::new("ip");
    command.args(["link", "set", interop::TAP, state]);
    let running = scene.guest.start_beside(&command)?;
    scene.succeeds(running)?;
    Ok(())
}
