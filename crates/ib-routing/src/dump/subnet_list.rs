//! `opensm-subnet.lst`: two lines for every link, one per direction.

use std::io::{self, Write};

use ib_topology::write::speed_text;
use ib_topology::{LinkRate, Port};
use ib_types::NodeKind;

use crate::subnet::Subnet;

/// Writes `opensm-subnet.lst`. The lines are in the order of the byte-swapped GUIDs of the sending nodes, and then of
/// the sending ports.
///
/// OpenSM 3.3.23 has no names for speeds above EDR. They are written as Gbit/s per lane, like the other speeds.
///
/// # Errors
/// Fails if writing to the output fails.
pub fn write(out: &mut dyn Write, subnet: &Subnet<'_>) -> io::Result<()> {
    let fabric = subnet.fabric();
    let mut nodes: Vec<_> = fabric.nodes().collect();
    nodes.retain(|(id, _)| !subnet.cut_off().contains(id));
    nodes.sort_by_key(|(_, node)| node.guid.wire_order());
    for (id, node) in nodes {
        for (_, port) in fabric.ports_of(id) {
            // Channel adapter ports that lead into another subnet are skipped, because the SM did not discover them.
            let seen = node.kind.is_switch() || subnet.find_end_port(port.guid).is_some();
            let Some(peer) = port.peer.filter(|_| seen).map(|peer| fabric.port(peer)) else {
                continue;
            };
            end(out, subnet, port, false)?;
            end(out, subnet, peer, true)?;
            let LinkRate { width, speed } = port.rate;
            writeln!(out, "PHY={width} LOG=ACT SPD={}", speed_text(speed))?;
        }
    }
    Ok(())
}

fn end(out: &mut dyn Write, subnet: &Subnet<'_>, port: &Port, far: bool) -> io::Result<()> {
    let node = subnet.fabric().node(port.node);
    let lid = base_lid(subnet, port);
    let kind = match node.kind {
        NodeKind::Switch => "SW",
        NodeKind::ChannelAdapter => "CA",
        NodeKind::Router => "Rt",
    };
    let is_sm = lid == subnet.end_port(subnet.sm_port()).base_lid.get();
    write!(
        out,
        "{{ {kind}{} Ports:{:02X} SystemGUID:{:016x} NodeGUID:{:016x} PortGUID:{:016x} ",
        if is_sm { "-SM" } else { "" },
        node.ports,
        node.system_guid,
        node.guid,
        port.guid,
    )?;
    // As in OpenSM, the vendor ID of the receiving node has eight digits instead of six, and its device ID is in the
    // upper half of 32 bits.
    if far {
        let device = u32::from(node.device_id) << 16;
        write!(out, "VenID:{:08X} DevID:{device:04X} ", node.vendor_id)?;
    } else {
        write!(out, "VenID:{:06X} DevID:{:04X} ", node.vendor_id, node.device_id)?;
    }
    write!(
        out,
        "Rev:{:08X} {{{}}} LID:{lid:04X} PN:{:02X} }} ",
        node.revision, node.description, port.number
    )
}

fn base_lid(subnet: &Subnet<'_>, port: &Port) -> u16 {
    let own = match subnet.switch_of(port.node) {
        Some(switch) => Some(subnet.switch(switch).end_port),
        None => subnet.find_end_port(port.guid),
    };
    own.map_or(0, |id| subnet.end_port(id).base_lid.get())
}
