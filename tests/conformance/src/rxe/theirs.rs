//! Cases in which `ucmatose` or a perftest program is the peer of ibfabric's HCA.

use interop::{Finished, RunError, Running};

use super::cases::LISTENS;
use super::ours::{IPV4, IPV6, READY, check_no_retries};
use super::{Case, Scene};

/// Cases of ibfabric's HCA with `ucmatose`.
pub(super) const UCMATOSE: [Case; 6] = [
    Case::with_ibfabric("ibfabric cmatose, ucmatose, IPv4", |scene| call(scene, IPV4, 1)),
    Case::with_ibfabric("ibfabric cmatose, ucmatose, IPv6", |scene| call(scene, IPV6, 1)),
    Case::with_ibfabric("ibfabric cmatose, ucmatose, 8 connections", |scene| call(scene, IPV4, 8)),
    Case::with_ibfabric("ucmatose, ibfabric server, IPv4", |scene| serve(scene, IPV4)),
    Case::with_ibfabric("ucmatose, ibfabric server, IPv6", |scene| serve(scene, IPV6)),
    Case::with_ibfabric("ucmatose with messages of another size", other_messages),
];

/// Cases of ibfabric's HCA with a perftest program, over IPv4 only.
pub(super) const PERFTEST: [Case; 16] = [
    Case::with_ibfabric("ib_write_bw, ibfabric server", |scene| {
        measured(scene, "ib_write_bw", 65536)
    }),
    Case::with_ibfabric("ib_read_bw, ibfabric server", |scene| {
        measured(scene, "ib_read_bw", 65536)
    }),
    Case::with_ibfabric("ib_send_bw, ibfabric server", |scene| {
        measured(scene, "ib_send_bw", 65536)
    }),
    Case::with_ibfabric("ib_write_lat, ibfabric server", |scene| {
        measured(scene, "ib_write_lat", 5000)
    }),
    Case::with_ibfabric("ib_read_lat, ibfabric server", |scene| {
        measured(scene, "ib_read_lat", 5000)
    }),
    Case::with_ibfabric("ib_send_lat, ibfabric server", |scene| {
        measured(scene, "ib_send_lat", 5000)
    }),
    Case::with_ibfabric("ibfabric bw, ib_write_bw", |scene| measure(scene, "ib_write_bw", 65536)),
    Case::with_ibfabric("ibfabric bw, ib_read_bw", |scene| measure(scene, "ib_read_bw", 65536)),
    Case::with_ibfabric("ibfabric bw, ib_send_bw", |scene| measure(scene, "ib_send_bw", 65536)),
    Case::with_ibfabric("ibfabric lat, ib_write_lat", |scene| measure(scene, "ib_write_lat", 5000)),
    Case::with_ibfabric("ibfabric lat, ib_read_lat", |scene| measure(scene, "ib_read_lat", 5000)),
    Case::with_ibfabric("ibfabric lat, ib_send_lat", |scene| measure(scene, "ib_send_lat", 5000)),
    Case::with_ibfabric("ib_write_bw with 4 queue pairs", several_served),
    Case::with_ibfabric("ibfabric bw with 4 queue pairs, ib_write_bw", several),
    Case::with_ibfabric("ibfabric bw as perftest, rping", not_perftest),
    Case::with_ibfabric("rping, ibfabric server for perftest", no_client_of_perftest),
];

/// Number of iterations that a perftest program runs.
const ITERATIONS: u32 = 100;

fn measured(scene: &mut Scene<'_>, program: &str, size: u32) -> Result<(), RunError> {
    let [_, own] = IPV4;
    let size = size.to_string();
    let serve =
        ["rdma", "serve", "--listen", own, "--exit-after", "1", "-v", "--perftest", program];
    let ours = scene.ours(serve.into_iter().chain(["--perftest-size", &size]))?;
    ours.until(READY, LISTENS)?;
    let client = scene.guest.start(&format!("{program} -R -n {ITERATIONS} -s {size} {own}"))?;
    let client = scene.succeeds(client)?;
    reported(scene, &client, &size);
    let ours = scene.succeeds(ours)?;
    let expected = match program {
        "ib_write_bw" | "ib_read_bw" => format!("{size} bytes, {ITERATIONS} iterations, "),
        "ib_read_lat" => "ib_read_lat".to_owned(),
        "ib_write_lat" => format!("{ITERATIONS} messages"),
        _ => format!("{size} bytes, {ITERATIONS} messages"),
    };
    scene.expect_lines(&ours, &expected, 1);
    unharmed(scene)
}

fn measure(scene: &mut Scene<'_>, program: &str, size: u32) -> Result<(), RunError> {
    let [guest, own] = IPV4;
    let (size, iterations) = (size.to_string(), ITERATIONS.to_string());
    let server = scene.guest.start(&format!("{program} -R -n {iterations} -s {size}"))?;
    scene.guest.await_listener(18515, LISTENS)?;
    let mut words = program.split('_').skip(1);
    let (op, what) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let measure = ["rdma", what, guest, "--from", own, "--perftest", "--op", op];
    let ours = scene.ours(measure.into_iter().chain(["-n", &iterations, "-s", &size]))?;
    let ours = scene.succeeds(ours)?;
    scene.expect_lines(&ours, &format!("{op}, {size} bytes, 1 queue pairs"), 1);
    let server = scene.succeeds(server)?;
    // `ib_read_lat` prints no measurement if it is the target of the RDMA READs.
    if program != "ib_read_lat" {
        reported(scene, &server, &size);
    }
    unharmed(scene)
}

fn several_served(scene: &mut Scene<'_>) -> Result<(), RunError> {
    let [_, own] = IPV4;
    let serve =
        ["rdma", "serve", "--listen", own, "--exit-after", "1", "--perftest", "ib_write_bw"];
    let ours = scene.ours(serve)?;
    ours.until(READY, LISTENS)?;
    let client = scene.guest.start(&format!("ib_write_bw -R -q 4 -n 100 -s 1000 {own}"))?;
    let client = scene.succeeds(client)?;
    scene.expect_lines(&client, " 1000 ", 1);
    let ours = scene.succeeds(ours)?;
    scene.expect_lines(&ours, "1000 bytes, ", 1);
    unharmed(scene)
}

fn several(scene: &mut Scene<'_>) -> Result<(), RunError> {
    let [guest, own] = IPV4;
    let server = scene.guest.start("ib_write_bw -R -q 4 -n 100 -s 1000")?;
    scene.guest.await_listener(18515, LISTENS)?;
    let measure = ["rdma", "bw", guest, "--from", own, "--perftest", "-q", "4"];
    let ours = scene.ours(measure.into_iter().chain(["-n", "100", "-s", "1000"]))?;
    scene.succeeds(ours)?;
    let server = scene.succeeds(server)?;
    scene.expect_lines(&server, " 1000 ", 1);
    unharmed(scene)
}

fn not_perftest(scene: &mut Scene<'_>) -> Result<(), RunError> {
    let [guest, own] = IPV4;
    let server = scene.guest.start(&format!("rping -s -a {guest}"))?;
    scene.guest.await_listener(7174, LISTENS)?;
    let measure = ["rdma", "bw", guest, "--from", own, "--perftest", "-p", "7174"];
    let ours = scene.ours(measure)?;
    let ours = scene.fails(ours)?;
    scene.expect_lines(&ours, "perftest", 1);
    server.kill()?;
    unharmed(scene)
}

fn no_client_of_perftest(scene: &mut Scene<'_>) -> Result<(), RunError> {
    let [_, own] = IPV4;
    let serve =
        ["rdma", "serve", "--listen", own, "--exit-after", "1", "--perftest", "ib_write_bw"];
    let ours = scene.ours(serve)?;
    ours.until(READY, LISTENS)?;
    // rping's private data has as many bytes as perftest's version number, so the server reads it as a version.
    let client = scene.guest.start(&format!("rping -c -a {own} -p 18515 -C 1"))?;
    scene.ends(client, LISTENS)?;
    let ours = scene.fails(ours)?;
    scene.expect_lines(&ours, "found perftest's protocol version", 1);
    unharmed(scene)
}

/// Checks that the output has a row with the given size and the number of iterations.
fn reported(scene: &mut Scene<'_>, theirs: &Finished, size: &str) {
    let iterations = ITERATIONS.to_string();
    let is_row = |line: &str| {
        let mut words = line.split_whitespace();
        words.next() == Some(size) && words.next() == Some(&iterations)
    };
    let is_there = theirs.output.lines().any(is_row);
    scene.checked.check(is_there, || {
        let (command, output) = (&theirs.command, &theirs.output);
        format!(
            "expected a row with {size} and {iterations} in the output of `{command}`:\n{output}"
        )
    });
}

/// Checks that the guest has not retransmitted packets.
fn unharmed(scene: &mut Scene<'_>) -> Result<(), RunError> {
    ["retry_exceeded_err", "completer_retry_err"]
        .into_iter()
        .try_for_each(|counter| scene.gained(counter, 0..=0))
}

fn call(scene: &mut Scene<'_>, [guest, own]: [&str; 2], connections: u32) -> Result<(), RunError> {
    let common = format!("-c {connections} -C 20 -S 5000");
    let server = scene.guest.start(&format!("ucmatose -b {guest} {common}"))?;
    scene.guest.await_listener(7471, LISTENS)?;
    let options = ["rdma", "cmatose", guest, "--from", own].into_iter();
    let ours = scene.ours(options.chain(common.split(' ')))?;
    let ours = scene.succeeds(ours)?;
    scene.expect_lines(&ours, &format!("{connections} connections"), 1);
    scene.expect_lines(&ours, "20 messages of 5000 bytes in each direction", 1);
    exchanged(scene, server)?;
    scene.gained("rdma_sends", 20 * u64::from(connections)..=500)?;
    check_no_retries(scene)
}

fn serve(scene: &mut Scene<'_>, [_, own]: [&str; 2]) -> Result<(), RunError> {
    let serve = ["rdma", "serve", "--listen", own, "--ucmatose", "--exit-after", "4", "-v"];
    let ours = scene.ours(serve.into_iter().chain(["-C", "20", "-S", "5000"]))?;
    ours.until(READY, LISTENS)?;
    let client = scene.guest.start(&format!("ucmatose -s {own} -c 4 -C 20 -S 5000"))?;
    exchanged(scene, client)?;
    let ours = scene.succeeds(ours)?;
    scene.expect_lines(&ours, "20 messages of 5000 bytes in each direction", 4);
    check_no_retries(scene)
}

fn exchanged(scene: &mut Scene<'_>, theirs: Running) -> Result<(), RunError> {
    let theirs = scene.succeeds(theirs)?;
    scene.expect_lines(&theirs, "data transfers complete", 1);
    scene.expect_lines(&theirs, "return status 0", 1);
    Ok(())
}

fn other_messages(scene: &mut Scene<'_>) -> Result<(), RunError> {
    let [_, own] = IPV4;
    let serve = ["rdma", "serve", "--listen", own, "--ucmatose", "--exit-after", "1"];
    let ours = scene.ours(serve)?;
    ours.until(READY, LISTENS)?;
    // ibfabric expects messages of 100 bytes, its default, and must fail. ucmatose does not check the size of received
    // messages, so its exit status does not matter.
    let client = scene.guest.start(&format!("ucmatose -s {own} -S 110"))?;
    scene.ends(client, LISTENS)?;
    let ours = scene.fails(ours)?;
    scene.expect_lines(&ours, "ibfabric:", 1);
    scene.gained("retry_exceeded_err", 0..=0)
}
