//! Requests to a service, and their encoding.

use std::num::NonZeroU8;

use ib_types::Gid;
use ib_wire::acm::{ByteOrder, ClientHeader, ClientOpcode, Entry, EntryFlags, HEADER_LENGTH};
use ib_wire::mad::sa::PathRecord;

use super::RequestError;
use crate::Address;

/// Options of a RESOLVE request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResolveOptions {
    /// True if the service may return only a cached path. If no path is cached, the service rejects the request
    /// with [`ENODATA`].
    ///
    /// [`ENODATA`]: ib_wire::acm::ClientStatus::ENODATA
    pub no_delay: bool,
    /// True if the service has to query the SA. The request must then contain GIDs or LIDs. If the query fails, the
    /// service returns the status of the SA.
    pub query_sa: bool,
}

impl ResolveOptions {
    const fn flags(self) -> EntryFlags {
        let mut flags = EntryFlags(0);
        if self.no_delay {
            flags = flags.with(EntryFlags::NODELAY);
        }
        if self.query_sa {
            flags = flags.with(EntryFlags::QUERY_SA);
        }
        flags
    }
}

/// Scope of a counter query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CounterScope {
    /// The counters of the whole service.
    Service,
    /// The counters of the endpoint with this index.
    Endpoint(NonZeroU8),
    /// The counters of the endpoint with this name or IP address.
    Address(Address),
}

/// A request, without its transaction ID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    opcode: ClientOpcode,
    src_out: u8,
    src_index: u8,
    entries: Vec<Entry>,
}

impl Request {
    /// Creates a request to resolve the path to a destination. If `source` is `None`, the service chooses the source.
    ///
    /// GIDs and LIDs are sent as a path record whose other fields are 0.
    ///
    /// # Errors
    /// Fails if one of the two addresses is a GID or LID, and the other does not have the same type.
    pub fn resolve(
        source: Option<&Address>,
        destination: &Address,
        options: ResolveOptions,
    ) -> Result<Self, RequestError> {
        let mixed = |source: &Address| RequestError::Mixed(source.clone(), destination.clone());
        let ends = match (source, destination) {
            (Some(Address::Gid(sgid)), Address::Gid(dgid)) => Some((*sgid, *dgid, 0, 0)),
            (None, Address::Gid(dgid)) => Some((Gid(0), *dgid, 0, 0)),
            (Some(Address::Lid(slid)), Address::Lid(dlid)) => Some((Gid(0), Gid(0), *slid, *dlid)),
            (None, Address::Lid(dlid)) => Some((Gid(0), Gid(0), 0, *dlid)),
            _ => None,
        };
        if let Some((sgid, dgid, slid, dlid)) = ends {
            let path = PathRecord { sgid, dgid, slid, dlid, ..PathRecord::zeroed() };
            return Ok(Self::resolve_path(&path, options));
        }
        let mut entries = Vec::with_capacity(2);
        if let Some(source) = source {
            entries.push(source.to_entry(EntryFlags::SOURCE).ok_or_else(|| mixed(source))?);
        }
        let flags = EntryFlags::DESTINATION.with(options.flags());
        // If the destination is a GID or a LID here, the source has another type, and the request is invalid.
        let entry = destination.to_entry(flags);
        entries.push(entry.ok_or_else(|| mixed(source.unwrap_or(destination)))?);
        Ok(Self::with_entries(ClientOpcode::RESOLVE, entries))
    }

    /// Creates a request to resolve the path between the GIDs or the LIDs in a path record.
    #[must_use]
    pub fn resolve_path(path: &PathRecord, options: ResolveOptions) -> Self {
        let entry = Entry::path(options.flags(), path);
        Self::with_entries(ClientOpcode::RESOLVE, vec![entry])
    }

    /// Creates a query of the counters of the service or of an endpoint.
    ///
    /// # Errors
    /// Fails if the address of the endpoint is a GID or a LID.
    pub fn perf(of: &CounterScope) -> Result<Self, RequestError> {
        let mut request = Self::with_entries(ClientOpcode::PERF_QUERY, Vec::new());
        match of {
            CounterScope::Service => {}
            CounterScope::Endpoint(index) => request.src_index = index.get(),
            CounterScope::Address(address) => {
                let entry = address.to_entry(EntryFlags::SOURCE);
                let entry = entry.ok_or_else(|| RequestError::NoEndpoint(address.clone()))?;
                request.entries.push(entry);
            }
        }
        Ok(request)
    }

    /// Creates a query of an endpoint. `index`, from 1, counts only the endpoints of the ports that have the number
    /// `port` on their HCA. If `port` is 0, `index` counts all endpoints.
    #[must_use]
    pub fn endpoint(index: NonZeroU8, port: u8) -> Self {
        let request = Self::with_entries(ClientOpcode::EP_QUERY, Vec::new());
        Self { src_out: index.get(), src_index: port, ..request }
    }

    /// Returns the encoded request. The caller must write all bytes with one call, because ibacm reads a request with
    /// one call.
    #[must_use]
    pub fn to_bytes(&self, transaction: [u8; 8]) -> Vec<u8> {
        let mut header = ClientHeader::new(self.opcode, transaction);
        (header.src_out, header.src_index) = (self.src_out, self.src_index);
        let length = HEADER_LENGTH + Entry::LENGTH * self.entries.len();
        header.set_length(length, ByteOrder::of(self.opcode));
        let mut bytes = Vec::with_capacity(length);
        bytes.extend_from_slice(&header.to_bytes());
        for entry in &self.entries {
            // Flags and types of entries are in native byte order, even if the message length is in network order.
            bytes.extend_from_slice(&entry.to_bytes(ByteOrder::NATIVE));
        }
        bytes
    }

    /// Returns the opcode of the request.
    #[must_use]
    pub const fn opcode(&self) -> ClientOpcode {
        self.opcode
    }

    /// Returns the index of the queried endpoint.
    pub(super) const fn endpoint_index(&self) -> u8 {
        self.src_out
    }

    const fn with_entries(opcode: ClientOpcode, entries: Vec<Entry>) -> Self {
        Self { opcode, src_out: 0, src_index: 0, entries }
    }
}
