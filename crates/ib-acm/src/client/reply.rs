//! What is answered, and the checks of its bytes.
//!
//! | answer | length | in the order of |
//! |---|---|---|
//! | a path | 16 + 72 for every address, 1 to 8 | this machine |
//! | counters | 16 + 8 for every counter | the network |
//! | an endpoint | 96 + 64 for every address | the network |
//! | none: the status says why | at least 16 | as above |

use ib_types::text::escaped;
use ib_types::{Guid, PKey};
use ib_wire::acm::{
    ADDRESS_LENGTH, ByteOrder, ClientHeader, ClientOpcode, ClientStatus, EndpointInfo, Entry,
    EntryFlags, EntryType, HEADER_LENGTH, MAX_LENGTH, PerfCounters, Resolve,
};
use ib_wire::mad::sa::PathRecord;

use crate::Address;

/// What a service answers.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Reply {
    /// Paths to a destination.
    Resolved(Resolved),
    /// Counters.
    Counters(Counters),
    /// An endpoint.
    Endpoint(EndpointDescription),
}

/// Paths to a destination.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// The path of first choice.
    pub path: PathRecord,
    /// The source that the service has chosen, when it was left to it.
    pub source: Option<Address>,
    /// All paths of the answer in their order, at least one.
    pub paths: Vec<ResolvedPath>,
}

/// A path of an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResolvedPath {
    /// What it is for.
    pub flags: EntryFlags,
    /// The path.
    pub record: PathRecord,
}

impl ResolvedPath {
    /// The bit of a path of first choice.
    const PRIMARY: EntryFlags = EntryFlags(2);
}

/// Counters in the order in which they were sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters(pub Vec<u64>);

impl Counters {
    /// Returns those that are known; 0 for what was not sent.
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

/// What a service tells of one of its endpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointDescription {
    /// Its number, from 1.
    pub index: u8,
    /// The GUID of the HCA.
    pub device_guid: Guid,
    /// The number of the port.
    pub port: u8,
    /// How many ports the HCA has.
    pub port_count: u8,
    /// The partition.
    pub p_key: PKey,
    /// Who resolves for it.
    pub provider: String,
    /// Its names and addresses, as the service writes them.
    pub addresses: Vec<String>,
}

/// Why the bytes of a stream are not the answer that was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("answer {number}, at byte {offset} of the stream: {wrong}")]
pub struct ReplyError {
    /// Which answer of the connection it is, from 1.
    pub number: u64,
    /// Where in the stream it begins, in bytes.
    pub offset: u64,
    /// What is wrong with it.
    pub wrong: Wrong,
}

/// What is wrong with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Wrong {
    /// It is of another version.
    #[error("version {0}: expected 1")]
    Version(u8),
    /// Nothing was asked under that number.
    #[error("transaction {0:#x}: expected one that waits for its answer")]
    Transaction(u64),
    /// Something else was asked.
    #[error("operation {found}: expected {expected}, with or without the bit of answers")]
    Opcode {
        /// What it answers.
        found: ClientOpcode,
        /// What was asked.
        expected: ClientOpcode,
    },
    /// Its length is none of such answers.
    #[error("a length of {length}: an answer to {opcode} has {HEADER_LENGTH} bytes{}, {MAX_LENGTH} at most", of(.opcode, .status))]
    Length {
        /// The length.
        length: u16,
        /// What was asked.
        opcode: ClientOpcode,
        /// How it ended.
        status: ClientStatus,
    },
    /// Another number of counters follows.
    #[error("{counters} counters in an answer of {length} bytes: expected {} bytes", HEADER_LENGTH + 8 * usize::from(*.counters))]
    Counters {
        /// How many the answer says.
        counters: u8,
        /// The length of the answer in bytes.
        length: usize,
    },
    /// Another number of addresses follows.
    #[error("{addresses} addresses in an endpoint of {length} bytes: expected {} bytes", ENDPOINT + ADDRESS_LENGTH * usize::from(*.addresses))]
    Addresses {
        /// How many the answer says.
        addresses: u16,
        /// The length of the answer in bytes.
        length: usize,
    },
    /// There is no path among its addresses.
    #[error("{0} addresses without a path: expected at least one path")]
    NoPath(usize),
}

/// The length of the answer with an endpoint that has no address.
const ENDPOINT: usize = HEADER_LENGTH + EndpointInfo::LENGTH;

/// Returns what follows a header, for people.
fn of(opcode: &ClientOpcode, status: &ClientStatus) -> &'static str {
    match *opcode {
        _ if *status != ClientStatus::SUCCESS => " or more",
        ClientOpcode::RESOLVE => " and 72 for each of 1 to 8 addresses",
        ClientOpcode::PERF_QUERY => " and 8 for every counter",
        _ => ", 80 of an endpoint and 64 for each of its addresses",
    }
}

/// Returns the length of an answer to a request.
pub(super) fn length(header: &ClientHeader, asked: ClientOpcode) -> Result<usize, Wrong> {
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
            return Err(Wrong::Counters { counters: header.src_out, length: whole });
        }
        ClientOpcode::PERF_QUERY => true,
        _ => parts(ENDPOINT, ADDRESS_LENGTH),
    };
    if right && whole <= MAX_LENGTH {
        return Ok(whole);
    }
    Err(Wrong::Length { length, opcode: asked, status: header.status })
}

impl Reply {
    /// Reads what follows the header of an answer, all of it.
    pub(super) fn parse(
        header: ClientHeader,
        asked: ClientOpcode,
        index: u8,
        data: &[u8],
    ) -> Result<Self, Wrong> {
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

/// What the answers to the requests of one operation are; the pipeline lets no others through.
impl Reply {
    pub(super) fn into_resolved(self) -> Resolved {
        let Self::Resolved(resolved) = self else { unreachable!("a path was asked for") };
        resolved
    }

    pub(super) fn into_counters(self) -> Counters {
        let Self::Counters(counters) = self else { unreachable!("counters were asked for") };
        counters
    }

    pub(super) fn into_endpoint(self) -> EndpointDescription {
        let Self::Endpoint(endpoint) = self else { unreachable!("an endpoint was asked for") };
        endpoint
    }
}

impl Resolved {
    fn parse(header: ClientHeader, data: &[u8]) -> Result<Self, Wrong> {
        let entries = Resolve::parse(header, data, ByteOrder::NATIVE).entries;
        let (mut paths, mut source) = (Vec::new(), None);
        for entry in &entries {
            if entry.kind == EntryType::PATH {
                paths.push(ResolvedPath { flags: entry.flags, record: entry.path_record() });
            } else if entry.flags.has(EntryFlags::SOURCE) {
                // One of a type that is new is as good as none.
                source = source.or_else(|| Address::of_entry(entry).ok());
            }
        }
        let first = paths.iter().find(|path| path.flags.has(ResolvedPath::PRIMARY));
        let first = first.or_else(|| paths.first()).ok_or(Wrong::NoPath(entries.len()))?;
        Ok(Self { path: first.record, source, paths })
    }
}

impl EndpointDescription {
    fn parse(index: u8, data: &[u8]) -> Result<Self, Wrong> {
        let (info, names) = data.split_first_chunk().expect("the length has room for an endpoint");
        let info = EndpointInfo::parse(info);
        let (names, _) = names.as_chunks::<ADDRESS_LENGTH>();
        if names.len() != usize::from(info.address_count) {
            let length = HEADER_LENGTH + data.len();
            return Err(Wrong::Addresses { addresses: info.address_count, length });
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

/// Returns the text before the first zero of a field, with escapes for control characters.
fn text(field: &[u8; ADDRESS_LENGTH]) -> String {
    let text = field.split(|&byte| byte == 0).next().expect("a split has a first part");
    escaped(&String::from_utf8_lossy(text)).to_string()
}
