//! RNBD: block devices over RTRS, both ends.
//!
//! A client sends its protocol version, opens devices by name and does I/O with the device numbers that it gets. A server
//! closes a session that has lost all of its paths, with all its open devices. The client then opens a new session.

pub mod client;
mod recovery;
pub mod remote;
pub mod server;
mod writers;

pub use client::{Client, ClientEvent, DeviceId, Kept, OpenError, OtherData, Outgoing, Size, Tag};
pub use remote::{Reads, Remote, RemoteConfig, RemoteEvent, WORTH_LENDING};
pub use server::{Answer, Export, ExportError, ExportId, Server, ServerCommand};

/// The version that both ends speak here.
pub const VERSION: u8 = 2;

/// The longest name of a device, in bytes: one less than the message has room for, as a zero ends it.
pub const LONGEST_NAME: usize = 254;
