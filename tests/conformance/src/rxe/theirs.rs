//! Cases with `ucmatose` or a perftest program at the other end of ibfabric's HCA.

use interop::{Finished, RunError, Running};

use super::cases::LISTENS;
use super::ours::{IPV4, IPV6, READY, sound};
use super::{Case, Scene};

/// Our adapter with `ucmatose` at the other end.
pub(super) const UCMATOSE: [Case; 6] = [
    Case::with_ours("our cmatose, their ucmatose, IPv4", |scene| call(scene, IPV4, 1)),
    Case::with_ours("our cmatose, their ucmatose, IPv6", |scene| call(scene, IPV6, 1)),
    Case::with_ours("our cmatose, their ucmatose, 8 connections", |scene| call(scene, IPV4, 8)),
    Case::with_ours("their ucmatose, our server, IPv4", |scene| serve(scene, IPV4)),
    Case::with_ours("their ucmatose, our server, IPv6", |scene| serve(scene, IPV6)),
    Case::with_ours("their ucmatose with other messages", other_messages),
];

/// Our adapter with a program of perftest at the other end: it speaks IPv4 only.
pub(super) const PERFTEST: [Case; 16] = [
    Case::with_ours("their ib_write_bw, our server", |scene| measured(scene, "ib_write_bw", 65536)),
    Case::with_ours("their ib_read_bw, our server", |scene| measured(scene, "ib_read_bw", 65536)),
    Case::with_ours("their ib_send_bw, our server", |scene| measured(scene, "ib_send_bw", 65536)),
    Case::with_ours("their ib_write_lat, our server", |scene| {
        measured(scene, "ib_write_lat", 5000)
    }),
    Case::with_ours("their ib_read_lat, our server", |scene| measured(scene, "ib_read_lat", 5000)),
    Case::with_ours("their ib_send_lat, our server", |scene| measured(scene, "ib_send_lat", 5000)),
    Case::with_ours("our bw, their ib_write_bw", |scene| measure(scene, "ib_write_bw", 65536)),
    Case::with_ours("our bw, their ib_read_bw", |scene| measure(scene, "ib_read_bw", 65536)),
    Case::with_ours("our bw, their ib_send_bw", |scene| measure(scene, "ib_send_bw", 65536)),
    Case::with_ours("our lat, their ib_write_lat", |scene| measure(scene, "ib_write_lat", 5000)),
    Case::with_ours("our lat, their ib_read_lat", |scene| measure(scene, "ib_read_lat", 5000)),
    Case::with_ours("our lat, their ib_send_lat", |scene| measure(scene, "ib_send_lat", 5000)),
    Case::with_ours("their ib_write_bw with 4 queue pairs", several_served),
    Case::with_ours("our bw with 4 queue pairs, their ib_write_bw", several),
    Case::with_ours("our bw as perftest, their rping", not_perftest),
    Case::with_ours("their rping, our server of perftest", no_client_of_perftest),
];

/// How often something is measured.
const ITERATIONS: u32 = 100;

fn measured(scene: &mut Scene<'_>, program: &str, size: u32) -> Result<(), RunError> {
    let [_, own] = IPV4;
    let size = size.to_string();
    let serve = ["rdma", "serve", "--listen", own, "--clients", "1", "-v", "--perftest", program];
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
    scene.says(&ours, &expected, 1);
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
    scene.says(&ours, &format!("{op}, {size} bytes, 1 queue pairs"), 1);
    let server = scene.succeeds(server)?;
    // Who is only read from measures nothing.
    if program != "ib_read_lat" {
        reported(scene, &server, &size);
    }
    unharmed(scene)
}

fn several_served(scene: &mut Scene<'_>) -> Result<(), RunError> {
    let [_, own] = IPV4;
    let serve = ["rdma", "serve", "--listen", own, "--clients", "1", "--perftest", "ib_write_bw"];
    let ours = scene.ours(serve)?;
    ours.until(READY, LISTENS)?;
    let client = scene.guest.start(&format!("ib_write_bw -R -q 4 -n 100 -s 1000 {own}"))?;
    let client = scene.succeeds(client)?;
    scene.says(&client, " 1000 ", 1);
    let ours = scene.succeeds(ours)?;
    scene.says(&ours, "1000 bytes, ", 1);
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
    scene.says(&server, " 1000 ", 1);
    unharmed(scene)
}

fn not_perftest(scene: &mut Scene<'_>) -> Result<(), RunError> {
    let [guest, own] = IPV4;
    let server = scene.guest.start(&format!("rping -s -a {guest}"))?;
    scene.guest.await_listener(7174, LISTENS)?;
    let measure = ["rdma", "bw", guest, "--from", own, "--perftest", "-p", "7174"];
    let ours = scene.ours(measure)?;
    let ours = scene.fails(ours)?;
    scene.says(&ours, "perftest", 1);
    server.kill()?;
    unharmed(scene)
}

fn no_client_of_perftest(scene: &mut Scene<'_>) -> Result<(), RunError> {
    let [_, own] = IPV4;
    let serve = ["rdma", "serve", "--listen", own, "--clients", "1", "--perftest", "ib_write_bw"];
    let ours = scene.ours(serve)?;
    ours.until(READY, LISTENS)?;
    // What it offers is as long as a version.
    let client = scene.guest.start(&format!("rping -c -a {own} -p 18515 -C 1"))?;
    scene.ends(client, LISTENS)?;
    let ours = scene.fails(ours)?;
    scene.says(&ours, "found perftest's protocol version", 1);
    unharmed(scene)
}

/// It says the size and how often.
fn reported(scene: &mut Scene<'_>, theirs: &Finished, size: &str) {
    let iterations = ITERATIONS.to_string();
    let is_row = |line: &str| {
        let mut words = line.split_whitespace();
        words.next() == Some(size) && words.next() == Some(&iterations)
    };
    let is_there = theirs.output.lines().any(is_row);
    scene.checked.check(is_there, || {
        let (command, output) = (&theirs.command, &theirs.output);
        format!("expected a row with {size} and {iterations} of `{command}`:\n{output}")
    });
}

/// The guest has sent nothing again.
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
    scene.says(&ours, &format!("{connections} connections"), 1);
    scene.says(&ours, "20 messages of 5000 bytes in each direction", 1);
    exchanged(scene, server)?;
    scene.gained("rdma_sends", 20 * u64::from(connections)..=500)?;
    sound(scene)
}

fn serve(scene: &mut Scene<'_>, [_, own]: [&str; 2]) -> Result<(), RunError> {
    let serve = ["rdma", "serve", "--listen", own, "--ucmatose", "--clients", "4", "-v"];
    let ours = scene.ours(serve.into_iter().chain(["-C", "20", "-S", "5000"]))?;
    ours.until(READY, LISTENS)?;
    let client = scene.guest.start(&format!("ucmatose -s {own} -c 4 -C 20 -S 5000"))?;
    exchanged(scene, client)?;
    let ours = scene.succeeds(ours)?;
    scene.says(&ours, "20 messages of 5000 bytes in each direction", 4);
    sound(scene)
}

fn exchanged(scene: &mut Scene<'_>, theirs: Running) -> Result<(), RunError> {
    let theirs = scene.succeeds(theirs)?;
    scene.says(&theirs, "data transfers complete", 1);
    scene.says(&theirs, "return status 0", 1);
    Ok(())
}

fn other_messages(scene: &mut Scene<'_>) -> Result<(), RunError> {
    let [_, own] = IPV4;
    let serve = ["rdma", "serve", "--listen", own, "--ucmatose", "--clients", "1"];
    let ours = scene.ours(serve)?;
    ours.until(READY, LISTENS)?;
    // Theirs would fit into what we have, but are not what we expect. It is none the wiser: its status is 0.
    let client = scene.guest.start(&format!("ucmatose -s {own} -S 110"))?;
    scene.ends(client, LISTENS)?;
    let ours = scene.fails(ours)?;
    scene.says(&ours, "ibfabric:", 1);
    scene.gained("retry_exceeded_err", 0..=0)
}
