//! The messages between programs and the service of IB ACM on their machine, over a stream.
//!
//! ```text
//!  0 version 1   opcode   status   data (3)   length (2)   transaction (8)
//! 16 what follows, 576 bytes at most: of RESOLVE addresses, 72 bytes each:
//!    0 flags (4)   type (2)   reserved (2)   address (64)
//! ```
//!
//! A machine talks to itself: flags, types and the length of RESOLVE are in its own byte order. The lengths of the
//! other messages are in network order, and so is all that addresses hold. Clients of other machines and old ones
//! do otherwise, and no length means anything in both orders; so a service finds out ([`ByteOrder`]) and answers alike.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::layout;
use crate::mad::codes;
use crate::mad::sa::PathRecord;

/// The version of all messages.
pub const VERSION: u8 = 1;

/// The length of a header in bytes.
pub const HEADER: usize = ClientHeader::LENGTH;

/// The most bytes that follow a header.
pub const MOST_DATA: usize = 576;

/// The length of the longest message in bytes.
pub const MOST: usize = HEADER + MOST_DATA;

/// The length of a field that holds an address or a name, in bytes.
pub const ADDRESS: usize = 64;

codes! {
    /// What is asked for.
    ClientOpcode(u8) {
        /// A path to an address.
        RESOLVE = 1 "resolve",
        /// Counters of the service.
        PERF_QUERY = 2 "performance query",
        /// An endpoint of the service.
        EP_QUERY = 3 "endpoint query",
    }
}

impl ClientOpcode {
    /// The bit that answers have; not all of them.
    pub const ACK: u8 = 0x80;

    /// Returns the code without the bit of answers.
    #[must_use]
    pub const fn request(self) -> Self {
        Self(self.0 & !Self::ACK)
    }

    /// Returns the code with the bit of answers.
    #[must_use]
    pub const fn answer(self) -> Self {
        Self(self.0 | Self::ACK)
    }
}

codes! {
    /// How a request ended.
    ClientStatus(u8) {
        /// Well.
        SUCCESS = 0 "success",
        /// There is no memory.
        ENOMEM = 1 "no memory",
        /// The request is not understood.
        EINVAL = 2 "invalid request",
        /// What is asked for is not known.
        ENODATA = 3 "no data",
        /// There is no port in service.
        ENOTCONN = 5 "not connected",
        /// Nobody has answered.
        ETIMEDOUT = 6 "timed out",
        /// No endpoint has the source's address.
        ESRCADDR = 7 "source address",
        /// The source's address is of a type that is not understood.
        ESRCTYPE = 8 "source type",
        /// The destination's address is not one.
        EDESTADDR = 9 "destination address",
        /// The destination's address is of a type that is not understood, or leaves the source open.
        EDESTTYPE = 10 "destination type",
    }
}

codes! {
    /// What an address of a message is.
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

/// What an address of a message is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryFlags(pub u32);

impl EntryFlags {
    /// In a request: it is the source's.
    pub const SOURCE: Self = Self(1);
    /// In a request: it is the destination's.
    pub const DESTINATION: Self = Self(2);
    /// In a request: only what is known already is wanted.
    pub const NODELAY: Self = Self(1 << 30);
    /// In a request: subnet administration shall be asked.
    pub const QUERY_SA: Self = Self(1 << 31);
    /// In an answer: a path for connection management, the first choice, for both directions.
    pub const PATH: Self = Self(0x2b);

    /// Returns whether all bits of another one are set.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the bits of both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The order of the bytes in lengths, flags and types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// The lowest byte first.
    Little,
    /// The highest byte first: network order.
    Big,
}

impl ByteOrder {
    /// The order of this machine.
    pub const NATIVE: Self = if cfg!(target_endian = "big") { Self::Big } else { Self::Little };

    /// Returns the order that clients of today give the length of a message.
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
        /// What is asked for, in answers perhaps with [`ClientOpcode::ACK`].
        pub opcode: ClientOpcode = bits(1, 0, 8),
        /// How the request ended.
        pub status: ClientStatus = bits(2, 0, 8),
        /// Of counters: how many follow. Of endpoints: which one is asked for, from 1.
        pub src_out: u8 = bits(3, 0, 8),
        /// Of counters: the endpoint, 0 for the service. Of endpoints: a port's number, 0 for any.
        pub src_index: u8 = bits(4, 0, 8),
        /// Zero.
        pub dst_index: u8 = bits(5, 0, 8),
        /// The length of the whole message in some byte order.
        pub length: [u8; 2] = bits(6, 0, 16),
        /// What the client knows its request by; it means nothing to the service.
        pub transaction: [u8; 8] = bits(8, 0, 64),
    }
}

/// Why no message begins here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LengthError {
    /// The length is none in either byte order.
    #[error(
        "a message of {little} or {big} bytes, by the order of its bytes: expected {HEADER} to {MOST}"
    )]
    Neither {
        /// The length with its lowest byte first.
        little: u16,
        /// The length with its highest byte first.
        big: u16,
    },
}

impl ClientHeader {
    /// Returns a header of today's clients for so much data.
    #[must_use]
    pub fn new(opcode: ClientOpcode, transaction: [u8; 8]) -> Self {
        Self { version: VERSION, opcode, transaction, ..Self::zeroed() }
    }

    /// Returns the length of the whole message, and the byte order that it is in: the one in which it is that of
    /// a request, which is a header with whole addresses behind it, or else the one that is usual.
    ///
    /// # Errors
    /// Fails when it is none in either order.
    pub fn length(&self) -> Result<(usize, ByteOrder), LengthError> {
        let orders = match ByteOrder::of(self.opcode) {
            ByteOrder::Little => [ByteOrder::Little, ByteOrder::Big],
            ByteOrder::Big => [ByteOrder::Big, ByteOrder::Little],
        };
        let lengths = orders.map(|order| (usize::from(order.get_u16(self.length)), order));
        let possible = |&(length, _): &(usize, ByteOrder)| (HEADER..=MOST).contains(&length);
        let whole = |&(length, _): &(usize, ByteOrder)| {
            length >= HEADER && (length - HEADER).is_multiple_of(Entry::LENGTH)
        };
        let found = lengths.iter().filter(|it| possible(it)).max_by_key(|it| {
            // The last of equals would be taken.
            (whole(it), it.1 == orders[0])
        });
        found.copied().ok_or_else(|| {
            let [little, big] =
                [ByteOrder::Little, ByteOrder::Big].map(|order| order.get_u16(self.length));
            LengthError::Neither { little, big }
        })
    }

    /// Sets the length of the whole message.
    ///
    /// # Panics
    /// Panics when it is longer than [`MOST`].
    pub fn set_length(&mut self, length: usize, order: ByteOrder) {
        assert!((HEADER..=MOST).contains(&length), "a message of {length} bytes");
        self.length = order.put_u16(length as u16);
    }
}

layout! {
    /// An address as it stands in a message.
    struct RawEntry: 72 {
        flags: [u8; 4] = bits(0, 0, 32),
        kind: [u8; 2] = bits(4, 0, 16),
        reserved: [u8; 2] = bits(6, 0, 16),
        info: [u8; 64] = bits(8, 0, 512),
    }
}

/// An address or a path in a message of RESOLVE.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// What it is for.
    pub flags: EntryFlags,
    /// What it is.
    pub kind: EntryType,
    /// The address, padded with zeros.
    pub info: [u8; ADDRESS],
}

impl Entry {
    /// The length of an entry in bytes.
    pub const LENGTH: usize = RawEntry::LENGTH;

    /// Returns an entry for an address of up to 64 bytes; what is longer is cut off.
    #[must_use]
    fn new(flags: EntryFlags, kind: EntryType, address: &[u8]) -> Self {
        let mut info = [0; ADDRESS];
        let length = address.len().min(ADDRESS);
        info[..length].copy_from_slice(&address[..length]);
        Self { flags, kind, info }
    }

    /// Returns a name; `None` when it is longer than 63 bytes, empty, or has a zero in it.
    #[must_use]
    pub fn name(flags: EntryFlags, name: &str) -> Option<Self> {
        let fits = (1..ADDRESS).contains(&name.len()) && !name.bytes().any(|byte| byte == 0);
        fits.then(|| Self::new(flags, EntryType::NAME, name.as_bytes()))
    }

    /// Returns an IPv4 address.
    #[must_use]
    pub fn ipv4(flags: EntryFlags, address: Ipv4Addr) -> Self {
        Self::new(flags, EntryType::IPV4, &address.octets())
    }

    /// Returns an IPv6 address.
    #[must_use]
    pub fn ipv6(flags: EntryFlags, address: Ipv6Addr) -> Self {
        Self::new(flags, EntryType::IPV6, &address.octets())
    }

    /// Returns a path.
    #[must_use]
    pub fn path(flags: EntryFlags, path: &PathRecord) -> Self {
        Self { flags, kind: EntryType::PATH, info: path.to_bytes() }
    }

    /// Reads an entry.
    #[must_use]
    pub fn parse(bytes: &[u8; Self::LENGTH], order: ByteOrder) -> Self {
        let RawEntry { flags, kind, info, .. } = RawEntry::parse(bytes);
        let (flags, kind) = (EntryFlags(order.get_u32(flags)), EntryType(order.get_u16(kind)));
        Self { flags, kind, info }
    }

    /// Returns its bytes.
    #[must_use]
    pub fn to_bytes(self, order: ByteOrder) -> [u8; Self::LENGTH] {
        let (flags, kind) = (order.put_u32(self.flags.0), order.put_u16(self.kind.0));
        RawEntry { flags, kind, reserved: [0; 2], info: self.info }.to_bytes()
    }

    /// Returns the bytes of a name up to the first zero, or of all 64 where there is none.
    #[must_use]
    pub fn name_bytes(&self) -> &[u8] {
        let end = self.info.iter().position(|&byte| byte == 0).unwrap_or(ADDRESS);
        &self.info[..end]
    }

    /// Returns what it holds as a path.
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
                let octets = *self.info.first_chunk::<4>().expect("64 bytes");
                out.field("info", &Ipv4Addr::from(octets));
            }
            EntryType::IPV6 => {
                let octets = *self.info.first_chunk::<16>().expect("64 bytes");
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

/// A request or an answer of RESOLVE: a header and up to eight addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolve {
    /// The header; its length follows from the addresses.
    pub header: ClientHeader,
    /// The addresses.
    pub entries: Vec<Entry>,
}

impl Resolve {
    /// The most addresses that a message holds.
    pub const MOST: usize = MOST_DATA / Entry::LENGTH;

    /// Returns a request for a path to an address, from one or from any.
    #[must_use]
    pub fn request(transaction: [u8; 8], entries: Vec<Entry>) -> Self {
        Self { header: ClientHeader::new(ClientOpcode::RESOLVE, transaction), entries }
    }

    /// Reads the addresses of a message, of which the bytes after the last whole address are none.
    #[must_use]
    pub fn parse(header: ClientHeader, data: &[u8], order: ByteOrder) -> Self {
        let (entries, _) = data.as_chunks::<{ Entry::LENGTH }>();
        let entries = entries.iter().map(|entry| Entry::parse(entry, order));
        Self { header, entries: entries.take(Self::MOST).collect() }
    }

    /// Writes the message to the end of a buffer.
    ///
    /// # Panics
    /// Panics when it has more than [`Resolve::MOST`] addresses.
    pub fn put(&self, order: ByteOrder, out: &mut Vec<u8>) {
        let mut header = self.header;
        header.set_length(HEADER + Entry::LENGTH * self.entries.len(), order);
        out.extend_from_slice(&header.to_bytes());
        for entry in &self.entries {
            out.extend_from_slice(&entry.to_bytes(order));
        }
    }
}

/// The counters of a service or of an endpoint, in the order in which they are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerfCounters {
    /// Requests that failed.
    pub errors: u64,
    /// Requests to resolve.
    pub resolves: u64,
    /// Requests for what was to be known already and is not.
    pub no_data: u64,
    /// Addresses that others were asked for.
    pub address_queries: u64,
    /// Addresses that were known.
    pub address_cached: u64,
    /// Routes that subnet administration was asked for.
    pub route_queries: u64,
    /// Routes that were known.
    pub route_cached: u64,
}

impl PerfCounters {
    /// How many there are.
    pub const COUNT: usize = 7;

    /// What they are called, as `ib_acme` has it.
    pub const NAMES: [&'static str; Self::COUNT] = [
        "Error Count",
        "Resolve Count",
        "No Data",
        "Addr Query Count",
        "Addr Cache Count",
        "Route Query Count",
        "Route Cache Count",
    ];

    /// Returns all of them in their order.
    #[must_use]
    pub const fn values(&self) -> [u64; Self::COUNT] {
        let Self { errors, resolves, no_data, address_queries, address_cached, .. } = *self;
        let Self { route_queries, route_cached, .. } = *self;
        [errors, resolves, no_data, address_queries, address_cached, route_queries, route_cached]
    }
}

layout! {
    /// What is told of an endpoint; the names follow, 64 bytes each.
    pub struct EndpointInfo: 80 {
        /// The GUID of the adapter.
        pub device_guid: u64 = bits(0, 0, 64),
        /// The number of the port.
        pub port: u8 = bits(8, 0, 8),
        /// How many ports the adapter has.
        pub port_count: u8 = bits(9, 0, 8),
        /// The partition.
        pub p_key: u16 = bits(12, 0, 16),
        /// How many names follow.
        pub address_count: u16 = bits(14, 0, 16),
        /// Who resolves, padded with zeros.
        pub provider: [u8; 64] = bits(16, 0, 512),
    }
}

#[cfg(test)]
mod tests;
