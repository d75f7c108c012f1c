//! Types of the content of capture files.

/// Link type of an interface.
///
/// The value is a number from the tcpdump group's registry of link-layer header types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkType(pub u16);

impl LinkType {
    /// Ethernet frames, without the FCS.
    pub const ETHERNET: Self = Self(1);
    /// IPv4 or IPv6 packets.
    pub const RAW_IP: Self = Self(101);
    /// ERF records. [`crate::erf`] formats and parses records that contain InfiniBand packets.
    pub const ERF: Self = Self(197);
    /// Native InfiniBand packets that begin with the LRH, without a record header.
    pub const INFINIBAND: Self = Self(247);
}

/// Byte order of a pcapng section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Least significant byte first.
    #[default]
    Little,
    /// Most significant byte first.
    Big,
}

/// Section header block, which describes a whole capture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// Byte order.
    pub byte_order: ByteOrder,
    /// Hardware of the machine that captured the packets.
    pub hardware: Option<String>,
    /// Operating system.
    pub os: Option<String>,
    /// Application that has written the file.
    pub application: Option<String>,
    /// Comments.
    pub comments: Vec<String>,
}

/// Interface description block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Link type.
    pub link_type: LinkType,
    /// Snap length in bytes, to which the writer truncates packets; 0 for no limit.
    pub snap_length: u32,
    /// Name, such as `leaf1:7`.
    pub name: Option<String>,
    /// Description.
    pub description: Option<String>,
    /// Speed in bit/s.
    pub speed: Option<u64>,
    /// Comments.
    pub comments: Vec<String>,
}

impl Interface {
    /// Returns an interface that has no name and no snap length.
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

    /// Sets the snap length in bytes; 0 for no limit.
    #[must_use]
    pub fn snap_length(mut self, bytes: u32) -> Self {
        self.snap_length = bytes;
        self
    }
}

/// Flags of a packet, which the option `epb_flags` holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PacketFlags(pub u32);

impl PacketFlags {
    /// The packet was received.
    pub const INBOUND: Self = Self(1);
    /// The packet was sent.
    pub const OUTBOUND: Self = Self(2);
    /// The packet had a wrong CRC (a link-layer error).
    pub const CRC_ERROR: Self = Self(1 << 24);
}

/// Enhanced packet block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Number of the interface in its section.
    pub interface: u32,
    /// Time in nanoseconds since 1970; `None` for simple packet blocks, which have no time.
    pub time: Option<u64>,
    /// Original size of the packet in bytes.
    pub original_length: u32,
    /// Captured bytes.
    pub data: &'a [u8],
    /// Flags.
    pub flags: Option<PacketFlags>,
    /// Number of packets that the interface dropped between the previous packet and this one.
    pub dropped: Option<u64>,
    /// Comments.
    pub comments: Vec<&'a str>,
}

impl<'a> Packet<'a> {
    /// Returns a packet that was captured completely.
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

    /// Adds a comment.
    #[must_use]
    pub fn comment(mut self, comment: &'a str) -> Self {
        self.comments.push(comment);
        self
    }

    /// Sets the flags.
    #[must_use]
    pub fn flags(mut self, flags: PacketFlags) -> Self {
        self.flags = Some(flags);
        self
    }
}

/// Interface statistics block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Number of the interface in its section.
    pub interface: u32,
    /// Time of the statistics in nanoseconds since 1970.
    pub time: u64,
    /// Start time of the capture in nanoseconds since 1970.
    pub start: Option<u64>,
    /// End time of the capture in nanoseconds since 1970.
    pub end: Option<u64>,
    /// Number of packets that the interface received.
    pub received: Option<u64>,
    /// Number of packets that the interface dropped for lack of resources.
    pub dropped: Option<u64>,
    /// Number of packets that passed the capture filter.
    pub accepted: Option<u64>,
    /// Number of packets dropped by the operating system.
    pub os_dropped: Option<u64>,
    /// Number of packets that the operating system delivered to the capturing application.
    pub delivered: Option<u64>,
    /// Comments.
    pub comments: Vec<String>,
}

/// The next item of a capture file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// Start of a section. Interface numbers start from 0 again.
    Section(Section),
    /// An interface. It was added to the end of [`crate::Reader::interfaces`].
    Interface(Interface),
    /// A packet.
    Packet(Packet<'a>),
    /// Statistics of an interface.
    Statistics(Statistics),
}
