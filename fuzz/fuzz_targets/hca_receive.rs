//! An HCA receives arbitrary packets, while the program that owns it posts requests and changes or destroys objects of
//! the HCA.
//!
//! Checks that memory without write access does not change, and that every work request completes exactly once. The
//! input is a list of events. An event consists of a byte for its kind, and of parameters.
#![no_main]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ib_fuzz::Input;
use ib_hca::{
    AccessFlags, AhId, CqId, Data, Hca, HcaConfig, MAX_PACKET, Memory, MrId, PdId, QpAttr, QpCap,
    QpId, QpInitAttr, QpState, QpType, RecvWr, Registration, RemoteAddress, SendFlags, SendOp,
    SendWr, Sge, UdDestination, Wc, WcStatus,
};
use ib_link::Route;
use ib_types::{Gid, Guid, Instant, Mtu, PKey, Psn, QKey, Qpn};
use ib_wire::packet::Bth;
use libfuzzer_sys::fuzz_target;

#[path = "hca_receive/peer.rs"]
mod peer;

/// A page of memory. Only its second quarter is registered.
struct Ground {
    memory: Arc<Memory>,
    mr: MrId,
    key: u32,
}

const PAGE: usize = 4096;
const QUARTER: usize = PAGE / 4;
const IOVA: u64 = 0xffff_ffff_ffff_0000;
const FILLING: u8 = 0x5a;

/// The access rights of each memory region. No packet contains the R_Key of the last region.
const RIGHTS: [AccessFlags; 4] =
    [AccessFlags::ALL, AccessFlags::REMOTE_READ, AccessFlags(0), AccessFlags::LOCAL_WRITE];

const TYPES: [QpType; 4] = [QpType::Rc, QpType::Rc, QpType::Uc, QpType::Ud];

const OWN: Gid = Gid(0xffff_0a00_0001);
const PEER: Gid = Gid(0xffff_0a00_0002);
const PEER_QPN: u32 = 0x77;
const PEER_Q_KEY: QKey = QKey(0x1111);
const FIRST: u32 = 0xff_fffa;

/// A queue pair and its PSNs, as far as the peer knows them.
struct Queue {
    id: QpId,
    number: Qpn,
    /// The PSN that the queue pair expects next, if it has accepted all packets.
    expected: Psn,
    sent: Psn,
}

struct World {
    now: Instant,
    hca: Hca,
    pd: PdId,
    cq: CqId,
    ah: AhId,
    grounds: [Ground; 4],
    fast: MrId,
    queues: Vec<Queue>,
    /// Outstanding work requests by `wr_id`: the queue pair, and the buffer length of a receive request in bytes.
    open: BTreeMap<u64, (QpId, Option<u64>)>,
    next: u64,
}

fn route() -> Route {
    Route { source: OWN, destination: PEER, is_global: true, ..Route::default() }
}

impl World {
    fn new(settings: u8) -> Self {
        let mut config = HcaConfig::new(Guid(1), vec![OWN]);
        config.window = 8 << (settings & 3);
        let mut hca = Hca::new(config, [settings; 32]);
        let pd = hca.alloc_pd().expect("the number of PDs is below the limit");
        let cq = hca.create_cq(1024).expect("the number of CQs is below the limit");
        let ah = hca.create_ah(pd, route()).expect("the route is valid");
        let grounds = RIGHTS.map(|access| {
            let memory = Memory::zeroed(PAGE).expect("a page can be allocated");
            memory.fill(0, PAGE, FILLING).expect("the range is in the page");
            let range = (&memory, QUARTER, QUARTER);
            let mr = hca.reg_mr(pd, range, IOVA, access).expect("the range is valid");
            Ground { key: hca.key(mr).expect("the region exists"), memory, mr }
        });
        let fast = hca.alloc_mr(pd).expect("the number of memory regions is below the limit");
        let (open, queues, now) = (BTreeMap::new(), Vec::new(), Instant::from_nanos(1000));
        let mut world = Self { now, hca, pd, cq, ah, grounds, fast, queues, open, next: 1 };
        for qp_type in TYPES {
            let queue = world.connect(qp_type);
            world.queues.push(queue);
        }
        world
    }

    fn connect(&mut self, qp_type: QpType) -> Queue {
        let cap = QpCap { max_send_wr: 16, max_recv_wr: 16, ..QpCap::default() };
        let (send_cq, recv_cq) = (self.cq, self.cq);
        let init = QpInitAttr { qp_type, send_cq, recv_cq, srq: None, cap };
        let id = self.hca.create_qp(self.pd, &init).expect("the number of QPs is below the limit");
        let (is_connected, is_reliable) = (qp_type != QpType::Ud, qp_type == QpType::Rc);
        let to = |state| QpAttr { qp_state: Some(state), ..QpAttr::default() };
        let init = QpAttr {
            pkey: Some(PKey::DEFAULT),
            qkey: (!is_connected).then_some(PEER_Q_KEY),
            qp_access_flags: is_connected.then_some(AccessFlags::ALL),
            ..to(QpState::Init)
        };
        let rtr = QpAttr {
            route: is_connected.then_some(route()),
            path_mtu: is_connected.then_some(Mtu::B256),
            dest_qp_num: is_connected.then_some(Qpn::truncated(PEER_QPN)),
            rq_psn: is_connected.then_some(Psn::truncated(FIRST)),
            max_dest_rd_atomic: is_reliable.then_some(2),
            min_rnr_timer: is_reliable.then_some(1),
            ..to(QpState::Rtr)
        };
        let rts = QpAttr {
            sq_psn: Some(Psn::truncated(FIRST)),
            timeout: is_reliable.then_some(1),
            retry_cnt: is_reliable.then_some(2),
            rnr_retry: is_reliable.then_some(2),
            max_rd_atomic: is_reliable.then_some(2),
            ..to(QpState::Rts)
        };
        for attr in [init, rtr, rts] {
            self.hca.modify_qp(self.now, id, &attr).expect("the state transition is valid");
        }
        let (number, ..) = self.hca.query_qp(id).expect("the queue pair exists");
        let first = Psn::truncated(FIRST);
        Queue { id, number, expected: first, sent: first }
    }

    /// Returns an SGE in the given memory region.
    fn sge(&self, ground: usize, input: &mut Input<'_>) -> Sge {
        let offset = input.below(QUARTER / 4) * 4;
        let length = usize::from(input.short()) % (QUARTER - offset + 1);
        let lkey = self.grounds[ground].key;
        Sge { addr: IOVA + offset as u64, length: length as u32, lkey }
    }

    fn data(&self, ground: usize, input: &mut Input<'_>) -> Data {
        match input.below(4) {
            0 => Data::None,
            1 => Data::Many((0..3).map(|_| self.sge(ground, input)).collect()),
            _ => Data::One(self.sge(ground, input)),
        }
    }

    fn send(&mut self, input: &mut Input<'_>) {
        let place = input.below(self.queues.len());
        let (kind, flags) = (input.byte(), input.byte());
        let imm = (kind & 0x80 != 0).then_some(7);
        let at = RemoteAddress { addr: 0x1000, rkey: 0x1234_5678 };
        let (ground, op) = match kind % 10 {
            0 => (1, SendOp::Send { imm }),
            1 => (2, SendOp::Write { to: at, imm }),
            2 => (0, SendOp::Read { from: at }),
            3 => (0, SendOp::FetchAdd { at, add: 1 }),
            4 => (0, SendOp::CompareSwap { at, compare: 1, swap: 2 }),
            5 => (1, SendOp::SendInvalidate { rkey: 0x1234_5678 }),
            6 => {
                let rkey = self.hca.key(self.fast).unwrap_or_default();
                (1, SendOp::LocalInvalidate { rkey })
            }
            7 => {
                let with = Registration {
                    mr: self.fast,
                    key: flags,
                    memory: Arc::clone(&self.grounds[0].memory),
                    offset: QUARTER,
                    length: QUARTER,
                    iova: IOVA,
                    access: AccessFlags::ALL,
                };
                (1, SendOp::Register(Box::new(with)))
            }
            _ => {
                let remote_qpn = Qpn::truncated(PEER_QPN);
                let to = UdDestination { ah: self.ah, remote_qpn, remote_qkey: PEER_Q_KEY };
                (1, SendOp::SendDatagram { to, imm })
            }
        };
        let data = match &op {
            SendOp::FetchAdd { .. } | SendOp::CompareSwap { .. } => {
                Data::One(Sge { length: 8, addr: IOVA, lkey: self.grounds[0].key })
            }
            SendOp::BindWindow(_) | SendOp::LocalInvalidate { .. } | SendOp::Register(_) => {
                Data::None
            }
            _ => self.data(ground, input),
        };
        let (solicited, fence) = (flags & 1 != 0, flags & 2 != 0);
        let flags = SendFlags { signaled: true, solicited, fence };
        let id = self.queues[place].id;
        if self.hca.post_send(self.now, id, SendWr { wr_id: self.next, op, data, flags }).is_ok() {
            self.open.insert(self.next, (id, None));
        }
        self.next += 1;
    }

    fn receive(&mut self, input: &mut Input<'_>) {
        let id = self.queues[input.below(self.queues.len())].id;
        let data = self.data(if input.byte() & 1 == 0 { 0 } else { 3 }, input);
        let length = data.length();
        if self.hca.post_recv(self.now, id, RecvWr { wr_id: self.next, data }).is_ok() {
            self.open.insert(self.next, (id, Some(length)));
        }
        self.next += 1;
    }

    /// Changes the state of a queue pair, or destroys and re-creates a queue pair, a memory region or the address
    /// handle.
    fn change(&mut self, input: &mut Input<'_>) {
        let place = input.below(self.queues.len());
        let id = self.queues[place].id;
        let state = |state| QpAttr { qp_state: Some(state), ..QpAttr::default() };
        match input.below(6) {
            0 => drop(self.hca.modify_qp(self.now, id, &state(QpState::Sqd))),
            1 => drop(self.hca.modify_qp(self.now, id, &state(QpState::Rts))),
            2 => drop(self.hca.modify_qp(self.now, id, &state(QpState::Err))),
            3 => {
                self.collect();
                self.hca.destroy_qp(id).expect("the queue pair exists");
                self.open.retain(|_, (owner, _)| *owner != id);
                self.queues[place] = self.connect(TYPES[place]);
            }
            4 => {
                let ground = &mut self.grounds[place];
                self.hca.dereg_mr(ground.mr).expect("the region exists");
                let range = (&ground.memory, QUARTER, QUARTER);
                let mr = self
                    .hca
                    .reg_mr(self.pd, range, IOVA, RIGHTS[place])
                    .expect("the range is valid");
                (ground.mr, ground.key) = (mr, self.hca.key(mr).expect("the region exists"));
            }
            _ => {
                self.hca.destroy_ah(self.ah).expect("the address handle exists");
                self.ah = self.hca.create_ah(self.pd, route()).expect("the route is valid");
            }
        }
    }

    /// Takes at most `most` packets from the HCA. Returns false if the HCA has no more packets to send.
    fn transmit(&mut self, most: usize, buffer: &mut [u8]) -> bool {
        for _ in 0..most {
            let Some(sent) = self.hca.poll_transmit(self.now, buffer) else { return false };
            assert!(sent.length <= MAX_PACKET && sent.length.is_multiple_of(4));
            assert_eq!((sent.route.source, sent.route.destination), (OWN, PEER));
            let bth = Bth::parse(buffer.first_chunk().expect("the packet has a BTH"));
            assert_eq!(bth.destination.get(), PEER_QPN);
            let operation = bth.opcode.0 & 0x1f;
            let service = bth.opcode.0 >> 5;
            if service != 0 || !(0x0d..=0x12).contains(&operation) {
                // A BTH does not contain the source QPN. So the PSN of a request is stored for all queue pairs of its
                // transport service.
                let of_service = |at: &usize| match TYPES[*at] {
                    QpType::Rc => service == 0,
                    QpType::Uc => service == 1,
                    QpType::Ud => service == 3,
                };
                for at in (0..TYPES.len()).filter(of_service) {
                    self.queues[at].sent = bth.psn;
                }
            }
        }
        true
    }

    fn collect(&mut self) {
        while let Some(wc) = self.hca.poll_cq(self.cq) {
            self.ended(&wc);
        }
        while self.hca.poll_event().is_some() {}
    }

    fn ended(&mut self, wc: &Wc) {
        let (id, received) = self.open.remove(&wc.wr_id).expect("the request was outstanding");
        if let Some((number, ..)) = self.hca.query_qp(id) {
            assert_eq!(number, wc.qp_num);
        }
        if let (Some(room), WcStatus::Success) = (received, wc.status) {
            let is_write = wc.opcode == ib_hca::WcOpcode::RecvRdmaWithImm;
            assert!(
                is_write || u64::from(wc.byte_len) <= room,
                "{wc:?} in a buffer of {room} bytes"
            );
        }
    }

    /// Checks that only bytes in memory regions with write access have changed.
    fn check(&self) {
        for (ground, rights) in self.grounds.iter().zip(RIGHTS) {
            let bytes = ground.memory.to_vec(0, PAGE).expect("the range is in the page");
            let is_open = rights.contains(AccessFlags::LOCAL_WRITE);
            let closed = |at: &usize| !is_open || !(QUARTER..2 * QUARTER).contains(at);
            let changed = (0..PAGE).filter(closed).find(|&at| bytes[at] != FILLING);
            assert_eq!(
                changed, None,
                "offset of a byte that changed in memory with rights {rights:?}"
            );
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let mut world = World::new(input.byte());
    let mut buffer = vec![0; MAX_PACKET];
    while !input.0.is_empty() {
        match input.below(16) {
            0..=7 => world.packet(&mut input),
            8 => {
                let length = input.below(80).min(input.0.len());
                let (raw, rest) = input.0.split_at(length);
                input.0 = rest;
                world.hca.handle(world.now, &route(), raw);
            }
            9..=10 => world.send(&mut input),
            11..=12 => world.receive(&mut input),
            13 => {
                world.now += Duration::from_nanos(1 << (input.byte() & 31));
                world.hca.handle_timeout(world.now);
            }
            14 => world.change(&mut input),
            _ => drop(world.transmit(input.below(40), &mut buffer)),
        }
        world.collect();
    }
    // In the SQD state, a queue pair starts no send requests. All send requests must complete, so this loop moves queue
    // pairs from SQD to RTS.
    for queue in 0..world.queues.len() {
        let attr = QpAttr { qp_state: Some(QpState::Rts), ..QpAttr::default() };
        let _ = world.hca.modify_qp(world.now, world.queues[queue].id, &attr);
    }
    for round in 0.. {
        assert!(round < 10_000, "timers expire indefinitely");
        assert!(!world.transmit(10_000, &mut buffer), "packets are sent indefinitely");
        world.collect();
        let Some(at) = world.hca.poll_timeout() else { break };
        world.now = world.now.max(at);
        world.hca.handle_timeout(world.now);
    }
    let sends = world.open.values().filter(|(_, received)| received.is_none()).count();
    assert_eq!(sends, 0, "number of send requests that did not complete");
    // Unused receive requests complete only when their queue pair enters the error state.
    let attr = QpAttr { qp_state: Some(QpState::Err), ..QpAttr::default() };
    for queue in 0..world.queues.len() {
        world
            .hca
            .modify_qp(world.now, world.queues[queue].id, &attr)
            .expect("the transition to the error state is valid");
    }
    world.collect();
    assert!(world.open.is_empty(), "some receive requests did not complete");
    world.check();
});
