//! Cases in which ibfabric's HCA is one end of the connection.

use std::time::Duration;

use interop::RunError;

use super::cases::LISTENS;
use super::{Case, Scene};

/// The IPv4 addresses of the guest and of ibfabric.
pub(super) const IPV4: [&str; 2] = ["192.168.77.1", "192.168.77.2"];
pub(super) const IPV6: [&str; 2] = ["fd00:77::1", "fd00:77::2"];

/// Cases of ibfabric's HCA with the kernel's HCA.
pub(super) const OURS: [Case; 7] = [
    Case::with_ibfabric("ibfabric ping, rping, IPv4", |scene| ping(scene, "0.0.0.0", IPV4)),
    Case::with_ibfabric("ibfabric ping, rping, IPv6", |scene| ping(scene, "::", IPV6)),
    Case::with_ibfabric("rping, ibfabric server, IPv4", |scene| serve(scene, IPV4)),
    Case::with_ibfabric("rping, ibfabric server, IPv6", |scene| serve(scene, IPV6)),
    Case::with_ibfabric("ibfabric pingpong, Linux server", |scene| pingpong(scene, true)),
    Case::with_ibfabric("pingpong, ibfabric server", |scene| pingpong(scene, false)),
    Case::with_ibfabric("a port without a listener", refused),
];

/// Time limit for a client to end.
const ENDS: Duration = Duration::from_secs(60);

/// The line that ibfabric's server prints when it accepts connections.
pub(super) const READY: &str = "READY";

fn ping(scene: &mut Scene<'_>, any: &str, [guest, own]: [&str; 2]) -> Result<(), RunError> {
    let server = scene.guest.start(&format!("rping -s -a {any} -C 30 -S 1000 -v"))?;
    scene.guest.await_listener(7174, LISTENS)?;
    let options = ["-C", "30", "-S", "1000", "--from", own, "-v"];
    let ours = scene.ours(["rdma", "ping", guest].into_iter().chain(options))?;
    let ours = scene.succeeds(ours)?;
    scene.expect_lines(&ours, "ping data: rdma-ping-", 30);
    scene.expect_lines(&ours, "30 pings, 0 returned with wrong data", 1);
    let server = scene.ends(server, LISTENS)?;
    scene.expect_lines(&server, "server ping data: rdma-ping-", 30);
    scene.gained("rdma_sends", 30..=1000)?;
    check_no_retries(scene)
}

fn serve(scene: &mut Scene<'_>, [_, own]: [&str; 2]) -> Result<(), RunError> {
    let serve = ["rdma", "serve", "--listen", own, "--rping", "--exit-after", "1", "-v"];
    let ours = scene.ours(serve)?;
    ours.until(READY, LISTENS)?;
    // With -V, rping compares the received data with the sent data.
    let client = scene.guest.start(&format!("rping -c -a {own} -C 30 -S 1000 -v -V"))?;
    let client = scene.ends(client, ENDS)?;
    // When rping ends, one of its threads may still wait for events of a channel that another thread has closed.
    let is_race = client.output.contains("rdma_get_cm_event: Bad file descriptor");
    scene.checked.check(client.success() || is_race, || {
        format!("rping ended with status {}", client.status)
    });
    scene.expect_lines(&client, "ping data: rdma-ping-", 30);
    scene.expect_lines(&client, "mismatch", 0);
    let ours = scene.succeeds(ours)?;
    scene.expect_lines(&ours, "server ping data: rdma-ping-", 30);
    check_no_retries(scene)
}

fn pingpong(scene: &mut Scene<'_>, we_call: bool) -> Result<(), RunError> {
    let mtu = scene.link.path_mtu.to_string();
    let theirs = format!("ibv_rc_pingpong -d rxe0 -g 1 -n 200 -s 10000 -m {mtu} -c");
    let [guest, own] = IPV4;
    let options = ["rdma", "pingpong", "-n", "200", "-s", "10000", "-c", "-m", &mtu, "--from", own];
    let (ours, theirs) = if we_call {
        let theirs = scene.guest.start(&theirs)?;
        scene.guest.await_tcp_listener(18515, LISTENS)?;
        (scene.ours(options.into_iter().chain([guest]))?, theirs)
    } else {
        let ours = scene.ours(options)?;
        ours.until("local address", LISTENS)?;
        (ours, scene.guest.start(&format!("{theirs} {own}"))?)
    };
    for end in [ours, theirs] {
        let end = scene.succeeds(end)?;
        scene.expect_lines(&end, "200 iters in", 1);
    }
    scene.gained("retry_exceeded_err", 0..=0)
}

fn refused(scene: &mut Scene<'_>) -> Result<(), RunError> {
    let [guest, own] = IPV4;
    let ours = scene.ours(["rdma", "ping", guest, "--from", own, "-p", "9"])?;
    let ours = scene.fails(ours)?;
    scene.expect_lines(&ours, "refuses the connection", 1);
    let serve = scene.ours(["rdma", "serve", "--listen", own])?;
    serve.until(READY, LISTENS)?;
    let client = scene.guest.start(&format!("rping -c -a {own} -C 1 -v"))?;
    let client = scene.fails(client)?;
    scene.expect_lines(&client, "RDMA_CM_EVENT_REJECTED", 1);
    serve.kill()?;
    check_no_retries(scene)
}

/// Checks that the kernel has lost and retransmitted no packet. A few duplicates from ibfabric are permitted: if an
/// acknowledgement is late, ibfabric retransmits the last packet as a probe.
pub(super) fn check_no_retries(scene: &mut Scene<'_>) -> Result<(), RunError> {
    for counter in ["retry_exceeded_err", "completer_retry_err", "rcvd_seq_err"] {
        scene.gained(counter, 0..=0)?;
    }
    scene.gained("duplicate_request", 0..=20)
}
