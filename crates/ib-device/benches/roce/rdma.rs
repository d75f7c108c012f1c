//! Measures throughput, message rate and latency of HCAs over the loopback device, and the latency of
//! plain UDP for comparison. Each HCA and each UDP socket has a polling thread.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ib_device::{Device, DeviceOptions, EndpointOptions};
use ib_hca::{
    AccessFlags, CqId, Data, Memory, QpCap, QpId, QpInitAttr, QpType, RecvWr, RemoteAddress,
    SendFlags, SendOp, SendWr, Sge, WcOpcode, WcStatus,
};
use ib_os::clock;

/// Length of a long message in bytes.
const LONG: usize = 1 << 20;
/// Length of a short message in bytes.
const SHORT: usize = 64;

/// Maximum number of long messages in flight.
const LONGS: u64 = 8;
/// Maximum number of short messages in flight.
const SHORTS: u64 = 256;

const PORT: u16 = 7001;

/// One end of a connection.
struct Host {
    device: Device,
    qp: QpId,
    cq: CqId,
    memory: Arc<Memory>,
    key: u32,
}

impl Host {
    fn new(address: IpAddr) -> Self {
        let mut options = DeviceOptions::new(address);
        options.socket.port = 0;
        let mut device = Device::open(options).expect("the loopback device exists");
        let hca = device.hca();
        let pd = hca.alloc_pd().expect("the HCA has room");
        let cq = hca.create_cq(1 << 16).expect("the HCA has room");
        let cap = QpCap { max_send_wr: 1024, max_recv_wr: 1024, ..QpCap::default() };
        let init = QpInitAttr { qp_type: QpType::Rc, send_cq: cq, recv_cq: cq, srq: None, cap };
        let qp = hca.create_qp(pd, &init).expect("the HCA has room");
        let memory = Memory::zeroed(LONG).expect("the system has memory");
        let mr = hca
            .reg_mr(pd, (&memory, 0, LONG), 0, AccessFlags::ALL)
            .expect("the range is in the memory");
        let key = hca.key(mr).expect("the memory region exists");
        device.prepare(qp, AccessFlags::ALL).expect("the queue pair is in state Reset");
        Self { device, qp, cq, memory, key }
    }

    fn data(&self, length: usize) -> Data {
        Data::One(Sge { addr: 0, length: length as u32, lkey: self.key })
    }

    fn post(&mut self, op: SendOp, length: usize, signaled: bool) {
        let flags = SendFlags { signaled, ..SendFlags::default() };
        let wr = SendWr { wr_id: 0, op, data: self.data(length), flags };
        self.device.hca().post_send(clock::now(), self.qp, wr).expect("the send queue has room");
    }

    fn receive(&mut self) {
        let wr = RecvWr { wr_id: 0, data: self.data(SHORT) };
        self.device.hca().post_recv(clock::now(), self.qp, wr).expect("the receive queue has room");
    }

    /// Processes packets. Returns the number of completed sends and receives.
    fn poll(&mut self) -> (u64, u64) {
        if !self.device.progress().expect("no system call fails") {
            std::hint::spin_loop();
        }
        let (mut sent, mut received) = (0, 0);
        while let Some(wc) = self.device.hca().poll_cq(self.cq) {
            assert_eq!(wc.status, WcStatus::Success);
            *(if wc.opcode == WcOpcode::Recv { &mut received } else { &mut sent }) += 1;
        }
        (sent, received)
    }
}

/// Returns two connected hosts. The second host has posted as many receives as its receive queue holds.
fn pair(address: IpAddr) -> [Host; 2] {
    let (mut one, mut other) = (Host::new(address), Host::new(address));
    one.device.set_peer_port(other.device.port());
    other.device.set_peer_port(one.device.port());
    other.device.listen(PORT).expect("the port is not in use");
    for _ in 0..1024 {
        other.receive();
    }
    let server = std::thread::spawn(move || {
        loop {
            other.poll();
            while let Some(event) = other.device.poll_event() {
                if let Ok(request) = Device::request(event) {
                    let options = EndpointOptions::default();
                    other
                        .device
                        .accept(other.qp, &request, &options)
                        .expect("the queue pair is in state Init");
                    return other;
                }
            }
        }
    });
    let peer = SocketAddr::new(address, PORT);
    one.device.connect(one.qp, peer, &EndpointOptions::default()).expect("the server accepts");
    [one, server.join().expect("the server thread does not panic")]
}

/// Runs `main` in this thread, and returns its result. Meanwhile, another thread repeatedly calls `work` with the host
/// `other`.
fn beside<T>(other: &mut Host, work: impl Fn(&mut Host) + Sync, main: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                work(other);
            }
        });
        let result = main();
        done.store(true, Ordering::Relaxed);
        result
    })
}

/// Returns the throughput of RDMA WRITEs of 1 MiB each, in Gbit/s.
pub(crate) fn write(address: IpAddr, length: Duration) -> f64 {
    let [mut one, mut other] = pair(address);
    let to = RemoteAddress { addr: 0, rkey: other.key };
    beside(
        &mut other,
        |end| {
            end.poll();
        },
        || {
            let (start, mut under_way, mut done) = (Instant::now(), 0, 0);
            while start.elapsed() < length {
                while under_way < LONGS {
                    one.post(SendOp::Write { to, imm: None }, LONG, true);
                    under_way += 1;
                }
                let (sent, _) = one.poll();
                (under_way, done) = (under_way - sent, done + sent);
            }
            (done * LONG as u64) as f64 * 8e-9 / start.elapsed().as_secs_f64()
        },
    )
}

/// Returns the number of messages of 64 bytes per second.
pub(crate) fn messages(address: IpAddr, length: Duration) -> f64 {
    let [mut one, mut other] = pair(address);
    let receive = |end: &mut Host| {
        let (_, received) = end.poll();
        for _ in 0..received {
            end.receive();
        }
    };
    beside(&mut other, receive, || {
        let (start, mut posted, mut done) = (Instant::now(), 0, 0);
        while start.elapsed() < length {
            while posted - done < SHORTS {
                posted += 1;
                // Every 32nd send is signaled, so each completion stands for 32 sends.
                one.post(SendOp::Send { imm: None }, SHORT, posted % 32 == 0);
            }
            done += 32 * one.poll().0;
        }
        done as f64 / start.elapsed().as_secs_f64()
    })
}

/// Returns half the median round-trip time of messages of 64 bytes, in microseconds.
pub(crate) fn latency(address: IpAddr, rounds: usize) -> f64 {
    let [mut one, mut other] = pair(address);
    let answer = |end: &mut Host| {
        let (_, received) = end.poll();
        for _ in 0..received {
            end.receive();
            end.post(SendOp::Send { imm: None }, SHORT, true);
        }
    };
    beside(&mut other, answer, || {
        one.memory.fill(0, SHORT, 1).expect("the range is in the memory");
        median(rounds, || {
            one.receive();
            one.post(SendOp::Send { imm: None }, SHORT, true);
            while one.poll().1 == 0 {}
        })
    })
}

/// Returns half the median round-trip time of plain UDP datagrams of 64 bytes, in microseconds. Both
/// sockets are polled without blocking.
pub(crate) fn plain_latency(address: IpAddr, rounds: usize) -> f64 {
    let bind = || {
        let socket = UdpSocket::bind((address, 0)).expect("the loopback device exists");
        socket.set_nonblocking(true).expect("the socket supports non-blocking mode");
        socket
    };
    let (one, other) = (bind(), bind());
    one.connect(other.local_addr().expect("the socket is bound"))
        .expect("the loopback address is reachable");
    other
        .connect(one.local_addr().expect("the socket is bound"))
        .expect("the loopback address is reachable");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut bytes = [0; 128];
            while !done.load(Ordering::Relaxed) {
                if let Ok(length) = other.recv(&mut bytes) {
                    other.send(&bytes[..length]).expect("the socket has room");
                }
            }
        });
        let mut bytes = [0; 128];
        let result = median(rounds, || {
            one.send(&[1; SHORT]).expect("the socket has room");
            while one.recv(&mut bytes).is_err() {
                std::hint::spin_loop();
            }
        });
        done.store(true, Ordering::Relaxed);
        result
    })
}

/// Returns half the median of the round-trip times, in microseconds.
fn median(rounds: usize, mut round: impl FnMut()) -> f64 {
    let mut samples: Vec<f64> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            round();
            start.elapsed().as_secs_f64() * 1e6 / 2.0
        })
        .collect();
    samples.sort_unstable_by(f64::total_cmp);
    samples[samples.len() / 2]
}
