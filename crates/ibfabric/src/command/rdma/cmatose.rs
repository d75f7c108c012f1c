//! `rdma cmatose`, and the protocol of `ucmatose`.
//!
//! Connection requests and replies carry no parameters: both ends know the number and the size of messages from their
//! command lines. Once a connection is established, the server sends its messages. When the client has received all
//! messages, it sends the same number of messages. When the server has received all messages, it disconnects.

use std::io::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use ib_device::{Endpoint, EndpointOptions, Request};
use ib_hca::{AccessFlags, QpId, SendOp, Wc, WcOpcode};
use ib_os::clock;
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use super::stage::{Buffer, Stage};
use crate::cli::rdma::{CmatoseArgs, Messages};
use crate::failure::{Failure, Verdict};
use crate::output::{Format, Output};

/// Maximum time to wait for the next completion, and for the server to disconnect. After this time the
/// program fails.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(20);

/// Each byte of a message has this value.
const BYTE: u8 = 0x5a;

/// The work request IDs (`wr_id`) of receives and sends.
const RECEIVE: u64 = 1;
const SENT: u64 = 2;

/// The result of all connections; field names are JSON keys.
#[derive(Serialize, JsonSchema)]
struct Report {
    peer: String,
    connections: u32,
    messages: u32,
    size: u32,
    retransmits: u64,
    icrc_errors: u64,
}

/// One end of a connection of ucmatose's protocol, with its buffer and its message counts.
pub(super) struct Match {
    pub(super) endpoint: Endpoint,
    pub(super) buffer: Buffer,
    messages: Messages,
    received: u32,
    sent: u32,
}

impl Match {
    /// Creates a queue pair and posts its receives, before the connection is established.
    fn prepare(stage: &mut Stage, messages: Messages) -> Result<(QpId, Buffer), Failure> {
        let Messages { count, size } = messages;
        let qp = stage.queue_pair(count.max(1), count.max(1))?;
        stage.device.prepare(qp, AccessFlags::ALL).map_err(Failure::unusable)?;
        let size = size as usize;
        let buffer = stage.buffer(2 * size.max(1))?;
        buffer.memory.fill(size, size, BYTE).expect("the range is within the region");
        for _ in 0..count {
            stage.post_receive(qp, RECEIVE, buffer.data(0, size))?;
        }
        Ok((qp, buffer))
    }

    const fn new(endpoint: Endpoint, buffer: Buffer, messages: Messages) -> Self {
        Self { endpoint, buffer, messages, received: 0, sent: 0 }
    }

    /// Accepts a client.
    pub(super) fn accept(
        stage: &mut Stage,
        request: &Request,
        messages: Messages,
    ) -> Result<Self, Failure> {
        let (qp, buffer) = Self::prepare(stage, messages)?;
        let endpoint = stage.accept((qp, &buffer), request, &Self::options())?;
        Ok(Self::new(endpoint, buffer, messages))
    }

    /// Returns the parameters with which client and server establish a connection.
    fn options() -> EndpointOptions {
        EndpointOptions { responder_resources: 1, initiator_depth: 1, ..EndpointOptions::default() }
    }

    /// Sends all messages.
    pub(super) fn send(&self, stage: &mut Stage) -> Result<(), Failure> {
        let size = self.messages.size as usize;
        for _ in 0..self.messages.count {
            let data = self.buffer.data(size, size);
            stage.post(self.endpoint.qp, (SENT, true), SendOp::Send { imm: None }, data)?;
        }
        Ok(())
    }

    /// Counts a completed send or receive.
    pub(super) fn advance(&mut self, wc: &Wc) -> Result<(), Failure> {
        if wc.opcode != WcOpcode::Recv {
            self.sent += 1;
            return Ok(());
        }
        let (found, expected) = (wc.byte_len, self.messages.size);
        if found != expected {
            let peer = self.endpoint.peer;
            let message =
                format!("{peer}: received a message of {found} bytes, expected {expected}");
            return Err(Failure::Unusable(message));
        }
        self.received += 1;
        Ok(())
    }

    /// Prints the result of a connection.
    pub(super) fn print(&self, out: &mut Output) -> Result<(), Failure> {
        let (peer, Messages { count, size }) = (self.endpoint.peer, self.messages);
        writeln!(out, "{peer}: {count} messages of {size} bytes in each direction")?;
        out.flush()?;
        Ok(())
    }

    /// Returns whether all messages of the other end have been received.
    const fn has_received(&self) -> bool {
        self.received == self.messages.count
    }

    /// Returns whether all messages have been received and sent.
    pub(super) const fn is_complete(&self) -> bool {
        self.has_received() && self.sent == self.messages.count
    }
}

pub(super) fn run(args: &CmatoseArgs, out: &mut Output) -> Result<Verdict, Failure> {
    let (mut stage, peer) = Stage::open_to(&args.adapter, &args.local, &args.peer)?;
    let peer = SocketAddr::new(peer, args.port);
    let options = EndpointOptions { mtu: args.adapter.transport.mtu, ..Match::options() };
    let mut matches = Vec::new();
    for _ in 0..args.connections {
        let (qp, buffer) = Match::prepare(&mut stage, args.messages)?;
        let endpoint = stage.device.connect(qp, peer, &options).map_err(Failure::unusable)?;
        matches.push(Match::new(endpoint, buffer, args.messages));
    }
    stage.end_in_order(matches.iter().map(|it| it.endpoint.connection).collect())?;
    if !args.json {
        writeln!(out, "{peer}: {} connections", matches.len())?;
        out.flush()?;
    }
    receive_until(&mut stage, &mut matches, peer, Match::has_received)?;
    for it in &matches {
        it.send(&mut stage)?;
    }
    receive_until(&mut stage, &mut matches, peer, Match::is_complete)?;
    let mut left: Vec<_> = matches.iter().map(|it| it.endpoint.connection).collect();
    let end = clock::now() + RESPONSE_TIMEOUT;
    while !left.is_empty() {
        while let Some(event) = stage.device.poll_event() {
            left.retain(|&id| event.disconnected() != Some(id));
        }
        if clock::now() >= end {
            return Err(Failure::Unusable(format!("{peer} did not disconnect in time")));
        }
        if !left.is_empty() && !stage.progress()? {
            stage.wait(end)?;
        }
    }
    let report = Report {
        peer: peer.to_string(),
        connections: args.connections,
        messages: args.messages.count,
        size: args.messages.size,
        retransmits: stage.device.hca().counters().retransmitted,
        icrc_errors: stage.device.link_counters().icrc_errors,
    };
    // The replies to the disconnect requests have to be sent before the program exits.
    stage.linger(Duration::from_millis(100))?;
    match Format::of(args.json) {
        Format::Json => out.json(&report)?,
        Format::Text => {
            let Report { peer, messages, size, .. } = &report;
            writeln!(out, "{peer}: {messages} messages of {size} bytes in each direction")?;
        }
    }
    Ok(Verdict::Good)
}

/// Processes completions until a condition holds for all connections.
fn receive_until(
    stage: &mut Stage,
    matches: &mut [Match],
    peer: SocketAddr,
    so_far: impl Fn(&Match) -> bool,
) -> Result<(), Failure> {
    let by_number: Vec<_> = matches.iter().map(|it| stage.number(it.endpoint.qp)).collect();
    while !matches.iter().all(&so_far) {
        let wc = stage.completion_within(peer, RESPONSE_TIMEOUT)?;
        let at = by_number.iter().position(|&number| number == wc.qp_num);
        matches[at.expect("the completion is of one of the queue pairs")].advance(&wc)?;
    }
    Ok(())
}

/// Returns the JSON Schema of the output with `--json`.
pub(crate) fn schema() -> Schema {
    crate::schemas::of::<Report>()
}
