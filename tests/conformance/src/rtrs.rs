//! RTRS and RNBD of a guest's kernel, and `ibfabric rtrs`, as client and as server.
//!
//! | module | holds |
//! |---|---|
//! | `ours` | cases with ibfabric's client, and a disk of the guest |
//! | `theirs` | cases with the kernel's client |
//! | `deaths` | cases with an end that is killed and restarted |
//! | `idle` | the case of an idle session |
//!
//! A case unloads all modules that it has loaded. Cases of a whole run transfer a GiB and wait ten minutes, others a part
//! of that.

mod deaths;
mod idle;
mod ours;
mod theirs;

use std::time::Duration;

use interop::{Finished, RunError, Running};

use crate::rxe::{Case, Scene};

/// What is tried.
pub const CASES: [Case; 20] = [
    Case::with_ours("our client, their server", |scene| ours::verify(scene, "", &[])),
    Case::with_ours("our client, their server, keys that stay, depth 64", |scene| {
        ours::verify(scene, "always_invalidate=N sess_queue_depth=64", &[])
    }),
    Case::with_ours("our client, their server, depth 1, one connection", |scene| {
        ours::verify(scene, "sess_queue_depth=1", &["--connections", "2"])
    }),
    Case::with_ours("our client, their server, keys that stay, depth 1", |scene| {
        ours::verify(scene, "always_invalidate=N sess_queue_depth=1", &[])
    }),
    Case::with_ours("our client, their server, which invalidates", |scene| {
        ours::verify(scene, "sess_queue_depth=64", &["--need-invalidation"])
    }),
    Case::with_ours("our client, their server, IPv6", ours::version_6),
    Case::with_ours("our client, their server, which closes the path", ours::closed),
    Case::with_ours("our client asks for what is not there", ours::refused),
    Case::with_ours("their client, our server", |scene| theirs::verify(scene, MEMORY, &[])),
    Case::with_ours("their client, our server, keys that stay, depth 64", |scene| {
        theirs::verify(scene, MEMORY, &["--no-always-invalidate", "--queue-depth", "64"])
    }),
    // With a depth of 1 it waits for ever for its first request, also beside its own server. With 2 it comes to a stop in the
    // course of a GiB: all that it has asked for is answered and acknowledged, and it asks for nothing more.
    Case::with_ours("their client, our server, depth 2", |scene| {
        scene.whole = false;
        theirs::verify(scene, MEMORY, &["--queue-depth", "2"])
    }),
    Case::with_ours("their client, our server, a file that is flushed", theirs::file),
    Case::with_ours("their client, our server, two paths that are connected anew", theirs::paths),
    Case::with_ours("their client asks for what is not there", theirs::refused),
    Case::with_ours("our client is killed and returns", deaths::our_client_dies),
    Case::with_ours("their server is unloaded and returns", deaths::their_server_leaves),
    Case::with_ours("our server is killed and returns", deaths::our_server_dies),
    Case::with_ours("their client is cut off and returns", deaths::their_client_is_cut_off),
    Case::with_ours("both ways, idle", idle::both_ways),
    // Soft RoCE of the guest makes no connections afterwards.
    Case::with_ours("our client, their server, which closes one of two paths", ours::fails_over),
];

/// How long a command may take.
const LIMIT: Duration = Duration::from_secs(120);

/// How long one may take that moves much.
const LONG: Duration = Duration::from_secs(1200);

/// Where the kernel's client is told what to do.
const CONTROL: &str = "/sys/devices/virtual/rnbd-client/ctl/map_device";

/// The kernel's client at an end of its work.
const UNMAP: &str = "echo normal >/sys/block/rnbd0/rnbd/unmap_device; sleep 1; \
     rmmod rnbd_client; rmmod rtrs_client; [ -e /sys/module/rtrs_server ] || rmmod rtrs_core";

/// Loads the kernel's server.
fn serve(scene: &mut Scene<'_>, parameters: &str) -> Result<(), RunError> {
    told(scene, &format!("modprobe rtrs_server {parameters} && modprobe rnbd_server"))?;
    Ok(())
}

/// Takes the kernel's server away again.
fn unserve(scene: &mut Scene<'_>) -> Result<(), RunError> {
    told(scene, "sleep 1; rmmod rnbd_server; rmmod rtrs_server; rmmod rtrs_core")?;
    Ok(())
}

/// Has the kernel's client open our device, over paths from the guest's addresses.
fn map(scene: &mut Scene<'_>, paths: &str) -> Result<(), RunError> {
    let command = format!(
        "modprobe rtrs_client && modprobe rnbd_client && \
         until ping -c 1 -W 1 192.168.77.2 >/dev/null; do sleep 0.2; done && \
         echo 'sessname=guest {paths} device_path=disk0 access_mode=rw' >{CONTROL} && sleep 1"
    );
    told(scene, &command)?;
    Ok(())
}

/// Where the data of our server's device of 64 MiB lies in most cases.
const MEMORY: &str = "mem:64M";

/// Starts our server, and waits until it listens.
fn our_server(scene: &Scene<'_>, store: &str, options: &[&str]) -> Result<Running, RunError> {
    let common = ["rtrs", "serve", "--listen", "192.168.77.2", "--export"];
    let export = format!("disk0={store}");
    let server = scene.ours([&common[..], &[&export], options].concat())?;
    server.until("READY", LIMIT)?;
    Ok(server)
}

/// Ends our server as a user does, and checks that it ends well.
fn end(scene: &mut Scene<'_>, server: Running) -> Result<Finished, RunError> {
    server.signal(interop::Signal::TERM);
    scene.succeeds(server)
}

/// Starts our client on the guest's disk.
fn our_client(scene: &Scene<'_>, path: &str, options: &[&str]) -> Result<Running, RunError> {
    let common = ["rtrs", "bench", "--path", path, "--device", "dev/vda"];
    scene.ours([&common[..], options].concat())
}

/// Runs a command of the guest that has to succeed.
fn told(scene: &mut Scene<'_>, command: &str) -> Result<Finished, RunError> {
    told_within(scene, command, LIMIT)
}

/// The same, of one that may take so long.
fn told_within(
    scene: &mut Scene<'_>,
    command: &str,
    limit: Duration,
) -> Result<Finished, RunError> {
    let running = scene.guest.start(command)?;
    let finished = scene.ends(running, limit)?;
    scene.checked.check(finished.success(), || {
        format!("`{command}` ended with status {}: {}", finished.status, finished.output)
    });
    Ok(finished)
}

/// Checks that the kernel had neither to repeat itself nor to complain.
fn sound(scene: &mut Scene<'_>) -> Result<(), RunError> {
    scene.gained("completer_retry_err", 0..=0)?;
    scene.gained("retry_exceeded_err", 0..=0)?;
    calm(scene)
}

/// Checks that the kernel had not to complain.
fn calm(scene: &mut Scene<'_>) -> Result<(), RunError> {
    let log = scene.guest.kernel_log()?;
    for word in ["WARNING:", "BUG:", "Oops", "Call Trace", "stack guard", "hung task"] {
        scene.checked.check(!log.contains(word), || format!("the kernel's log has {word:?}"));
    }
    Ok(())
}
