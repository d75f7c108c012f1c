use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use ib_hca::{AccessFlags, Memory, QpInitAttr, QpType, SendFlags, SendOp, Sge};

use super::*;
use crate::{DeviceOptions, EndpointOptions};

const PORT: u16 = 7000;

struct DrivenHost {
    driver: Driver,
    qp: DrivenQp,
    cq: DrivenCq,
    memory: Arc<Memory>,
    key: u32,
}

impl DrivenHost {
    fn sge(&self, offset: usize, length: u32) -> Data {
        Data::One(Sge { addr: offset as u64, length, lkey: self.key })
    }

    fn send(&self, wr_id: u64, data: Data) -> SendWr {
        let flags = SendFlags { signaled: true, ..SendFlags::default() };
        let _ = self;
        SendWr { wr_id, op: SendOp::Send { imm: None }, data, flags }
    }
}

const LENGTH: usize = 1 << 20;

fn device() -> Device {
    let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let mut options = DeviceOptions::new(address);
    options.socket.port = 0;
    options.spin = Duration::from_micros(20);
    Device::open(options).expect("the loopback device exists")
}

/// Creates a protection domain, a CQ, a queue pair and memory. Brings the queue pair into state
/// `Init`.
fn made(mut device: Device, cap: QpCap) -> (Device, QpId, CqId, Arc<Memory>, u32) {
    let hca = device.hca();
    let pd = hca.alloc_pd().expect("the HCA has room");
    let cq = hca.create_cq(4096).expect("the HCA has room");
    let init = QpInitAttr { qp_type: QpType::Rc, send_cq: cq, recv_cq: cq, srq: None, cap };
    let qp = hca.create_qp(pd, &init).expect("the HCA has room");
    let memory = Memory::zeroed(LENGTH).expect("the system has memory");
    let mr = hca
        .reg_mr(pd, (&memory, 0, LENGTH), 0, AccessFlags::ALL)
        .expect("the range is in the memory");
    let key = hca.key(mr).expect("the memory region exists");
    device.prepare(qp, AccessFlags::ALL).expect("the queue pair is in state Reset");
    (device, qp, cq, memory, key)
}

/// Returns two connected HCAs, each with a driver thread.
fn pair(cap: QpCap) -> [DrivenHost; 2] {
    let (mut one, mut other) = (device(), device());
    one.set_peer_port(other.port());
    other.set_peer_port(one.port());
    other.listen(PORT).expect("the port is not in use");
    let (mut one, other) = (made(one, cap), made(other, cap));
    let server = std::thread::spawn(move || {
        let (mut device, qp, cq, memory, key) = other;
        let end = clock::now() + Duration::from_secs(10);
        loop {
            if !device.progress().expect("no system call fails") {
                device.wait(end, None).expect("no system call fails");
            }
            while let Some(event) = device.poll_event() {
                let Ok(request) = Device::request(event) else { continue };
                let options = EndpointOptions::default();
                device.accept(qp, &request, &options).expect("the queue pair is in state Init");
                return (device, qp, cq, memory, key);
            }
        }
    });
    let peer = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), PORT);
    one.0.connect(one.1, peer, &EndpointOptions::default()).expect("the server accepts");
    let other = server.join().expect("the server accepts");
    [one, other].map(|(device, qp, cq, memory, key)| {
        let driver = Driver::start(device).expect("the driver thread starts");
        let handle = driver.handle();
        let cq_handle = handle.completion_queue(cq, 64).expect("the driver runs");
        let qp = handle
            .queue_pair(qp, cap, [cq, cq])
            .expect("the driver runs")
            .expect("the queue pair exists");
        DrivenHost { driver, qp, cq: cq_handle, memory, key }
    })
}

const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn two_threads_send_and_receive_over_two_drivers() {
    const COUNT: u64 = 20_000;
    let cap = QpCap { max_send_wr: 64, max_recv_wr: 256, ..QpCap::default() };
    let [one, other] = pair(cap);
    let receiver = std::thread::spawn(move || {
        for wr_id in 0..256 {
            let data = other.sge(8 * wr_id as usize, 8);
            other.qp.post_recv(RecvWr { wr_id, data }).expect("the receive queue has room");
        }
        for number in 0..COUNT {
            let wc = other.cq.wait(PATIENCE).expect("the message arrives");
            assert_eq!((wc.status, wc.wr_id), (WcStatus::Success, number % 256));
            let place = 8 * (number % 256) as usize;
            let found = other.memory.to_vec(place, 8).expect("the range is in the memory");
            assert_eq!(found, number.to_le_bytes());
            let wr = RecvWr { wr_id: number % 256, data: other.sge(place, 8) };
            while other.qp.post_recv(wr.clone()).is_err() {
                std::thread::yield_now();
            }
        }
        other
    });
    let (mut posted, mut done) = (0, 0);
    while done < COUNT {
        while posted < COUNT {
            let data = Data::Inline(posted.to_le_bytes().into());
            match one.qp.post_send(one.send(posted, data)) {
                Ok(()) => posted += 1,
                Err(error) => {
                    assert_eq!(error, PostError::Full(64));
                    break;
                }
            }
        }
        while let Some(wc) = one.cq.poll() {
            assert_eq!((wc.status, wc.wr_id), (WcStatus::Success, done));
            done += 1;
        }
    }
    let other = receiver.join().expect("all messages arrive");
    one.driver.stop().expect("no system call fails");
    other.driver.stop().expect("no system call fails");
}

#[test]
fn protection_error_completes_the_request() {
    let [one, other] = pair(QpCap::default());
    let wrong = Data::One(Sge { addr: LENGTH as u64, length: 1, lkey: one.key });
    one.qp.post_send(one.send(7, wrong)).expect("the queue has room");
    let wc = one.cq.wait(PATIENCE).expect("the request completes");
    assert_eq!((wc.wr_id, wc.status), (7, WcStatus::LocProtErr));
    one.qp.post_send(one.send(8, Data::None)).expect("the queue has room");
    let wc = one.cq.wait(PATIENCE).expect("the request completes");
    assert_eq!((wc.wr_id, wc.status), (8, WcStatus::WrFlushErr));
    // No further completion arrives, so `wait` returns when its timeout expires.
    assert_eq!(one.cq.wait(Duration::from_millis(5)), None);
    let many = Data::Many(vec![Sge::default(); 5].into());
    let refused = one.qp.post_send(one.send(9, many));
    assert_eq!(refused, Err(PostError::TooManySges { found: 5, most: 4 }));
    drop(other);
    let handle = one.driver.handle();
    drop(one);
    assert_eq!(handle.with(|device| device.port()), Err(Stopped));
}

#[test]
fn closures_and_stop_reach_a_driver_about_to_sleep() {
    for _ in 0..300 {
        let mut options = DeviceOptions::new(IpAddr::V4(Ipv4Addr::LOCALHOST));
        options.socket.port = 0;
        let driver = Driver::start(Device::open(options).expect("the loopback device exists"))
            .expect("the driver thread starts");
        let handle = driver.handle();
        for _ in 0..20 {
            assert!(handle.with(|device| device.port()).expect("the driver runs") > 0);
        }
        driver.stop().expect("no system call fails");
        assert_eq!(handle.with(|device| device.port()), Err(Stopped));
    }
}
