//! ibfabric's ACM service, queried by a real `ib_acme`, by `ibfabric acme`, and by librdmacm in a guest.

use std::fs;
use std::path::Path;

use conformance::acm::Scene;
use conformance::acm::guest::Scene as InGuest;
use conformance::acm::umad::{self, ManagedBy, Setup};
use conformance::clients::server::Kind;
use conformance::opensm::umad2sim;
use conformance::sm::scene::Checked;
use interop::{BootError, Guest, GuestOptions};

use crate::cases::{Selection, program_on_disk};
use crate::{TaskResult, release_artifact};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Fails if no guest can run. Without this option, the cases in the guest are then skipped.
    #[arg(long)]
    require: bool,
}

type Failed = Box<dyn std::error::Error>;

pub(crate) fn run(Args { selection, require }: &Args) -> TaskResult {
    let ibfabric = selection.ibfabric()?;
    let mut outputs = selection.outputs("acm-")?;
    let mut good = true;
    if selection.wants("services") {
        let directory = outputs.path().join("services");
        fs::create_dir_all(&directory)?;
        let mut scene = Scene::open(&ibfabric, &directory)?;
        scene.run()?;
        good &= print_result("ib_acme", &scene.checked);
    }
    good &= over_umad(selection, &ibfabric, outputs.path())?;
    if selection.wants("librdmacm") {
        good &= in_guest(&ibfabric, outputs.path(), *require)?;
    }
    if good {
        return Ok(());
    }
    outputs.keep();
    Err("replies differ from those of ibacm".into())
}

/// Runs `ib_acme` against ACM services that use a umad device. The runs differ in the preloaded umad library, the
/// simulator and the SM. Returns true if all checks passed.
fn over_umad(selection: &Selection, ibfabric: &Path, outputs: &Path) -> Result<bool, Failed> {
    let debian = umad2sim()?;
    let own = release_artifact(&["--package", "ib-preload"], "ib_preload")?;
    let ours = Kind::Ibfabric(ibfabric.to_owned());
    let mut good = true;
    for (name, simulator, preload, manager) in [
        ("umad-ibsim-opensm", &Kind::Ibsim, &debian, ManagedBy::OpenSm),
        ("umad-ibsim-ours", &Kind::Ibsim, &debian, ManagedBy::Ours),
        ("umad-ours-opensm", &ours, &own, ManagedBy::OpenSm),
        ("umad-ours-ours", &ours, &debian, ManagedBy::Ours),
    ] {
        if !selection.wants(name) {
            continue;
        }
        let directory = &outputs.join(name);
        fs::create_dir_all(directory)?;
        let setup = Setup { ibfabric, simulator, preload, manager, directory };
        let mut scene = umad::Scene::open(&setup)?;
        scene.run()?;
        good &= print_result(name, &scene.checked);
    }
    Ok(good)
}

/// Runs librdmacm in a guest. Returns true if all checks passed.
fn in_guest(ibfabric: &Path, outputs: &Path, require: bool) -> Result<bool, Failed> {
    let directory = outputs.join("librdmacm");
    fs::create_dir_all(&directory)?;
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
    fs::write(directory.join("transcript"), &scene.transcript)?;
    fs::write(directory.join("kernel-log"), guest.kernel_log().unwrap_or_default())?;
    let good = print_result("librdmacm", &scene.checked);
    ended?;
    Ok(good)
}

/// Prints the results. Returns true if all checks passed.
fn print_result(program: &str, Checked { checks, faults, .. }: &Checked) -> bool {
    for fault in faults {
        eprintln!("         {fault}");
    }
    let good = checks.saturating_sub(faults.len());
    eprintln!("{program}: {good} checks passed, {} failed", faults.len());
    faults.is_empty()
}
