//! `rtrs mount`: serves statistics and control of RTRS processes as files.

use std::io::Write;
use std::path::{Path, PathBuf};

use ib_os::alarm::Alarm;
use ib_os::signals::{Order, Orders};
use ib_storage::rtrs::mount::TreeMount;

use crate::error::{DaemonError, Verdict};
use crate::message::note;

/// Serves statistics and control of RTRS processes as files in `dir`. Ends when a signal stops this process or `dir` is
/// unmounted.
///
/// # Errors
/// Fails if the directory cannot be mounted.
pub fn mount(dir: &Path, control: &[PathBuf], out: &mut dyn Write) -> Result<Verdict, DaemonError> {
    let alarm = Alarm::new().map_err(DaemonError::failed)?;
    let failed = |error| DaemonError::failed(format_args!("cannot wait for signals: {error}"));
    let mut orders = Orders::catch_end(&alarm.bell()).map_err(failed)?;
    let mount = TreeMount::open(dir, control.to_vec(), alarm.bell());
    let mount = mount.map_err(DaemonError::failed)?;
    writeln!(out, "READY")?;
    out.flush()?;
    loop {
        if let Some(Order::End) = orders.take() {
            mount.close().map_err(DaemonError::failed)?;
            return Ok(Verdict::Good);
        }
        if mount.is_over() {
            note!("{}: the file system was unmounted", dir.display());
            return Ok(Verdict::Good);
        }
        alarm.wait().map_err(failed)?;
    }
}
