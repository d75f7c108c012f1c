//! Our service of IB ACM, asked by a real `ib_acme` and by ours, and by librdmacm in a guest.

use std::fs;
use std::path::Path;

use conformance::acm::Scene;
use conformance::acm::guest::Scene as InGuest;
use conformance::sm::scene::Checked;
use interop::{BootError, Guest, GuestOptions};

use crate::Chored;
use crate::cases::{Selection, program_on_disk};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Fails where no guest can run, instead of skipping what runs there.
    #[arg(long)]
    require: bool,
}

pub(crate) fn run(Args { selection, require }: &Args) -> Chored {
    let ibfabric = selection.ibfabric()?;
    let mut outputs = selection.outputs("acm-")?;
    fs::create_dir_all(outputs.path())?;
    let mut good = true;
    if selection.wants("ib_acme") {
        let mut scene = Scene::open(&ibfabric, outputs.path())?;
        scene.run()?;
        good &= say("ib_acme", &scene.checked);
    }
    if selection.wants("librdmacm") {
        good &= in_guest(&ibfabric, outputs.path(), *require)?;
    }
    if good {
        return Ok(());
    }
    outputs.keep();
    Err("programs are not answered as by ibacm".into())
}

/// Has librdmacm ask in a guest; returns whether all was right.
fn in_guest(
    ibfabric: &Path,
    directory: &Path,
    require: bool,
) -> Result<bool, Box<dyn std::error::Error>> {
    let disk = directory.join("disk");
    program_on_disk(ibfabric, &disk)?;
    let options = GuestOptions { mtu: 9000, disk: Some(disk), ..GuestOptions::default() };
    let guest = match Guest::boot(&options) {
        Err(error @ BootError::Unavailable(_)) if !require => {
            eprintln!("skipped: librdmacm: {error}");
            return Ok(true);
        }
        booted => booted?,
    };
    let mut scene = InGuest::open(&guest, ibfabric)?;
    let ended = scene.run();
    fs::write(directory.join("librdmacm"), &scene.transcript)?;
    fs::write(directory.join("kernel-log"), guest.kernel_log().unwrap_or_default())?;
    let good = say("librdmacm", &scene.checked);
    ended?;
    Ok(good)
}

/// Tells what was checked; returns whether all was right.
fn say(program: &str, Checked { checks, faults, .. }: &Checked) -> bool {
    for fault in faults {
        eprintln!("         {fault}");
    }
    let good = checks.saturating_sub(faults.len());
    eprintln!("{program}: {good} checks passed, {} failed", faults.len());
    faults.is_empty()
}
