//! The data of replies to `sm ctl`. The field names are JSON keys.

use std::collections::BTreeMap;

use ib_routing::EngineKind;
use ib_sm::Alarm;
use schemars::JsonSchema;
use serde::Serialize;

use crate::sm::metrics::Sample;
use crate::sm::shared::ShownAlarm;

/// The state of the SM and of the subnet.
#[derive(Serialize, JsonSchema)]
pub struct SmStatus {
    pub(super) state: &'static str,
    pub(super) priority: u8,
    /// Port GUID of the SM.
    pub(super) guid: String,
    pub(super) activity: &'static str,
    /// The configured routing engines.
    pub(super) requested: String,
    /// The last sweep that brought the subnet up; `null` before the first one.
    pub(super) up: Option<UpSubnet>,
    pub(super) sweeps: u64,
    pub(super) light_sweeps: u64,
    /// Number of changes that were discovered without a heavy sweep.
    pub(super) followed: u64,
    pub(super) traps: u64,
    /// Number of SMPs that were sent, and of those that were retransmitted.
    pub(super) smps: u64,
    pub(super) retries: u64,
    /// The other SMs of the subnet.
    pub(super) managers: Vec<OtherManager>,
    /// The reason why the subnet cannot be routed.
    pub(super) no_plan: Option<String>,
    pub(super) alarms: Vec<AlarmData>,
    /// The reason why the last reload of the partitions failed.
    pub(super) rejected: Option<String>,
    pub(super) faults: Vec<String>,
}

/// A sweep that brought the subnet up.
#[derive(Serialize, JsonSchema)]
pub(super) struct UpSubnet {
    pub(super) seconds_ago: f64,
    pub(super) nodes: usize,
    pub(super) switches: usize,
    pub(super) lids: usize,
    pub(super) engine: &'static str,
    /// Engines that could not route the subnet.
    pub(super) refusals: Vec<Refused>,
    /// True if the routes are those of the unicast cache.
    pub(super) cached: bool,
    #[serde(flatten)]
    pub(super) quality: Quality,
    pub(super) smps: u64,
    pub(super) retries: u64,
    pub(super) ms: SweepTimes,
}

/// Problems of the forwarding tables in the switches; `null` if not known.
#[derive(Serialize, JsonSchema)]
pub(super) struct Quality {
    /// Number of pairs of a switch and a LID that have no working route.
    pub(super) unreachable: Option<u64>,
    /// Number of pairs of hosts that have no working route.
    pub(super) unreachable_host_pairs: Option<u64>,
    pub(super) credit_loops: Option<usize>,
}

/// Duration of the parts of a sweep, in milliseconds.
#[derive(Serialize, JsonSchema)]
pub(super) struct SweepTimes {
    pub(super) discover: f64,
    pub(super) plan: f64,
    pub(super) program: f64,
}

/// Another SM of the subnet.
#[derive(Serialize, JsonSchema)]
pub(super) struct OtherManager {
    pub(super) guid: String,
    pub(super) name: String,
    pub(super) state: &'static str,
    pub(super) priority: u8,
}

/// A routing engine that could not route the subnet.
#[derive(Serialize, JsonSchema)]
pub(super) struct Refused {
    pub(super) engine: &'static str,
    pub(super) reason: String,
}

/// The result of routing, and the switches in the order of the LFTs.
#[derive(Serialize, JsonSchema)]
pub struct SmRoutes {
    pub(super) engine: &'static str,
    pub(super) requested: String,
    pub(super) cached: bool,
    pub(super) refusals: Vec<Refused>,
    pub(super) warnings: Vec<String>,
    /// True if the tables of an earlier sweep were kept.
    pub(super) kept: bool,
    #[serde(flatten)]
    pub(super) quality: Quality,
    pub(super) max_lid: u16,
    pub(super) switches: Vec<RoutedSwitch>,
}

/// A switch.
#[derive(Serialize, JsonSchema)]
pub(super) struct RoutedSwitch {
    pub(super) guid: String,
    pub(super) lid: u16,
    pub(super) name: String,
}

/// The LFT of a switch.
#[derive(Serialize, JsonSchema)]
pub struct SmTable {
    #[serde(flatten)]
    pub(super) switch: RoutedSwitch,
    pub(super) entries: Vec<TableEntry>,
}

/// An entry of an LFT.
#[derive(Serialize, JsonSchema)]
pub(super) struct TableEntry {
    pub(super) lid: u16,
    pub(super) port: u8,
}

/// A sample of a metric.
#[derive(Serialize, JsonSchema)]
pub struct MetricSample {
    name: String,
    labels: BTreeMap<&'static str, String>,
    value: f64,
}

impl From<Sample> for MetricSample {
    fn from(Sample { name, labels, value }: Sample) -> Self {
        Self { name, labels: labels.into_iter().collect(), value }
    }
}

/// An alarm.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AlarmData {
    #[serde(flatten)]
    details: AlarmDetails,
    kind: &'static str,
    /// Seconds since the Unix epoch.
    since: f64,
    text: String,
}

/// The properties that depend on the kind of an alarm.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum AlarmDetails {
    CreditLoops {
        engine: &'static str,
        loops: usize,
        first: Vec<String>,
        avoided_by: Option<&'static str>,
        tried: Vec<&'static str>,
    },
    Unreachable {
        host_pairs: u64,
        pairs: u64,
        first: Option<String>,
        reached_by: Option<&'static str>,
    },
    NoPlan {
        reason: String,
    },
    Other {},
}

impl From<&ShownAlarm> for AlarmData {
    fn from(ShownAlarm { alarm, since }: &ShownAlarm) -> Self {
        let name = |engine: &Option<EngineKind>| engine.map(EngineKind::name);
        let details = match alarm {
            Alarm::CreditLoops { engine, loops, first, avoided_by, tried } => {
                AlarmDetails::CreditLoops {
                    engine: engine.name(),
                    loops: *loops,
                    first: first.clone(),
                    avoided_by: name(avoided_by),
                    tried: tried.iter().map(|it| it.name()).collect(),
                }
            }
            Alarm::Unreachable { host_pairs, pairs, first, reached_by } => {
                AlarmDetails::Unreachable {
                    host_pairs: *host_pairs,
                    pairs: *pairs,
                    first: first.clone(),
                    reached_by: name(reached_by),
                }
            }
            Alarm::NoPlan { reason } => AlarmDetails::NoPlan { reason: reason.clone() },
            _ => AlarmDetails::Other {},
        };
        let since = since.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Self {
            details,
            kind: alarm.kind().name(),
            since: since.as_secs_f64(),
            text: alarm.to_string(),
        }
    }
}
