//! RTRS and RNBD of the kernel in a guest, and ours beside it.

use conformance::rtrs::CASES;

use crate::Chored;
use crate::cases::Selection;
use crate::guests::{self, Guests, Ran};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Fails where no guest can run, instead of skipping all cases.
    #[arg(long)]
    require: bool,
    /// Runs every case this often in one guest, for what goes wrong rarely.
    #[arg(long, value_name = "N", default_value = "1")]
    times: u32,
}

pub(crate) fn run(Args { selection, require, times }: &Args) -> Chored {
    let list = guests::wanted(CASES.to_vec(), selection)?;
    let binary = selection.ibfabric()?;
    let mut outputs = selection.outputs("rtrs-")?;
    let guests = Guests { selection, require: *require, times: *times, binary: Some(&binary) };
    let Some(Ran { passed, failed }) = guests.run(&list, outputs.path(), |_| Ok(()))? else {
        return Ok(());
    };
    if failed > 0 {
        outputs.keep();
    }
    eprintln!("{passed} passed, {failed} failed");
    if failed > 0 { Err("a case with the kernel's RTRS failed".into()) } else { Ok(()) }
}
