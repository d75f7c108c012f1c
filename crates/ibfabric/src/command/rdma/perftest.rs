//! Version 6.06 of the protocol of perftest's programs (`ib_write_bw -R` and others).
//!
//! A client makes a control connection to a port, over which both ends exchange their parameters. Then the
//! client makes one connection to the same port per queue pair. The server listens for these connections only
//! after the fifth step, so the client retries rejected requests. In each step the client SENDs a message, and
//! the server replies with a message of the same length:
//!
//! | step | bytes | contents |
//! |---|---|---|
//! | version | 16 | text, and zeros |
//! | cycle buffer | 4 | size in bytes of the memory that small messages cycle through; both ends use the larger size |
//! | cache line | 4 | size in bytes; both ends use the larger size |
//! | MTU | 2 | code of the path MTU as a digit, and a zero; ignored for connections of `rdma_cm` |
//! | meeting | 56 | zeros; sent before and after the connections are made |
//! | keys | 56 | [`Keys`] of each queue pair in two rounds; in addition, those of queue pair 0 once or twice |
//! | end, close | 56 | zeros here; received contents are ignored |
//! | report | 5 × 8 | size, iterations, peak and average in MiB/s, messages in millions per second |
//!
//! All numbers are big-endian; rates are IEEE doubles. The messages do not contain the program's name,
//! the message size or the number of messages: both ends know these from their command lines.
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
    /// The client is about to make the connections to measure.
    Meet,
    /// The connections to measure are established.
    Met,
    /// The keys of the queue pair with this index.
    Keys(usize),
    /// The measurement is complete.
    End,
    /// One of the five numbers of the result.
    Report(usize),
    /// The exchange that ends the protocol.
    Close,
}

/// The steps that precede the connections to measure.
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
    /// Returns the program that measures an operation; `None` if it is not supported.
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

    /// Returns the steps after the connections are made and before the measurement begins.
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
