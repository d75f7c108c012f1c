//! Measures the throughput of packets of 4096 bytes between two threads over the loopback device.
//! Compares RoCEv2 with ICRC, RoCEv2 without ICRC, and plain UDP datagrams with the same
//! segmentation offload.
//!
//! Then measures HCAs over the same device: the throughput of RDMA WRITE, the message rate, and the
//! latency. The latency of plain UDP is measured for comparison.
//!
//! The number of bytes in flight is limited, so that no packet is lost and the result depends on both
//! threads. The optional argument is the duration of each measurement in seconds.

mod rdma;

use std::hint::black_box;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ib_link::Route;
use ib_os::{clock, sockopt};
use ib_roce::{RoceOptions, RoceSocket};
use ib_types::Gid;

/// Length of the payload of a packet in bytes.
const PAYLOAD: usize = 4096;
/// Length of a packet in bytes: BTH and payload.
const PACKET: usize = PAYLOAD + 12;

/// Maximum number of payload bytes in flight.
const WINDOW: u64 = 1 << 20;

/// Size in bytes of the buffer whose contents are sent repeatedly. The buffer exceeds the first-level cache.
const REGION: usize = 1 << 20;

/// Number of round trips per measurement.
const ROUNDS: usize = 20_000;

/// Number of measurements of each variant. The variants take turns, so that other load on the machine affects all
/// variants alike.
const TURNS: u32 = 5;

fn main() {
    let seconds = std::env::args().skip(1).find_map(|argument| argument.parse().ok());
    let turn = Duration::from_secs_f64(seconds.unwrap_or(2.0)) / TURNS;
    let mut out = std::io::stdout().lock();
    for address in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
        let options = RoceOptions { port: 0, ..RoceOptions::new(address) };
        let without = RoceOptions { icrc: false, ..options.clone() };
        let single = RoceOptions { gso: false, gro: false, ..options.clone() };
        let mut rates = [0.0; 5];
        let (mut messages, mut latencies) = (0.0, [Vec::new(), Vec::new()]);
        for _ in 0..TURNS {
            rates[0] += plain(address, turn);
            rates[4] += rdma::write(address, turn);
            messages += rdma::messages(address, turn);
            latencies[0].push(rdma::plain_latency(address, ROUNDS));
            latencies[1].push(rdma::latency(address, ROUNDS));
            for (rate, options) in rates[1..].iter_mut().zip([&without, &options, &single]) {
                *rate += roce(options, turn);
            }
        }
        let what = [
            "plain",
            "RoCEv2 without ICRC",
            "RoCEv2",
            "RoCEv2, packet by packet",
            "RDMA WRITE of 1 MiB",
        ];
        for (what, rate) in what.into_iter().zip(rates) {
            let (rate, share) = (rate / f64::from(TURNS), rate / rates[0]);
            writeln!(out, "{address:<10} {what:<24} {rate:>7.2} Gbit/s {share:>6.2}")
                .expect("standard output is writable");
        }
        let messages = messages / f64::from(TURNS);
        let [plain, own] = latencies.map(|mut turns| {
            turns.sort_unstable_by(f64::total_cmp);
            turns[turns.len() / 2]
        });
        writeln!(
            out,
            "{address:<10} {messages:.0} messages of 64 bytes per second\n\
             {address:<10} a message of 64 bytes takes {own:.2} us, a plain datagram {plain:.2} us: ratio {:.2}",
            own / plain
        )
        .expect("standard output is writable");
    }
}

/// Runs a sender and a receiver in two threads. Returns the payload throughput in Gbit/s. Each call
/// of `send` returns the number of payload bytes sent, each call of `receive` the number received.
fn run(
    length: Duration,
    mut send: impl FnMut() -> u64 + Send,
    mut receive: impl FnMut() -> u64 + Send,
) -> f64 {
    let (arrived, done) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut sent = 0;
            while !done.load(Ordering::Relaxed) {
                if sent - arrived.load(Ordering::Acquire) < WINDOW {
                    sent += send();
                } else {
                    std::thread::yield_now();
                }
            }
        });
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                arrived.fetch_add(receive(), Ordering::Release);
            }
        });
        std::thread::sleep(length / 10);
        let (start, before) = (Instant::now(), arrived.load(Ordering::Acquire));
        std::thread::sleep(length);
        let bytes = arrived.load(Ordering::Acquire) - before;
        let rate = bytes as f64 * 8e-9 / start.elapsed().as_secs_f64();
        done.store(true, Ordering::Relaxed);
        rate
    })
}

fn roce(options: &RoceOptions, length: Duration) -> f64 {
    let (mut here, there) = (bind(options), bind(options));
    here.sender.set_peer_port(there.port());
    let gid = match options.address {
        IpAddr::V4(address) => Gid::from(address),
        IpAddr::V6(address) => Gid::from(address),
    };
    let route = Route { source: gid, destination: gid, is_global: true, ..Route::default() };
    let RoceSocket { mut sender, .. } = here;
    let RoceSocket { mut receiver, .. } = there;
    let region = vec![0x5a; REGION];
    let mut at = 0;
    let send = move || {
        let mut sent = 0;
        for _ in 0..30 {
            let payload = &region[at..at + PAYLOAD];
            at = (at + PAYLOAD) % REGION;
            let fill = |bytes: &mut [u8]| {
                bytes[..12].copy_from_slice(&[0x07, 0, 0xff, 0xff, 0, 0, 0, 17, 0, 0, 0, 1]);
                bytes[12..].copy_from_slice(payload);
            };
            if sender.push(&route, PACKET, fill).is_ok() {
                sent += PAYLOAD as u64;
            }
        }
        sender.flush();
        sent
    };
    let receive = move || {
        let mut arrived = 0;
        while let Some(packet) = receiver.receive().expect("no system call fails") {
            arrived += packet.bytes.len() as u64 - 12;
            black_box(packet.bytes);
        }
        if arrived == 0 {
            receiver
                .wait(clock::now() + Duration::from_millis(1), None)
                .expect("no system call fails");
        }
        arrived
    };
    run(length, send, receive)
}

fn bind(options: &RoceOptions) -> RoceSocket {
    RoceSocket::bind(options).expect("the loopback device exists")
}

/// Returns the payload throughput of plain UDP in Gbit/s. The datagrams are as long as RoCEv2 packets, but the
/// receiver does not parse them.
fn plain(address: IpAddr, length: Duration) -> f64 {
    const SEGMENT: usize = PACKET + 4;
    const SEGMENTS: usize = 15;
    let (here, there) = (
        UdpSocket::bind((address, 0)).expect("the loopback device exists"),
        UdpSocket::bind((address, 0)).expect("the loopback device exists"),
    );
    here.connect(there.local_addr().expect("the socket is bound"))
        .expect("the loopback address is reachable");
    there
        .set_read_timeout(Some(Duration::from_millis(1)))
        .expect("the socket accepts a read timeout");
    for (socket, level, name, value) in [
        (&here, libc::SOL_UDP, libc::UDP_SEGMENT, SEGMENT as i32),
        (&there, libc::SOL_UDP, libc::UDP_GRO, 1),
        (&there, libc::SOL_SOCKET, libc::SO_RCVBUF, 4 << 20),
    ] {
        sockopt::set(socket.as_fd(), level, name, value).expect("the kernel has this option");
    }
    let bytes = vec![0x5a; SEGMENT * SEGMENTS];
    let mut buffer = vec![0; 65_536];
    let payload = |length: usize| (length / SEGMENT * PAYLOAD) as u64;
    let send = move || here.send(&bytes).map_or(0, payload);
    let receive = move || there.recv(&mut buffer).map_or(0, payload);
    run(length, send, receive)
}
