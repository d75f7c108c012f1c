//! Disks in memory and files, and drivers of block servers and clients over RTRS and NBD.
//!
//! A driver runs in one thread. It polls the sockets and HCAs of a protocol engine, and passes
//! commands to disks.
//!
//! | module | holds |
//! |---|---|
//! | [`rtrs`] | an RNBD server and client over RTRS, on HCAs that one thread drives |
//! | [`nbd`] | an NBD server on sockets |
//! | [`disk`] | disks in memory and files, with io_uring or threads for file I/O |
//!
//! # Example
//! A disk in memory executes a write and a read:
//! ```
//! use ib_block::{Command, Errno, Operation};
//! use ib_hca::Memory;
//! use ib_storage::disk::{Disk, Job};
//!
//! let mut disk = Disk::in_memory(1 << 20)?;
//! let memory = Memory::zeroed(1024)?;
//! memory.write(0, &[0x2a; 512])?;
//! let jobs = [(1, Operation::Write, 0), (2, Operation::Read, 512)];
//! for (id, operation, offset) in jobs {
//!     let command = Command { operation, offset: 4096, length: 512, fua: false };
//!     disk.submit(Job { id, command, memory: memory.clone(), offset });
//!     disk.flush();
//!     assert_eq!(disk.poll(), Some((id, Errno::OK)));
//! }
//! assert_eq!(memory.to_vec(512, 512)?, [0x2a; 512]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod disk;
pub mod nbd;
pub mod rtrs;
