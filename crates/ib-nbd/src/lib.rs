//! The NBD server protocol without I/O. It provides block devices over a byte stream.
//!
//! The crate implements the NBD protocol (NetworkBlockDevice/nbd, `doc/proto.md`) with fixed newstyle negotiation,
//! simple replies and structured replies. A [`Session`] serves one connection. The owner of the session reads and
//! writes the bytes of the connection, and executes the requests.
//!
//! | module | holds |
//! |---|---|
//! | `session` | [`Session`]: the state of a connection |
//! | `negotiation` | the handshake: options of the client, until it has chosen a device |
//! | `transmission` | requests and their replies |
//! | `buffers` | buffers of received bytes, and of bytes to send |
//! | [`wire`] | constants of the protocol |
//!
//! # Example
//! A client chooses a device by its name and then reads from it:
//! ```
//! use ib_block::{Errno, Geometry, Operation};
//! use ib_nbd::wire::{self, command, option};
//! use ib_nbd::{Export, Session};
//!
//! let export = Export {
//!     name: "disk0".to_owned(),
//!     description: String::new(),
//!     geometry: Geometry::new(1 << 20, 512),
//!     preferred: 4096,
//! };
//! let mut session = Session::new([export].into());
//!
//! let mut bytes = 1_u32.to_be_bytes().to_vec(); // flags: fixed newstyle
//! bytes.extend(wire::OPTION_MAGIC.to_be_bytes());
//! bytes.extend(option::EXPORT_NAME.to_be_bytes());
//! bytes.extend(5_u32.to_be_bytes());
//! bytes.extend(b"disk0");
//! bytes.extend(wire::REQUEST_MAGIC.to_be_bytes());
//! bytes.extend([0, 0]); // flags
//! bytes.extend(command::READ.to_be_bytes());
//! bytes.extend(7_u64.to_be_bytes()); // cookie
//! bytes.extend(4096_u64.to_be_bytes()); // offset
//! bytes.extend(512_u32.to_be_bytes()); // length
//! let room = session.room().expect("a new session accepts input");
//! room[..bytes.len()].copy_from_slice(&bytes);
//! session.handle(bytes.len());
//!
//! let request = session.poll_request().expect("the request is complete");
//! assert_eq!((request.command.operation, request.command.offset), (Operation::Read, 4096));
//! let token = request.token;
//! session.complete(token, Errno::OK, vec![0x2a; 512]);
//! let unsent: usize = session.output().map(|slice| slice.len()).sum();
//! assert_eq!(unsent, 18 + 134 + 16 + 512); // greeting, device, reply header, data
//! ```

mod buffers;
mod negotiation;
mod session;
mod transmission;
pub mod wire;

pub use session::{Export, NbdError, NbdRequest, RequestToken, Session};
