//! The name check. Hosts resolve the names of other hosts, and the paths must lead to these hosts.
//!
//! Each request is multicast to every host, so the work is the number of requests times the number of hosts. Therefore
//! at most [`MOST`] hosts send requests. They are spread evenly over the fabric, and all responses must arrive within
//! [`LIMIT`].

use std::collections::VecDeque;
use std::time::{Duration, Instant as WallClock};

use ib_acm::Address;
use ib_sim::Sim;
use ib_topology::PortId;
use ib_types::Instant;
use ib_wire::acm::{ClientStatus, Entry};
use ib_wire::mad::sa::PathRecord;

use super::super::path_request::destination;
use super::results::{CheckResult, NamesResult};
use crate::up::hosts::{Hosts, Reply};

/// Maximum number of hosts that send a request.
pub(super) const MOST: usize = 256;

/// Maximum number of outstanding requests in a fabric of any size.
const OUTSTANDING: usize = 32;
/// Maximum number of outstanding deliveries. Each request is multicast, so it causes one delivery per host. With more
/// deliveries, requests would be retransmitted before their responses arrive.
const DELIVERIES: usize = 32 * 1024;

/// Time limit for all responses of the check. Requests without a response then count as unanswered.
const LIMIT: Duration = Duration::from_secs(300);

/// Requests to resolve names of hosts, and their results.
pub(super) struct ResolvedNames {
    hosts: usize,
    /// For each request: the expected source LID of the path, and the permitted destination LIDs.
    expected: Vec<(u16, Vec<u16>)>,
    /// Requests that were not sent yet: request number, port of the requesting host, and destination.
    wanted: VecDeque<(u64, PortId, Entry)>,
    answered: usize,
    wrong: usize,
    /// Number of requests for which no path was found.
    failed: usize,
    /// Status of the first failed request.
    why: Option<ClientStatus>,
    deadline: Instant,
    /// Real time at which the check started. [`LIMIT`] applies to real time and to simulated time, because simulated
    /// time may pass more slowly.
    started: WallClock,
}

impl ResolvedNames {
    /// Prepares the requests. Of `n` hosts, the requesting host `i` resolves the name of host `(i + n / 2) % n`.
    pub(super) fn new(sim: &Sim, hosts: &Hosts) -> Self {
        let ports: Vec<PortId> = hosts.ports().collect();
        let count = ports.len().min(MOST);
        let (mut expected, mut wanted) = (Vec::new(), VecDeque::new());
        for number in 0..count {
            let at = number * ports.len() / count;
            let other = ports[(at + (ports.len() / 2).max(1)) % ports.len()];
            let (node, _) = sim.place(other);
            let name = Address::name(sim.node_name(node));
            let to = name.unwrap_or_else(|_| Address::Gid(sim.link_port(other).gid()));
            // The name belongs to the node, so the path may lead to any of the node's ports that has a host.
            let numbers = 0..=sim.node_info(other).num_ports;
            let namesakes = numbers.filter_map(|number| sim.find_port(node, number));
            let namesakes = namesakes.filter(|&port| hosts.has(port));
            let lids = namesakes.map(|port| sim.link_port(port).lid).collect();
            expected.push((sim.link_port(ports[at]).lid, lids));
            wanted.push_back((number as u64, ports[at], destination(&to)));
        }
        let (answered, wrong, failed, why) = (0, 0, 0, None);
        let deadline = sim.now() + LIMIT;
        let hosts = ports.len();
        let started = WallClock::now();
        Self { hosts, expected, wanted, answered, wrong, failed, why, deadline, started }
    }

    /// Sends further requests until the maximum number is outstanding; returns true if it has sent any.
    pub(super) fn work(&mut self, sim: &mut Sim, hosts: &mut Hosts) -> bool {
        let mut moved = false;
        let outstanding = (DELIVERIES / self.hosts.max(1)).clamp(1, OUTSTANDING);
        while self.expected.len() - self.wanted.len() < self.answered + outstanding
            && let Some((number, port, entry)) = self.wanted.pop_front()
        {
            moved = true;
            if let Some(message) = hosts.request(sim, port, number, vec![entry]) {
                hosts.queue_reply(Reply { port, number, message });
            }
        }
        moved
    }

    /// Processes the response to a request.
    pub(super) fn take_reply(&mut self, number: u64, found: Result<PathRecord, ClientStatus>) {
        let Some((from, to)) = self.expected.get(number as usize) else { return };
        self.answered += 1;
        match found {
            Ok(path) => {
                let is_right = path.slid == *from && to.contains(&path.dlid);
                self.wrong += usize::from(!is_right);
            }
            Err(status) => {
                self.failed += 1;
                self.why.get_or_insert(status);
            }
        }
    }

    /// Returns the number of answered requests, and the number of all requests.
    pub(super) const fn progress(&self) -> (usize, usize) {
        (self.answered, self.expected.len())
    }

    /// Returns the simulated time at which the check stops waiting for responses.
    pub(super) const fn deadline(&self) -> Instant {
        self.deadline
    }

    pub(super) fn is_over(&self, now: Instant) -> bool {
        let is_late = now >= self.deadline || self.started.elapsed() >= LIMIT;
        is_late || self.answered >= self.expected.len()
    }

    /// Returns the result of the name check.
    pub(super) fn finish(&self) -> CheckResult {
        let Self { hosts, expected, answered, wrong, failed, why, .. } = self;
        CheckResult::Names(NamesResult {
            hosts: *hosts,
            requested: expected.len(),
            resolved: answered - failed,
            wrong: *wrong,
            failed: *failed,
            first_failure: why.map(|why| why.to_string()),
            unanswered: expected.len() - answered,
            limit: LIMIT.as_secs(),
        })
    }
}
