//! The output of `ibfabric acme --json`. The field names are JSON keys.

use std::collections::BTreeMap;

use ib_acm::client::ClientError;
use ib_wire::mad::sa::PathRecord;
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use super::Status;

/// The results of all services.
#[derive(Serialize, JsonSchema)]
pub(super) struct Results {
    pub(super) services: Vec<ServiceResult>,
    /// The status of the last operation, as `ib_acme` returns it; 0 for success.
    pub(super) status: Status,
}

/// Returns the JSON Schema of the output with `--json`.
pub(crate) fn schema() -> Schema {
    crate::schemas::of::<Results>()
}

/// A result, or the error that occurred instead.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Answer<T> {
    Found(T),
    Failed { error: String },
}

impl<T> Answer<T> {
    pub(super) fn failed(error: &ClientError) -> Self {
        Self::Failed { error: error.to_string() }
    }
}

/// Counters by name.
pub(super) type CounterResult = Answer<BTreeMap<String, u64>>;

/// The results of a service.
#[derive(Default, Serialize, JsonSchema)]
pub(super) struct ServiceResult {
    pub(super) service: String,
    /// The reason why the service cannot be queried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) paths: Option<Vec<PathResult>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) counters: Option<Vec<CounterResult>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) endpoints: Option<Answer<Vec<EndpointResult>>>,
}

impl ServiceResult {
    pub(super) fn failed(service: String, error: &ClientError) -> Self {
        Self { service, error: Some(error.to_string()), ..Self::default() }
    }
}

/// An endpoint of a service.
#[derive(Serialize, JsonSchema)]
pub(super) struct EndpointResult {
    pub(super) index: u8,
    pub(super) guid: String,
    pub(super) port: u8,
    pub(super) port_count: u8,
    pub(super) pkey: u16,
    pub(super) provider: String,
    pub(super) addresses: Vec<String>,
}

/// The resolution of a name or an address.
#[derive(Serialize, JsonSchema)]
pub(super) struct PathResult {
    pub(super) destination: String,
    #[serde(flatten)]
    pub(super) outcome: PathOutcome,
}

/// The path that was found, or the error that occurred instead.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum PathOutcome {
    Resolved {
        source: Option<String>,
        path: PathData,
        /// True if the SA returned the same path; only with --verify.
        #[serde(skip_serializing_if = "Option::is_none")]
        verified: Option<bool>,
    },
    Failed {
        error: String,
        /// The status in the response, if there was a response.
        status: Option<u8>,
    },
}

/// A path.
#[derive(Serialize, JsonSchema)]
pub(super) struct PathData {
    dgid: String,
    sgid: String,
    dlid: u16,
    slid: u16,
    flow_label: u32,
    hop_limit: u8,
    tclass: u8,
    reversible: bool,
    pkey: u16,
    sl: u8,
    mtu: Option<u16>,
    rate_mbit_per_s: Option<u32>,
    packet_lifetime: u8,
}

impl From<&PathRecord> for PathData {
    fn from(path: &PathRecord) -> Self {
        Self {
            dgid: path.dgid.to_string(),
            sgid: path.sgid.to_string(),
            dlid: path.dlid,
            slid: path.slid,
            flow_label: path.flow_label,
            hop_limit: path.hop_limit,
            tclass: path.traffic_class,
            reversible: path.reversible,
            pkey: path.p_key.0,
            sl: path.sl,
            mtu: path.mtu.bytes(),
            rate_mbit_per_s: path.rate.megabits_per_second(),
            packet_lifetime: path.life_time.0,
        }
    }
}
