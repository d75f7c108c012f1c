//! What a service can be asked, and its bytes.

use std::num::NonZeroU8;

use ib_types::Gid;
use ib_wire::acm::{ByteOrder, ClientHeader, ClientOpcode, Entry, EntryFlags, HEADER_LENGTH};
use ib_wire::mad::sa::PathRecord;

use super::RequestError;
use crate::Address;

/// How a path is looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResolveOptions {
    /// Only what the service knows already is wanted; it refuses with [`ENODATA`] what it does not.
    ///
    /// [`ENODATA`]: ib_wire::acm::ClientStatus::ENODATA
    pub no_delay: bool,
    /// Subnet administration shall be asked, for a path between GIDs or LIDs. What it refuses with is a status of its
    /// own then, in the place of the service's.
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

/// Whose counters are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PerfOf {
    /// Those of the service.
    Service,
    /// Those of an endpoint, by its number.
    Endpoint(NonZeroU8),
    /// Those of the endpoint with a name or an IP address.
    Address(Address),
}

/// A request, whatever it is known by on a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    opcode: ClientOpcode,
    src_out: u8,
    src_index: u8,
    entries: Vec<Entry>,
}

impl Request {
    /// Asks for a path to a destination, from a source or from whichever the service chooses.
    ///
    /// GIDs and LIDs become a path whose other fields are left open.
    ///
    /// # Errors
    /// Fails when one end is a GID or a LID and the other something else.
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
        // A GID or a LID without a source is a path already.
        let entry = destination.to_entry(flags);
        entries.push(entry.ok_or_else(|| mixed(source.unwrap_or(destination)))?);
        Ok(Self::with_entries(ClientOpcode::RESOLVE, entries))
    }

    /// Asks for the path between the GIDs or the LIDs of a path.
    #[must_use]
    pub fn resolve_path(path: &PathRecord, options: ResolveOptions) -> Self {
        let entry = Entry::path(options.flags(), path);
        Self::with_entries(ClientOpcode::RESOLVE, vec![entry])
    }

    /// Asks for counters.
    ///
    /// # Errors
    /// Fails for those of a GID or a LID, of which endpoints have none.
    pub fn perf(of: &PerfOf) -> Result<Self, RequestError> {
        let mut request = Self::with_entries(ClientOpcode::PERF_QUERY, Vec::new());
        match of {
            PerfOf::Service => {}
            PerfOf::Endpoint(index) => request.src_index = index.get(),
            PerfOf::Address(address) => {
                let entry = address.to_entry(EntryFlags::SOURCE);
                let entry = entry.ok_or_else(|| RequestError::NoEndpoint(address.clone()))?;
                request.entries.push(entry);
            }
        }
        Ok(request)
    }

    /// Asks for an endpoint by its number, among those of the ports with one number, or of all for 0.
    #[must_use]
    pub fn endpoint(index: NonZeroU8, port: u8) -> Self {
        let request = Self::with_entries(ClientOpcode::EP_QUERY, Vec::new());
        Self { src_out: index.get(), src_index: port, ..request }
    }

    /// Returns the bytes of the message, which are to be written with one call.
    #[must_use]
    pub fn to_bytes(&self, transaction: [u8; 8]) -> Vec<u8> {
        let mut header = ClientHeader::new(self.opcode, transaction);
        (header.src_out, header.src_index) = (self.src_out, self.src_index);
        let length = HEADER_LENGTH + Entry::LENGTH * self.entries.len();
        header.set_length(length, ByteOrder::of(self.opcode));
        let mut bytes = Vec::with_capacity(length);
        bytes.extend_from_slice(&header.to_bytes());
        for entry in &self.entries {
            // Lengths may be in network order; flags and types never are.
            bytes.extend_from_slice(&entry.to_bytes(ByteOrder::NATIVE));
        }
        bytes
    }

    /// Returns what is asked for.
    #[must_use]
    pub const fn opcode(&self) -> ClientOpcode {
        self.opcode
    }

    /// Returns the number of the endpoint that is asked for.
    pub(super) const fn endpoint_index(&self) -> u8 {
        self.src_out
    }

    const fn with_entries(opcode: ClientOpcode, entries: Vec<Entry>) -> Self {
        Self { opcode, src_out: 0, src_index: 0, entries }
    }
}
