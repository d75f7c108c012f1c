//! `rtrs mount`: statistics of programs that run, and what changes their paths, as files.

use std::io::Write as _;

use ib_os::alarm::Alarm;
use ib_os::signals::{Order, Orders};
use ib_storage::rtrs::mount::TreeMount;

use crate::cli::rtrs::MountArgs;
use crate::failure::{Failure, Verdict, say};
use crate::output::Output;

pub(super) fn run(args: &MountArgs, out: &mut Output) -> Result<Verdict, Failure> {
    let alarm = Alarm::new().map_err(Failure::unusable)?;
    let failed = |error| Failure::unusable(format_args!("waiting for signals: {error}"));
    let mut orders = Orders::catch_end(&alarm.bell()).map_err(failed)?;
    let mount = TreeMount::open(&args.dir, args.control.clone(), alarm.bell());
    let mount = mount.map_err(Failure::unusable)?;
    writeln!(out, "READY")?;
    out.flush()?;
    loop {
        if let Some(Order::End) = orders.take() {
            mount.close().map_err(Failure::unusable)?;
            return Ok(Verdict::Good);
        }
        if mount.is_over() {
            say!("{}: somebody has ended it", args.dir.display());
            return Ok(Verdict::Good);
        }
        alarm.wait().map_err(failed)?;
    }
}
