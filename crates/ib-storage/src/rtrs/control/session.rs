//! Serves control requests, which read and write the tree of a client's session.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};

use ib_rtrs::tree::{ClientTree, PortName, Ports, WriteStatus};
use ib_rtrs::{
    Adapter, AdapterId, Adapters, Client as Rtrs, ClientEvent, Errno, PathAddress, PathSpec,
};
use ib_types::{Instant, PKey};

use super::Control;
use super::message::{self, WriteRequest};
use crate::rtrs::Devices;
use ib_control::queue::QueuedRequest;

/// Resolves the address of a path that is to be added to the session. If the client's HCA for this
/// path is not in the set yet, adds the HCA. Fails with an error number and a reason.
pub type PathFinder =
    Box<dyn FnMut(&mut Devices, &PathAddress) -> Result<PathSpec, (Errno, String)>>;

/// A control socket, and the statistics and control tree of a client's session.
pub(in crate::rtrs) struct SessionControl {
    control: Control,
    find_path: PathFinder,
    tree: ClientTree,
    /// Write requests whose actions are not complete. The key of a request is its ticket: the number
    /// by which the tree reports the result of the write.
    waiting: BTreeMap<u64, QueuedRequest>,
    next: u64,
}

/// The HCAs of a client, and the resolver of paths to be added.
struct ClientPorts<'a> {
    devices: &'a mut Devices,
    find_path: &'a mut PathFinder,
}

impl Adapters for ClientPorts<'_> {
    fn get(&mut self, id: AdapterId) -> Option<Adapter<'_>> {
        self.devices.get(id)
    }

    fn is_in_partition(&self, id: AdapterId, p_key: PKey) -> bool {
        self.devices.is_in_partition(id, p_key)
    }
}

impl Ports for ClientPorts<'_> {
    fn port_name(&self, id: AdapterId) -> Option<PortName> {
        self.devices.port_name(id)
    }

    fn find_path(&mut self, address: &PathAddress) -> Result<PathSpec, (Errno, String)> {
        (self.find_path)(self.devices, address)
    }
}

impl SessionControl {
    pub(in crate::rtrs) fn new(control: Control, find_path: PathFinder) -> Self {
        let (tree, waiting) = (ClientTree::default(), BTreeMap::new());
        Self { control, find_path, tree, waiting, next: 0 }
    }

    /// Passes an event of the session to the control tree.
    pub(in crate::rtrs) fn follow(
        &mut self,
        now: Instant,
        rtrs: &mut Rtrs,
        devices: &mut Devices,
        event: &ClientEvent,
    ) {
        let mut ports = ClientPorts { devices, find_path: &mut self.find_path };
        self.tree.handle_event(now, rtrs, &mut ports, event);
    }

    /// Responds to queued control requests and completed writes. Returns true if there were any. The owner
    /// must have passed all events of the session to [`SessionControl::follow`] before.
    pub(in crate::rtrs) fn serve(
        &mut self,
        now: Instant,
        rtrs: &mut Rtrs,
        devices: &mut Devices,
    ) -> bool {
        let mut moved = false;
        let Self { control, find_path, tree, waiting, next } = self;
        let mut ports = ClientPorts { devices, find_path };
        if tree.poll_timeout().is_some_and(|at| at <= now) {
            tree.handle_timeout(now, rtrs, &mut ports);
        }
        while let Some((ticket, result)) = tree.poll() {
            moved = true;
            if let Some(request) = waiting.remove(&ticket) {
                request.respond(message::reply_of(result, |()| message::written()).to_line());
            }
        }
        while let Some((ask, request)) = control.take() {
            moved = true;
            let reply = match message::reply_to_read(ask, tree, rtrs, &ports) {
                Ok(reply) => reply,
                Err(WriteRequest { path, value }) => {
                    *next += 1;
                    match tree.write(now, rtrs, &mut ports, &path, value.as_bytes(), *next) {
                        Ok(WriteStatus::Done) => message::written(),
                        Ok(WriteStatus::Pending) => {
                            waiting.insert(*next, request);
                            // Executes no further request now: the tree must handle the events of
                            // this write before the next write.
                            return true;
                        }
                        Err(error) => message::failed(&error),
                    }
                }
            };
            request.respond(reply.to_line());
        }
        moved
    }

    /// Calls [`Control::begin_wait`], and returns its result.
    pub(in crate::rtrs) fn begin_wait(&mut self) -> bool {
        self.control.begin_wait()
    }

    /// Returns the time at which [`SessionControl::serve`] must be called even if no request is
    /// queued.
    pub(in crate::rtrs) fn poll_timeout(&self) -> Option<Instant> {
        self.tree.poll_timeout()
    }

    pub(in crate::rtrs) fn as_fd(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }
}
