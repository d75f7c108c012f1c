//! Options that suit the size of a cluster.

use std::time::Duration;

use super::Options;
use super::RouteProtocol;

/// Target for the number of outstanding multicast requests of all machines together. Each machine receives all these
/// requests, and handles about 100,000 per second.
const BURST: usize = 32_768;

/// Target for the number of outstanding SA queries of all machines together. The SA answers about 10,000 per second.
const SA_BURST: usize = 4_096;

/// Number of machines of the largest cluster whose routes are queried from the SA.
const SMALL: usize = 128;

impl Options {
    /// Returns the options for a cluster of `nodes` machines. Options that do not depend on the size have their
    /// defaults.
    ///
    /// The load is highest when a program starts on all machines, and each machine resolves the addresses of all
    /// others.
    ///
    /// * `route_prot`: when the program starts, the SA would receive one query for each pair of machines. With 128
    ///   machines the queries keep the SA busy for about 2 s, with 10,000 machines for hours. Clusters of more than 128
    ///   machines therefore derive routes from groups.
    /// * `sa_depth`: 1 to 16 queries per machine. Up to 5,000 machines, the SA answers the outstanding queries of all
    ///   machines within half a second.
    /// * `resolve_depth`: 4 to 64 addresses per machine, because every machine receives all multicast requests.
    /// * `send_depth`: 32 to 1024, because a machine that all others resolve at once sends a response to each.
    /// * `recv_depth`: four messages for each machine of the cluster, 1024 to 16384. If the queue is full, messages are
    ///   lost, and their senders wait for the timeout.
    /// * `timeout`: 250 ms up to 64 machines, 500 ms up to 256, and so on up to 4 s. In a small cluster a response
    ///   takes milliseconds. In a large cluster a response waits behind bursts of requests, and early retries would
    ///   make the bursts longer.
    /// * `retries`: 3 if the timeout is below 1 s, because a retry then costs little. Also 3 above 8,192 machines,
    ///   because their bursts lose more messages. Otherwise 2.
    /// * `check_interval`: 5 minutes up to 4,096 machines, 15 minutes above. In the worst case, a machine
    ///   verifies the addresses of all others. With 4,096 machines and 5 minutes, that takes about a dozen messages per
    ///   second.
    /// * `announce`: 2 up to 4,096 machines, 1 above, because every machine receives every announcement.
    /// * `max_destinations`: 16 addresses per machine, at least the default. A machine has a name, two IP addresses, a
    ///   GID and a LID for each of a few ports.
    #[must_use]
    pub fn fitted(nodes: usize) -> Self {
        let nodes = nodes.max(1);
        let depth = |least: usize, value: usize, most: usize| value.clamp(least, most) as u16;
        // The number of times that the timeout is doubled: 0 up to 64 machines, 1 up to 256, and so on up to 4.
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
