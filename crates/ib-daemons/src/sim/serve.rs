//! The event loop of the simulator.

use std::io::Write;

use super::server::SimServer;
use crate::error::{DaemonError, Verdict};

/// Serves clients until the simulator is stopped.
pub(super) fn run(mut server: SimServer, output: &mut dyn Write) -> Result<Verdict, DaemonError> {
    let _signals = server.start()?;
    while !server.is_stopped() {
        server.receive()?;
        server.send()?;
        // The list of ports with events is for embedded hosts. This process has none, so the list is discarded.
        server.take_opened();
        server.announce_ready(output)?;
        server.wait(None, &[], None)?;
    }
    server.finish()?;
    Ok(Verdict::Good)
}
