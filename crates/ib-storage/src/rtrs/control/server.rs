//! The control of a server.

use std::os::fd::{AsFd, BorrowedFd};

use ib_rtrs::tree::{PortName, Ports, ServerTree};
use ib_rtrs::{Adapter, AdapterId, Adapters, Errno, PathAddress, PathSpec, Server as Rtrs};
use ib_types::{Instant, PKey};

use super::{Control, ControlRequest, message};
use crate::rtrs::Devices;

/// The control of a server.
pub(in crate::rtrs) struct ServerControl {
    control: Control,
    tree: ServerTree,
}

/// The HCAs of a server, which connects no paths.
struct Reach<'a>(&'a mut Devices);

impl Adapters for Reach<'_> {
    fn get(&mut self, id: AdapterId) -> Option<Adapter<'_>> {
        self.0.get(id)
    }

    fn is_in_partition(&self, id: AdapterId, p_key: PKey) -> bool {
        self.0.is_in_partition(id, p_key)
    }
}

impl Ports for Reach<'_> {
    fn port_name(&self, id: AdapterId) -> Option<PortName> {
        self.0.port_name(id)
    }

    fn find_path(&mut self, _: &PathAddress) -> Result<PathSpec, (Errno, String)> {
        Err((Errno::EOPNOTSUPP, "a server connects no paths".to_owned()))
    }
}

impl ServerControl {
    pub(in crate::rtrs) fn new(control: Control) -> Self {
        Self { control, tree: ServerTree }
    }

    /// Answers what is asked; returns whether there was anything.
    pub(in crate::rtrs) fn serve(
        &mut self,
        now: Instant,
        rtrs: &mut Rtrs,
        devices: &mut Devices,
    ) -> bool {
        let mut moved = false;
        let mut reach = Reach(devices);
        let Self { control, tree } = self;
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
                    let written = tree.write(now, rtrs, &mut reach, &path, value.as_bytes());
                    message::reply_of(written, |()| message::written())
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

    pub(in crate::rtrs) fn as_fd(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }
}
