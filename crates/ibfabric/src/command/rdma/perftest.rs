//! Version 6.06 of the protocol of perftest's programs (`ib_write_bw -R` and others).
//!
//! A client makes a control connection to a port, over which both ends exchange their parameters. Then the
//! client makes the measured connections: one per queue pair, to the same port. The server listens for them only
//! after the fifth step, so the client retries rejected requests. In each step the client SENDs a message over
//! the control connection, and the server replies with a message of the same length:
//!
//! | step | bytes | contents |
//! |---|---|---|
//! | version | 16 | text, and zeros |
//! | cycle buffer | 4 | size in bytes of the memory that small messages cycle through; both ends use the larger size |
//! | cache line | 4 | size in bytes; both ends use the larger size |
//! | MTU | 2 | code of the path MTU as a digit, and a zero; ignored for connections of `rdma_cm` |
//! | meeting | 56 | zeros; sent before and after the client makes the measured connections |
//! | keys | 56 | [`Keys`] of one queue pair; sent twice per queue pair, and once or twice more for queue pair 0 |
//! | end, close | 56 | ibfabric sends zeros, and ignores the received bytes |
//! | report | 5 × 8 | size, iterations, peak and average in MiB/s, messages in millions per second |
//!
//! All numbers are big-endian; rates are IEEE doubles. No message contains the program's name. The message size and
//! the number of messages appear only in the report, after the measurement. So perftest's programs take all three
//! from their command lines.
//!
//! | file | holds |
//! |---|---|
//! | `wire.rs` | formats of the messages |
//! | `client.rs` | the client |
//! | `sessions.rs` | the server |

use crate::cli::rdma::{OpArg, PerftestArg};
use wire::{Keys, VERSION_LENGTH};

pub(super) mod client;
pub(super) mod sessions;
mod wire;

/// A step of the protocol: a message of the client and the server's reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Version,
    CycleBuffer,
    CacheLine,
    Mtu,
    /// The client is about to make the measured connections.
    Meet,
    /// The measured connections are established.
    Met,
    /// The keys of the queue pair with this index.
    Keys(usize),
    /// The measurement is complete.
    End,
    /// The report message with this index (0 to 4), which contains one field of `Rates`.
    Report(usize),
    /// The exchange that ends the protocol.
    Close,
}

/// The opening steps: those before the client makes the measured connections.
const OPENING: [Step; 5] =
    [Step::Version, Step::CycleBuffer, Step::CacheLine, Step::Mtu, Step::Meet];

impl Step {
    /// Returns the size of the step's messages in bytes.
    const fn length(self) -> usize {
        match self {
            Self::Version => VERSION_LENGTH,
            Self::CycleBuffer | Self::CacheLine => 4,
            Self::Mtu => 2,
            Self::Report(_) => 8,
            Self::Meet | Self::Met | Self::Keys(_) | Self::End | Self::Close => Keys::LENGTH,
        }
    }

    /// Returns the name of the step for error messages.
    const fn name(self) -> &'static str {
        match self {
            Self::Version => "the version",
            Self::CycleBuffer => "the cycle buffer",
            Self::CacheLine => "the cache line",
            Self::Mtu => "the MTU",
            Self::Meet | Self::Met => "the meeting",
            Self::Keys(_) => "the keys",
            Self::End => "the end",
            Self::Report(_) => "the report",
            Self::Close => "the close",
        }
    }
}

impl PerftestArg {
    /// Returns the perftest program that measures an operation, or `None` if no supported program does.
    pub(super) const fn of(op: OpArg, is_latency: bool) -> Option<Self> {
        Some(match (op, is_latency) {
            (OpArg::Write, false) => Self::WriteBw,
            (OpArg::Read, false) => Self::ReadBw,
            (OpArg::Send, false) => Self::SendBw,
            (OpArg::Write, true) => Self::WriteLat,
            (OpArg::Read, true) => Self::ReadLat,
            (OpArg::Send, true) => Self::SendLat,
            (OpArg::WriteImm | OpArg::FetchAdd | OpArg::CompareSwap, _) => return None,
        })
    }

    /// Returns the name of the program.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::WriteBw => "ib_write_bw",
            Self::ReadBw => "ib_read_bw",
            Self::SendBw => "ib_send_bw",
            Self::WriteLat => "ib_write_lat",
            Self::ReadLat => "ib_read_lat",
            Self::SendLat => "ib_send_lat",
        }
    }

    const fn is_latency(self) -> bool {
        matches!(self, Self::WriteLat | Self::ReadLat | Self::SendLat)
    }

    const fn sends(self) -> bool {
        matches!(self, Self::SendBw | Self::SendLat)
    }

    /// Returns the steps between `Met` and the measurement, in order: exchanges of keys.
    fn meeting(self, qps: usize) -> Vec<Step> {
        let all = || (0..qps).map(Step::Keys);
        let one = || std::iter::once(Step::Keys(0));
        match self {
            Self::WriteBw | Self::ReadBw => all().chain(all()).chain(one()).collect(),
            Self::SendBw | Self::SendLat => all().chain(one()).chain(all()).chain(one()).collect(),
            Self::WriteLat | Self::ReadLat => {
                one().chain(all()).chain(all()).chain(one()).collect()
            }
        }
    }

    /// Returns the steps of the protocol that follow the measurement, in order.
    fn parting(self) -> Vec<Step> {
        match self {
            Self::WriteBw | Self::ReadBw => {
                let reports = (0..5).map(Step::Report);
                [Step::End].into_iter().chain(reports).chain([Step::Close]).collect()
            }
            Self::SendBw | Self::SendLat | Self::ReadLat => vec![Step::Close],
            Self::WriteLat => Vec::new(),
        }
    }
}
