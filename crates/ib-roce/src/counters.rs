//! Counters of a [`RoceSocket`](super::RoceSocket).

use std::collections::BTreeMap;
use std::io;

/// Counters of sent packets since the socket was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoceSendCounters {
    /// Packets that the system has accepted.
    pub packets: u64,
    /// Bytes of the accepted packets, from the BTH to the end of the pad.
    pub bytes: u64,
    /// Datagrams that the system has accepted. With GSO, a datagram can contain several packets.
    pub batches: u64,
    /// System calls that failed because the system's buffers were full (`EAGAIN`, `ENOBUFS`). Their
    /// packets are sent later.
    pub full: u64,
    /// Packets that were lost because the system rejected them, by `errno`, such as `EMSGSIZE` or
    /// `EHOSTUNREACH`.
    pub errors: ErrorCounters,
}

/// Counters of received packets since the socket was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoceReceiveCounters {
    /// Packets that [`RoceReceiver::receive`](super::RoceReceiver::receive) has returned.
    pub packets: u64,
    /// Bytes of the packets that `packets` counts, from the BTH to the end of the pad.
    pub bytes: u64,
    /// Datagrams received from the system. With GRO, a datagram can contain several packets.
    pub batches: u64,
    /// Packets dropped because of a wrong ICRC.
    pub bad_icrc: u64,
    /// Packets dropped because their size is not a multiple of 4 bytes, less than that of a BTH and
    /// an ICRC, or more than [`MAX_PACKET`](super::MAX_PACKET) and an ICRC.
    pub malformed: u64,
    /// IPv4 packets dropped because their UDP checksum is zero. They are accepted if
    /// [`RoceOptions::allow_zero_checksum`](super::RoceOptions::allow_zero_checksum) is set.
    pub zero_checksum: u64,
    /// Datagrams dropped because they exceed the receiver's buffer for a datagram.
    pub truncated: u64,
    /// Returned packets whose ICRC check gave [`IcrcCheck::ConsistentWithSomeId`](super::IcrcCheck).
    /// `packets` counts them too.
    pub unverifiable: u64,
    /// Datagrams that the system has dropped because the socket's receive buffer was full.
    pub overflows: u64,
    /// Errors that the system has reported, by `errno`, such as those from ICMP errors for sent
    /// packets.
    pub errors: ErrorCounters,
}

/// Counters of the sender and the receiver of a socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoceCounters {
    /// Sent packets.
    pub sent: RoceSendCounters,
    /// Received packets.
    pub received: RoceReceiveCounters,
}

/// Number of errors, by their `errno`.
pub type ErrorCounters = BTreeMap<i32, u64>;

/// Adds `times` to the counter of the error's `errno`.
pub(super) fn count(counters: &mut ErrorCounters, error: &io::Error, times: u64) {
    *counters.entry(error.raw_os_error().unwrap_or_default()).or_default() += times;
}
