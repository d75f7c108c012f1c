//! RNBD: block devices over RTRS, both ends.
//!
//! A client says which version it speaks, opens devices by name and does I/O with the numbers that it gets. A session that
//! has lost all of its paths is forgotten by the server with everything that was open, so a client begins again then.

pub mod client;
pub mod remote;
pub mod server;
mod writers;

pub use client::{Client, ClientEvent, DeviceId, Kept, OpenError, Outgoing, Tag};
pub use remote::{Reads, Remote, RemoteConfig, RemoteEvent, WORTH_LENDING};
pub use server::{Answer, Export, ExportError, ExportId, Server, ServerCommand};

/// The version that both ends speak here.
pub const VERSION: u8 = 2;

/// The longest name of a device, in bytes: one less than the message has room for, as a zero ends it.
pub const LONGEST_NAME: usize = 254;
