//! Permitted differences between two simulators, with reasons.

use super::program::{Answer, Question};

/// A difference that is allowed.
#[derive(Clone, Copy, Debug)]
pub struct Allowed {
    /// The words that the command lines start with that it is allowed for, `*` being any; all when
    /// empty.
    pub programs: &'static [&'static str],
    /// What is not compared.
    pub mask: Mask,
    /// Why.
    pub reason: &'static str,
}

/// A part of an output that is not compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mask {
    /// The lines that hold this text.
    Line(&'static str),
    /// The first number after this text, unless it is zero, and its repetition in parentheses.
    Number(&'static str),
    /// As [`Mask::Number`], zero included.
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
        reason: "traffic depends on how often OpenSM and the clients had to ask; \
                 only zero or not is compared, and the counters of the two ends of a link",
    }
}

const FORGETS: &str = "ibsim forgets what OpenSM sets, ours keeps it as a port does";
const ENFORCES: &str = "switches of ibsim cannot enforce partitions, ours do, and OpenSM lets them";
const ARRIVAL: &str =
    "asked by LID, a switch of ibsim says 0, ours says by which port it was asked";
const SWITCH_INFO: &[&str] = &["smpquery switchinfo", "smpquery -D switchinfo", "saquery SWI"];
const UNICAST: &str = "ibsim leaves the counters of unicast packets at zero, ours counts";

const fn port_info(field: &'static str, reason: &'static str) -> Allowed {
    Allowed {
        programs: &["smpquery portinfo", "smpquery -D portinfo", "saquery PIR", "ibportstate"],
        mask: Mask::Line(field),
        reason,
    }
}

/// The process that warns.
pub const PROCESS: Allowed = Allowed {
    programs: &[],
    mask: Mask::Number("ibwarn: ["),
    reason: "the process ID of the client",
};

/// The port by which a manager last asked for PortInfo.
pub const CAME_BY: Allowed = Allowed {
    programs: &["saquery PIR"],
    mask: Mask::Number("LocalPort"),
    reason: "the port by which the manager's last question came; its questions overtake each other",
};

/// The differences that are allowed; everything else must be the same.
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
        reason: "OpenSM counts its activity with its own timer",
    },
    Allowed {
        programs: &["saquery"],
        mask: Mask::Number("ActCount"),
        reason: "OpenSM counts its activity with its own timer",
    },
    CAME_BY,
    Allowed {
        programs: &["ibping"],
        mask: Mask::Rest("time "),
        reason: "the time of the round trip",
    },
    Allowed {
        programs: &["ibping"],
        mask: Mask::Rest("max = "),
        reason: "the time of the round trip",
    },
    Allowed {
        programs: &["iblinkinfo"],
        mask: Mask::Rest("\" ("),
        reason: "every port of ibsim can do 12x, and HDR once it can do more than QDR; ours can do \
                 what its link can",
    },
    port_info("LinkWidthSupported", "ibsim's ports support every width, ours that of their link"),
    port_info("LinkSpeedSupported", "ibsim's ports support QDR, ours the speed of their link"),
    port_info("LinkSpeedExtSupported", "ibsim's ports support HDR, ours the speed of their link"),
    port_info("PartEnforceInb", ENFORCES),
    port_info("PartEnforceOutb", ENFORCES),
    Allowed { programs: SWITCH_INFO, mask: Mask::Line("InboundPartEnf"), reason: ENFORCES },
    Allowed { programs: SWITCH_INFO, mask: Mask::Line("OutboundPartEnf"), reason: ENFORCES },
    port_info("LocalPort", ARRIVAL),
    Allowed { programs: &["smpquery nodeinfo"], mask: Mask::Line("LocalPort"), reason: ARRIVAL },
    Allowed {
        programs: &["smpdump -D * 0x31"],
        mask: Mask::Line("SMP status: 0x800c"),
        reason: "neither has LedInfo; ours says so in the status",
    },
    Allowed {
        programs: &["saquery SWIR"],
        mask: Mask::Line("LinearFDBCap"),
        reason: "ibsim is given the capacity; ours has an entry for every unicast LID",
    },
    Allowed { programs: &["saquery SWIR"], mask: Mask::Line("flags...."), reason: ENFORCES },
    Allowed { programs: &["smpdump * 0x11"], mask: Mask::Everything, reason: ARRIVAL },
    Allowed {
        programs: &["perfquery -X", "perfquery -S", "perfquery -c"],
        mask: Mask::Everything,
        reason: "ibsim does not answer this attribute, ours refuses it at once",
    },
    port_info("MkeyLeasePeriod", FORGETS),
    port_info("SubnetTimeout", FORGETS),
    port_info("LocalPhysErr", FORGETS),
    port_info("OverrunErr", FORGETS),
    Allowed { programs: &["smpdump -D * 0x15"], mask: Mask::Everything, reason: FORGETS },
    Allowed {
        programs: &["smpdump -D * 0x12"],
        mask: Mask::Everything,
        reason: "the capacity of the forwarding table, see LinearFdbCap",
    },
    Allowed {
        programs: SWITCH_INFO,
        mask: Mask::Line("LinearFdbCap"),
        reason: "ibsim is given the capacity; ours has an entry for every unicast LID",
    },
    Allowed { programs: COUNTERS, mask: Mask::AnyNumber("PortUnicastXmitPkts"), reason: UNICAST },
    Allowed { programs: COUNTERS, mask: Mask::AnyNumber("PortUnicastRcvPkts"), reason: UNICAST },
    Allowed {
        programs: &["saquery -p", "saquery PR", "saquery --src", "saquery --slid"],
        mask: Mask::Line("rate...."),
        reason: "ibsim's ports support speeds in a way that makes OpenSM take 10 Gbit/s for the rate \
                 of a path; ours is the rate of the links",
    },
    counter("PortXmitData"),
    counter("PortRcvData"),
    counter("PortXmitPkts"),
    counter("PortRcvPkts"),
];

/// The differences that are allowed between a client with libumad2sim.so and one with our library.
pub const ALLOWED_OF_LIBRARIES: &[Allowed] = &[
    Allowed {
        programs: &["ibstat"],
        mask: Mask::Line("Rate:"),
        reason: "libumad2sim.so takes EDR for the fastest, and a lane of it for 26 Gbit/s; ours is \
                 checked to be the link's",
    },
    Allowed {
        programs: &["ibstat"],
        mask: Mask::Rest("Link layer: "),
        reason: "libumad2sim.so has no file for it, so libibumad says IB; ours has the kernel's",
    },
];

/// Returns what a client said without what may differ; `mixed` when it is compared with one that has
/// another library.
#[must_use]
pub fn normal(question: &Question, answer: &Answer, mixed: bool) -> String {
    let of_libraries = if mixed { ALLOWED_OF_LIBRARIES } else { &[] };
    normal_but(question, answer, ALLOWED.iter().chain(of_libraries))
}

/// Returns what a client said without what may differ by a list.
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
        None => format!("no end within {} s\n", question.limit.as_secs()),
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

/// Tells whether a command line starts with words, of which `*` is any.
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

/// Replaces the first number after a text by N, and what follows it in parentheses; zero only when
/// it is asked for.
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

/// Returns the first lines that differ, the first text's with `-` and the second's with `+`;
/// `None` when the texts are the same.
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
    let mut text = format!("from line {} on", head + 1);
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
