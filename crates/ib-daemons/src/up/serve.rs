//! The event loop of `up`. It runs the simulator with its SM, the hosts and the page in turn.

use std::io::Write;

use ib_types::Instant;

use super::embedded_hosts::EmbeddedHosts;
use super::page::FabricView;
use crate::error::{DaemonError, Verdict};
use crate::sim::SimServer;

/// Maximum number of times that the hosts run before the simulator's clients are served again.
const TURNS: usize = 64;

/// Runs the event loop until a signal stops the process or the self-test has finished.
pub(super) fn run(
    mut server: SimServer,
    mut hosts: EmbeddedHosts,
    output: &mut dyn Write,
) -> Result<Verdict, DaemonError> {
    server.set_embedded_hosts();
    let _signals = server.start()?;
    server.watch(&hosts.wakeups())?;
    let mut output = Output { output, is_closed: false };
    while !server.is_stopped() {
        server.receive()?;
        exchange_ports(&mut server, &mut hosts)?;
        if server.take_woken() {
            hosts.reset_wakeups();
        }
        let has_work = work(&mut server, &mut hosts)?;
        show(&mut server, &mut hosts)?;
        server.send()?;
        output.print(&mut hosts)?;
        if let Some(verdict) = hosts.verdict() {
            server.close();
            return Ok(verdict);
        }
        if hosts.is_ready() {
            server.announce_ready(output.output)?;
        }
        wait(&mut server, &mut hosts, has_work)?;
    }
    hosts.close(&mut server.sim)?;
    server.finish()?;
    Ok(Verdict::Good)
}

/// Waits for input or for a timer; returns at once if work is left.
fn wait(
    server: &mut SimServer,
    hosts: &mut EmbeddedHosts,
    has_work: bool,
) -> Result<(), DaemonError> {
    let due = if has_work { Some(Instant::ZERO) } else { hosts.due().filter(|_| server.is_up()) };
    let mut files = Vec::new();
    let nbd = hosts.nbd_server().map(|nbd| nbd.interests(&mut files));
    let limit = nbd.map(|until| until.since(ib_os::clock::now()));
    server.wait(due, &files, limit)
}

/// Removes the host from a port if another process requests the port for its HCA. Allows the host to return when this
/// HCA has detached.
fn exchange_ports(server: &mut SimServer, hosts: &mut EmbeddedHosts) -> Result<(), DaemonError> {
    while let Some(claim) = server.poll_claim() {
        match hosts.yield_port(&mut server.sim, claim.port) {
            Ok(()) => server.grant(&claim)?,
            Err(reason) => server.refuse(&claim, &reason),
        }
    }
    while let Some(port) = server.poll_released() {
        hosts.reclaim_port(port);
    }
    Ok(())
}

/// Runs the hosts; returns true if they have more work to do. If this process runs an SM that has not yet brought the
/// subnet up, does nothing.
fn work(server: &mut SimServer, hosts: &mut EmbeddedHosts) -> Result<bool, DaemonError> {
    let opened = server.take_opened();
    if !server.is_up() {
        return Ok(false);
    }
    for port in opened {
        hosts.notify_received(port);
    }
    for _ in 0..TURNS {
        if !hosts.work(&mut server.sim, &server.addresses)? {
            return Ok(false);
        }
        server.advance();
    }
    Ok(true)
}

fn show(server: &mut SimServer, hosts: &mut EmbeddedHosts) -> Result<(), DaemonError> {
    let (sim, addresses) = (&mut server.sim, &server.addresses);
    hosts.show(FabricView { sim, addresses, manager: server.manager.as_ref() })
}

/// Standard output.
struct Output<'a> {
    output: &'a mut dyn Write,
    is_closed: bool,
}

impl Output<'_> {
    /// Prints the lines of the hosts. If standard output is a closed pipe, a self-test continues without output, since
    /// its result is also the exit status.
    fn print(&mut self, hosts: &mut EmbeddedHosts) -> Result<(), DaemonError> {
        let lines: Vec<String> = std::iter::from_fn(|| hosts.poll_line()).collect();
        if lines.is_empty() || self.is_closed {
            return Ok(());
        }
        let printed = lines.iter().try_for_each(|line| Ok(writeln!(self.output, "{line}")?));
        match printed.and_then(|()| Ok(self.output.flush()?)) {
            Err(DaemonError::OutputClosed) if hosts.has_verdict() => {
                self.is_closed = true;
                Ok(())
            }
            printed => printed,
        }
    }
}
