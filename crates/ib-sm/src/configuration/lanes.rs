//! Service levels on lanes, and the lanes' turns. Nobody reads these tables: what a port was not told
//! since it came is written.

use ib_wire::mad::sm::{CapabilityMask, SlToVl, VlArbitration};

use super::{Context, Work, places, settings};
use crate::found::{Found, Place};
use crate::qos::PortQos;
use crate::tables::PortTables;

/// Returns the tables that differ from what the ports were told, when ports are told of lanes at all.
pub(super) fn work(context: &Context<'_>) -> Vec<Work> {
    let mut work = Vec::new();
    if context.config.qos.is_none() {
        return work;
    }
    let nothing = PortTables::default();
    for place in places(context.found) {
        let node = context.found.node(place.node);
        let known = context.written.get(&(node.info.node_guid, place.port)).unwrap_or(&nothing);
        if let Some(wanted) = sl_to_vl(place, context) {
            let inputs = if node.kind.is_switch() { 0..=node.info.num_ports } else { 0..=0 };
            let inputs = inputs.filter(|input| known.sl_to_vl.get(input) != Some(&wanted));
            work.extend(inputs.map(|input| Work::SlToVl { place, input }));
        }
        let blocks = arbitration(place, context).unwrap_or_default().into_iter();
        let blocks = blocks.filter(|(block, wanted)| known.arbitration.get(block) != Some(wanted));
        work.extend(blocks.map(|(block, _)| Work::Arbitration { place, block }));
    }
    work
}

/// Returns the lanes of what leaves by a port; `None` where nothing is written.
pub(super) fn sl_to_vl(place: Place, context: &Context<'_>) -> Option<SlToVl> {
    let (qos, found) = (port_qos(place, context)?, &*context.found);
    let node = found.node(place.node);
    let end_port = if node.kind.is_switch() { place.node.at(0) } else { place };
    let capable = found.port(end_port).info.as_ref()?.capability_mask;
    let lanes = settings::lanes(place, context)?;
    capable.contains(CapabilityMask::SL_MAPPING).then(|| qos.sl_to_vl(lanes))
}

/// Returns the lanes' turns at a port; `None` where nothing is written.
pub(super) fn arbitration(place: Place, context: &Context<'_>) -> Option<Vec<(u8, VlArbitration)>> {
    let qos = port_qos(place, context)?;
    let info = context.found.port(place).info.as_deref()?;
    let lanes = settings::lanes(place, context)?;
    // A single lane has all turns.
    let room = (info.vl_arbitration_low_cap, info.vl_arbitration_high_cap);
    (lanes.lanes() > Some(1)).then(|| qos.arbitration(lanes, room))
}

/// Returns the modifier that names a table of lanes.
pub(super) fn modifier(place: Place, input: u8, found: &Found) -> u32 {
    if found.node(place.node).kind.is_switch() { SlToVl::modifier(input, place.port) } else { 0 }
}

/// Returns what is known of a port's tables.
pub(super) fn tables_of<'a>(place: Place, context: &'a mut Context<'_>) -> &'a mut PortTables {
    let guid = context.found.node(place.node).info.node_guid;
    context.written.entry((guid, place.port)).or_default()
}

fn port_qos<'a>(place: Place, context: &Context<'a>) -> Option<&'a PortQos> {
    let qos = context.config.qos.as_ref()?;
    Some(qos.of(context.found.node(place.node).kind, place.port))
}
