//! What lives at ports of a simulated fabric in the simulator's own process.

use std::os::fd::BorrowedFd;

use ib_sim::{Addresses, Sim};
use ib_storage::nbd::NbdServer;
use ib_topology::PortId;
use ib_types::Instant;

use super::manager::Manager;
use crate::error::{DaemonError, Verdict};

/// What there is to see, and to change.
pub(crate) struct Look<'a> {
    /// The fabric.
    pub(crate) sim: &'a mut Sim,
    /// The IP addresses of its ports.
    pub(crate) addresses: &'a Addresses,
    /// The subnet manager in this process.
    pub(crate) manager: Option<&'a Manager>,
}

/// Those who live there.
pub(crate) trait Residents {
    /// Does what can be done at this moment; returns whether there was anything. They come when the subnet is up.
    fn work(&mut self, sim: &mut Sim, addresses: &Addresses) -> Result<bool, DaemonError>;

    /// Returns when there is something to do although nothing comes in.
    fn due(&self) -> Option<Instant>;

    /// Something may have come for the HCA of a port.
    fn look_at(&mut self, port: PortId);

    /// Returns the descriptors that are readable when requests from outside are queued.
    fn bells(&self) -> Vec<BorrowedFd<'_>>;

    /// Resets the wake-ups; the requests are served in the next [`Residents::look`].
    fn silence(&mut self);

    /// Shows what is to be shown, and answers who has asked.
    fn look(&mut self, look: Look<'_>) -> Result<(), DaemonError>;

    /// Leaves a port to an HCA of another process; returns why not, if it is not left.
    fn leave(&mut self, sim: &mut Sim, port: PortId) -> Result<(), String>;

    /// Takes the port back after the HCA of the other process has disconnected.
    fn come_back(&mut self, port: PortId);

    /// Returns the server of programs that use a block device, if there is one.
    fn programs(&mut self) -> Option<&mut NbdServer>;

    /// Returns whether everything is there that has to be.
    fn is_ready(&self) -> bool;

    /// Returns the next thing to be told.
    fn poll_line(&mut self) -> Option<String>;

    /// Returns whether something will come of what is done, for [`Residents::ended`].
    fn has_verdict(&self) -> bool;

    /// Returns what came of what was to be done, once it has ended.
    fn ended(&self) -> Option<Verdict>;

    /// The process ends.
    fn close(&mut self, sim: &mut Sim) -> Result<(), DaemonError>;
}
