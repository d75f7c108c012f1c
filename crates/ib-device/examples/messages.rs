//! Sends messages between two HCAs on the loopback device. One thread drives both. The arguments
//! are the size of a message in bytes, and the number of messages.
//!
//! The example serves to count instructions: `valgrind --tool=callgrind target/release/examples/messages 4096 20000`.
//! If a third argument is given, the packets of the sending queue pair are traced. The argument is the number of
//! payload bytes that the trace records of each message.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use ib_device::{Device, DeviceOptions, EndpointOptions};
use ib_hca::trace::PacketTrace;
use ib_hca::{
    AccessFlags, CqId, Data, Memory, QpCap, QpId, QpInitAttr, QpType, RemoteAddress, SendFlags,
    SendOp, SendWr, Sge, WcStatus,
};
use ib_os::clock;

const PORT: u16 = 7002;
const MOST: u64 = 16;

struct Host {
    device: Device,
    qp: QpId,
    cq: CqId,
    key: u32,
    _memory: Arc<Memory>,
}

fn end(length: usize) -> Host {
    let mut options = DeviceOptions::new(IpAddr::V4(Ipv4Addr::LOCALHOST));
    options.socket.port = 0;
    options.seed = Some([7; 32]);
    let mut device = Device::open(options).expect("the loopback device exists");
    let hca = device.hca();
    let pd = hca.alloc_pd().expect("the HCA has room");
    let cq = hca.create_cq(1 << 10).expect("the HCA has room");
    let cap = QpCap { max_send_wr: 64, max_recv_wr: 64, ..QpCap::default() };
    let init = QpInitAttr { qp_type: QpType::Rc, send_cq: cq, recv_cq: cq, srq: None, cap };
    let qp = hca.create_qp(pd, &init).expect("the HCA has room");
    let memory = Memory::zeroed(length).expect("the system has memory");
    let mr = hca
        .reg_mr(pd, (&memory, 0, length), 0, AccessFlags::ALL)
        .expect("the range is in the memory");
    let key = hca.key(mr).expect("the memory region exists");
    device.prepare(qp, AccessFlags::ALL).expect("the queue pair is in state Reset");
    Host { device, qp, cq, key, _memory: memory }
}

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|argument| argument.parse::<u64>().ok());
    let (Some(size), Some(count)) = (numbers.next(), numbers.next()) else {
        panic!("expected the size of a message in bytes, and the number of messages");
    };
    let [mut one, mut other] = [end(size as usize), end(size as usize)];
    one.device.set_peer_port(other.device.port());
    other.device.set_peer_port(one.device.port());
    other.device.listen(PORT).expect("the port is not in use");
    let server = std::thread::spawn(move || {
        loop {
            other.device.progress().expect("no system call fails");
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
    let peer = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), PORT);
    one.device.connect(one.qp, peer, &EndpointOptions::default()).expect("the server accepts");
    let mut other = server.join().expect("the server accepts");
    let _kept = numbers.next().map(|payload| {
        let payload = payload.try_into().expect("a trace records at most 4096 payload bytes");
        let options = PacketTrace { payload, ..PacketTrace::default() };
        one.device.hca().trace_packets(one.qp, options).expect("the queue pair has no trace yet")
    });
    let to = RemoteAddress { addr: 0, rkey: other.key };
    let flags = SendFlags { signaled: true, ..SendFlags::default() };
    let (mut posted, mut done) = (0, 0);
    while done < count {
        while posted < count && posted - done < MOST {
            let data = Data::One(Sge { addr: 0, length: size as u32, lkey: one.key });
            let wr = SendWr { wr_id: posted, op: SendOp::Write { to, imm: None }, data, flags };
            one.device.hca().post_send(clock::now(), one.qp, wr).expect("the send queue has room");
            posted += 1;
        }
        one.device.progress().expect("no system call fails");
        other.device.progress().expect("no system call fails");
        while let Some(wc) = one.device.hca().poll_cq(one.cq) {
            assert_eq!(wc.status, WcStatus::Success);
            done += 1;
        }
    }
}
