//! Names: hosts resolve others by their names, and the paths have to lead there.
//!
//! Each question goes to every host by multicast, so the work is the number of questions times the number of hosts. That is
//! why at most [`MOST`] hosts ask, spread evenly over the fabric, and why there is a [`LIMIT`] of time.

use std::collections::VecDeque;
use std::time::{Duration, Instant as WallClock};

use ib_acm::Address;
use ib_sim::Sim;
use ib_topology::PortId;
use ib_types::Instant;
use ib_wire::acm::{ClientStatus, Entry};
use ib_wire::mad::sa::PathRecord;

use super::super::town::destination;
use crate::text::counted;
use crate::up::hosts::{Hosts, Reply};

/// How many hosts ask at most.
pub(super) const MOST: usize = 256;

/// How many questions are outstanding at most, and how many times a host has to take one of them: more would not be
/// answered before they are asked again.
const OUTSTANDING: usize = 32;
const DELIVERIES: usize = 32 * 1024;

/// How long all answers may take. What is not answered by then counts as not resolved.
const LIMIT: Duration = Duration::from_secs(300);

/// Questions for names, and what came of them.
pub(super) struct Names {
    hosts: usize,
    /// By the number of the question: the LID that the path has to start at, and those that it may lead to.
    expected: Vec<(u16, Vec<u16>)>,
    /// Questions that were not asked yet.
    wanted: VecDeque<(u64, PortId, Entry)>,
    answered: usize,
    wrong: usize,
    /// Questions without a path, and why the first one had none.
    failed: usize,
    why: Option<ClientStatus>,
    deadline: Instant,
    /// The fabric's clock is behind the real one if there is much to do.
    started: WallClock,
}

impl Names {
    /// Prepares the questions: each host that asks wants the one half the fabric away.
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
            // All ports of a node have its name.
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

    /// Asks further questions; returns whether there was any.
    pub(super) fn work(&mut self, sim: &mut Sim, hosts: &mut Hosts) -> bool {
        let mut moved = false;
        let outstanding = (DELIVERIES / self.hosts.max(1)).clamp(1, OUTSTANDING);
        while self.expected.len() - self.wanted.len() < self.answered + outstanding
            && let Some((number, port, entry)) = self.wanted.pop_front()
        {
            moved = true;
            if let Some(message) = hosts.ask(sim, port, number, vec![entry]) {
                hosts.answered(Reply { port, number, message });
            }
        }
        moved
    }

    /// Takes the answer to a question.
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

    /// Returns how many questions are answered, of all.
    pub(super) const fn progress(&self) -> (usize, usize) {
        (self.answered, self.expected.len())
    }

    /// Returns when no answer is waited for any more.
    pub(super) const fn deadline(&self) -> Instant {
        self.deadline
    }

    pub(super) fn is_over(&self, now: Instant) -> bool {
        let is_late = now >= self.deadline || self.started.elapsed() >= LIMIT;
        is_late || self.answered >= self.expected.len()
    }

    /// Returns whether every answer was right, and what there was.
    pub(super) fn finish(&self) -> (bool, String) {
        let Self { hosts, expected, answered, wrong, failed, why, .. } = self;
        let found = counted(answered - failed, "name");
        let mut detail = format!("{found} resolved by IB ACM");
        if expected.len() < *hosts {
            detail.push_str(&format!(", at {} of {}", expected.len(), counted(*hosts, "host")));
        }
        detail.push_str(&format!(", {wrong} wrong"));
        if let Some(why) = why {
            detail.push_str(&format!("; {failed} were not, the first one: {why}"));
        }
        let silent = expected.len() - answered;
        if silent > 0 {
            let seconds = LIMIT.as_secs();
            detail.push_str(&format!("; {silent} were not answered within {seconds} s"));
        }
        (wrong + failed + silent == 0, detail)
    }
}
