//! Prints running programs and their captures as text.

use std::io::Write as _;

use ib_control::capture::message::{AdapterInfo, CaptureInfo};

use super::{Listed, MessagesOf};
use crate::failure::Failure;
use crate::output::Output;

/// Prints programs with their HCAs, queue pairs and captures.
pub(super) fn print(all: &[Listed<'_>], out: &mut Output) -> Result<(), Failure> {
    for of_program in all.chunk_by(|one, other| one.pid == other.pid) {
        let Some(first) = of_program.first() else { continue };
        writeln!(out, "{}: {}", first.pid, first.command)?;
        of_program.iter().try_for_each(|listed| print_adapter(listed, out))?;
        for capture in of_program.iter().flat_map(|listed| listed.captures) {
            writeln!(out, "  {}", line(capture))?;
        }
        of_program.iter().try_for_each(|listed| print_messages(listed, out))?;
    }
    Ok(())
}

fn print_adapter(listed: &Listed<'_>, out: &mut Output) -> Result<(), Failure> {
    let info = listed.info;
    let AdapterInfo { address, udp_port, link, .. } = info;
    match udp_port {
        0 => writeln!(out, "  HCA {address}, {link}")?,
        port => writeln!(out, "  HCA {address}, {link}, UDP port {port}")?,
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
    Ok(())
}

fn print_messages(listed: &Listed<'_>, out: &mut Output) -> Result<(), Failure> {
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

/// Returns a capture as a line of text.
pub(super) fn line(info: &CaptureInfo) -> String {
    let CaptureInfo { capture, file, files, bytes, ended, error, all, queue_pairs, .. } = info;
    let files = if *files > 1 { format!(", {files} files") } else { String::new() };
    // If a capture ended at its limit without an error, the unwritten packets are those after the limit.
    let is_behind = *ended && error.is_none() && all.unwritten > 0;
    let unwritten = if is_behind { "not written after the limit" } else { "not written" };
    let mut line = format!(
        "capture {capture}: {file}: {} packets captured, {} overwritten, {} {unwritten}, of {} sent \
         and {} received",
        all.captured, all.overwritten, all.unwritten, all.sent, all.received
    );
    if all.skipped > 0 {
        line.push_str(&format!(", {} held for the trigger and discarded", all.skipped));
    }
    if all.lost > 0 {
        line.push_str(&format!(", {} reported as lost in transit", all.lost));
    }
    line.push_str(&format!("; {queue_pairs} queue pairs, {bytes} bytes{files}"));
    if let Some(error) = error {
        line.push_str(&format!("; ended: {error}"));
    } else if *ended {
        line.push_str("; ended");
    }
    line
}
