//! The control of a client's session.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};

use ib_rtrs::tree::{ClientTree, PortName, Ports, Written};
use ib_rtrs::{
    Adapter, AdapterId, Adapters, Client as Rtrs, ClientEvent, Errno, PathAddress, PathSpec,
};
use ib_types::{Instant, PKey};

use super::{Control, ControlRequest, message};
use crate::rtrs::Devices;
use ib_control::queue::QueuedRequest;

/// Resolves the specification of a path to add, and adds the HCA that the path starts from if it is new. Fails with
/// an error number and a reason.
pub type PathFinder =
    Box<dyn FnMut(&mut Devices, &PathAddress) -> Result<PathSpec, (Errno, String)>>;

/// The control of a session.
pub(in crate::rtrs) struct SessionControl {
    control: Control,
    find_path: PathFinder,
    tree: ClientTree,
    /// What was written and takes its time, by ticket.
    waiting: BTreeMap<u64, QueuedRequest>,
    next: u64,
}

/// HCAs, and who finds paths.
struct Reach<'a> {
    devices: &'a mut Devices,
    find_path: &'a mut PathFinder,
}

impl Adapters for Reach<'_> {
    fn get(&mut self, id: AdapterId) -> Option<Adapter<'_>> {
        self.devices.get(id)
    }

    fn is_in_partition(&self, id: AdapterId, p_key: PKey) -> bool {
        self.devices.is_in_partition(id, p_key)
    }
}

impl Ports for Reach<'_> {
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

    /// Takes what the session tells.
    pub(in crate::rtrs) fn follow(
        &mut self,
        now: Instant,
        rtrs: &mut Rtrs,
        devices: &mut Devices,
        event: &ClientEvent,
    ) {
        let mut reach = Reach { devices, find_path: &mut self.find_path };
        self.tree.handle_event(now, rtrs, &mut reach, event);
    }

    /// Answers what is asked, once everything was followed that the session tells; returns whether there was anything.
    pub(in crate::rtrs) fn serve(
        &mut self,
        now: Instant,
        rtrs: &mut Rtrs,
        devices: &mut Devices,
    ) -> bool {
        let mut moved = false;
        let Self { control, find_path, tree, waiting, next } = self;
        let mut reach = Reach { devices, find_path };
        if tree.poll_timeout().is_some_and(|at| at <= now) {
            tree.handle_timeout(now, rtrs, &mut reach);
        }
        while let Some((ticket, result)) = tree.poll() {
            moved = true;
            if let Some(request) = waiting.remove(&ticket) {
                request.respond(message::reply_of(result, |()| message::written()).to_line());
            }
        }
        while let Some((ask, request)) = control.take() {
            moved = true;
            let reply = match ask {
                ControlRequest::List(path) => {
                    message::reply_of(tree.list(rtrs, &path), |all| message::list(&all))
                }
                ControlRequest::Kind(path) => {
                    message::reply_of(tree.kind(rtrs, &path), message::kind)
                }
                ControlRequest::Read(path) => {
                    message::reply_of(tree.read(rtrs, &reach, &path), |text| {
                        message::read(&path, text)
                    })
                }
                ControlRequest::Metrics => message::metrics(tree.metrics(rtrs)),
                ControlRequest::Write { path, value } => {
                    *next += 1;
                    let what = (&path[..], value.as_bytes());
                    match tree.write(now, rtrs, &mut reach, what, *next) {
                        Ok(Written::Done) => message::written(),
                        Ok(Written::Later) => {
                            waiting.insert(*next, request);
                            // What the session tells of it is followed before anything else is written.
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

    /// As [`Control::begin_wait`].
    pub(in crate::rtrs) fn begin_wait(&mut self) -> bool {
        self.control.begin_wait()
    }

    /// Returns when there is something to do without a request.
    pub(in crate::rtrs) fn poll_timeout(&self) -> Option<Instant> {
        self.tree.poll_timeout()
    }

    pub(in crate::rtrs) fn as_fd(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }
}
