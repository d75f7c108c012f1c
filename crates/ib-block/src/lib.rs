//! Model of a block device: its geometry, its commands, and the division of a command into steps that the device
//! supports. The crate performs no I/O.
//!
//! | module | holds |
//! |---|---|
//! | [`device`] | [`Geometry`] of a device; [`Command`], and its check against a geometry; [`Plan`]: the steps into which a command is divided |
//! | [`data`] | [`ReadData`]: the data of a read, copied or lent |
//!
//! ```
//! use ib_block::{Command, Geometry, Operation, Plan};
//!
//! // The device does not support FUA, so a flush follows the writes.
//! let geometry = Geometry { write_back: true, ..Geometry::new(1 << 20, 512) };
//! let command = Command { operation: Operation::Write, offset: 0, length: 5120, fua: true };
//! let steps: Vec<_> = Plan::new(command, &geometry, 4096).collect();
//! assert_eq!(steps.len(), 3);
//! assert_eq!(steps[1].length, 1024);
//! assert_eq!(steps[2].operation, Operation::Flush);
//! ```

pub mod data;
pub mod device;

pub use data::{ReadData, Slice};
pub use device::{Command, CommandError, Discard, Geometry, Operation, Origin, Plan};
pub use ib_types::Errno;
