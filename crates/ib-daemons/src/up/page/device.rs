//! The block device and its paths.

use std::path::Path;
use std::time::Duration;

use ib_rtrs::client::PathState;
use ib_rtrs::stats::{ClientPathStats, LatencyHistogram};
use ib_sim::Sim;
use serde::Serialize;

use super::model::json;
use crate::up::hosts::BlockPair;
use crate::up::web::Json;

/// The response with the state of the block device. The field names are JSON keys.
#[derive(Serialize)]
struct DeviceResponse<'a> {
    device: &'a str,
    size: u64,
    nbd: String,
    paths: Vec<PathResponse>,
    programs: usize,
}

/// A path of the block device.
#[derive(Serialize)]
struct PathResponse {
    index: usize,
    from: u32,
    to: u32,
    state: &'static str,
    in_flight: u32,
    reads: u64,
    writes: u64,
    read_bytes: u64,
    write_bytes: u64,
    failovers: u64,
    reconnects: u64,
    latency: Latency,
}

/// Histogram and quantiles of the latencies of reads and writes.
#[derive(Serialize)]
struct Latency {
    unit: &'static str,
    buckets: Vec<(u64, u64)>,
    p50: f64,
    p99: f64,
    max: f64,
}

/// Returns the response with the state of the block device. The last parameter consists of the name of the device, its
/// NBD socket and its number of NBD clients.
pub(super) fn device(
    sim: &Sim,
    pair: Option<&BlockPair>,
    (name, nbd, programs): (&str, &Path, usize),
) -> Json {
    let Some((pair, geometry)) = pair.and_then(|pair| Some((pair, pair.geometry()?))) else {
        return Json::from_static(b"{\"device\":null}");
    };
    let client = pair.client();
    let paths = client.paths().filter_map(|id| {
        let index = client.spec(id)?.adapter.0 as usize;
        let ports = pair.ports().map(|ports| ports.get(index));
        let [Some(&from), Some(&to)] = ports else { return None };
        let [from, to] = [from, to].map(|port| sim.place(port).0.0);
        let ClientPathStats { traffic, latencies, failed_over, reconnects, .. } =
            client.stats(id)?;
        Some(PathResponse {
            index,
            from,
            to,
            state: word(client.path_state(id)?),
            in_flight: client.inflight(id)?,
            reads: traffic.reads,
            writes: traffic.writes,
            read_bytes: traffic.read_bytes,
            write_bytes: traffic.write_bytes,
            failovers: *failed_over,
            reconnects: reconnects.succeeded,
            latency: latency(&latencies.histograms),
        })
    });
    let (paths, nbd) = (paths.collect(), nbd.display().to_string());
    json(&DeviceResponse { device: name, size: geometry.size, nbd, paths, programs })
}

/// Combines the latency histograms of reads and writes.
fn latency([reads, writes]: &[LatencyHistogram; 2]) -> Latency {
    let mut all = reads.clone();
    all.add(writes);
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    Latency {
        unit: "us",
        buckets: all.ranges().collect(),
        p50: micros(all.quantile(0.5)),
        p99: micros(all.quantile(0.99)),
        max: micros(all.longest()),
    }
}

const fn word(state: PathState) -> &'static str {
    match state {
        PathState::Connecting => "connecting",
        PathState::Connected => "connected",
        PathState::Waiting => "waiting",
        PathState::Disconnected => "disconnected",
        PathState::Closing => "closing",
    }
}
