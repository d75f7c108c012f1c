//! Constants of the protocol. All numbers are big-endian.

/// Magic number with which the server's greeting begins.
pub const MAGIC: u64 = 0x4e42_444d_4147_4943;
/// Magic number with which options begin. In the greeting it also follows [`MAGIC`].
pub const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// Magic number with which replies to options begin.
pub const REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// Magic number with which requests begin.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Length in bytes of the header of a request, which precedes its data.
pub const HEADER: usize = 28;
/// Magic number with which simple replies begin.
pub const SIMPLE_MAGIC: u32 = 0x6744_6698;
/// Magic number with which the chunks of structured replies begin.
pub const STRUCTURED_MAGIC: u32 = 0x668e_33ef;

/// Flags that server and client send in the handshake.
pub mod handshake {
    /// Flag: the sender supports the fixed newstyle negotiation.
    pub const FIXED_NEWSTYLE: u16 = 1;
    /// Flag: the reply to [`EXPORT_NAME`](super::option::EXPORT_NAME) is not padded with 124 zeros.
    pub const NO_ZEROES: u16 = 2;
}

/// Options that a client sends in the handshake.
pub mod option {
    /// Chooses a device and ends the negotiation. If there is no such device, the server disconnects without a reply.
    pub const EXPORT_NAME: u32 = 1;
    /// Ends the connection.
    pub const ABORT: u32 = 2;
    /// Lists the devices.
    pub const LIST: u32 = 3;
    /// Queries information about a device.
    pub const INFO: u32 = 6;
    /// Queries information about a device, chooses it, and ends the negotiation.
    pub const GO: u32 = 7;
    /// Requests structured replies.
    pub const STRUCTURED_REPLY: u32 = 8;
    /// Lists the metadata contexts of a device.
    pub const LIST_META_CONTEXT: u32 = 9;
    /// Selects metadata contexts of a device.
    pub const SET_META_CONTEXT: u32 = 10;
}

/// Replies to options.
pub mod reply {
    /// Acknowledges an option, which is then complete.
    pub const ACK: u32 = 1;
    /// The name and description of a device.
    pub const SERVER: u32 = 2;
    /// Information about a device, see [`info`](super::info).
    pub const INFO: u32 = 3;
    /// The server does not support the option.
    pub const ERR_UNSUP: u32 = 1 << 31 | 1;
    /// The option is invalid.
    pub const ERR_INVALID: u32 = 1 << 31 | 3;
    /// There is no such device.
    pub const ERR_UNKNOWN: u32 = 1 << 31 | 6;
    /// The option is too long.
    pub const ERR_TOO_BIG: u32 = 1 << 31 | 9;
}

/// Types of information that a server can send about a device.
pub mod info {
    /// Size and flags of the device.
    pub const EXPORT: u16 = 0;
    /// Name of the device.
    pub const NAME: u16 = 1;
    /// Description of the device.
    pub const DESCRIPTION: u16 = 2;
    /// Minimum, preferred and maximum length of requests.
    pub const BLOCK_SIZE: u16 = 3;
}

/// Flags that describe a device.
pub mod flags {
    /// The flags are valid.
    pub const HAS_FLAGS: u16 = 1;
    /// The device is read-only.
    pub const READ_ONLY: u16 = 1 << 1;
    /// The device supports flushes.
    pub const SEND_FLUSH: u16 = 1 << 2;
    /// The device supports FUA.
    pub const SEND_FUA: u16 = 1 << 3;
    /// The device supports discards.
    pub const SEND_TRIM: u16 = 1 << 5;
    /// The device supports writing zeros without data.
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    /// The device supports `DF`: a client may request that the reply to a read has only one chunk.
    pub const SEND_DF: u16 = 1 << 7;
    /// A flush covers the completed writes of all connections.
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
}

/// Types of requests.
pub mod command {
    /// Read.
    pub const READ: u16 = 0;
    /// Write.
    pub const WRITE: u16 = 1;
    /// Disconnect.
    pub const DISC: u16 = 2;
    /// Flush the write cache.
    pub const FLUSH: u16 = 3;
    /// Discard.
    pub const TRIM: u16 = 4;
    /// Write zeros without data.
    pub const WRITE_ZEROES: u16 = 6;
}

/// Flags of requests.
pub mod command_flags {
    /// Flag of a request: complete it only after its data is on the medium.
    pub const FUA: u16 = 1;
    /// Flag of a request: when writing zeros, do not discard the range.
    pub const NO_HOLE: u16 = 1 << 1;
    /// Flag of a read: reply with only one chunk.
    pub const DF: u16 = 1 << 2;
}

/// Flags and types of the chunks of structured replies.
pub mod chunk {
    /// Flag of the last chunk of a reply.
    pub const DONE: u16 = 1;
    /// Type of a chunk without content.
    pub const NONE: u16 = 0;
    /// Type of a chunk that contains an offset and data.
    pub const OFFSET_DATA: u16 = 1;
    /// Type of a chunk that contains an error number and a message.
    pub const ERROR: u16 = 1 << 15 | 1;
}

/// Error numbers in replies.
pub mod error {
    /// The operation is not permitted.
    pub const EPERM: u32 = 1;
    /// I/O error.
    pub const EIO: u32 = 5;
    /// Out of memory.
    pub const ENOMEM: u32 = 12;
    /// The request is invalid.
    pub const EINVAL: u32 = 22;
    /// No space is left on the device, or a write exceeds the end of the device.
    pub const ENOSPC: u32 = 28;
    /// The operation is not supported.
    pub const ENOTSUP: u32 = 95;
    /// The server is shutting down.
    pub const ESHUTDOWN: u32 = 108;
}
