//! Captures of running programs.

use std::io::{self, Write};
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use ib_hca::trace::Trigger;
use ib_net::alarm::Alarm;
use ib_net::capture::message::{
    AdapterInfo, Answer, Ask, CaptureInfo, MessageInfo, Start, VERSION, WireDirection, WirePeer,
    WireTrace, WireTrigger,
};
use ib_net::capture::{Autostop, CaptureClient, ClientError, Rotation, pid_of, programs};
use ib_net::device::gid_of;
use ib_net::signals::{Order, Orders};
use serde::Serialize;

use crate::cli::capture::DirectionArg;
use crate::cli::capture::live::{
    ChangeArgs, KeepArgs, Limit, ListArgs, PeerArg, ProgramArgs, StartArgs, StopArgs, WayArg,
};
use crate::failure::{Failure, Verdict, say};
use crate::output::{Format, Output};

/// How often a capture into a stream is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// A program and its adapter.
struct Program {
    client: CaptureClient,
    info: AdapterInfo,
}

/// Returns the programs that are meant, which may be none.
fn find(args: &ProgramArgs) -> Result<Vec<Program>, Failure> {
    let names = programs().map_err(Failure::unusable)?;
    let mut found = Vec::new();
    for name in names {
        if args.pid.is_some() && args.pid != pid_of(&name) {
            continue;
        }
        let described = CaptureClient::connect(&name)
            .and_then(|client| client.describe().map(|info| (client, info)));
        let (client, info) = match described {
            Ok(found) => found,
            // One that has gone meanwhile, or is somebody else's, is none.
            Err(ClientError::Gone(_) | ClientError::Io { .. } | ClientError::Foreign(_)) => {
                continue;
            }
            Err(error) => {
                say!("{name}: {error}");
                continue;
            }
        };
        let is_meant = args.pid.is_none_or(|pid| pid == info.pid)
            && args
                .device
                .is_none_or(|device| info.address.parse::<IpAddr>().is_ok_and(|own| own == device));
        if is_meant {
            found.push(Program { client, info });
        }
    }
    Ok(found)
}

/// Returns the one program that is meant.
fn find_one(args: &ProgramArgs) -> Result<Program, Failure> {
    let mut found = find(args)?;
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(Failure::Unusable(nobody(args))),
        _ => {
            let each = |it: &Program| format!("{} at {}", it.info.pid, it.info.address);
            let all: Vec<_> = found.iter().map(each).collect();
            let all = all.join(", ");
            Err(Failure::Unusable(format!("several programs: {all}; choose by --pid or --device")))
        }
    }
}

fn nobody(args: &ProgramArgs) -> String {
    let mut who = "no program of this user".to_owned();
    if let Some(pid) = args.pid {
        who = format!("process {pid}, if there is one,");
    }
    if let Some(device) = args.device {
        who.push_str(&format!(" at {device}"));
    }
    format!("{who} has queue pairs that could be captured: expected one such as `ibfabric rdma`")
}

/// A program as JSON has it.
#[derive(Serialize)]
struct Listed<'a> {
    #[serde(flatten)]
    info: &'a AdapterInfo,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    messages: Vec<MessagesOf>,
}

#[derive(Serialize)]
struct MessagesOf {
    qpn: u32,
    messages: Vec<MessageInfo>,
}

pub(super) fn list(args: &ListArgs, out: &mut Output) -> Result<Verdict, Failure> {
    let found = find(&args.program)?;
    if found.is_empty() && (args.program.pid.is_some() || args.program.device.is_some()) {
        return Err(Failure::Unusable(nobody(&args.program)));
    }
    let mut listed = Vec::new();
    for Program { client, info } in &found {
        let mut messages = Vec::new();
        for qpn in args.messages.iter().map(|qpn| qpn.get()) {
            if !info.qps.iter().any(|it| it.qpn == qpn) {
                continue;
            }
            if let Answer::Messages(found) = ask(client, &Ask::Messages { qpn, from: 0 })? {
                messages.push(MessagesOf { qpn, messages: found });
            }
        }
        listed.push(Listed { info, messages });
    }
    for qpn in &args.messages {
        if !listed.iter().any(|it| it.messages.iter().any(|of| of.qpn == qpn.get())) {
            let message = format!("no program has a queue pair {:#08x}", qpn.get());
            return Err(Failure::Unusable(message));
        }
    }
    if args.format == Format::Json {
        #[derive(Serialize)]
        struct Report<'a> {
            programs: Vec<Listed<'a>>,
        }
        out.json(&Report { programs: listed })?;
        return Ok(Verdict::Good);
    }
    if listed.is_empty() {
        writeln!(out, "{}", nobody(&args.program))?;
    }
    for it in &listed {
        print(it, out)?;
    }
    Ok(Verdict::Good)
}

fn print(listed: &Listed<'_>, out: &mut Output) -> Result<(), Failure> {
    let info = listed.info;
    let AdapterInfo { pid, command, address, udp_port, link, .. } = info;
    writeln!(out, "{pid}: {command}")?;
    match udp_port {
        0 => writeln!(out, "  adapter {address}, {link}")?,
        port => writeln!(out, "  adapter {address}, {link}, UDP port {port}")?,
    }
    for qp in &info.qps {
        let peer = match (&qp.peer, qp.peer_qpn) {
            (Some(peer), Some(qpn)) => format!(" to {peer} qp {qpn:#08x}"),
            _ => String::new(),
        };
        let service = qp.service_id.map_or(String::new(), |id| format!(", service {id:#x}"));
        let captured = if qp.captured { ", captured" } else { "" };
        writeln!(
            out,
            "  qp {:#08x} {} {}{peer}{service}, {} messages{captured}",
            qp.qpn, qp.kind, qp.state, qp.messages
        )?;
    }
    for capture in &info.captures {
        writeln!(out, "  {}", line(capture))?;
    }
    for MessagesOf { qpn, messages } in &listed.messages {
        writeln!(out, "  messages of qp {qpn:#08x}:")?;
        writeln!(
            out,
            "  {:>8} {:<8} {:<18} {:<16} {:>10} {:>8} {:>7} {:>11} {:>11}",
            "number",
            "way",
            "operation",
            "status",
            "bytes",
            "psn",
            "packets",
            "queued ns",
            "total ns"
        )?;
        for it in messages {
            let queued = it.queued_ns.map_or("-".to_owned(), |queued| queued.to_string());
            writeln!(
                out,
                "  {:>8} {:<8} {:<18} {:<16} {:>10} {:>8} {:>7} {queued:>11} {:>11}",
                it.number,
                it.direction,
                it.operation,
                it.status,
                it.bytes,
                it.psn,
                it.packets,
                it.total_ns
            )?;
        }
    }
    Ok(())
}

/// Returns a capture in words.
fn line(info: &CaptureInfo) -> String {
    let CaptureInfo { capture, file, files, bytes, ended, error, all, queue_pairs, .. } = info;
    let files = if *files > 1 { format!(", {files} files") } else { String::new() };
    let mut line = format!(
        "capture {capture}: {file}: {} packets captured, {} overwritten, {} not written, of {} sent \
         and {} received",
        all.captured, all.overwritten, all.unwritten, all.sent, all.received
    );
    if all.skipped > 0 {
        line.push_str(&format!(", {} not wanted", all.skipped));
    }
    if all.lost > 0 {
        line.push_str(&format!(", {} known to be lost", all.lost));
    }
    line.push_str(&format!("; {queue_pairs} queue pairs, {bytes} bytes{files}"));
    if let Some(error) = error {
        line.push_str(&format!("; ended: {error}"));
    } else if *ended {
        line.push_str("; ended");
    }
    line
}

fn ask(client: &CaptureClient, question: &Ask) -> Result<Answer, Failure> {
    client.ask(question, None).map_err(Failure::unusable)
}

/// Returns the capture that an answer tells of.
fn capture_in(answer: Answer) -> Result<CaptureInfo, Failure> {
    match answer {
        Answer::Capture(info) => Ok(*info),
        _ => Err(Failure::Unusable("the program has answered something else".to_owned())),
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
    let is_stream = args.write == Path::new("-");
    let rotation = rotation(&args.ring_buffer)?;
    if is_stream && rotation != Rotation::default() {
        let message = "--ring-buffer: standard output is one stream, expected a file with -w";
        return Err(Failure::Unusable(message.to_owned()));
    }
    let path = match is_stream {
        true => None,
        false => {
            let path = std::path::absolute(&args.write).map_err(Failure::unusable)?;
            let text = path.into_os_string().into_string();
            Some(text.map_err(|path| Failure::Unusable(format!("{path:?}: expected UTF-8")))?)
        }
    };
    let peer = |peer: &PeerArg| match *peer {
        PeerArg::Address(address) => WirePeer::Gid(gid_of(address).0),
        PeerArg::Lid(lid) => WirePeer::Lid(lid),
    };
    let start = Start {
        version: VERSION,
        path,
        rotation,
        autostop: autostop(&args.autostop)?,
        qpns: args.qpn.iter().map(|qpn| qpn.get()).collect(),
        peers: args.peer.iter().map(peer).collect(),
        services: args.service.iter().map(|id| id.0).collect(),
        trace: trace(&args.keep_args, args.ring, args.trigger),
        keep: args.keep,
    };
    let Program { client, info } = find_one(&args.program)?;
    let question = Ask::Start(Box::new(start));
    if !is_stream {
        let started = capture_in(ask(&client, &question)?)?;
        match args.format {
            Format::Json => out.json(&started)?,
            Format::Text => writeln!(
                out,
                "capture {} of process {} into {}; `ibfabric capture stop --pid {} {}` ends it",
                started.capture, info.pid, started.file, info.pid, started.capture
            )?,
        }
        return Ok(Verdict::Good);
    }
    stream(&client, &question, args.format)
}

/// Captures into standard output, until the reader leaves, a limit, or a signal.
fn stream(client: &CaptureClient, question: &Ask, format: Format) -> Result<Verdict, Failure> {
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
    let capture = started.capture;
    let stopped = loop {
        let info = match client.ask(&Ask::Status { capture }, None) {
            Ok(answer) => capture_in(answer)?,
            // Its program has ended, and the capture with it.
            Err(ClientError::Gone(_) | ClientError::Io { .. }) => return Ok(Verdict::Good),
            Err(error) => return Err(Failure::unusable(error)),
        };
        if info.ended || matches!(orders.take(), Some(Order::End)) {
            break capture_in(ask(client, &Ask::Stop { capture })?)?;
        }
        std::thread::sleep(LOOK);
    };
    match format {
        Format::Json => {
            let text = serde_json::to_string(&stopped).map_err(Failure::unusable)?;
            // Standard output has the packets.
            writeln!(io::stderr(), "{text}").ok();
        }
        Format::Text => say!("{}", line(&stopped)),
    }
    // A reader that has left has had enough.
    Ok(Verdict::good_if(stopped.error.is_none() || stopped.reader_left))
}

pub(super) fn change(args: &ChangeArgs, out: &mut Output) -> Result<Verdict, Failure> {
    let Program { client, .. } = find_one(&args.program)?;
    let direction = args.direction.map(|way| match way {
        WayArg::Send => Some(WireDirection::Send),
        WayArg::Receive => Some(WireDirection::Receive),
        WayArg::Both => None,
    });
    let opcodes = args.opcode.iter().flat_map(|it| &it.0).map(|opcode| opcode.0).collect();
    let question = Ask::Change {
        capture: args.capture,
        payload: args.payload.map(|payload| payload as u16),
        direction,
        opcodes: (!args.opcode.is_empty()).then_some(opcodes),
    };
    let changed = capture_in(ask(&client, &question)?)?;
    tell(&[changed], args.format, out)?;
    Ok(Verdict::Good)
}

pub(super) fn stop(args: &StopArgs, out: &mut Output) -> Result<Verdict, Failure> {
    let found = find(&args.program)?;
    if found.is_empty() {
        return Err(Failure::Unusable(nobody(&args.program)));
    }
    if found.len() > 1 && !args.captures.is_empty() {
        // Each program counts its own.
        find_one(&args.program)?;
    }
    let (mut stopped, mut failed) = (Vec::new(), Vec::new());
    for Program { client, info } in &found {
        let own: Vec<u64> = match args.captures.is_empty() {
            true => info.captures.iter().map(|it| it.capture).collect(),
            false => args.captures.clone(),
        };
        for capture in own {
            // The others are stopped, whatever became of one.
            match ask(client, &Ask::Stop { capture }).and_then(capture_in) {
                Ok(info) => stopped.push(info),
                Err(error) => failed.push(error.into_message()),
            }
        }
    }
    tell(&stopped, args.format, out)?;
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

fn autostop(limits: &[Limit]) -> Result<Autostop, Failure> {
    let mut autostop = Autostop::default();
    for limit in limits {
        match *limit {
            Limit::Duration(duration) => autostop.duration = Some(duration),
            Limit::Bytes(bytes) => autostop.bytes = Some(bytes),
            Limit::Packets(packets) => autostop.packets = Some(packets),
            Limit::Files(_) => {
                let message = "--autostop files: expected duration, filesize or packets";
                return Err(Failure::Unusable(message.to_owned()));
            }
        }
    }
    Ok(autostop)
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
        let message =
            "--ring-buffer files: expected also when another file begins, such as filesize:1000";
        return Err(Failure::Unusable(message.to_owned()));
    }
    Ok(rotation)
}
