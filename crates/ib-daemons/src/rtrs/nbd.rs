//! `ibfabric nbd`: exports a remote device to local NBD clients.

use std::io::Write;
use std::os::fd::AsFd as _;

use ib_nbd::Export;
use ib_os::alarm::Alarm;
use ib_os::signals::{Order, Orders};
use ib_rnbd::{MIN_LENT, ReadMode};
use ib_storage::nbd::NbdServer;
use ib_types::Instant;

use super::config::NbdConfig;
use super::remote::{self, Opened, Use};
use crate::error::{DaemonError, Verdict};
use crate::message::note;

/// Block size in bytes that the NBD server recommends to its clients.
const PREFERRED: u32 = 4096;

/// Exports a remote device over NBD until a signal stops the process.
///
/// # Errors
/// Fails if the device or the NBD socket cannot be used.
pub fn nbd(args: &NbdConfig, out: &mut dyn Write) -> Result<Verdict, DaemonError> {
    let alarm = Alarm::new().map_err(DaemonError::failed)?;
    let failed = |error| DaemonError::failed(format_args!("cannot wait for signals: {error}"));
    let mut orders = Orders::catch_end(&alarm.bell()).map_err(failed)?;
    let (depth, reads) = (args.depth, ReadMode::Lent(MIN_LENT));
    let how = Use { writes: !args.read_only, depth, reads };
    let mut opened = remote::open(&args.remote, &how, &mut orders)?;
    let offered = offer(args, &mut opened, (&alarm, &mut orders), out);
    // The device is closed even after an error, so that other clients can open it at once.
    let closed = opened.close();
    offered.and_then(|verdict| closed.map(|()| verdict))
}

/// Exports an open device over NBD until a signal stops the process.
fn offer(
    args: &NbdConfig,
    Opened { disk, geometry, .. }: &mut Opened,
    (alarm, orders): (&Alarm, &mut Orders),
    out: &mut dyn Write,
) -> Result<Verdict, DaemonError> {
    let export = Export {
        name: args.remote.device.clone(),
        description: format!("{} over RTRS", args.remote.device),
        geometry: *geometry,
        preferred: PREFERRED.max(geometry.logical_block),
    };
    let mut server =
        NbdServer::listen(&args.address, [export].into()).map_err(DaemonError::failed)?;
    match server.port() {
        Some(port) => writeln!(out, "READY nbd://{port}/{}", args.remote.device)?,
        None => writeln!(out, "READY")?,
    }
    out.flush()?;
    let failed = |error| DaemonError::failed(format_args!("cannot drive the HCAs: {error}"));
    let mut last_failure = None;
    loop {
        alarm.silence();
        let moved = disk.progress().map_err(failed)? | server.progress(disk);
        while let Some(why) = server.poll_failed() {
            note!("an NBD client has disconnected: {why}");
        }
        if !remote::print_events(disk, &mut last_failure) {
            return Err(DaemonError::Reported);
        }
        if let Some(Order::End) = orders.take() {
            return Ok(Verdict::Good);
        }
        if !moved {
            server.wait(disk, Instant::NEVER, &[alarm.as_fd()]).map_err(failed)?;
        }
    }
}
