//! Writes a fabric in the format of OpenSM's `opensm-subnet.lst`.

use std::fmt::Write as _;
use std::io;

use ib_types::{Lid, LinkSpeed, NodeKind};

use super::{WriteError, check_numbers, check_text, lid_of, unrepresentable};
use crate::fabric::{Fabric, Port};
use crate::read::subnet_list_limits::DESCRIPTION_END;

/// Writes two lines for each link, one per direction. The lines are in the order of the sending nodes in
/// the fabric.
pub(super) fn write(fabric: &Fabric, output: &mut impl io::Write) -> Result<(), WriteError> {
    let mut text = String::new();
    for (id, node) in fabric.nodes() {
        check_text(node)?;
        check_numbers(fabric, id, node)?;
        if node.description.contains(DESCRIPTION_END) {
            let found = format!("the description `{}`", node.description);
            return Err(unrepresentable(node, found, "one without `} LID:`"));
        }
        text.clear();
        for (_, port) in fabric.ports_of(id) {
            let Some(peer) = port.peer.map(|peer| fabric.port(peer)) else { continue };
            side(fabric, port, Side::Sending, &mut text);
            text.push(' ');
            side(fabric, peer, Side::Receiving, &mut text);
            let speed = speed_text(port.rate.speed);
            let _ = writeln!(text, " PHY={} LOG=ACT SPD={speed}", port.rate.width);
        }
        output.write_all(text.as_bytes())?;
    }
    Ok(())
}

/// Returns OpenSM's text for a link speed in Gbit/s.
#[must_use]
pub const fn speed_text(speed: LinkSpeed) -> &'static str {
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

/// An end of a link. OpenSM prints the vendor ID and the device ID of the two ends in different formats.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Sending,
    Receiving,
}

fn side(fabric: &Fabric, port: &Port, which: Side, text: &mut String) {
    let node = fabric.node(port.node);
    let kind = match node.kind {
        NodeKind::Switch => "SW",
        NodeKind::ChannelAdapter => "CA",
        NodeKind::Router => "Rt",
    };
    let _ = write!(
        text,
        "{{ {kind} Ports:{:02X} SystemGUID:{:016x} NodeGUID:{:016x} PortGUID:{:016x} ",
        node.ports, node.system_guid, node.guid, port.guid
    );
    let device = u32::from(node.device_id);
    let _ = match which {
        Side::Sending => write!(text, "VenID:{:06X} DevID:{device:04X}", node.vendor_id),
        Side::Receiving => write!(text, "VenID:{:08X} DevID:{:04X}", node.vendor_id, device << 16),
    };
    let lid = lid_of(fabric, port).map_or(0, Lid::get);
    let _ = write!(
        text,
        " Rev:{:08X} {{{}}} LID:{lid:04X} PN:{:02X} }}",
        node.revision, node.description, port.number
    );
}
