//! Compares the size, the data and the writers of a reopened device with those when it was last open.

use ib_wire::rnbd::{AccessMode, OpenResponse};

use super::Kept;
use super::open_error::{OpenError, OtherData, Size};
use ib_block::{Geometry, Origin};

/// A server's report about the data of a device. The client compares the reports of two openings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DataHistory {
    /// The random number of the server, which changes when the server restarts.
    pub(super) server: u64,
    pub(super) origin: Origin,
    /// A number that changes when another client writes to the device ([`OpenResponse::writers`]).
    pub(super) writers: u16,
}

/// Tells whether other clients may have written to a device since this client last had it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OtherWrites {
    None,
    /// The server was restarted, and does not know whether other clients have written. The client's queued writes may
    /// be older than the data of the device.
    Possible,
}

/// Compares a reopened device with its state when it was last open. Accepts a device whose size has grown.
pub(super) fn compare(
    (old, before): (Geometry, Option<DataHistory>),
    (new, now): (Geometry, Option<DataHistory>),
    mode: AccessMode,
    name: &str,
) -> Result<(Kept, OtherWrites), OpenError> {
    let other = |evidence| Err(OpenError::OtherData { name: name.to_owned(), evidence });
    for (size, found, expected) in [
        (Size::Device, new.size.min(old.size), old.size),
        (Size::Block, new.logical_block.into(), old.logical_block.into()),
    ] {
        if found != expected {
            return Err(OpenError::SizeChanged { name: name.to_owned(), size, found, expected });
        }
    }
    if new.write_back && !old.write_back {
        return other(OtherData::WriteCache);
    }
    let (before, now) = match (before, now) {
        (Some(before), Some(now)) => (before, now),
        (Some(_), None) | (None, Some(_)) => {
            return other(OtherData::Server);
        }
        // A Linux server reports nothing about the data.
        (None, None) => return Ok((Kept::Unknown, OtherWrites::None)),
    };
    if before.origin.medium != now.origin.medium {
        return other(OtherData::Medium);
    }
    let kept = if before.origin.cache == now.origin.cache { Kept::All } else { Kept::Flushed };
    if mode == AccessMode::READ_ONLY {
        return Ok((kept, OtherWrites::None));
    }
    // A restarted server that does not store its `writers` numbers may report the same number as before the restart,
    // although other clients have written.
    let lasts = before.writers & now.writers & OpenResponse::WRITERS_PERSISTENT != 0;
    if before.server != now.server && !lasts {
        return Ok((kept, OtherWrites::Possible));
    }
    // If other clients have written, the client refuses the device, because the user submitted the queued commands
    // without knowledge of these writes.
    if (before.writers ^ now.writers) & !OpenResponse::WRITERS_PERSISTENT != 0 {
        return other(OtherData::Writer);
    }
    Ok((kept, OtherWrites::None))
}
