//! Options for the size of a cluster.

use std::time::Duration;

use super::Options;
use super::RouteProtocol;

/// Questions that a machine may get at once when all others start at the same moment.
///
/// Each question goes to every machine, which looks at some hundred thousand in a second; so this many
/// take about a third of one.
const BURST: usize = 32_768;

/// Questions that subnet administration may get at once. It answers some ten thousand in a second.
const SA_BURST: usize = 4_096;

/// The largest cluster whose routes come from subnet administration.
const SMALL: usize = 128;

impl Options {
    /// Returns the options for a cluster of so many machines. What does not depend on the size has its
    /// default.
    ///
    /// What costs most is the start of a program on all machines, when each asks for all others.
    ///
    /// * `route_prot`: subnet administration then gets the square of the number of machines of questions.
    ///   For 128 that is a second or two of its time, for 10,000 it is hours; so larger clusters make
    ///   routes of groups. Smaller ones ask: routes may then differ from the groups' properties.
    /// * `sa_depth`: all machines' open questions together are within what it answers in less than half a
    ///   second, at least one each and at most 16.
    /// * `resolve_depth`: every question by multicast reaches every machine, so all machines' open ones
    ///   together are bounded too, 4 to 64 each.
    /// * `send_depth`: the machine that all others ask at once, as the first of a program often is, sends
    ///   an answer to each; 32 to 1024.
    /// * `recv_depth`: room for what arrives before the service gets to look: four messages for each
    ///   machine, 1024 to 16384. Messages without room are lost, and their senders wait for the timeout.
    /// * `timeout`: in a small cluster an answer takes milliseconds, so that a lost message is sent again
    ///   soon and a machine that is down is soon known to be. In a large one answers wait behind a burst
    ///   of questions, and asking again too early adds to it. 250 ms up to 64 machines, twice as much for
    ///   each fourfold size up to 4 s.
    /// * `retries`: with short timeouts another one costs little: 3 below one second. Above 8,192 machines
    ///   it is 3 again, for bursts lose more.
    /// * `check_interval`: a machine checks up to all others. Within five minutes that is some dozen
    ///   messages a second in clusters of up to 4,096, and larger ones take a quarter of an hour.
    /// * `announce`: each announcement reaches every machine. When a large cluster is switched on, two
    ///   from each are many: above 4,096 machines there is one.
    /// * `max_destinations`: a machine has a name, two IP addresses, a GID and a LID for each of a few
    ///   ports, so 16 for each machine, if that is more than the default.
    #[must_use]
    pub fn fitted(nodes: usize) -> Self {
        let nodes = nodes.max(1);
        let depth = |least: usize, value: usize, most: usize| value.clamp(least, most) as u16;
        // 0 up to 64 machines, 1 up to 256, and so on to 4.
        let steps = (nodes.div_ceil(64)).next_power_of_two().ilog2().div_ceil(2).min(4);
        let timeout = Duration::from_millis(250 << steps);
        let default = Self::default();
        let max_destinations = u32::try_from(nodes.saturating_mul(16))
            .unwrap_or(u32::MAX)
            .clamp(default.max_destinations, i32::MAX as u32);
        Self {
            route_prot: if nodes <= SMALL { RouteProtocol::Sa } else { RouteProtocol::Acm },
            sa_depth: depth(1, SA_BURST / nodes, 16),
            resolve_depth: depth(4, BURST / nodes, 64),
            send_depth: depth(32, nodes, 1024),
            recv_depth: depth(1024, nodes.saturating_mul(4), 16_384),
            timeout,
            retries: if timeout < Duration::from_secs(1) || nodes > 8_192 { 3 } else { 2 },
            check_interval: Some(Duration::from_mins(if nodes <= 4_096 { 5 } else { 15 })),
            announce: if nodes <= 4_096 { 2 } else { 1 },
            max_destinations,
            ..default
        }
    }
}
