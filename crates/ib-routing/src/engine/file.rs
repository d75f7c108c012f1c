//! The engine of `-R file`, whose tables are read from a file.

use ib_types::ServiceLevel;

use super::{Engine, EngineError, EngineKind, Routing, RoutingOptions};
use crate::fill::fill;
use crate::hops::HopMatrix;
use crate::layers::Layers;
use crate::lft::NO_PATH;
use crate::subnet::Subnet;

/// The file engine.
///
/// The engine uses the forwarding tables and the hop matrix in the options. If one of them is missing, it is computed
/// as in minhop. The tables are not checked against the topology.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileTables;

impl Engine for FileTables {
    fn kind(&self) -> EngineKind {
        EngineKind::File
    }

    fn route(&self, subnet: &Subnet<'_>, options: &RoutingOptions) -> Result<Routing, EngineError> {
        let shape = subnet.switches().len();
        let fits = |lfts: &crate::lft::Lfts| {
            lfts.max_lid() == subnet.max_lid() && lfts.switches() == shape
        };
        if options.file_lfts.as_ref().is_some_and(|lfts| !fits(lfts)) {
            return Err(EngineError::Input(
                "file: the forwarding tables were read for another subnet".into(),
            ));
        }
        for (id, switch) in subnet.switch_ids().zip(subnet.switches()) {
            let table = options.file_lfts.as_ref().map_or(&[][..], |lfts| lfts.table(id));
            let bad = |&(_, &port): &(usize, &u8)| port > switch.ports && port != NO_PATH;
            if let Some((lid, port)) = table.iter().enumerate().find(bad) {
                return Err(EngineError::Input(format!(
                    "file: the table of switch {} sends LID {lid} to port {port}: expected a \
                     port of 0 to {}",
                    switch.guid, switch.ports
                )));
            }
        }
        let mut notes = Vec::new();
        let hops = options.file_hops.clone().unwrap_or_else(|| {
            notes.push("no lid matrix file: hops are computed as minhop does".to_owned());
            HopMatrix::shortest(subnet, &options.link_weights(subnet))
        });
        let lfts = options.file_lfts.clone().unwrap_or_else(|| {
            notes.push("no LFT file: the tables are computed as minhop does".to_owned());
            fill(subnet, &hops, options, false)
        });
        Ok(Routing {
            engine: self.kind(),
            lfts,
            hops,
            layers: Layers::uniform(ServiceLevel::default()),
            roots: Vec::new(),
            ca_order: Vec::new(),
            notes,
        })
    }
}
