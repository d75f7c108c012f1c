//! `ibfabric nbd`: a device of a server for programs of this machine.

use std::io::Write as _;
use std::os::fd::AsFd as _;

use ib_nbd::Export;
use ib_os::alarm::Alarm;
use ib_os::signals::{Order, Orders};
use ib_rnbd::{Reads, WORTH_LENDING};
use ib_storage::nbd::{NbdServer, Place};
use ib_types::Instant;

use super::rtrs::remote::{self, Opened, Use};
use crate::cli::rtrs::NbdArgs;
use crate::failure::{Failure, Verdict, say};
use crate::output::Output;

/// The length of requests that are done best, in bytes.
const PREFERRED: u32 = 4096;

pub(crate) fn run(args: &NbdArgs, out: &mut Output) -> Result<Verdict, Failure> {
    let alarm = Alarm::new().map_err(Failure::unusable)?;
    let failed = |error| Failure::unusable(format_args!("waiting for signals: {error}"));
    let mut orders = Orders::catch_end(&alarm.bell()).map_err(failed)?;
    let (depth, reads) = (args.depth as usize, Reads::Lent(WORTH_LENDING));
    let how = Use { writes: !args.read_only, depth, reads };
    let mut opened = remote::open(&args.remote, &how, &mut orders)?;
    let offered = offer(args, &mut opened, (&alarm, &mut orders), out);
    // Whatever has ended it: the device is free at once for others.
    let closed = opened.close();
    offered.and_then(|verdict| closed.map(|()| verdict))
}

/// Offers a device that is open, until that is to end.
fn offer(
    args: &NbdArgs,
    Opened { disk, geometry, .. }: &mut Opened,
    (alarm, orders): (&Alarm, &mut Orders),
    out: &mut Output,
) -> Result<Verdict, Failure> {
    let export = Export {
        name: args.remote.device.clone(),
        description: format!("{} over RTRS", args.remote.device),
        geometry: *geometry,
        preferred: PREFERRED.max(geometry.logical_block),
    };
    let place = match (&args.socket, args.tcp) {
        (Some(path), _) => Place::Unix(path.clone()),
        (None, Some(address)) => Place::Tcp(address),
        (None, None) => unreachable!("one of both is asked for"),
    };
    let mut server = NbdServer::listen(&place, [export].into()).map_err(Failure::unusable)?;
    match server.port() {
        Some(port) => writeln!(out, "READY nbd://{port}/{}", args.remote.device)?,
        None => writeln!(out, "READY")?,
    }
    out.flush()?;
    let failed = |error| Failure::unusable(format_args!("driving the adapters: {error}"));
    loop {
        alarm.silence();
        let moved = disk.progress().map_err(failed)? | server.progress(disk);
        while let Some(why) = server.poll_failed() {
            say!("a program's connection has ended: {why}");
        }
        if !remote::tell(disk) {
            return Err(Failure::Said);
        }
        if let Some(Order::End) = orders.take() {
            return Ok(Verdict::Good);
        }
        if !moved {
            server.wait(disk, Instant::NEVER, &[alarm.as_fd()]).map_err(failed)?;
        }
    }
}
