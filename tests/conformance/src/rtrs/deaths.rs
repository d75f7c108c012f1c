//! An end is killed and restarted.

use std::process::Command;

use interop::RunError;

use super::theirs::{PATH, fio};
use super::{LIMIT, MEMORY, UNMAP, calm, end, map, our_client, our_server, serve, told, unserve};
use crate::rxe::Scene;

/// The guest's address.
const GUEST: &str = "192.168.77.1";

/// Our client dies in the middle of its requests. The server finds that out by the heartbeats that stay away; until then
/// nobody else may write to the device, afterwards everybody, under the same name of a session too.
pub(super) fn our_client_dies(scene: &mut Scene<'_>) -> Result<(), RunError> {
    serve(scene, "")?;
    let options =
        ["--rw", "randwrite", "--bs", "4K", "--iodepth", "4", "--runtime", "60", "--session"];
    let ours = our_client(scene, GUEST, &[&options[..], &["dies"]].concat())?;
    told(scene, "sleep 2")?;
    let ours = ours.kill()?;
    scene.checked.check(!ours.success(), || format!("it has ended before: {}", ours.output));
    let ours = our_client(scene, GUEST, &["--rw", "randwrite", "--session", "another"])?;
    let ours = scene.fails(ours)?;
    scene.says(&ours, "the server refuses device dev/vda: EPERM", 1);
    let gone = "for n in $(seq 90); do [ -e /sys/devices/virtual/rtrs-server/dies ] || break; sleep 1; done; \
         [ ! -e /sys/devices/virtual/rtrs-server/dies ] && echo gone";
    let gone = told(scene, gone)?;
    scene.says(&gone, "gone", 1);
    let options = ["--rw", "randrw", "--bs", "64K", "--verify", "--io-size", "32M", "--session"];
    let ours = our_client(scene, GUEST, &[&options[..], &["dies"]].concat())?;
    let ours = scene.succeeds(ours)?;
    scene.says(&ours, "0 errors", 1);
    unserve(scene)?;
    calm(scene)
}

/// The server's modules go while our client works, and come back: what was written stays, and no read is forgotten.
pub(super) fn their_server_leaves(scene: &mut Scene<'_>) -> Result<(), RunError> {
    serve(scene, "")?;
    let options = ["--rw", "randread", "--bsrange", "512-64K", "--runtime", "12"];
    let ours = our_client(scene, GUEST, &[&options[..], &["--reconnect-delay", "300"]].concat())?;
    told(
        scene,
        "sleep 3; rmmod rnbd_server; rmmod rtrs_server; sleep 2; modprobe rtrs_server && modprobe rnbd_server",
    )?;
    let ours = scene.ends(ours, LIMIT)?;
    scene.checked.check(ours.success(), || format!("it failed: {}", ours.output));
    scene.says(&ours, " 1 reconnect", 1);
    scene.says(&ours, "0 errors, ", 1);
    scene.says(&ours, "the device is open again", 1);
    let options = ["--rw", "randrw", "--bsrange", "512-64K", "--verify", "--io-size", "16M"];
    let ours = our_client(scene, GUEST, &options)?;
    let ours = scene.succeeds(ours)?;
    scene.says(&ours, "0 errors, ", 1);
    unserve(scene)?;
    calm(scene)
}

/// Waits until the kernel's client is connected again, writes, verifies, and takes it away.
fn works_again(scene: &mut Scene<'_>) -> Result<(), RunError> {
    let state = "for n in $(seq 60); do \
         grep -q '^connected' /sys/devices/virtual/rtrs-client/guest/paths/*/state && \
         grep -q '^open' /sys/block/rnbd0/rnbd/state && echo again && break; sleep 1; done";
    let again = told(scene, state)?;
    scene.says(&again, "again", 1);
    fio(scene, "--bsrange=512-256K --size=8M")?;
    told(scene, UNMAP)?;
    Ok(())
}

/// Our server is killed while the kernel's client writes: its requests fail, and once a server is there again the device
/// works as before, without having been opened anew.
pub(super) fn our_server_dies(scene: &mut Scene<'_>) -> Result<(), RunError> {
    let server = our_server(scene, MEMORY, &[])?;
    map(scene, PATH)?;
    let writes = scene.guest.start(
        "while dd if=/dev/zero of=/dev/rnbd0 bs=65536 count=512 oflag=direct 2>&1; do :; done; echo ended",
    )?;
    told(scene, "sleep 2")?;
    server.kill()?;
    let writes = scene.ends(writes, LIMIT)?;
    scene.says(&writes, "ended", 1);
    scene.says(&writes, "Input/output error", 1);
    let server = our_server(scene, MEMORY, &[])?;
    works_again(scene)?;
    end(scene, server)?;
    calm(scene)
}

/// The wire to the kernel's client is cut for longer than heartbeats are awaited: our server ends its session, so that
/// another client may have the device, and the kernel connects again once there is a wire.
pub(super) fn their_client_is_cut_off(scene: &mut Scene<'_>) -> Result<(), RunError> {
    let server = our_server(scene, MEMORY, &[])?;
    map(scene, PATH)?;
    fio(scene, "--bsrange=512-256K --size=8M")?;
    wire(scene, "down")?;
    server.until("session guest: ended", LIMIT)?;
    // We see at once that there is no wire; the kernel finds out by the heartbeats.
    let found_out = "for n in $(seq 90); do grep -qx connected \
         /sys/devices/virtual/rtrs-client/guest/paths/*/state || { echo found out; break; }; sleep 1; done";
    let found_out = told(scene, found_out)?;
    scene.says(&found_out, "found out", 1);
    wire(scene, "up")?;
    works_again(scene)?;
    end(scene, server)?;
    calm(scene)
}

/// Cuts the wire between the guest and us, or mends it.
fn wire(scene: &mut Scene<'_>, state: &str) -> Result<(), RunError> {
    let mut command = Command::new("ip");
    command.args(["link", "set", interop::TAP, state]);
    let running = scene.guest.start_beside(&command)?;
    scene.succeeds(running)?;
    Ok(())
}
