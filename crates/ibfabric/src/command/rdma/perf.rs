//! `rdma bw` and `rdma lat`.
//!
//! What is measured is said with the request for a connection, and where to write or read with its answer.

use std::io::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant as WallClock};

use ib_hca::{AccessFlags, Data, RemoteAddress, SendOp, WcOpcode};
use ib_net::device::{Endpoint, EndpointOptions};
use serde::Serialize;

use super::stage::{Buffer, Stage, checked};
use crate::cli::rdma::{OpArg, PerfArgs};
use crate::failure::{Failure, Verdict};
use crate::output::{Format, Output};

/// What a client measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Messages one way into receives.
    SendBandwidth = 1,
    /// RDMA one way, of which a server sees nothing.
    Rdma = 2,
    /// Messages that are answered.
    SendLatency = 3,
    /// Writes that are answered by writes.
    WriteLatency = 4,
}

/// What a client says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    pub(super) kind: Kind,
    pub(super) size: u32,
    pub(super) remote: RemoteAddress,
}

/// What a server answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) remote: RemoteAddress,
}

/// What private data of ours starts with.
const MAGIC: [u8; 4] = *b"ibf1";

impl Offer {
    fn to_bytes(self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([self.kind as u8, 0, 0, 0]);
        bytes.extend(self.size.to_be_bytes());
        bytes.extend(self.remote.rkey.to_be_bytes());
        bytes.extend(self.remote.addr.to_be_bytes());
        bytes
    }

    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Failure> {
        let wrong = |what: &str| {
            Failure::Unusable(format!(
                "its private data {what}: expected a client of `ibfabric rdma`"
            ))
        };
        if bytes.len() < 24 || bytes[..4] != MAGIC {
            return Err(wrong("is not ours"));
        }
        let kind = match bytes[4] {
            1 => Kind::SendBandwidth,
            2 => Kind::Rdma,
            3 => Kind::SendLatency,
            4 => Kind::WriteLatency,
            _ => return Err(wrong("asks for what is not known")),
        };
        let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let size = word(8);
        if size > 1 << 30 || kind == Kind::WriteLatency && size == 0 {
            return Err(wrong("asks for a size that cannot be"));
        }
        let addr = u64::from(word(16)) << 32 | u64::from(word(20));
        Ok(Self { kind, size, remote: RemoteAddress { addr, rkey: word(12) } })
    }
}

impl Answer {
    pub(super) fn to_bytes(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&self.remote.rkey.to_be_bytes());
        bytes[4..].copy_from_slice(&self.remote.addr.to_be_bytes());
        bytes
    }

    fn parse(bytes: &[u8], peer: SocketAddr) -> Result<Self, Failure> {
        let answer = bytes.first_chunk::<12>();
        let bytes =
            answer.ok_or_else(|| Failure::Unusable(format!("{peer} is no server of ours")))?;
        let (rkey, addr) = bytes.split_at(4);
        let rkey = u32::from_be_bytes(rkey.try_into().expect("4 bytes"));
        let addr = u64::from_be_bytes(addr.try_into().expect("8 bytes"));
        Ok(Self { remote: RemoteAddress { addr, rkey } })
    }
}

/// What came of it; the names are JSON keys.
#[derive(Serialize)]
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

/// Half of the time to and fro; for READs all of it. The names are JSON keys.
#[derive(Serialize)]
struct Latency {
    min: f64,
    p50: f64,
    p99: f64,
    max: f64,
}

/// The client's side.
struct Client {
    stage: Stage,
    buffer: Buffer,
    size: usize,
    peer: SocketAddr,
    connected: Vec<(Endpoint, RemoteAddress)>,
}

impl Client {
    fn connect(args: &PerfArgs, kind: Kind, size: usize) -> Result<Self, Failure> {
        let mut stage = Stage::open(&args.adapter, Some(args.peer))?;
        let buffer = stage.buffer(2 * size.max(1))?;
        let offer = Offer { kind, size: size as u32, remote: buffer.remote() };
        let options = EndpointOptions {
            private_data: offer.to_bytes(),
            mtu: args.adapter.mtu,
            ..EndpointOptions::default()
        };
        let peer = SocketAddr::new(args.peer, args.port);
        let mut this = Self { stage, buffer, size, peer, connected: Vec::new() };
        for _ in 0..args.qps {
            let qp = this.stage.queue_pair(args.tx_depth.max(2), 4)?;
            this.stage.device.prepare(qp, AccessFlags::ALL).map_err(Failure::unusable)?;
            let endpoint =
                this.stage.device.connect(qp, peer, &options).map_err(Failure::unusable)?;
            let answer = Answer::parse(&endpoint.private_data, peer)?;
            this.connected.push((endpoint, answer.remote));
        }
        Ok(this)
    }

    fn disconnect(&mut self) -> Result<(), Failure> {
        for (endpoint, _) in &self.connected {
            let ended = self.stage.device.disconnect(endpoint, Duration::from_secs(2));
            ended.map_err(Failure::unusable)?;
        }
        Ok(())
    }

    fn op(&self, args: &PerfArgs, to: RemoteAddress) -> SendOp {
        match args.op {
            OpArg::Send => SendOp::Send { imm: None },
            OpArg::Write => SendOp::Write { to, imm: None },
            OpArg::Read => SendOp::Read { from: to },
        }
    }

    fn report(&mut self, args: &PerfArgs, seconds: f64) -> Report {
        let (size, qps) = (self.size as u64, args.qps);
        let messages = (args.iters * u64::from(qps)) as f64;
        Report {
            peer: self.peer.to_string(),
            op: match args.op {
                OpArg::Send => "send",
                OpArg::Write => "write",
                OpArg::Read => "read",
            },
            size,
            iters: args.iters,
            qps,
            mtu: self.connected[0].0.mtu.bytes(),
            seconds,
            gbit_per_s: messages * size as f64 * 8.0 / seconds / 1e9,
            messages_per_s: messages / seconds,
            latency_us: None,
            retransmits: self.stage.device.hca().counters().retransmitted,
            icrc_errors: self.stage.device.checked().icrc_errors,
        }
    }
}

pub(super) fn bandwidth(args: &PerfArgs, out: &mut Output) -> Result<Verdict, Failure> {
    let size = args.size.unwrap_or(65_536) as usize;
    let kind = if args.op == OpArg::Send { Kind::SendBandwidth } else { Kind::Rdma };
    let mut client = Client::connect(args, kind, size)?;
    let start = WallClock::now();
    let depth = u64::from(args.tx_depth);
    // Every so many requests one completion is asked for.
    let every = (depth / 4).max(1);
    let mut posted = vec![0; client.connected.len()];
    let mut done = vec![0; client.connected.len()];
    let data = client.buffer.data(0, size);
    loop {
        for (number, (endpoint, to)) in client.connected.clone().into_iter().enumerate() {
            while posted[number] < args.iters && posted[number] - done[number] < depth {
                posted[number] += 1;
                let at = posted[number];
                let signaled = at % every == 0 || at == args.iters;
                let wr_id = (number as u64) << 40 | at;
                let op = client.op(args, to);
                client.stage.post(endpoint.qp, (wr_id, signaled), op, data.clone())?;
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
        // What has ended makes room for more.
        if !client.stage.progress()? && !moved {
            client.stage.wait(ib_types::Instant::NEVER)?;
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let report = client.report(args, seconds);
    client.disconnect()?;
    print(args, &report, out)?;
    Ok(Verdict::Good)
}

pub(super) fn latency(args: &PerfArgs, out: &mut Output) -> Result<Verdict, Failure> {
    if args.qps != 1 {
        return Err(Failure::Unusable(format!(
            "--qps {}: latency is that of one queue pair",
            args.qps
        )));
    }
    let size = args.size.unwrap_or(64) as usize;
    let kind = match args.op {
        OpArg::Send => Kind::SendLatency,
        OpArg::Write if size == 0 => {
            let message = "--size 0: a write is seen by its last byte, expected 1 or more";
            return Err(Failure::Unusable(message.to_owned()));
        }
        OpArg::Write => Kind::WriteLatency,
        OpArg::Read => Kind::Rdma,
    };
    let mut client = Client::connect(args, kind, size)?;
    let (endpoint, to) = client.connected[0].clone();
    let mut samples = Vec::with_capacity(args.iters as usize);
    let start = WallClock::now();
    for number in 1..=args.iters {
        let begun = WallClock::now();
        client.round(args, &endpoint, to, number)?;
        samples.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    let seconds = start.elapsed().as_secs_f64();
    samples.sort_unstable_by(f64::total_cmp);
    let ways = if args.op == OpArg::Read { 1.0 } else { 2.0 };
    let at = |part: f64| samples[((samples.len() - 1) as f64 * part) as usize] / ways;
    let latency = Latency { min: at(0.0), p50: at(0.5), p99: at(0.99), max: at(1.0) };
    let report = Report { latency_us: Some(latency), ..client.report(args, seconds) };
    client.disconnect()?;
    print(args, &report, out)?;
    Ok(Verdict::Good)
}

impl Client {
    /// Sends a message and waits for what comes back.
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
                self.stage.post(qp, (1, number.is_multiple_of(2)), self.op(args, to), data)?;
                while self.await_completion()?.opcode != WcOpcode::Recv {}
            }
            OpArg::Read => {
                self.stage.post(qp, (1, true), self.op(args, to), data)?;
                self.await_completion()?;
            }
            OpArg::Write => {
                let count = number as u8;
                self.buffer.memory.fill(size - 1, 1, count).expect("it has that size");
                self.stage.post(qp, (1, number.is_multiple_of(2)), self.op(args, to), data)?;
                loop {
                    self.stage.progress()?;
                    while let Some(wc) = self.stage.poll() {
                        checked(wc, self.peer)?;
                    }
                    let last = self.buffer.memory.to_vec(2 * size - 1, 1);
                    if last.expect("it has that size")[0] == count {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Looks for a completion without ever sleeping.
    fn await_completion(&mut self) -> Result<ib_hca::Wc, Failure> {
        loop {
            if let Some(wc) = self.stage.poll() {
                return checked(wc, self.peer);
            }
            self.stage.progress()?;
        }
    }
}

fn print(args: &PerfArgs, report: &Report, out: &mut Output) -> Result<(), Failure> {
    if args.format == Format::Json {
        return out.json(report);
    }
    let Report { op, size, iters, qps, mtu, retransmits, .. } = report;
    writeln!(
        out,
        "{op}, {size} bytes, {qps} queue pairs, MTU {mtu}, {retransmits} packets sent again"
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
