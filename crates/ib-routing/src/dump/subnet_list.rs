//! `opensm-subnet.lst`: one line per direction of every link.

use std::io::{self, Write};

use ib_topology::{LinkRate, Port};
use ib_types::{LinkSpeed, NodeKind};

use crate::subnet::Subnet;

/// Writes the file: the links of all nodes in the order of byte-swapped node GUIDs, then by port.
///
/// Speeds above EDR, which OpenSM 3.3.23 cannot name, are written as the number of Gbit/s per lane
/// like the others.
///
/// # Errors
/// Fails if the output fails.
pub fn write(out: &mut dyn Write, subnet: &Subnet<'_>) -> io::Result<()> {
    let fabric = subnet.fabric();
    let mut nodes: Vec<_> = fabric.nodes().collect();
    nodes.retain(|(id, _)| !subnet.cut_off().contains(id));
    nodes.sort_by_key(|(_, node)| node.guid.wire_order());
    for (id, node) in nodes {
        for (_, port) in fabric.ports_of(id) {
            // A channel adapter port that leads into another subnet was not discovered.
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
    // The vendor ID of the far end has two more digits, and its device ID is in the upper half of
    // 32 bits, as OpenSM writes them.
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

fn speed_text(speed: LinkSpeed) -> &'static str {
    match speed {
        LinkSpeed::Sdr => "2.5",
        LinkSpeed::Ddr => "5",
        LinkSpeed::Qdr => "10",
        LinkSpeed::Fdr10 => "FDR10",
        LinkSpeed::Fdr => "14",
        LinkSpeed::Edr => "25",
        LinkSpeed::Hdr => "50",
        LinkSpeed::Ndr => "100",
        LinkSpeed::Xdr => "200",
    }
}
