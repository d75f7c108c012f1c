//! RMPP, which splits long messages into several MADs: header, segment counts and lengths; IBTA
//! volume 1, chapter 13.6.
//!
//! The header fields with their byte offset in the MAD. Sizes in parentheses are in bytes, other
//! sizes in bits:
//!
//! ```text
//! 24 version  25 type  26 RespTime 5 | flags 3  27 status
//! 28 DATA and ACK: segment number (4)
//! 32 DATA: payload length (4); ACK: last segment of the new window (4)
//! ```
//!
//! After the RMPP header, each segment has 220 bytes: the class header and then data. In the SA
//! class, these are a class header of 20 bytes and 200 bytes of data. In vendor classes with an OUI,
//! these are a class header of 4 bytes and 216 bytes of data. The `length` of a message is the
//! length of its data, without the class headers.

use crate::mad::codes::{codes, masks};
use crate::mad::{Mad, MgmtClass};

crate::layout! {
    /// The RMPP header, at byte 24 of a MAD.
    pub struct RmppHeader: 12 {
        /// The version: 1.
        pub version: u8 = bits(0, 0, 8),
        /// The RMPP type.
        pub rmpp_type: RmppType = bits(1, 0, 8),
        /// The response time of the sender: 4.096 µs × 2^value; 31 if the packet specifies no response
        /// time.
        pub resp_time: u8 = bits(2, 0, 5),
        /// The flags.
        pub flags: RmppFlags = bits(2, 5, 3),
        /// The status. In STOP and ABORT, it is the reason.
        pub status: RmppStatus = bits(3, 0, 8),
        /// In DATA: the number of this segment, from 1. In ACK: the number of the last segment
        /// received in order.
        pub segment: u32 = bits(4, 0, 32),
        /// In DATA: the payload length, see [`payload_length`]. In ACK: the number of the last segment
        /// of the new window.
        pub length_or_window: u32 = bits(8, 0, 32),
    }
}

codes! {
    /// The type of an RMPP packet.
    RmppType(u8) {
        /// Not an RMPP packet.
        NONE = 0 "none",
        /// A segment.
        DATA = 1 "DATA",
        /// An acknowledgement of segments.
        ACK = 2 "ACK",
        /// Stops the transfer, because resources are exhausted.
        STOP = 3 "STOP",
        /// Aborts the transfer, because of a protocol violation or a timeout.
        ABORT = 4 "ABORT",
    }
}

masks! {
    /// The RMPP flags.
    RmppFlags(u8) {
        /// The MAD is an RMPP packet. If this flag is clear, the other RMPP fields are invalid.
        ACTIVE = 0 "Active",
        /// The first segment.
        FIRST = 1 "First",
        /// The last segment.
        LAST = 2 "Last",
    }
}

codes! {
    /// The RMPP status.
    RmppStatus(u8) {
        /// No error.
        NORMAL = 0 "normal",
        /// Resources are exhausted: the status of a STOP.
        RESOURCES_EXHAUSTED = 1 "resources exhausted",
        /// The transfer took too long.
        TIME_TOO_LONG = 118 "total time too long",
        /// The Last flag contradicts the payload length.
        INCONSISTENT_LAST = 119 "inconsistent last and payload length",
        /// The First flag contradicts the segment number.
        INCONSISTENT_FIRST = 120 "inconsistent first and segment number",
        /// Unknown RMPP type.
        BAD_TYPE = 121 "bad type",
        /// The new window ends before the acknowledged segment.
        WINDOW_TOO_SMALL = 122 "new window last too small",
        /// The ACK is for a segment that was not sent.
        SEGMENT_TOO_BIG = 123 "segment number too big",
        /// A received RMPP packet had an illegal status.
        ILLEGAL_STATUS = 124 "illegal status",
        /// Unknown RMPP version.
        BAD_VERSION = 125 "unsupported version",
        /// A segment was retransmitted too often.
        TOO_MANY_RETRIES = 126 "too many retries",
        /// Unspecified error.
        UNSPECIFIED = 127 "unspecified",
    }
}

/// The RMPP version.
pub const VERSION: u8 = 1;

/// The byte offset of the RMPP header in a MAD.
pub const OFFSET: usize = 24;

/// The length in bytes of a segment after the RMPP header, including the class header.
pub const SEGMENT_LENGTH: u32 = 220;

/// Returns the number of data bytes per segment in this class; `None` if the class does not use
/// RMPP.
///
/// The number is 200 in the SA class and 216 in vendor classes with an OUI.
#[must_use]
pub const fn data_per_segment(class: MgmtClass) -> Option<u32> {
    match class.data_offset() {
        offset if class.may_use_rmpp() => Some((256 - offset) as u32),
        _ => None,
    }
}

/// Returns the number of segments of a message of `length` bytes. An empty message has one segment.
///
/// # Panics
/// Panics if `data_per_segment` is 0 and the message is not empty.
#[must_use]
pub const fn segments(length: u32, data_per_segment: u32) -> u32 {
    if length == 0 { 1 } else { length.div_ceil(data_per_segment) }
}

/// Returns the value of a segment's payload length field. Segments are numbered from 1.
///
/// * First segment: the length of the message, including the class headers of all segments.
/// * Last of several segments: the length of its own data, including its class header.
/// * Other segments: 0.
///
/// # Panics
/// Panics if the message has no segment with this number, or if the payload length exceeds 32 bits.
#[must_use]
pub fn payload_length(length: u32, data_per_segment: u32, segment: u32) -> u32 {
    let count = segments(length, data_per_segment);
    assert!((1..=count).contains(&segment), "segment {segment}: expected 1 to {count}");
    let header = SEGMENT_LENGTH - data_per_segment;
    if segment == 1 {
        let headers = count.checked_mul(header).expect("the message is shorter than 4 GiB");
        length.checked_add(headers).expect("the message is shorter than 4 GiB")
    } else if segment == count {
        length - (count - 1) * data_per_segment + header
    } else {
        0
    }
}

/// Returns the number of data bytes of the last segment, computed from its payload length field.
///
/// Returns `None` if the payload length is shorter than the class header or longer than a segment.
#[must_use]
pub fn last_data(payload_length: u32, data_per_segment: u32) -> Option<u32> {
    let header = SEGMENT_LENGTH.checked_sub(data_per_segment)?;
    payload_length.checked_sub(header).filter(|&data| data <= data_per_segment)
}

/// Returns the flags of a segment in a message of `count` segments. Segments are numbered from 1.
#[must_use]
pub const fn flags(segment: u32, count: u32) -> RmppFlags {
    RmppFlags::ACTIVE.with(RmppFlags::FIRST, segment == 1).with(RmppFlags::LAST, segment == count)
}

/// Access to the RMPP header, which is valid only in classes that use RMPP
/// ([`MgmtClass::may_use_rmpp`]).
impl Mad {
    /// Returns the RMPP header.
    #[must_use]
    pub fn rmpp(&self) -> RmppHeader {
        RmppHeader::parse(self.0[OFFSET..].first_chunk().expect("a MAD has 256 bytes"))
    }

    /// Writes the RMPP header.
    pub fn set_rmpp(&mut self, header: &RmppHeader) {
        header.emit(self.0[OFFSET..].first_chunk_mut().expect("a MAD has 256 bytes"));
    }

    /// Returns true if the class uses RMPP and the Active flag is set.
    #[inline]
    #[must_use]
    pub const fn is_rmpp(&self) -> bool {
        self.class().may_use_rmpp() && self.0[26] & RmppFlags::ACTIVE.0 != 0
    }
}

#[cfg(test)]
mod tests;
