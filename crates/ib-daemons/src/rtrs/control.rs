//! The control socket and the metrics server of an RTRS process, and paths that are added over the control socket.

use ib_device::address_of;
use ib_rtrs::Errno;
use ib_storage::rtrs::control::{Control, PathFinder};

use super::config::ControlConfig;
use super::endpoint::{Endpoint, RequestedPath};
use super::paths::PathSources;
use crate::error::DaemonError;

/// Opens the control socket and the metrics server, as far as they are configured.
pub(super) fn open(args: &ControlConfig) -> Result<Option<Control>, DaemonError> {
    let (socket, metrics) = (args.control.as_deref(), args.metrics);
    if socket.is_none() && metrics.is_none() {
        return Ok(None);
    }
    Control::open(socket, metrics).map(Some).map_err(DaemonError::failed)
}

/// Returns the function that finds the HCA and the route of a path that is added over the control socket.
pub(super) fn path_finder(mut sources: PathSources) -> PathFinder {
    Box::new(move |devices, address| {
        let source = address.source.map(Endpoint::from);
        let path = RequestedPath { source, server: address.destination.into() };
        let is_v4 = |end: &Endpoint| match end {
            Endpoint::Ip(address) => Some(address.is_ipv4()),
            Endpoint::Gid(gid) => (!sources.are_in_fabric()).then(|| address_of(*gid).is_ipv4()),
            Endpoint::Name(_) => None,
        };
        if let Some(source) = path.source.as_ref().and_then(is_v4)
            && is_v4(&path.server).is_some_and(|server| server != source)
        {
            let what = "both ends of a path need addresses of the same family, IPv4 or IPv6";
            return Err((Errno::EINVAL, what.to_owned()));
        }
        sources.path(devices, &path).map_err(|why| (Errno::EHOSTUNREACH, why.into_message()))
    })
}
