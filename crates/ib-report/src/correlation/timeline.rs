//! The messages over time, drawn by a script.

use std::fmt::Write as _;

use ib_capture::correlate::Clocks;
use serde::Serialize;

use crate::findings::{DRAWN, Findings, end};
use crate::html;

const SCRIPT: &str = include_str!("../timeline.js");

/// Maximum number of rows in the timeline; each row shows the messages from one queue pair to another.
const ROWS: usize = 64;

#[derive(Serialize)]
struct Drawn {
    pairs: Vec<String>,
    messages: Vec<Row>,
}

/// A message in the data of the script: index of its pair, send time, times of its parts except the total, operation,
/// first PSN, bytes, number of retransmitted packets. Times are in µs; the send time is relative to the first message.
#[derive(Serialize)]
struct Row(
    usize,
    f64,
    Option<f64>,
    Option<f64>,
    Option<f64>,
    Option<f64>,
    Option<f64>,
    &'static str,
    String,
    u64,
    u32,
);

/// Returns the HTML section "Messages over time", and its script if any message is drawn.
pub(super) fn timeline(findings: &Findings) -> (String, String) {
    let pairs = &findings.pairs[..findings.pairs.len().min(ROWS)];
    let share = DRAWN / pairs.len().max(1);
    let sent = || pairs.iter().flat_map(|pair| &pair.listed).filter_map(|message| message.sent);
    let Some(start) = sent().min() else { return (nothing(findings), String::new()) };
    let mut drawn = Drawn { pairs: Vec::new(), messages: Vec::new() };
    for (number, pair) in pairs.iter().enumerate() {
        let [from, to] = pair.ends.map(end);
        drawn.pairs.push(format!("{from} → {to}"));
        for message in pair.listed.iter().step_by(pair.listed.len().div_ceil(share).max(1)) {
            let Some(sent) = message.sent else { continue };
            let [queue, wire, receive, completion, flight, _] =
                message.parts.map(|part| part.map(|part| part as f64 / 1e3));
            drawn.messages.push(Row(
                number,
                (sent - start) as f64 / 1e3,
                queue,
                wire,
                receive,
                completion,
                flight,
                message.kind.name(),
                message.first.to_string(),
                message.bytes,
                message.sent_again,
            ));
        }
    }
    let (shown, all) = (drawn.messages.len() as u64, findings.sum(|pair| pair.messages));
    let mut summary = format!("{} drawn", html::counted(shown, "message", "messages"));
    if shown < all {
        let _ = write!(
            summary,
            ", <strong>{} not drawn</strong>: the timeline draws a regular sample of at most {} messages, and at most {ROWS} pairs of \
             queue pairs. It omits messages whose time of the first packet is unknown on the clock of the first file",
            html::count(all - shown),
            html::count(DRAWN as u64)
        );
    }
    let legend: String = [
        ("queue", "queue"),
        ("wire", "wire"),
        ("receive", "receive"),
        ("completion", "completion"),
        ("in_flight", "in flight, if its parts are unknown"),
    ]
    .iter()
    .map(|(class, name)| format!("<li><i class=\"{class}\"></i>{name}</li>"))
    .collect();
    let figure = format!(
        "<section aria-labelledby=\"timeline-heading\">\n<h2 id=\"timeline-heading\">Messages over time</h2>\n\
         <p>{summary}. Drag to move, Ctrl or Shift and the wheel or + and - to zoom.</p>\n\
         <noscript><p>The timeline is drawn by a script; the rest of the page needs none.</p></noscript>\n<figure id=\"timeline\">\n\
         <div class=\"controls\"><ul class=\"legend\">{legend}</ul><span class=\"zoom\">\
         <button id=\"closer\" type=\"button\" aria-label=\"Zoom in\">+</button>\
         <button id=\"wider\" type=\"button\" aria-label=\"Zoom out\">−</button>\
         <button id=\"whole\" type=\"button\">all</button></span></div>\n\
         <div id=\"stage\" tabindex=\"0\" role=\"img\" aria-label=\"Messages as bars over time\"><canvas id=\"bars\"></canvas>\
         <div id=\"tip\" hidden></div></div>\n</figure>\n</section>\n"
    );
    // Names from the files cannot close the script element, because every `<` in the JSON is escaped.
    let json = serde_json::to_string(&drawn).unwrap_or_default().replace('<', "\\u003c");
    let script = format!(
        "<script type=\"application/json\" id=\"timeline-data\">{json}</script>\n<script type=\"module\">\n{SCRIPT}</script>\n"
    );
    (figure, script)
}

/// Returns the HTML section for a timeline without messages; it states why none can be drawn.
fn nothing(findings: &Findings) -> String {
    let all = findings.sum(|pair| pair.messages);
    let why = match findings.clocks {
        _ if all == 0 => "no message was captured completely",
        Clocks::Unknown => {
            "no message has a send time by the first file's clock, because the clocks cannot be compared"
        }
        _ => "the first packet of each message is missing in the sender's capture",
    };
    format!(
        "<section aria-labelledby=\"timeline-heading\">\n<h2 id=\"timeline-heading\">Messages over time</h2>\n\
         <p>0 messages drawn, <strong>{} not drawn</strong>: {why}.</p>\n</section>\n",
        html::count(all)
    )
}
