//! Permitted differences between two simulators, with reasons.

use super::program::{Answer, Question};

/// A permitted difference between two outputs of a client.
#[derive(Clone, Copy, Debug)]
pub struct Allowed {
    /// The first words of the command lines to which this difference applies. `*` stands for any word. Empty means all
    /// command lines.
    pub programs: &'static [&'static str],
    /// The part of the output that is not compared.
    pub mask: Mask,
    /// Why this part of the output may differ.
    pub reason: &'static str,
}

/// A part of a client's output that is not compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mask {
    /// The lines that contain this text.
    Line(&'static str),
    /// The first number after this text, unless the number is zero. A text in parentheses directly after the number is
    /// not compared either.
    Number(&'static str),
    /// Like [`Mask::Number`], but zero is not compared either.
    AnyNumber(&'static str),
    /// The rest of the line after this text.
    Rest(&'static str),
    /// The whole output.
    Everything,
}

const COUNTERS: &[&str] = &["perfquery", "ibqueryerrors"];

const fn counter(name: &'static str) -> Allowed {
    Allowed {
        programs: COUNTERS,
        mask: Mask::Number(name),
        reason: "traffic depends on the retries of OpenSM and the clients; \
                 the comparison only distinguishes zero from non-zero, and a check compares both ends of a link",
    }
}

const FORGETS: &str = "ibsim drops values that OpenSM sets; ibfabric sim stores them";
const ENFORCES: &str = "switches of ibsim cannot enforce partitions; those of ibfabric sim do";
const ARRIVAL: &str =
    "LocalPortNum is 0 for queries by LID in ibsim, and the arrival port in ibfabric sim";
const SWITCH_INFO: &[&str] = &["smpquery switchinfo", "smpquery -D switchinfo", "saquery SWI"];
const UNICAST: &str = "ibsim does not count unicast packets; ibfabric sim does";

const fn port_info(field: &'static str, reason: &'static str) -> Allowed {
    Allowed {
        programs: &["smpquery portinfo", "smpquery -D portinfo", "saquery PIR", "ibportstate"],
        mask: Mask::Line(field),
        reason,
    }
}

/// libibumad prints the client's name and PID before a warning.
pub const PROCESS: Allowed =
    Allowed { programs: &[], mask: Mask::Number("ibwarn: ["), reason: "the PID of the client" };

/// `LocalPortNum` in PortInfo records: the port at which the SM's latest PortInfo query has arrived.
pub const CAME_BY: Allowed = Allowed {
    programs: &["saquery PIR"],
    mask: Mask::Number("LocalPort"),
    reason: "the port at which the SM's latest query has arrived; queries may be reordered",
};

/// The permitted differences. All other output must be equal.
pub const ALLOWED: &[Allowed] = &[
    PROCESS,
    Allowed {
        programs: &["ibnetdiscover"],
        mask: Mask::Line("# Topology file: generated on"),
        reason: "the time of the run",
    },
    Allowed {
        programs: &["sminfo"],
        mask: Mask::Number("activity count"),
        reason: "OpenSM increments this counter periodically",
    },
    Allowed {
        programs: &["saquery"],
        mask: Mask::Number("ActCount"),
        reason: "OpenSM increments this counter periodically",
    },
    CAME_BY,
    Allowed { programs: &["ibping"], mask: Mask::Rest("time "), reason: "the round-trip time" },
    Allowed { programs: &["ibping"], mask: Mask::Rest("max = "), reason: "the round-trip time" },
    Allowed {
        programs: &["iblinkinfo"],
        mask: Mask::Rest("\" ("),
        reason: "ports of ibsim support 12x, and HDR if they support more than QDR; those of ibfabric sim \
                 support the width and the speed of their link",
    },
    port_info(
        "LinkWidthSupported",
        "ports of ibsim support all widths; those of ibfabric sim support the width of their link",
    ),
    port_info(
        "LinkSpeedSupported",
        "ports of ibsim support QDR; those of ibfabric sim support the speed of their link",
    ),
    port_info(
        "LinkSpeedExtSupported",
        "ports of ibsim support HDR; those of ibfabric sim support the speed of their link",
    ),
    port_info("PartEnforceInb", ENFORCES),
    port_info("PartEnforceOutb", ENFORCES),
    Allowed { programs: SWITCH_INFO, mask: Mask::Line("InboundPartEnf"), reason: ENFORCES },
    Allowed { programs: SWITCH_INFO, mask: Mask::Line("OutboundPartEnf"), reason: ENFORCES },
    port_info("LocalPort", ARRIVAL),
    Allowed { programs: &["smpquery nodeinfo"], mask: Mask::Line("LocalPort"), reason: ARRIVAL },
    Allowed {
        programs: &["smpdump -D * 0x31"],
        mask: Mask::Line("SMP status: 0x800c"),
        reason: "neither simulator supports LedInfo; ibfabric sim responds with an error status",
    },
    Allowed {
        programs: &["saquery SWIR"],
        mask: Mask::Line("LinearFDBCap"),
        reason: "the LFT capacity is an option of ibsim; in ibfabric sim, LFTs have an entry for every unicast LID",
    },
    Allowed { programs: &["saquery SWIR"], mask: Mask::Line("flags...."), reason: ENFORCES },
    Allowed { programs: &["smpdump * 0x11"], mask: Mask::Everything, reason: ARRIVAL },
    Allowed {
        programs: &["perfquery -X", "perfquery -S", "perfquery -c"],
        mask: Mask::Everything,
        reason: "ibsim does not respond to this attribute; ibfabric sim rejects it",
    },
    port_info("MkeyLeasePeriod", FORGETS),
    port_info("SubnetTimeout", FORGETS),
    port_info("LocalPhysErr", FORGETS),
    port_info("OverrunErr", FORGETS),
    Allowed { programs: &["smpdump -D * 0x15"], mask: Mask::Everything, reason: FORGETS },
    Allowed {
        programs: &["smpdump -D * 0x12"],
        mask: Mask::Everything,
        reason: "contains the LFT capacity, for which see LinearFdbCap",
    },
    Allowed {
        programs: SWITCH_INFO,
        mask: Mask::Line("LinearFdbCap"),
        reason: "the LFT capacity is an option of ibsim; in ibfabric sim, LFTs have an entry for every unicast LID",
    },
    Allowed { programs: COUNTERS, mask: Mask::AnyNumber("PortUnicastXmitPkts"), reason: UNICAST },
    Allowed { programs: COUNTERS, mask: Mask::AnyNumber("PortUnicastRcvPkts"), reason: UNICAST },
    Allowed {
        programs: &["saquery -p", "saquery PR", "saquery --src", "saquery --slid"],
        mask: Mask::Line("rate...."),
        reason: "from the supported speeds of ibsim's ports OpenSM computes a rate of 10 Gbit/s; \
                 with ibfabric sim it is the rate of the links",
    },
    counter("PortXmitData"),
    counter("PortRcvData"),
    counter("PortXmitPkts"),
    counter("PortRcvPkts"),
];

/// The differences that are permitted if one client uses libumad2sim.so and the other uses ibfabric's library.
pub const ALLOWED_OF_LIBRARIES: &[Allowed] = &[
    Allowed {
        programs: &["ibstat"],
        mask: Mask::Line("Rate:"),
        reason: "libumad2sim.so supports speeds up to EDR, with 26 Gbit/s for each lane; the rate of \
                 ibfabric's library is compared with the link",
    },
    Allowed {
        programs: &["ibstat"],
        mask: Mask::Rest("Link layer: "),
        reason: "libumad2sim.so has no file `link_layer`, so libibumad prints IB; \
                 ibfabric's library has it, as the kernel does",
    },
];

/// Returns the exit status and the output of a client, without the permitted differences. `mixed` is true if the two
/// compared clients use different umad libraries.
#[must_use]
pub fn normal(question: &Question, answer: &Answer, mixed: bool) -> String {
    let of_libraries = if mixed { ALLOWED_OF_LIBRARIES } else { &[] };
    normal_but(question, answer, ALLOWED.iter().chain(of_libraries))
}

/// Returns the exit status and the output of a client, without the given permitted differences.
#[must_use]
pub fn normal_but<'a>(
    question: &Question,
    answer: &Answer,
    allowed: impl IntoIterator<Item = &'a Allowed>,
) -> String {
    let line = question.words.join(" ");
    let masks: Vec<Mask> = allowed
        .into_iter()
        .filter(|allowed| {
            allowed.programs.is_empty() || allowed.programs.iter().any(|start| starts(&line, start))
        })
        .map(|allowed| allowed.mask)
        .collect();
    if masks.contains(&Mask::Everything) {
        return String::new();
    }
    let status = match answer.code {
        Some(code) => format!("exit status {code}\n"),
        None => format!("still running after {} s\n", question.limit.as_secs()),
    };
    let mut text = status;
    for (mark, part) in [("", &answer.output), ("stderr: ", &answer.errors)] {
        for line in part.lines() {
            if let Some(line) = masked(line, &masks) {
                text.push_str(mark);
                text.push_str(&line);
                text.push('\n');
            }
        }
    }
    text
}

/// Returns true if a command line starts with the given words. The word `*` matches any word.
fn starts(line: &str, words: &str) -> bool {
    let mut found = line.split_whitespace();
    words.split_whitespace().all(|word| found.next().is_some_and(|f| word == "*" || word == f))
}

fn masked(line: &str, masks: &[Mask]) -> Option<String> {
    let mut line = line.to_owned();
    for mask in masks {
        match mask {
            Mask::Line(text) if line.contains(text) => return None,
            Mask::Number(text) => line = without_number(&line, text, false),
            Mask::AnyNumber(text) => line = without_number(&line, text, true),
            Mask::Rest(text) => {
                if let Some(at) = line.find(text) {
                    line.truncate(at + text.len());
                    line.push('…');
                }
            }
            Mask::Line(_) | Mask::Everything => {}
        }
    }
    Some(line)
}

/// Replaces the first number after a text by N. Also replaces a text in parentheses directly after the number. Zero is
/// replaced only if `zero` is set.
fn without_number(line: &str, text: &str, zero: bool) -> String {
    let Some(at) = line.find(text) else { return line.to_owned() };
    let (before, rest) = line.split_at(at + text.len());
    let Some(start) = rest.find(|c: char| c.is_ascii_digit()) else { return line.to_owned() };
    let (between, rest) = rest.split_at(start);
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (number, mut rest) = rest.split_at(end);
    if !zero && number.bytes().all(|digit| digit == b'0') {
        return line.to_owned();
    }
    let mut shown = String::new();
    if let Some((_, after)) = rest.strip_prefix(" (").and_then(|inner| inner.split_once(')')) {
        shown.push_str(" (N)");
        rest = after;
    }
    format!("{before}{between}N{shown}{rest}")
}

/// Returns the first lines that differ: those of the first text start with `-`, those of the second with `+`. Returns
/// `None` if the texts are equal.
#[must_use]
pub fn difference(first: &str, second: &str) -> Option<String> {
    const SHOWN: usize = 6;
    if first == second {
        return None;
    }
    let (a, b): (Vec<&str>, Vec<&str>) = (first.lines().collect(), second.lines().collect());
    let head = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[head..], &b[head..]);
    let tail = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[..a.len() - tail], &b[..b.len() - tail]);
    let mut text = format!("first difference at line {}", head + 1);
    for (mark, lines) in [('-', a), ('+', b)] {
        for line in lines.iter().take(SHOWN) {
            text.push_str(&format!("\n{mark} {line}"));
        }
        if lines.len() > SHOWN {
            text.push_str(&format!("\n{mark} … and {} more", lines.len() - SHOWN));
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests;
