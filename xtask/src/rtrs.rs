//! RTRS and RNBD of the kernel in a guest, and ours beside it.

use std::fs;

use conformance::rtrs::CASES;
use conformance::rxe::{Gear, LINKS};
use interop::BootError;

use crate::cases::Selection;
use crate::rxe::{Verdict, boot, name, run_case};
use crate::{Chored, release_artifact};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Fails where no guest can run, instead of skipping all cases.
    #[arg(long)]
    require: bool,
}

pub(crate) fn run(Args { selection, require }: &Args) -> Chored {
    let program = release_artifact(&["--package", "ib-net", "--example", "rtrs"], "rtrs")?;
    let mut outputs = selection.outputs("rtrs-")?;
    let (mut passed, mut failed) = (0, 0);
    for link in LINKS {
        let wanted = |case: &&_| selection.wants(&name(case, link));
        let list: Vec<_> = CASES.iter().filter(wanted).collect();
        if list.is_empty() {
            continue;
        }
        let directory = outputs.path().join(format!("mtu{}", link.mtu));
        fs::create_dir_all(&directory)?;
        let guest = match boot(link, &directory) {
            Err(error @ BootError::Unavailable(_)) if !require => {
                eprintln!("skipped: {error}");
                return Ok(());
            }
            booted => booted?,
        };
        let gear = Gear { guest: &guest, link, ibfabric: Some(&program) };
        for case in list {
            let verdict = match run_case(case, &gear, &directory)? {
                Verdict::Stalled => run_case(case, &gear, &directory)?,
                verdict => verdict,
            };
            *(if verdict == Verdict::Good { &mut passed } else { &mut failed }) += 1;
        }
        let log = guest.kernel_log().unwrap_or_else(|error| error.to_string());
        fs::write(directory.join("kernel-log"), log)?;
        fs::write(directory.join("console"), guest.console())?;
    }
    if failed > 0 {
        outputs.keep();
    }
    eprintln!("{passed} passed, {failed} failed");
    if failed > 0 { Err("a case with the kernel's RTRS failed".into()) } else { Ok(()) }
}
