//! SL-to-VL tables and VL arbitration tables. The SM does not read these tables from ports. It keeps copies of the
//! tables that it wrote, and writes a planned table only if it differs from the copy.

use ib_wire::mad::sm::{SlToVl, VlArbitration};

use super::{Context, Write, all_ports};
use crate::discovered_subnet::{DiscoveredSubnet, PortIndex};
use crate::tables::PortTables;
use crate::vls;

/// Returns writes for the tables that have to be written. SL-to-VL tables are written if quality of service is enabled
/// or if the routes use several service levels (`is_layered`). VL arbitration tables are written only if quality of
/// service is enabled.
pub(super) fn work(context: &Context<'_>, is_layered: bool) -> Vec<Write> {
    let mut work = Vec::new();
    if context.config.qos.is_none() && !is_layered {
        return work;
    }
    let nothing = PortTables::default();
    for port_index in all_ports(context.found) {
        let node = context.found.node(port_index.node);
        let known =
            context.written.get(&(node.info.node_guid, port_index.port)).unwrap_or(&nothing);
        if let Some(wanted) = vls::sl_to_vl(port_index, context.config, context.found, is_layered) {
            let inputs = if node.kind.is_switch() { 0..=node.info.num_ports } else { 0..=0 };
            let inputs = inputs.filter(|input| known.sl_to_vl.get(input) != Some(&wanted));
            work.extend(inputs.map(|input| Write::SlToVl { port_index, input }));
        }
        let blocks = arbitration(port_index, context).unwrap_or_default().into_iter();
        let blocks = blocks.filter(|(block, wanted)| known.arbitration.get(block) != Some(wanted));
        work.extend(blocks.map(|(block, _)| Write::Arbitration { port_index, block }));
    }
    work
}

/// Returns the planned VL arbitration blocks of a port, with their block numbers; `None` if the SM plans none.
pub(super) fn arbitration(
    port_index: PortIndex,
    context: &Context<'_>,
) -> Option<Vec<(u8, VlArbitration)>> {
    let (config, found) = (context.config, &*context.found);
    let qos = config.qos.as_ref()?.of(found.node(port_index.node).kind, port_index.port);
    let info = found.port(port_index).info.as_deref()?;
    let vls = vls::operational_vls(port_index, config, found)?;
    // A link with a single data VL needs no arbitration.
    (vls.lanes() > Some(1))
        .then(|| qos.arbitration(vls, info.vl_arbitration_low_cap, info.vl_arbitration_high_cap))
}

/// Returns the attribute modifier of an SL-to-VL table.
pub(super) fn modifier(port_index: PortIndex, input: u8, found: &DiscoveredSubnet) -> u32 {
    if found.node(port_index.node).kind.is_switch() {
        SlToVl::modifier(input, port_index.port)
    } else {
        0
    }
}

/// Returns the tables that were last written to a port.
pub(super) fn tables_of<'a>(
    port_index: PortIndex,
    context: &'a mut Context<'_>,
) -> &'a mut PortTables {
    let guid = context.found.node(port_index.node).info.node_guid;
    context.written.entry((guid, port_index.port)).or_default()
}
