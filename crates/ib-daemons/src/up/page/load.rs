//! The number of host pairs whose path uses each link, according to the present LFTs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ib_routing::{Layers, Subnet, SubnetOptions, check};
use ib_sim::Sim;
use ib_topology::{Fabric, PortId};
use ib_types::ServiceLevel;
use rayon::{ThreadPool, ThreadPoolBuilder};
use serde::Serialize;

use super::model::{Model, json};
use crate::error::DaemonError;
use crate::up::tables::Tables;
use crate::up::web::{Answer, Json, Refusal};

/// The response with the load of all links. The field names are JSON keys.
#[derive(Serialize)]
struct LoadResponse<'a> {
    routes: u64,
    engine: &'a str,
    load: &'a [[u32; 2]],
    max: u32,
}

/// The cache of the computed load, and the version of the routes at the last request that the cache could not answer.
/// Computations for earlier versions that still wait for the cache are abandoned.
#[derive(Clone, Default)]
pub(super) struct Loads(Arc<Mutex<Cache>>, Arc<AtomicU64>);

#[derive(Default)]
struct Cache {
    /// The version of the routes for which the load was computed last, and the response with this load.
    last: Option<(u64, Json)>,
    /// A thread pool with only one thread, so that the simulator can use the other processors.
    pool: Option<ThreadPool>,
}

/// A copy of the data from which the load of all links is computed.
struct Copied {
    model: Arc<Model>,
    tables: Tables,
    /// One port of each link that is not active.
    down: Vec<PortId>,
    routes: u64,
    engine: String,
}

impl Loads {
    /// Returns the response with the load of all links. If the load is not cached, returns a function that computes it
    /// and that the web server calls in another thread.
    pub(super) fn answer(&self, sim: &Sim, model: &Arc<Model>, engine: &str) -> Answer {
        let routes = sim.route_changes();
        // The event loop does not wait for the lock, because a thread that computes the load holds it for a long time.
        if let Ok(cache) = self.0.try_lock()
            && let Some(json) = cache.get(routes)
        {
            return Answer::Json(json);
        }
        let is_down = |&&(one, other): &&(PortId, PortId)| !sim.is_active(one, other);
        let copied = Copied {
            tables: Tables::of(sim, &model.fabric),
            down: model.links.iter().filter(is_down).map(|&(one, _)| one).collect(),
            model: Arc::clone(model),
            routes,
            engine: engine.to_owned(),
        };
        let (cache, newest) = (Arc::clone(&self.0), Arc::clone(&self.1));
        newest.store(routes, Ordering::Relaxed);
        Answer::Later(Box::new(move || {
            let mut cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
            // While this thread waited for the lock, another thread may have computed the load.
            if let Some(json) = cache.get(routes) {
                return Ok(json);
            }
            if newest.load(Ordering::Relaxed) != routes {
                // The routes have changed after this request. A later request computes the load of the new routes, so
                // this load would be obsolete.
                return Err(Refusal::conflict("the LFTs have changed; request the load again"));
            }
            let pool = match &cache.pool {
                Some(pool) => pool,
                None => {
                    let pool = ThreadPoolBuilder::new().num_threads(1).build();
                    cache.pool.insert(pool.map_err(Refusal::conflict)?)
                }
            };
            let response = pool.install(|| copied.response());
            let json = response.map_err(|error| Refusal::conflict(error.into_message()))?;
            cache.last = Some((routes, json.clone()));
            Ok(json)
        }))
    }
}

impl Cache {
    fn get(&self, routes: u64) -> Option<Json> {
        self.last.as_ref().filter(|last| last.0 == routes).map(|last| last.1.clone())
    }
}

impl Copied {
    fn response(&self) -> Result<Json, DaemonError> {
        let load = self.load()?;
        let max = load.iter().flatten().copied().max().unwrap_or(0);
        Ok(json(&LoadResponse { routes: self.routes, engine: &self.engine, load: &load, max }))
    }

    /// Returns two numbers for each link: its load in the direction from its first to its second end, and its load in
    /// the other direction.
    fn load(&self) -> Result<Vec<[u32; 2]>, DaemonError> {
        let model = &*self.model;
        let mut fabric = model.fabric.clone();
        self.tables.set_lids(&mut fabric)?;
        for &port in &self.down {
            fabric.disconnect(port);
        }
        let mut load = vec![[0; 2]; model.links.len()];
        let mut seen = vec![false; fabric.node_count()];
        // Links that are down may split the fabric into several subnets. The load of each subnet is computed
        // separately.
        for (node, spec) in fabric.nodes().filter(|(_, spec)| !spec.kind.is_switch()) {
            let ends: Vec<PortId> = fabric
                .ports_of(node)
                .filter(|(_, port)| port.peer.is_some())
                .map(|it| it.0)
                .collect();
            for end in ends {
                let peer = fabric.peer(end).expect("the port is linked").node;
                if !fabric.node(peer).kind.is_switch() {
                    // A cable between two hosts needs no LFT. The direction away from this host is counted here. The
                    // other direction is counted when the loop over the nodes reaches the other host.
                    add(model, end, 1, &mut load);
                } else if !seen[peer.index()] {
                    let guid = fabric.port(end).guid;
                    let options = SubnetOptions { sm_port: Some(guid), ..SubnetOptions::default() };
                    let subnet = Subnet::discover(&fabric, &options).map_err(|error| {
                        DaemonError::Failed(format!("at {}: {error}", spec.name))
                    })?;
                    self.add_subnet(&fabric, &subnet, &mut load);
                    for id in subnet.switch_ids() {
                        seen[subnet.switch(id).node.index()] = true;
                    }
                }
            }
        }
        Ok(load)
    }

    fn add_subnet(&self, fabric: &Fabric, subnet: &Subnet<'_>, load: &mut [[u32; 2]]) {
        let lfts = self.tables.lfts(subnet);
        // Any service level gives the same load, so all paths get the default one.
        let report = check(subnet, &lfts, &Layers::uniform(ServiceLevel::default()));
        for id in subnet.switch_ids() {
            let switch = subnet.switch(id);
            for (port, known) in fabric.ports_of(switch.node) {
                add(&self.model, port, report.load.load(id, known.number), load);
            }
        }
        for (end, routes) in subnet.end_ports().iter().zip(report.load.starting(subnet, &lfts)) {
            add(&self.model, end.port, routes, load);
        }
    }
}

/// Adds a number of routes to the load of a port's link, in the direction away from the port.
fn add(model: &Model, port: PortId, routes: u32, load: &mut [[u32; 2]]) {
    if let Some(number) = model.link_of(port) {
        let is_second = model.links[number as usize].1 == port;
        load[number as usize][usize::from(is_second)] += routes;
    }
}

#[cfg(test)]
mod tests;
