//! Messages between clients and the ACM service, over a stream socket (`acm.h`).
//!
//! Byte offsets, and in parentheses the sizes of fields in bytes:
//!
//! ```text
//!  0 version 1   opcode   status   data (3)   length (2)   transaction (8)
//! 16 data, at most 576 bytes; in RESOLVE messages, up to 8 entries of 72 bytes:
//!    0 flags (4)   type (2)   reserved (2)   address (64)
//! ```
//!
//! Flags, types and the length of RESOLVE messages are in host byte order. The lengths of other
//! messages, and the contents of addresses, are in network byte order. Remote and old clients can use
//! the opposite byte order for lengths, flags and types. The service derives the [`ByteOrder`] of a
//! request from its length ([`ClientHeader::length`]), and responds in the same order.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::layout;
use crate::mad::codes;
use crate::mad::sa::PathRecord;

/// The protocol version.
pub const VERSION: u8 = 1;

/// The length of a header in bytes.
pub const HEADER_LENGTH: usize = ClientHeader::LENGTH;

/// The maximum number of bytes after the header.
pub const MAX_DATA_LENGTH: usize = 576;

/// The maximum length of a message in bytes.
pub const MAX_LENGTH: usize = HEADER_LENGTH + MAX_DATA_LENGTH;

/// The length of an address or name field in bytes.
pub const ADDRESS_LENGTH: usize = 64;

codes! {
    /// The operation of a client message.
    ClientOpcode(u8) {
        /// Resolves an address to a path.
        RESOLVE = 1 "resolve",
        /// Reads the counters of the service or of an endpoint.
        PERF_QUERY = 2 "performance query",
        /// Reads the properties of an endpoint of the service.
        EP_QUERY = 3 "endpoint query",
    }
}

impl ClientOpcode {
    /// The acknowledgement bit, which some responses have.
    pub const ACK: u8 = 0x80;

    /// Returns the opcode without the acknowledgement bit.
    #[must_use]
    pub const fn request(self) -> Self {
        Self(self.0 & !Self::ACK)
    }

    /// Returns the opcode with the acknowledgement bit.
    #[must_use]
    pub const fn answer(self) -> Self {
        Self(self.0 | Self::ACK)
    }
}

codes! {
    /// The status of a response.
    ClientStatus(u8) {
        /// Success.
        SUCCESS = 0 "success",
        /// The service is out of memory.
        ENOMEM = 1 "no memory",
        /// The request is invalid.
        EINVAL = 2 "invalid request",
        /// The service has no data for this request.
        ENODATA = 3 "no data",
        /// The service has no active port.
        ENOTCONN = 5 "not connected",
        /// No peer or SA has responded in time.
        ETIMEDOUT = 6 "timed out",
        /// No endpoint has the source address.
        ESRCADDR = 7 "source address",
        /// The type of the source address is not supported.
        ESRCTYPE = 8 "source type",
        /// The destination address is invalid.
        EDESTADDR = 9 "destination address",
        /// The type of the destination address is not supported, or the service cannot derive a
        /// source address from the destination address.
        EDESTTYPE = 10 "destination type",
    }
}

codes! {
    /// The type of an [`Entry`].
    EntryType(u16) {
        /// A name, padded with zeros.
        NAME = 1 "name",
        /// An IPv4 address.
        IPV4 = 2 "IPv4",
        /// An IPv6 address.
        IPV6 = 3 "IPv6",
        /// A path.
        PATH = 0x10 "path",
    }
}

/// The flags of an [`Entry`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryFlags(pub u32);

impl EntryFlags {
    /// In a request: the entry is the source address.
    pub const SOURCE: Self = Self(1);
    /// In a request: the entry is the destination address.
    pub const DESTINATION: Self = Self(2);
    /// In a request: the service must respond only from its cache.
    pub const NODELAY: Self = Self(1 << 30);
    /// In a request: the service must query the SA.
    pub const QUERY_SA: Self = Self(1 << 31);
    /// In a response: the entry is a primary, bidirectional path for GMPs.
    pub const PATH: Self = Self(0x2b);

    /// Returns true if all flags of `other` are set in `self`.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the flags that are set in `self` or `other`.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The byte order of lengths, flags and types in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first: network byte order.
    Big,
}

impl ByteOrder {
    /// The byte order of this host.
    pub const NATIVE: Self = if cfg!(target_endian = "big") { Self::Big } else { Self::Little };

    /// Returns the byte order that current clients use for the length of messages with this opcode.
    #[must_use]
    pub fn of(opcode: ClientOpcode) -> Self {
        if opcode.request() == ClientOpcode::RESOLVE { Self::NATIVE } else { Self::Big }
    }

    const fn get_u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        }
    }

    const fn put_u16(self, value: u16) -> [u8; 2] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }

    const fn get_u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    const fn put_u32(self, value: u32) -> [u8; 4] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }
}

layout! {
    /// The header of a message.
    pub struct ClientHeader: 16 {
        /// The version: [`VERSION`].
        pub version: u8 = bits(0, 0, 8),
        /// The operation. In responses the bit [`ClientOpcode::ACK`] can be set.
        pub opcode: ClientOpcode = bits(1, 0, 8),
        /// The status of a response.
        pub status: ClientStatus = bits(2, 0, 8),
        /// In a response to `PERF_QUERY`: the number of counters. In an `EP_QUERY` request: the
        /// index of the endpoint, counted from 1.
        pub src_out: u8 = bits(3, 0, 8),
        /// In a `PERF_QUERY` request: the index of the endpoint, 0 for the service. In an
        /// `EP_QUERY` request: the port number, 0 for all ports.
        pub src_index: u8 = bits(4, 0, 8),
        /// Unused; zero.
        pub dst_index: u8 = bits(5, 0, 8),
        /// The length of the message in bytes, in either byte order; see [`ClientHeader::length`].
        pub length: [u8; 2] = bits(6, 0, 16),
        /// The transaction ID of the client. The response repeats it.
        pub transaction: [u8; 8] = bits(8, 0, 64),
    }
}

/// The reason why the length of a message is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LengthError {
    /// The length is out of range in both byte orders.
    #[error(
        "the message length is {little} (little-endian) or {big} (big-endian): expected {HEADER_LENGTH} to {MAX_LENGTH}"
    )]
    Neither {
        /// The length read as little-endian number.
        little: u16,
        /// The length read as big-endian number.
        big: u16,
    },
}

impl ClientHeader {
    /// Creates the header of a request. The caller sets the length with
    /// [`ClientHeader::set_length`].
    #[must_use]
    pub fn new(opcode: ClientOpcode, transaction: [u8; 8]) -> Self {
        Self { version: VERSION, opcode, transaction, ..Self::zeroed() }
    }

    /// Returns the length of the message in bytes, and its byte order.
    ///
    /// Prefers the byte order in which the message consists of a header and whole addresses. If
    /// this applies to both orders or none, prefers the usual order of the opcode
    /// ([`ByteOrder::of`]).
    ///
    /// # Errors
    /// Fails if the length is out of range in both byte orders.
    pub fn length(&self) -> Result<(usize, ByteOrder), LengthError> {
        let orders = match ByteOrder::of(self.opcode) {
            ByteOrder::Little => [ByteOrder::Little, ByteOrder::Big],
            ByteOrder::Big => [ByteOrder::Big, ByteOrder::Little],
        };
        let lengths = orders.map(|order| (usize::from(order.get_u16(self.length)), order));
        let possible =
            |&(length, _): &(usize, ByteOrder)| (HEADER_LENGTH..=MAX_LENGTH).contains(&length);
        let whole = |&(length, _): &(usize, ByteOrder)| {
            length >= HEADER_LENGTH && (length - HEADER_LENGTH).is_multiple_of(Entry::LENGTH)
        };
        let found = lengths.iter().filter(|it| possible(it)).max_by_key(|it| {
            // Without the second part of the key, the unusual order would win ties, because
            // `max_by_key` returns the last of several equal maxima.
            (whole(it), it.1 == orders[0])
        });
        found.copied().ok_or_else(|| {
            let [little, big] =
                [ByteOrder::Little, ByteOrder::Big].map(|order| order.get_u16(self.length));
            LengthError::Neither { little, big }
        })
    }

    /// Sets the length of the message, in bytes.
    ///
    /// # Panics
    /// Panics if `length` is shorter than a header or longer than [`MAX_LENGTH`].
    pub fn set_length(&mut self, length: usize, order: ByteOrder) {
        assert!(
            (HEADER_LENGTH..=MAX_LENGTH).contains(&length),
            "the message length is {length}: expected {HEADER_LENGTH} to {MAX_LENGTH}"
        );
        self.length = order.put_u16(length as u16);
    }
}

layout! {
    /// The encoding of an [`Entry`]. Flags and type are bytes, since their byte order depends on the
    /// message ([`ByteOrder`]).
    struct RawEntry: 72 {
        flags: [u8; 4] = bits(0, 0, 32),
        kind: [u8; 2] = bits(4, 0, 16),
        reserved: [u8; 2] = bits(6, 0, 16),
        info: [u8; 64] = bits(8, 0, 512),
    }
}

/// An address or a path in a RESOLVE message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The flags: source, destination, or path.
    pub flags: EntryFlags,
    /// The type of the contents: an address type, or a path.
    pub kind: EntryType,
    /// The address or path, padded with zeros.
    pub info: [u8; ADDRESS_LENGTH],
}

impl Entry {
    /// The length of an entry in bytes.
    pub const LENGTH: usize = RawEntry::LENGTH;

    /// Creates an entry for an address. Drops all bytes after the first 64.
    #[must_use]
    fn new(flags: EntryFlags, kind: EntryType, address: &[u8]) -> Self {
        let mut info = [0; ADDRESS_LENGTH];
        let length = address.len().min(ADDRESS_LENGTH);
        info[..length].copy_from_slice(&address[..length]);
        Self { flags, kind, info }
    }

    /// Creates an entry for a name; `None` if it is empty, longer than 63 bytes, or contains a zero
    /// byte.
    #[must_use]
    pub fn name(flags: EntryFlags, name: &str) -> Option<Self> {
        let fits = (1..ADDRESS_LENGTH).contains(&name.len()) && !name.bytes().any(|byte| byte == 0);
        fits.then(|| Self::new(flags, EntryType::NAME, name.as_bytes()))
    }

    /// Creates an entry for an IPv4 address.
    #[must_use]
    pub fn ipv4(flags: EntryFlags, address: Ipv4Addr) -> Self {
        Self::new(flags, EntryType::IPV4, &address.octets())
    }

    /// Creates an entry for an IPv6 address.
    #[must_use]
    pub fn ipv6(flags: EntryFlags, address: Ipv6Addr) -> Self {
        Self::new(flags, EntryType::IPV6, &address.octets())
    }

    /// Creates an entry for a path.
    #[must_use]
    pub fn path(flags: EntryFlags, path: &PathRecord) -> Self {
        Self { flags, kind: EntryType::PATH, info: path.to_bytes() }
    }

    /// Parses an entry.
    #[must_use]
    pub fn parse(bytes: &[u8; Self::LENGTH], order: ByteOrder) -> Self {
        let RawEntry { flags, kind, info, .. } = RawEntry::parse(bytes);
        let (flags, kind) = (EntryFlags(order.get_u32(flags)), EntryType(order.get_u16(kind)));
        Self { flags, kind, info }
    }

    /// Encodes the entry.
    #[must_use]
    pub fn to_bytes(self, order: ByteOrder) -> [u8; Self::LENGTH] {
        let (flags, kind) = (order.put_u32(self.flags.0), order.put_u16(self.kind.0));
        RawEntry { flags, kind, reserved: [0; 2], info: self.info }.to_bytes()
    }

    /// Returns the bytes of a name up to the first zero byte; all 64 bytes if no byte is zero.
    #[must_use]
    pub fn name_bytes(&self) -> &[u8] {
        let end = self.info.iter().position(|&byte| byte == 0).unwrap_or(ADDRESS_LENGTH);
        &self.info[..end]
    }

    /// Parses [`Entry::info`] as a path.
    #[must_use]
    pub fn path_record(&self) -> PathRecord {
        PathRecord::parse(&self.info)
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Entry");
        out.field("flags", &format_args!("{:#x}", self.flags.0)).field("kind", &self.kind);
        match self.kind {
            EntryType::NAME => {
                out.field("info", &String::from_utf8_lossy(self.name_bytes()));
            }
            EntryType::IPV4 => {
                let octets = *self.info.first_chunk::<4>().expect("an address field has 64 bytes");
                out.field("info", &Ipv4Addr::from(octets));
            }
            EntryType::IPV6 => {
                let octets = *self.info.first_chunk::<16>().expect("an address field has 64 bytes");
                out.field("info", &Ipv6Addr::from(octets));
            }
            EntryType::PATH => {
                out.field("info", &self.path_record());
            }
            _ => {
                out.field("info", &self.info);
            }
        }
        out.finish()
    }
}

/// A RESOLVE request or response: a header and up to eight entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolve {
    /// The header. Its length field is set when the message is encoded.
    pub header: ClientHeader,
    /// The addresses or paths.
    pub entries: Vec<Entry>,
}

impl Resolve {
    /// The maximum number of entries in a message.
    pub const MAX_ENTRIES: usize = MAX_DATA_LENGTH / Entry::LENGTH;

    /// Creates a request for a path. `entries` must contain one destination and at most one source.
    #[must_use]
    pub fn request(transaction: [u8; 8], entries: Vec<Entry>) -> Self {
        Self { header: ClientHeader::new(ClientOpcode::RESOLVE, transaction), entries }
    }

    /// Parses the entries of a message. Ignores bytes after the last whole entry, and all entries
    /// after the first eight.
    #[must_use]
    pub fn parse(header: ClientHeader, data: &[u8], order: ByteOrder) -> Self {
        let (entries, _) = data.as_chunks::<{ Entry::LENGTH }>();
        let entries = entries.iter().map(|entry| Entry::parse(entry, order));
        Self { header, entries: entries.take(Self::MAX_ENTRIES).collect() }
    }

    /// Appends the encoded message to a buffer.
    ///
    /// # Panics
    /// Panics if the message has more than [`Resolve::MAX_ENTRIES`] entries.
    pub fn put(&self, order: ByteOrder, out: &mut Vec<u8>) {
        let mut header = self.header;
        header.set_length(HEADER_LENGTH + Entry::LENGTH * self.entries.len(), order);
        out.extend_from_slice(&header.to_bytes());
        for entry in &self.entries {
            out.extend_from_slice(&entry.to_bytes(order));
        }
    }
}

/// The counters of a service or of an endpoint, in wire order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerfCounters {
    /// The number of failed requests.
    pub errors: u64,
    /// The number of RESOLVE requests.
    pub resolves: u64,
    /// The number of requests that had to be answered from the cache ([`EntryFlags::NODELAY`]), but
    /// had no result there.
    pub no_data: u64,
    /// The number of addresses that the service resolved by queries to its peers.
    pub address_queries: u64,
    /// The number of addresses that the service found in its cache.
    pub address_cached: u64,
    /// The number of routes that the service resolved by SA queries.
    pub route_queries: u64,
    /// The number of routes that the service found in its cache.
    pub route_cached: u64,
}

impl PerfCounters {
    /// The number of counters.
    pub const COUNT: usize = 7;

    /// The names of the counters in the output of `ib_acme`.
    pub const NAMES: [&'static str; Self::COUNT] = [
        "Error Count",
        "Resolve Count",
        "No Data",
        "Addr Query Count",
        "Addr Cache Count",
        "Route Query Count",
        "Route Cache Count",
    ];

    /// Returns the counters in wire order.
    #[must_use]
    pub const fn values(&self) -> [u64; Self::COUNT] {
        let Self { errors, resolves, no_data, address_queries, address_cached, .. } = *self;
        let Self { route_queries, route_cached, .. } = *self;
        [errors, resolves, no_data, address_queries, address_cached, route_queries, route_cached]
    }
}

layout! {
    /// The response to `EP_QUERY`, which describes an endpoint. After this struct, the message
    /// contains the names of the endpoint, 64 bytes each.
    pub struct EndpointInfo: 80 {
        /// The GUID of the HCA.
        pub device_guid: u64 = bits(0, 0, 64),
        /// The number of the endpoint's port on the HCA.
        pub port: u8 = bits(8, 0, 8),
        /// The number of ports of the HCA.
        pub port_count: u8 = bits(9, 0, 8),
        /// The P_Key of the endpoint.
        pub p_key: u16 = bits(12, 0, 16),
        /// The number of names of the endpoint, which follow this struct.
        pub address_count: u16 = bits(14, 0, 16),
        /// The name of the ACM provider, padded with zeros.
        pub provider: [u8; 64] = bits(16, 0, 512),
    }
}

#[cfg(test)]
mod tests;
