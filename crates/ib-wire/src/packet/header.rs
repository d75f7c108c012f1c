//! The headers between the BTH and the payload. The opcode determines which headers a packet has.

/// The length of the ICRC in bytes.
pub const ICRC: usize = 4;

/// The length of the VCRC in bytes.
pub const VCRC: usize = 2;

/// A header between the BTH and the payload.
///
/// The variants are in wire order. Source: IBTA volume 1, chapters 9.2.1 and 9.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Header {
    /// Reliable datagram extended transport header.
    Rdeth,
    /// Datagram extended transport header.
    Deth,
    /// Extended reliable connection extended transport header.
    XrcEth,
    /// RDMA extended transport header.
    Reth,
    /// Atomic extended transport header.
    AtomicEth,
    /// ACK extended transport header.
    Aeth,
    /// Atomic ACK extended transport header.
    AtomicAckEth,
    /// Immediate data.
    ImmDt,
    /// Invalidate extended transport header.
    Ieth,
}

impl Header {
    /// All headers, in wire order.
    pub const ALL: [Self; 9] = [
        Self::Rdeth,
        Self::Deth,
        Self::XrcEth,
        Self::Reth,
        Self::AtomicEth,
        Self::Aeth,
        Self::AtomicAckEth,
        Self::ImmDt,
        Self::Ieth,
    ];

    /// Returns the length in bytes.
    #[inline]
    #[must_use]
    pub const fn length(self) -> usize {
        match self {
            Self::Rdeth | Self::XrcEth | Self::Aeth | Self::ImmDt | Self::Ieth => 4,
            Self::Deth | Self::AtomicAckEth => 8,
            Self::Reth => 16,
            Self::AtomicEth => 28,
        }
    }

    /// Returns the header's name in the specification, such as `RETH`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rdeth => "RDETH",
            Self::Deth => "DETH",
            Self::XrcEth => "XRCETH",
            Self::Reth => "RETH",
            Self::AtomicEth => "AtomicETH",
            Self::Aeth => "AETH",
            Self::AtomicAckEth => "AtomicAckETH",
            Self::ImmDt => "ImmDt",
            Self::Ieth => "IETH",
        }
    }
}

/// A set of headers between the BTH and the payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct HeaderSet {
    members: u16,
    length: u8,
}

impl HeaderSet {
    /// The empty set.
    pub const EMPTY: Self = Self { members: 0, length: 0 };

    pub(super) const fn of(headers: &[Header]) -> Self {
        let mut set = Self::EMPTY;
        let mut index = 0;
        while index < headers.len() {
            set = set.with(headers[index]);
            index += 1;
        }
        set
    }

    /// Returns the set, with `header` added.
    #[must_use]
    pub const fn with(self, header: Header) -> Self {
        if self.contains(header) {
            return self;
        }
        let members = self.members | 1 << header as u8;
        Self { members, length: self.length + header.length() as u8 }
    }

    /// Returns true if the set contains `header`.
    #[inline]
    #[must_use]
    pub const fn contains(self, header: Header) -> bool {
        self.members >> header as u8 & 1 == 1
    }

    /// Returns the total length of the headers in bytes.
    #[inline]
    #[must_use]
    pub const fn length(self) -> usize {
        self.length as usize
    }

    /// Returns the offset of `header` in bytes from the end of the BTH; `None` if the set does not
    /// contain it.
    #[inline]
    #[must_use]
    pub fn offset(self, header: Header) -> Option<usize> {
        if !self.contains(header) {
            return None;
        }
        let mut before = self.members & ((1 << header as u8) - 1);
        let mut offset = 0;
        while before != 0 {
            offset += Header::ALL[before.trailing_zeros() as usize].length();
            before &= before - 1;
        }
        Some(offset)
    }

    /// Returns the headers in wire order.
    pub fn iter(self) -> impl Iterator<Item = Header> {
        Header::ALL.into_iter().filter(move |&header| self.contains(header))
    }
}
