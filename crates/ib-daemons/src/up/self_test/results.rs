//! Results of the checks, as numbers and as texts.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::message::counted;

/// Result of a check. The field names are JSON keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum CheckResult {
    Subnet(SubnetResult),
    Routes(RoutesResult),
    Names(NamesResult),
    Paths(PathsResult),
    Device(DeviceResult),
    Capture(CaptureResult),
    /// There was nothing to check, or the check was not possible.
    Skipped {
        reason: String,
        #[serde(skip)]
        is_good: bool,
    },
}

/// How many hosts and switches there are, and how many of these nodes the SM has not brought up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct SubnetResult {
    pub(super) hosts: usize,
    pub(super) switches: usize,
    /// Number of nodes without a LID or with a link that is not active.
    pub(super) not_up: usize,
}

/// Result of comparing the LFTs of the switches with those that the engine computes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct RoutesResult {
    pub(super) engine: String,
    pub(super) lids: usize,
    /// Number of pairs of a switch and a LID for which the switch has no route.
    pub(super) unreachable: u64,
    pub(super) credit_loops: usize,
    pub(super) switches: usize,
    /// Number of switches whose LFT differs from the computed one.
    pub(super) different_lfts: usize,
    /// Number of nodes that the SM cannot reach.
    pub(super) cut_off: usize,
}

/// Result of resolving the names of hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct NamesResult {
    pub(super) hosts: usize,
    pub(super) requested: usize,
    pub(super) resolved: usize,
    /// Number of resolved paths with a wrong source LID or destination LID.
    pub(super) wrong: usize,
    pub(super) failed: usize,
    /// Why the first failed request failed; `None` if no request failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) first_failure: Option<String>,
    /// Number of requests without a response.
    pub(super) unanswered: usize,
    /// Time in seconds within which the responses must arrive.
    #[serde(skip)]
    pub(super) limit: u64,
}

/// Result of tracing paths between hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct PathsResult {
    pub(super) requested: usize,
    pub(super) good: usize,
    /// Number of paths that the tracing agent at the destination has confirmed.
    pub(super) confirmed: usize,
    /// Number of paths that the tracing agent at the destination can confirm.
    #[serde(skip)]
    pub(super) confirmable: usize,
    /// Why the first bad trace stopped; `None` if all traces are good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) first_other: Option<String>,
}

/// Result of writing and reading the block device while the links of its paths are cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct DeviceResult {
    pub(super) bytes: u64,
    pub(super) paths: usize,
    /// Number of reads that returned wrong data.
    pub(super) wrong: u64,
    pub(super) errors: u64,
    /// Number of paths that carried no reads or no writes; `None` if the device is too small for requests on all paths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) idle_paths: Option<usize>,
    /// Result of cutting each path's link; empty if the check did not try to cut a link, as with a single path.
    pub(super) cuts: Vec<CutResult>,
    /// Details if the check failed because the device made no progress; `None` otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stalled: Option<Stall>,
}

/// Result of cutting one path's link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum CutResult {
    Cut {
        /// Number of outstanding requests when the link was cut.
        outstanding: usize,
        /// Number of requests that were repeated on the other path after the cut.
        failed_over: u64,
    },
    NotCut {
        reason: String,
    },
}

/// Details of a device check that failed because the device made no progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Stall {
    /// True if the paths were not connected again after the first cut, false if requests did not complete.
    pub(super) no_paths: bool,
    /// Number of seconds that the check waited for progress before it failed.
    pub(super) seconds: u64,
    /// Number of bytes that were written and read before the check failed.
    pub(super) moved: u64,
}

/// Result of capturing the packets of the block device's QPs and reading the capture file back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct CaptureResult {
    /// Number of packets that the queue pairs have sent and received.
    pub(super) packets: u64,
    pub(super) captured: u64,
    pub(super) overwritten: u64,
    pub(super) read_back: u64,
    /// Number of frames in the file that are not RDMA packets.
    pub(super) non_rdma: u64,
}

impl CheckResult {
    pub(super) fn skipped(reason: &str) -> Self {
        Self::Skipped { reason: reason.to_owned(), is_good: true }
    }

    /// Returns true if the check found no problem.
    pub(super) fn is_good(&self) -> bool {
        match self {
            Self::Subnet(it) => it.not_up == 0,
            Self::Routes(it) => {
                it.different_lfts == 0
                    && it.unreachable == 0
                    && it.credit_loops == 0
                    && it.cut_off == 0
            }
            Self::Names(it) => it.wrong + it.failed + it.unanswered == 0,
            Self::Paths(it) => it.good == it.requested && it.confirmed >= it.confirmable,
            Self::Device(it) => it.is_good(),
            // The check fails if the ring buffers have overwritten more than half of the packets.
            Self::Capture(it) => {
                it.captured + it.overwritten == it.packets
                    && it.read_back == it.captured
                    && it.read_back > 0
                    && it.non_rdma == 0
                    && it.overwritten <= it.packets / 2
            }
            Self::Skipped { is_good, .. } => *is_good,
        }
    }
}

impl DeviceResult {
    fn is_good(&self) -> bool {
        // If at least two requests were outstanding at the cut, at least one of them was on the cut path. So at least
        // one request must have failed over.
        let has_failed_over = |cut: &CutResult| match cut {
            CutResult::Cut { outstanding, failed_over } => *failed_over > 0 || *outstanding < 2,
            CutResult::NotCut { .. } => false,
        };
        self.wrong + self.errors == 0
            && self.idle_paths.unwrap_or(0) == 0
            && self.cuts.iter().all(has_failed_over)
            && self.stalled.is_none()
    }
}

impl fmt::Display for CheckResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Subnet(it) => it.fmt(f),
            Self::Routes(it) => it.fmt(f),
            Self::Names(it) => it.fmt(f),
            Self::Paths(it) => it.fmt(f),
            Self::Device(it) => it.fmt(f),
            Self::Capture(it) => it.fmt(f),
            Self::Skipped { reason, .. } => f.write_str(reason),
        }
    }
}

impl fmt::Display for SubnetResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", counted(self.hosts, "host"), counted(self.switches, "switch"))?;
        if self.not_up > 0 {
            write!(f, "; {} without a LID or with a link that is not active", self.not_up)?;
        }
        Ok(())
    }
}

impl fmt::Display for RoutesResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { engine, lids, unreachable, credit_loops, switches, different_lfts, cut_off } =
            self;
        if *switches == 0 {
            f.write_str("none, as there is no switch")?;
        } else {
            write!(
                f,
                "{engine} for {}: {} unreachable, {}, {different_lfts} of {switches} LFTs differ from the computed ones",
                counted(*lids, "LID"),
                counted(*unreachable, "pair"),
                counted(*credit_loops, "credit loop")
            )?;
        }
        if *cut_off > 0 {
            write!(f, "; {} cut off", counted(*cut_off, "node"))?;
        }
        Ok(())
    }
}

impl fmt::Display for NamesResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { hosts, requested, resolved, wrong, failed, first_failure, unanswered, limit } =
            self;
        write!(f, "{} resolved by IB ACM", counted(*resolved, "name"))?;
        if requested < hosts {
            write!(f, ", at {requested} of {}", counted(*hosts, "host"))?;
        }
        write!(f, ", {wrong} wrong")?;
        if let Some(reason) = first_failure {
            write!(f, "; {failed} not resolved, first reason: {reason}")?;
        }
        if *unanswered > 0 {
            write!(f, "; {unanswered} without a response within {limit} s")?;
        }
        Ok(())
    }
}

impl fmt::Display for PathsResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { requested, good, confirmed, first_other, .. } = self;
        write!(f, "{good} of {requested} good, {confirmed} confirmed by agents")?;
        if let Some(other) = first_other {
            write!(f, "; first path that is not good: {other}")?;
        }
        Ok(())
    }
}

impl fmt::Display for DeviceResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bytes, paths, wrong, errors, idle_paths, cuts, stalled } = self;
        match *bytes {
            bytes if bytes < 1 << 20 => write!(f, "{bytes} bytes")?,
            bytes => write!(f, "{} MiB", bytes >> 20)?,
        }
        let (paths, errors) = (counted(*paths, "path"), counted(*errors, "error"));
        write!(f, " written and read over {paths}: {wrong} wrong, {errors}")?;
        if let Some(idle) = idle_paths.filter(|&idle| idle > 0) {
            write!(f, "; {} without requests", counted(idle, "path"))?;
        }
        let reason = cuts.iter().find_map(|cut| match cut {
            CutResult::NotCut { reason } => Some(reason),
            CutResult::Cut { .. } => None,
        });
        if let Some(reason) = reason {
            write!(f, "; not every link was cut: {reason}")?;
        } else if let [
            CutResult::Cut { failed_over: a, .. },
            CutResult::Cut { failed_over: b, .. },
        ] = &cuts[..]
        {
            write!(f, "; each link was cut once, {a} and {b} requests failed over")?;
        }
        if let Some(Stall { no_paths, seconds, moved }) = stalled {
            let what = if *no_paths { "no path was reconnected" } else { "no request completed" };
            write!(f, "; {what} for {seconds} s, after {} MiB", moved >> 20)?;
        }
        Ok(())
    }
}

impl fmt::Display for CaptureResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { packets, overwritten, read_back, non_rdma, .. } = self;
        write!(
            f,
            "{packets} packets of its queue pairs: {read_back} read back, {overwritten} overwritten"
        )?;
        if *non_rdma > 0 {
            write!(f, ", {non_rdma} non-RDMA")?;
        }
        Ok(())
    }
}
