//! What a capture file holds.

/// The kind of link that an interface's packets come from.
///
/// The numbers are those of the tcpdump group's registry of link-layer header types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkType(pub u16);

impl LinkType {
    /// Ethernet frames without their FCS.
    pub const ETHERNET: Self = Self(1);
    /// IPv4 or IPv6 packets.
    pub const RAW_IP: Self = Self(101);
    /// ERF records; [`crate::erf`] makes those of InfiniBand.
    pub const ERF: Self = Self(197);
    /// Native InfiniBand packets that start with the LRH, without a record header.
    pub const INFINIBAND: Self = Self(247);
}

/// The order of the bytes of numbers in a pcapng section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Least significant byte first.
    #[default]
    Little,
    /// Most significant byte first.
    Big,
}

/// What is known about a whole capture: a section header block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// The order of the bytes.
    pub byte_order: ByteOrder,
    /// The machine.
    pub hardware: Option<String>,
    /// The operating system.
    pub os: Option<String>,
    /// The program that wrote the file.
    pub application: Option<String>,
    /// Remarks.
    pub comments: Vec<String>,
}

/// Where packets were captured: an interface description block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The kind of its packets.
    pub link_type: LinkType,
    /// How many bytes of a packet are kept at most; 0 for no limit. The writer cuts to it.
    pub snap_length: u32,
    /// The name, such as `leaf1:7`.
    pub name: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// The speed in bit/s.
    pub speed: Option<u64>,
    /// Remarks.
    pub comments: Vec<String>,
}

impl Interface {
    /// Makes an interface without a limit and without a name.
    #[must_use]
    pub fn new(link_type: LinkType) -> Self {
        Self {
            link_type,
            snap_length: 0,
            name: None,
            description: None,
            speed: None,
            comments: Vec::new(),
        }
    }

    /// Sets the name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Sets the speed in bit/s.
    #[must_use]
    pub fn speed(mut self, bits_per_second: u64) -> Self {
        self.speed = Some(bits_per_second);
        self
    }

    /// Sets how many bytes of a packet are kept at most; 0 for no limit.
    #[must_use]
    pub fn snap_length(mut self, bytes: u32) -> Self {
        self.snap_length = bytes;
        self
    }
}

/// What a capture knows of how a packet came about: the option `epb_flags`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PacketFlags(pub u32);

impl PacketFlags {
    /// The packet was received.
    pub const INBOUND: Self = Self(1);
    /// The packet was sent.
    pub const OUTBOUND: Self = Self(2);
    /// A bit of the upper half: the packet had a wrong CRC.
    pub const CRC_ERROR: Self = Self(1 << 24);
    /// A bit of the upper half: the packet was longer than allowed.
    pub const TOO_LONG: Self = Self(1 << 25);
    /// A bit of the upper half: the packet was shorter than allowed.
    pub const TOO_SHORT: Self = Self(1 << 26);

    /// Returns the flags with others added.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// One packet: an enhanced packet block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The interface, counted from 0 in the order of the section.
    pub interface: u32,
    /// The time in nanoseconds since 1970; `None` in the simple packets of pcapng.
    pub time: Option<u64>,
    /// The length of the whole packet in bytes.
    pub original_length: u32,
    /// The bytes that were captured, from the first on.
    pub data: &'a [u8],
    /// How it came about.
    pub flags: Option<PacketFlags>,
    /// How many packets the interface lost since the one before.
    pub dropped: Option<u64>,
    /// Remarks.
    pub comments: Vec<&'a str>,
}

impl<'a> Packet<'a> {
    /// Makes a packet that was captured whole.
    #[must_use]
    pub fn new(interface: u32, time: u64, data: &'a [u8]) -> Self {
        Self {
            interface,
            time: Some(time),
            original_length: u32::try_from(data.len()).unwrap_or(u32::MAX),
            data,
            flags: None,
            dropped: None,
            comments: Vec::new(),
        }
    }

    /// Adds a remark.
    #[must_use]
    pub fn comment(mut self, comment: &'a str) -> Self {
        self.comments.push(comment);
        self
    }

    /// Sets how it came about.
    #[must_use]
    pub fn flags(mut self, flags: PacketFlags) -> Self {
        self.flags = Some(flags);
        self
    }
}

/// What an interface counted: an interface statistics block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// The interface, counted from 0 in the order of the section.
    pub interface: u32,
    /// When it was counted, in nanoseconds since 1970.
    pub time: u64,
    /// When the capture began.
    pub start: Option<u64>,
    /// When it ended.
    pub end: Option<u64>,
    /// Packets that came.
    pub received: Option<u64>,
    /// Packets that the interface lost for want of room.
    pub dropped: Option<u64>,
    /// Packets that passed the filter.
    pub accepted: Option<u64>,
    /// Packets that the system lost.
    pub os_dropped: Option<u64>,
    /// Packets that reached the program.
    pub delivered: Option<u64>,
    /// Remarks.
    pub comments: Vec<String>,
}

/// The next thing in a capture file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A section begins, which has interfaces of its own, counted from 0 again.
    Section(Section),
    /// An interface, which is now the last of [`crate::Reader::interfaces`].
    Interface(Interface),
    /// A packet.
    Packet(Packet<'a>),
    /// What an interface counted.
    Statistics(Statistics),
}
