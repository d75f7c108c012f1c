//! Checks that a client receives a long SA response completely. ibfabric's client queries `ibfabric sm` through the
//! simulator.

use std::collections::BTreeSet;

use ib_ibsim::client::{Attach, IbsimLink, ServerAddress};
use ib_link::MadLink as _;
use ib_link::Remote;
use ib_mad::{Client, Request, RequesterConfig};
use ib_topology::Fabric;
use ib_types::Guid;
use ib_wire::mad::sa::NodeRecord;
use ib_wire::mad::{AttributeId, Mad, Method, MgmtClass, TransactionId};

use super::ours::Options;
use super::scene::Scene;
use crate::clients::stage::StageError;

/// Minimum number of records that the response must have.
pub const RECORDS: usize = 1000;

/// Queries all `NodeRecords`, and compares them with the nodes of a fabric.
///
/// # Errors
/// Fails if a program cannot be started, or if the SM does not come up.
pub fn run(scene: &mut Scene<'_>, expected: &Fabric) -> Result<(), StageError> {
    let mut ours = scene.manage(&Options::default())?;
    let expected: BTreeSet<Guid> = expected.nodes().map(|(_, node)| node.guid).collect();
    scene.check(expected.len() >= RECORDS, || {
        format!("the fabric has {} nodes, fewer than {RECORDS}", expected.len())
    });
    let linked = |id| scene.fabric.ports_of(id).any(|(_, port)| port.peer.is_some());
    let adapters = scene.fabric.nodes().filter(|&(id, node)| !node.kind.is_switch() && linked(id));
    let last = adapters.last().map(|(_, node)| node.name.clone()).ok_or(StageError::NoActors)?;
    let found = nodes_by(&scene.seat.socket, &last);
    let found = found.map_err(|error| StageError::Failed(format!("GetTable: {error}")))?;
    let (guids, count) = (found.iter().copied().collect::<BTreeSet<_>>(), found.len());
    scene.check(count == guids.len() && guids == expected, || {
        let missing = expected.difference(&guids).count();
        let more = guids.difference(&expected).count();
        format!("{count} NodeRecords: {missing} are missing, {more} do not belong to the fabric")
    });
    scene.checked.note = format!("{count} records");
    scene.check(ours.is_alive(), || {
        format!("ibfabric sm has ended unexpectedly: {}", ours.output())
    });
    Ok(())
}

fn nodes_by(socket: &str, node: &str) -> Result<Vec<Guid>, Box<dyn std::error::Error>> {
    let server = ServerAddress::Name(socket.to_owned());
    let attach = Attach { node: Some(node.to_owned()), ..Attach::new(server) };
    let mut link = IbsimLink::attach(&attach)?;
    let manager = link.port()?.sm_lid;
    let mut mad = Mad::new(MgmtClass::SUBN_ADM, Method::GET_TABLE, TransactionId(0));
    mad.set_attribute_id(AttributeId::NODE_RECORD);
    let request = Request::new(Remote::gsi(manager), mad);
    let answer = Client::new(RequesterConfig::default()).call(&mut link, request)?;
    if !answer.status().is_ok() {
        return Err(format!("the SA responds with status {}", answer.status()).into());
    }
    Ok(answer.records::<NodeRecord>().map(|record| record.node_info.node_guid).collect())
}
