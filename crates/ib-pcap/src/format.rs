//! Constants and number encoding of pcapng.
//!
//! Source: the IETF draft "PCAP Next Generation (pcapng) Capture File Format".

use crate::model::ByteOrder;

/// Block types.
pub(crate) mod block {
    pub(crate) const SECTION: u32 = 0x0a0d_0d0a;
    pub(crate) const INTERFACE: u32 = 1;
    pub(crate) const SIMPLE_PACKET: u32 = 3;
    pub(crate) const STATISTICS: u32 = 5;
    pub(crate) const ENHANCED_PACKET: u32 = 6;
}

/// Option codes. Codes above 1 have a different meaning in each block type.
pub(crate) mod option {
    pub(crate) const END: u16 = 0;
    pub(crate) const COMMENT: u16 = 1;
    pub(crate) const SECTION_HARDWARE: u16 = 2;
    pub(crate) const SECTION_OS: u16 = 3;
    pub(crate) const SECTION_APPLICATION: u16 = 4;
    pub(crate) const INTERFACE_NAME: u16 = 2;
    pub(crate) const INTERFACE_DESCRIPTION: u16 = 3;
    pub(crate) const INTERFACE_SPEED: u16 = 8;
    pub(crate) const INTERFACE_RESOLUTION: u16 = 9;
    pub(crate) const INTERFACE_OFFSET: u16 = 14;
    pub(crate) const PACKET_FLAGS: u16 = 2;
    pub(crate) const PACKET_DROPPED: u16 = 4;
    pub(crate) const STATISTICS_START: u16 = 2;
    pub(crate) const STATISTICS_END: u16 = 3;
    pub(crate) const STATISTICS_RECEIVED: u16 = 4;
    pub(crate) const STATISTICS_DROPPED: u16 = 5;
    pub(crate) const STATISTICS_ACCEPTED: u16 = 6;
    pub(crate) const STATISTICS_OS_DROPPED: u16 = 7;
    pub(crate) const STATISTICS_DELIVERED: u16 = 8;
}

/// Byte-order magic in a section header.
pub(crate) const MAGIC: u32 = 0x1a2b_3c4d;

/// Maximum size of a block that is read or written, in bytes.
pub(crate) const MAX_BLOCK: usize = 1 << 24;

/// Value of the option `if_tsresol` if times are in nanoseconds.
pub(crate) const NANOSECONDS: u8 = 9;

macro_rules! numbers {
    ($($read:ident $write:ident $number:ty),+) => {
        impl ByteOrder {
            $(
                /// Reads a number from the first bytes. Panics if there are too few bytes.
                pub(crate) fn $read(self, bytes: &[u8]) -> $number {
                    let bytes = *bytes.first_chunk().expect("the caller passes enough bytes");
                    match self {
                        Self::Little => <$number>::from_le_bytes(bytes),
                        Self::Big => <$number>::from_be_bytes(bytes),
                    }
                }

                /// Appends a number.
                pub(crate) fn $write(self, bytes: &mut Vec<u8>, number: $number) {
                    match self {
                        Self::Little => bytes.extend(number.to_le_bytes()),
                        Self::Big => bytes.extend(number.to_be_bytes()),
                    }
                }
            )+
        }
    };
}

numbers!(u16 put_u16 u16, u32 put_u32 u32, u64 put_u64 u64);

impl ByteOrder {
    /// Reads a 64-bit value that consists of two 32-bit words. In both byte orders, the upper word is first.
    pub(crate) fn words(self, bytes: &[u8]) -> u64 {
        u64::from(self.u32(bytes)) << 32 | u64::from(self.u32(&bytes[4..]))
    }

    /// Appends a 64-bit value as two 32-bit words. In both byte orders, the upper word is first.
    pub(crate) fn put_words(self, bytes: &mut Vec<u8>, value: u64) {
        self.put_u32(bytes, (value >> 32) as u32);
        self.put_u32(bytes, value as u32);
    }
}
