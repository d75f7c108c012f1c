//! Benchmark of the HCA engine: two HCAs exchange packets in memory, without a link.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ib_hca::trace::{PacketReader, PacketTrace};
use ib_hca::{
    AccessFlags, CqId, Data, Hca, HcaConfig, MAX_PACKET, Memory, PdId, QpCap, QpConnection, QpId,
    QpInitAttr, QpType, RecvWr, RemoteAddress, SendFlags, SendOp, SendWr, Sge,
};
use ib_link::Route;
use ib_types::{Gid, Guid, Instant, Mtu, PKey, Psn};

const LENGTH: usize = 1 << 20;
const NOW: Instant = Instant::from_nanos(1);

struct Side {
    hca: Hca,
    cq: CqId,
    qp: QpId,
    sge: Sge,
    _memory: Arc<Memory>,
}

fn route(number: u128) -> Route {
    let gid = |number| Gid(0xffff_0a00_0001 + number);
    let (source, destination) = (gid(number), gid(1 - number));
    Route { source, destination, is_global: true, ..Route::default() }
}

fn side(number: u128) -> (Side, PdId) {
    let config = HcaConfig::new(Guid(number as u64 + 1), vec![route(number).source]);
    let mut hca = Hca::new(config, [number as u8; 32]);
    let pd = hca.alloc_pd().expect("the HCA has no protection domain yet");
    let cq = hca.create_cq(1024).expect("the HCA has no CQ yet");
    let cap = QpCap { max_send_wr: 256, max_recv_wr: 256, ..QpCap::default() };
    let init = QpInitAttr { qp_type: QpType::Rc, send_cq: cq, recv_cq: cq, srq: None, cap };
    let qp = hca.create_qp(pd, &init).expect("the HCA has no queue pair yet");
    let memory = Memory::zeroed(LENGTH).expect("the system has 1 MiB of memory");
    let mr = hca
        .reg_mr(pd, (&memory, 0, LENGTH), 0, AccessFlags::ALL)
        .expect("the range is within the memory");
    let sge = Sge {
        addr: 0,
        length: LENGTH as u32,
        lkey: hca.key(mr).expect("the region is registered"),
    };
    (Side { hca, cq, qp, sge, _memory: memory }, pd)
}

fn pair() -> [Side; 2] {
    let mut sides = [side(0).0, side(1).0];
    let numbers = [0, 1]
        .map(|at: usize| sides[at].hca.query_qp(sides[at].qp).expect("the queue pair exists").0);
    for at in [0, 1] {
        let connection = QpConnection {
            pkey: PKey::DEFAULT,
            access: AccessFlags::ALL,
            route: route(at as u128),
            path_mtu: Mtu::B4096,
            dest_qp_num: numbers[1 - at],
            rq_psn: Psn::truncated(5),
            sq_psn: Psn::truncated(5),
            max_dest_rd_atomic: 4,
            max_rd_atomic: 4,
            min_rnr_timer: 1,
            timeout: 14,
            retry_cnt: 7,
            rnr_retry: 7,
        };
        for attr in [connection.to_init(), connection.to_rtr(), connection.to_rts()] {
            let Side { hca, qp, .. } = &mut sides[at];
            hca.modify_qp(NOW, *qp, &attr).expect("the transition is valid");
        }
    }
    sides
}

/// Exchanges packets until neither HCA has a packet to send.
fn exchange(sides: &mut [Side; 2], buffer: &mut [u8]) {
    loop {
        let mut moved = false;
        for from in [0, 1] {
            for _ in 0..32 {
                let Some(sent) = sides[from].hca.poll_transmit(NOW, buffer) else { break };
                let back = route(1 - from as u128);
                sides[1 - from].hca.handle(NOW, &back, &buffer[..sent.length]);
                moved = true;
            }
        }
        if !moved {
            return;
        }
    }
}

/// Traces the packets of side 0, and records `payload` payload bytes of each packet. If `payload` is `None`, no trace
/// is started.
fn trace(sides: &mut [Side; 2], payload: Option<u16>) -> Option<PacketReader> {
    let Side { hca, qp, .. } = &mut sides[0];
    let trace = PacketTrace { payload: payload?, ring_bytes: 1 << 22, ..PacketTrace::default() };
    Some(hca.trace_packets(*qp, trace).expect("the queue pair is not traced"))
}

/// For each variant of a benchmark: recorded payload bytes per packet (`None` for no trace), and the suffix of its
/// name.
const TRACES: [(Option<u16>, &str); 4] = [
    (None, ""),
    (Some(0), ", headers kept"),
    (Some(64), ", 64 bytes kept"),
    (Some(4096), ", all kept"),
];

fn bench(criterion: &mut Criterion) {
    for (payload, name) in TRACES {
        bench_traced(criterion, payload, name);
    }
}

fn bench_traced(criterion: &mut Criterion, payload: Option<u16>, name: &str) {
    let mut buffer = vec![0; MAX_PACKET];
    let flags = SendFlags { signaled: true, ..SendFlags::default() };

    let mut group = criterion.benchmark_group("engine");
    let mut sides = pair();
    let _reader = trace(&mut sides, payload);
    let to = RemoteAddress { addr: 0, rkey: sides[1].sge.lkey };
    group.throughput(Throughput::Bytes(LENGTH as u64));
    group.bench_function(format!("write 1 MiB, MTU 4096{name}"), |bencher| {
        bencher.iter(|| {
            let Side { hca, qp, sge, .. } = &mut sides[0];
            let op = SendOp::Write { to, imm: None };
            let wr = SendWr { wr_id: 1, op, data: Data::One(*sge), flags };
            hca.post_send(NOW, *qp, wr).expect("the send queue has room");
            exchange(&mut sides, &mut buffer);
            let Side { hca, cq, .. } = &mut sides[0];
            black_box(hca.poll_cq(*cq).expect("the request has completed"));
        });
    });

    let mut sides = pair();
    let _reader = trace(&mut sides, payload);
    const MESSAGES: u64 = 128;
    group.throughput(Throughput::Elements(MESSAGES));
    group.bench_function(format!("send 64 bytes{name}"), |bencher| {
        bencher.iter(|| {
            for wr_id in 0..MESSAGES {
                let [near, far] = &mut sides;
                let piece = |sge: &Sge| Data::One(Sge { length: 64, ..*sge });
                let wr = RecvWr { wr_id, data: piece(&far.sge) };
                far.hca.post_recv(NOW, far.qp, wr).expect("the receive queue has room");
                let flags = SendFlags { signaled: wr_id + 1 == MESSAGES, ..flags };
                let (op, data) = (SendOp::Send { imm: None }, piece(&near.sge));
                let wr = SendWr { wr_id, op, data, flags };
                near.hca.post_send(NOW, near.qp, wr).expect("the send queue has room");
            }
            exchange(&mut sides, &mut buffer);
            let [near, far] = &mut sides;
            black_box(
                near.hca.poll_cq(near.cq).expect("the last send is signaled and has completed"),
            );
            while far.hca.poll_cq(far.cq).is_some() {}
        });
    });
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
