//! Tests RTRS and RNBD between a guest's kernel and ibfabric.

use conformance::rtrs::CASES;

use crate::TaskResult;
use crate::cases::Selection;
use crate::guests::{self, GuestResults, Guests};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Fails if no guest can run, instead of skipping all cases.
    #[arg(long)]
    require: bool,
    /// Runs each case N times in one guest, to find rare faults.
    #[arg(long, value_name = "N", default_value = "1")]
    times: u32,
}

pub(crate) fn run(Args { selection, require, times }: &Args) -> TaskResult {
    let list = guests::selected_cases(CASES.to_vec(), selection)?;
    let binary = selection.ibfabric()?;
    let mut outputs = selection.outputs("rtrs-")?;
    let guests = Guests { selection, require: *require, times: *times, binary: Some(&binary) };
    let Some(GuestResults { passed, failed }) = guests.run(&list, outputs.path(), |_| Ok(()))?
    else {
        return Ok(());
    };
    if failed > 0 {
        outputs.keep();
    }
    eprintln!("{passed} passed, {failed} failed");
    if failed > 0 { Err("a case with the kernel's RTRS failed".into()) } else { Ok(()) }
}
