//! Measures the throughput of one thread that drives two HCAs and a simulated fabric with one
//! switch. The HCAs transfer WRITEs of 1 MiB in packets of 4096 bytes.
//!
//! The optional argument is the duration of the measurement in seconds.

#[expect(dead_code, reason = "the tests use more of it")]
#[path = "../tests/fabric/lab.rs"]
mod lab;

use std::io::Write;
use std::time::{Duration, Instant};

use ib_hca::SendOp;
use ib_sim::Options;
use ib_types::Mtu;

use lab::Lab;

/// Length of a WRITE in bytes.
const LENGTH: usize = 1 << 20;

/// Number of WRITEs in flight.
const DEPTH: usize = 4;

fn main() {
    let seconds = std::env::args().skip(1).find_map(|argument| argument.parse().ok());
    let time = Duration::from_secs_f64(seconds.unwrap_or(3.0));
    let options = Options { mtu_cap: Mtu::B4096, vl_buffer: 64 * 1024, ..Options::default() };
    let mut lab = Lab::new("xgft 2 1", options);
    let qps = lab.connect(0, 1);
    let (from, to) = (lab.region(0, LENGTH), lab.region(1, LENGTH));
    let data: Vec<u8> = (0..LENGTH).map(|at| (at / 4 + at) as u8).collect();
    from.memory.write(0, &data).expect("the data fits into the memory");
    let start = Instant::now();
    let (began, steps) = (lab.sim.now(), lab.sim.steps());
    let mut posted = 0;
    let mut done = 0;
    while start.elapsed() < time || done < posted {
        while posted < done + DEPTH && start.elapsed() < time {
            let write = SendOp::Write { to: to.remote(0), imm: None };
            lab.send(0, qps[0], posted as u64, write, from.data(0, LENGTH));
            posted += 1;
        }
        if posted > done {
            done += lab.next_done(0);
        }
    }
    let took = start.elapsed().as_secs_f64();
    assert!(to.bytes() == data, "the received data is corrupted");
    let bits = (done * LENGTH * 8) as f64;
    let simulated = (lab.sim.now() - began).as_secs_f64();
    let packets = (done * LENGTH / 4096) as f64;
    writeln!(
        std::io::stdout().lock(),
        "in process over the simulator, one switch: {:.1} Gbit/s, {:.0} ns and {:.1} events a packet; \
         in the fabric's time {:.1} Gbit/s; {} packets sent again",
        bits / took / 1e9,
        took / packets * 1e9,
        (lab.sim.steps() - steps) as f64 / packets,
        bits / simulated / 1e9,
        lab.retransmitted(0, qps[0]),
    )
    .expect("standard output is writable");
}
