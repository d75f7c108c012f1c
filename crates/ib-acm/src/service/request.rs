//! Client requests to resolve an address or a path.

use ib_types::{Gid, PKey};
use ib_wire::acm::{ClientStatus, Entry, EntryFlags, EntryType};
use ib_wire::mad::sa::PathRecord;

use crate::Address;
use crate::address::AddressError;

/// Source of the path, as specified by the client.
#[derive(Clone, Debug)]
pub(super) enum RequestSource {
    /// An address of this machine.
    Address(Address),
    /// A port of this machine. Fields that are 0 match any port.
    Port { gid: Gid, lid: u16, p_key: PKey },
    /// Any endpoint of this machine.
    Any,
}

/// Path that the client requests.
#[derive(Clone, Debug)]
pub(super) enum RequestTarget {
    /// The path to this address.
    Address(Address),
    /// The path that the SA returns for this query (flag `QUERY_SA`).
    SaQuery(Box<PathRecord>),
}

/// A client request to resolve an address or a path.
#[derive(Clone, Debug)]
pub(super) struct ResolveRequest {
    pub(super) source: RequestSource,
    pub(super) target: RequestTarget,
    /// True if the service may use only cached data (flag `NODELAY`).
    pub(super) no_delay: bool,
}

impl ResolveRequest {
    /// Returns the destination address; `None` for an SA query.
    pub(super) const fn address(&self) -> Option<&Address> {
        match &self.target {
            RequestTarget::Address(address) => Some(address),
            RequestTarget::SaQuery(_) => None,
        }
    }

    /// Parses the entries of a RESOLVE message.
    pub(super) fn from_entries(entries: &[Entry]) -> Result<Self, ClientStatus> {
        let any = |flag| entries.iter().any(|entry| entry.flags.has(flag));
        let no_delay = any(EntryFlags::NODELAY);
        if any(EntryFlags::QUERY_SA) {
            let [entry] = entries else { return Err(ClientStatus::EINVAL) };
            if entry.kind != EntryType::PATH {
                return Err(ClientStatus::EINVAL);
            }
            let path = entry.path_record();
            let source = RequestSource::Port { gid: path.sgid, lid: path.slid, p_key: PKey(0) };
            if path.sgid == Gid::ZERO && path.slid == 0 {
                return Err(ClientStatus::ESRCADDR);
            }
            return Ok(Self { source, target: RequestTarget::SaQuery(Box::new(path)), no_delay });
        }
        if let [entry] = entries
            && entry.kind == EntryType::PATH
        {
            let path = entry.path_record();
            let to = match (path.dgid, path.dlid) {
                (Gid::ZERO, 0) => return Err(ClientStatus::EDESTADDR),
                (Gid::ZERO, lid) => Address::Lid(lid),
                (gid, _) => Address::Gid(gid),
            };
            let source = RequestSource::Port { gid: path.sgid, lid: path.slid, p_key: path.p_key };
            return Ok(Self { source, target: RequestTarget::Address(to), no_delay });
        }
        let (mut source, mut destination) = (None, None);
        for entry in entries {
            let is_source = entry.flags.has(EntryFlags::SOURCE);
            let is_destination = entry.flags.has(EntryFlags::DESTINATION);
            let (slot, bad_type, bad_address) = match (is_source, is_destination) {
                (true, false) => (&mut source, ClientStatus::ESRCTYPE, ClientStatus::ESRCADDR),
                (false, true) => {
                    (&mut destination, ClientStatus::EDESTTYPE, ClientStatus::EDESTADDR)
                }
                _ => return Err(ClientStatus::EINVAL),
            };
            let address = Address::of_entry(entry).map_err(|error| match error {
                AddressError::Type(_) => bad_type,
                _ => bad_address,
            })?;
            if slot.replace(address).is_some() {
                return Err(ClientStatus::EINVAL);
            }
        }
        let destination = destination.ok_or(ClientStatus::EINVAL)?;
        let source = source.map_or(RequestSource::Any, RequestSource::Address);
        Ok(Self { source, target: RequestTarget::Address(destination), no_delay })
    }
}
