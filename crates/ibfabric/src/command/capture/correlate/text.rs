//! Text output of correlated captures.

use std::io::Write as _;

use ib_capture::correlate::{Message, Part, Percentiles};

use crate::failure::Failure;
use crate::output::Output;
use ib_report::findings::{Findings, TimingFindings, clocks, end, micros};

pub(super) fn print(findings: &Findings, lists: bool, out: &mut Output) -> Result<(), Failure> {
    for (number, (name, counts)) in findings.files.iter().enumerate() {
        write!(out, "file {}: {name}: {} packets captured", number + 1, counts.captured)?;
        if let Some(overwritten) = counts.overwritten {
            write!(out, ", {overwritten} overwritten")?;
        }
        if let Some(noted) = counts.noted {
            write!(out, ", of {noted} sent and received")?;
        }
        if counts.lost > 0 {
            write!(out, "; {} reported as lost in transit", counts.lost)?;
        }
        if let Some((first, last)) = counts.times {
            write!(out, ", in {}", duration((last - first).cast_signed()))?;
        }
        writeln!(out)?;
    }
    writeln!(out, "clocks: {}", clocks(&findings.clocks))?;
    let all = findings.matched;
    writeln!(
        out,
        "packets: {} seen at both ends, {} only where they were sent, {} only where they were received, {} retransmitted",
        all.matched, all.sent_only, all.received_only, all.sent_again
    )?;
    for pair in &findings.pairs {
        let [from, to] = pair.ends.map(end);
        writeln!(out, "\n{from} -> {to}")?;
        let (mut matched, again) = (pair.requests, pair.requests.sent_again);
        matched += pair.responses;
        writeln!(
            out,
            "    {} messages, {} bytes; {} incomplete; packets: {} seen at both ends, {} only sent, {} only received, \
             {again} retransmitted",
            pair.messages,
            pair.bytes,
            pair.broken,
            matched.matched,
            matched.sent_only,
            matched.received_only
        )?;
        table(&pair.spreads, out)?;
    }
    if findings.pairs.len() > 1 {
        writeln!(out, "\nall {} pairs", findings.pairs.len())?;
        table(&findings.spreads, out)?;
    }
    if let Some(timing) = &findings.timing {
        print_timing(timing, out)?;
    }
    if lists {
        print_messages(findings, out)?;
    }
    if !findings.notes.is_empty() {
        writeln!(out)?;
    }
    for note in &findings.notes {
        writeln!(out, "note: {note}")?;
    }
    Ok(())
}

fn table(spreads: &[Option<Percentiles>; 6], out: &mut Output) -> Result<(), Failure> {
    writeln!(
        out,
        "    {:<11} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}  [us]",
        "part", "messages", "min", "p50", "p90", "p99", "p99.9", "max"
    )?;
    for (part, spread) in Part::ALL.iter().zip(spreads) {
        let name = part.name().replace('_', " ");
        match spread {
            None => writeln!(out, "    {name:<11} {:>10}", "unknown")?,
            Some(spread) => writeln!(out, "    {name:<11} {}", numbers(spread))?,
        }
    }
    Ok(())
}

fn numbers(spread: &Percentiles) -> String {
    let [p50, p90, p99, p99_9] = spread.fractions.map(micros);
    let (min, max) = (micros(spread.min), micros(spread.max));
    format!("{:>10} {min:>10} {p50:>10} {p90:>10} {p99:>10} {p99_9:>10} {max:>10}", spread.count)
}

fn print_timing(timing: &TimingFindings, out: &mut Output) -> Result<(), Failure> {
    writeln!(out, "\nfrom `{}` to the next `{}`", timing.from, timing.to)?;
    match (timing.events, &timing.spread) {
        (None, _) => writeln!(out, "    unknown: the clocks cannot be compared")?,
        (Some([from, to]), None) => {
            writeln!(out, "    no times: {from} events of --from, {to} events of --to")?;
        }
        (Some([from, to]), Some(spread)) => {
            let without = from - spread.count;
            writeln!(
                out,
                "    {from} events of --from, {to} events of --to; {without} of --from without a following event"
            )?;
            writeln!(
                out,
                "    {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}  [us]",
                "times", "min", "p50", "p90", "p99", "p99.9", "max"
            )?;
            writeln!(out, "    {}", numbers(spread))?;
        }
    }
    Ok(())
}

fn print_messages(findings: &Findings, out: &mut Output) -> Result<(), Failure> {
    for pair in &findings.pairs {
        let [from, to] = pair.ends.map(end);
        writeln!(out, "\nmessages {from} -> {to}")?;
        writeln!(
            out,
            "    {:<6} {:<8} {:>7} {:>10} {:>5} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}  [us]",
            "what",
            "PSN",
            "packets",
            "bytes",
            "again",
            "queue",
            "wire",
            "receive",
            "completion",
            "in flight",
            "total"
        )?;
        for message in &pair.listed {
            let Message { kind, first, packets, bytes, sent_again, .. } = message;
            write!(out, "    {:<6} {first} {packets:>7} {bytes:>10} {sent_again:>5}", kind.name())?;
            for part in Part::ALL {
                let time = message.part(part).map_or_else(|| "?".to_owned(), micros);
                write!(out, " {time:>10}")?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}

/// Returns a duration as text, in microseconds, milliseconds or seconds.
fn duration(nanos: i64) -> String {
    match nanos {
        0..1_000_000 => format!("{} us", micros(nanos)),
        1_000_000..1_000_000_000 => format!("{:.3} ms", nanos as f64 / 1e6),
        _ => format!("{:.3} s", nanos as f64 / 1e9),
    }
}
