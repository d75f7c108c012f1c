//! What a [`RoceSocket`](super::RoceSocket) counts.

use std::collections::BTreeMap;
use std::io;

/// What was sent since the socket was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoceSendCounters {
    /// The packets that the system took.
    pub packets: u64,
    /// Their bytes from the BTH to the end of the pad.
    pub bytes: u64,
    /// The datagrams that they were handed over in; several packets may be one.
    pub batches: u64,
    /// How often the system took nothing since its buffers were full (`EAGAIN`, `ENOBUFS`). Nothing
    /// is lost by that.
    pub full: u64,
    /// The packets that are lost since the system refused them, by its number of the error, such as
    /// `EMSGSIZE` or `EHOSTUNREACH`.
    pub errors: ErrorCounters,
}

/// What has arrived since the socket was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoceReceiveCounters {
    /// The packets that were handed out.
    pub packets: u64,
    /// Their bytes from the BTH to the end of the pad.
    pub bytes: u64,
    /// The datagrams that the system told of; several packets may be one.
    pub batches: u64,
    /// The packets whose ICRC is wrong, which are dropped.
    pub bad_icrc: u64,
    /// The packets that are no multiple of four bytes, or shorter than a BTH and an ICRC, or longer
    /// than [`MAX_PACKET`](super::MAX_PACKET) and an ICRC, which are dropped.
    pub malformed: u64,
    /// The IPv4 packets with a UDP checksum of zero, which are dropped unless
    /// [`RoceOptions::allow_zero_checksum`](super::RoceOptions::allow_zero_checksum) is set.
    pub zero_checksum: u64,
    /// The datagrams that the buffer was too short for, which are dropped.
    pub truncated: u64,
    /// Those of `packets` with [`IcrcCheck::ConsistentWithSomeId`](super::IcrcCheck).
    pub unverifiable: u64,
    /// The datagrams that the system dropped since nobody took them in time.
    pub overflows: u64,
    /// What else the system told, by its number of the error.
    pub errors: ErrorCounters,
}

/// What both halves of a socket have counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoceCounters {
    /// What was sent.
    pub sent: RoceSendCounters,
    /// What has arrived.
    pub received: RoceReceiveCounters,
}

/// Numbers by the system's number of an error (`errno`), in the order of these.
pub type ErrorCounters = BTreeMap<i32, u64>;

/// Counts an error of the system so many times.
pub(super) fn count(counters: &mut ErrorCounters, error: &io::Error, times: u64) {
    *counters.entry(error.raw_os_error().unwrap_or_default()).or_default() += times;
}
