//! Executes commands on IDs. Error numbers are those of the kernel's `rdma_cm`.

use std::net::IpAddr;

use ib_cm::{PortSpace, ServiceId};
use ib_types::Instant;
use ib_wire::mad::cm::SidrStatus;
use ib_wire::mad::sa::PathRecord;

use super::abi::{CreateId, Listen, MigrateId, PathData, SetOption};
use super::address::Address;
use super::ids::{CmId, Exchange, QpKind, State};
use super::port::CmPort;
use super::{Context, EventType, FileId, Manager, Query, Request, Service};
use crate::errno::Errno;
use crate::layout::{Field, bytes_of, take};

/// Port space of IPoIB addresses (`RDMA_PS_IPOIB`).
pub(super) const IPOIB: PortSpace = PortSpace(0x0002);

/// Backlog of a listener if the program requests a larger one or none.
const MOST_WAITING: u32 = 1_024;

impl Manager {
    /// Executes a command of a channel. Returns the response.
    ///
    /// # Errors
    /// Fails with the error numbers of the kernel's `rdma_cm`; GET_EVENT fails with `EAGAIN` if no event waits.
    pub(crate) fn execute(
        &mut self,
        channel: FileId,
        request: &Request,
        context: Context<'_>,
        port: &mut impl CmPort,
    ) -> Result<Vec<u8>, Errno> {
        let now = context.now;
        let done = |result: Result<(), Errno>| result.map(|()| Vec::new());
        let address = |bytes: &[u8]| Address::parse(bytes).ok_or(Errno::INVALID);
        let sized = |bytes: &[u8], size| Address::parse_sized(bytes, size).ok_or(Errno::INVALID);
        match request {
            Request::CreateId(create) => self.create(channel, create, port),
            Request::DestroyId(id) => {
                self.ids.of(channel, *id)?;
                Ok(bytes_of(&self.destroy(*id, port, now)))
            }
            Request::BindIp(bind) => {
                let own = address(&bind.address)?;
                done(self.bind(channel, bind.id, own, port))
            }
            Request::Bind(bind) => {
                if bind.reserved != 0 {
                    return Err(Errno::INVALID);
                }
                let own = sized(&bind.address.0, bind.address_size)?;
                done(self.bind(channel, bind.id, own, port))
            }
            Request::ResolveIp(resolve) => {
                // Older programs that specify no source pass an address of family 0.
                let has_source = resolve.source[..2] != [0, 0];
                let source = has_source.then(|| address(&resolve.source)).transpose()?;
                let destination = address(&resolve.destination)?;
                done(self.resolve_address(channel, resolve.id, (source, destination), port))
            }
            Request::ResolveAddr(resolve) => {
                if resolve.reserved != 0 {
                    return Err(Errno::INVALID);
                }
                let source = (resolve.source_size != 0)
                    .then(|| sized(&resolve.source.0, resolve.source_size))
                    .transpose()?;
                let destination = sized(&resolve.destination.0, resolve.destination_size)?;
                done(self.resolve_address(channel, resolve.id, (source, destination), port))
            }
            Request::ResolveRoute(resolve) => done(self.resolve_route(channel, resolve, port)),
            Request::QueryRoute(id) => self.query_route(channel, *id, port),
            Request::QueryAddress(id) => self.query_address(channel, *id, port),
            Request::QueryPath(id) => self.query_path(channel, *id),
            Request::QueryGid(id) => self.query_gid(channel, *id, port),
            Request::Connect(connect) => done(self.connect(channel, connect, port, now)),
            Request::Listen(listen) => done(self.listen(channel, listen, port)),
            Request::Accept(accept) => done(self.accept(channel, accept, port, now)),
            Request::Reject(reject) => done(self.reject(channel, reject, port, now)),
            Request::Disconnect(id) => done(self.disconnect(channel, *id, port, now)),
            Request::InitQpAttr(init) => self.init_qp_attr(channel, init, port),
            Request::GetEvent => self.next_event(channel),
            Request::SetOption(option) => done(self.set_option(channel, option, context.option)),
            Request::Notify(notify) => done(self.notify(channel, notify, port)),
            Request::JoinIpMcast(join) => {
                let group = address(&join.address)?;
                self.join(channel, join.id, (group, join.uid, 0), port)
            }
            Request::JoinMcast(join) => {
                let group = sized(&join.address.0, join.address_size)?;
                self.join(channel, join.id, (group, join.uid, join.join_flags), port)
            }
            Request::LeaveMcast(group) => self.leave(channel, *group, port),
            Request::MigrateId(migrate) => self.migrate(channel, migrate, context.old_channel),
        }
    }

    fn create(
        &mut self,
        channel: FileId,
        create: &CreateId,
        port: &mut impl CmPort,
    ) -> Result<Vec<u8>, Errno> {
        let space = PortSpace(create.port_space);
        let kind = match (space, create.qp_type) {
            (PortSpace::TCP, _) | (PortSpace::IB, 2) => QpKind::Rc,
            (PortSpace::UDP | IPOIB, _) | (PortSpace::IB, 4) => QpKind::Ud,
            (PortSpace::IB, 3) => QpKind::Uc,
            // The HCA has no XRC.
            (PortSpace::IB, 9 | 10) => return Err(Errno::NOT_SUPPORTED),
            _ => return Err(Errno::INVALID),
        };
        let id = CmId::new(channel, create.uid, space, kind, port.random_psn());
        Ok(bytes_of(&self.ids.insert(id)?))
    }

    /// Removes an ID, and closes its connection. Returns the number of its events that the program has read.
    pub(super) fn destroy(&mut self, number: u32, port: &mut impl CmPort, now: Instant) -> u32 {
        let Some((id, groups)) = self.ids.remove(number) else { return 0 };
        // Errors are ignored: they mean that the connection or request has ended already.
        match id.exchange {
            Exchange::Connection { id, .. } => drop(port.cm().close(now, id)),
            Exchange::Request(request) => {
                let _ = port.cm().sidr_reject(now, request, SidrStatus::REJECTED);
            }
            Exchange::Resolution(_) | Exchange::None => {}
        }
        if let Some(service) = id.service {
            self.end_listening(number, service, port);
        }
        for group in groups {
            self.leave_group(&group, port);
        }
        self.queries.retain(|_, query| *query != Query::Path(number));
        let events = self.channels.get_mut(&id.channel);
        let events = events.map(|channel| channel.take(|event| event.owner == number));
        for child in events.into_iter().flatten().filter_map(|event| event.child) {
            self.destroy(child, port, now);
        }
        id.events_reported
    }

    fn end_listening(&mut self, number: u32, id: ServiceId, port: &mut impl CmPort) {
        let Some(service) = self.services.get_mut(&id) else { return };
        service.ids.retain(|listener| *listener != number);
        if service.ids.is_empty() {
            port.cm().unlisten(service.listener);
            self.services.remove(&id);
        }
    }

    pub(super) fn bind(
        &mut self,
        channel: FileId,
        number: u32,
        address: Address,
        port: &mut impl CmPort,
    ) -> Result<(), Errno> {
        let id = self.ids.of(channel, number)?;
        if id.state != State::Idle {
            return Err(Errno::INVALID);
        }
        let is_own = match address {
            Address::Ip(it) => {
                let view = port.view();
                let is_gid = view.is_infiniband && it.ip() == IpAddr::V6(view.gid.into());
                is_gid || port.own_address_for(it.ip()) == Some(it.ip())
            }
            Address::Ib(it) => it.gid == port.view().gid,
        };
        if !is_own && !address.is_any() {
            return Err(Errno(libc::EADDRNOTAVAIL));
        }
        let selected = match address {
            Address::Ip(it) => (id.space, it.port()),
            Address::Ib(it) => it.port(id.space).ok_or(Errno(libc::EPROTONOSUPPORT))?,
        };
        let found = self.ids.bind(number, &address, selected)?;
        let id = self.ids.of(channel, number)?;
        id.source = Some(address.with_port(selected.0, found));
        id.has_device = is_own;
        id.state = State::Bound;
        Ok(())
    }

    fn listen(
        &mut self,
        channel: FileId,
        listen: &Listen,
        port: &mut impl CmPort,
    ) -> Result<(), Errno> {
        let number = listen.id;
        if self.ids.of(channel, number)?.state == State::Idle {
            self.bind(channel, number, Address::ANY, port)?;
        }
        let id = self.ids.of(channel, number)?;
        let (Some(address), State::Bound) = (id.source, id.state) else {
            return Err(Errno::INVALID);
        };
        let service = service_of(&address, id.space);
        let has_header = !id.is_ib();
        let space = PortSpace((service.0 >> 16) as u16);
        self.ids.check(number, &address, (space, service.0 as u16), true)?;
        match self.services.get_mut(&service) {
            Some(it) if it.has_header == has_header => it.ids.push(number),
            Some(_) => return Err(Errno(libc::EADDRINUSE)),
            None => {
                let cm = port.cm();
                let listener = if has_header {
                    cm.listen_cm(space, service.0 as u16)
                } else {
                    cm.listen(service)
                };
                let listener = listener.map_err(|_| Errno(libc::EADDRINUSE))?;
                self.services.insert(service, Service { listener, has_header, ids: vec![number] });
            }
        }
        let id = self.ids.of(channel, number)?;
        id.service = Some(service);
        id.state = State::Listening;
        id.backlog = match u32::try_from(listen.backlog) {
            Ok(backlog @ 1..=MOST_WAITING) => backlog,
            _ => MOST_WAITING,
        };
        Ok(())
    }

    fn set_option(
        &mut self,
        channel: FileId,
        option: &SetOption,
        value: &[u8],
    ) -> Result<(), Errno> {
        const LEVEL_ID: u32 = 0;
        const LEVEL_IB: u32 = 1;
        let byte = || <[u8; 1]>::try_from(value).map(|[it]| it).map_err(|_| Errno::INVALID);
        let flag = || {
            let bytes = <[u8; 4]>::try_from(value).map_err(|_| Errno::INVALID)?;
            Ok::<bool, Errno>(i32::from_ne_bytes(bytes) != 0)
        };
        let id = self.ids.of(channel, option.id)?;
        match (option.level, option.name) {
            (LEVEL_ID, 0) => id.tos = Some(byte()?),
            (LEVEL_ID, 1) => {
                let reuses = flag()?;
                let is_allowed = id.state == State::Idle || reuses && id.state != State::Listening;
                if !is_allowed {
                    return Err(Errno::INVALID);
                }
                id.reuses_address = reuses;
            }
            (LEVEL_ID, 2) => {
                let is_family_only = flag()?;
                if !matches!(id.state, State::Idle | State::Bound) {
                    return Err(Errno::INVALID);
                }
                id.is_family_only = is_family_only;
            }
            (LEVEL_ID, 3) => {
                let timeout = byte()?;
                if timeout > 31 || id.kind == QpKind::Ud {
                    return Err(Errno::INVALID);
                }
                id.ack_timeout = Some(timeout);
            }
            (LEVEL_IB, 1) => {
                let path = usable_path(value).ok_or(Errno::INVALID)?;
                if id.state != State::AddressResolved {
                    return Err(Errno::INVALID);
                }
                id.path = Some(PathRecord::parse(&path.record.0));
                id.state = State::RouteResolved;
                self.report(option.id, EventType::RouteResolved, 0);
            }
            _ => return Err(Errno::NO_SYSTEM_CALL),
        }
        Ok(())
    }

    /// Moves an ID and its events to the channel that executes the command. Returns the number of events of the ID
    /// that the program has read.
    fn migrate(
        &mut self,
        channel: FileId,
        migrate: &MigrateId,
        old: Option<FileId>,
    ) -> Result<Vec<u8>, Errno> {
        let old = old.filter(|old| self.channels.contains_key(old)).ok_or(Errno::INVALID)?;
        let number = migrate.id;
        let id = self.ids.of(old, number)?;
        id.channel = channel;
        let events_reported = id.events_reported;
        let events = self.channels.get_mut(&old);
        let events = events.map(|old| old.take(|event| event.owner == number));
        for event in events.into_iter().flatten() {
            if let Some(child) = event.child.and_then(|child| self.ids.get_mut(child)) {
                child.channel = channel;
            }
            self.push(channel, event);
        }
        Ok(bytes_of(&events_reported))
    }
}

/// Returns the service ID of an address.
pub(super) fn service_of(address: &Address, space: PortSpace) -> ServiceId {
    match address {
        Address::Ip(address) => ServiceId::port(space, address.port()),
        Address::Ib(address) => ServiceId(address.service),
    }
}

/// Returns the first path that can be used in both directions, from the value of the option `RDMA_OPTION_IB_PATH`.
fn usable_path(value: &[u8]) -> Option<PathData> {
    /// `IB_PATH_GMP`, `IB_PATH_PRIMARY` and `IB_PATH_BIDIRECTIONAL`.
    const USABLE: u32 = 1 | 1 << 1 | 1 << 3 | 1 << 5;
    let chunks = value.chunks_exact(PathData::SIZE);
    if !chunks.remainder().is_empty() {
        return None;
    }
    chunks.filter_map(|chunk| take::<PathData>(chunk, 0)).find(|path| path.flags == USABLE)
}
