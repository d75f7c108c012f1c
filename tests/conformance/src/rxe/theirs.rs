//! The cases in which `ucmatose` or a program of perftest is at the other end of our adapter.

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

fn call(scene: &mut Scene<'_>, [guest, own]: [&str; 2], connections: u32) -> Result<(), RunError> {
    let common = format!("-c {connections} -C 20 -S 5000");
    let server = scene.guest.start(&format!("ucmatose -b {guest} {common}"))?;
    scene.guest.await_listener(7471, LISTENS)?;
    let options = ["rdma", "cmatose", guest, "--from", own].into_iter();
    let ours = scene.ours(options.chain(common.split(' ')))?;
    let ours = scene.succeeds(ours)?;
    scene.says(&ours, &format!("{connections} connections"), 1);
    scene.says(&ours, "20 messages of 5000 bytes each way", 1);
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
    scene.says(&ours, "20 messages of 5000 bytes each way", 4);
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
