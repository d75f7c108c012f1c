//! A session that sends only heartbeats.

use std::time::Duration;

use interop::RunError;

use super::theirs::{PATH, fio};
use super::{
    LIMIT, MEMORY, UNMAP, check_no_retries, end, map, our_client, our_server, run_in_guest,
    run_in_guest_within, serve, unserve,
};
use crate::rxe::Scene;

/// Duration without requests in a short run, in seconds. It is longer than the heartbeat timeout.
const PART: u64 = 45;
const WHOLE: u64 = 600;

/// The session of the kernel's client over IPv4, and that of ibfabric's client over IPv6, work after they were idle.
pub(super) fn both_ways(scene: &mut Scene<'_>) -> Result<(), RunError> {
    let seconds = if scene.whole { WHOLE } else { PART };
    serve(scene, "")?;
    let server = our_server(scene, MEMORY, &[])?;
    map(scene, PATH)?;
    let options =
        ["--rw", "randrw", "--bs", "64K", "--verify", "--io-size", "16M", "--start-delay"];
    let ours = our_client(scene, "fd00:77::1", &[&options[..], &[&seconds.to_string()]].concat())?;
    run_in_guest_within(scene, &format!("sleep {seconds}"), LIMIT + Duration::from_secs(seconds))?;
    let ours = scene.succeeds(ours)?;
    scene.expect_lines(&ours, "0 errors, 0 failovers, 0 reconnects", 1);
    fio(scene, "--bsrange=512-256K --size=8M")?;
    // The kernel's counter of reconnects must be zero.
    let stats =
        run_in_guest(scene, "cat /sys/devices/virtual/rtrs-client/guest/paths/*/stats/reconnects")?;
    scene.expect_lines(&stats, "0 0", 1);
    run_in_guest(scene, UNMAP)?;
    end(scene, server)?;
    unserve(scene)?;
    check_no_retries(scene)
}
