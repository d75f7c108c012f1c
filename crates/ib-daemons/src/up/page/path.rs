//! The path of packets from one node to another, according to the present LFTs.

use ib_routing::SwitchId;
use ib_sim::Sim;
use ib_sm::Plan;
use ib_topology::{NodeId, PortId};
use ib_types::ServiceLevel;
use serde::Serialize;

use super::model::{Model, json};
use crate::up::web::{Json, Refusal};

/// The response with a path. The field names are JSON keys.
#[derive(Debug, Serialize)]
struct PathResponse {
    routes: u64,
    sl: u8,
    slid: u16,
    dlid: u16,
    hops: Vec<Hop>,
    error: Option<String>,
}

/// A node on the path, with its input port, its output port, the link at the output port and the VL on this link.
#[derive(Debug, Serialize)]
struct Hop {
    node: u32,
    r#in: u8,
    out: u8,
    link: Option<u32>,
    vl: Option<u8>,
}

/// Returns the response with the path between two nodes. Its service level is taken from the SM's plan.
pub(super) fn path(
    (sim, model, plan): (&Sim, &Model, Option<&Plan>),
    [from, to]: [NodeId; 2],
) -> Result<Json, Refusal> {
    let ends = [end(model, from)?, end(model, to)?];
    let [slid, dlid] = ends.map(|port| sim.link_port(port).lid);
    let level = plan.and_then(|plan| level(sim, model, plan, ends)).unwrap_or_default();
    let response = |hops, error| {
        let (routes, sl) = (sim.route_changes(), level.get());
        json(&PathResponse { routes, sl, slid, dlid, hops, error })
    };
    if let Some(bare) = [from, to].into_iter().zip([slid, dlid]).find(|&(_, lid)| lid == 0) {
        let name = sim.node_name(bare.0);
        return Ok(response(Vec::new(), Some(format!("{name} has no LID yet"))));
    }
    let (steps, why) = match sim.route(slid, dlid) {
        Ok(found) => found,
        Err(lid) => return Ok(response(Vec::new(), Some(format!("no end port has LID {lid}")))),
    };
    Ok(response(hops((sim, model), &steps, level), why.map(|why| why.to_string())))
}

fn end(model: &Model, node: NodeId) -> Result<PortId, Refusal> {
    let name = || model.fabric.node(node).name.clone();
    model.end_port(node).ok_or_else(|| Refusal::not_found(format!("{} has no port", name())))
}

/// Returns the service level that the plan assigns to the path between two end ports.
fn level(sim: &Sim, model: &Model, plan: &Plan, ends: [PortId; 2]) -> Option<ServiceLevel> {
    let switch = |port: PortId| {
        let (node, _) = sim.place(port);
        let node = if sim.is_switch(node) { node } else { model.fabric.peer(port)?.node };
        let guid = model.fabric.node(node).guid;
        let place = plan.switches.iter().position(|&it| it == guid)?;
        Some(SwitchId(place as u16))
    };
    Some(plan.routing.layers.level(switch(ends[0])?, switch(ends[1])?))
}

/// Returns the nodes of a path. `steps` are the ports through which a packet passes, in this order.
fn hops((sim, model): (&Sim, &Model), steps: &[PortId], level: ServiceLevel) -> Vec<Hop> {
    let Some((&first, further)) = steps.split_first() else { return Vec::new() };
    let start = |port: PortId, number| {
        let (node, _) = sim.place(port);
        Hop { node: node.0, r#in: number, out: 0, link: None, vl: None }
    };
    let leave = |hop: &mut Hop, port: PortId| {
        hop.out = sim.place(port).1;
        hop.link = model.link_of(port);
        hop.vl = sim.vl(hop.r#in, port, level);
    };
    let mut hops = vec![start(first, 0)];
    let is_switch = sim.is_switch(sim.place(first).0);
    // Output ports and input ports alternate. From a host, the first step is its output port. From a switch, the first
    // step is its port 0, so the next step is an output port. A path from a host to itself has only one step.
    let mut leaves = is_switch;
    if !is_switch && !further.is_empty() {
        leave(&mut hops[0], first);
    }
    for &port in further {
        if leaves {
            leave(hops.last_mut().expect("the path has a first hop"), port);
        } else {
            hops.push(start(port, sim.place(port).1));
        }
        leaves = !leaves;
    }
    hops
}

#[cfg(test)]
mod tests;
