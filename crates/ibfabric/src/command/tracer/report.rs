//! What is said of traces.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::Duration;

use ib_tracer::{
    Atlas, End, Hop, Left, NodeNumber, Stop, Target, Trace, TraceError, Tracer, Verdict,
};
use ib_types::{Guid, NodeKind};
use serde::Serialize;

use super::pairs::Pair;
use crate::cli::tracer::{PortsArg, TraceFormat, TracerArgs};
use crate::failure::Failure;
use crate::output::Output;

/// Names that stand for node GUIDs.
pub(super) struct Names(pub(super) BTreeMap<Guid, String>);

impl Names {
    pub(super) fn of<'a>(&'a self, atlas: &'a Atlas, node: NodeNumber) -> &'a str {
        let node = atlas.node(node);
        self.0.get(&node.guid).map_or(&node.description, String::as_str)
    }

    /// Returns what a node is called in a sentence.
    pub(super) fn full(&self, atlas: &Atlas, number: NodeNumber) -> String {
        let node = atlas.node(number);
        format!("{} {} ('{}')", kind(node.kind), node.guid, self.of(atlas, number))
    }
}

/// Says what came of traces, one after the other.
pub(super) struct Report<'a> {
    args: &'a TracerArgs,
    names: Names,
    is_single: bool,
    tally: Tally,
    /// What is printed at the end.
    traces: Vec<TraceReport>,
}

/// How many there were of what.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Tally {
    pairs: usize,
    good: usize,
    validated: usize,
    bad: usize,
    hops: HopTally,
}

/// How many hops there were of what.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct HopTally {
    validated: usize,
    own_route_only: usize,
    no_agent: usize,
    bad: usize,
    other: usize,
}

/// The whole, as one object; the names are JSON keys.
#[derive(Serialize)]
struct Whole<'a> {
    #[serde(flatten)]
    tally: Tally,
    mads: u64,
    retries: u64,
    timeouts: u64,
    ms: f64,
    traces: &'a [TraceReport],
}

/// One trace; the names are JSON keys.
#[derive(Serialize)]
struct TraceReport {
    from: Option<String>,
    to: String,
    lid: Option<u16>,
    good: bool,
    validated: bool,
    /// In a sentence.
    result: String,
    ms: f64,
    hops: Vec<HopReport>,
}

/// One hop; the names are JSON keys.
#[derive(Serialize)]
struct HopReport {
    /// The port that the way leaves the node before by.
    out: u8,
    /// The port that it enters this one by.
    r#in: u8,
    kind: &'static str,
    guid: String,
    name: String,
    lid: u16,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    actual: Option<u8>,
    /// The port that the node before sends by, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_by: Option<u8>,
    /// Whether what the node before was made to send came in right, where the way to the own LID enters
    /// by another link.
    #[serde(skip_serializing_if = "Option::is_none")]
    seen: Option<bool>,
    detail: String,
}

impl<'a> Report<'a> {
    pub(super) fn new(args: &'a TracerArgs, names: Names, is_single: bool) -> Self {
        let tally = Tally::default();
        Self { args, names, is_single, tally, traces: Vec::new() }
    }

    pub(super) const fn is_good(&self) -> bool {
        self.tally.bad == 0
    }

    /// Takes what came of a way.
    pub(super) fn take(
        &mut self,
        (from, to): Pair,
        result: &Result<Trace, TraceError>,
        tracer: &Tracer,
        out: &mut Output,
    ) -> Result<(), Failure> {
        let atlas = tracer.atlas();
        self.count(result);
        let is_good = result.as_ref().is_ok_and(Trace::is_good);
        match self.args.format {
            TraceFormat::Json => {
                if self.is_single || self.args.verbose || !is_good {
                    let report = self.trace_report((from, to), result, atlas);
                    self.traces.push(report);
                }
            }
            TraceFormat::Ibtracert => match result {
                Ok(trace) => self.print_like_ibtracert(trace, atlas, out)?,
                Err(error) => crate::failure::say!("{}", self.error(error, atlas)),
            },
            TraceFormat::Text => {
                if let Ok(trace) = result
                    && self.args.verbose
                {
                    self.print_way(trace, atlas, out)?;
                }
                if self.is_single || self.args.verbose || !is_good {
                    writeln!(out, "{}", self.sentence((from, to), result, atlas))?;
                }
            }
        }
        Ok(())
    }

    /// Says what is to be said of all ways together.
    pub(super) fn finish(
        &mut self,
        tracer: &Tracer,
        elapsed: Duration,
        out: &mut Output,
    ) -> Result<(), Failure> {
        let counters = tracer.counters();
        let (mads, retries) = (counters.traffic.sent, counters.traffic.retries);
        let timeouts = counters.timeouts;
        let ms = elapsed.as_secs_f64() * 1e3;
        let tally = self.tally;
        match self.args.format {
            TraceFormat::Json => {
                let traces = &self.traces;
                out.json(&Whole { tally, mads, retries, timeouts, ms, traces })
            }
            TraceFormat::Ibtracert => Ok(()),
            TraceFormat::Text => {
                if !self.is_single {
                    let Tally { pairs, good, validated, bad, hops } = tally;
                    writeln!(
                        out,
                        "{pairs} ways: {good} good, of which {validated} are validated at their \
                         ends; {bad} bad"
                    )?;
                    let HopTally { validated, own_route_only, no_agent, bad, other } = hops;
                    writeln!(
                        out,
                        "hops: {validated} validated, {own_route_only} own route only, {no_agent} \
                         without agent, {bad} bad, {other} not asked"
                    )?;
                }
                if !self.is_single || self.args.verbose {
                    writeln!(
                        out,
                        "{mads} MADs sent, {retries} of them again; {timeouts} requests without \
                         answer; {ms:.0} ms"
                    )?;
                }
                Ok(())
            }
        }
    }

    fn count(&mut self, result: &Result<Trace, TraceError>) {
        self.tally.pairs += 1;
        let Ok(trace) = result else {
            self.tally.bad += 1;
            return;
        };
        let is_good = trace.is_good();
        *(if is_good { &mut self.tally.good } else { &mut self.tally.bad }) += 1;
        self.tally.validated += usize::from(trace.is_validated());
        let hops = &mut self.tally.hops;
        for (_, verdict) in &trace.hops {
            let count = match verdict {
                Verdict::Validated => &mut hops.validated,
                Verdict::OwnRouteOnly { .. } | Verdict::OwnRouteAstray => &mut hops.own_route_only,
                Verdict::NoAgent | Verdict::CannotTell | Verdict::Silent | Verdict::OtherLevel => {
                    &mut hops.no_agent
                }
                verdict if verdict.is_bad() => &mut hops.bad,
                _ => &mut hops.other,
            };
            *count += 1;
        }
    }

    /// Says in a sentence what came of a way.
    fn sentence(
        &self,
        (from, to): Pair,
        result: &Result<Trace, TraceError>,
        atlas: &Atlas,
    ) -> String {
        let start = from.map_or_else(String::new, |from| format!("{} to ", end_text(from)));
        let way = format!("{start}{}", end_text(to));
        let trace = match result {
            Ok(trace) => trace,
            Err(error) => return format!("{way}: {}", self.error(error, atlas)),
        };
        let hops: Vec<Hop> = trace.hops.iter().map(|&(hop, _)| hop).collect();
        if let Some((number, (hop, verdict))) =
            (1..).zip(&trace.hops).find(|(_, (_, verdict))| verdict.is_bad())
        {
            let node = self.names.full(atlas, hop.node);
            let before = self.names.full(atlas, hop.from);
            return format!(
                "{way}: hop {number}, {node} behind port {} of {before}: {}",
                hop.out,
                detail(hop, verdict)
            );
        }
        if trace.stop != Stop::Arrived {
            let name = |number| self.names.full(atlas, number);
            return format!("{way}: {}", trace.stop.describe(atlas, (trace.lid, &hops), &name));
        }
        let lid = match to {
            Target::Lid(_) => String::new(),
            Target::Gid(_) => format!(" (LID {})", trace.lid),
        };
        let hops = trace.hops.len();
        let hops = if hops == 1 { "1 hop".to_owned() } else { format!("{hops} hops") };
        let seen = self.seen(trace);
        format!("{way}{lid}: {seen}, {hops}")
    }

    /// Says why a way could not be traced.
    fn error(&self, error: &TraceError, atlas: &Atlas) -> String {
        match error {
            TraceError::NoStart { lid, hops, stop, .. } => {
                let name = |number| self.names.full(atlas, number);
                let why = stop.describe(atlas, (*lid, hops), &name);
                format!("LID {lid}, at which the way starts, is not reached: {why}")
            }
            error => error.to_string(),
        }
    }

    /// Says how far a good way is validated.
    fn seen(&self, trace: &Trace) -> String {
        let count = |wanted: fn(&Verdict) -> bool| {
            trace.hops.iter().filter(|(_, verdict)| wanted(verdict)).count()
        };
        let validated = count(|it| matches!(it, Verdict::Validated));
        let own = count(|it| matches!(it, Verdict::OwnRouteOnly { .. } | Verdict::OwnRouteAstray));
        let here = count(|it| matches!(it, Verdict::Own));
        let without = count(|it| matches!(it, Verdict::NoAgent));
        let unknown = trace.hops.len() - validated - own - without - here;
        if validated == trace.hops.len() {
            return "path validated".to_owned();
        }
        let mut parts = Vec::new();
        for (count, what) in [
            (validated, "validated"),
            (own, "own route only"),
            (without, "without agent"),
            (here, "the own port"),
            (unknown, "not told"),
        ] {
            if count > 0 {
                parts.push(format!("{count} {what}"));
            }
        }
        let head = if trace.is_validated() {
            "path validated at its end"
        } else if validated + own > 0 {
            "path validated in part"
        } else {
            "path not validated"
        };
        format!("{head} ({})", parts.join(", "))
    }

    /// Prints the hops of a way, a line each.
    fn print_way(&self, trace: &Trace, atlas: &Atlas, out: &mut Output) -> Result<(), Failure> {
        let (node, port) = trace.start;
        let lid = atlas.end(trace.start).map_or(0, |end| end.lid);
        let name = self.names.full(atlas, node);
        writeln!(out, "from {name} port {port} LID {lid}")?;
        for (number, (hop, verdict)) in (1..).zip(&trace.hops) {
            let name = self.names.full(atlas, hop.node);
            let lid = atlas.end((hop.node, hop.enters)).map_or(0, |end| end.lid);
            let out_port = match self.args.ports {
                PortsArg::In => String::new(),
                PortsArg::Both => format!("[{}] -> ", hop.out),
            };
            let detail = detail(hop, verdict);
            writeln!(out, "{number:>3}  {out_port}[{}] {name} LID {lid}: {detail}", hop.enters)?;
        }
        Ok(())
    }

    /// Prints a way as ibtracert does.
    fn print_like_ibtracert(
        &self,
        trace: &Trace,
        atlas: &Atlas,
        out: &mut Output,
    ) -> Result<(), Failure> {
        let mut print_end = |word: &str, place: (NodeNumber, u8)| {
            let node = atlas.node(place.0);
            let port = if node.kind.is_switch() { 0 } else { place.1 };
            let (first, last) = lids(atlas.end(place));
            let name = self.names.of(atlas, place.0);
            writeln!(
                out,
                "{word} {} {{{}}} portnum {port} lid {first}-{last} \"{name}\"",
                kind(node.kind),
                node.guid,
            )
        };
        print_end("From", trace.start)?;
        if trace.hops.is_empty() {
            print_end("To", trace.start)?;
            return Ok(());
        }
        let mut last_place = trace.start;
        for (hop, _) in &trace.hops {
            let end = atlas.end((hop.node, hop.enters)).copied().unwrap_or_default();
            let (first, last) = lids(Some(&end));
            let name = self.names.of(atlas, hop.node);
            let kind = kind(atlas.node(hop.node).kind);
            writeln!(
                out,
                "[{}] -> {kind} port {{{}}}[{}] lid {first}-{last} \"{name}\"",
                hop.out, end.guid, hop.enters,
            )?;
            last_place = (hop.node, hop.enters);
        }
        if let Some((hop, verdict)) = trace.first_bad() {
            let node = self.names.full(atlas, hop.node);
            crate::failure::say!("{node}: {}", detail(hop, verdict));
        }
        if trace.stop == Stop::Arrived {
            let node = atlas.node(last_place.0);
            let port = if node.kind.is_switch() { 0 } else { last_place.1 };
            let (first, last) = lids(atlas.end(last_place));
            let name = self.names.of(atlas, last_place.0);
            writeln!(
                out,
                "To {} {{{}}} portnum {port} lid {first}-{last} \"{name}\"",
                kind(node.kind),
                node.guid,
            )?;
        } else {
            let hops: Vec<Hop> = trace.hops.iter().map(|&(hop, _)| hop).collect();
            let name = |number| self.names.full(atlas, number);
            let stop = trace.stop.describe(atlas, (trace.lid, &hops), &name);
            crate::failure::say!("{stop}");
        }
        Ok(())
    }

    fn trace_report(
        &self,
        pair: Pair,
        result: &Result<Trace, TraceError>,
        atlas: &Atlas,
    ) -> TraceReport {
        let trace = result.as_ref().ok();
        let hops = trace.map_or(&[][..], |trace| &trace.hops);
        TraceReport {
            from: pair.0.map(end_text),
            to: end_text(pair.1),
            lid: trace.map(|trace| trace.lid),
            good: trace.is_some_and(Trace::is_good),
            validated: trace.is_some_and(Trace::is_validated),
            result: self.sentence(pair, result, atlas),
            ms: trace.map_or(0.0, |trace| trace.elapsed.as_secs_f64() * 1e3),
            hops: hops.iter().map(|(hop, verdict)| self.hop_report(hop, verdict, atlas)).collect(),
        }
    }

    fn hop_report(&self, hop: &Hop, verdict: &Verdict, atlas: &Atlas) -> HopReport {
        let node = atlas.node(hop.node);
        let (expected, actual) = match *verdict {
            Verdict::Mismatch { expected, actual, .. } => (Some(expected), Some(actual)),
            Verdict::Misdirected { actual, .. } => (Some(hop.enters), actual),
            Verdict::OtherTable { holds } => (Some(hop.out), Some(holds)),
            Verdict::Detour { by } => (Some(hop.out), Some(by)),
            _ => (None, None),
        };
        let (left_by, seen) = match *verdict {
            Verdict::Misdirected { left: Some(Left::By(port) | Left::Discarded(port)), .. } => {
                (Some(port), None)
            }
            Verdict::Detour { by } => (Some(by), None),
            Verdict::OwnRouteOnly { seen, .. } => (None, Some(seen)),
            _ => (None, None),
        };
        HopReport {
            out: hop.out,
            r#in: hop.enters,
            kind: kind(node.kind),
            guid: node.guid.to_string(),
            name: self.names.of(atlas, hop.node).to_owned(),
            lid: atlas.end((hop.node, hop.enters)).map_or(0, |end| end.lid),
            verdict: word(verdict),
            expected,
            actual,
            left_by,
            seen,
            detail: detail(hop, verdict),
        }
    }
}

/// Returns the lowest and the highest LID of a port.
fn lids(end: Option<&End>) -> (u16, u16) {
    end.map_or((0, 0), |end| (end.lid, end.last_lid()))
}

/// Returns what infiniband-diags calls a kind of node.
pub(super) const fn kind(kind: NodeKind) -> &'static str {
    match kind {
        NodeKind::ChannelAdapter => "ca",
        NodeKind::Switch => "switch",
        NodeKind::Router => "router",
    }
}

fn end_text(target: Target) -> String {
    match target {
        Target::Lid(lid) => format!("LID {lid}"),
        Target::Gid(gid) => format!("GID {gid}"),
    }
}

/// Returns a verdict as a word of JSON.
pub(super) const fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Validated => "validated",
        Verdict::OwnRouteOnly { .. } => "own_route_only",
        Verdict::Mismatch { .. } => "mismatch",
        Verdict::Misdirected { .. } => "misdirected",
        Verdict::Detour { .. } => "detour",
        Verdict::OtherTable { .. } => "other_table",
        Verdict::Lost => "lost",
        Verdict::Elsewhere { .. } => "elsewhere",
        Verdict::NoRoute => "no_route",
        Verdict::NoAgent => "no_agent",
        Verdict::OtherLevel => "other_level",
        Verdict::Silent => "silent",
        Verdict::CannotTell => "cannot_tell",
        Verdict::Absurd { .. } => "absurd",
        Verdict::Refused { .. } => "refused",
        Verdict::Own => "own",
        Verdict::NotAsked => "not_asked",
        Verdict::OwnRouteAstray => "own_route_astray",
        Verdict::OtherLink { .. } => "other_link",
        Verdict::Unanswered => "unanswered",
    }
}

/// Says in words what is known of a hop.
pub(super) fn detail(hop: &Hop, verdict: &Verdict) -> String {
    match verdict {
        Verdict::Validated => "validated".to_owned(),
        Verdict::OwnRouteOnly { enters, seen } => {
            let seen = if *seen { "; what the switch before sends comes in right" } else { "" };
            format!("own route only: what is sent to its own LID comes in by port {enters}{seen}")
        }
        Verdict::Mismatch { expected, actual, same_link } => {
            let own = if *same_link { "" } else { " on the way to its own LID" };
            format!("came in by port {actual}, expected port {expected}{own}")
        }
        Verdict::Misdirected { actual: None, elsewhere: None, left: None } => format!(
            "what goes to and fro over this cable is lost: the switch before does not send by port {}, or \
             this node does not send back by port {}",
            hop.out, hop.enters
        ),
        Verdict::Misdirected { actual, elsewhere, left } => {
            let does = match left {
                Some(Left::By(port)) => format!("sends it by port {port}"),
                Some(Left::Discarded(port)) => format!("discards it at port {port}"),
                Some(Left::Dropped(port)) => format!("does not relay what came in by port {port}"),
                None => "sends it otherwise".to_owned(),
            };
            let outcome = match (actual, elsewhere) {
                (Some(actual), _) => {
                    format!("it came in by port {actual}, expected port {}", hop.enters)
                }
                (None, Some(guid)) => format!("it gets to node {guid}"),
                (None, None) => "it gets lost".to_owned(),
            };
            format!("the switch before {does}, expected by port {}: {outcome}", hop.out)
        }
        Verdict::Detour { by } => format!(
            "the switch before sends it by port {by}, expected by port {}: it arrives nevertheless",
            hop.out
        ),
        Verdict::OtherTable { holds } => format!(
            "the table of the switch before holds port {holds}, expected port {} as subnet \
             administration has it",
            hop.out
        ),
        Verdict::OtherLink { what } => format!(
            "subnet administration has it behind port {} of the node before, and {what}",
            hop.out
        ),
        Verdict::Lost => format!(
            "nothing that is sent to its LID gets there, expected to come in by port {}",
            hop.enters
        ),
        Verdict::Elsewhere { guid } => {
            format!("what is sent to its LID gets to node {guid}, expected this one")
        }
        Verdict::NoRoute => "the tables do not lead from here to its own LID".to_owned(),
        Verdict::NoAgent => "no agent: not validated".to_owned(),
        Verdict::OtherLevel => {
            "it answers on service level 0, and not on the one of --sl: not validated".to_owned()
        }
        Verdict::Silent => "its agent does not answer any more: not validated".to_owned(),
        Verdict::CannotTell => "its agent cannot tell the port: not validated".to_owned(),
        Verdict::Absurd { what } => format!("its agent is absurd: {what}"),
        Verdict::Refused { status } => {
            format!("its agent answers with status {status}: not validated")
        }
        Verdict::Own => "the own port".to_owned(),
        Verdict::NotAsked => "not asked".to_owned(),
        Verdict::OwnRouteAstray => {
            "own route only: what is sent from here to its own LID, or the answer, \
             goes astray elsewhere; what is sent by this link comes in right"
                .to_owned()
        }
        Verdict::Unanswered => {
            "no answer, where packets get lost here and there: not validated".to_owned()
        }
    }
}
