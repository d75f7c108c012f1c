//! Comparison of a reopened device with its earlier state: size, data, and writes of other clients.

use ib_wire::rnbd::{AccessMode, OpenResponse};

use super::{Kept, OpenError};
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

/// A difference that makes it another device.
pub(super) enum Difference {
    Size { what: &'static str, found: u64, expected: u64 },
    Data(&'static str),
}

impl Difference {
    pub(super) fn of(self, name: String) -> OpenError {
        match self {
            Self::Size { what, found, expected } => {
                OpenError::Changed { name, what, found, expected }
            }
            Self::Data(what) => OpenError::Other { name, what },
        }
    }
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
) -> Result<(Kept, OtherWrites), Difference> {
    for (what, found, expected) in [
        ("", new.size.min(old.size), old.size),
        (" in each block", new.logical_block.into(), old.logical_block.into()),
    ] {
        if found != expected {
            return Err(Difference::Size { what, found, expected });
        }
    }
    if new.write_back && !old.write_back {
        return Err(Difference::Data("it caches what is written, which it did not"));
    }
    let (before, now) = match (before, now) {
        (Some(before), Some(now)) => (before, now),
        (Some(_), None) | (None, Some(_)) => {
            return Err(Difference::Data("another kind of server has it"));
        }
        // Linux reports nothing.
        (None, None) => return Ok((Kept::Unknown, OtherWrites::None)),
    };
    if before.origin.medium != now.origin.medium {
        return Err(Difference::Data("its server says so"));
    }
    let kept = if before.origin.cache == now.origin.cache { Kept::All } else { Kept::Flushed };
    if mode == AccessMode::READ_ONLY {
        return Ok((kept, OtherWrites::None));
    }
    // A restarted server without stored numbers may return the same number for other writers.
    let lasts = before.writers & now.writers & OpenResponse::LASTS != 0;
    if before.server != now.server && !lasts {
        return Ok((kept, OtherWrites::Possible));
    }
    // The waiting commands were submitted without knowledge of these writes.
    if (before.writers ^ now.writers) & !OpenResponse::LASTS != 0 {
        return Err(Difference::Data("somebody else has written to it"));
    }
    Ok((kept, OtherWrites::None))
}
