//! The kernel's client with ibfabric's server.

use interop::RunError;

use super::{
    CONTROL, LONG, MEMORY, UNMAP, check_no_retries, end, map, our_server, run_in_guest,
    run_in_guest_within,
};
use crate::rxe::Scene;

/// The path option of the kernel's client for a single path to the server's address.
pub(super) const PATH: &str = "path=ip:192.168.77.2";

/// fio on the kernel's client writes requests of various lengths at random offsets, and verifies the data.
pub(super) fn verify(scene: &mut Scene<'_>, store: &str, options: &[&str]) -> Result<(), RunError> {
    let server = our_server(scene, store, options)?;
    map(scene, PATH)?;
    // Each loop of fio writes and reads the whole device.
    let times = if scene.whole { 8 } else { 1 };
    fio(scene, &format!("--bsrange=512-1M --loops={times}"))?;
    let part = if scene.whole { "32M" } else { "4M" };
    fio(scene, &format!("--bsrange=512-16K --size={part} --offset=8M --fsync=16"))?;
    // Discarded ranges of the device read as zeros. The ranges around them keep their data.
    let discard = "dd if=/dev/urandom of=/tmp/a bs=64K count=4 2>/dev/null && \
         dd if=/tmp/a of=/dev/rnbd0 bs=64K oflag=direct conv=fsync 2>/dev/null && \
         blkdiscard -o 65536 -l 131072 /dev/rnbd0 && \
         dd if=/dev/rnbd0 of=/tmp/b bs=64K count=4 iflag=direct 2>/dev/null && \
         dd if=/dev/zero of=/tmp/a bs=64K seek=1 count=2 conv=notrunc 2>/dev/null && \
         cmp /tmp/a /tmp/b && echo same; rm /tmp/a /tmp/b";
    let discarded = run_in_guest(scene, discard)?;
    scene.expect_lines(&discarded, "same", 1);
    run_in_guest(scene, UNMAP)?;
    let ended = end(scene, server)?;
    // The kernel flushes only devices with a write cache. A device in memory has no write cache.
    let flushed = !ended.output.contains("flushes 0,");
    scene.checked.check(flushed == (store != MEMORY), || {
        format!(
            "unexpected number of flushes of {store}: {}",
            ended.output.lines().last().unwrap_or_default()
        )
    });
    check_no_retries(scene)
}

/// Runs [`verify`] on a device that ibfabric's server stores in a file. The kernel must flush this device.
pub(super) fn file(scene: &mut Scene<'_>) -> Result<(), RunError> {
    let failed =
        |source| RunError::Start { command: "create the file for the server".to_owned(), source };
    let store = tempfile::NamedTempFile::new().map_err(failed)?;
    store.as_file().set_len(64 << 20).map_err(failed)?;
    verify(scene, &store.path().display().to_string(), &[])
}

/// fio writes at random offsets of the kernel's device, and verifies the data by reading it.
pub(super) fn fio(scene: &mut Scene<'_>, options: &str) -> Result<(), RunError> {
    let command = format!(
        "fio --name=verify --filename=/dev/rnbd0 --direct=1 --ioengine=libaio --iodepth=16 --rw=randwrite \
         --verify=crc32c --verify_fatal=1 --size=64M {options}"
    );
    let finished = run_in_guest_within(scene, &command, LONG)?;
    scene.expect_lines(&finished, "err= 0", 1);
    Ok(())
}

/// The kernel's client closes and reconnects its paths in turn while the device is written.
pub(super) fn paths(scene: &mut Scene<'_>) -> Result<(), RunError> {
    run_in_guest(scene, "ip addr add 192.168.77.11/24 dev eth0; sleep 1")?;
    let server = our_server(scene, MEMORY, &[])?;
    map(scene, "path=ip:192.168.77.1@ip:192.168.77.2 path=ip:192.168.77.11@ip:192.168.77.2")?;
    // Each iteration writes new data and reads it back. Iterations run while paths are closed and reconnected, and once
    // afterwards.
    let flap = "(for n in 1 2 3; do for path in /sys/devices/virtual/rtrs-client/guest/paths/*; do \
         echo 1 >$path/disconnect; grep -qx disconnected $path/state && echo it is down; \
         echo 1 >$path/reconnect; grep -qx connected $path/state && echo it is up; done; done) & flaps=$!; \
         goes=yes; while [ $goes ]; do kill -0 $flaps 2>/dev/null || goes=; \
         dd if=/dev/urandom of=/tmp/a bs=1M count=4 2>/dev/null; \
         dd if=/tmp/a of=/dev/rnbd0 bs=65536 oflag=direct 2>/dev/null; \
         dd if=/dev/rnbd0 of=/tmp/b bs=65536 count=64 iflag=direct 2>/dev/null; \
         cmp /tmp/a /tmp/b || echo other data; done; wait; echo done; rm /tmp/a /tmp/b";
    let flapped = run_in_guest(scene, flap)?;
    scene.expect_lines(&flapped, "other data", 0);
    scene.expect_lines(&flapped, "it is down", 6);
    scene.expect_lines(&flapped, "it is up", 6);
    run_in_guest(scene, UNMAP)?;
    run_in_guest(scene, "ip addr del 192.168.77.11/24 dev eth0; sleep 1")?;
    end(scene, server)?;
    check_no_retries(scene)
}

/// The kernel's client cannot map a device that does not exist, and cannot write to a read-only device.
pub(super) fn refused(scene: &mut Scene<'_>) -> Result<(), RunError> {
    let server = our_server(scene, MEMORY, &["--allow", "192.168.77.0/24"])?;
    let ask = |device: &str, mode: &str| {
        format!(
            "echo 'sessname=guest {PATH} device_path={device} access_mode={mode}' >{CONTROL} 2>&1 || \
             echo refused"
        )
    };
    let none = format!("modprobe rtrs_client && modprobe rnbd_client; {}", ask("none", "rw"));
    let none = run_in_guest(scene, &none)?;
    scene.expect_lines(&none, "refused", 1);
    let twice = format!("{}; {}", ask("disk0", "ro"), ask("disk0", "ro"));
    let twice = run_in_guest(scene, &twice)?;
    scene.expect_lines(&twice, "refused", 1);
    let write = "dd if=/dev/zero of=/dev/rnbd0 bs=4096 count=1 oflag=direct 2>&1 || echo readonly";
    let write = run_in_guest(scene, write)?;
    scene.expect_lines(&write, "readonly", 1);
    run_in_guest(scene, UNMAP)?;
    end(scene, server)?;
    check_no_retries(scene)
}
