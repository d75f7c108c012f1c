//! `ibfabric tracer`: traces the paths of packets, and validates them.

use std::collections::BTreeMap;
use std::time::Instant as WallClock;

use ib_daemons::mad_port::MadPort;
use ib_link::MadLink;
use ib_mad::RequesterConfig;
use ib_tracer::{FactSource, Judgement, Trace, TraceError, TraceId, Tracer, TracerConfig};
use ib_types::{Guid, Instant};
use ib_umad::UmadOptions;
use ib_wire::mad::MgmtClass;
use schemars::{JsonSchema, Schema};

use crate::cli::tracer::{PortsArg, TraceFormat, TracerArgs, ViaArg};
use crate::failure::{Failure, Verdict};
use crate::input;
use crate::output::Output;

mod group;
mod managed;
mod pairs;
mod report;

use group::GroupReport;
use managed::Managed;
use pairs::{Pair, Pairs, pairs, timing};
use report::{Names, Report, Whole};

/// The maximum number of paths that are traced concurrently.
const MOST_ACTIVE: usize = 2048;

pub(crate) fn run(args: &TracerArgs, out: &mut Output) -> Result<Verdict, Failure> {
    let names = names(args)?;
    if args.ports == PortsArg::Both && args.output() != TraceFormat::Text {
        let message =
            "--ports both is for text; --json and --format ibtracert show both ports anyway";
        return Err(Failure::Unusable(message.to_owned()));
    }
    match &args.sim {
        Some(path) => {
            let fabric = input::fabric_file(path)?;
            let node = args.station.node.as_deref();
            let mut link = Managed::start(&fabric, node, &args.engine.clone().unwrap_or_default())?;
            if let Some(path) = &args.commands {
                let text = String::from_utf8_lossy(&input::bytes(path)?).into_owned();
                link.run(&path.display().to_string(), &text, args.suppress_traps)?;
            }
            trace(args, names, &mut link, out)
        }
        None => {
            let mut umad = UmadOptions::classes(&[
                MgmtClass::SUBN_DIRECTED_ROUTE,
                MgmtClass::SUBN_LID_ROUTED,
                MgmtClass::SUBN_ADM,
                MgmtClass::TRACER,
                MgmtClass::PERFORMANCE,
            ]);
            umad.answer_timeout = timing(args).timeout;
            trace(args, names, &mut MadPort::open(&args.station.config(), &umad, false)?, out)
        }
    }
}

/// The output of `ibfabric tracer --json`.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only the schema is used")]
enum Printed<'a> {
    Paths(Whole<'a>),
    Group(GroupReport),
}

/// Returns the JSON Schema of the output with `--json`.
pub(crate) fn schema() -> Schema {
    crate::schemas::of::<Printed<'_>>()
}

/// Reads the node name map.
fn names(args: &TracerArgs) -> Result<BTreeMap<Guid, String>, Failure> {
    let Some(path) = &args.node_name_map else { return Ok(BTreeMap::new()) };
    let bytes = input::bytes(path)?;
    ib_topology::name_map::parse(&path.display().to_string(), &bytes).map_err(Failure::unusable)
}

/// Traces all requested paths, and reports the results.
fn trace(
    args: &TracerArgs,
    names: BTreeMap<Guid, String>,
    link: &mut dyn MadLink,
    out: &mut Output,
) -> Result<Verdict, Failure> {
    let own = link.port().map_err(Failure::unusable)?;
    if own.lid == 0 {
        let message = format!(
            "port {} of {} has no LID: expected a subnet that a subnet manager has brought up",
            own.number, own.node_guid
        );
        return Err(Failure::Unusable(message));
    }
    let config = TracerConfig {
        via: match args.via {
            ViaArg::Direct => FactSource::DirectedRoutes,
            ViaArg::Sa => FactSource::SaRecords,
        },
        agents: !args.no_agents,
        exact: args.exact,
        timing: timing(args),
        error_probability: args.error_probability,
        sl: args.sl,
        grh: args.grh,
        m_key: args.mkey,
        requester: RequesterConfig {
            window: args.window.into(),
            first: std::process::id() << 12 | 1,
            ..RequesterConfig::default()
        },
    };
    let mut tracer = Tracer::new(&config, own);
    if args.mgid.is_some() || args.mlid.is_some() {
        return group::trace(args, &Names(names), (link, &mut tracer, &own), out);
    }
    let asked = pairs(args, link, &own)?;
    let is_single = args.lid.is_some() || args.dgid.is_some();
    let mut report = Report::new(args, Names(names), is_single);
    let started = WallClock::now();
    let mut run = Run { link, order: BTreeMap::new() };
    if !is_single {
        run.survey(&mut tracer, &asked)?;
    }
    run.all(&mut tracer, &asked, |pair, result, tracer| report.take(pair, &result, tracer, out))?;
    let elapsed = started.elapsed();
    report.finish(&tracer, elapsed, out)?;
    Ok(status(report.judgement()))
}

/// Returns the exit status of a judgement: 0 proven good, 1 proven bad, 3 not proven.
fn status(judgement: Judgement) -> Verdict {
    match judgement {
        Judgement::ProvenGood => Verdict::Good,
        Judgement::ProvenBad => Verdict::Bad,
        Judgement::NotProven => Verdict::Other(3),
    }
}

/// Paths to trace, and the link over which probes are sent.
struct Run<'l> {
    link: &'l mut dyn MadLink,
    /// The pairs that are being traced, in the order in which they were requested. A result is kept until all earlier
    /// pairs are reported.
    order: BTreeMap<TraceId, (Pair, Option<Result<Trace, TraceError>>)>,
}

impl Run<'_> {
    /// Reads tables and links along all paths, so that duplicate LIDs and GUIDs are known before a path is judged.
    fn survey(&mut self, tracer: &mut Tracer, asked: &Pairs) -> Result<(), Failure> {
        let mut asked = asked.iter().fuse();
        loop {
            let mut more = true;
            while more && tracer.outstanding() < MOST_ACTIVE {
                let next = asked.next();
                more = next.is_some();
                if let Some((from, to)) = next {
                    tracer.survey(from, to).map_err(Failure::unusable)?;
                }
            }
            let now = self.link.now();
            while let Some(datagram) = tracer.poll_transmit(now) {
                self.link.send(&datagram).map_err(Failure::unusable)?;
            }
            // The results of the survey, such as an error for a GID without a path, are ignored. The trace of the path
            // reports them.
            while tracer.poll_event().is_some() {}
            match tracer.outstanding() {
                0 if !more => return Ok(()),
                count if !more || count == MOST_ACTIVE => listen(self.link, tracer)?,
                _ => {}
            }
        }
    }

    /// Traces all paths and reports the results in the order in which they were requested.
    fn all(
        &mut self,
        tracer: &mut Tracer,
        asked: &Pairs,
        mut tell: impl FnMut(Pair, Result<Trace, TraceError>, &Tracer) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut asked = asked.iter();
        loop {
            while self.order.len() < MOST_ACTIVE
                && let Some(pair) = asked.next()
            {
                let id = tracer.start(pair.0, pair.1).map_err(Failure::unusable)?;
                self.order.insert(id, (pair, None));
            }
            let now = self.link.now();
            while let Some(datagram) = tracer.poll_transmit(now) {
                self.link.send(&datagram).map_err(Failure::unusable)?;
            }
            while let Some((id, result)) = tracer.poll_event() {
                self.order.get_mut(&id).expect("started traces are in `order`").1 = Some(result);
            }
            let mut told = false;
            while let Some(entry) = self.order.first_entry()
                && entry.get().1.is_some()
            {
                let (pair, result) = entry.remove();
                tell(pair, result.expect("the loop condition found a result"), tracer)?;
                told = true;
            }
            if told {
                continue;
            }
            if self.order.is_empty() {
                return Ok(());
            }
            listen(self.link, tracer)?;
        }
    }
}

/// Waits for a MAD, and passes it to the tracer.
fn listen(link: &mut dyn MadLink, tracer: &mut Tracer) -> Result<(), Failure> {
    let until = tracer.poll_timeout().unwrap_or(Instant::NEVER);
    link.wait(until).map_err(Failure::unusable)?;
    while let Some(incoming) = link.receive().map_err(Failure::unusable)? {
        tracer.handle(link.now(), &incoming);
    }
    tracer.handle_timeout(link.now());
    Ok(())
}
