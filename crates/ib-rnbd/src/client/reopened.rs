//! Comparison of a reopened device with its earlier state: size, data, and writes of other clients.

use ib_wire::rnbd::{AccessMode, OpenResponse};

use super::Kept;
use super::open_error::{OpenError, OtherData, Size};
use ib_block::{Geometry, Origin};

/// The history of a device's data, as its server reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DataHistory {
    /// The number of the server.
    pub(super) server: u64,
    pub(super) origin: Origin,
    /// A number that changes when another client has written ([`OpenResponse::writers`]).
    pub(super) writers: u16,
}

/// Whether other clients have written to a device since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OtherWrites {
    None,
    /// The server was restarted and does not know. Writes that wait may be older than the data of the device.
    Possible,
}

/// Compares a reopened device with its earlier state. A larger device is accepted.
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
        // Linux reports nothing.
        (None, None) => return Ok((Kept::Unknown, OtherWrites::None)),
    };
    if before.origin.medium != now.origin.medium {
        return other(OtherData::Medium);
    }
    let kept = if before.origin.cache == now.origin.cache { Kept::All } else { Kept::Flushed };
    if mode == AccessMode::READ_ONLY {
        return Ok((kept, OtherWrites::None));
    }
    // A restarted server without stored numbers may return the same number for other writers.
    let lasts = before.writers & now.writers & OpenResponse::WRITERS_PERSISTENT != 0;
    if before.server != now.server && !lasts {
        return Ok((kept, OtherWrites::Possible));
    }
    // The waiting commands were submitted without knowledge of these writes.
    if (before.writers ^ now.writers) & !OpenResponse::WRITERS_PERSISTENT != 0 {
        return other(OtherData::Writer);
    }
    Ok((kept, OtherWrites::None))
}
