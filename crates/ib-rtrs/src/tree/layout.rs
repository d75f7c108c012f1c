//! The files of each directory, with the names and formats of IBTRS or Linux.

use crate::client::Policy;
use crate::stats::{ClientPathStats, ServerPathStats};

/// The role of a file in the tree. The name of the file depends on the [`Layout`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum File {
    // Files of a session.
    AddPath,
    MaxReconnectAttempts,
    Policy,
    // Files of a path.
    State,
    Reconnect,
    Disconnect,
    RemovePath,
    HcaName,
    HcaPort,
    SourceAddress,
    DestinationAddress,
    HeartbeatLatency,
    // Statistics of a path.
    ResetAll,
    SgEntries,
    CpuMigration,
    MigratedFrom,
    MigratedTo,
    Reconnects,
    Latencies,
    Completions,
    Traffic,
}

impl File {
    /// Returns true if the file can be written.
    pub(super) const fn is_writable(self) -> bool {
        match self {
            Self::State
            | Self::HcaName
            | Self::HcaPort
            | Self::SourceAddress
            | Self::DestinationAddress
            | Self::HeartbeatLatency => false,
            Self::AddPath
            | Self::MaxReconnectAttempts
            | Self::Policy
            | Self::Reconnect
            | Self::Disconnect
            | Self::RemovePath
            | Self::ResetAll
            | Self::SgEntries
            | Self::CpuMigration
            | Self::MigratedFrom
            | Self::MigratedTo
            | Self::Reconnects
            | Self::Latencies
            | Self::Completions
            | Self::Traffic => true,
        }
    }
}

/// The files of a directory: the name and the role of each file.
pub(super) type Files = &'static [(&'static str, File)];

/// The files in the directory of a server's path. IBTRS and Linux use the same names.
pub(super) const SERVER_PATH: Files = &[
    ("disconnect", File::Disconnect),
    ("hca_name", File::HcaName),
    ("hca_port", File::HcaPort),
    ("src_addr", File::SourceAddress),
    ("dst_addr", File::DestinationAddress),
];

/// The files of the client or of the server, with the names of IBTRS or Linux.
#[derive(Debug)]
pub(super) struct Layout {
    /// The name of the root directory.
    pub(super) root: &'static str,
    /// The files in the directory of a session.
    pub(super) session: Files,
    /// The files in the directory of a path.
    pub(super) path: Files,
    /// The files in the subdirectory `stats` of a path's directory.
    pub(super) stats: Files,
    /// The formats of file contents, as far as IBTRS and Linux differ in them.
    pub(super) formats: Formats,
}

/// Functions that format file contents, and a value that is written to a file, where IBTRS and Linux differ.
#[derive(Debug)]
pub(super) struct Formats {
    /// Formats the policy that selects paths.
    pub(super) policy: fn(Policy) -> String,
    /// The value that resets the statistics if it is written to `reset_all`.
    pub(super) reset: &'static str,
    /// Formats statistics of a client's path. The last argument is the number of requests in flight.
    pub(super) client: fn(File, &ClientPathStats, u32) -> String,
    /// Formats statistics of a server's path. The last argument is the number of outstanding requests.
    pub(super) server: fn(File, &ServerPathStats, u32) -> String,
}

/// The name of the directory of a path's statistics.
pub(super) const STATS: &str = "stats";

/// The name of the directory of a session's paths.
pub(super) const PATHS: &str = "paths";
