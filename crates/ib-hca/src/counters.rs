//! Counters of an HCA.

use std::fmt;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)+) => {
        /// Why a packet that came in had no effect.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Drop { $($(#[$doc])* $name,)+ }

        impl Drop {
            /// All reasons.
            pub const ALL: [Self; [$($text),+].len()] = [$(Self::$name),+];

            /// Returns the reason as a word.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }
        }
    };
}

reasons! {
    /// It is too short for its headers, or no multiple of four bytes.
    Length = "length",
    /// Its operation code is not known, or none of the queue pair's transport.
    Opcode = "opcode",
    /// Its transport version is not 0.
    Version = "version",
    /// No queue pair has its number.
    NoQp = "no_qp",
    /// The queue pair is in a state in which it takes none.
    State = "state",
    /// It does not come from where the queue pair is connected to.
    Source = "source",
    /// Its ICRC does not fit an identification that the peer uses.
    Icrc = "icrc",
    /// It is of another partition.
    PKey = "p_key",
    /// It has another key than the queue pair.
    QKey = "q_key",
    /// It has come before.
    Duplicate = "duplicate",
    /// Packets before it are missing.
    Psn = "psn",
    /// Nobody waits for such a response.
    Response = "response",
    /// It acknowledges in a way that is not known.
    Syndrome = "syndrome",
    /// There was no receive for a datagram or an unreliable message, or such a message was not legal.
    NoReceive = "no_receive",
    /// A datagram did not fit its receive, or its receive's memory.
    NoRoom = "no_room",
    /// No queue pair has joined the group.
    NoGroup = "no_group",
}

impl fmt::Display for Drop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Packets, bytes, retransmissions and errors that an HCA has counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that were sent, and their bytes from the BTH to the end of the pad.
    pub sent_packets: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Packets that came in.
    pub received_packets: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Packets that were sent again.
    pub retransmitted: u64,
    /// How often nothing came in time.
    pub timeouts: u64,
    /// NAKs for missing packets that were sent.
    pub sequence_naks_sent: u64,
    /// Those that came in.
    pub sequence_naks_received: u64,
    /// NAKs for want of a receive that were sent.
    pub rnr_naks_sent: u64,
    /// Those that came in.
    pub rnr_naks_received: u64,
    /// Other NAKs that were sent, each the end of a queue pair.
    pub naks_sent: u64,
    drops: [u64; Drop::ALL.len()],
    /// Why the last packet was dropped, since that was forgotten.
    last: Option<Drop>,
}

impl Counters {
    /// Counts a packet that has no effect.
    pub(crate) const fn drop(&mut self, why: Drop) {
        self.drops[why as usize] += 1;
        self.last = Some(why);
    }

    /// Forgets why the last packet was dropped.
    pub(crate) const fn forget_last(&mut self) {
        self.last = None;
    }

    /// Returns why a packet was dropped since that was forgotten.
    pub(crate) const fn last_dropped(&self) -> Option<Drop> {
        self.last
    }

    /// Returns how many packets had no effect for a reason.
    #[must_use]
    pub const fn dropped(&self, why: Drop) -> u64 {
        self.drops[why as usize]
    }
}
