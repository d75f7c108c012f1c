//! Numbers of the protocol. All are sent with their most significant byte first.

/// What a server says first.
pub const MAGIC: u64 = 0x4e42_444d_4147_4943;
/// What stands before options, and behind [`MAGIC`].
pub const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// What stands before replies to options.
pub const REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// What stands before requests.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Length of a request before its data, in bytes.
pub const HEADER: usize = 28;
/// What stands before simple replies.
pub const SIMPLE_MAGIC: u32 = 0x6744_6698;
/// What stands before the chunks of structured replies.
pub const STRUCTURED_MAGIC: u32 = 0x668e_33ef;

/// Flags of the server and of the client during negotiation.
pub mod handshake {
    /// Options can be negotiated.
    pub const FIXED_NEWSTYLE: u16 = 1;
    /// No zeros stand behind the reply to the oldest way of choosing a device.
    pub const NO_ZEROES: u16 = 2;
}

/// Options.
pub mod option {
    /// Chooses a device, and ends the negotiation.
    pub const EXPORT_NAME: u32 = 1;
    /// Ends the connection.
    pub const ABORT: u32 = 2;
    /// Asks which devices there are.
    pub const LIST: u32 = 3;
    /// Asks what a device is like.
    pub const INFO: u32 = 6;
    /// Chooses a device, is told what it is like, and ends the negotiation.
    pub const GO: u32 = 7;
    /// Wants structured replies.
    pub const STRUCTURED_REPLY: u32 = 8;
    /// Asks which kinds of metadata there are.
    pub const LIST_META_CONTEXT: u32 = 9;
    /// Chooses kinds of metadata.
    pub const SET_META_CONTEXT: u32 = 10;
}

/// Replies to options.
pub mod reply {
    /// It is done.
    pub const ACK: u32 = 1;
    /// A device.
    pub const SERVER: u32 = 2;
    /// Something about a device.
    pub const INFO: u32 = 3;
    /// The server does not know the option.
    pub const ERR_UNSUP: u32 = 1 << 31 | 1;
    /// The option makes no sense.
    pub const ERR_INVALID: u32 = 1 << 31 | 3;
    /// There is no such device.
    pub const ERR_UNKNOWN: u32 = 1 << 31 | 6;
    /// The server is about to end.
    pub const ERR_SHUTDOWN: u32 = 1 << 31 | 7;
    /// The option is too long.
    pub const ERR_TOO_BIG: u32 = 1 << 31 | 9;
}

/// What can be told about a device.
pub mod info {
    /// Its size and flags.
    pub const EXPORT: u16 = 0;
    /// Its name.
    pub const NAME: u16 = 1;
    /// What it is for.
    pub const DESCRIPTION: u16 = 2;
    /// How long requests may be.
    pub const BLOCK_SIZE: u16 = 3;
}

/// Flags of a device.
pub mod flags {
    /// There are flags.
    pub const HAS_FLAGS: u16 = 1;
    /// It can only be read.
    pub const READ_ONLY: u16 = 1 << 1;
    /// It knows flushes.
    pub const SEND_FLUSH: u16 = 1 << 2;
    /// It knows writes that reach the medium at once.
    pub const SEND_FUA: u16 = 1 << 3;
    /// It can forget.
    pub const SEND_TRIM: u16 = 1 << 5;
    /// It can write zeros.
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    /// Reads may be wanted in one piece.
    pub const SEND_DF: u16 = 1 << 7;
    /// What one connection has flushed all others see.
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
}

/// Requests.
pub mod command {
    /// Read.
    pub const READ: u16 = 0;
    /// Write.
    pub const WRITE: u16 = 1;
    /// End the connection.
    pub const DISC: u16 = 2;
    /// Write what is cached.
    pub const FLUSH: u16 = 3;
    /// Forget.
    pub const TRIM: u16 = 4;
    /// Write zeros.
    pub const WRITE_ZEROES: u16 = 6;
}

/// Flags of requests.
pub mod command_flags {
    /// It has to have reached the medium.
    pub const FUA: u16 = 1;
    /// Zeros have to be stored as such.
    pub const NO_HOLE: u16 = 1 << 1;
    /// A read in one piece.
    pub const DF: u16 = 1 << 2;
}

/// The kinds of chunks of structured replies.
pub mod chunk {
    /// It is the last one.
    pub const DONE: u16 = 1;
    /// Nothing.
    pub const NONE: u16 = 0;
    /// Data with its offset.
    pub const OFFSET_DATA: u16 = 1;
    /// An error.
    pub const ERROR: u16 = 1 << 15 | 1;
}

/// Errors that replies tell.
pub mod error {
    /// Not permitted.
    pub const EPERM: u32 = 1;
    /// Input or output failed.
    pub const EIO: u32 = 5;
    /// No memory.
    pub const ENOMEM: u32 = 12;
    /// It makes no sense.
    pub const EINVAL: u32 = 22;
    /// No room.
    pub const ENOSPC: u32 = 28;
    /// It is not done here.
    pub const ENOTSUP: u32 = 95;
    /// The server is about to end.
    pub const ESHUTDOWN: u32 = 108;
}
