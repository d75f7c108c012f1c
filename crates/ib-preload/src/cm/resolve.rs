//! Resolves addresses and routes.

use std::time::Duration;

use ib_cm::PortSpace;
use ib_types::Gid;
use ib_wire::mad::sa::PathRecord;

use super::abi::ResolveRoute;
use super::address::{Address, IbAddress};
use super::ids::State;
use super::multicast::{full_p_key, group_of};
use super::port::CmPort;
use super::{EventType, FileId, Manager, Query};
use crate::errno::Errno;

impl Manager {
    /// Resolves the destination of an ID to a GID. An ID without a source address is bound to an address of the port.
    /// An event reports the result.
    pub(super) fn resolve_address(
        &mut self,
        channel: FileId,
        number: u32,
        (source, destination): (Option<Address>, Address),
        port: &mut impl CmPort,
    ) -> Result<(), Errno> {
        let source = source.unwrap_or_else(|| any_like(&destination));
        if self.ids.of(channel, number)?.state == State::Idle {
            if !source.is_alike(&destination) {
                return Err(Errno::INVALID);
            }
            self.bind(channel, number, source, port)?;
        }
        let id = self.ids.of(channel, number)?;
        let (Some(source), State::Bound) = (id.source, id.state) else {
            return Err(Errno::INVALID);
        };
        if !source.is_alike(&destination) {
            return Err(Errno::INVALID);
        }
        let space = id.space;
        match endpoints(&source, &destination, space, port) {
            Ok((source, destination, gid)) => {
                let id = self.ids.of(channel, number)?;
                id.source = Some(source);
                id.destination = Some(destination);
                id.peer_gid = gid;
                id.has_device = true;
                id.state = State::AddressResolved;
                self.report(number, EventType::AddrResolved, 0);
            }
            Err(error) => self.report(number, EventType::AddrError, -error.0),
        }
        Ok(())
    }

    /// Starts to query the path to the destination of an ID. An event reports the result.
    pub(super) fn resolve_route(
        &mut self,
        channel: FileId,
        resolve: &ResolveRoute,
        port: &mut impl CmPort,
    ) -> Result<(), Errno> {
        let number = resolve.id;
        let id = self.ids.of(channel, number)?;
        if id.state != State::AddressResolved {
            return Err(Errno::INVALID);
        }
        let gid = id.peer_gid;
        let timeout = Duration::from_millis(resolve.timeout_ms.into());
        match port.query_path(gid, timeout) {
            Some(query) => {
                id.state = State::RouteQuery;
                self.queries.insert(query, Query::Path(number));
            }
            None => {
                let path = port.ethernet_path(gid);
                let traffic_class = id.tos.unwrap_or_default();
                id.path = Some(PathRecord { traffic_class, ..path });
                id.state = State::RouteResolved;
                self.report(number, EventType::RouteResolved, 0);
            }
        }
        Ok(())
    }
}

/// Returns the source and destination address of a connection, and the GID of the destination.
///
/// # Errors
/// Fails with `ENETUNREACH` if the port has no address of the destination's family. Fails with `EHOSTUNREACH` if no
/// port has the destination address, and with `EINVAL` if one address is an IP address and the other is not.
fn endpoints(
    source: &Address,
    destination: &Address,
    space: PortSpace,
    port: &mut impl CmPort,
) -> Result<(Address, Address, Gid), Errno> {
    match (*source, *destination) {
        (Address::Ip(mut from), Address::Ip(mut to)) => {
            let own = port.own_address_for(to.ip()).ok_or(Errno(libc::ENETUNREACH))?;
            if from.ip().is_unspecified() {
                from.set_ip(own);
            }
            // As with sockets, the destination address 0.0.0.0 or :: means this machine.
            if to.ip().is_unspecified() {
                to.set_ip(own);
            }
            let gid = if to.ip().is_multicast() {
                let p_key = full_p_key(&port.view());
                group_of(destination, space, p_key)
            } else {
                port.gid_of(to.ip())?.ok_or(Errno(libc::EHOSTUNREACH))?
            };
            Ok((Address::Ip(from), Address::Ip(to), gid))
        }
        (Address::Ib(from), Address::Ib(to)) => {
            let own = port.view().gid;
            let gid = if to.gid == Gid::ZERO { own } else { to.gid };
            let from = IbAddress { gid: own, ..from };
            Ok((Address::Ib(from), Address::Ib(IbAddress { gid, ..to }), gid))
        }
        _ => Err(Errno::INVALID),
    }
}

/// Returns the address of the same family that stands for all addresses.
fn any_like(address: &Address) -> Address {
    match address {
        Address::Ip(it) if it.is_ipv4() => Address::ANY,
        Address::Ip(_) => Address::Ip((std::net::Ipv6Addr::UNSPECIFIED, 0).into()),
        Address::Ib(it) => {
            // The address has the port space of the destination, and port 0, which stands for any free port.
            Address::Ib(IbAddress {
                gid: Gid::ZERO,
                mask: it.mask & !0xffff,
                service: it.service & !0xffff,
                ..*it
            })
        }
    }
}
