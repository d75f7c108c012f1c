//! `rdma bw` and `rdma lat`.
//!
//! The private data of the connection request specifies the measurement. The private data of the reply contains
//! the address and rkey of the server's buffer.

use std::io::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant as WallClock};

use hdrhistogram::Histogram;
use ib_device::{Endpoint, EndpointOptions};
use ib_hca::{AccessFlags, Data, RemoteAddress, SendOp, WcOpcode};
use ib_os::clock;
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use super::perftest::client::{Control, Rates};
use super::stage::{Buffer, Stage, checked};
use crate::cli::rdma::{OpArg, PERFTEST_PORT, PORT, PerfArgs, PerftestArg};
use crate::failure::{Failure, Verdict};
use crate::output::Output;
pub(super) use offer::{Answer, Kind, Offer};

mod offer;

/// If the other end does not respond for this time, the measurement fails.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(20);

/// The result of a measurement; field names are JSON keys.
#[derive(Serialize, JsonSchema)]
struct Report {
    peer: String,
    op: &'static str,
    size: u64,
    iters: u64,
    qps: u32,
    mtu: usize,
    seconds: f64,
    gbit_per_s: f64,
    messages_per_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_us: Option<Latency>,
    retransmits: u64,
    icrc_errors: u64,
}

/// Latencies in microseconds: half of the round trip, for READs the whole round trip. Field names are JSON
/// keys.
#[derive(Serialize, JsonSchema)]
struct Latency {
    min: f64,
    p50: f64,
    p99: f64,
    max: f64,
}

/// A histogram of round-trip times with three significant digits. Its size does not depend on the number of
/// recorded times.
struct Latencies(Histogram<u64>);

impl Latencies {
    fn new() -> Self {
        // The upper bound of 120 s exceeds the response timeout. A longer time, such as after SIGSTOP, is recorded as
        // the upper bound. The buckets take about 200 KiB.
        Self(Histogram::new_with_max(120_000_000_000, 3).expect("the bounds are valid"))
    }

    fn record(&mut self, time: Duration) {
        self.0.saturating_record(time.as_nanos() as u64);
    }

    /// Returns the minimum, percentiles and maximum of the recorded times in microseconds, each divided by `divisor`.
    fn summary(&self, divisor: f64) -> Latency {
        let in_us = |nanoseconds: u64| nanoseconds as f64 / 1e3 / divisor;
        Latency {
            min: in_us(self.0.min()),
            p50: in_us(self.0.value_at_quantile(0.5)),
            p99: in_us(self.0.value_at_quantile(0.99)),
            max: in_us(self.0.max()),
        }
    }
}

/// A client that measures, with its connections to the server.
struct Client {
    stage: Stage,
    buffer: Buffer,
    size: usize,
    peer: SocketAddr,
    connected: Vec<(Endpoint, RemoteAddress)>,
    /// The control connection to a program of perftest.
    control: Option<Control>,
}

impl Client {
    /// Connects to a server. `program` is the perftest program that performs the measurement of `args`, if any.
    fn connect(
        args: &PerfArgs,
        kind: Kind,
        program: Option<PerftestArg>,
        size: usize,
    ) -> Result<Self, Failure> {
        if args.perftest {
            let program = program.ok_or_else(|| {
                let op = op_name(args.op);
                let expected = "with --perftest, expected --op send, write or read";
                Failure::Unusable(format!("--op {op}: {expected}"))
            })?;
            return Self::connect_perftest(args, program, size);
        }
        let (mut stage, peer) = Stage::open_many(&args.adapter, &args.local, &args.peer, args.qp)?;
        let buffer = stage.buffer(2 * size.max(1))?;
        let offer = Offer { kind, size: size as u32, remote: buffer.remote() };
        let options = EndpointOptions {
            private_data: offer.to_bytes(),
            mtu: args.adapter.transport.mtu,
            ..EndpointOptions::default()
        };
        let peer = SocketAddr::new(peer, args.port.unwrap_or(PORT));
        let mut this = Self { stage, buffer, size, peer, connected: Vec::new(), control: None };
        for _ in 0..args.qp {
            let qp = this.stage.queue_pair(args.tx_depth.max(2), 4)?;
            this.stage.device.prepare(qp, AccessFlags::ALL).map_err(Failure::unusable)?;
            let endpoint =
                this.stage.device.connect(qp, peer, &options).map_err(Failure::unusable)?;
            let answer = Answer::parse(&endpoint.private_data, peer)?;
            this.connected.push((endpoint, answer.remote));
        }
        this.end_in_order()?;
        Ok(this)
    }

    /// Connects to a program of perftest.
    fn connect_perftest(
        args: &PerfArgs,
        program: PerftestArg,
        size: usize,
    ) -> Result<Self, Failure> {
        let (mut stage, peer) = Stage::open_many(&args.adapter, &args.local, &args.peer, args.qp)?;
        let buffer = stage.buffer(2 * size.max(1))?;
        let options =
            EndpointOptions { mtu: args.adapter.transport.mtu, ..EndpointOptions::default() };
        let peer = SocketAddr::new(peer, args.port.unwrap_or(PERFTEST_PORT));
        let control = Control::open(&mut stage, program, peer, options)?;
        let mut endpoints = Vec::new();
        for _ in 0..args.qp {
            let qp = stage.queue_pair(args.tx_depth.max(2), 4)?;
            stage.device.prepare(qp, AccessFlags::ALL).map_err(Failure::unusable)?;
            endpoints.push(control.connect(&mut stage, qp)?);
        }
        let RemoteAddress { addr, rkey } = buffer.remote();
        let own = RemoteAddress { addr: addr + size as u64, rkey };
        let remotes = control.meet(&mut stage, &endpoints, own)?;
        let connected = endpoints.into_iter().zip(remotes).collect();
        let mut this = Self { stage, buffer, size, peer, connected, control: Some(control) };
        this.end_in_order()?;
        Ok(this)
    }

    /// Reports the result to a program of perftest.
    fn part(&mut self, report: &Report) -> Result<(), Failure> {
        let Some(control) = &self.control else { return Ok(()) };
        let rates = Rates {
            size: report.size,
            iters: report.iters,
            peak: 0.0,
            average: report.messages_per_s * report.size as f64 / f64::from(1 << 20),
            messages: report.messages_per_s / 1e6,
        };
        control.part(&mut self.stage, &rates)
    }

    fn disconnect(&mut self) -> Result<(), Failure> {
        let control = self.control.iter().map(|control| &control.endpoint);
        for endpoint in self.connected.iter().map(|(endpoint, _)| endpoint).chain(control) {
            let ended = self.stage.device.disconnect(endpoint, Duration::from_secs(2));
            ended.map_err(Failure::unusable)?;
        }
        Ok(())
    }

    /// Makes the client disconnect from the server when it exits, also after an error or a signal.
    fn end_in_order(&mut self) -> Result<(), Failure> {
        let control = self.control.iter().map(|control| &control.endpoint);
        let endpoints = self.connected.iter().map(|(endpoint, _)| endpoint).chain(control);
        let connections = endpoints.map(|endpoint| endpoint.connection).collect();
        self.stage.end_in_order(connections)
    }

    /// Returns the operation of the work request with the given number, counted from 1.
    fn op(args: &PerfArgs, to: RemoteAddress, number: u64) -> SendOp {
        match args.op {
            OpArg::Send => SendOp::Send { imm: None },
            OpArg::Write => SendOp::Write { to, imm: None },
            OpArg::WriteImm => SendOp::Write { to, imm: Some(number as u32) },
            OpArg::Read => SendOp::Read { from: to },
            OpArg::FetchAdd => SendOp::FetchAdd { at: to, add: 1 },
            OpArg::CompareSwap => SendOp::CompareSwap { at: to, compare: number - 1, swap: number },
        }
    }

    /// Checks the original value that the last atomic operation returned, which has to equal the number of
    /// preceding operations. With several queue pairs the value varies and is not checked.
    fn check_atomics(&self, args: &PerfArgs) -> Result<(), Failure> {
        if !args.op.is_atomic() || args.qp != 1 {
            return Ok(());
        }
        let word = self.buffer.memory.to_vec(0, 8).expect("the range is within the region");
        let found = u64::from_ne_bytes(word.try_into().expect("the word has 8 bytes"));
        let expected = args.iters - 1;
        if found == expected {
            return Ok(());
        }
        let peer = self.peer;
        Err(Failure::Unusable(format!(
            "{peer}: the last atomic operation returned {found}, expected {expected}"
        )))
    }

    fn report(&mut self, args: &PerfArgs, seconds: f64) -> Report {
        let (size, qps) = (self.size as u64, args.qp);
        let messages = (args.iters * u64::from(qps)) as f64;
        Report {
            peer: self.peer.to_string(),
            op: op_name(args.op),
            size,
            iters: args.iters,
            qps,
            mtu: self.connected[0].0.mtu.bytes(),
            seconds,
            gbit_per_s: messages * size as f64 * 8.0 / seconds / 1e9,
            messages_per_s: messages / seconds,
            latency_us: None,
            retransmits: self.stage.device.hca().counters().retransmitted,
            icrc_errors: self.stage.device.link_counters().icrc_errors,
        }
    }
}

/// Returns the name of an operation as a value of `--op`.
const fn op_name(op: OpArg) -> &'static str {
    match op {
        OpArg::Send => "send",
        OpArg::Write => "write",
        OpArg::Read => "read",
        OpArg::WriteImm => "write-imm",
        OpArg::FetchAdd => "fetch-add",
        OpArg::CompareSwap => "compare-swap",
    }
}

pub(super) fn bandwidth(args: &PerfArgs, out: &mut Output) -> Result<Verdict, Failure> {
    let size = match args.size {
        Some(size) if args.op.is_atomic() && size != 8 => {
            let op = op_name(args.op);
            return Err(Failure::Unusable(format!("--size {size}: --op {op} changes 8 bytes")));
        }
        None if args.op.is_atomic() => 8,
        size => size.unwrap_or(65_536) as usize,
    };
    let kind = match args.op {
        // An RDMA WRITE with immediate data consumes a receive, like a SEND.
        OpArg::Send | OpArg::WriteImm => Kind::SendBandwidth,
        _ => Kind::Rdma,
    };
    let mut client = Client::connect(args, kind, PerftestArg::of(args.op, false), size)?;
    let start = WallClock::now();
    let depth = u64::from(args.tx_depth);
    // One of this many requests is signaled, i.e. causes a completion.
    let every = (depth / 4).max(1);
    let mut posted = vec![0; client.connected.len()];
    let mut done = vec![0; client.connected.len()];
    let data = client.buffer.data(0, size);
    loop {
        for number in 0..client.connected.len() {
            let (ref endpoint, to) = client.connected[number];
            let qp = endpoint.qp;
            while posted[number] < args.iters && posted[number] - done[number] < depth {
                posted[number] += 1;
                let at = posted[number];
                let signaled = at.is_multiple_of(every) || at == args.iters;
                let wr_id = (number as u64) << 40 | at;
                let op = Client::op(args, to, at);
                client.stage.post(qp, (wr_id, signaled), op, data.clone())?;
            }
        }
        let mut moved = false;
        while let Some(wc) = client.stage.poll() {
            moved = true;
            let wc = checked(wc, client.peer)?;
            done[(wc.wr_id >> 40) as usize] = wc.wr_id & ((1 << 40) - 1);
        }
        if done.iter().all(|&done| done == args.iters) {
            break;
        }
        // Completed requests free send queue entries, so new requests are posted before the loop waits.
        if !client.stage.progress()? && !moved {
            client.stage.wait(ib_types::Instant::NEVER)?;
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    client.check_atomics(args)?;
    let report = client.report(args, seconds);
    client.part(&report)?;
    client.disconnect()?;
    print(args, &report, out)?;
    Ok(Verdict::Good)
}

pub(super) fn latency(args: &PerfArgs, out: &mut Output) -> Result<Verdict, Failure> {
    if args.qp != 1 {
        return Err(Failure::Unusable(format!(
            "--qp {}: latency is measured on one queue pair",
            args.qp
        )));
    }
    let size = args.size.unwrap_or(64) as usize;
    let kind = match args.op {
        OpArg::Send => Kind::SendLatency,
        OpArg::Write if size == 0 => {
            let message =
                "--size 0: the server detects a write by its last byte, expected 1 or more";
            return Err(Failure::Unusable(message.to_owned()));
        }
        OpArg::Write => Kind::WriteLatency,
        OpArg::Read => Kind::Rdma,
        OpArg::WriteImm | OpArg::FetchAdd | OpArg::CompareSwap => {
            let op = op_name(args.op);
            let message = format!("--op {op}: expected send, write or read for latency");
            return Err(Failure::Unusable(message));
        }
    };
    let mut client = Client::connect(args, kind, PerftestArg::of(args.op, true), size)?;
    let (endpoint, to) = client.connected[0].clone();
    if client.control.is_some() && args.op == OpArg::Write {
        // A perftest server sends the first RDMA WRITE, so the client waits for it.
        client.await_count(1)?;
    }
    let mut latencies = Latencies::new();
    let start = WallClock::now();
    for number in 1..=args.iters {
        let begun = WallClock::now();
        client.round(args, &endpoint, to, number)?;
        latencies.record(begun.elapsed());
    }
    let seconds = start.elapsed().as_secs_f64();
    let latency = latencies.summary(if args.op == OpArg::Read { 1.0 } else { 2.0 });
    let report = Report { latency_us: Some(latency), ..client.report(args, seconds) };
    client.part(&report)?;
    client.disconnect()?;
    print(args, &report, out)?;
    Ok(Verdict::Good)
}

impl Client {
    /// Sends a message and waits for the reply.
    fn round(
        &mut self,
        args: &PerfArgs,
        endpoint: &Endpoint,
        to: RemoteAddress,
        number: u64,
    ) -> Result<(), Failure> {
        let (qp, size) = (endpoint.qp, self.size);
        let data: Data = self.buffer.data(0, size);
        match args.op {
            OpArg::Send => {
                self.stage.post_receive(qp, 2, self.buffer.data(size, size))?;
                self.stage.post(
                    qp,
                    (1, number.is_multiple_of(2)),
                    Self::op(args, to, number),
                    data,
                )?;
                while self.await_completion()?.opcode != WcOpcode::Recv {}
            }
            OpArg::WriteImm | OpArg::FetchAdd | OpArg::CompareSwap => {
                unreachable!("latency is measured for SEND, WRITE and READ only")
            }
            OpArg::Read => {
                self.stage.post(qp, (1, true), Self::op(args, to, number), data)?;
                self.await_completion()?;
            }
            OpArg::Write => {
                let count = number as u8;
                self.buffer
                    .memory
                    .fill(size - 1, 1, count)
                    .expect("the range is within the region");
                self.stage.post(qp, (number, true), Self::op(args, to, number), data)?;
                if self.control.is_none() {
                    self.await_count(count)?;
                } else if number < args.iters {
                    // The server wrote 1 before the client's first write, so its reply to write N is N + 1.
                    self.await_count((number + 1) as u8)?;
                } else {
                    while self.await_completion()?.wr_id != number {}
                }
            }
        }
        Ok(())
    }

    /// Polls until the last byte of the buffer is `count`. The server increments this byte with each RDMA WRITE.
    fn await_count(&mut self, count: u8) -> Result<(), Failure> {
        let end = clock::now() + RESPONSE_TIMEOUT;
        let at = 2 * self.size - 1;
        while self.buffer.memory.to_vec(at, 1).expect("the range is within the region")[0] != count
        {
            if clock::now() >= end {
                return Err(Failure::Unusable(format!("{} sent no RDMA WRITE", self.peer)));
            }
            self.stage.progress()?;
            while let Some(wc) = self.stage.poll() {
                checked(wc, self.peer)?;
            }
        }
        Ok(())
    }

    /// Polls for a completion without sleeping.
    fn await_completion(&mut self) -> Result<ib_hca::Wc, Failure> {
        let mut end = None;
        loop {
            if let Some(wc) = self.stage.poll() {
                return checked(wc, self.peer);
            }
            if self.stage.progress()? {
                continue;
            }
            self.stage.gone(self.peer)?;
            // The clock is read only if there is no completion.
            if clock::now() >= *end.get_or_insert_with(|| clock::now() + RESPONSE_TIMEOUT) {
                return Err(Failure::Unusable(format!("{} does not respond", self.peer)));
            }
        }
    }
}

fn print(args: &PerfArgs, report: &Report, out: &mut Output) -> Result<(), Failure> {
    if args.json {
        return out.json(report);
    }
    let Report { op, size, iters, qps, mtu, retransmits, .. } = report;
    writeln!(
        out,
        "{op}, {size} bytes, {qps} queue pairs, MTU {mtu}, {retransmits} packets retransmitted"
    )?;
    match &report.latency_us {
        None => {
            writeln!(out, " #bytes     #iterations    BW average[Gb/sec]    MsgRate[Mpps]")?;
            let (gbit, rate) = (report.gbit_per_s, report.messages_per_s / 1e6);
            writeln!(out, " {size:<10} {iters:<14} {gbit:<21.2} {rate:.6}")?;
        }
        Some(Latency { min, p50, p99, max }) => {
            writeln!(
                out,
                " #bytes  #iterations  t_min[usec]  t_max[usec]  t_typical[usec]  99% percentile[usec]"
            )?;
            writeln!(out, " {size:<7} {iters:<12} {min:<12.2} {max:<12.2} {p50:<16.2} {p99:.2}")?;
        }
    }
    Ok(())
}

/// Returns the JSON Schema of the output with `--json`.
pub(crate) fn schema() -> Schema {
    crate::schemas::of::<Report>()
}

#[cfg(test)]
mod tests;
