//! ibfabric's client with the kernel's server.

use interop::RunError;

use super::{LONG, check_no_retries, our_client, run_in_guest, serve, unserve};
use crate::rxe::Scene;

/// The guest's address.
const GUEST: &str = "192.168.77.1";

/// ibfabric's client writes and reads in requests of various lengths at random offsets, and verifies the data.
pub(super) fn verify(
    scene: &mut Scene<'_>,
    parameters: &str,
    options: &[&str],
) -> Result<(), RunError> {
    serve(scene, parameters)?;
    for (lengths, part, whole) in [("512-1M", "96M", "1G"), ("512-16K", "8M", "64M")] {
        let much = if scene.whole { whole } else { part };
        bench(scene, GUEST, &["--bsrange", lengths, "--io-size", much], options)?;
    }
    unserve(scene)?;
    check_no_retries(scene)
}

pub(super) fn version_6(scene: &mut Scene<'_>) -> Result<(), RunError> {
    serve(scene, "")?;
    bench(scene, "fd00:77::1", &["--bsrange", "512-256K", "--io-size", "24M"], &[])?;
    unserve(scene)?;
    check_no_retries(scene)
}

/// ibfabric's client writes and reads at random offsets, with flushes and discards in between, and verifies all data.
fn bench(
    scene: &mut Scene<'_>,
    path: &str,
    much: &[&str],
    options: &[&str],
) -> Result<(), RunError> {
    let common = ["--rw", "randrw", "--verify", "--fsync", "16", "--trim", "16", "--runtime"];
    let ours = our_client(
        scene,
        path,
        &[&common[..], &["1200", "--iodepth", "16"], much, options].concat(),
    )?;
    let ours = scene.ends(ours, LONG)?;
    scene.checked.check(ours.success(), || format!("the client failed: {}", ours.output));
    scene.expect_lines(&ours, " flushes, 0 errors, 0 failovers, 0 reconnects", 1);
    Ok(())
}

/// The server closes the only path while requests are outstanding. After a reconnect, reads continue. Outstanding
/// writes fail with an error that reports an unknown result: the kernel's server does not fence paths, so it may still
/// execute a write of the closed path.
pub(super) fn closed(scene: &mut Scene<'_>) -> Result<(), RunError> {
    serve(scene, "")?;
    for (rw, times) in [("randread", 3), ("randwrite", 1)] {
        let options = ["--rw", rw, "--bsrange", "512-64K", "--runtime", "8", "--session", "anew"];
        let more = ["--reconnect-delay", "200"];
        let ours = our_client(scene, GUEST, &[&options[..], &more].concat())?;
        let close = format!(
            "sleep 2; for n in $(seq {times}); do for path in /sys/devices/virtual/rtrs-server/anew/paths/*; do \
             echo 1 >$path/disconnect; done; sleep 1; done"
        );
        run_in_guest(scene, &close)?;
        let ours = scene.ends(ours, LONG)?;
        scene.expect_lines(&ours, &format!(" {times} reconnect"), 1);
        scene.expect_lines(&ours, "the device is open again", times);
        let is_unknown = |line: &&str| line.contains(" bytes at ");
        let lost: Vec<&str> = ours.output.lines().filter(is_unknown).collect();
        let is_right = match rw {
            "randread" => ours.success() && lost.is_empty(),
            _ => lost.iter().all(|it| it.contains("write of") && it.ends_with(": ECONNABORTED")),
        };
        scene.checked.check(is_right, || format!("unexpected result of {rw}: {}", ours.output));
    }
    unserve(scene)?;
    super::check_kernel_log(scene)
}

/// The server closes two paths alternately while requests are outstanding. The requests continue on the other path.
pub(super) fn fails_over(scene: &mut Scene<'_>) -> Result<(), RunError> {
    serve(scene, "")?;
    run_in_guest(scene, "ip addr add 192.168.77.11/24 dev eth0; sleep 1")?;
    let options = ["--path", "192.168.77.11", "--rw", "randrw", "--verify", "--bsrange", "512-64K"];
    let more = ["--runtime", "10", "--session", "both", "--reconnect-delay", "200"];
    let ours = our_client(scene, GUEST, &[&options[..], &more].concat())?;
    run_in_guest(
        scene,
        "sleep 2; for n in 1 2; do for path in /sys/devices/virtual/rtrs-server/both/paths/*; do \
         echo 1 >$path/disconnect; sleep 1; done; done",
    )?;
    let ours = scene.succeeds(ours)?;
    scene.expect_lines(&ours, " 4 reconnects", 1);
    scene.expect_lines(&ours, "0 errors, ", 1);
    scene.expect_lines(&ours, " 0 failovers, ", 0);
    scene.expect_lines(&ours, "no path is connected", 0);
    run_in_guest(scene, "ip addr del 192.168.77.11/24 dev eth0; sleep 1")?;
    unserve(scene)?;
    super::check_kernel_log(scene)
}

/// ibfabric's client fails if the server does not listen, and if the device does not exist.
pub(super) fn refused(scene: &mut Scene<'_>) -> Result<(), RunError> {
    let ours = our_client(scene, GUEST, &["--connect-timeout", "3"])?;
    let ours = scene.fails(ours)?;
    scene.expect_lines(&ours, "the connection was rejected: invalid service ID", 2);
    serve(scene, "")?;
    let ours = scene.ours(["rtrs", "bench", "--path", GUEST, "--device", "dev/none"])?;
    let ours = scene.fails(ours)?;
    scene.expect_lines(&ours, "refuses device dev/none: ENOENT", 1);
    unserve(scene)?;
    check_no_retries(scene)
}
