//! Block devices: geometry, commands, and a command as the steps that a device can do.
//!
//! | module | holds |
//! |---|---|
//! | [`device`] | [`Geometry`], [`Command`]: what devices are like, and what is done with them |
//! | [`split`] | [`Plan`]: a command as the steps that a device can do |
//! | [`data`] | [`ReadData`]: the data of a read, copied or lent |
//!
//! ```
//! use ib_block::{Command, Geometry, Operation, Plan};
//!
//! // A device without writes that reach the medium at once: a flush follows them.
//! let geometry = Geometry { write_back: true, ..Geometry::new(1 << 20, 512) };
//! let command = Command { operation: Operation::Write, offset: 0, length: 5120, fua: true };
//! let steps: Vec<_> = Plan::new(command, &geometry, 4096).collect();
//! assert_eq!(steps.len(), 3);
//! assert_eq!(steps[1].length, 1024);
//! assert_eq!(steps[2].operation, Operation::Flush);
//! ```

pub mod data;
pub mod device;
pub mod split;

pub use data::{ReadData, Slice};
pub use device::{Command, CommandError, Discard, Geometry, Operation, Origin};
pub use ib_types::Errno;
pub use split::Plan;
