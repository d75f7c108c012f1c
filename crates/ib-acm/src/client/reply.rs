//! Replies of a service, and their decoding.
//!
//! | request | length of the reply in bytes | byte order of the length |
//! |---|---|---|
//! | RESOLVE | 16 + 72 for each of 1 to 8 entries, which are paths or addresses | native |
//! | `PERF_QUERY` | 16 + 8 for each counter | network |
//! | `EP_QUERY` | 96 + 64 for each address of the endpoint | network |
//!
//! A reply with an error status has at least 16 bytes, and the same byte order as a reply without an error.

use ib_types::text::escaped;
use ib_types::{Guid, PKey};
use ib_wire::acm::{
    ADDRESS_LENGTH, ByteOrder, ClientHeader, ClientOpcode, ClientStatus, EndpointInfo, Entry,
    EntryFlags, EntryType, HEADER_LENGTH, MAX_LENGTH, PerfCounters, Resolve,
};
use ib_wire::mad::sa::PathRecord;

use crate::Address;

/// A reply of a service.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Reply {
    /// The reply to a RESOLVE request: paths to a destination.
    Resolved(Resolved),
    /// The reply to a query of counters.
    Counters(Counters),
    /// The reply to a query of an endpoint.
    Endpoint(EndpointDescription),
}

/// The paths to a destination, as the service returned them.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// The first path with the primary flag or, if no path has this flag, the first path.
    pub path: PathRecord,
    /// The source address that the service chose, if the request had none.
    pub source: Option<Address>,
    /// All paths of the reply in order, at least one.
    pub paths: Vec<ResolvedPath>,
}

/// A path in a reply.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResolvedPath {
    /// Flags of the path, such as primary or alternate.
    pub flags: EntryFlags,
    /// The path.
    pub record: PathRecord,
}

impl ResolvedPath {
    /// Flag that marks the primary path.
    const PRIMARY: EntryFlags = EntryFlags(2);
}

/// Values of the counters, in the order of the reply. [`Counters::known`] returns them by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters(pub Vec<u64>);

impl Counters {
    /// Returns the counters that ibacm defines, each in a named field. A counter that is not in the reply is 0.
    #[must_use]
    pub fn known(&self) -> PerfCounters {
        let value = |index: usize| self.0.get(index).copied().unwrap_or(0);
        PerfCounters {
            errors: value(0),
            resolves: value(1),
            no_data: value(2),
            address_queries: value(3),
            address_cached: value(4),
            route_queries: value(5),
            route_cached: value(6),
        }
    }
}

/// An endpoint, as a service describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointDescription {
    /// Index that the request specified, from 1.
    pub index: u8,
    /// GUID of the HCA.
    pub device_guid: Guid,
    /// Number of the endpoint's port on the HCA.
    pub port: u8,
    /// Number of ports of the HCA.
    pub port_count: u8,
    /// P_Key of the partition.
    pub p_key: PKey,
    /// Name of the ACM provider that serves the endpoint.
    pub provider: String,
    /// Names and addresses of the endpoint, as texts from the reply. Control characters are escaped.
    pub addresses: Vec<String>,
}

/// An invalid reply, with its number and its byte offset in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("reply {number}, at byte {offset} of the stream: {defect}")]
pub struct ReplyError {
    /// Number of the reply on its connection, from 1.
    pub number: u64,
    /// Offset of the reply in the stream, in bytes.
    pub offset: u64,
    /// Reason why the reply is invalid.
    pub defect: ReplyDefect,
}

/// Reason why a reply is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplyDefect {
    /// The protocol version is unknown.
    #[error("the version is {0}: expected 1")]
    Version(u8),
    /// The transaction ID is not that of an outstanding request.
    #[error("the transaction ID is {0:#x}: expected that of an outstanding request")]
    Transaction(u64),
    /// The opcode differs from that of the request.
    #[error("the opcode is {found}: expected {expected}, with or without the ACK bit")]
    Opcode {
        /// Opcode of the reply.
        found: ClientOpcode,
        /// Opcode of the request.
        expected: ClientOpcode,
    },
    /// The length is invalid for the opcode.
    #[error("the length of the reply to {opcode} is {length}: expected {HEADER_LENGTH} bytes{}, at most {MAX_LENGTH}", of(.opcode, .status))]
    Length {
        /// Length in the header of the reply, in bytes.
        length: u16,
        /// Opcode of the request.
        opcode: ClientOpcode,
        /// Status of the reply.
        status: ClientStatus,
    },
    /// The length does not match the number of counters.
    #[error("the reply has {counters} counters in {length} bytes: expected {} bytes", HEADER_LENGTH + 8 * usize::from(*.counters))]
    Counters {
        /// Number of counters according to the header of the reply.
        counters: u8,
        /// Length of the reply in bytes.
        length: usize,
    },
    /// The length does not match the number of addresses.
    #[error("the endpoint has {addresses} addresses in {length} bytes: expected {} bytes", ENDPOINT + ADDRESS_LENGTH * usize::from(*.addresses))]
    Addresses {
        /// Number of addresses that the reply specifies for the endpoint.
        addresses: u16,
        /// Length of the reply in bytes.
        length: usize,
    },
    /// The reply to a RESOLVE request contains no path. The value is the number of addresses in the reply.
    #[error("the reply has {0} addresses but no path: expected at least one path")]
    NoPath(usize),
}

/// Length of a reply that describes an endpoint without addresses.
const ENDPOINT: usize = HEADER_LENGTH + EndpointInfo::LENGTH;

/// Describes the data that has to follow the header of a reply.
fn of(opcode: &ClientOpcode, status: &ClientStatus) -> &'static str {
    match *opcode {
        _ if *status != ClientStatus::SUCCESS => " or more",
        ClientOpcode::RESOLVE => " and 72 bytes for each of 1 to 8 addresses",
        ClientOpcode::PERF_QUERY => " and 8 bytes for each counter",
        _ => ", 80 bytes for an endpoint and 64 bytes for each of its addresses",
    }
}

/// Returns the length of a reply in bytes. Fails if the length in the header is invalid for the request's opcode.
pub(super) fn length(header: &ClientHeader, asked: ClientOpcode) -> Result<usize, ReplyDefect> {
    let length = match ByteOrder::of(asked) {
        ByteOrder::Little => u16::from_le_bytes(header.length),
        ByteOrder::Big => u16::from_be_bytes(header.length),
    };
    let whole = usize::from(length);
    let parts = |from: usize, part: usize| whole >= from && (whole - from).is_multiple_of(part);
    let counters = HEADER_LENGTH + 8 * usize::from(header.src_out);
    let right = match asked {
        _ if header.status != ClientStatus::SUCCESS => whole >= HEADER_LENGTH,
        ClientOpcode::RESOLVE => parts(HEADER_LENGTH + Entry::LENGTH, Entry::LENGTH),
        ClientOpcode::PERF_QUERY if whole != counters => {
            return Err(ReplyDefect::Counters { counters: header.src_out, length: whole });
        }
        ClientOpcode::PERF_QUERY => true,
        _ => parts(ENDPOINT, ADDRESS_LENGTH),
    };
    if right && whole <= MAX_LENGTH {
        return Ok(whole);
    }
    Err(ReplyDefect::Length { length, opcode: asked, status: header.status })
}

impl Reply {
    /// Parses the data that follows the header of a reply.
    pub(super) fn parse(
        header: ClientHeader,
        asked: ClientOpcode,
        index: u8,
        data: &[u8],
    ) -> Result<Self, ReplyDefect> {
        match asked {
            ClientOpcode::RESOLVE => Resolved::parse(header, data).map(Self::Resolved),
            ClientOpcode::PERF_QUERY => {
                let (counters, _) = data.as_chunks();
                let counters = counters.iter().map(|&counter| u64::from_be_bytes(counter));
                Ok(Self::Counters(Counters(counters.collect())))
            }
            _ => EndpointDescription::parse(index, data).map(Self::Endpoint),
        }
    }
}

/// Conversions of a reply into its data. A caller knows the type of the reply from its own request, because the
/// pipeline returns only replies with the opcode of the request.
impl Reply {
    pub(super) fn into_resolved(self) -> Resolved {
        let Self::Resolved(resolved) = self else { unreachable!("the request was RESOLVE") };
        resolved
    }

    pub(super) fn into_counters(self) -> Counters {
        let Self::Counters(counters) = self else { unreachable!("the request was PERF_QUERY") };
        counters
    }

    pub(super) fn into_endpoint(self) -> EndpointDescription {
        let Self::Endpoint(endpoint) = self else { unreachable!("the request was EP_QUERY") };
        endpoint
    }
}

impl Resolved {
    fn parse(header: ClientHeader, data: &[u8]) -> Result<Self, ReplyDefect> {
        let entries = Resolve::parse(header, data, ByteOrder::NATIVE).entries;
        let (mut paths, mut source) = (Vec::new(), None);
        for entry in &entries {
            if entry.kind == EntryType::PATH {
                paths.push(ResolvedPath { flags: entry.flags, record: entry.path_record() });
            } else if entry.flags.has(EntryFlags::SOURCE) {
                // If the source address has an unknown type, the entry is ignored.
                source = source.or_else(|| Address::of_entry(entry).ok());
            }
        }
        let first = paths.iter().find(|path| path.flags.has(ResolvedPath::PRIMARY));
        let first = first.or_else(|| paths.first()).ok_or(ReplyDefect::NoPath(entries.len()))?;
        Ok(Self { path: first.record, source, paths })
    }
}

impl EndpointDescription {
    fn parse(index: u8, data: &[u8]) -> Result<Self, ReplyDefect> {
        let (info, names) = data.split_first_chunk().expect("the length was checked");
        let info = EndpointInfo::parse(info);
        let (names, _) = names.as_chunks::<ADDRESS_LENGTH>();
        if names.len() != usize::from(info.address_count) {
            let length = HEADER_LENGTH + data.len();
            return Err(ReplyDefect::Addresses { addresses: info.address_count, length });
        }
        Ok(Self {
            index,
            device_guid: Guid(info.device_guid),
            port: info.port,
            port_count: info.port_count,
            p_key: PKey(info.p_key),
            provider: text(&info.provider),
            addresses: names.iter().map(text).collect(),
        })
    }
}

/// Returns the text before the first zero of a field. Control characters are escaped.
fn text(field: &[u8; ADDRESS_LENGTH]) -> String {
    let text = field.split(|&byte| byte == 0).next().expect("`split` returns at least one part");
    escaped(&String::from_utf8_lossy(text)).to_string()
}
