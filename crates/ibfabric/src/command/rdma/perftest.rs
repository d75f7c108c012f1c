//! The protocol of perftest's programs (`ib_write_bw -R` and others) of version 6.06.
//!
//! A client makes one connection to a port over which both ends tell each other what they have, and then as many
//! connections to the same port as there are queue pairs to measure. The server listens for those only after the
//! fifth step, so that a client asks again until it does. A step is a SEND of the client that the server
//! answers by one of the same length:
//!
//! | step | bytes | holds |
//! |---|---|---|
//! | version | 16 | text, and zeros |
//! | cycle buffer | 4 | the memory over which small messages wander in bytes; the larger one counts |
//! | cache line | 4 | its size in bytes; the larger one counts |
//! | MTU | 2 | the code of the path MTU as a digit, and a zero; of no meaning with connections of `rdma_cm` |
//! | meeting | 56 | zeros; then the connections are made, and this is said once more |
//! | keys | 56 | [`Keys`]; of each queue pair, and then again, with and without one more before, between or after |
//! | end, close | 56 | what was said before |
//! | report | 5 × 8 | size, iterations, peak and average in MiB/s, messages in millions per second |
//!
//! All numbers are big-endian; rates are IEEE doubles. Nobody says which program it is, how long messages are or
//! how many: both ends know from their command lines.
//!
//! | file | holds |
//! |---|---|
//! | `wire.rs` | what the steps hold |
//! | `client.rs` | the client's side |
//! | `sessions.rs` | the server's side |

use crate::cli::rdma::{OpArg, PerftestArg};
use wire::{Keys, VERSION_LENGTH};

pub(super) mod client;
pub(super) mod sessions;
mod wire;

/// Something that a client says and a server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Version,
    CycleBuffer,
    CacheLine,
    Mtu,
    /// The client is about to make the connections.
    Meet,
    /// The client has made them.
    Met,
    /// The keys of a queue pair.
    Keys(usize),
    /// The measurement is over.
    End,
    /// One of five numbers.
    Report(usize),
    /// There is nothing more to say.
    Close,
}

/// The steps before the connections that are measured.
const OPENING: [Step; 5] =
    [Step::Version, Step::CycleBuffer, Step::CacheLine, Step::Mtu, Step::Meet];

impl Step {
    /// Returns the length of its messages.
    const fn length(self) -> usize {
        match self {
            Self::Version => VERSION_LENGTH,
            Self::CycleBuffer | Self::CacheLine => 4,
            Self::Mtu => 2,
            Self::Report(_) => 8,
            Self::Meet | Self::Met | Self::Keys(_) | Self::End | Self::Close => Keys::LENGTH,
        }
    }

    /// Returns what it is called.
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
    /// Returns the program that measures an operation; `None` if none of those that are supported does.
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

    /// Returns its name.
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

    /// Returns the steps between the connections and the measurement.
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

    /// Returns the steps after the measurement.
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
