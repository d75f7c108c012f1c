//! Serves the control socket of an RTRS server. Requests read and write entries of the server's tree of statistics and
//! controls.

use std::os::fd::{AsFd, BorrowedFd};

use ib_rtrs::tree::{PortName, Ports, ServerTree};
use ib_rtrs::{Adapter, AdapterId, Adapters, Errno, PathAddress, PathSpec, Server as Rtrs};
use ib_types::{Instant, PKey};

use super::Control;
use super::message::{self, WriteRequest};
use crate::rtrs::Devices;

/// A control socket, and the statistics and control tree of a server.
pub(in crate::rtrs) struct ServerControl {
    control: Control,
    tree: ServerTree,
}

/// The HCAs of a server. Requests to add a path fail, since only clients add paths to a session.
struct ServerPorts<'a>(&'a mut Devices);

impl Adapters for ServerPorts<'_> {
    fn get(&mut self, id: AdapterId) -> Option<Adapter<'_>> {
        self.0.get(id)
    }

    fn is_in_partition(&self, id: AdapterId, p_key: PKey) -> bool {
        self.0.is_in_partition(id, p_key)
    }
}

impl Ports for ServerPorts<'_> {
    fn port_name(&self, id: AdapterId) -> Option<PortName> {
        self.0.port_name(id)
    }

    fn find_path(&mut self, _: &PathAddress) -> Result<PathSpec, (Errno, String)> {
        Err((Errno::EOPNOTSUPP, "only clients can add paths".to_owned()))
    }
}

impl ServerControl {
    pub(in crate::rtrs) fn new(control: Control) -> Self {
        Self { control, tree: ServerTree }
    }

    /// Responds to queued control requests. Returns true if there were any.
    pub(in crate::rtrs) fn serve(
        &mut self,
        now: Instant,
        rtrs: &mut Rtrs,
        devices: &mut Devices,
    ) -> bool {
        let mut moved = false;
        let mut ports = ServerPorts(devices);
        let Self { control, tree } = self;
        while let Some((ask, request)) = control.take() {
            moved = true;
            let reply = message::reply_to_read(ask, tree, rtrs, &ports);
            let reply = reply.unwrap_or_else(|WriteRequest { path, value }| {
                let result = tree.write(now, rtrs, &mut ports, &path, value.as_bytes());
                message::reply_of(result, |()| message::written())
            });
            request.respond(reply.to_line());
        }
        moved
    }

    /// Calls [`Control::begin_wait`], and returns its result.
    pub(in crate::rtrs) fn begin_wait(&mut self) -> bool {
        self.control.begin_wait()
    }

    pub(in crate::rtrs) fn as_fd(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }
}
