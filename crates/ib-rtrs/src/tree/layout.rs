//! Which files there are.

use crate::client::Policy;
use crate::stats::{ClientPathStats, ServerPathStats};

/// A file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum File {
    // Of a session.
    AddPath,
    MaxReconnectAttempts,
    Policy,
    // Of a path.
    State,
    Reconnect,
    Disconnect,
    RemovePath,
    HcaName,
    HcaPort,
    SourceAddress,
    DestinationAddress,
    HeartbeatLatency,
    // Of its statistics.
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
    /// Returns whether anything may be written to it.
    pub(super) const fn is_writable(self) -> bool {
        !matches!(
            self,
            Self::State
                | Self::HcaName
                | Self::HcaPort
                | Self::SourceAddress
                | Self::DestinationAddress
                | Self::HeartbeatLatency
        )
    }
}

/// The files of a directory.
pub(super) type Files = &'static [(&'static str, File)];

/// The files of a server's path, with the same names everywhere.
pub(super) const SERVER_PATH: Files = &[
    ("disconnect", File::Disconnect),
    ("hca_name", File::HcaName),
    ("hca_port", File::HcaPort),
    ("src_addr", File::SourceAddress),
    ("dst_addr", File::DestinationAddress),
];

/// The files of one side under one set of names.
#[derive(Debug)]
pub(super) struct Layout {
    /// What all of them are below.
    pub(super) root: &'static str,
    /// Those of a session.
    pub(super) session: Files,
    /// Those of a path.
    pub(super) path: Files,
    /// Those in the directory `stats` of a path.
    pub(super) stats: Files,
    /// How they read.
    pub(super) formats: Formats,
}

/// How files read that do not read the same everywhere.
#[derive(Debug)]
pub(super) struct Formats {
    /// The policy.
    pub(super) policy: fn(Policy) -> String,
    /// What is written to `reset_all`.
    pub(super) reset: &'static str,
    /// Statistics of a client's path, of which so many requests are under way.
    pub(super) client: fn(File, &ClientPathStats, u32) -> String,
    /// Statistics of a server's path, of which so many requests are not answered.
    pub(super) server: fn(File, &ServerPathStats, u32) -> String,
}

/// Returns the directory that a path's statistics are in.
pub(super) const STATS: &str = "stats";

/// Returns the directory that a session's paths are in.
pub(super) const PATHS: &str = "paths";
