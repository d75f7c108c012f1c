//! Two HCAs and a simulated wire in virtual time, which can lose, reorder, duplicate and corrupt packets.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ib_hca::{
    AccessFlags, CqId, Data, Hca, HcaConfig, HcaEvent, MAX_PACKET, Memory, PdId, QpAttr, QpCap,
    QpId, QpInitAttr, QpState, QpType, RecvWr, RemoteAddress, SendFlags, SendOp, SendWr, Sge, Wc,
};
use ib_link::Route;
use ib_types::{Gid, Guid, Instant, Mtu, PKey, Psn, QKey, Qpn};

/// Random number generator of a run.
pub(crate) struct Rng(ib_types::rng::Rng);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        let state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d;
        Self(ib_types::rng::Rng::new(state))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub(crate) fn chance(&mut self, of: f64) -> bool {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64 <= of
    }
}

/// Faults of the packets that one side sends: probabilities of loss, duplication and delay, and durations of delays.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Faults {
    pub(crate) loss: f64,
    pub(crate) double: f64,
    pub(crate) late: f64,
    /// Maximum additional delay of a late packet.
    pub(crate) late_by: Duration,
    /// Maximum additional delay of every packet.
    pub(crate) jitter: Duration,
}

impl Default for Faults {
    fn default() -> Self {
        let late_by = Duration::from_micros(20);
        Self { loss: 0.0, double: 0.0, late: 0.0, late_by, jitter: Duration::ZERO }
    }
}

/// Fate of a packet on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Lost,
    Delivered,
}

/// Function that is called for every packet, with the sending side, the packet's fate and its bytes.
type Observer = Box<dyn FnMut(usize, Fate, &[u8])>;

/// One of the two HCAs, with its objects.
pub(crate) struct Side {
    pub(crate) hca: Hca,
    pub(crate) pd: PdId,
    pub(crate) cq: CqId,
    pub(crate) gid: Gid,
    pub(crate) completions: Vec<Wc>,
    pub(crate) events: Vec<HcaEvent>,
}

/// Function that is called for every sent packet, with the sending side and the bytes, which it may change. It returns
/// false to drop the packet.
type Tap = Box<dyn FnMut(usize, &mut Vec<u8>) -> bool>;

/// Two HCAs that are connected by a wire.
pub(crate) struct Pair {
    pub(crate) now: Instant,
    pub(crate) sides: [Side; 2],
    /// Faults of the packets that each side sends.
    pub(crate) faults: [Faults; 2],
    pub(crate) rng: Rng,
    /// Serialization time of a packet of 4096 bytes.
    pub(crate) nanos_per_4k: u64,
    /// Minimum serialization time of each packet, by sending side: hosts have a limited packet rate.
    pub(crate) nanos_per_packet: [u64; 2],
    /// Propagation delay.
    pub(crate) delay: Duration,
    wire: BTreeMap<(Instant, u64), (usize, Vec<u8>, Route)>,
    free: [Instant; 2],
    number: u64,
    buffer: Vec<u8>,
    pub(crate) tap: Tap,
    pub(crate) observer: Option<Observer>,
    /// Maximum queueing delay of each link. While it is exceeded, no packet is polled from the sending HCA.
    pub(crate) backlog: Duration,
    /// Interval at which arrived packets are delivered, as to a receiver that polls; at least 1 ns.
    pub(crate) batches: Duration,
    pub(crate) packets: u64,
}

/// Registered memory.
pub(crate) struct Region {
    pub(crate) memory: Arc<Memory>,
    pub(crate) addr: u64,
    pub(crate) key: u32,
    pub(crate) mr: ib_hca::MrId,
}

impl Region {
    pub(crate) fn sge(&self, offset: usize, length: usize) -> Sge {
        Sge { addr: self.addr + offset as u64, length: length as u32, lkey: self.key }
    }

    pub(crate) fn data(&self, offset: usize, length: usize) -> Data {
        Data::One(self.sge(offset, length))
    }

    pub(crate) fn remote(&self, offset: usize) -> RemoteAddress {
        RemoteAddress { addr: self.addr + offset as u64, rkey: self.key }
    }

    pub(crate) fn bytes(&self, offset: usize, length: usize) -> Vec<u8> {
        self.memory.to_vec(offset, length).expect("the range is within the memory")
    }
}

/// Attributes of connected queue pairs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wiring {
    pub(crate) qp_type: QpType,
    pub(crate) mtu: Mtu,
    pub(crate) cap: QpCap,
    pub(crate) reads: u8,
    pub(crate) timeout: u8,
    pub(crate) retry_cnt: u8,
    pub(crate) rnr_retry: u8,
    pub(crate) min_rnr_timer: u8,
    pub(crate) access: AccessFlags,
}

impl Default for Wiring {
    fn default() -> Self {
        Self {
            qp_type: QpType::Rc,
            mtu: Mtu::B1024,
            cap: QpCap { max_send_wr: 128, max_recv_wr: 128, ..QpCap::default() },
            reads: 4,
            timeout: 8,
            retry_cnt: 7,
            rnr_retry: 7,
            min_rnr_timer: 1,
            access: AccessFlags::ALL,
        }
    }
}

impl Pair {
    pub(crate) fn new(seed: u64) -> Self {
        let side = |number: u64| {
            let gid = Gid(0xffff_0a00_0001 + u128::from(number));
            let mut bytes = [number as u8; 32];
            bytes[..8].copy_from_slice(&seed.to_le_bytes());
            let mut hca = Hca::new(HcaConfig::new(Guid(number + 1), vec![gid]), bytes);
            let pd = hca.alloc_pd().expect("a new HCA has room");
            let cq = hca.create_cq(4096).expect("the size is valid");
            Side { hca, pd, cq, gid, completions: Vec::new(), events: Vec::new() }
        };
        Self {
            now: Instant::from_nanos(1000),
            sides: [side(0), side(1)],
            faults: [Faults::default(); 2],
            rng: Rng::new(seed),
            nanos_per_4k: 330,
            nanos_per_packet: [0; 2],
            delay: Duration::from_micros(2),
            wire: BTreeMap::new(),
            free: [Instant::ZERO; 2],
            number: 0,
            buffer: vec![0xee; MAX_PACKET],
            tap: Box::new(|_, _| true),
            observer: None,
            backlog: Duration::from_secs(3600),
            batches: Duration::from_nanos(1),
            packets: 0,
        }
    }

    pub(crate) fn region(&mut self, side: usize, length: usize, access: AccessFlags) -> Region {
        let side = &mut self.sides[side];
        let memory = Memory::zeroed(length).expect("memory");
        let addr = 0x1000_0000;
        let mr = side
            .hca
            .reg_mr(side.pd, (&memory, 0, length), addr, access)
            .expect("the range is valid");
        let key = side.hca.key(mr).expect("the region exists");
        Region { memory, addr, key, mr }
    }

    pub(crate) fn route(&self, from: usize) -> Route {
        Route {
            source: self.sides[from].gid,
            destination: self.sides[1 - from].gid,
            is_global: true,
            ..Route::default()
        }
    }

    pub(crate) fn create(&mut self, side: usize, wiring: &Wiring) -> QpId {
        let Side { hca, pd, cq, .. } = &mut self.sides[side];
        let init = QpInitAttr {
            qp_type: wiring.qp_type,
            send_cq: *cq,
            recv_cq: *cq,
            srq: None,
            cap: wiring.cap,
        };
        hca.create_qp(*pd, &init).expect("the attributes are valid")
    }

    pub(crate) fn number_of(&self, side: usize, qp: QpId) -> Qpn {
        self.sides[side].hca.query_qp(qp).expect("the queue pair exists").0
    }

    pub(crate) fn state_of(&self, side: usize, qp: QpId) -> QpState {
        self.sides[side].hca.query_qp(qp).expect("the queue pair exists").1
    }

    pub(crate) fn modify(&mut self, side: usize, qp: QpId, attr: &QpAttr) {
        let now = self.now;
        self.sides[side].hca.modify_qp(now, qp, attr).expect("the transition is valid");
    }

    /// Creates a queue pair on each side, and connects them to each other.
    pub(crate) fn connect(&mut self, wiring: &Wiring) -> [QpId; 2] {
        let qps = [self.create(0, wiring), self.create(1, wiring)];
        self.connect_with(wiring, qps);
        qps
    }

    pub(crate) fn connect_with(&mut self, wiring: &Wiring, qps: [QpId; 2]) {
        // The first PSNs are just below 2^24, where PSNs wrap, and just below 2^23, half of the PSN space.
        let psns = [Psn::truncated(0xff_fff0), Psn::truncated(0x7f_fffb)];
        for side in [0, 1] {
            let peer = self.number_of(1 - side, qps[1 - side]);
            let route = self.route(side);
            let is_datagram = wiring.qp_type == QpType::Ud;
            let is_reliable = wiring.qp_type == QpType::Rc;
            let init = QpAttr {
                qp_state: Some(QpState::Init),
                pkey: Some(PKey::DEFAULT),
                qkey: is_datagram.then_some(QKey(0x1111)),
                qp_access_flags: (!is_datagram).then_some(wiring.access),
                ..QpAttr::default()
            };
            let rtr = QpAttr {
                qp_state: Some(QpState::Rtr),
                route: (!is_datagram).then_some(route),
                path_mtu: (!is_datagram).then_some(wiring.mtu),
                dest_qp_num: (!is_datagram).then_some(peer),
                rq_psn: (!is_datagram).then_some(psns[1 - side]),
                max_dest_rd_atomic: is_reliable.then_some(wiring.reads),
                min_rnr_timer: is_reliable.then_some(wiring.min_rnr_timer),
                ..QpAttr::default()
            };
            let rts = QpAttr {
                qp_state: Some(QpState::Rts),
                sq_psn: Some(psns[side]),
                timeout: is_reliable.then_some(wiring.timeout),
                retry_cnt: is_reliable.then_some(wiring.retry_cnt),
                rnr_retry: is_reliable.then_some(wiring.rnr_retry),
                max_rd_atomic: is_reliable.then_some(wiring.reads),
                ..QpAttr::default()
            };
            for attr in [init, rtr, rts] {
                self.modify(side, qps[side], &attr);
            }
        }
    }

    pub(crate) fn send(&mut self, side: usize, qp: QpId, wr_id: u64, op: SendOp, data: Data) {
        let flags = SendFlags { signaled: true, ..SendFlags::default() };
        self.post(side, qp, SendWr { wr_id, op, data, flags });
    }

    pub(crate) fn post(&mut self, side: usize, qp: QpId, wr: SendWr) {
        let now = self.now;
        self.sides[side].hca.post_send(now, qp, wr).expect("the request is valid");
    }

    pub(crate) fn receive(&mut self, side: usize, qp: QpId, wr_id: u64, data: Data) {
        let now = self.now;
        self.sides[side]
            .hca
            .post_recv(now, qp, RecvWr { wr_id, data })
            .expect("the request is valid");
    }

    /// Sends packets until the queueing delay of the links exceeds `backlog`. Returns the time at which a link accepts
    /// packets again.
    fn transmit(&mut self) -> Option<Instant> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut resumes = None;
        for from in [0, 1] {
            let faults = self.faults[from];
            loop {
                if self.free[from] > self.now + self.backlog {
                    let full = self.free[from].as_nanos() - self.backlog.as_nanos() as u64;
                    let at = Instant::from_nanos(full);
                    resumes = Some(resumes.map_or(at, |other: Instant| other.min(at)));
                    break;
                }
                let Some(sent) = self.sides[from].hca.poll_transmit(self.now, &mut buffer) else {
                    break;
                };
                let mut bytes = buffer[..sent.length].to_vec();
                assert_eq!(bytes.len() % 4, 0);
                self.packets += 1;
                let takes = self.nanos_per_4k * sent.length as u64 / 4096;
                let takes = Duration::from_nanos(takes.max(self.nanos_per_packet[from]));
                let start = self.free[from].max(self.now);
                self.free[from] = start + takes;
                let lost = !(self.tap)(from, &mut bytes) || self.rng.chance(faults.loss);
                if lost {
                    self.observe(from, Fate::Lost, &bytes);
                    continue;
                }
                let route = Route {
                    source: sent.route.destination,
                    destination: sent.route.source,
                    ..sent.route
                };
                let copies = 1 + usize::from(self.rng.chance(faults.double));
                for _ in 0..copies {
                    let mut arrives = start + takes + self.delay + self.up_to(faults.jitter);
                    if self.rng.chance(faults.late) {
                        arrives += self.up_to(faults.late_by);
                    }
                    let batches = self.batches.as_nanos() as u64;
                    let arrives = arrives.as_nanos().next_multiple_of(batches);
                    let arrives = Instant::from_nanos(arrives);
                    self.number += 1;
                    self.wire.insert((arrives, self.number), (1 - from, bytes.clone(), route));
                }
            }
        }
        self.buffer = buffer;
        resumes
    }

    /// Returns a random duration up to `bound`.
    fn up_to(&mut self, bound: Duration) -> Duration {
        if bound.is_zero() {
            return bound;
        }
        Duration::from_nanos(self.rng.next() % bound.as_nanos() as u64)
    }

    fn observe(&mut self, from: usize, fate: Fate, bytes: &[u8]) {
        if let Some(observer) = &mut self.observer {
            observer(from, fate, bytes);
        }
    }

    fn collect(&mut self) {
        for side in &mut self.sides {
            while let Some(wc) = side.hca.poll_cq(side.cq) {
                side.completions.push(wc);
            }
            while let Some(event) = side.hca.poll_event() {
                side.events.push(event);
            }
        }
    }

    /// Advances the time to the next event, and processes the event. Returns false if there is no further event.
    pub(crate) fn step(&mut self) -> bool {
        let resumes = self.transmit();
        self.collect();
        let arrival = self.wire.first_key_value().map(|((at, _), _)| *at);
        let due = self.sides.iter().filter_map(|side| side.hca.poll_timeout()).min();
        let Some(next) = arrival.into_iter().chain(due).chain(resumes).min() else { return false };
        self.now = self.now.max(next);
        for side in &mut self.sides {
            side.hca.handle_timeout(self.now);
        }
        while let Some(entry) = self.wire.first_entry()
            && entry.key().0 <= self.now
        {
            let (to, bytes, route) = entry.remove();
            self.observe(1 - to, Fate::Delivered, &bytes);
            self.sides[to].hca.handle(self.now, &route, &bytes);
        }
        self.collect();
        true
    }

    /// Runs until there is no further event.
    pub(crate) fn run(&mut self) {
        let end = self.now + Duration::from_secs(600);
        while self.step() {
            assert!(self.now < end, "the run has not ended after 600 s of virtual time");
        }
        self.collect();
    }

    /// Returns the completions of a side that have arrived since the last call.
    pub(crate) fn done(&mut self, side: usize) -> Vec<Wc> {
        std::mem::take(&mut self.sides[side].completions)
    }
}
