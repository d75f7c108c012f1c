//! Reports of traces.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::Duration;

use ib_daemons::message::counted;
use ib_tracer::{
    End, FabricModel, Hop, Judgement, NodeNumber, PacketFate, Stop, Target, Trace, TraceError,
    Tracer, Verdict,
};
use ib_types::{Guid, NodeKind};
use schemars::JsonSchema;
use serde::Serialize;

use super::pairs::Pair;
use crate::cli::tracer::{PortsArg, TraceFormat, TracerArgs};
use crate::failure::Failure;
use crate::output::Output;

mod words;

use words::{EvidenceReport, component, evidence, reason};
pub(super) use words::{detail, judgement, word};

/// Names of nodes by GUID.
pub(super) struct Names(pub(super) BTreeMap<Guid, String>);

impl Names {
    pub(super) fn of<'a>(&'a self, model: &'a FabricModel, node: NodeNumber) -> &'a str {
        let node = model.node(node);
        self.0.get(&node.guid).map_or(&node.description, String::as_str)
    }

    /// Returns the kind, GUID and name of a node, as text for a sentence.
    pub(super) fn full(&self, model: &FabricModel, number: NodeNumber) -> String {
        let node = model.node(number);
        format!("{} {} ('{}')", kind(node.kind), node.guid, self.of(model, number))
    }
}

/// Prints the results of traces, and counts them.
pub(super) struct Report<'a> {
    args: &'a TracerArgs,
    names: Names,
    is_single: bool,
    tally: Tally,
    /// Number of bad paths for each port (node and port number) at the start of the first bad hop.
    bad_ports: BTreeMap<(NodeNumber, u8), usize>,
    /// The traces of the JSON output, which is printed after the last trace.
    traces: Vec<TraceReport>,
}

/// Number of paths by result.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
struct Tally {
    pairs: usize,
    good: usize,
    validated: usize,
    bad: usize,
    not_proven: usize,
    hops: HopTally,
}

/// Number of hops by result.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
struct HopTally {
    validated: usize,
    seen: usize,
    bad: usize,
    not_proven: usize,
}

/// The JSON output: counts of all paths, hops and MADs, and the requested traces. Field names are JSON keys.
#[derive(Serialize, JsonSchema)]
pub(super) struct Whole<'a> {
    #[serde(flatten)]
    tally: Tally,
    mads: u64,
    retries: u64,
    timeouts: u64,
    ms: f64,
    /// Ports after which packets take a wrong path, or are lost, with the number of these paths.
    bad_ports: Vec<BadPort>,
    traces: &'a [TraceReport],
}

/// A port at the start of the first bad hop of one or more paths. Field names are JSON keys.
#[derive(Serialize, JsonSchema)]
struct BadPort {
    guid: String,
    name: String,
    port: u8,
    paths: usize,
}

/// A trace; field names are JSON keys.
#[derive(Serialize, JsonSchema)]
struct TraceReport {
    from: Option<String>,
    to: String,
    lid: Option<u16>,
    good: bool,
    validated: bool,
    judgement: &'static str,
    /// The result as a sentence.
    result: String,
    /// The components that may be faulty if no node responds at the far end of the last link; else empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    suspects: Vec<String>,
    ms: f64,
    hops: Vec<HopReport>,
}

/// A hop; field names are JSON keys.
#[derive(Serialize, JsonSchema)]
struct HopReport {
    /// The egress port of the preceding node.
    out: u8,
    /// The ingress port of this node.
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
    /// The port out of which the preceding node actually sends, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_by: Option<u8>,
    /// The reason why the hop is not proven.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    suspects: Vec<String>,
    /// The sets with the fewest components whose faults explain all unanswered probes. Each set suffices.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    candidates: Vec<Vec<String>>,
    /// The probes on which the verdict is based.
    evidence: Vec<EvidenceReport>,
    detail: String,
}

impl<'a> Report<'a> {
    pub(super) fn new(args: &'a TracerArgs, names: Names, is_single: bool) -> Self {
        let tally = Tally::default();
        Self { args, names, is_single, tally, bad_ports: BTreeMap::new(), traces: Vec::new() }
    }

    /// Returns the worst judgement of all paths.
    pub(super) const fn judgement(&self) -> Judgement {
        match (self.tally.bad, self.tally.not_proven) {
            (0, 0) => Judgement::ProvenGood,
            (0, _) => Judgement::NotProven,
            _ => Judgement::ProvenBad,
        }
    }

    /// Counts the result of tracing a path. Prints it as the options specify, or keeps it for the JSON output.
    pub(super) fn take(
        &mut self,
        (from, to): Pair,
        result: &Result<Trace, TraceError>,
        tracer: &Tracer,
        out: &mut Output,
    ) -> Result<(), Failure> {
        let model = tracer.model();
        self.count(result);
        let is_good = result.as_ref().is_ok_and(Trace::is_good);
        match self.args.output() {
            TraceFormat::Json => {
                if self.is_single || self.args.verbose > 0 || !is_good {
                    let report = self.trace_report((from, to), result, tracer);
                    self.traces.push(report);
                }
            }
            TraceFormat::Ibtracert => match result {
                Ok(trace) => self.print_like_ibtracert(trace, model, out)?,
                Err(error) => crate::failure::say!("{}", self.error(error, model)),
            },
            TraceFormat::Text => {
                if let Ok(trace) = result
                    && self.args.verbose > 0
                {
                    self.print_way(trace, tracer, out)?;
                }
                if self.is_single || self.args.verbose > 0 || !is_good {
                    writeln!(out, "{}", self.sentence((from, to), result, model))?;
                    if let Ok(trace) = result {
                        self.print_evidence(trace, tracer, out)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Prints the summary of all paths.
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
        match self.args.output() {
            TraceFormat::Json => {
                let (bad_ports, traces) = (self.bad_ports(tracer.model()), &self.traces[..]);
                out.json(&Whole { tally, mads, retries, timeouts, ms, bad_ports, traces })
            }
            TraceFormat::Ibtracert => Ok(()),
            TraceFormat::Text => {
                if !self.is_single {
                    let Tally { pairs, good, validated, bad, not_proven, hops } = tally;
                    writeln!(
                        out,
                        "{pairs} paths: {good} proven good, of which {validated} are validated at \
                         their ends; {bad} proven bad; {not_proven} not proven"
                    )?;
                    let HopTally { validated, seen, bad, not_proven } = hops;
                    writeln!(
                        out,
                        "hops: {validated} validated, {seen} seen, {bad} bad, {not_proven} not proven"
                    )?;
                    for BadPort { guid, name, port, paths } in self.bad_ports(tracer.model()) {
                        let paths = counted(paths, "bad path");
                        writeln!(out, "after port {port} of {guid} ('{name}'): {paths}")?;
                    }
                }
                if !self.is_single || self.args.verbose > 0 {
                    writeln!(
                        out,
                        "{mads} MADs sent, {retries} retries, {timeouts} timeouts; {ms:.0} ms"
                    )?;
                }
                Ok(())
            }
        }
    }

    fn count(&mut self, result: &Result<Trace, TraceError>) {
        self.tally.pairs += 1;
        let Ok(trace) = result else {
            self.tally.not_proven += 1;
            return;
        };
        *match trace.judgement() {
            Judgement::ProvenGood => &mut self.tally.good,
            Judgement::ProvenBad => &mut self.tally.bad,
            Judgement::NotProven => &mut self.tally.not_proven,
        } += 1;
        let is_bad = |verdict: &Verdict| verdict.judgement() == Judgement::ProvenBad;
        if let Some((hop, _)) = trace.hops.iter().find(|(_, verdict)| is_bad(verdict)) {
            *self.bad_ports.entry((hop.from, hop.out)).or_default() += 1;
        }
        self.tally.validated += usize::from(trace.is_validated());
        let hops = &mut self.tally.hops;
        for (_, verdict) in &trace.hops {
            *match verdict.judgement() {
                Judgement::ProvenGood if *verdict == Verdict::Validated => &mut hops.validated,
                Judgement::ProvenGood => &mut hops.seen,
                Judgement::ProvenBad => &mut hops.bad,
                Judgement::NotProven => &mut hops.not_proven,
            } += 1;
        }
    }

    /// Returns the ports of `bad_ports`, those with the most bad paths first.
    fn bad_ports(&self, model: &FabricModel) -> Vec<BadPort> {
        let mut ports: Vec<BadPort> = self
            .bad_ports
            .iter()
            .map(|(&(node, port), &paths)| {
                let name = self.names.of(model, node).to_owned();
                BadPort { guid: model.node(node).guid.to_string(), name, port, paths }
            })
            .collect();
        ports.sort_by_key(|port| std::cmp::Reverse(port.paths));
        ports
    }

    /// Returns the result of a path as a sentence.
    fn sentence(
        &self,
        (from, to): Pair,
        result: &Result<Trace, TraceError>,
        model: &FabricModel,
    ) -> String {
        let start = from.map_or_else(String::new, |from| format!("{} to ", end_text(from)));
        let way = format!("{start}{}", end_text(to));
        let trace = match result {
            Ok(trace) => trace,
            Err(error) => return format!("{way}: {}", self.error(error, model)),
        };
        let hops: Vec<Hop> = trace.hops.iter().map(|&(hop, _)| hop).collect();
        let name = |number| self.names.full(model, number);
        let stop = || trace.stop.describe(model, (trace.lid, &hops), &name);
        if trace.stop.judgement() == Judgement::ProvenBad && trace.first_bad().is_none() {
            return format!("{way}: {}", stop());
        }
        if let Some((number, (hop, verdict))) = named_hop(trace) {
            let (node, before) = (name(hop.node), name(hop.from));
            let detail = detail(hop, verdict, (&self.names, model));
            return format!(
                "{way}: hop {number}, {node} behind port {} of {before}: {detail}",
                hop.out
            );
        }
        if trace.stop != Stop::Arrived {
            let suspects = trace.suspects_at_end();
            let suspects: Vec<String> =
                suspects.into_iter().map(|it| component(it, (&self.names, model))).collect();
            let suspects = match &suspects[..] {
                [] => String::new(),
                all => format!("; suspects: {}", all.join(", ")),
            };
            return format!("{way}: not proven: {}{suspects}", stop());
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

    /// Returns the reason why a path could not be traced.
    fn error(&self, error: &TraceError, model: &FabricModel) -> String {
        match error {
            TraceError::NoStart { lid, hops, stop, .. } => {
                let name = |number| self.names.full(model, number);
                let why = stop.describe(model, (*lid, hops), &name);
                format!("LID {lid}, the source of the path, is not reached: {why}")
            }
            error => error.to_string(),
        }
    }

    /// Returns a phrase about a path that is proven good. Unless all hops are validated, it contains the number of hops
    /// by result.
    fn seen(&self, trace: &Trace) -> String {
        let count = |wanted: fn(&Verdict) -> bool| {
            trace.hops.iter().filter(|(_, verdict)| wanted(verdict)).count()
        };
        let validated = count(|it| matches!(it, Verdict::Validated));
        if validated == trace.hops.len() {
            return "path validated".to_owned();
        }
        let here = count(|it| matches!(it, Verdict::Own));
        let seen = trace.hops.len() - validated - here;
        let parts = [(validated, "validated"), (seen, "seen"), (here, "the local port")];
        let parts: Vec<String> = parts
            .into_iter()
            .filter(|&(count, _)| count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        let head = match trace.is_validated() {
            true => "path validated at its end",
            false => "path proven good",
        };
        format!("{head} ({})", parts.join(", "))
    }

    /// Prints the evidence for the hop that the path's result names. With --verbose, prints the sets of possible faults
    /// instead, since `print_way` has printed the evidence.
    fn print_evidence(
        &self,
        trace: &Trace,
        tracer: &Tracer,
        out: &mut Output,
    ) -> Result<(), Failure> {
        let Some((_, (hop, verdict))) = named_hop(trace) else { return Ok(()) };
        let known = (&self.names, tracer.model());
        let all = tracer.evidence(hop, trace.lid);
        if self.args.verbose == 0 {
            writeln!(out, "  evidence: {}", evidence(&all, hop, known))?;
        } else if let Verdict::Suspected(why) = verdict {
            for candidate in &why.candidates {
                let all: Vec<String> = candidate.iter().map(|&it| component(it, known)).collect();
                writeln!(out, "  candidate: {}", all.join(" and "))?;
            }
        }
        Ok(())
    }

    /// Prints the hops of a path, one per line.
    fn print_way(&self, trace: &Trace, tracer: &Tracer, out: &mut Output) -> Result<(), Failure> {
        let model = tracer.model();
        let (node, port) = trace.start;
        let lid = model.end(trace.start).map_or(0, |end| end.lid);
        let name = self.names.full(model, node);
        writeln!(out, "from {name} port {port} LID {lid}")?;
        for (number, (hop, verdict)) in (1..).zip(&trace.hops) {
            let name = self.names.full(model, hop.node);
            let lid = model.end((hop.node, hop.enters)).map_or(0, |end| end.lid);
            let out_port = match self.args.ports {
                PortsArg::In => String::new(),
                PortsArg::Both => format!("[{}] -> ", hop.out),
            };
            let detail = detail(hop, verdict, (&self.names, model));
            writeln!(out, "{number:>3}  {out_port}[{}] {name} LID {lid}: {detail}", hop.enters)?;
            let all = tracer.evidence(hop, trace.lid);
            if !all.is_empty() {
                let known = (&self.names, model);
                writeln!(out, "     evidence: {}", evidence(&all, hop, known))?;
            }
        }
        Ok(())
    }

    /// Prints a path in the format of ibtracert.
    fn print_like_ibtracert(
        &self,
        trace: &Trace,
        model: &FabricModel,
        out: &mut Output,
    ) -> Result<(), Failure> {
        let mut print_end = |word: &str, place: (NodeNumber, u8)| {
            let node = model.node(place.0);
            let port = if node.kind.is_switch() { 0 } else { place.1 };
            let (first, last) = lids(model.end(place));
            let name = self.names.of(model, place.0);
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
            let end = model.end((hop.node, hop.enters)).copied().unwrap_or_default();
            let (first, last) = lids(Some(&end));
            let name = self.names.of(model, hop.node);
            let kind = kind(model.node(hop.node).kind);
            writeln!(
                out,
                "[{}] -> {kind} port {{{}}}[{}] lid {first}-{last} \"{name}\"",
                hop.out, end.guid, hop.enters,
            )?;
            last_place = (hop.node, hop.enters);
        }
        if let Some((hop, verdict)) = trace.first_bad() {
            let node = self.names.full(model, hop.node);
            let detail = detail(hop, verdict, (&self.names, model));
            crate::failure::say!("{node}: {detail}");
        }
        if trace.stop == Stop::Arrived {
            let node = model.node(last_place.0);
            let port = if node.kind.is_switch() { 0 } else { last_place.1 };
            let (first, last) = lids(model.end(last_place));
            let name = self.names.of(model, last_place.0);
            writeln!(
                out,
                "To {} {{{}}} portnum {port} lid {first}-{last} \"{name}\"",
                kind(node.kind),
                node.guid,
            )?;
        } else {
            let hops: Vec<Hop> = trace.hops.iter().map(|&(hop, _)| hop).collect();
            let name = |number| self.names.full(model, number);
            let stop = trace.stop.describe(model, (trace.lid, &hops), &name);
            crate::failure::say!("{stop}");
        }
        Ok(())
    }

    fn trace_report(
        &self,
        pair: Pair,
        result: &Result<Trace, TraceError>,
        tracer: &Tracer,
    ) -> TraceReport {
        let model = tracer.model();
        let trace = result.as_ref().ok();
        let hops = trace.map_or(&[][..], |trace| &trace.hops);
        TraceReport {
            from: pair.0.map(end_text),
            to: end_text(pair.1),
            lid: trace.map(|trace| trace.lid),
            good: trace.is_some_and(Trace::is_good),
            validated: trace.is_some_and(Trace::is_validated),
            judgement: judgement(trace.map_or(Judgement::NotProven, Trace::judgement)),
            result: self.sentence(pair, result, model),
            suspects: trace
                .map(Trace::suspects_at_end)
                .unwrap_or_default()
                .into_iter()
                .map(|it| component(it, (&self.names, model)))
                .collect(),
            ms: trace.map_or(0.0, |trace| trace.elapsed.as_secs_f64() * 1e3),
            hops: hops
                .iter()
                .map(|hop| self.hop_report(hop, trace.map_or(0, |trace| trace.lid), tracer))
                .collect(),
        }
    }

    fn hop_report(&self, (hop, verdict): &(Hop, Verdict), lid: u16, tracer: &Tracer) -> HopReport {
        let model = tracer.model();
        let node = model.node(hop.node);
        let (expected, actual) = match *verdict {
            Verdict::Misdirected { actual, .. } => (Some(hop.enters), actual),
            Verdict::OtherTable { holds } => (Some(hop.out), Some(holds)),
            Verdict::Detour { by } => (Some(hop.out), Some(by)),
            _ => (None, None),
        };
        let left_by = match *verdict {
            Verdict::Misdirected {
                left: Some(PacketFate::Sent(port) | PacketFate::Discarded(port)),
                ..
            } => Some(port),
            Verdict::Detour { by } => Some(by),
            _ => None,
        };
        let known = (&self.names, model);
        let why = match verdict {
            Verdict::Suspected(why) => Some(&**why),
            _ => None,
        };
        let words = |set: &[ib_tracer::Component]| -> Vec<String> {
            set.iter().map(|&it| component(it, known)).collect()
        };
        HopReport {
            out: hop.out,
            r#in: hop.enters,
            kind: kind(node.kind),
            guid: node.guid.to_string(),
            name: self.names.of(model, hop.node).to_owned(),
            lid: model.end((hop.node, hop.enters)).map_or(0, |end| end.lid),
            verdict: word(verdict),
            expected,
            actual,
            left_by,
            reason: why.map(|why| reason(&why.reason)),
            suspects: why.map_or_else(Vec::new, |why| words(&why.suspects)),
            candidates: why
                .map_or_else(Vec::new, |why| why.candidates.iter().map(|set| words(set)).collect()),
            evidence: tracer
                .evidence(hop, lid)
                .iter()
                .map(|it| EvidenceReport::new(it, known))
                .collect(),
            detail: detail(hop, verdict, known),
        }
    }
}

/// Returns the hop that the result of a path names, and the number of the hop. It is the first bad hop, or else the
/// first hop that is not proven.
fn named_hop(trace: &Trace) -> Option<(usize, &(Hop, Verdict))> {
    let is = |judgement| {
        let mut hops = (1..).zip(&trace.hops);
        hops.find(move |(_, (_, verdict))| verdict.judgement() == judgement)
    };
    let is_ended = trace.stop.judgement() == Judgement::ProvenBad;
    let unproven = || if is_ended { None } else { is(Judgement::NotProven) };
    is(Judgement::ProvenBad).or_else(unproven)
}

/// Returns the lowest and the highest LID of a port.
fn lids(end: Option<&End>) -> (u16, u16) {
    end.map_or((0, 0), |end| (end.lid, end.last_lid()))
}

/// Returns infiniband-diags' name for a type of node.
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
