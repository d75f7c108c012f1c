//! Paths and addresses of peers, from an ACM service, the SA or the simulator.

use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::mpsc::{TryRecvError, channel};
use std::thread;

use ib_acm::Address;
use ib_acm::client::ServiceAddress;
use ib_link::Route;
use ib_mad::{Completion, Timing};
use ib_os::alarm::Alarm;
use ib_roce::gid_of;
use ib_types::{Gid, Instant, PKey};
use ib_wire::mad::sa::{ComponentMask, MCMemberRecord, PathRecord};
use ib_wire::mad::{Method, TransactionId};

use crate::acm::{AcmService, path_of, query_address, query_path};
use crate::attached::PATH_TIMING;
use crate::device::{Device, Link};
use crate::path::{Path, PathError};

impl Device {
    /// Returns the path to an address.
    ///
    /// In a simulated fabric, the ACM service is queried, if one is set by
    /// [`Device::resolve_through`]. If the service returns no path, the SA is queried. The SA's
    /// path is cached until the simulator reports a change of the port's state.
    ///
    /// # Errors
    /// Fails if the SA returns no path, or no port has the address.
    pub fn path_to(&mut self, address: IpAddr) -> Result<Path, PathError> {
        let most = self.connection_mtu;
        if let Some(path) = self.path_by_name(address)? {
            return Ok(Path { mtu: path.mtu.min(most), ..path });
        }
        let found = match &mut self.link {
            Link::Roce(_) | Link::Shared(_) => {
                let (source, destination) = (gid_of(self.address), gid_of(address));
                let route = Route { source, destination, is_global: true, ..Route::default() };
                return Ok(Path { route, mtu: self.connection_mtu, p_key: PKey::DEFAULT });
            }
            Link::Attached(attached) => attached.gid_of(address)?,
        };
        let gid = found.ok_or(PathError::Unknown(address))?;
        let mut query = None;
        if let Link::Attached(attached) = &mut self.link {
            if let Some(path) = attached.path(gid) {
                return Ok(Path { mtu: path.mtu.min(most), ..path });
            }
            query = Some(attached.query_path(gid, PATH_TIMING));
        }
        loop {
            if !self.progress()? {
                self.wait(Instant::NEVER, None)?;
            }
            if let (Link::Attached(attached), Some(query)) = (&mut self.link, query)
                && let Some(answer) = attached.take_path(gid, query)
            {
                let path = answer.map_err(|why| PathError::NoPath { to: address, why })?;
                return Ok(Path { mtu: path.mtu.min(most), ..path });
            }
        }
    }

    /// Returns the GID of the port that has the IP address; `None` if no port of the simulated fabric has it. On
    /// Ethernet, every IP address has a GID.
    ///
    /// # Errors
    /// Fails if the simulator has disconnected.
    pub fn gid_of(&mut self, address: IpAddr) -> io::Result<Option<Gid>> {
        match &mut self.link {
            Link::Roce(_) | Link::Shared(_) => Ok(Some(gid_of(address))),
            Link::Attached(attached) => attached.gid_of(address),
        }
    }

    /// Starts an SA query for the path to a port, without waiting for the response. [`Device::poll_query`] returns the
    /// completion with the same transaction ID. Returns `None` on Ethernet, which has no SA.
    pub fn query_path(&mut self, to: Gid, timing: Timing) -> Option<TransactionId> {
        match &mut self.link {
            Link::Roce(_) | Link::Shared(_) => None,
            Link::Attached(attached) => Some(attached.query_path(to, timing)),
        }
    }

    /// Starts an SA query that changes the port's membership in a multicast group: `Set` joins, `Delete` leaves.
    /// [`Device::poll_query`] returns the completion. Returns `None` on Ethernet.
    pub fn query_membership(
        &mut self,
        method: Method,
        membership: &MCMemberRecord,
        mask: ComponentMask,
        timing: Timing,
    ) -> Option<TransactionId> {
        match &mut self.link {
            Link::Roce(_) | Link::Shared(_) => None,
            Link::Attached(attached) => Some(attached.query(method, membership, mask, timing)),
        }
    }

    /// Returns the completion of the next SA query that has ended.
    pub fn poll_query(&mut self) -> Option<Completion> {
        match &mut self.link {
            Link::Roce(_) | Link::Shared(_) => None,
            Link::Attached(attached) => attached.poll_query(),
        }
    }

    /// Returns the address of a name. A name can be an address; in a simulated fabric, also a LID
    /// or a node name with optional `:port`. Other names are resolved by the ACM service, if one is
    /// set by [`Device::resolve_through`].
    ///
    /// # Errors
    /// Fails if the simulator has disconnected. Returns `Ok(None)` for an unknown name.
    pub fn find(&mut self, name: &str) -> io::Result<Option<IpAddr>> {
        match &mut self.link {
            Link::Roce(_) | Link::Shared(_) => Ok(name.parse().ok()),
            Link::Attached(attached) => {
                let place = attached.port.resolve(name).map_err(io::Error::other)?;
                let gid = match place {
                    Some(place) => Some(place.gid),
                    None => self.gid_by_name(name)?,
                };
                Ok(gid.map(|gid| IpAddr::V6(Ipv6Addr::from(gid.0))))
            }
        }
    }

    /// Sets an ACM service. The device queries this service for a path before it queries the SA, as librdmacm does
    /// with `RDMA_CM_USE_IB_ACM=1`.
    ///
    /// If the service returns no usable path from the device's port, `on_failure` is called with the address and the
    /// reason. Then the SA is queried. An HCA on Ethernet ignores the service, since it needs no path records.
    pub fn resolve_through(
        &mut self,
        service: ServiceAddress,
        on_failure: impl FnMut(IpAddr, &str) + Send + 'static,
    ) {
        self.acm =
            Some(Box::new(AcmService { address: service, on_failure: Box::new(on_failure) }));
    }

    /// Queries the ACM service for the path to an address. Returns `None` if there is no service, or if the service
    /// returns no usable path.
    fn path_by_name(&mut self, address: IpAddr) -> io::Result<Option<Path>> {
        let Link::Attached(attached) = &self.link else { return Ok(None) };
        let own = attached.gid();
        let prefix = attached.port.details().port.gid_prefix;
        let Some(acm) = &self.acm else { return Ok(None) };
        let to = match address {
            IpAddr::V6(it) if (u128::from(it) >> 64) as u64 == prefix => {
                Address::Gid(Gid(u128::from(it)))
            }
            IpAddr::V6(it) => Address::V6(it),
            IpAddr::V4(it) => Address::V4(it),
        };
        let service = acm.address.clone();
        let record = self.query_acm(move || query_path(&service, own, &to))?;
        match (record.and_then(|record| path_of(&record)), &mut self.acm) {
            // The path is not cached here: the service caches it, and removes outdated paths
            // itself.
            (Ok(path), _) => Ok(Some(path)),
            (Err(why), Some(acm)) => {
                (acm.on_failure)(address, &why);
                Ok(None)
            }
            (Err(_), None) => Ok(None),
        }
    }

    /// Queries the ACM service for the GID of a name. Returns `None` if there is no service, or if
    /// the service fails to resolve the name.
    fn gid_by_name(&mut self, name: &str) -> io::Result<Option<Gid>> {
        let (Some(acm), Ok(to)) = (&self.acm, Address::name(name)) else { return Ok(None) };
        let service = acm.address.clone();
        let record = self.query_acm(move || query_address(&service, &to))?;
        Ok(record.ok().map(|record| record.dgid))
    }

    /// Runs a query in a thread, and drives the device until the query ends.
    fn query_acm(
        &mut self,
        query: impl FnOnce() -> Result<PathRecord, String> + Send + 'static,
    ) -> io::Result<Result<PathRecord, String>> {
        let alarm = Alarm::new()?;
        let (bell, (sender, receiver)) = (alarm.bell(), channel());
        // If the caller stops waiting, the thread ends when its query times out.
        thread::Builder::new().name("acm query".to_owned()).spawn(move || {
            // The send fails if the caller no longer waits for the result. This error is ignored.
            let _ = sender.send(query());
            bell.ring();
        })?;
        loop {
            match receiver.try_recv() {
                Ok(result) => return Ok(result),
                Err(TryRecvError::Disconnected) => {
                    return Ok(Err("the query thread has failed".to_owned()));
                }
                Err(TryRecvError::Empty) => {}
            }
            if !self.progress()? {
                self.wait(Instant::NEVER, Some(&alarm))?;
            }
        }
    }
}
