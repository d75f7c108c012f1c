//! The ibtracer agent, which runs on the nodes of a path.

use std::collections::VecDeque;

use ib_link::{Arrival, Datagram, NodeAgent};
use ib_types::Instant;
use ib_wire::mad::vendor::{Oui, SourceRoute, set_ping_host};
use ib_wire::mad::{AttributeId, ClassPortInfo, Mad, MadStatus, Method, MgmtClass};

use crate::path::UNKNOWN_PORT;

/// Responds to ibtracer (class 0x30) and ibping (class 0x32) requests at a node.
///
/// The agent compares the arrival port of a SourceRoute request with the port that the request expects. If the link
/// does not report the arrival port, the response has [`UNKNOWN_PORT`] and status 0.
#[derive(Debug)]
pub struct TracerAgent {
    host: String,
    answers: VecDeque<Datagram>,
    counters: AgentCounters,
}

/// Counters of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgentCounters {
    /// Number of responses, with any status.
    pub answered: u64,
    /// Number of SourceRoute requests that arrived at an unexpected port.
    pub mismatches: u64,
    /// Number of responses with an error status, without those that `mismatches` counts.
    pub refused: u64,
    /// Number of ignored MADs: their base version is not 1, their OUI is not OpenIB's, or they are not requests.
    pub ignored: u64,
}

/// Maximum number of queued responses. If there are more, the oldest are dropped, and their clients retry.
const MAX_QUEUED: usize = 4096;

impl TracerAgent {
    /// Creates an agent, which reports the node name `host` (`host.domain`) to ibping.
    #[must_use]
    pub fn new(host: impl Into<String>) -> Self {
        Self { host: host.into(), answers: VecDeque::new(), counters: AgentCounters::default() }
    }

    /// Returns the counters of the agent.
    #[must_use]
    pub const fn counters(&self) -> AgentCounters {
        self.counters
    }

    fn ping(&self, mad: &mut Mad) -> MadStatus {
        if mad.attribute_id() != AttributeId(0) {
            return MadStatus::BAD_METHOD_ATTRIBUTE;
        }
        set_ping_host(mad, &self.host);
        MadStatus::OK
    }

    fn trace(&mut self, arrival: Arrival, mad: &mut Mad) -> MadStatus {
        match mad.attribute_id() {
            AttributeId::CLASS_PORT_INFO => {
                let mut info = ClassPortInfo::zeroed();
                (info.base_version, info.class_version) = (1, 1);
                mad.set_attribute(&info);
                MadStatus::OK
            }
            AttributeId::SOURCE_ROUTE => self.compare(arrival, mad),
            _ => MadStatus::BAD_METHOD_ATTRIBUTE,
        }
    }

    /// Compares the arrival port of a request with the arrival port that the request expects.
    fn compare(&mut self, arrival: Arrival, mad: &mut Mad) -> MadStatus {
        let mut route: SourceRoute =
            mad.attribute().expect("the caller matched class and attribute");
        route.incoming_port = arrival.port.unwrap_or(UNKNOWN_PORT);
        mad.set_attribute(&route);
        let Some(expected) = route.expected_port() else {
            self.counters.refused += 1;
            return MadStatus::BAD_FIELD;
        };
        match arrival.port {
            Some(actual) if actual != expected => {
                self.counters.mismatches += 1;
                MadStatus::BAD_FIELD
            }
            _ => MadStatus::OK,
        }
    }
}

impl NodeAgent for TracerAgent {
    fn classes(&self) -> &[MgmtClass] {
        &[MgmtClass::TRACER, MgmtClass::PING]
    }

    fn handle(&mut self, _: Instant, arrival: Arrival, datagram: &Datagram) {
        let mut mad = datagram.mad;
        if mad.base_version() != 1 || mad.method().is_response() || mad.oui() != Oui::OPENIB {
            self.counters.ignored += 1;
            return;
        }
        let status = if mad.class_version() != 1 {
            MadStatus::BAD_VERSION
        } else if mad.method() != Method::GET {
            MadStatus::BAD_METHOD
        } else if mad.class() == MgmtClass::PING {
            self.ping(&mut mad)
        } else {
            self.trace(arrival, &mut mad)
        };
        if mad.method().response().is_none() {
            self.counters.ignored += 1;
            return;
        }
        if matches!(
            status,
            MadStatus::BAD_VERSION | MadStatus::BAD_METHOD | MadStatus::BAD_METHOD_ATTRIBUTE
        ) {
            self.counters.refused += 1;
        }
        mad.answer(status);
        self.counters.answered += 1;
        if self.answers.len() == MAX_QUEUED {
            self.answers.pop_front();
        }
        self.answers.push_back(datagram.reply(mad));
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, _: Instant) -> Option<Datagram> {
        self.answers.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

#[cfg(test)]
mod tests;
