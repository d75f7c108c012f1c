//! Requests of `ibfabric sm ctl` and their replies.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ib_control::lines::Reply;
use ib_routing::engine::{Refusal, reason};
use ib_routing::{NO_PATH, SwitchId};
use ib_sm::{PortStatus, TableQuality};
use ib_types::Guid;
use ib_wire::mad::sm::{SmInfo, SmState};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::metrics;
use super::shared::{Last, Shared, ShownAlarm, State};
use crate::message::counted;

pub(super) mod data;

use data::{
    AlarmData, MetricSample, OtherManager, Quality, Refused, RoutedSwitch, SmRoutes, SmStatus,
    SmTable, SweepTimes, TableEntry, UpSubnet,
};

/// A request to a running SM. It is sent as a line of JSON, such as `"status"` or `{"routes":{"switch":null}}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SmRequest {
    /// Report the state of the SM and of the subnet.
    Status,
    /// Start a heavy sweep.
    Sweep,
    /// List the switches, or show the LFT of one switch.
    Routes {
        /// GUID or LID of the switch; `None` to list all switches.
        switch: Option<String>,
    },
    /// Report the metrics, as text in the format of Prometheus and as JSON.
    Metrics,
}

/// Executes a request, which is a line of JSON, and returns the reply as a line of JSON.
pub(super) fn answer(shared: &Shared, line: &str) -> String {
    let state = shared.state();
    let result = match serde_json::from_str(line) {
        Ok(SmRequest::Status) => Ok(status(&state)),
        Ok(SmRequest::Sweep) => match idle_reason(&state) {
            Some(why) => Err(format!("{why}: no sweep is started")),
            None => {
                shared.request_sweep();
                Ok(("a sweep starts".to_owned(), Value::Null))
            }
        },
        Ok(SmRequest::Routes { switch: None }) => routes(&state),
        Ok(SmRequest::Routes { switch: Some(switch) }) => table(&state, &switch),
        Ok(SmRequest::Metrics) => Ok((metrics::page(&state), metrics_data(&state))),
        Err(error) => {
            Err(format!("found `{line}`, expected a request such as \"status\": {error}"))
        }
    };
    Reply::from(result).to_line()
}

type Answer = (String, Value);

/// Returns the reason why the SM does not sweep; `None` if it does.
fn idle_reason(state: &State) -> Option<String> {
    match state.info.as_ref()?.state {
        SmState::STANDBY => {
            let mut others = state.managers.iter();
            let master = others.find(|(_, _, info)| info.state == SmState::MASTER);
            let master = master.map(|(name, guid, _)| format!("; the master is {guid} ('{name}')"));
            Some(format!("this SM is in standby{}", master.unwrap_or_default()))
        }
        SmState::NOT_ACTIVE => Some("this SM is not active".to_owned()),
        _ => None,
    }
}

/// Returns the name of an SM state for messages.
pub(super) fn state_word(state: SmState) -> &'static str {
    match state {
        SmState::NOT_ACTIVE => "not active",
        SmState::DISCOVERING => "discovering",
        SmState::STANDBY => "standby",
        SmState::MASTER => "master",
        _ => "unknown",
    }
}

fn status(state: &State) -> Answer {
    let Some(info) = &state.info else { return ("the SM is starting\n".to_owned(), Value::Null) };
    let word = state_word(info.state);
    let mut text =
        format!("{word}, priority {}, at port {}; {}\n", info.priority, info.guid, state.activity);
    let mut up = None;
    if let Some(last) = &state.last {
        let Last { report, at } = &**last;
        let seconds = at.elapsed().unwrap_or_default().as_secs_f64();
        let lids: usize = report.plan.end_ports.values().map(|&(_, n)| usize::from(n)).sum();
        let engine = report.plan.routing.engine.name();
        writeln!(
            text,
            "up {seconds:.0} s ago: {} nodes, {} switches, {lids} LIDs, routed with {engine}{}; {}",
            report.nodes,
            report.plan.switches.len(),
            if report.cached { " (cached)" } else { "" },
            quality_words(state.quality),
        )
        .expect("writing to memory succeeds");
        let refusals = refusals(&report.plan.refusals, &mut text);
        let ms = |time: std::time::Duration| time.as_secs_f64() * 1e3;
        up = Some(UpSubnet {
            seconds_ago: seconds,
            nodes: report.nodes,
            switches: report.plan.switches.len(),
            lids,
            engine,
            refusals,
            cached: report.cached,
            quality: quality(state),
            smps: report.smps,
            retries: report.retries,
            ms: SweepTimes {
                discover: ms(report.discover),
                plan: ms(report.plan_time),
                program: ms(report.program),
            },
        });
    }
    let (traffic, counters) = (&state.traffic, &state.counters);
    writeln!(
        text,
        "{}, {}, {} followed, {}; {} sent, {} retransmitted",
        counted(counters.sweeps, "sweep"),
        counted(counters.light_sweeps, "light sweep"),
        counted(counters.partial_discoveries, "change"),
        counted(counters.traps, "trap"),
        counted(traffic.sent, "SMP"),
        traffic.retries
    )
    .expect("writing to memory succeeds");
    for (name, guid, other) in state.managers.iter() {
        let word = state_word(other.state);
        writeln!(text, "manager {guid} ('{name}'): {word}, priority {}", other.priority)
            .expect("writing to memory succeeds");
    }
    if let Some(why) = &state.no_plan {
        writeln!(text, "no plan: {why}").expect("writing to memory succeeds");
    }
    for ShownAlarm { alarm, since } in state.alarms.iter() {
        let seconds = since.elapsed().unwrap_or_default().as_secs();
        writeln!(text, "ALARM since {seconds} s: {alarm}").expect("writing to memory succeeds");
    }
    if let Some(why) = &state.rejected {
        writeln!(text, "rejected: {why}").expect("writing to memory succeeds");
    }
    for fault in state.faults.iter() {
        writeln!(text, "fault: {fault}").expect("writing to memory succeeds");
    }
    let manager = |(name, guid, info): &(String, Guid, SmInfo)| OtherManager {
        guid: guid.to_string(),
        name: name.clone(),
        state: state_word(info.state),
        priority: info.priority,
    };
    let data = SmStatus {
        state: word,
        priority: info.priority,
        guid: info.guid.to_string(),
        activity: state.activity,
        requested: state.requested.clone(),
        up,
        sweeps: counters.sweeps,
        light_sweeps: counters.light_sweeps,
        followed: counters.partial_discoveries,
        traps: counters.traps,
        smps: traffic.sent,
        retries: traffic.retries,
        managers: state.managers.iter().map(manager).collect(),
        no_plan: state.no_plan.clone(),
        alarms: state.alarms.iter().map(AlarmData::from).collect(),
        rejected: state.rejected.clone(),
        faults: state.faults.to_vec(),
    };
    (text, value(data))
}

/// Returns an alarm as JSON.
pub(super) fn alarm_data(shown: &ShownAlarm) -> Value {
    value(AlarmData::from(shown))
}

/// Returns data as a JSON value.
fn value(data: impl Serialize) -> Value {
    serde_json::to_value(data).expect("texts and numbers can be converted to JSON")
}

/// Returns the numbers of unreachable destinations, unreachable host pairs and credit loops of the LFTs in use.
fn quality(state: &State) -> Quality {
    Quality {
        unreachable: state.quality.map(|it| it.unreachable),
        unreachable_host_pairs: state.quality.map(|it| it.unreachable_host_pairs),
        credit_loops: state.quality.map(|it| it.credit_loops),
    }
}

/// Describes the quality of the LFTs that are in use.
pub(super) fn quality_words(quality: Option<TableQuality>) -> String {
    let Some(quality) = quality else { return "reachability not known".to_owned() };
    format!("{} unreachable, {}", quality.unreachable, counted(quality.credit_loops, "credit loop"))
}

/// Lists the engines that could not route the subnet. Appends them to `text` and returns them as data.
fn refusals(refusals: &[Refusal], text: &mut String) -> Vec<Refused> {
    let said = refusals.iter().map(|refusal| {
        let (engine, reason) = (refusal.0, reason(refusal));
        writeln!(text, "{engine} cannot route this subnet: {reason}")
            .expect("writing to memory succeeds");
        Refused { engine: engine.name(), reason }
    });
    said.collect()
}

fn last(state: &State) -> Result<&Last, String> {
    state
        .last
        .as_deref()
        .ok_or_else(|| idle_reason(state).unwrap_or_else(|| "the subnet is not up".to_owned()))
}

/// Returns GUID, LID and name of each switch. The index of a switch is its `SwitchId` in the LFTs.
fn switches<'s>(state: &'s State, last: &Last) -> Vec<(Guid, u16, &'s str)> {
    let names: BTreeMap<Guid, (u16, &str)> = state
        .ports
        .iter()
        .filter(|port| port.number == 0)
        .map(|port| (port.node_guid, (port.lid, port.description.as_str())))
        .collect();
    let row = |&guid: &Guid| {
        let (lid, name) = names.get(&guid).copied().unwrap_or_default();
        (guid, lid, name)
    };
    last.report.plan.switches.iter().map(row).collect()
}

fn routes(state: &State) -> Result<Answer, String> {
    let last = last(state)?;
    let plan = &last.report.plan;
    let engine = plan.routing.engine.name();
    let mut text =
        format!("{engine} (configured: {}); {}\n", state.requested, quality_words(state.quality));
    let refusals = refusals(&plan.refusals, &mut text);
    let rows: Vec<RoutedSwitch> = switches(state, last)
        .into_iter()
        .map(|(guid, lid, name)| {
            writeln!(text, "{guid} LID {lid} '{name}'").expect("writing to memory succeeds");
            RoutedSwitch { guid: guid.to_string(), lid, name: name.to_owned() }
        })
        .collect();
    let data = SmRoutes {
        engine,
        requested: state.requested.clone(),
        cached: last.report.cached,
        refusals,
        warnings: plan.warnings.clone(),
        kept: plan.is_kept,
        quality: quality(state),
        max_lid: plan.max_lid,
        switches: rows,
    };
    Ok((text, value(data)))
}

/// Returns the LFT of a switch in the output format of `opensm-lfts.dump`.
fn table(state: &State, wanted: &str) -> Result<Answer, String> {
    let last = last(state)?;
    let guid = wanted.parse::<Guid>().ok();
    let lid = crate::input::number::<u16>(wanted);
    let rows = switches(state, last);
    let is_it = |row: &(Guid, u16, &str)| Some(row.0) == guid || (row.1 > 0 && Some(row.1) == lid);
    let found = rows.iter().position(is_it);
    let row = found.ok_or_else(|| format!("found no switch {wanted}, expected its GUID or LID"))?;
    let (guid, lid, name) = rows[row];
    let plan = &last.report.plan;
    let table = plan.routing.lfts.table(SwitchId(row as u16));
    let owners: BTreeMap<u16, (Guid, &PortStatus)> = state
        .ports
        .iter()
        .filter(|port| (port.number == 0) == port.kind.is_switch())
        .map(|port| (port.lid, (port.guid, port)))
        .collect();
    let max = plan.max_lid;
    let mut text = format!("Unicast lids [0-{max}] of switch Lid {lid} guid {guid} ('{name}'):\n");
    let mut entries = Vec::new();
    for (lid, &port) in (0u16..).zip(table).filter(|&(_, &port)| port != NO_PATH) {
        // The LIDs of a port are consecutive. So `lid` belongs to the port with the highest first LID that is not above
        // `lid`.
        let owner = owners.range(..=lid).next_back().filter(|(first, (guid, _))| {
            plan.end_ports.get(guid).is_some_and(|&(_, count)| lid - **first < count)
        });
        match owner {
            Some((_, (guid, PortStatus { kind, description, .. }))) => {
                writeln!(text, "{lid:#06x} {port:03} # {kind} portguid {guid}: '{description}'")
            }
            None => writeln!(text, "{lid:#06x} {port:03}"),
        }
        .expect("writing to memory succeeds");
        entries.push(TableEntry { lid, port });
    }
    let switch = RoutedSwitch { guid: guid.to_string(), lid, name: name.to_owned() };
    Ok((text, value(SmTable { switch, entries })))
}

fn metrics_data(state: &State) -> Value {
    let samples: Vec<MetricSample> =
        metrics::samples(state).into_iter().map(MetricSample::from).collect();
    value(samples)
}
