//! Cases in which an unmodified program runs with `ibfabric run`, and its peer on the kernel's soft RoCE. Each case
//! except `refused` has two parts: the server runs first in the guest, then with `ibfabric run`.

use std::process::Command;

use interop::RunError;

use super::cases::LISTENS;
use super::ours::{IPV4, IPV6};
use super::{Case, Scene};

/// Cases of `ibfabric run` with the kernel's soft RoCE HCA (`rdma_rxe`) as the peer.
pub(super) const RUN: [Case; 23] = [
    Case::with_ibfabric("run ibv_rc_pingpong, IPv4", |scene| pingpong(scene, "rc", IPV4)),
    Case::with_ibfabric("run ibv_rc_pingpong, IPv6", |scene| pingpong(scene, "rc", IPV6)),
    Case::with_ibfabric("run ibv_uc_pingpong, IPv4", |scene| pingpong(scene, "uc", IPV4)),
    Case::with_ibfabric("run ibv_ud_pingpong, IPv4", |scene| pingpong(scene, "ud", IPV4)),
    Case::with_ibfabric("run ibv_ud_pingpong, IPv6", |scene| pingpong(scene, "ud", IPV6)),
    Case::with_ibfabric("run ibv_srq_pingpong, IPv4", |scene| pingpong(scene, "srq", IPV4)),
    Case::with_ibfabric("run ib_send_bw, RC", |scene| perftest(scene, "ib_send_bw -s 65536")),
    Case::with_ibfabric("run ib_write_bw, RC", |scene| perftest(scene, "ib_write_bw -s 65536")),
    Case::with_ibfabric("run ib_read_bw, RC", |scene| perftest(scene, "ib_read_bw -s 65536")),
    Case::with_ibfabric("run ib_atomic_bw, RC", |scene| perftest(scene, "ib_atomic_bw -s 8")),
    Case::with_ibfabric("run ib_send_lat, RC", |scene| perftest(scene, "ib_send_lat -s 5000")),
    Case::with_ibfabric("run ib_write_lat, RC", |scene| perftest(scene, "ib_write_lat -s 5000")),
    Case::with_ibfabric("run ib_read_lat, RC", |scene| perftest(scene, "ib_read_lat -s 5000")),
    Case::with_ibfabric("run ib_atomic_lat, RC", |scene| perftest(scene, "ib_atomic_lat -s 8")),
    Case::with_ibfabric("run ib_send_bw, RC, 4 queue pairs", |scene| {
        measure(scene, "ib_send_bw -s 1000 -q 4", 4 * MESSAGES)
    }),
    Case::with_ibfabric("run ib_send_bw, RC, events", |scene| {
        perftest(scene, "ib_send_bw -s 1000 -e")
    }),
    Case::with_ibfabric("run ib_send_bw, UC", |scene| perftest(scene, "ib_send_bw -s 1000 -c UC")),
    Case::with_ibfabric("run ib_write_bw, UC", |scene| {
        perftest(scene, "ib_write_bw -s 1000 -c UC")
    }),
    Case::with_ibfabric("run ib_send_lat, UC", |scene| {
        perftest(scene, "ib_send_lat -s 1000 -c UC")
    }),
    Case::with_ibfabric("run ib_write_lat, UC", |scene| {
        perftest(scene, "ib_write_lat -s 1000 -c UC")
    }),
    Case::with_ibfabric("run ib_send_bw, UD", |scene| perftest(scene, "ib_send_bw -s 1000 -c UD")),
    Case::with_ibfabric("run ib_send_lat, UD", |scene| {
        perftest(scene, "ib_send_lat -s 1000 -c UD")
    }),
    Case::with_ibfabric("run without zero checksums", refused),
];

/// TCP port over which the programs exchange addresses.
const PORT: u16 = 18515;

/// Number of iterations per queue pair (option `-n` of the programs).
const MESSAGES: u64 = 100;

fn pingpong(scene: &mut Scene<'_>, kind: &str, [_, hca]: [&str; 2]) -> Result<(), RunError> {
    // With -c, the programs compare the received data with the sent data.
    let words = format!("ibv_{kind}_pingpong -d rxe0 -n {MESSAGES} -s 1000 -c -g");
    both_directions(scene, &words, hca, &format!("{MESSAGES} iters in"))
}

fn perftest(scene: &mut Scene<'_>, words: &str) -> Result<(), RunError> {
    measure(scene, words, MESSAGES)
}

/// Runs a perftest program. Its result has to count `total` messages, the sum over all queue pairs.
fn measure(scene: &mut Scene<'_>, words: &str, total: u64) -> Result<(), RunError> {
    let words = format!("{words} -d rxe0 -n {MESSAGES} -F -x");
    both_directions(scene, &words, IPV4[1], &format!(" {total} "))
}

/// Runs a program with its server in the guest, and then with its server under `ibfabric run`. `words` is the command
/// line up to the option of the GID index; this function appends the index. The HCA of ibfabric has the address `hca`.
/// The client has to print one line that contains `result`.
fn both_directions(
    scene: &mut Scene<'_>,
    words: &str,
    hca: &str,
    result: &str,
) -> Result<(), RunError> {
    // The programs exchange QPNs and GIDs over IPv4, because some of their servers listen on IPv4 addresses only.
    let [guest, own] = IPV4;
    let theirs = format!("{words} {}", if hca == own { 1 } else { 2 });
    let ours = format!("{words} 0");

    let server = scene.guest.start(&theirs)?;
    scene.guest.await_tcp_listener(PORT, LISTENS)?;
    let client = scene.unmodified(hca, true, &format!("{ours} {guest}"))?;
    let client = scene.succeeds(client)?;
    scene.expect_lines(&client, result, 1);
    scene.succeeds(server)?;
    scene.gained("rcvd_pkts", MESSAGES..=u64::MAX)?;

    let server = scene.unmodified(hca, true, &ours)?;
    await_own_listener(scene)?;
    let client = scene.guest.start(&format!("{theirs} {own}"))?;
    let client = scene.succeeds(client)?;
    scene.expect_lines(&client, result, 1);
    scene.succeeds(server)?;
    scene.gained("sent_pkts", MESSAGES..=u64::MAX)?;
    scene.gained("retry_exceeded_err", 0..=0)
}

/// Without `--allow-zero-checksum`, ibfabric drops and reports the IPv4 packets of soft RoCE, so the client's request
/// times out.
fn refused(scene: &mut Scene<'_>) -> Result<(), RunError> {
    let [guest, own] = IPV4;
    let server = scene.guest.start("ibv_rc_pingpong -d rxe0 -g 1")?;
    scene.guest.await_tcp_listener(PORT, LISTENS)?;
    let client = scene.unmodified(own, false, &format!("ibv_rc_pingpong -d rxe0 -g 0 {guest}"))?;
    let client = scene.fails(client)?;
    scene.expect_lines(&client, "--allow-zero-checksum", 1);
    server.kill()?;
    Ok(())
}

/// Waits until a host program in the guest's network namespace listens on [`PORT`].
fn await_own_listener(scene: &mut Scene<'_>) -> Result<(), RunError> {
    // The columns are the local address, the remote address, and the state: 0A is LISTEN.
    let wait = format!(
        "until grep -q ':{PORT:04X} [0-9A-F:]* 0A ' /proc/net/tcp /proc/net/tcp6; do sleep 0.05; done"
    );
    let listening = scene.guest.start_beside(Command::new("sh").args(["-c", &wait]))?;
    scene.ends(listening, LISTENS)?;
    Ok(())
}
