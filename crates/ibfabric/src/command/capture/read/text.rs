//! Text output of `capture read`.

use std::fmt::Write as _;
use std::io::{self, Write};

use ib_capture::Dissection;
use ib_capture::Frame;
use ib_capture::dissect::{Fields, Value};

use super::Found;

/// Returns nanoseconds as seconds.
pub(super) fn seconds(nanos: u64) -> String {
    format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
}

/// Returns a frame as one line.
pub(super) fn line(frame: &Frame<'_>, found: &Found<'_>, first: Option<u64>) -> String {
    let mut line = format!("{:>6} ", frame.number);
    match (frame.time, first) {
        (Some(time), Some(first)) if time < first => {
            write!(line, "-{}", seconds(first - time))
        }
        (Some(time), first) => write!(line, "{}", seconds(time - first.unwrap_or(time))),
        (None, _) => write!(line, "-"),
    }
    .expect("a `String` accepts text");
    if let Some(name) = frame.interface_name {
        add(&mut line, format_args!("{name:?}"));
    }
    match found {
        Ok(packet) => describe(packet, &mut line),
        Err(why) => add(&mut line, format_args!("non-RDMA: {why}")),
    }
    let is_told = |comment: &String| comment.ends_with(" before this one were overwritten");
    if frame.lost > 0 && !frame.comments.iter().any(is_told) {
        add(&mut line, format_args!("[{} missing before]", frame.lost));
    }
    for comment in &frame.comments {
        add(&mut line, format_args!("[{}]", tidy(comment)));
    }
    line
}

fn add(line: &mut String, part: std::fmt::Arguments<'_>) {
    line.push(' ');
    line.write_fmt(part).expect("a `String` accepts text");
}

/// Appends the description of a packet to a line of text.
fn describe(found: &Dissection<'_>, line: &mut String) {
    let packet = &found.packet;
    let bth = packet.bth();
    add(line, format_args!("{} → {} {}", found.source, found.destination, bth.opcode));
    match found.source_qpn {
        Some(source) => {
            add(line, format_args!("qp {:#x} → {:#x}", source.get(), bth.destination.get()));
        }
        None => add(line, format_args!("qp {:#x}", bth.destination.get())),
    }
    add(line, format_args!("psn {}", bth.psn.get()));
    for (is_set, word) in
        [(bth.solicited_event, "solicited"), (bth.fecn, "fecn"), (bth.becn, "becn")]
    {
        if is_set {
            add(line, format_args!("{word}"));
        }
    }
    if let Some(reth) = packet.reth() {
        let (address, key) = (reth.virtual_address, reth.r_key);
        add(line, format_args!("va {address:#x} rkey {key:#x} of {}", reth.dma_length));
    }
    if let Some(atomic) = packet.atomic_eth() {
        let (address, key) = (atomic.virtual_address, atomic.r_key);
        let (swap, compare) = (atomic.swap_or_add, atomic.compare);
        add(line, format_args!("va {address:#x} rkey {key:#x} {swap:#x} compare {compare:#x}"));
    }
    if let Some(aeth) = packet.aeth() {
        add(line, format_args!("{} msn {}", aeth.syndrome.decode(), aeth.msn));
    }
    if let Some(atomic) = packet.atomic_ack_eth() {
        add(line, format_args!("was {:#x}", atomic.original));
    }
    if let Some(immediate) = packet.immdt() {
        add(line, format_args!("imm {:#010x}", immediate.data));
    }
    if let Some(ieth) = packet.ieth() {
        add(line, format_args!("invalidates {:#x}", ieth.r_key));
    }
    let length = packet.payload().len();
    if length > 0 {
        add(line, format_args!("len {length}"));
    }
    if found.kept < length {
        add(line, format_args!("({} captured)", found.kept));
    }
    if let (Some(mad), None) = (&found.mad, &found.upper) {
        add(line, format_args!("{mad}"));
    }
    if let Some(upper) = &found.upper {
        add(line, format_args!("{upper}"));
    }
    if found.icrc_ok == Some(false) {
        add(line, format_args!("wrong ICRC"));
    }
    if found.vcrc_ok == Some(false) {
        add(line, format_args!("wrong VCRC"));
    }
}

/// Returns a comment without characters that break the line.
fn tidy(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

/// Prints each field on a line of its own.
pub(super) fn fields(fields: &Fields, depth: usize, out: &mut impl Write) -> io::Result<()> {
    let indent = depth * 4;
    for (name, value) in fields.iter() {
        match value {
            Value::Missing => {}
            Value::Group(group) => {
                writeln!(out, "{:indent$}{name}:", "")?;
                self::fields(group, depth + 1, out)?;
            }
            value => writeln!(out, "{:indent$}{name}: {}", "", show(value))?,
        }
    }
    Ok(())
}

fn show(value: &Value) -> String {
    match value {
        Value::Missing | Value::Group(_) => "-".to_owned(),
        Value::Flag(flag) => if *flag { "yes" } else { "no" }.to_owned(),
        Value::Number(number @ 0..=9) => number.to_string(),
        Value::Number(number) => format!("{number} ({number:#x})"),
        Value::Wide(number) => format!("{number:#x}"),
        Value::Text(text) => tidy(text),
        Value::List(values) => values.iter().map(show).collect::<Vec<_>>().join(", "),
    }
}
