//! `ibfabric sm`: manages a subnet.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ib_link::MadLink;
use ib_net::ibsim::client::{Attach, IbsimLink, ServerAddress};
use ib_routing::LidOptions;
use ib_sim::{ClientOptions, Options, Sim, SimLink};
use ib_sm::{Partitions, RoutingConfig, SmConfig, SmEvent, SubnetManager, SweepReport};
use serde::Serialize;

use crate::cli::sm::SmArgs;
use crate::failure::{Failure, Verdict, say};
use crate::input;
use crate::output::{Format, Output};

/// The result; the names are JSON keys.
#[derive(Serialize)]
struct Report {
    engine: &'static str,
    requested: String,
    nodes: usize,
    switches: usize,
    lids: usize,
    max_lid: u16,
    unreachable: u64,
    credit_loops: usize,
    smps: u64,
    retries: u64,
    faults: usize,
    lft_blocks: u64,
    ms: Times,
}

/// How long each step took, in milliseconds.
#[derive(Clone, Copy, Default, Serialize)]
struct Times {
    discover: f64,
    route: f64,
    check: f64,
    program: f64,
    up: f64,
}

pub(crate) fn run(args: SmArgs, out: &mut Output) -> Result<Verdict, Failure> {
    let args = Arc::new(args);
    let config = config(&args)?;
    if let Some(path) = &args.place.sim {
        let fabric = input::fabric_file(path)?;
        let mut sim = Sim::new(&fabric, Options::default());
        let port = sim.first_end_port();
        let port = port.ok_or_else(|| Failure::Unusable("no port to manage from".to_owned()))?;
        let options = ClientOptions { is_sm: true, ..ClientOptions::default() };
        let mut link = SimLink::attach(&mut sim, port, options).map_err(Failure::unusable)?;
        return drive(&args, config, &mut link, out);
    }
    let attach = Attach::from_environment().map_err(Failure::unusable)?;
    let server = match args.place.ibsim.as_deref() {
        None | Some("") => attach.server.clone(),
        Some(name) => ServerAddress::Name(name.to_owned()),
    };
    let attach = Attach { server, is_sm: true, ..attach };
    let mut link = IbsimLink::attach(&attach).map_err(Failure::unusable)?;
    drive(&args, config, &mut link, out)
}

fn config(args: &Arc<SmArgs>) -> Result<SmConfig, Failure> {
    let for_options = Arc::clone(args);
    let mut config = SmConfig {
        max_smps: args.maxsmps as usize,
        sm_priority: args.priority,
        sweep_interval: (args.sweep > 0).then(|| Duration::from_secs(args.sweep.into())),
        routing: RoutingConfig {
            engines: args.engine.clone(),
            options: Some(Arc::new(move |subnet| {
                input::routing_options(subnet, &for_options.engines).map_err(Failure::into_message)
            })),
            lids: LidOptions {
                lmc: args.lmc,
                reassign: args.reassign_lids,
                ..LidOptions::default()
            },
        },
        ..SmConfig::default()
    };
    config.timing.timeout = Duration::from_millis(args.timeout.into());
    config.timing.retries = args.retries;
    if let Some(path) = &args.pconfig {
        let partitions = Partitions::read(&path.display().to_string(), &input::bytes(path)?);
        config.partitions = partitions.map_err(Failure::unusable)?;
    }
    Ok(config)
}

/// Lets a manager work on a link.
fn drive(
    args: &SmArgs,
    config: SmConfig,
    link: &mut dyn MadLink,
    out: &mut Output,
) -> Result<Verdict, Failure> {
    let start = Instant::now();
    let (mut times, mut planned) = (Times::default(), start);
    let guid = link.port().map_err(Failure::unusable)?.port_guid;
    let mut manager = SubnetManager::new(config, guid, link.now());
    loop {
        while let Some(datagram) = manager.poll_transmit(link.now()) {
            link.send(&datagram).map_err(Failure::unusable)?;
        }
        if let Some(job) = manager.poll_job() {
            times.discover = milliseconds(start.elapsed());
            manager.handle_plan(link.now(), job.run());
            planned = Instant::now();
            continue;
        }
        while let Some(event) = manager.poll_event() {
            match event {
                SmEvent::Fault(fault) => say!("{fault}"),
                SmEvent::NoPlan(why) => return Err(Failure::Unusable(why)),
                SmEvent::SubnetUp(report) => {
                    times.program = milliseconds(planned.elapsed());
                    times.up = milliseconds(start.elapsed());
                    let verdict = print(args, &report, times, out)?;
                    if args.once {
                        return Ok(verdict);
                    }
                }
                _ => {}
            }
        }
        let until = manager.poll_timeout().unwrap_or(ib_types::Instant::NEVER);
        link.wait(until).map_err(Failure::unusable)?;
        while let Some(incoming) = link.receive().map_err(Failure::unusable)? {
            manager.handle(link.now(), &incoming);
            while let Some(datagram) = manager.poll_transmit(link.now()) {
                link.send(&datagram).map_err(Failure::unusable)?;
            }
        }
        manager.handle_timeout(link.now());
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn print(
    args: &SmArgs,
    sweep: &SweepReport,
    mut ms: Times,
    out: &mut Output,
) -> Result<Verdict, Failure> {
    let plan = &sweep.plan;
    (ms.route, ms.check) = (milliseconds(plan.route_time), milliseconds(plan.check_time));
    let report = Report {
        engine: plan.routing.engine.name(),
        requested: args.engine.to_string(),
        nodes: sweep.nodes,
        switches: plan.switches.len(),
        lids: plan.end_ports.values().map(|&(_, lids)| usize::from(lids)).sum(),
        max_lid: plan.max_lid,
        unreachable: plan.report.reach.unreachable,
        credit_loops: plan.report.credit.loops,
        smps: sweep.smps,
        retries: sweep.retries,
        faults: sweep.faults,
        lft_blocks: sweep.written.lft_blocks,
        ms,
    };
    match args.format {
        Format::Json => out.json(&report)?,
        Format::Text => writeln!(
            out,
            "SUBNET UP: {} nodes, {} switches, {} LIDs, routed with {} in {:.0} ms; {} SMPs, {} \
             retries, {} faults; up in {:.0} ms",
            report.nodes,
            report.switches,
            report.lids,
            report.engine,
            ms.route,
            report.smps,
            report.retries,
            report.faults,
            ms.up
        )?,
    }
    out.flush()?;
    Ok(Verdict::good_if(report.unreachable == 0 && sweep.faults == 0))
}
