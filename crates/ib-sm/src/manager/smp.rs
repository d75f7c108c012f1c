//! SMPs of the SM: requests in flight with their purposes, and queued responses.

use std::collections::{BTreeMap, VecDeque};

use ib_link::{Datagram, Incoming, Remote};
use ib_mad::{Completion, OnLoss, Request, Requester, RequesterConfig, RequesterCounters, Timing};
use ib_types::Instant;
use ib_wire::mad::{Mad, TransactionId};

use crate::configuration::Write;
use crate::discovered_subnet::{NodeIndex, PortIndex};
use crate::discovery::Probe;

/// The purpose for which the SM has sent a request.
#[derive(Debug)]
pub(super) enum Purpose {
    Probe(Probe),
    Write(Write),
    /// Light sweep: read SwitchInfo, whose `PortStateChange` flag reports changed ports.
    SwitchChange(NodeIndex),
    /// Light sweep: read an LFT block, and compare it with the block that was written.
    Audit {
        node: NodeIndex,
        block: u16,
    },
    /// Light sweep: read PortInfo, and compare it with the last known PortInfo.
    State(PortIndex),
    /// Standby SM: read SMInfo of the master.
    Master(PortIndex),
    /// Set(SMInfo) HANDOVER to an SM that wins the election.
    HandOver(PortIndex),
}

/// The SMPs of the SM. Each request in flight has one purpose.
#[derive(Debug)]
pub(super) struct Smps {
    requester: Requester,
    purposes: BTreeMap<TransactionId, Purpose>,
    /// Queued responses to requests and traps.
    responses: VecDeque<Datagram>,
    /// SMInfo:ActCount: number of SMPs that the SM has sent. Its growth shows that the SM is active.
    activity: u32,
    /// Maximum number of requests in flight.
    window: usize,
    timing: Timing,
}

impl Smps {
    pub(super) fn new(window: usize, timing: Timing) -> Self {
        let config = RequesterConfig { window, ..RequesterConfig::default() };
        Self {
            requester: Requester::new(config),
            purposes: BTreeMap::new(),
            responses: VecDeque::new(),
            activity: 0,
            window: window.max(1),
            timing,
        }
    }

    pub(super) const fn activity(&self) -> u32 {
        self.activity
    }

    /// Returns the number of requests in flight.
    pub(super) fn outstanding(&self) -> usize {
        self.requester.outstanding()
    }

    /// Returns true if another request may be started.
    pub(super) fn has_room(&self) -> bool {
        self.outstanding() < self.window
    }

    pub(super) const fn counters(&self) -> RequesterCounters {
        self.requester.counters()
    }

    /// Starts a request by directed route.
    pub(super) fn start(&mut self, purpose: Purpose, mad: Mad) {
        let request = Request {
            on_loss: OnLoss::Retry,
            ..Request::new(Remote::directed(), mad).with_timing(self.timing)
        };
        let transaction = self.requester.start(request).expect("the request is a Get or Set");
        self.purposes.insert(transaction, purpose);
    }

    /// Cancels all requests in flight, and returns their purposes.
    pub(super) fn cancel_all(&mut self) -> impl Iterator<Item = Purpose> {
        let purposes = std::mem::take(&mut self.purposes);
        for &transaction in purposes.keys() {
            self.requester.cancel(transaction);
        }
        purposes.into_values()
    }

    /// Queues a response.
    pub(super) fn respond(&mut self, response: Datagram) {
        self.responses.push_back(response);
    }

    /// Processes a received MAD, or the report that a sent MAD was lost. Returns true if the MAD belongs to a request
    /// in flight.
    pub(super) fn handle(&mut self, now: Instant, incoming: &Incoming) -> bool {
        self.requester.handle(now, incoming)
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.requester.handle_timeout(now);
    }

    /// Returns the next completed request with its purpose.
    pub(super) fn poll_completion(&mut self) -> Option<(Purpose, Completion)> {
        loop {
            let completion = self.requester.poll_event()?;
            if let Some(purpose) = self.purposes.remove(&completion.transaction_id) {
                return Some((purpose, completion));
            }
        }
    }

    /// Returns the next response to be sent.
    pub(super) fn poll_response(&mut self) -> Option<Datagram> {
        let response = self.responses.pop_front()?;
        self.activity = self.activity.wrapping_add(1);
        Some(response)
    }

    /// Returns the next request to be sent.
    pub(super) fn poll_request(&mut self, now: Instant) -> Option<Datagram> {
        let request = self.requester.poll_transmit(now)?;
        self.activity = self.activity.wrapping_add(1);
        Some(request)
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.requester.poll_timeout()
    }
}
