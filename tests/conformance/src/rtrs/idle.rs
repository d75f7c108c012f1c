//! A session with heartbeats only.

use std::time::Duration;

use interop::RunError;

use super::theirs::{PATH, fio};
use super::{
    LIMIT, MEMORY, UNMAP, end, map, our_client, our_server, serve, sound, told, told_within,
    unserve,
};
use crate::rxe::Scene;

/// How long nothing happens: longer than the heartbeats that may be missed take, at least.
const PART: u64 = 45;
const WHOLE: u64 = 600;

/// Both kinds of sessions at once, over IPv4 and IPv6, are left alone, and work as before afterwards.
pub(super) fn both_ways(scene: &mut Scene<'_>) -> Result<(), RunError> {
    let seconds = if scene.whole { WHOLE } else { PART };
    serve(scene, "")?;
    let server = our_server(scene, MEMORY, &[])?;
    map(scene, PATH)?;
    let options = ["--rw", "randrw", "--bs", "64K", "--verify", "--io-size", "16M", "--idle"];
    let ours = our_client(scene, "fd00:77::1", &[&options[..], &[&seconds.to_string()]].concat())?;
    told_within(scene, &format!("sleep {seconds}"), LIMIT + Duration::from_secs(seconds))?;
    let ours = scene.succeeds(ours)?;
    scene.says(&ours, "0 errors, 0 failovers, 0 reconnects", 1);
    fio(scene, "--bsrange=512-256K --size=8M")?;
    // The kernel's own count of connections that were made anew.
    let stats = told(scene, "cat /sys/devices/virtual/rtrs-client/guest/paths/*/stats/reconnects")?;
    scene.says(&stats, "0 0", 1);
    told(scene, UNMAP)?;
    end(scene, server)?;
    unserve(scene)?;
    sound(scene)
}
