//! The HTML page that `capture correlate --html` writes.
//!
//! | module | holds |
//! |---|---|
//! | `timeline` | the messages over time |

use std::fmt::Write as _;

use ib_capture::correlate::{Clocks, PERCENTILES, Part, Percentiles};

use crate::charts::{Bar, Chart};
use crate::findings::{BINS_PER_DECADE, Findings, Histogram, PairFindings};
use crate::findings::{clocks, drift, end, micros};
use crate::html;

mod timeline;

use timeline::timeline;

/// Template of the page's main part, with placeholders for its sections.
const MAIN: &str = "\
<div class=\"cards\">
{{figures}}</div>
{{timeline}}
<div class=\"charts\">
{{charts}}</div>
{{tables}}
{{notes}}
";
const ABOUT: &str = "\
queue: from the posting of a request until its first packet is sent. wire: until the first packet is received. receive: until \
the last packet is received. completion: until the acknowledgement or response is received. in flight: the sum of wire, receive \
and completion.";
const STYLE: &str = concat!(include_str!("page.css"), include_str!("correlation.css"));

/// Returns the HTML page about correlated captures.
#[must_use]
pub fn page(findings: &Findings) -> String {
    let names: Vec<&str> = findings.files.iter().map(|(name, _)| name.as_str()).collect();
    let heading = html::text(&format!("Parts of the latency: {}", names.join(" and ")));
    let (timeline, script) = timeline(findings);
    let main = html::fill(
        MAIN,
        &[
            ("figures", &figures(findings)),
            ("timeline", &timeline),
            ("charts", &charts(findings)),
            ("tables", &tables(findings)),
            ("notes", &notes(findings)),
        ],
    );
    let page = html::Page {
        title: &heading,
        heading: &heading,
        style: STYLE,
        verdict: &verdict(findings),
        main: &main,
        about: ABOUT,
        script: &script,
    };
    page.fill()
}

fn verdict(findings: &Findings) -> String {
    let all = findings.matched;
    let (class, word) = match (findings.is_good(), all.sent_only + all.received_only) {
        (false, _) => ("bad", "No result"),
        (true, 0) => ("good", "All matched"),
        (true, _) => ("warn", "Matched in part"),
    };
    format!(
        "<p class=\"verdict {class}\"><strong>{word}</strong> {} seen at both ends, {} only where they were sent, {} \
         only where they were received.</p>",
        html::counted(all.matched, "packet", "packets"),
        html::count(all.sent_only),
        html::count(all.received_only)
    )
}

fn figures(findings: &Findings) -> String {
    let mut cards = String::new();
    let mut card = |name: &str, value: &str, unit: &str, more: &[(&str, String)]| {
        let _ = write!(
            cards,
            "<div class=\"card\"><h2>{name}</h2><p><strong>{value}</strong> {unit}</p><dl>"
        );
        for (name, number) in more {
            let _ = write!(cards, "<div><dt>{name}</dt><dd>{number}</dd></div>");
        }
        cards.push_str("</dl></div>\n");
    };
    let sum = |number: fn(&PairFindings) -> u64| html::count(findings.sum(number));
    card(
        "Messages",
        &sum(|pair| pair.messages),
        "",
        &[
            ("requesting queue pairs", html::count(findings.pairs.len() as u64)),
            ("incomplete", sum(|pair| pair.broken)),
            ("bytes", sum(|pair| pair.bytes)),
            ("retransmitted packets", html::count(findings.matched.sent_again)),
        ],
    );
    for (number, (_, counts)) in findings.files.iter().enumerate() {
        let known = |count: Option<u64>| count.map_or_else(|| "unknown".to_owned(), html::count);
        card(
            &format!("File {}", number + 1),
            &html::count(counts.captured),
            "packets captured",
            &[
                ("overwritten", known(counts.overwritten)),
                ("total sent and received", known(counts.noted)),
                ("other frames", html::count(counts.foreign)),
            ],
        );
    }
    let middle = [Part::Total, Part::InFlight, Part::Receive]
        .into_iter()
        .find_map(|part| Some((part, findings.spreads[part as usize]?)));
    if let Some((part, spread)) = middle {
        card(
            &format!("Median of {}", part.name().replace('_', " ")),
            &micros(spread.fractions[0]),
            "µs",
            &[("99 %", micros(spread.fractions[2])), ("longest", micros(spread.max))],
        );
    }
    if let Clocks::Estimated(it) = findings.clocks {
        card(
            "Clock of file 2",
            &format!("{:+.3}", it.offset / 1e3),
            "µs",
            &[
                ("uncertainty", format!("± {:.3} µs", it.uncertainty / 1e3)),
                ("drift", drift(&it)),
                ("fastest round trip", format!("{:.3} µs", it.round_trip / 1e3)),
            ],
        );
    }
    cards
}

fn charts(findings: &Findings) -> String {
    let about = [
        ("Queue", "From the posting of a request until its first packet is sent."),
        ("Wire", "From the sending of the first packet until the first packet is received."),
        ("Receive", "From the receipt of the first packet until the last one is received."),
        (
            "Completion",
            "From the receipt of the last packet until the acknowledgement or response is received.",
        ),
        (
            "In flight",
            "From the sending of the first packet until the acknowledgement or response is received.",
        ),
        ("Total", "From the posting until the acknowledgement or response is received."),
    ];
    let parts = Part::ALL.iter().zip(about).zip(&findings.histograms);
    parts.map(|((part, about), histogram)| chart(*part, about, histogram)).collect()
}

fn chart(
    part: Part,
    (heading, description): (&'static str, &'static str),
    histogram: &Histogram,
) -> String {
    let bins = &histogram.bins;
    let used = || bins.iter().enumerate().filter(|(_, count)| **count > 0).map(|(bin, _)| bin);
    let (Some(first), Some(last)) = (used().next(), used().next_back()) else {
        return String::new();
    };
    let description = match histogram.without {
        0 => description.to_owned(),
        without => {
            let without = html::counted(without, "message", "messages");
            format!("{description} Not drawn: {without} with a time of 0 or less.")
        }
    };
    // The first bar starts at a power of ten, because only powers of ten have labels.
    let first = first / BINS_PER_DECADE * BINS_PER_DECADE;
    let bars: Vec<Bar> = (first..=last)
        .map(|bin| {
            let edge = |bin: usize| 10_f64.powf(bin as f64 / BINS_PER_DECADE as f64);
            Bar {
                parts: vec![(part.name().to_owned(), bins[bin])],
                label: bin.is_multiple_of(BINS_PER_DECADE).then(|| time(edge(bin))),
                title: format!(
                    "{} to {}: {}",
                    time(edge(bin)),
                    time(edge(bin + 1)),
                    html::counted(bins[bin], "message", "messages")
                ),
            }
        })
        .collect();
    Chart {
        id: part.name(),
        heading,
        description,
        across: "time, on a logarithmic scale",
        up: "messages",
        mark: None,
    }
    .draw(&bars)
}

/// Formats a time with its unit and at most one decimal place.
fn time(nanos: f64) -> String {
    let (value, unit) = match nanos {
        ..1e3 => (nanos, "ns"),
        ..1e6 => (nanos / 1e3, "µs"),
        ..1e9 => (nanos / 1e6, "ms"),
        _ => (nanos / 1e9, "s"),
    };
    let places = usize::from(value < 9.95 && (value - value.round()).abs() > 0.05);
    format!("{value:.places$} {unit}")
}

fn tables(findings: &Findings) -> String {
    let mut all = String::new();
    if findings.pairs.len() > 1 {
        all.push_str(&table("all", "All pairs", "", &findings.spreads));
    }
    for (number, pair) in findings.pairs.iter().enumerate() {
        let [from, to] = pair.ends.map(end);
        let (mut packets, again) = (pair.requests, pair.requests.sent_again);
        packets += pair.responses;
        let counts = format!(
            "{}, {} incomplete, {} bytes. Packets: {} seen at both ends, {} only where they were sent, {} only where \
             they were received, {} retransmitted.",
            html::counted(pair.messages, "message", "messages"),
            html::count(pair.broken),
            html::count(pair.bytes),
            html::count(packets.matched),
            html::count(packets.sent_only),
            html::count(packets.received_only),
            html::count(again)
        );
        let id = format!("pair-{number}");
        all.push_str(&table(&id, &html::text(&format!("{from} → {to}")), &counts, &pair.spreads));
    }
    if let Some(timing) = &findings.timing {
        let heading = html::text(&format!("From `{}` to the next `{}`", timing.from, timing.to));
        let rows = row("time", timing.spread.as_ref());
        all.push_str(&section("timing", &heading, "", &rows));
    }
    all
}

fn table(id: &str, heading: &str, counts: &str, spreads: &[Option<Percentiles>; 6]) -> String {
    let parts = Part::ALL.iter().zip(spreads);
    let rows: String =
        parts.map(|(part, spread)| row(&part.name().replace('_', " "), spread.as_ref())).collect();
    section(id, heading, counts, &rows)
}

fn section(id: &str, heading: &str, counts: &str, rows: &str) -> String {
    let names = PERCENTILES.map(|(name, _)| name.replace('_', "."));
    let names =
        ["number", "min"].into_iter().chain(names.iter().map(String::as_str)).chain(["max"]);
    let names: String = names.map(|name| format!("<th class=\"number\">{name}</th>")).collect();
    format!(
        "<section aria-labelledby=\"{id}-heading\">\n<h2 id=\"{id}-heading\">{heading}</h2>\n<p>{counts}</p>\n\
         <div class=\"wide\" tabindex=\"0\" role=\"group\" aria-label=\"Table\"><table><thead><tr><th>µs</th>{names}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n\
         </section>\n"
    )
}

fn row(name: &str, spread: Option<&Percentiles>) -> String {
    let Some(spread) = spread else {
        return format!(
            "<tr><td>{name}</td><td class=\"number unknown\" colspan=\"7\">unknown</td></tr>\n"
        );
    };
    let times = std::iter::once(spread.min).chain(spread.fractions).chain([spread.max]);
    let cells: String =
        times.map(|time| format!("<td class=\"number\">{}</td>", micros(time))).collect();
    let count = html::count(spread.count);
    format!("<tr><td>{name}</td><td class=\"number\">{count}</td>{cells}</tr>\n")
}

fn notes(findings: &Findings) -> String {
    let lines = std::iter::once(format!("clocks: {}", clocks(&findings.clocks)));
    let list = html::list("ul", lines.chain(findings.notes.iter().cloned()));
    format!(
        "<section aria-labelledby=\"notes-heading\">\n<h2 id=\"notes-heading\">Notes</h2>\n{list}</section>\n"
    )
}
