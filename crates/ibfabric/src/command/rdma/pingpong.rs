//! `rdma pingpong`: round trips of messages, compatible with `ibv_rc_pingpong`.
//!
//! The ends exchange the addresses of their queue pairs over TCP. Each end sends a line of 52 bytes: LID, queue
//! pair number, initial PSN and GID as hexadecimal digits, and a zero byte. The client sends its line first.
//! After the server's reply, the client confirms with the word "done" and a zero byte.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant as WallClock};

use ib_device::{Path, address_of, gid_of};
use ib_hca::{AccessFlags, QpAttr, QpConnection, QpId, QpState, SendOp, WcOpcode};
use ib_os::clock;
use ib_types::{Gid, Mtu, PKey, Psn, Qpn};
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use super::stage::{Buffer, Stage, doing};
use crate::cli::rdma::PingpongArgs;
use crate::failure::{Failure, Verdict};
use crate::output::{Format, Output};

/// The address of a queue pair.
#[derive(Clone, Copy, Debug)]
struct End {
    /// The LID; 0 on Ethernet.
    lid: u16,
    qpn: Qpn,
    psn: Psn,
    gid: Gid,
}

/// The size in bytes of an address line, including the terminating zero.
const LINE: usize = "0000:000000:000000:00000000000000000000000000000000".len() + 1;

/// If the other end sends no data over TCP for this time, the program fails.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// The result of `rdma pingpong`; field names are JSON keys.
#[derive(Serialize, JsonSchema)]
struct Report {
    peer: String,
    iters: u64,
    size: u64,
    seconds: f64,
    gbit_per_s: f64,
    us_per_iter: f64,
    retransmits: u64,
    icrc_errors: u64,
}

pub(super) fn run(args: &PingpongArgs, out: &mut Output) -> Result<Verdict, Failure> {
    let mut stage = Stage::open(&args.adapter, args.local.from, args.peer)?;
    let qp = stage.queue_pair(2, args.rx_depth)?;
    let (qpn, ..) = stage.device.hca().query_qp(qp).expect("the queue pair was created above");
    let psn = stage.device.hca().random_psn();
    let lid = stage.device.attached().map_or(0, |port| port.details().port.lid);
    let own = End { lid, qpn, psn, gid: gid_of(stage.device.address()) };
    let listener = match args.peer {
        Some(_) => None,
        None => Some(listen(&stage, args.port)?),
    };
    if !args.json {
        show(out, "local", &own)?;
        out.flush()?;
    }
    let size = args.size as usize;
    let buffer = stage.buffer(2 * size.max(1))?;
    buffer.memory.write(0, &pattern(size)).expect("the range is within the region");
    init(&mut stage, qp)?;
    for _ in 0..args.rx_depth {
        stage.post_receive(qp, RECEIVE, buffer.data(size, size))?;
    }
    let peer = match (args.peer, listener) {
        (Some(address), _) => {
            call(address, args.port, &own, |peer| connect(&mut stage, args, qp, &own, peer))?
        }
        (None, Some(listener)) => {
            let called = answer(&listener, &own)?;
            called.finish(|peer| connect(&mut stage, args, qp, &own, peer))?
        }
        (None, None) => unreachable!("a server has a listener"),
    };
    if !args.json {
        show(out, "remote", &peer)?;
        out.flush()?;
    }
    let address = SocketAddr::new(address_of(peer.gid), args.port);
    let seconds = exchange(&mut stage, args, (qp, &buffer), address)?;
    let bits = (2 * args.iters * args.size * 8) as f64;
    let report = Report {
        peer: address.ip().to_string(),
        iters: args.iters,
        size: args.size,
        seconds,
        gbit_per_s: bits / seconds / 1e9,
        us_per_iter: seconds * 1e6 / args.iters as f64,
        retransmits: stage.device.hca().counters().retransmitted,
        icrc_errors: stage.device.link_counters().icrc_errors,
    };
    match Format::of(args.json) {
        Format::Json => out.json(&report)?,
        Format::Text => {
            let bytes = 2 * args.iters * args.size;
            let mbit = bits / seconds / 1e6;
            writeln!(out, "{bytes} bytes in {seconds:.2} seconds = {mbit:.2} Mbit/sec")?;
            let (iters, us) = (args.iters, report.us_per_iter);
            writeln!(out, "{iters} iters in {seconds:.2} seconds = {us:.2} usec/iter")?;
        }
    }
    stage.linger(Duration::from_millis(300))?;
    Ok(Verdict::Good)
}

fn show(out: &mut Output, which: &str, end: &End) -> Result<(), Failure> {
    let End { lid, qpn, psn, gid } = end;
    Ok(writeln!(out, "{which:>8} address: LID {lid:#06x}, QPN {qpn}, PSN {psn}, GID {gid}")?)
}

/// The work request IDs (`wr_id`) of sends and receives.
const SEND: u64 = 1;
const RECEIVE: u64 = 2;

/// Sends and receives all messages; returns the elapsed seconds.
fn exchange(
    stage: &mut Stage,
    args: &PingpongArgs,
    (qp, buffer): (QpId, &Buffer),
    peer: SocketAddr,
) -> Result<f64, Failure> {
    let size = args.size as usize;
    let send = |stage: &mut Stage| {
        stage.post(qp, (SEND, true), SendOp::Send { imm: None }, buffer.data(0, size))
    };
    let start = WallClock::now();
    let (mut sent, mut received, mut posted) = (0, 0, u64::from(args.rx_depth));
    let mut under_way = false;
    if args.peer.is_some() {
        send(stage)?;
        under_way = true;
    }
    while sent < args.iters || received < args.iters {
        let wc = stage.completion(peer)?;
        if wc.opcode == WcOpcode::Recv {
            received += 1;
            if wc.byte_len as usize != size {
                let found = wc.byte_len;
                return Err(Failure::Unusable(format!(
                    "received a message of {found} bytes, expected {size}"
                )));
            }
            if args.chk {
                check(buffer, size, received)?;
                // Overwrites the message, so that the next check fails unless a new message was received.
                buffer.memory.fill(size, size, 0xff).expect("the range is within the region");
            }
            if posted < args.iters {
                stage.post_receive(qp, RECEIVE, buffer.data(size, size))?;
                posted += 1;
            }
        } else {
            sent += 1;
            under_way = false;
        }
        // The ends send alternately, and the client begins: an end sends after it has received a message.
        let begun = sent + u64::from(under_way);
        let turn = if args.peer.is_some() { begun <= received } else { begun < received };
        if !under_way && turn && begun < args.iters {
            send(stage)?;
            under_way = true;
        }
    }
    Ok(start.elapsed().as_secs_f64())
}

/// Returns the contents of each message: 0x7b in all bytes, except for a zero at the start of each page. This is
/// what `ibv_rc_pingpong -c` sends.
fn pattern(size: usize) -> Vec<u8> {
    (0..size).map(|at| if at % 4096 == 0 { 0 } else { 0x7b }).collect()
}

/// Verifies a message of the other end.
fn check(buffer: &Buffer, size: usize, received: u64) -> Result<(), Failure> {
    let bytes = buffer.memory.to_vec(size, size).expect("the range is within the region");
    let expected = pattern(size);
    match bytes.iter().zip(&expected).position(|(found, expected)| found != expected) {
        None => Ok(()),
        Some(at) => {
            let (found, expected) = (bytes[at], expected[at]);
            let message =
                format!("byte {at} of message {received} is {found}: expected {expected}");
            Err(Failure::Unusable(message))
        }
    }
}

fn init(stage: &mut Stage, qp: QpId) -> Result<(), Failure> {
    let attr = QpAttr {
        qp_state: Some(QpState::Init),
        pkey: Some(PKey::DEFAULT),
        qp_access_flags: Some(AccessFlags::default()),
        ..QpAttr::default()
    };
    stage.device.hca().modify_qp(clock::now(), qp, &attr).map_err(Failure::unusable)
}

/// Connects the queue pair to the queue pair at the other end.
fn connect(
    stage: &mut Stage,
    args: &PingpongArgs,
    qp: QpId,
    own: &End,
    peer: &End,
) -> Result<(), Failure> {
    let path = stage.device.path_to(address_of(peer.gid));
    let Path { route, mtu: most, .. } = path.map_err(Failure::unusable)?;
    let connection = QpConnection {
        pkey: PKey::DEFAULT,
        access: AccessFlags::default(),
        // A peer other than ibfabric can send IPv4 identifications that the receiver does not know. So packets whose
        // ICRC can be checked only in part are accepted.
        route: ib_link::Route { is_weak: true, ..route },
        path_mtu: args.adapter.transport.mtu.unwrap_or(Mtu::B1024).min(most),
        dest_qp_num: peer.qpn,
        rq_psn: peer.psn,
        sq_psn: own.psn,
        max_dest_rd_atomic: 1,
        max_rd_atomic: 1,
        min_rnr_timer: 12,
        timeout: 14,
        retry_cnt: 7,
        rnr_retry: 7,
    };
    for attr in [connection.to_rtr(), connection.to_rts()] {
        stage.device.hca().modify_qp(clock::now(), qp, &attr).map_err(Failure::unusable)?;
    }
    Ok(())
}

impl End {
    fn line(&self) -> Vec<u8> {
        let (lid, qpn, psn, gid) = (self.lid, self.qpn.get(), self.psn.get(), self.gid.0);
        let mut line = format!("{lid:04x}:{qpn:06x}:{psn:06x}:{gid:032x}").into_bytes();
        line.push(0);
        line
    }

    fn parse(line: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(line.strip_suffix(&[0])?).ok()?;
        let mut words = text.split(':');
        let mut number = |digits: usize| {
            let word = words.next().filter(|word| word.len() == digits)?;
            u128::from_str_radix(word, 16).ok()
        };
        let lid = number(4)? as u16;
        let qpn = Qpn::new(number(6)? as u32)?;
        let psn = Psn::new(number(6)? as u32)?;
        let gid = Gid(number(32)?);
        Some(Self { lid, qpn, psn, gid })
    }

    fn read(stream: &mut TcpStream) -> Result<Self, Failure> {
        let mut line = [0; LINE];
        stream
            .read_exact(&mut line)
            .map_err(|error| doing("reading the address of the other end", error))?;
        Self::parse(&line).ok_or_else(|| {
            let found = String::from_utf8_lossy(&line).into_owned();
            Failure::Unusable(format!("the other end sent {found:?}: expected LID:QPN:PSN:GID"))
        })
    }
}

/// Exchanges queue pair addresses with a server over TCP. Connects the client's queue pair before it sends the
/// confirmation, so that the queue pair can receive when the server begins.
fn call(
    address: IpAddr,
    port: u16,
    own: &End,
    connect: impl FnOnce(&End) -> Result<(), Failure>,
) -> Result<End, Failure> {
    let failed = |error| doing(&format!("calling {address} port {port}"), error);
    let mut stream = TcpStream::connect((address, port)).map_err(failed)?;
    stream.set_read_timeout(Some(RESPONSE_TIMEOUT)).map_err(failed)?;
    stream.write_all(&own.line()).map_err(failed)?;
    let peer = End::read(&mut stream)?;
    connect(&peer)?;
    stream.write_all(b"done\0").map_err(failed)?;
    Ok(peer)
}

/// A TCP connection from a client, with the queue pair addresses of both ends.
struct Called {
    stream: TcpStream,
    peer: End,
    own: End,
}

/// Listens for a client.
fn listen(stage: &Stage, port: u16) -> Result<TcpListener, Failure> {
    // Programs on a simulated fabric run on one machine, so they exchange addresses over loopback.
    let address = match stage.device.attached() {
        Some(_) => Ipv4Addr::LOCALHOST.into(),
        None => stage.device.address(),
    };
    let failed = |error| doing(&format!("listening at {address} port {port}"), error);
    TcpListener::bind((address, port)).map_err(failed)
}

/// Waits for a client to connect over TCP, and reads the client's queue pair address.
fn answer(listener: &TcpListener, own: &End) -> Result<Called, Failure> {
    let failed = |error| doing("waiting for a client", error);
    let (mut stream, _) = listener.accept().map_err(failed)?;
    stream.set_read_timeout(Some(RESPONSE_TIMEOUT)).map_err(failed)?;
    let peer = End::read(&mut stream)?;
    Ok(Called { stream, peer, own: *own })
}

impl Called {
    /// Connects the queue pair, sends its address to the client, and waits for the client's confirmation.
    fn finish(mut self, connect: impl FnOnce(&End) -> Result<(), Failure>) -> Result<End, Failure> {
        connect(&self.peer)?;
        let failed = |error| doing("sending the address to the other end", error);
        self.stream.write_all(&self.own.line()).map_err(failed)?;
        let mut word = [0; 5];
        self.stream.read_exact(&mut word).map_err(failed)?;
        Ok(self.peer)
    }
}

/// Returns the JSON Schema of the output with `--json`.
pub(crate) fn schema() -> Schema {
    crate::schemas::of::<Report>()
}
