//! RNBD client and server without I/O: block devices over RTRS.
//!
//! A client sends its protocol version, opens devices by name, and submits commands with the device numbers of the
//! server. If a session loses all its paths, the server closes the session and its open devices. The client then opens
//! a new session.
//!
//! | module | holds |
//! |---|---|
//! | [`remote`] | [`Remote`]: a session with its paths, the client, and commands of any length |
//! | [`client`] | [`Client`]: opens devices of a server, and reopens them after a loss of the session |
//! | [`server`] | [`Server`]: exported devices, and the commands of clients |
//! | `recovery` | rules for lost messages: retransmission or failure |
//! | `writers` | detection of writes by other clients |
//!
//! # Example
//! In this example, client and server exchange messages in memory. In real use, RTRS requests carry the messages.
//! ```
//! use ib_block::{Command, Geometry, Operation, Origin};
//! use ib_rnbd::{Client, ClientEvent, Export, Response, Server};
//! use ib_rtrs::{Errno, Outcome};
//! use ib_wire::rnbd::AccessMode;
//!
//! let mut server = Server::new(1);
//! server.offer(Export {
//!     name: "disk0".to_owned(),
//!     geometry: Geometry::new(1 << 20, 512),
//!     origin: Origin { medium: 1, cache: 1 },
//!     writers: None,
//! })?;
//! let mut client = Client::new(2);
//! let disk = client.open("disk0", AccessMode::READ_WRITE)?;
//! let write = Command { operation: Operation::Write, offset: 4096, length: 512, fua: false };
//! client.submit(disk, 7, write);
//! client.connected();
//!
//! let session = 0;
//! while let Some(message) = client.poll_transmit() {
//!     let data = (message.direction, message.data_length);
//!     let (errno, data) = match server.handle(session, data, message.header()) {
//!         Response::Immediate(errno, data) => (errno, data),
//!         Response::Execute(command) => {
//!             assert_eq!(command.command, write);
//!             server.done(&command);
//!             (Errno::OK, Vec::new())
//!         }
//!     };
//!     client.handle(message.tag, Some(Outcome::Answered(errno)), &data);
//! }
//! let events: Vec<_> = std::iter::from_fn(|| client.poll_event()).collect();
//! assert!(matches!(events[0], ClientEvent::Opened(id, ..) if id == disk));
//! assert_eq!(events[1], ClientEvent::Done(7, Errno::OK));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod client;
mod recovery;
pub mod remote;
pub mod server;
mod writers;

pub use client::{Client, ClientEvent, DeviceId, Kept, OpenError, OtherData, Outgoing, Size, Tag};
pub use remote::{MIN_LENT, ReadMode, Remote, RemoteConfig, RemoteEvent};
pub use server::{Export, ExportError, ExportId, Response, Server, ServerCommand};

/// The RNBD protocol version of this client and server.
pub const VERSION: u8 = 2;

/// Maximum length of a device name in bytes. The field in the message has 255 bytes, and a zero terminates the name.
pub const MAX_NAME: usize = 254;
