//! Counters of an HCA.

use std::fmt;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)+) => {
        /// Reason why a received packet is dropped.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum DropReason { $($(#[$doc])* $name,)+ }

        impl DropReason {
            /// All reasons.
            pub const ALL: [Self; [$($text),+].len()] = [$(Self::$name),+];

            /// Returns the name of the reason in metrics and captures, such as `no_qp`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }
        }
    };
}

reasons! {
    /// The packet is too short for its headers, or its size is not a multiple of 4 bytes.
    Length = "length",
    /// The opcode is unknown, or is not an opcode of the queue pair's transport.
    Opcode = "opcode",
    /// The transport version is not 0.
    Version = "version",
    /// No queue pair has the destination number.
    NoQp = "no_qp",
    /// The queue pair does not accept the packet in its current state.
    State = "state",
    /// The packet does not come from the port that the queue pair is connected to.
    Source = "source",
    /// The ICRC of the packet could be checked only in part ([`Route::is_weak`](ib_link::Route::is_weak)), but the
    /// queue pair's own route is not weak.
    Icrc = "icrc",
    /// The P_Key does not match that of the queue pair.
    PKey = "p_key",
    /// The Q_Key differs from that of the queue pair.
    QKey = "q_key",
    /// The packet is a duplicate.
    Duplicate = "duplicate",
    /// The PSN is not the expected one: preceding packets are missing.
    Psn = "psn",
    /// The packet is a response, but no outstanding request expects it.
    Response = "response",
    /// The AETH syndrome is reserved or unknown.
    Syndrome = "syndrome",
    /// No receive is posted for a datagram or UC message, or the UC message is invalid.
    NoReceive = "no_receive",
    /// The datagram is larger than the buffer of the receive, or a key of the receive does not allow the write.
    NoRoom = "no_room",
    /// No queue pair is attached to the multicast group.
    NoGroup = "no_group",
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Counters of an HCA: packets, bytes, retransmissions, NAKs and drops.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Sent packets.
    pub sent_packets: u64,
    /// Sent bytes, from the BTH to the end of the pad of each packet.
    pub sent_bytes: u64,
    /// Received packets.
    pub received_packets: u64,
    /// Received bytes, from the BTH to the end of the pad of each packet.
    pub received_bytes: u64,
    /// Retransmitted packets.
    pub retransmitted: u64,
    /// Expired ACK timeouts.
    pub timeouts: u64,
    /// Sent NAKs for PSN sequence errors.
    pub sequence_naks_sent: u64,
    /// Received NAKs for PSN sequence errors.
    pub sequence_naks_received: u64,
    /// Sent RNR NAKs.
    pub rnr_naks_sent: u64,
    /// Received RNR NAKs.
    pub rnr_naks_received: u64,
    /// Sent NAKs other than RNR NAKs and NAKs for PSN sequence errors. Each of them has failed its queue pair.
    pub naks_sent: u64,
    drops: [u64; DropReason::ALL.len()],
    /// Reason of the last drop since [`Self::forget_last`].
    last: Option<DropReason>,
}

impl Counters {
    /// Counts a dropped packet.
    pub(crate) const fn drop(&mut self, reason: DropReason) {
        self.drops[reason as usize] += 1;
        self.last = Some(reason);
    }

    /// Clears the reason of the last drop.
    pub(crate) const fn forget_last(&mut self) {
        self.last = None;
    }

    /// Returns the reason of the last drop since [`Self::forget_last`].
    pub(crate) const fn last_dropped(&self) -> Option<DropReason> {
        self.last
    }

    /// Returns the number of packets dropped for the given reason.
    #[must_use]
    pub const fn dropped(&self, reason: DropReason) -> u64 {
        self.drops[reason as usize]
    }
}
