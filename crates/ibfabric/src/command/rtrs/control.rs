//! What of statistics and paths others may see and change.

use ib_net::rtrs::control::{Control, PathFinder};
use ib_rtrs::{Address, Errno};

use super::ways::Ways;
use crate::cli::rtrs::{ControlArgs, EndArg, PathArg};
use crate::failure::Failure;

/// Opens what others ask by, if anything was asked for.
pub(super) fn open(args: &ControlArgs) -> Result<Option<Control>, Failure> {
    let (socket, port) = (args.control.as_deref(), args.metrics_port);
    if socket.is_none() && port.is_none() {
        return Ok(None);
    }
    Control::open(socket, port).map(Some).map_err(Failure::unusable)
}

/// Returns what finds the ways of paths that are added.
pub(super) fn path_finder(mut ways: Ways) -> PathFinder {
    Box::new(move |devices, address| {
        let mut ends = [address.source, Some(address.destination)].into_iter().flatten();
        let gid = ends.find(|end| matches!(end, Address::Gid(_)));
        if let Some(gid) = gid.filter(|_| !ways.are_in_fabric()) {
            return Err((Errno::EOPNOTSUPP, format!("{gid}: paths here lead to addresses of IP")));
        }
        let source = address.source.map(EndArg::from);
        let path = PathArg { source, server: address.destination.into() };
        if let (Some(EndArg::Ip(source)), EndArg::Ip(server)) = (&path.source, &path.server)
            && source.is_ipv4() != server.is_ipv4()
        {
            let what = "both ends of a path have to be of one kind, IPv4 or IPv6";
            return Err((Errno::EINVAL, what.to_owned()));
        }
        ways.path(devices, &path).map_err(|why| (Errno::EHOSTUNREACH, why.into_message()))
    })
}
