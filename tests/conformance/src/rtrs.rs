//! RTRS and RNBD of the kernel in a guest, and ours beside it: either end may be ours.
//!
//! The cases run the small program of `crates/ib-net/examples/rtrs`, and the guest's own block device. A case leaves
//! no module loaded that it has loaded.

use std::time::Duration;

use interop::RunError;

use crate::rxe::{Case, Scene};

/// What is tried.
pub const CASES: [Case; 9] = [
    Case::with_ours("our client, their server", |scene| client(scene, "", "192.168.77.1", &[])),
    Case::with_ours("our client, their server, IPv6", |scene| client(scene, "", "fd00:77::1", &[])),
    Case::with_ours("our client, their server, keys that stay, depth 64", |scene| {
        client(scene, "always_invalidate=N sess_queue_depth=64", "192.168.77.1", &[])
    }),
    Case::with_ours("our client, their server, depth 1, one connection", |scene| {
        client(scene, "sess_queue_depth=1", "192.168.77.1", &["one"])
    }),
    Case::with_ours("our client, their server, which invalidates", |scene| {
        client(scene, "", "192.168.77.1", &["invalidate"])
    }),
    Case::with_ours("their client, our server", |scene| server(scene, &[])),
    Case::with_ours("their client, our server, keys that stay", |scene| server(scene, &["keep"])),
    Case::with_ours("their client, our server, two paths that are connected anew", paths),
    Case::with_ours("nobody listens", refused),
];

/// How long a command may take.
const LIMIT: Duration = Duration::from_secs(90);

const MAP: &str = "modprobe rtrs_client && modprobe rnbd_client && \
     echo 'sessname=guest path=ip:192.168.77.2 device_path=disk0 access_mode=rw' \
     >/sys/devices/virtual/rnbd-client/ctl/map_device && sleep 1";
const UNMAP: &str = "echo normal >/sys/block/rnbd0/rnbd/unmap_device; sleep 1; \
     rmmod rnbd_client; rmmod rtrs_client; rmmod rtrs_core";

fn client(
    scene: &mut Scene<'_>,
    parameters: &str,
    address: &str,
    options: &[&str],
) -> Result<(), RunError> {
    let load = format!(
        "modprobe brd rd_nr=1 rd_size=65536 && modprobe rtrs_server {parameters} && modprobe rnbd_server"
    );
    told(scene, &load)?;
    let arguments = [&["client", address, "dev/ram0", "48"], options].concat();
    let ours = scene.ours(arguments)?;
    let ours = scene.succeeds(ours)?;
    scene.says(&ours, "bytes written", 1);
    scene.says(&ours, "read and compared", 1);
    scene.says(&ours, "closed", 1);
    told(scene, "sleep 1; rmmod rnbd_server; rmmod rtrs_server; rmmod rtrs_core; rmmod brd")?;
    sound(scene)
}

fn server(scene: &mut Scene<'_>, options: &[&str]) -> Result<(), RunError> {
    let arguments = [&["server", "192.168.77.2", "64"], options].concat();
    let ours = scene.ours(arguments)?;
    ours.until("READY", LIMIT)?;
    told(scene, MAP)?;
    told(
        scene,
        "dd if=/dev/urandom of=/tmp/a bs=1M count=24 && dd if=/tmp/a of=/dev/rnbd0 bs=1M oflag=direct",
    )?;
    // Of all lengths, up to the longest, from which it is cut.
    let sizes = "for bs in 512 4096 12288 126976 130048 1048576; do \
         dd if=/dev/rnbd0 of=/tmp/b bs=$bs count=$((4194304 / bs)) iflag=direct && \
         head -c $(stat -c %s /tmp/b) /tmp/a | cmp - /tmp/b && echo same; done";
    let read = told(scene, sizes)?;
    scene.says(&read, "same", 6);
    // Several at once.
    let several = "for n in 1 2 3 4; do \
         dd if=/tmp/a of=/dev/rnbd0 bs=4096 seek=$((n * 1024)) count=512 oflag=direct & done; wait; \
         for n in 1 2 3 4; do \
         dd if=/dev/rnbd0 of=/tmp/b bs=4096 skip=$((n * 1024)) count=512 iflag=direct && \
         head -c 2097152 /tmp/a | cmp - /tmp/b && echo same; done";
    let read = told(scene, several)?;
    scene.says(&read, "same", 4);
    told(scene, "rm /tmp/a /tmp/b")?;
    told(scene, UNMAP)?;
    sound(scene)
}

fn paths(scene: &mut Scene<'_>) -> Result<(), RunError> {
    let ours = "192.168.77.2";
    told(scene, "ip addr add 192.168.77.11/24 dev eth0; sleep 1")?;
    let server = scene.ours(["server", ours, "64"])?;
    server.until("READY", LIMIT)?;
    let map = "modprobe rtrs_client && modprobe rnbd_client && \
         echo 'sessname=guest path=ip:192.168.77.1@ip:192.168.77.2 path=ip:192.168.77.11@ip:192.168.77.2 \
         device_path=disk0 access_mode=rw' >/sys/devices/virtual/rnbd-client/ctl/map_device && sleep 1";
    told(scene, map)?;
    let flap = "dd if=/dev/urandom of=/tmp/a bs=1M count=16; \
         (for n in 1 2 3; do for path in /sys/devices/virtual/rtrs-client/guest/paths/*; do \
         echo 1 >$path/disconnect; echo 1 >$path/reconnect; cat $path/state; done; done) & \
         for n in 1 2 3 4; do dd if=/tmp/a of=/dev/rnbd0 bs=65536 oflag=direct; done; wait; \
         dd if=/dev/rnbd0 of=/tmp/b bs=65536 count=256 iflag=direct; \
         cmp /tmp/a /tmp/b && echo same; rm /tmp/a /tmp/b";
    let flapped = told(scene, flap)?;
    scene.says(&flapped, "same", 1);
    scene.says(&flapped, "connected", 6);
    told(scene, UNMAP)?;
    told(scene, "ip addr del 192.168.77.11/24 dev eth0; sleep 1")?;
    sound(scene)
}

fn refused(scene: &mut Scene<'_>) -> Result<(), RunError> {
    let ours = scene.ours(["client", "192.168.77.1", "dev/ram0"])?;
    let ours = scene.fails(ours)?;
    scene.says(&ours, "the connection is refused", 1);
    sound(scene)
}

/// Runs a command of the guest that has to succeed.
fn told(scene: &mut Scene<'_>, command: &str) -> Result<interop::Finished, RunError> {
    let running = scene.guest.start(command)?;
    let finished = scene.ends(running, LIMIT)?;
    scene.checked.check(finished.success(), || {
        format!("`{command}` ended with status {}: {}", finished.status, finished.output)
    });
    Ok(finished)
}

/// Checks that the kernel had neither to repeat itself nor to complain.
fn sound(scene: &mut Scene<'_>) -> Result<(), RunError> {
    scene.gained("completer_retry_err", 0..=0)?;
    scene.gained("retry_exceeded_err", 0..=0)?;
    let log = scene.guest.kernel_log()?;
    for word in ["WARNING:", "BUG:", "Oops", "Call Trace"] {
        scene.checked.check(!log.contains(word), || format!("the kernel's log has {word:?}"));
    }
    Ok(())
}
