//! The HCA: its objects, and the dispatch of packets to and from them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use ib_link::{Direction, Route};
use ib_types::{Gid, Instant, Qpn};
use ib_wire::mad::Mad;
use rand::rngs::ChaCha20Rng;
use rand::{Rng, SeedableRng};

use crate::completion::Cq;
use crate::counters::{Counters, Drop};
use crate::error::{CreateError, DestroyError};
use crate::numbers::ByNumber;
use crate::objects::{CqId, PdId, PostError, QpId, RecvWr, SendOp, SendWr, SrqId};
use crate::packet::{Malformed, Packet, Writer};
use crate::qp::core::{Core, Cx};
use crate::qp::{
    ModifyError, Qp, QpAttr, QpAttrName, QpAttributes, QpInitAttr, QpState, QpType, attr,
};
use crate::region::Regions;
use crate::table::Table;
use crate::trace::{Messages, Noted, Packets};

mod config;
mod general;
mod resources;
mod trace;

pub use config::{HcaConfig, QpnBlock};

/// Maximum message size in bytes: 2^30.
pub const MAX_MESSAGE: u64 = 1 << 30;

/// Number of packets that a queue pair sends before the next queue pair is served.
const BURST: u32 = 16;

/// Asynchronous events (`ibv_event_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsyncEvent {
    /// CQ overrun: a completion queue was full; its queue pairs have failed.
    CqError(CqId),
    /// A queue pair has failed.
    QpFatal(QpId),
    /// The send queue of a queue pair in state `Sqd` is drained.
    SqDrained(QpId),
    /// A failed queue pair takes no more receives from its SRQ (last WQE reached).
    QpLastWqeReached(QpId),
    /// A shared receive queue has fewer receives than its limit.
    SrqLimitReached(SrqId),
    /// The port can be used again (`IBV_EVENT_PORT_ACTIVE`).
    PortActive,
    /// The port has lost its link, or is no longer Active (`IBV_EVENT_PORT_ERR`).
    PortError,
}

/// An event of an HCA.
#[derive(Clone, Debug)]
pub enum HcaEvent {
    /// A completion queue with requested notification has completions.
    Completion(CqId),
    /// An asynchronous event.
    Async(AsyncEvent),
    /// A MAD has arrived at queue pair 1.
    Mad {
        /// Route of the response.
        route: Route,
        /// Source queue pair, nearly always 1.
        source: Qpn,
        /// The MAD.
        mad: Box<Mad>,
    },
}

/// A packet to send, at the start of the caller's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Its route.
    pub route: Route,
    /// Its length in bytes, from the BTH to the end of the pad.
    pub length: usize,
}

/// A shared receive queue.
#[derive(Debug)]
pub(crate) struct Srq {
    pub(crate) pd: PdId,
    pub(crate) queue: VecDeque<RecvWr>,
    pub(crate) limit: u32,
    most: u32,
    max_sge: u32,
    users: u32,
}

/// An address handle.
#[derive(Debug)]
pub(crate) struct Ah {
    pd: PdId,
    pub(crate) route: Route,
}

/// What queue pairs share.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    pub(crate) cqs: Table<Cq>,
    pub(crate) srqs: Table<Srq>,
    pub(crate) ahs: Table<Ah>,
    /// Completion queues with an overrun.
    pub(crate) overrun: Vec<CqId>,
}

/// A software host channel adapter with one port.
///
/// The owner passes received packets to [`Hca::handle`], and calls [`Hca::handle_timeout`] at the time that
/// [`Hca::poll_timeout`] returns. After either call it polls [`Hca::poll_transmit`] and [`Hca::poll_event`] until
/// both return `None`.
#[derive(Debug)]
pub struct Hca {
    config: HcaConfig,
    rng: ChaCha20Rng,
    pds: Table<()>,
    regions: Regions,
    queues: Queues,
    qps: Table<Qp>,
    by_number: ByNumber<QpId>,
    groups: BTreeMap<Gid, Vec<QpId>>,
    /// Queue pairs that may have packets to send, and the number of packets that the first has sent.
    ready: VecDeque<QpId>,
    burst: u32,
    timers: BinaryHeap<Reverse<(Instant, QpId)>>,
    events: VecDeque<HcaEvent>,
    counters: Counters,
    /// Datagrams of queue pair 1.
    mads: VecDeque<(Route, Qpn, Box<Mad>)>,
    /// The packet trace, if enabled.
    general: Option<Box<Packets>>,
    /// Selections of queue pairs to trace.
    selections: trace::Selections,
    /// True if the port is Active.
    is_active: bool,
}

/// Splits an HCA into a queue pair and the state that it works with.
macro_rules! cx {
    ($hca:ident, $now:expr) => {
        Cx {
            now: $now,
            regions: &mut $hca.regions,
            queues: &mut $hca.queues,
            events: &mut $hca.events,
            counters: &mut $hca.counters,
        }
    };
}

impl Hca {
    /// Creates an HCA. Keys and numbers that must be unpredictable are drawn from the seed. The seed has to come from
    /// the system's random number generator, except in repeatable tests.
    #[must_use]
    pub fn new(config: HcaConfig, seed: [u8; 32]) -> Self {
        Self {
            rng: ChaCha20Rng::from_seed(seed),
            pds: Table::default(),
            regions: Regions::new(config.max_mr),
            queues: Queues::default(),
            qps: Table::default(),
            by_number: ByNumber::default(),
            groups: BTreeMap::new(),
            ready: VecDeque::new(),
            burst: 0,
            timers: BinaryHeap::new(),
            events: VecDeque::new(),
            counters: Counters::default(),
            mads: VecDeque::new(),
            general: None,
            selections: trace::Selections::default(),
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
        &self.counters
    }

    /// Sets whether the port is Active, as known by the driver of the link; initially it is. A change causes
    /// [`AsyncEvent::PortActive`] or [`AsyncEvent::PortError`]. Queue pairs are not affected: if the port returns in time,
    /// retransmission recovers all packets.
    pub fn set_port_active(&mut self, is_active: bool) {
        if std::mem::replace(&mut self.is_active, is_active) == is_active {
            return;
        }
        let event = if is_active { AsyncEvent::PortActive } else { AsyncEvent::PortError };
        self.events.push_back(HcaEvent::Async(event));
    }

    /// Returns true if the port is Active, as of the last [`Self::set_port_active`].
    #[must_use]
    pub const fn is_port_active(&self) -> bool {
        self.is_active
    }

    /// Returns an unpredictable PSN.
    pub fn random_psn(&mut self) -> ib_types::Psn {
        ib_types::Psn::truncated(self.rng.next_u32())
    }

    /// Creates a queue pair (`ibv_create_qp`).
    ///
    /// # Errors
    /// Fails if one of its objects does not exist, or if it exceeds a limit.
    pub fn create_qp(&mut self, pd: PdId, init: &QpInitAttr) -> Result<QpId, CreateError> {
        self.pds.get(pd.0).ok_or(CreateError::NoSuch("protection domain"))?;
        self.room(&self.qps, "queue pairs")?;
        let config = &self.config;
        let cap = &init.cap;
        self.check("max_send_wr", cap.max_send_wr, config.max_qp_wr)?;
        self.check("max_recv_wr", cap.max_recv_wr, config.max_qp_wr)?;
        self.check("max_send_sge", cap.max_send_sge, config.max_sge)?;
        self.check("max_recv_sge", cap.max_recv_sge, config.max_sge)?;
        self.check("max_inline_data", cap.max_inline_data, config.max_inline_data)?;
        for cq in [init.send_cq, init.recv_cq] {
            self.queues.cqs.get(cq.0).ok_or(CreateError::NoSuch("completion queue"))?;
        }
        if let Some(srq) = init.srq {
            let srq = self.queues.srqs.get_mut(srq.0);
            srq.ok_or(CreateError::NoSuch("shared receive queue"))?.users += 1;
        }
        for cq in [init.send_cq, init.recv_cq] {
            self.queues.cqs.get_mut(cq.0).expect("just seen").users += 1;
        }
        // Unpredictable numbers, above those of QP0 and QP1 and below the multicast QP number.
        let number = loop {
            let number = self.config.qpns.place(Qpn::truncated(self.rng.next_u32()));
            let is_usual = number.get() > 1 && number != Qpn::MULTICAST;
            if is_usual && !self.by_number.contains_key(&number.get()) {
                break number;
            }
        };
        let window = self.config.window.clamp(8, 1 << 22);
        let core = |id| Core {
            id: QpId(id),
            number,
            qp_type: init.qp_type,
            pd,
            send_cq: init.send_cq,
            recv_cq: init.recv_cq,
            srq: init.srq,
            cap: init.cap,
            state: QpState::Reset,
            attributes: QpAttributes::default(),
            window,
            messages: Messages::default(),
            service: None,
        };
        let mtu = self.config.active_mtu;
        let id = QpId(self.qps.insert(|id| Qp::new(core(id))));
        if init.qp_type == QpType::Ud {
            self.qps.get_mut(id.0).expect("just made").core.attributes.path_mtu = mtu;
        }
        self.by_number.insert(number.get(), id);
        self.offer(id);
        Ok(id)
    }

    /// Destroys a queue pair (`ibv_destroy_qp`), and its completions with it.
    ///
    /// # Errors
    /// Fails if it does not exist, or is attached to a multicast group.
    pub fn destroy_qp(&mut self, id: QpId) -> Result<(), DestroyError> {
        let qp = self.qps.get(id.0).ok_or(DestroyError::Gone("queue pair"))?;
        if self.groups.values().any(|members| members.contains(&id)) {
            return Err(DestroyError::InUse("the queue pair, by a multicast group,"));
        }
        let core = &qp.core;
        let (number, srq) = (core.number, core.srq);
        for cq in [core.send_cq, core.recv_cq] {
            let cq = self.queues.cqs.get_mut(cq.0).expect("queue pairs keep their queues");
            cq.users -= 1;
            cq.forget(number);
        }
        if let Some(srq) = srq {
            self.queues.srqs.get_mut(srq.0).expect("queue pairs keep their queues").users -= 1;
        }
        self.by_number.remove(&number.get());
        self.qps.remove(id.0);
        Ok(())
    }

    /// Changes a queue pair (`ibv_modify_qp`).
    ///
    /// # Errors
    /// Fails if the transition is invalid, or if a required attribute is missing or has an invalid value. The queue
    /// pair is then unchanged.
    pub fn modify_qp(&mut self, now: Instant, id: QpId, attr: &QpAttr) -> Result<(), ModifyError> {
        let qp = self.qps.get(id.0).ok_or(ModifyError::NoSuchQp)?;
        let to = attr::check(qp.core.qp_type, qp.core.state, attr)?;
        if let Some(route) = attr.route.filter(|route| !self.starts_here(route)) {
            return Err(ModifyError::Source(route.source));
        }
        let most = self.config.active_mtu;
        if let Some(found) = attr.path_mtu.filter(|&mtu| mtu > most) {
            return Err(ModifyError::Mtu { found, most });
        }
        if attr.dest_qp_num.is_some_and(|number| number.get() == 0) {
            let attribute = QpAttrName::dest_qp_num;
            return Err(ModifyError::Value { attribute, found: 0, most: 0xff_ffff });
        }
        let qp = self.qps.get_mut(id.0).expect("just seen");
        qp.modify(&mut cx!(self, now), attr, to);
        self.touch(now, id);
        self.offer(id);
        Ok(())
    }

    /// Returns the number, the state and the attributes of a queue pair (`ibv_query_qp`).
    #[must_use]
    pub fn query_qp(&self, id: QpId) -> Option<(Qpn, QpState, &QpAttributes)> {
        let core = &self.qps.get(id.0)?.core;
        Some((core.number, core.state, &core.attributes))
    }

    /// Posts a request to send (`ibv_post_send`).
    ///
    /// # Errors
    /// Fails if the state, queue size, memory or transport of the queue pair does not allow it.
    pub fn post_send(&mut self, now: Instant, id: QpId, wr: SendWr) -> Result<(), PostError> {
        let qp = self.qps.get_mut(id.0).ok_or(PostError::NoSuchQueue)?;
        if let SendOp::SendDatagram { to, .. } = &wr.op {
            let ah = self.queues.ahs.get(to.ah.0).filter(|ah| ah.pd == qp.core.pd);
            ah.ok_or(PostError::NoSuchAh)?;
        }
        qp.post_send(now, &self.regions, wr)?;
        if matches!(qp.core.state, QpState::Err | QpState::Sqe) {
            qp.flush_posted(&mut cx!(self, now));
        }
        self.touch(now, id);
        Ok(())
    }

    /// Posts a receive (`ibv_post_recv`).
    ///
    /// # Errors
    /// Fails if the state or queue size of the queue pair does not allow it.
    pub fn post_recv(&mut self, now: Instant, id: QpId, wr: RecvWr) -> Result<(), PostError> {
        let qp = self.qps.get_mut(id.0).ok_or(PostError::NoSuchQueue)?;
        qp.post_recv(&self.regions, wr)?;
        if qp.core.state == QpState::Err {
            qp.flush_posted(&mut cx!(self, now));
            self.touch(now, id);
        }
        Ok(())
    }

    /// Processes a received packet: its bytes from the BTH to the end of the pad, and the route to its sender.
    pub fn handle(&mut self, now: Instant, route: &Route, bytes: &[u8]) {
        self.counters.received_packets += 1;
        self.counters.received_bytes += bytes.len() as u64;
        let packet = match Packet::parse(bytes) {
            Ok(packet) => packet,
            Err(why) => {
                return self.counters.drop(match why {
                    Malformed::Length => Drop::Length,
                    Malformed::Opcode => Drop::Opcode,
                    Malformed::Version => Drop::Version,
                });
            }
        };
        let destination = packet.bth.destination;
        if destination == Qpn::GSI {
            if self.general.is_none() {
                return self.handle_general(route, &packet);
            }
            self.counters.forget_last();
            self.handle_general(route, &packet);
            let dropped = self.counters.last_dropped();
            if let Some(packets) = &mut self.general {
                let noted = Noted::new((Direction::Receive, now), route);
                packets.note(&Noted { dropped, ..noted }, bytes, bytes);
            }
            return;
        }
        if destination == Qpn::MULTICAST {
            return self.handle_group(now, route, &packet);
        }
        let Some(&id) = self.by_number.get(&destination.get()) else {
            return self.counters.drop(Drop::NoQp);
        };
        self.deliver(now, id, route, &packet);
    }

    fn deliver(&mut self, now: Instant, id: QpId, route: &Route, packet: &Packet<'_>) {
        let Some(qp) = self.qps.get_mut(id.0) else { return };
        if qp.packets.is_none() {
            qp.handle(&mut cx!(self, now), route, packet);
        } else {
            self.counters.forget_last();
            qp.handle(&mut cx!(self, now), route, packet);
            qp.note_received(now, route, packet.bytes, self.counters.last_dropped());
        }
        self.touch(now, id);
    }

    /// Runs the timers that have expired.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(&Reverse((at, id))) = self.timers.peek()
            && at <= now
        {
            self.timers.pop();
            let Some(qp) = self.qps.get_mut(id.0).filter(|qp| qp.noted == Some(at)) else {
                continue;
            };
            qp.noted = None;
            if qp.deadline().is_some_and(|deadline| deadline <= now) {
                qp.handle_timeout(&mut cx!(self, now));
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
    /// Panics when the buffer is shorter.
    pub fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        let mut writer = Writer::new(buffer);
        let route = match self.write_general(&mut writer) {
            Some(route) => {
                if let Some(packets) = &mut self.general {
                    let noted = Noted::new((Direction::Send, now), &route);
                    packets.note(&noted, writer.start(), writer.written());
                }
                route
            }
            None => self.write_next(now, &mut writer)?,
        };
        let length = writer.len();
        self.counters.sent_packets += 1;
        self.counters.sent_bytes += length as u64;
        Some(Transmit { route, length })
    }

    fn write_next(&mut self, now: Instant, writer: &mut Writer<'_>) -> Option<Route> {
        loop {
            let &id = self.ready.front()?;
            let Some(qp) = self.qps.get_mut(id.0) else {
                self.next_turn(None);
                continue;
            };
            writer.keep_start(qp.packets.as_ref().map(|packets| packets.payload()));
            let sent = qp.transmit(&mut cx!(self, now), writer);
            self.burst += 1;
            if let Some(route) = &sent
                && qp.packets.is_some()
            {
                qp.note_sent(now, route, writer);
                // Other queue pairs do not wait for the cost of a trace.
                if let Some(packets) = &mut qp.packets {
                    self.burst += packets.settle(writer.len(), BURST.saturating_sub(self.burst));
                }
            }
            let goes_on = qp.is_ready(now);
            if !goes_on {
                qp.listed = false;
                self.next_turn(None);
            } else if self.burst >= BURST {
                self.next_turn(Some(id));
            }
            self.note(id);
            self.fail_overrun(now);
            if sent.is_some() {
                return sent;
            }
            writer.restart();
        }
    }

    /// Moves on to the next queue pair.
    fn next_turn(&mut self, again: Option<QpId>) {
        self.ready.pop_front();
        self.ready.extend(again);
        self.burst = 0;
    }

    /// Records that a queue pair may have packets to send, and its next timeout.
    fn touch(&mut self, now: Instant, id: QpId) {
        if let Some(qp) = self.qps.get_mut(id.0)
            && !qp.listed
            && qp.is_ready(now)
        {
            qp.listed = true;
            self.ready.push_back(id);
        }
        self.note(id);
        self.fail_overrun(now);
    }

    fn note(&mut self, id: QpId) {
        let Some(qp) = self.qps.get_mut(id.0) else { return };
        qp.note_state();
        if let Some(at) = qp.deadline()
            && qp.noted.is_none_or(|noted| at < noted)
        {
            qp.noted = Some(at);
            self.timers.push(Reverse((at, id)));
        }
    }

    /// Fails the queue pairs of completion queues with an overrun.
    fn fail_overrun(&mut self, now: Instant) {
        while let Some(cq) = self.queues.overrun.pop() {
            let users =
                self.qps.iter().filter(|qp| [qp.core.send_cq, qp.core.recv_cq].contains(&cq));
            let users: Vec<QpId> = users.map(|qp| qp.core.id).collect();
            for id in users {
                if let Some(qp) = self.qps.get_mut(id.0) {
                    qp.enter_error(&mut cx!(self, now));
                }
            }
        }
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<HcaEvent> {
        self.events.pop_front()
    }

    /// Returns the number of retransmitted packets of a queue pair.
    #[must_use]
    pub fn retransmitted(&self, id: QpId) -> Option<u64> {
        self.qps.get(id.0).map(Qp::resent)
    }
}
