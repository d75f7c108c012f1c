//! Captures of running programs.
//!
//! | file | holds |
//! |---|---|
//! | `programs.rs` | selection of programs |
//! | `text.rs` | text output |

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use ib_control::capture::message::{
    AdapterInfo, CaptureInfo, CaptureRequest, CaptureResponse, MessageInfo, ProgramInfo, Start,
    VERSION, WireDirection, WirePeer, WireTrace, WireTrigger,
};
use ib_control::capture::{Autostop, CaptureClient, ClientError, Rotation};
use ib_device::gid_of;
use ib_hca::trace::Trigger;
use ib_os::alarm::Alarm;
use ib_os::signals::{Order, Orders};
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use crate::cli::capture::DirectionArg;
use crate::cli::capture::live::{
    ChangeArgs, KeepArgs, Limit, ListArgs, PeerArg, StartArgs, StopArgs, WayArg,
};
use crate::failure::{Failure, Verdict, note};
use crate::output::{Format, Output, json_line};

mod programs;
mod text;

use programs::{Program, find, find_one, find_with, nobody};
use text::{line, print};

/// While a capture is written to standard output, its state is queried at this interval.
const LOOK: Duration = Duration::from_millis(100);

/// An HCA of a program; field names are JSON keys.
#[derive(Serialize, JsonSchema)]
struct Listed<'a> {
    pid: u32,
    command: &'a str,
    #[serde(flatten)]
    info: &'a AdapterInfo,
    /// The captures of the program. Only the entry of the program's first HCA lists them.
    captures: &'a [CaptureInfo],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    messages: Vec<MessagesOf>,
}

#[derive(Serialize, JsonSchema)]
struct MessagesOf {
    qpn: u32,
    messages: Vec<MessageInfo>,
}

/// The output of `capture list`; field names are JSON keys.
#[derive(Serialize, JsonSchema)]
struct Programs<'a> {
    programs: Vec<Listed<'a>>,
}

/// Returns the JSON Schema of the output of `capture list`.
pub(crate) fn list_schema() -> Schema {
    crate::schemas::of::<Programs<'_>>()
}

pub(super) fn list(args: &ListArgs, out: &mut Output) -> Result<Verdict, Failure> {
    let found = find(&args.program)?;
    if found.is_empty() && (args.program.pid.is_some() || args.program.device.is_some()) {
        return Err(Failure::Unusable(nobody(&args.program)));
    }
    let mut listed = Vec::new();
    for Program { client, info } in &found {
        let ProgramInfo { pid, command, captures, .. } = info;
        for (number, adapter) in info.adapters.iter().enumerate() {
            let messages = messages(args, client, adapter)?;
            let captures = if number == 0 { &captures[..] } else { &[] };
            listed.push(Listed { pid: *pid, command, info: adapter, captures, messages });
        }
    }
    for qpn in &args.messages {
        if !listed.iter().any(|it| it.messages.iter().any(|of| of.qpn == qpn.get())) {
            let message = match qpn.get() {
                number @ (0 | 1) => format!(
                    "queue pair {number} carries MADs, which are not recorded as messages: \
                     `capture start --qpn 1` captures the MADs of queue pair 1"
                ),
                number => format!("no program has a queue pair {number:#08x}"),
            };
            return Err(Failure::Unusable(message));
        }
    }
    if args.json {
        out.json(&Programs { programs: listed })?;
        return Ok(Verdict::Good);
    }
    if listed.is_empty() {
        writeln!(out, "{}", nobody(&args.program))?;
    }
    print(&listed, out)?;
    Ok(Verdict::Good)
}

/// Returns the last messages of the requested queue pairs of an HCA.
fn messages(
    args: &ListArgs,
    client: &CaptureClient,
    info: &AdapterInfo,
) -> Result<Vec<MessagesOf>, Failure> {
    let mut all = Vec::new();
    let has = |qpn: &u32| info.qps.iter().any(|it| it.qpn == *qpn);
    for qpn in args.messages.iter().map(|qpn| qpn.get()).filter(has) {
        let question = CaptureRequest::Messages { adapter: info.adapter, qpn, from: 0 };
        if let CaptureResponse::Messages(messages) = ask(client, &question)? {
            all.push(MessagesOf { qpn, messages });
        }
    }
    Ok(all)
}

fn ask(client: &CaptureClient, question: &CaptureRequest) -> Result<CaptureResponse, Failure> {
    client.ask(question, None).map_err(Failure::unusable)
}

/// Returns the capture that a program's reply describes; fails if the reply describes none.
fn capture_in(answer: CaptureResponse) -> Result<CaptureInfo, Failure> {
    match answer {
        CaptureResponse::Capture(info) => Ok(*info),
        _ => Err(Failure::Unusable("the program sent an unexpected reply".to_owned())),
    }
}

fn trace(args: &KeepArgs, ring: u64, trigger: Option<(Trigger, u32)>) -> WireTrace {
    let direction = args.direction.map(|direction| match direction {
        DirectionArg::Send => WireDirection::Send,
        DirectionArg::Receive => WireDirection::Receive,
    });
    let trigger = trigger.map(|(trigger, after)| {
        let trigger = match trigger {
            Trigger::Error => WireTrigger::Error,
            Trigger::Retransmission => WireTrigger::Retransmission,
            Trigger::Drop => WireTrigger::Drop,
        };
        (trigger, after)
    });
    WireTrace {
        payload: args.payload as u16,
        ring_bytes: ring as usize,
        direction,
        opcodes: args.opcode.iter().flat_map(|it| &it.0).map(|opcode| opcode.0).collect(),
        trigger,
    }
}

pub(super) fn start(args: &StartArgs, out: &mut Output) -> Result<Verdict, Failure> {
    let is_stream = args.pcap == Path::new("-");
    let rotation = rotation(&args.ring_buffer)?;
    if is_stream && rotation != Rotation::default() {
        let message = "--ring-buffer: standard output cannot be rotated, expected a file with -w";
        return Err(Failure::Unusable(message.to_owned()));
    }
    let path = match is_stream {
        true => None,
        false => {
            let path = std::path::absolute(&args.pcap).map_err(Failure::unusable)?;
            let text = path.into_os_string().into_string();
            Some(text.map_err(|path| Failure::Unusable(format!("{path:?}: expected UTF-8")))?)
        }
    };
    let peer = |peer: &PeerArg| match *peer {
        PeerArg::Address(address) => WirePeer::Gid(gid_of(address).0),
        PeerArg::Lid(lid) => WirePeer::Lid(lid),
    };
    let Program { client, info } = find_one(&args.program)?;
    let adapters = match args.program.device {
        Some(_) => info.adapters.iter().map(|it| it.adapter).collect(),
        // An empty list selects all HCAs, including HCAs that the program opens later.
        None => Vec::new(),
    };
    let start = Start {
        version: VERSION,
        path,
        rotation,
        autostop: autostop(&args.autostop),
        adapters,
        qpns: args.qpn.iter().map(|qpn| qpn.get()).collect(),
        peers: args.peer.iter().map(peer).collect(),
        services: args.service.iter().map(|id| id.0).collect(),
        trace: trace(&args.keep_args, args.buffer_size, args.trigger),
        keep: args.keep,
    };
    let question = CaptureRequest::Start(Box::new(start));
    if !is_stream {
        let started = capture_in(ask(&client, &question)?)?;
        tell_waits(&started);
        match Format::of(args.json) {
            Format::Json => out.json(&started)?,
            Format::Text => writeln!(
                out,
                "capture {} of process {} into {}; `ibfabric capture stop --pid {} {}` ends it",
                started.capture, info.pid, started.file, info.pid, started.capture
            )?,
        }
        return Ok(Verdict::Good);
    }
    stream(&client, &question, Format::of(args.json))
}

/// Prints the reason why nothing is captured yet, if there is one.
fn tell_waits(started: &CaptureInfo) {
    if let Some(why) = &started.waits {
        note!("capture {}: {why}", started.capture);
    }
}

/// Captures into standard output, until the reader closes it, a limit is reached, or a signal arrives.
fn stream(
    client: &CaptureClient,
    question: &CaptureRequest,
    format: Format,
) -> Result<Verdict, Failure> {
    let failed = |error: io::Error| Failure::Unusable(format!("standard output: {error}"));
    if io::IsTerminal::is_terminal(&io::stdout()) {
        let message =
            "-w -: standard output is a terminal, expected a pipe such as `| tshark -i -`";
        return Err(Failure::Unusable(message.to_owned()));
    }
    let alarm = Alarm::new().map_err(failed)?;
    let mut orders = Orders::catch(&alarm.bell()).map_err(failed)?;
    let file: OwnedFd = io::stdout().as_fd().try_clone_to_owned().map_err(failed)?;
    let started = capture_in(client.ask(question, Some(&file)).map_err(Failure::unusable)?)?;
    tell_waits(&started);
    let capture = started.capture;
    let stopped = loop {
        let info = match client.ask(&CaptureRequest::Status { capture }, None) {
            Ok(answer) => capture_in(answer)?,
            // The program has exited, which also ends the capture.
            Err(ClientError::Gone(_) | ClientError::Io { .. }) => return Ok(Verdict::Good),
            Err(error) => return Err(Failure::unusable(error)),
        };
        if info.ended || matches!(orders.take(), Some(Order::End)) {
            break capture_in(ask(client, &CaptureRequest::Stop { capture })?)?;
        }
        std::thread::sleep(LOOK);
    };
    match format {
        Format::Json => {
            // Standard output carries the packets, so the result is printed to standard error.
            writeln!(io::stderr(), "{}", json_line(&stopped)?).ok();
        }
        Format::Text => note!("{}", line(&stopped)),
    }
    // A reader stops the capture by closing the stream, so a closed stream is no failure.
    Ok(Verdict::good_if(stopped.error.is_none() || stopped.reader_left))
}

pub(super) fn change(args: &ChangeArgs, out: &mut Output) -> Result<Verdict, Failure> {
    let Program { client, .. } = find_with(&args.program, &[args.capture])?;
    let direction = args.direction.map(|way| match way {
        WayArg::Send => Some(WireDirection::Send),
        WayArg::Receive => Some(WireDirection::Receive),
        WayArg::Both => None,
    });
    let opcodes = args.opcode.iter().flat_map(|it| &it.0).map(|opcode| opcode.0).collect();
    let question = CaptureRequest::Change {
        capture: args.capture,
        payload: args.payload.map(|payload| payload as u16),
        direction,
        opcodes: (!args.opcode.is_empty()).then_some(opcodes),
    };
    let changed = capture_in(ask(&client, &question)?)?;
    tell(&[changed], Format::of(args.json), out)?;
    Ok(Verdict::Good)
}

pub(super) fn stop(args: &StopArgs, out: &mut Output) -> Result<Verdict, Failure> {
    let found = match args.captures.is_empty() {
        true => find(&args.program)?,
        // A capture's number is unique only within its program, so all given numbers refer to one program.
        false => vec![find_with(&args.program, &args.captures)?],
    };
    if found.is_empty() {
        return Err(Failure::Unusable(nobody(&args.program)));
    }
    let (mut stopped, mut failed) = (Vec::new(), Vec::new());
    for Program { client, info } in &found {
        let own: Vec<u64> = match args.captures.is_empty() {
            true => info.captures.iter().map(|it| it.capture).collect(),
            false => args.captures.clone(),
        };
        for capture in own {
            // If one capture cannot be stopped, the remaining captures are stopped nevertheless.
            match ask(client, &CaptureRequest::Stop { capture }).and_then(capture_in) {
                Ok(info) => stopped.push(info),
                Err(error) => failed.push(error.into_message()),
            }
        }
    }
    tell(&stopped, Format::of(args.json), out)?;
    if !failed.is_empty() {
        return Err(Failure::Unusable(failed.join("; ")));
    }
    if stopped.is_empty() {
        return Err(Failure::Unusable("nothing is captured".to_owned()));
    }
    Ok(Verdict::good_if(stopped.iter().all(|it| it.error.is_none())))
}

fn tell(captures: &[CaptureInfo], format: Format, out: &mut Output) -> Result<(), Failure> {
    for info in captures {
        match format {
            Format::Json => out.json(info)?,
            Format::Text => writeln!(out, "{}", line(info))?,
        }
    }
    Ok(())
}

fn autostop(limits: &[Limit]) -> Autostop {
    let mut autostop = Autostop::default();
    for limit in limits {
        match *limit {
            Limit::Duration(duration) => autostop.duration = Some(duration),
            Limit::Bytes(bytes) => autostop.bytes = Some(bytes),
            Limit::Packets(packets) => autostop.packets = Some(packets),
            // This does not occur, because clap rejects `--autostop files:N`.
            Limit::Files(_) => {}
        }
    }
    autostop
}

fn rotation(limits: &[Limit]) -> Result<Rotation, Failure> {
    let mut rotation = Rotation::default();
    for limit in limits {
        match *limit {
            Limit::Duration(duration) => rotation.duration = Some(duration),
            Limit::Bytes(bytes) => rotation.bytes = Some(bytes),
            Limit::Packets(packets) => rotation.packets = Some(packets),
            Limit::Files(files) => rotation.files = Some(files as usize),
        }
    }
    if rotation.files.is_some() && !rotation.happens() {
        let message = "--ring-buffer files: expected also a condition that starts the next file, such as filesize:1000";
        return Err(Failure::Unusable(message.to_owned()));
    }
    Ok(rotation)
}
