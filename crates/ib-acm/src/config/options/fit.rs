//! Options for the size of a cluster.

use std::time::Duration;

use super::Options;
use super::RouteProtocol;

/// Maximum number of multicast requests of all machines at the same time. Each machine receives all of them, and handles
/// about 100,000 per second.
const BURST: usize = 32_768;

/// Maximum number of SA queries of all machines at the same time. The SA answers about 10,000 per second.
const SA_BURST: usize = 4_096;

/// Number of machines of the largest cluster whose routes are queried from the SA.
const SMALL: usize = 128;

impl Options {
    /// Returns the options for a cluster of `nodes` machines. Options that do not depend on the size have their defaults.
    ///
    /// The worst load is the start of a program on all machines, where each machine resolves all others.
    ///
    /// * `route_prot`: at such a start the SA receives as many queries as the square of the number of machines. 128
    ///   machines keep it busy for about 2 s, 10,000 for hours. Larger clusters therefore derive routes from groups.
    /// * `sa_depth`: the SA answers the outstanding queries of all machines within half a second; 1 to 16 per machine.
    /// * `resolve_depth`: every machine receives every multicast request, so their total is limited; 4 to 64 per machine.
    /// * `send_depth`: a machine that all others resolve at once sends a response to each; 32 to 1024.
    /// * `recv_depth`: queue of four messages per machine, 1024 to 16384. Messages beyond it are lost, and their senders
    ///   wait for the timeout.
    /// * `timeout`: in a small cluster a response takes milliseconds. In a large one responses wait behind bursts of
    ///   requests, and early retries add to them. 250 ms up to 64 machines, doubled for each fourfold size up to 4 s.
    /// * `retries`: 3 with timeouts below 1 s, where a retry costs little, and above 8,192 machines, where bursts lose
    ///   more messages; otherwise 2.
    /// * `check_interval`: a machine verifies up to all others. Up to 4,096 machines, 5 minutes cause about a dozen
    ///   messages per second; larger clusters have 15 minutes.
    /// * `announce`: every machine receives every announcement; 2 up to 4,096 machines, 1 above.
    /// * `max_destinations`: 16 addresses per machine, at least the default. A machine has a name, two IP addresses, a GID
    ///   and a LID for each of a few ports.
    #[must_use]
    pub fn fitted(nodes: usize) -> Self {
        let nodes = nodes.max(1);
        let depth = |least: usize, value: usize, most: usize| value.clamp(least, most) as u16;
        // 0 up to 64 machines, 1 up to 256, and so on up to 4.
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
