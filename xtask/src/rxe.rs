//! Tests RDMA programs in a guest with soft RoCE, with each other, with `ibfabric rdma`, and with the same programs
//! under `ibfabric run`. If tshark is installed, compares how `ibfabric capture read` and tshark read the captured
//! packets.

use conformance::rxe::cases::cases;

use crate::cases::Selection;
use crate::guests::{self, GuestResults, Guests, PACKETS};
use crate::{TaskResult, tshark};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Runs cases with a deliberate error. Each case has to report the fault that the error causes.
    #[arg(long, conflicts_with = "all")]
    self_test: bool,
    /// Fails if no guest can run, instead of skipping all cases.
    #[arg(long)]
    require: bool,
    /// Runs each case N times in one guest, to find rare faults.
    #[arg(long, value_name = "N", default_value = "1")]
    times: u32,
}

/// Maximum number of printed differences between `ibfabric capture read` and tshark.
const MOST: usize = 20;

pub(crate) fn run(Args { selection, self_test, require, times }: &Args) -> TaskResult {
    let list = guests::selected_cases(cases(*self_test), selection)?;
    let mut outputs = selection.outputs("rxe-")?;
    let binary = match list.iter().any(|case| case.ours) {
        true => Some(selection.ibfabric_with_library()?),
        false => None,
    };
    let mut compared = tshark::Compared::default();
    let guests = Guests { selection, require: *require, times: *times, binary: binary.as_deref() };
    let ran = guests.run(&list, outputs.path(), |directory| match binary.as_deref() {
        Some(binary) if tshark::is_installed() => {
            compared.file(binary, &directory.join(PACKETS), &[])
        }
        _ => Ok(()),
    })?;
    let Some(GuestResults { passed, mut failed }) = ran else { return Ok(()) };
    if compared.files() > 0 {
        compared.print();
        if compared.packets() == 0 {
            compared.faults.push("no RDMA packet was captured".to_owned());
        }
        failed += usize::from(!compared.faults.is_empty());
        for fault in compared.faults.iter().take(MOST) {
            eprintln!("         {fault}");
        }
    }
    if failed > 0 {
        outputs.keep();
    }
    eprintln!("{passed} passed, {failed} failed");
    if failed > 0 { Err("a case with the kernel's soft RoCE failed".into()) } else { Ok(()) }
}
