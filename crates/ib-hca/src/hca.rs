//! The HCA: dispatches packets, timers and work requests to its queue pairs.
//!
//! | file | holds |
//! |---|---|
//! | `config.rs` | [`HcaConfig`]: attributes and limits |
//! | `objects.rs` | creation and destruction of objects |
//! | `gsi.rs` | queue pair 1 |
//! | `multicast.rs` | multicast groups |
//! | `selections.rs`, `trace.rs` | packet traces of queue pairs |

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use ib_link::Route;
use ib_types::{Gid, Instant, Qpn};
use ib_wire::mad::Mad;
use rand::rngs::ChaCha20Rng;
use rand::{Rng, SeedableRng};

use crate::completion::Wc;
use crate::counters::{Counters, DropReason};
use crate::error::{GroupError, PostError};
use crate::event::{AsyncEvent, HcaEvent};
use crate::id::{CqId, QpId, SrqId};
use crate::packet::{Packet, ParseError, Writer};
use crate::qp::Qp;
use crate::resources::HcaResources;
use crate::table::{ByNumber, Table};
use crate::work_request::{RecvWr, SendOp, SendWr};

mod config;
mod gsi;
mod multicast;
mod objects;
mod selections;
mod trace;

pub use config::{HcaConfig, QpnBlock};

use gsi::Gsi;
use multicast::MulticastGroups;
use selections::Selections;

/// Number of packets that a queue pair may send before the HCA serves the next queue pair.
const BURST: u32 = 16;

/// Route and length of a packet that [`Hca::poll_transmit`] has written to the start of the caller's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Route to the destination.
    pub route: Route,
    /// Length in bytes, from the BTH to the end of the pad.
    pub length: usize,
}

/// A software host channel adapter with one port.
///
/// The owner passes received packets to [`Hca::handle`], and calls [`Hca::handle_timeout`] at the time that
/// [`Hca::poll_timeout`] returns. After either call, the owner polls [`Hca::poll_transmit`] and [`Hca::poll_event`]
/// until both return `None`.
#[derive(Debug)]
pub struct Hca {
    config: HcaConfig,
    rng: ChaCha20Rng,
    pds: Table<()>,
    resources: HcaResources,
    qps: Table<Qp>,
    by_number: ByNumber<QpId>,
    groups: MulticastGroups,
    gsi: Gsi,
    scheduler: RoundRobin,
    timers: BinaryHeap<Reverse<(Instant, QpId)>>,
    /// Selections of queue pairs to trace.
    selections: Selections,
    /// True if the port is Active.
    is_active: bool,
}

/// Round-robin scheduler for queue pairs that may have packets to send.
#[derive(Debug, Default)]
struct RoundRobin {
    ready: VecDeque<QpId>,
    /// Number of packets that the queue pair at the front of `ready` has sent in its current burst.
    burst: u32,
}

impl RoundRobin {
    /// Ends the burst of the queue pair at the front of `ready`. If this queue pair has more packets to send, the
    /// caller passes its ID as `requeued`, and the queue pair moves to the back.
    fn end_burst(&mut self, requeued: Option<QpId>) {
        self.ready.pop_front();
        self.ready.extend(requeued);
        self.burst = 0;
    }
}

impl Hca {
    /// Creates an HCA, which generates memory keys, queue pair numbers and PSNs from the seed. Except in repeatable
    /// tests, take the seed from the system's random number generator.
    #[must_use]
    pub fn new(config: HcaConfig, seed: [u8; 32]) -> Self {
        Self {
            rng: ChaCha20Rng::from_seed(seed),
            pds: Table::default(),
            resources: HcaResources::new(config.max_mr),
            qps: Table::default(),
            by_number: ByNumber::default(),
            groups: MulticastGroups::default(),
            gsi: Gsi::default(),
            scheduler: RoundRobin::default(),
            timers: BinaryHeap::new(),
            selections: Selections::default(),
            is_active: true,
            config,
        }
    }

    /// Returns the attributes of the HCA.
    #[must_use]
    pub const fn config(&self) -> &HcaConfig {
        &self.config
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.resources.counters
    }

    /// Sets whether the port is Active. The owner of the HCA passes the current state of the link. The port of a new
    /// HCA is Active.
    ///
    /// A change causes [`AsyncEvent::PortActive`] or [`AsyncEvent::PortError`]. Queue pairs keep their states. RC queue
    /// pairs retransmit all lost packets if the port becomes Active again before the retries are used up.
    pub fn set_port_active(&mut self, is_active: bool) {
        if std::mem::replace(&mut self.is_active, is_active) == is_active {
            return;
        }
        let event = if is_active { AsyncEvent::PortActive } else { AsyncEvent::PortError };
        self.resources.events.push_back(HcaEvent::Async(event));
    }

    /// Returns true if the port is Active, as set by [`Self::set_port_active`].
    #[must_use]
    pub const fn is_port_active(&self) -> bool {
        self.is_active
    }

    /// Returns an unpredictable PSN.
    pub fn random_psn(&mut self) -> ib_types::Psn {
        ib_types::Psn::truncated(self.rng.next_u32())
    }

    /// Posts a send request (`ibv_post_send`).
    ///
    /// # Errors
    /// Fails if the queue pair or the address handle does not exist, or if the send queue is full. Also fails if the
    /// state, transport or limits of the queue pair or a local key do not allow the request.
    pub fn post_send(&mut self, now: Instant, id: QpId, wr: SendWr) -> Result<(), PostError> {
        let qp = self.qps.get_mut(id.0).ok_or(PostError::NoSuchQueue)?;
        if let SendOp::SendDatagram { to, .. } = &wr.op {
            let ah = self.resources.ahs.get(to.ah.0).filter(|ah| ah.pd == qp.context.pd);
            ah.ok_or(PostError::NoSuchAh)?;
        }
        self.resources.now = now;
        qp.post_send(&mut self.resources, wr)?;
        self.touch(now, id);
        Ok(())
    }

    /// Posts a receive (`ibv_post_recv`).
    ///
    /// # Errors
    /// Fails if the queue pair does not exist, uses an SRQ, or is in state `Reset`. Also fails if the receive queue is
    /// full, or if the receive has too many SGEs. If a local key is invalid, the message that takes the receive fails.
    pub fn post_recv(&mut self, now: Instant, id: QpId, wr: RecvWr) -> Result<(), PostError> {
        let qp = self.qps.get_mut(id.0).ok_or(PostError::NoSuchQueue)?;
        self.resources.now = now;
        qp.post_recv(&mut self.resources, wr)?;
        self.fail_overrun();
        Ok(())
    }

    /// Returns the number of receives in a shared receive queue.
    #[must_use]
    pub fn srq_len(&self, srq: SrqId) -> Option<usize> {
        self.resources.srqs.get(srq.0).map(crate::srq::Srq::len)
    }

    /// Detaches a queue pair from all multicast groups.
    pub fn detach_all_mcast(&mut self, id: QpId) {
        self.groups.detach_all(id);
    }

    /// Posts a receive to a shared receive queue (`ibv_post_srq_recv`).
    ///
    /// # Errors
    /// Fails if the SRQ does not exist or is full, or if the receive has too many SGEs. If a local key is invalid, the
    /// message that takes the receive fails.
    pub fn post_srq_recv(&mut self, srq: SrqId, wr: RecvWr) -> Result<(), PostError> {
        let srq = self.resources.srqs.get_mut(srq.0).ok_or(PostError::NoSuchQueue)?;
        srq.post(wr)
    }

    /// Returns the next completion (`ibv_poll_cq`).
    pub fn poll_cq(&mut self, cq: CqId) -> Option<Wc> {
        self.resources.cqs.get_mut(cq.0)?.poll()
    }

    /// Sends a MAD from queue pair 1 to queue pair 1 of another port. Returns false if too many MADs are queued.
    pub fn send_mad(&mut self, route: Route, mad: Mad) -> bool {
        self.gsi.send(route, mad)
    }

    /// Attaches a UD queue pair to a multicast group (`ibv_attach_mcast`).
    ///
    /// # Errors
    /// Fails if the queue pair is not of type UD, or if the GID is not a multicast GID.
    pub fn attach_mcast(&mut self, id: QpId, group: Gid) -> Result<(), GroupError> {
        let qp = self.qps.get(id.0).ok_or(GroupError::NoSuchQp)?;
        self.groups.attach(id, qp.context.init.qp_type, group)
    }

    /// Detaches a queue pair from a multicast group (`ibv_detach_mcast`).
    ///
    /// # Errors
    /// Fails if the queue pair is not attached to the group.
    pub fn detach_mcast(&mut self, id: QpId, group: Gid) -> Result<(), GroupError> {
        self.groups.detach(id, group)
    }

    /// Processes a received packet. `bytes` extends from the BTH to the end of the pad, and `route` leads to the
    /// sender.
    pub fn handle(&mut self, now: Instant, route: &Route, bytes: &[u8]) {
        let counters = &mut self.resources.counters;
        counters.received_packets += 1;
        counters.received_bytes += bytes.len() as u64;
        let packet = match Packet::parse(bytes) {
            Ok(packet) => packet,
            Err(why) => {
                return counters.drop(match why {
                    ParseError::Length => DropReason::Length,
                    ParseError::Opcode => DropReason::Opcode,
                    ParseError::Version => DropReason::Version,
                });
            }
        };
        let destination = packet.bth.destination;
        if destination == Qpn::GSI {
            let event = self.gsi.handle(counters, now, route, &packet);
            return self.resources.events.extend(event);
        }
        if destination == Qpn::MULTICAST {
            // `route` leads back to the sender. Its source GID is therefore the GID to which the packet was sent: the
            // multicast group.
            let Some(members) = self.groups.members(route.source) else {
                return counters.drop(DropReason::NoGroup);
            };
            for id in members {
                self.deliver(now, id, route, &packet);
            }
            return;
        }
        let Some(&id) = self.by_number.get(&destination.get()) else {
            return counters.drop(DropReason::NoQp);
        };
        self.deliver(now, id, route, &packet);
    }

    fn deliver(&mut self, now: Instant, id: QpId, route: &Route, packet: &Packet<'_>) {
        let Some(qp) = self.qps.get_mut(id.0) else { return };
        self.resources.now = now;
        if qp.tracer.is_none() {
            qp.handle(&mut self.resources, route, packet);
        } else {
            self.resources.counters.forget_last();
            qp.handle(&mut self.resources, route, packet);
            let dropped = self.resources.counters.last_dropped();
            qp.note_received(now, route, packet.bytes, dropped);
        }
        self.touch(now, id);
    }

    /// Runs the timers that have expired.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.resources.now = now;
        while let Some(&Reverse((at, id))) = self.timers.peek()
            && at <= now
        {
            self.timers.pop();
            let Some(qp) = self.qps.get_mut(id.0).filter(|qp| qp.timer == Some(at)) else {
                continue;
            };
            qp.timer = None;
            if qp.deadline().is_some_and(|deadline| deadline <= now) {
                qp.handle_timeout(&mut self.resources);
            }
            self.touch(now, id);
        }
    }

    /// Returns the time at which [`Hca::handle_timeout`] has to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.peek().map(|Reverse((at, _))| *at)
    }

    /// Writes the next packet to the start of a buffer of at least [`MAX_PACKET`](crate::MAX_PACKET) bytes.
    ///
    /// # Panics
    /// Panics if the buffer has fewer than [`MAX_PACKET`](crate::MAX_PACKET) bytes.
    pub fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        let mut writer = Writer::new(buffer);
        let route = if self.gsi.is_empty() {
            self.write_next(now, &mut writer)?
        } else {
            self.gsi.write(now, &mut writer)?
        };
        let length = writer.len();
        self.resources.counters.sent_packets += 1;
        self.resources.counters.sent_bytes += length as u64;
        Some(Transmit { route, length })
    }

    fn write_next(&mut self, now: Instant, writer: &mut Writer<'_>) -> Option<Route> {
        self.resources.now = now;
        loop {
            let &id = self.scheduler.ready.front()?;
            let Some(qp) = self.qps.get_mut(id.0) else {
                self.scheduler.end_burst(None);
                continue;
            };
            writer.set_traced_payload(qp.tracer.as_ref().map(|tracer| tracer.payload()));
            let sent = qp.transmit(&mut self.resources, writer);
            self.scheduler.burst += 1;
            if let Some(route) = &sent
                && qp.tracer.is_some()
            {
                qp.note_sent(now, route, writer);
                // The cost of recording shortens the burst of the traced queue pair by packets of equal cost. So the
                // trace delays no other queue pair.
                if let Some(tracer) = &mut qp.tracer {
                    let left = BURST.saturating_sub(self.scheduler.burst);
                    self.scheduler.burst += tracer.settle(writer.len(), left);
                }
            }
            if !qp.is_ready(now) {
                qp.is_listed = false;
                self.scheduler.end_burst(None);
            } else if self.scheduler.burst >= BURST {
                self.scheduler.end_burst(Some(id));
            }
            self.start_timer(id);
            self.fail_overrun();
            if sent.is_some() {
                return sent;
            }
            writer.restart();
        }
    }

    /// Adds a changed queue pair to the scheduler if it has packets to send, and starts its timer.
    fn touch(&mut self, now: Instant, id: QpId) {
        if let Some(qp) = self.qps.get_mut(id.0)
            && !qp.is_listed
            && qp.is_ready(now)
        {
            qp.is_listed = true;
            self.scheduler.ready.push_back(id);
        }
        self.start_timer(id);
        self.fail_overrun();
    }

    /// Starts the timer of a queue pair for its next timeout.
    fn start_timer(&mut self, id: QpId) {
        let Some(qp) = self.qps.get_mut(id.0) else { return };
        qp.note_state();
        if let Some(at) = qp.deadline()
            && qp.timer.is_none_or(|timer| at < timer)
        {
            qp.timer = Some(at);
            self.timers.push(Reverse((at, id)));
        }
    }

    /// If a completion queue has overrun, fails the queue pairs that use it.
    fn fail_overrun(&mut self) {
        while let Some(cq) = self.resources.overrun.pop() {
            for qp in self.qps.iter_mut() {
                if [qp.context.init.send_cq, qp.context.init.recv_cq].contains(&cq) {
                    qp.fail_unreported(&mut self.resources);
                }
            }
        }
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<HcaEvent> {
        self.resources.events.pop_front()
    }

    /// Returns the number of retransmitted packets of a queue pair.
    #[must_use]
    pub fn retransmitted(&self, id: QpId) -> Option<u64> {
        self.qps.get(id.0).map(Qp::retransmitted)
    }
}
