//! Counters of a [`RoceSocket`](super::RoceSocket).

use std::collections::BTreeMap;
use std::io;

/// Counters of sent packets since the socket was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoceSendCounters {
    /// Packets accepted by the system.
    pub packets: u64,
    /// Bytes of these packets, from the BTH to the end of the pad.
    pub bytes: u64,
    /// Datagrams passed to the system. A datagram may contain several packets (GSO).
    pub batches: u64,
    /// Calls that failed because the system's buffers were full (`EAGAIN`, `ENOBUFS`). The packets are sent later.
    pub full: u64,
    /// Packets lost because the system rejected them, by `errno`, such as `EMSGSIZE` or `EHOSTUNREACH`.
    pub errors: ErrorCounters,
}

/// Counters of received packets since the socket was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoceReceiveCounters {
    /// Packets returned by [`RoceReceiver::receive`](super::RoceReceiver::receive).
    pub packets: u64,
    /// Bytes of these packets, from the BTH to the end of the pad.
    pub bytes: u64,
    /// Datagrams received from the system. A datagram may contain several packets (GRO).
    pub batches: u64,
    /// Packets dropped because of a wrong ICRC.
    pub bad_icrc: u64,
    /// Packets dropped because of their size: not a multiple of 4 bytes, shorter than a BTH and an ICRC, or longer than
    /// [`MAX_PACKET`](super::MAX_PACKET) and an ICRC.
    pub malformed: u64,
    /// IPv4 packets dropped because of a UDP checksum of zero, unless
    /// [`RoceOptions::allow_zero_checksum`](super::RoceOptions::allow_zero_checksum) is set.
    pub zero_checksum: u64,
    /// Datagrams dropped because they exceed the buffer.
    pub truncated: u64,
    /// Packets, among `packets`, with [`IcrcCheck::ConsistentWithSomeId`](super::IcrcCheck).
    pub unverifiable: u64,
    /// Datagrams dropped by the system because the socket's receive buffer was full.
    pub overflows: u64,
    /// Errors of the system, by `errno`, such as ICMP errors of sent packets.
    pub errors: ErrorCounters,
}

/// Counters of both halves of a socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoceCounters {
    /// Sent packets.
    pub sent: RoceSendCounters,
    /// Received packets.
    pub received: RoceReceiveCounters,
}

/// Counters of errors by `errno`.
pub type ErrorCounters = BTreeMap<i32, u64>;

/// Adds `times` to the counter of an error.
pub(super) fn count(counters: &mut ErrorCounters, error: &io::Error, times: u64) {
    *counters.entry(error.raw_os_error().unwrap_or_default()).or_default() += times;
}
