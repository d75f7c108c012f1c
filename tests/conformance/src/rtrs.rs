//! RTRS and RNBD between a guest's kernel and `ibfabric rtrs`. Each of the two is the client in some cases and the
//! server in others.
//!
//! | module | holds |
//! |---|---|
//! | `ours` | cases in which ibfabric's client uses a disk of the guest |
//! | `theirs` | cases with the kernel's client |
//! | `deaths` | cases in which client or server is killed and restarted |
//! | `idle` | the case of an idle session |
//!
//! A case unloads all modules that it has loaded. In a complete run, cases transfer a GiB or wait ten minutes. In other
//! runs, they transfer less and wait for a shorter time.

mod deaths;
mod idle;
mod ours;
mod theirs;

use std::time::Duration;

use interop::{Finished, RunError, Running};

use crate::rxe::{Case, Scene};

/// The cases.
pub const CASES: [Case; 20] = [
    Case::with_ibfabric("ibfabric client, Linux server", |scene| ours::verify(scene, "", &[])),
    Case::with_ibfabric("ibfabric client, Linux server, permanent keys, depth 64", |scene| {
        ours::verify(scene, "always_invalidate=N sess_queue_depth=64", &[])
    }),
    Case::with_ibfabric("ibfabric client, Linux server, depth 1, one connection", |scene| {
        ours::verify(scene, "sess_queue_depth=1", &["--connections", "2"])
    }),
    Case::with_ibfabric("ibfabric client, Linux server, permanent keys, depth 1", |scene| {
        ours::verify(scene, "always_invalidate=N sess_queue_depth=1", &[])
    }),
    Case::with_ibfabric("ibfabric client, Linux server, required invalidation", |scene| {
        ours::verify(scene, "sess_queue_depth=64", &["--need-invalidation"])
    }),
    Case::with_ibfabric("ibfabric client, Linux server, IPv6", ours::version_6),
    Case::with_ibfabric("ibfabric client, Linux server, which closes the path", ours::closed),
    Case::with_ibfabric("ibfabric client opens missing devices", ours::refused),
    Case::with_ibfabric("Linux client, ibfabric server", |scene| {
        theirs::verify(scene, MEMORY, &[])
    }),
    Case::with_ibfabric("Linux client, ibfabric server, permanent keys, depth 64", |scene| {
        theirs::verify(scene, MEMORY, &["--no-always-invalidate", "--queue-depth", "64"])
    }),
    // This case always transfers less than a GiB: with queue depth 2, rnbd_client stalls after a part of a GiB. All its
    // requests are then complete and acknowledged, but it sends no further ones. Queue depth 1 is not tested:
    // rnbd_client waits indefinitely for its first request, even with the kernel's server.
    Case::with_ibfabric("Linux client, ibfabric server, depth 2", |scene| {
        scene.whole = false;
        theirs::verify(scene, MEMORY, &["--queue-depth", "2"])
    }),
    Case::with_ibfabric("Linux client, ibfabric server, a file that is flushed", theirs::file),
    Case::with_ibfabric("Linux client, ibfabric server, two paths that reconnect", theirs::paths),
    Case::with_ibfabric("Linux client opens missing devices", theirs::refused),
    Case::with_ibfabric("ibfabric client is killed and restarted", deaths::our_client_dies),
    Case::with_ibfabric("Linux server is unloaded and reloaded", deaths::their_server_leaves),
    Case::with_ibfabric("ibfabric server is killed and restarted", deaths::our_server_dies),
    Case::with_ibfabric("Linux client loses its link for a time", deaths::their_client_is_cut_off),
    Case::with_ibfabric("idle sessions in both directions", idle::both_ways),
    // This case is the last one, because the guest's soft RoCE can open no more connections after it.
    Case::with_ibfabric(
        "ibfabric client, Linux server, which closes one of two paths",
        ours::fails_over,
    ),
];

/// Time limit of a command.
const LIMIT: Duration = Duration::from_secs(120);

/// Time limit of a command that transfers large amounts of data.
const LONG: Duration = Duration::from_secs(1200);

/// The kernel client's control file, which maps devices.
const CONTROL: &str = "/sys/devices/virtual/rnbd-client/ctl/map_device";

/// Command that unmaps the device and unloads the kernel's client.
const UNMAP: &str = "echo normal >/sys/block/rnbd0/rnbd/unmap_device; sleep 1; \
     rmmod rnbd_client; rmmod rtrs_client; [ -e /sys/module/rtrs_server ] || rmmod rtrs_core";

/// Loads the kernel's server.
fn serve(scene: &mut Scene<'_>, parameters: &str) -> Result<(), RunError> {
    run_in_guest(scene, &format!("modprobe rtrs_server {parameters} && modprobe rnbd_server"))?;
    Ok(())
}

/// Unloads the kernel's server.
fn unserve(scene: &mut Scene<'_>) -> Result<(), RunError> {
    run_in_guest(scene, "sleep 1; rmmod rnbd_server; rmmod rtrs_server; rmmod rtrs_core")?;
    Ok(())
}

/// Maps the device of ibfabric's server as a block device of the kernel's client, over the given paths.
fn map(scene: &mut Scene<'_>, paths: &str) -> Result<(), RunError> {
    let command = format!(
        "modprobe rtrs_client && modprobe rnbd_client && \
         until ping -c 1 -W 1 192.168.77.2 >/dev/null; do sleep 0.2; done && \
         echo 'sessname=guest {paths} device_path=disk0 access_mode=rw' >{CONTROL} && sleep 1"
    );
    run_in_guest(scene, &command)?;
    Ok(())
}

/// Where the server stores the device in most cases: in 64 MiB of memory.
const MEMORY: &str = "mem:64M";

/// Starts ibfabric's server, and waits until it listens.
fn our_server(scene: &Scene<'_>, store: &str, options: &[&str]) -> Result<Running, RunError> {
    let common = ["rtrs", "serve", "--listen", "192.168.77.2", "--export"];
    let export = format!("disk0={store}");
    let server = scene.ours([&common[..], &[&export], options].concat())?;
    server.until("READY", LIMIT)?;
    Ok(server)
}

/// Stops ibfabric's server with SIGTERM, and checks its exit status.
fn end(scene: &mut Scene<'_>, server: Running) -> Result<Finished, RunError> {
    server.signal(interop::Signal::TERM);
    scene.succeeds(server)
}

/// Starts ibfabric's client, which uses the guest's disk.
fn our_client(scene: &Scene<'_>, path: &str, options: &[&str]) -> Result<Running, RunError> {
    let common = ["rtrs", "bench", "--path", path, "--device", "dev/vda"];
    scene.ours([&common[..], options].concat())
}

/// Runs a command in the guest. The command must succeed.
fn run_in_guest(scene: &mut Scene<'_>, command: &str) -> Result<Finished, RunError> {
    run_in_guest_within(scene, command, LIMIT)
}

/// Runs a command in the guest. The command must succeed within the given time limit.
fn run_in_guest_within(
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

/// Checks that the kernel has retransmitted nothing and logged no errors.
fn check_no_retries(scene: &mut Scene<'_>) -> Result<(), RunError> {
    scene.gained("completer_retry_err", 0..=0)?;
    scene.gained("retry_exceeded_err", 0..=0)?;
    check_kernel_log(scene)
}

/// Checks that the kernel has logged no errors.
fn check_kernel_log(scene: &mut Scene<'_>) -> Result<(), RunError> {
    let log = scene.guest.kernel_log()?;
    for word in ["WARNING:", "BUG:", "Oops", "Call Trace", "stack guard", "hung task"] {
        scene.checked.check(!log.contains(word), || format!("the kernel's log contains {word:?}"));
    }
    Ok(())
}
