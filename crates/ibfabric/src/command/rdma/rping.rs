//! `rdma ping`, and the protocol of rping.
//!
//! A client advertises a buffer that contains text. The advertisement has 16 bytes: address, rkey and size, all
//! big-endian. The server READs the buffer and confirms with a SEND of 16 bytes. Then the client advertises a second
//! buffer. The server WRITEs the text into the second buffer, and confirms. The next ping follows.

use std::io::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant as WallClock};

use ib_device::{Endpoint, EndpointOptions, Request};
use ib_hca::{AccessFlags, RemoteAddress, SendOp, Wc, WcOpcode};
use ib_types::text::escaped;
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use super::stage::{Buffer, Stage};
use crate::cli::rdma::PingArgs;
use crate::failure::{Failure, Verdict};
use crate::output::{Format, Output};

/// The size in bytes of an advertisement, and of a confirmation.
const MESSAGE: usize = 16;

/// Offsets within a client's or server's buffer, at which received messages, sent messages and data begin.
const IN: usize = 0;
const OUT: usize = 64;
pub(super) const DATA: usize = 128;

/// The maximum size of a ping in bytes.
const LONGEST: usize = 64 * 1024;

/// The work request IDs (`wr_id`) of receives, sends, and READs or WRITEs.
const RECEIVE: u64 = 1;
const SENT: u64 = 2;
const MOVED: u64 = 3;

/// The result of `rdma ping`; field names are JSON keys.
#[derive(Serialize, JsonSchema)]
struct Report {
    peer: String,
    pings: u64,
    size: u32,
    wrong: u64,
    us_per_ping: f64,
    retransmits: u64,
    icrc_errors: u64,
}

/// The advertisement of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Offer {
    addr: u64,
    rkey: u32,
    size: u32,
}

impl Offer {
    fn to_bytes(self) -> [u8; MESSAGE] {
        let mut bytes = [0; MESSAGE];
        bytes[..8].copy_from_slice(&self.addr.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.rkey.to_be_bytes());
        bytes[12..].copy_from_slice(&self.size.to_be_bytes());
        bytes
    }

    fn read(buffer: &Buffer) -> Self {
        let bytes = buffer.memory.to_vec(IN, MESSAGE).expect("the range is within the region");
        let part = |at: usize| {
            u32::from_be_bytes(bytes[at..at + 4].try_into().expect("the slice has 4 bytes"))
        };
        let addr = u64::from(part(0)) << 32 | u64::from(part(4));
        Self { addr, rkey: part(8), size: part(12) }
    }
}

/// The state that a server keeps for a client.
pub(super) struct Pinged {
    pub(super) endpoint: Endpoint,
    pub(super) buffer: Buffer,
    step: Step,
    pub(super) pings: u64,
    /// The size in bytes of the last ping of the client.
    length: usize,
}

/// The server's state in the exchange with one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The server waits for the client to advertise the buffer to READ.
    AwaitsSource,
    Reads,
    /// The server waits for the client to advertise the buffer to WRITE.
    AwaitsSink,
    Writes,
}

impl Pinged {
    /// Accepts a client. Receives are posted before the connection is established.
    pub(super) fn accept(stage: &mut Stage, request: &Request) -> Result<Self, Failure> {
        let qp = stage.queue_pair(16, 4)?;
        stage.device.prepare(qp, AccessFlags::ALL).map_err(Failure::unusable)?;
        let buffer = stage.buffer(DATA + LONGEST)?;
        stage.post_receive(qp, RECEIVE, buffer.data(IN, MESSAGE))?;
        let options = EndpointOptions {
            responder_resources: 1,
            initiator_depth: 1,
            ..EndpointOptions::default()
        };
        let endpoint = stage.accept((qp, &buffer), request, &options)?;
        Ok(Self { endpoint, buffer, step: Step::AwaitsSource, pings: 0, length: 0 })
    }

    /// Processes a completion. If a READ has completed, returns the text of the ping.
    pub(super) fn advance(
        &mut self,
        stage: &mut Stage,
        wc: &Wc,
    ) -> Result<Option<String>, Failure> {
        let (qp, peer) = (self.endpoint.qp, self.endpoint.peer);
        let wrong = |what: String| Failure::Unusable(format!("{peer}: {what}"));
        match (wc.opcode, self.step) {
            (WcOpcode::Recv, Step::AwaitsSource | Step::AwaitsSink) => {
                if wc.byte_len as usize != MESSAGE {
                    let found = wc.byte_len;
                    return Err(wrong(format!(
                        "received a message of {found} bytes, expected {MESSAGE}"
                    )));
                }
                let offer = Offer::read(&self.buffer);
                stage.post_receive(qp, RECEIVE, self.buffer.data(IN, MESSAGE))?;
                let there = RemoteAddress { addr: offer.addr, rkey: offer.rkey };
                if self.step == Step::AwaitsSource {
                    let length = offer.size as usize;
                    if length > LONGEST {
                        return Err(wrong(format!(
                            "received a ping of {length} bytes, expected at most {LONGEST}"
                        )));
                    }
                    self.length = length;
                    let data = self.buffer.data(DATA, length);
                    stage.post(qp, (MOVED, true), SendOp::Read { from: there }, data)?;
                    self.step = Step::Reads;
                } else {
                    // The text of the ping ends at the first zero byte.
                    let length = self.text_length().min(offer.size as usize);
                    let data = self.buffer.data(DATA, length);
                    stage.post(qp, (MOVED, true), SendOp::Write { to: there, imm: None }, data)?;
                    self.step = Step::Writes;
                }
                Ok(None)
            }
            (WcOpcode::RdmaRead, Step::Reads) => {
                self.step = Step::AwaitsSink;
                self.pings += 1;
                self.say(stage)?;
                let text = self.buffer.memory.to_vec(DATA, self.text_length());
                let text = text.expect("the range is within the region");
                let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
                Ok(Some(escaped(&String::from_utf8_lossy(&text[..end])).to_string()))
            }
            (WcOpcode::RdmaWrite, Step::Writes) => {
                self.step = Step::AwaitsSource;
                self.say(stage)?;
                Ok(None)
            }
            (WcOpcode::Send, _) => Ok(None),
            (opcode, step) => {
                Err(wrong(format!("unexpected completion of {opcode:?} in step {step:?}")))
            }
        }
    }

    fn text_length(&self) -> usize {
        let bytes =
            self.buffer.memory.to_vec(DATA, self.length).expect("the range is within the region");
        bytes.iter().position(|&byte| byte == 0).map_or(self.length, |end| end + 1)
    }

    /// Notifies the client by a SEND that the READ or WRITE of the client's buffer is complete.
    fn say(&self, stage: &mut Stage) -> Result<(), Failure> {
        let data = self.buffer.data(OUT, MESSAGE);
        stage.post(self.endpoint.qp, (SENT, false), SendOp::Send { imm: None }, data)
    }
}

pub(super) fn run(args: &PingArgs, out: &mut Output) -> Result<Verdict, Failure> {
    let (mut stage, peer) = Stage::open_to(&args.adapter, &args.local, &args.peer)?;
    let qp = stage.queue_pair(16, 4)?;
    let size = args.size as usize;
    stage.device.prepare(qp, AccessFlags::ALL).map_err(Failure::unusable)?;
    let buffer = stage.buffer(DATA + 2 * size)?;
    stage.post_receive(qp, RECEIVE, buffer.data(IN, MESSAGE))?;
    let options = EndpointOptions {
        responder_resources: 1,
        initiator_depth: 1,
        mtu: args.adapter.transport.mtu,
        ..EndpointOptions::default()
    };
    let peer = SocketAddr::new(peer, args.port);
    let endpoint = stage.device.connect(qp, peer, &options).map_err(Failure::unusable)?;
    stage.end_in_order(vec![endpoint.connection])?;
    let (start, mut wrong) = (WallClock::now(), 0);
    for number in 0..args.count {
        let text = ping(number, size);
        buffer.memory.write(DATA, &text).expect("the range is within the region");
        buffer.memory.fill(DATA + size, size, 0).expect("the range is within the region");
        for offset in [DATA, DATA + size] {
            let addr = buffer.memory.address() + offset as u64;
            let offer = Offer { addr, rkey: buffer.key, size: args.size };
            buffer.memory.write(OUT, &offer.to_bytes()).expect("the range is within the region");
            let data = buffer.data(OUT, MESSAGE);
            stage.post(qp, (SENT, false), SendOp::Send { imm: None }, data)?;
            while stage.completion(peer)?.opcode != WcOpcode::Recv {}
            stage.post_receive(qp, RECEIVE, buffer.data(IN, MESSAGE))?;
        }
        let back = buffer.memory.to_vec(DATA + size, size).expect("the range is within the region");
        wrong += u64::from(back != text);
        if args.verbose > 0 && !args.json {
            let end = back.iter().position(|&byte| byte == 0).unwrap_or(size);
            writeln!(out, "ping data: {}", escaped(&String::from_utf8_lossy(&back[..end])))?;
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    stage.device.disconnect(&endpoint, Duration::from_secs(2)).map_err(Failure::unusable)?;
    let report = Report {
        peer: peer.to_string(),
        pings: args.count,
        size: args.size,
        wrong,
        us_per_ping: seconds * 1e6 / args.count.max(1) as f64,
        retransmits: stage.device.hca().counters().retransmitted,
        icrc_errors: stage.device.link_counters().icrc_errors,
    };
    match Format::of(args.json) {
        Format::Json => out.json(&report)?,
        Format::Text => {
            let Report { peer, pings, wrong, us_per_ping, .. } = &report;
            writeln!(
                out,
                "{peer}: {pings} pings, {wrong} returned with wrong data; {us_per_ping:.1} us each"
            )?;
        }
    }
    Ok(Verdict::good_if(wrong == 0))
}

/// Returns the text of a ping, with a zero at its end: "rdma-ping-N: " and letters.
fn ping(number: u64, size: usize) -> Vec<u8> {
    let mut text = format!("rdma-ping-{number}: ").into_bytes();
    let first = number as usize;
    text.extend((0..size).map(|at| b'A' + ((first + at) % 58) as u8));
    text.truncate(size - 1);
    text.push(0);
    text
}

/// Returns the JSON Schema of the output with `--json`.
pub(crate) fn schema() -> Schema {
    crate::schemas::of::<Report>()
}
