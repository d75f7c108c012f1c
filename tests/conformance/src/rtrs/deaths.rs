//! An end is killed, and comes back.

use interop::RunError;

use super::theirs::{PATH, fio};
use super::{LIMIT, UNMAP, calm, end, map, our_client, our_server, serve, told, unserve};
use crate::rxe::Scene;

/// The guest's address.
const GUEST: &str = "192.168.77.1";

/// Our client dies in the middle of its requests, twice; each time another of the same name finds the server free.
pub(super) fn our_client_dies(scene: &mut Scene<'_>) -> Result<(), RunError> {
    serve(scene, "")?;
    let options = ["--rw", "randwrite", "--bs", "64K", "--runtime", "60", "--session", "dies"];
    for _ in 0..2 {
        let ours = our_client(scene, GUEST, &options)?;
        told(scene, "sleep 2")?;
        let ours = ours.kill()?;
        scene.checked.check(!ours.success(), || format!("it has ended before: {}", ours.output));
    }
    let options = ["--rw", "randrw", "--bs", "64K", "--verify", "--io-size", "32M", "--session"];
    let ours = our_client(scene, GUEST, &[&options[..], &["dies"]].concat())?;
    let ours = scene.succeeds(ours)?;
    scene.says(&ours, "0 errors", 1);
    unserve(scene)?;
    calm(scene)
}

/// The server's modules go while our client works, and come back: what was written stays, and nothing is forgotten.
pub(super) fn their_server_leaves(scene: &mut Scene<'_>) -> Result<(), RunError> {
    serve(scene, "")?;
    let options = ["--rw", "randrw", "--bsrange", "512-64K", "--verify", "--runtime", "12"];
    let ours = our_client(scene, GUEST, &[&options[..], &["--reconnect-delay", "300"]].concat())?;
    told(
        scene,
        "sleep 3; rmmod rnbd_server; rmmod rtrs_server; sleep 2; modprobe rtrs_server && modprobe rnbd_server",
    )?;
    let ours = scene.ends(ours, LIMIT)?;
    scene.checked.check(ours.success(), || format!("it failed: {}", ours.output));
    scene.says(&ours, " 1 reconnects", 1);
    scene.says(&ours, "0 errors, ", 1);
    scene.says(&ours, "the device is open again", 1);
    unserve(scene)?;
    calm(scene)
}

/// Our server is killed while the kernel's client writes: its requests fail, and once a server is there again the device
/// works as before, without having been opened anew.
pub(super) fn our_server_dies(scene: &mut Scene<'_>) -> Result<(), RunError> {
    let server = our_server(scene, &[])?;
    map(scene, PATH)?;
    let writes = scene.guest.start(
        "dd if=/dev/zero of=/dev/rnbd0 bs=65536 count=100000 oflag=direct 2>&1; echo ended",
    )?;
    told(scene, "sleep 2")?;
    server.kill()?;
    let writes = scene.ends(writes, LIMIT)?;
    scene.says(&writes, "ended", 1);
    scene.says(&writes, "error", 1);
    let server = our_server(scene, &[])?;
    let state = "for n in $(seq 60); do \
         grep -q '^connected' /sys/devices/virtual/rtrs-client/guest/paths/*/state && \
         grep -q '^open' /sys/block/rnbd0/rnbd/state && echo again && break; sleep 1; done";
    let again = told(scene, state)?;
    scene.says(&again, "again", 1);
    fio(scene, "--bsrange=512-256K --size=8M")?;
    told(scene, UNMAP)?;
    end(scene, server)?;
    calm(scene)
}
