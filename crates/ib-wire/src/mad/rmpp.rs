//! Messages of several segments: the header and the arithmetic; IBTA volume 1, chapter 13.6.
//!
//! ```text
//! 24 version  25 type  26 RespTime (5) | flags (3)  27 status
//! 28 DATA and ACK: segment number (4)
//! 32 DATA: payload length (4); ACK: last segment of the new window (4)
//! ```
//!
//! A segment carries 220 bytes behind this header; in each of them the class repeats its own header
//! of 20 bytes (subnet administration, 200 bytes of data) or of 4 (vendors with an OUI, 216). What a
//! message is here is its data without those headers.

use crate::mad::codes::{codes, masks};
use crate::mad::{Mad, MgmtClass};

crate::layout! {
    /// The header at byte 24 of a datagram.
    pub struct RmppHeader: 12 {
        /// The version: 1.
        pub version: u8 = bits(0, 0, 8),
        /// What the datagram is for.
        pub rmpp_type: RmppType = bits(1, 0, 8),
        /// The longest time until the next segment: 4.096 µs × 2^value; 31 when not known.
        pub resp_time: u8 = bits(2, 0, 5),
        /// Flags.
        pub flags: RmppFlags = bits(2, 5, 3),
        /// Why a transfer ends.
        pub status: RmppStatus = bits(3, 0, 8),
        /// DATA: the number of this segment; ACK: of the last one received in order; from 1.
        pub segment: u32 = bits(4, 0, 32),
        /// DATA: see [`payload_length`]; ACK: the last segment that may be sent.
        pub length_or_window: u32 = bits(8, 0, 32),
    }
}

codes! {
    /// What a datagram of a transfer is for.
    RmppType(u8) {
        /// The transfer is over or there is none.
        NONE = 0 "none",
        /// A segment.
        DATA = 1 "DATA",
        /// An acknowledgement.
        ACK = 2 "ACK",
        /// The end of a transfer for want of resources.
        STOP = 3 "STOP",
        /// The end of a transfer because of an error.
        ABORT = 4 "ABORT",
    }
}

masks! {
    /// The flags of a datagram.
    RmppFlags(u8) {
        /// The datagram is part of a transfer; without it RMPP says nothing.
        ACTIVE = 0 "Active",
        /// The first segment.
        FIRST = 1 "First",
        /// The last segment.
        LAST = 2 "Last",
    }
}

codes! {
    /// Why a transfer ends.
    RmppStatus(u8) {
        /// It does not.
        NORMAL = 0 "normal",
        /// Resources exhausted; the only one of STOP.
        RESOURCES_EXHAUSTED = 1 "resources exhausted",
        /// The whole message took too long.
        TIME_TOO_LONG = 118 "total time too long",
        /// The last segment contradicts the payload length.
        INCONSISTENT_LAST = 119 "inconsistent last and payload length",
        /// The flag of the first segment contradicts the segment number.
        INCONSISTENT_FIRST = 120 "inconsistent first and segment number",
        /// Unknown type.
        BAD_TYPE = 121 "bad type",
        /// The new window ends before the acknowledged segment.
        WINDOW_TOO_SMALL = 122 "new window last too small",
        /// A segment was acknowledged that was not sent.
        SEGMENT_TOO_BIG = 123 "segment number too big",
        /// Illegal status.
        ILLEGAL_STATUS = 124 "illegal status",
        /// Unknown version.
        BAD_VERSION = 125 "unsupported version",
        /// A segment was sent too often.
        TOO_MANY_RETRIES = 126 "too many retries",
        /// Something else.
        UNSPECIFIED = 127 "unspecified",
    }
}

/// The version of the protocol.
pub const VERSION: u8 = 1;

/// The byte of a datagram where the header stands.
pub const OFFSET: usize = 24;

/// The bytes of a segment behind this header, the header of the class included.
pub const SEGMENT_LENGTH: u32 = 220;

/// Returns the bytes of data that a segment of a class carries: 200 for subnet administration, 216
/// for vendors with an OUI; `None` for a class that does not use RMPP.
#[must_use]
pub const fn data_per_segment(class: MgmtClass) -> Option<u32> {
    match class.data_offset() {
        offset if class.may_use_rmpp() => Some((256 - offset) as u32),
        _ => None,
    }
}

/// Returns the number of segments of a message of so many bytes; an empty one has one segment.
///
/// # Panics
/// Panics when a segment carries no data.
#[must_use]
pub const fn segments(length: u32, data_per_segment: u32) -> u32 {
    if length == 0 { 1 } else { length.div_ceil(data_per_segment) }
}

/// Returns what the header of a segment says as payload length.
///
/// The first one tells the whole message with the class headers of all segments, the last one its own
/// part with its class header, those between say 0; a message of one segment tells its part.
/// `segment` counts from 1.
///
/// # Panics
/// Panics when the segment is not one of the message's or the length does not fit.
#[must_use]
pub fn payload_length(length: u32, data_per_segment: u32, segment: u32) -> u32 {
    let count = segments(length, data_per_segment);
    assert!((1..=count).contains(&segment), "segment {segment} of {count}");
    let header = SEGMENT_LENGTH - data_per_segment;
    if segment == 1 {
        let headers = count.checked_mul(header).expect("a message of less than 4 GiB");
        length.checked_add(headers).expect("a message of less than 4 GiB")
    } else if segment == count {
        length - (count - 1) * data_per_segment + header
    } else {
        0
    }
}

/// Returns the bytes of data of the last segment, from its payload length.
///
/// `None` when the length is shorter than the class header or longer than a segment.
#[must_use]
pub fn last_data(payload_length: u32, data_per_segment: u32) -> Option<u32> {
    let header = SEGMENT_LENGTH.checked_sub(data_per_segment)?;
    payload_length.checked_sub(header).filter(|&data| data <= data_per_segment)
}

/// Returns the flags of a segment of a message; `segment` counts from 1.
#[must_use]
pub const fn flags(segment: u32, count: u32) -> RmppFlags {
    RmppFlags::ACTIVE.with(RmppFlags::FIRST, segment == 1).with(RmppFlags::LAST, segment == count)
}

/// The header of RMPP in a datagram; it means something in classes that use it.
impl Mad {
    /// Returns the RMPP header.
    #[must_use]
    pub fn rmpp(&self) -> RmppHeader {
        RmppHeader::parse(self.0[OFFSET..].first_chunk().expect("12 bytes"))
    }

    /// Stores the RMPP header.
    pub fn set_rmpp(&mut self, header: &RmppHeader) {
        header.emit(self.0[OFFSET..].first_chunk_mut().expect("12 bytes"));
    }

    /// Returns true when the class uses RMPP and the datagram is part of a transfer.
    #[inline]
    #[must_use]
    pub const fn is_rmpp(&self) -> bool {
        self.class().may_use_rmpp() && self.0[26] & RmppFlags::ACTIVE.0 != 0
    }
}

#[cfg(test)]
mod tests;
