//! Whether a device that is open again is what it was: its size, its data, who has written to it.

use ib_wire::rnbd::{AccessMode, OpenResponse};

use super::{Kept, OpenError};
use ib_block::{Geometry, Origin};

/// What a server tells of a device's past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told {
    /// Which server.
    pub(super) server: u64,
    pub(super) origin: Origin,
    /// What is another number when somebody else has written ([`OpenResponse::writers`]).
    pub(super) writers: u16,
}

/// What is not as it was with a device.
pub(super) enum Change {
    Numbers { what: &'static str, found: u64, expected: u64 },
    Data(&'static str),
}

impl Change {
    pub(super) fn of(self, name: String) -> OpenError {
        match self {
            Self::Numbers { what, found, expected } => {
                OpenError::Changed { name, what, found, expected }
            }
            Self::Data(what) => OpenError::Other { name, what },
        }
    }
}

/// Whether others have written to a device since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Others {
    None,
    /// The server was restarted and does not know. Writes that wait may be older than the data of the device.
    Perhaps,
}

/// Compares a device that is open again with what it was. One that has grown is used as before.
pub(super) fn compare(
    (old, before): (Geometry, Option<Told>),
    (new, now): (Geometry, Option<Told>),
    mode: AccessMode,
) -> Result<(Kept, Others), Change> {
    for (what, found, expected) in [
        ("", new.size.min(old.size), old.size),
        (" in each block", new.logical_block.into(), old.logical_block.into()),
    ] {
        if found != expected {
            return Err(Change::Numbers { what, found, expected });
        }
    }
    if new.write_back && !old.write_back {
        return Err(Change::Data("it caches what is written, which it did not"));
    }
    let (before, now) = match (before, now) {
        (Some(before), Some(now)) => (before, now),
        (Some(_), None) | (None, Some(_)) => {
            return Err(Change::Data("another kind of server has it"));
        }
        // Linux says nothing.
        (None, None) => return Ok((Kept::Unknown, Others::None)),
    };
    if before.origin.medium != now.origin.medium {
        return Err(Change::Data("its server says so"));
    }
    let kept = if before.origin.cache == now.origin.cache { Kept::All } else { Kept::Flushed };
    if mode == AccessMode::READ_ONLY {
        return Ok((kept, Others::None));
    }
    // Numbers of a server that was started again and keeps nothing say nothing, not even when they are the same.
    let lasts = before.writers & now.writers & OpenResponse::LASTS != 0;
    if before.server != now.server && !lasts {
        return Ok((kept, Others::Perhaps));
    }
    // What waits was asked for by somebody who knows nothing of that.
    if (before.writers ^ now.writers) & !OpenResponse::LASTS != 0 {
        return Err(Change::Data("somebody else has written to it"));
    }
    Ok((kept, Others::None))
}
