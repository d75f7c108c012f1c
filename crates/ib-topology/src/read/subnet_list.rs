//! Reads OpenSM's `opensm-subnet.lst`.
//!
//! ```text
//! { SW Ports:24 SystemGUID:0000000000000900 NodeGUID:0000000000000900 PortGUID:0000000000000900
//!   VenID:0002C9 DevID:CF08 Rev:000000A0 {leaf} LID:0043 PN:01 } { CA-SM Ports:01 … } PHY=4x LOG=ACT SPD=25
//! ```
//!
//! A line of the list describes one direction of a link: first the sending end, then the receiving end. Port counts,
//! port numbers and LIDs are hexadecimal. At the receiving end, `DevID` has the 16-bit device ID in the upper half
//! of 32 bits, because OpenSM byte-swaps the device ID as a 32-bit number. Unlinked nodes are not listed.

use ib_types::{Guid, Lid, LinkSpeed, LinkWidth, Lmc, NodeKind};

use super::join::{LinkEnd, Net, Remote, name};
use super::narrow;
use super::rate::{UNNAMED_SPEED, UNNAMED_WIDTH, agreed};
use crate::fabric::{Fabric, LinkRate, NodeSpec, PortId};
use crate::text::{Fault, Line, Lines, Location};

/// Reads a subnet list.
pub(super) fn parse(text: &str) -> Result<Fabric, Fault> {
    let mut parser = Parser {
        net: Net::with_text_length(text.len() / 8),
        first_lines: Vec::new(),
        seen: Vec::new(),
    };
    for mut line in Lines::new(text, 0, 1) {
        line.skip_blanks();
        if line.peek().is_some() {
            parser.link(line)?;
        }
    }
    let targets = parser.net.resolve()?;
    parser.net.assume_guids()?;
    parser.net.join(&targets, agreed)
}

struct Parser<'a> {
    net: Net<'a, LinkRate>,
    /// For each node, the number of the first line that contains the node.
    first_lines: Vec<u32>,
    /// For each port, true if the LID of the port has been read.
    seen: Vec<bool>,
}

/// One end of a link, with the values between its braces.
struct Side<'a> {
    location: Location,
    kind: NodeKind,
    ports: u8,
    system: Guid,
    node: Guid,
    port: Guid,
    vendor: u32,
    device: u16,
    revision: u32,
    description: &'a str,
    lid: Option<Lid>,
    number: u8,
}

impl Side<'_> {
    /// Returns the system image GUID. If the field is zero, returns the node GUID.
    fn system(&self) -> Guid {
        if self.system.is_zero() { self.node } else { self.system }
    }
}

impl<'a> Parser<'a> {
    fn link(&mut self, mut line: Line<'a>) -> Result<(), Fault> {
        let sending = side(&mut line)?;
        line.skip_blanks();
        let receiving = side(&mut line)?;
        line.skip_blanks();
        let rate = rate(&mut line)?;
        let port = self.port(&sending)?;
        let peer = self.port(&receiving)?;
        self.net.declare(LinkEnd {
            location: sending.location,
            remote_column: receiving.location.column,
            port,
            remote: Remote::Port(peer),
            remote_port: receiving.number,
            guid: Guid::ZERO,
            remote_guid: Guid::ZERO,
            remote_lid: None,
            rate,
        })
    }

    /// Returns the port at one end of a link. Adds the port's node if no earlier line contains it. Otherwise, checks
    /// that the node's values are the same as in the earlier lines.
    fn port(&mut self, side: &Side<'a>) -> Result<PortId, Fault> {
        let expected = self.net.fabric.find_guid(side.node);
        let node = match expected {
            Some(node) => node,
            None => {
                let node = self.net.add_node(side.location, spec(side))?;
                self.first_lines.push(side.location.line);
                self.seen.resize(self.seen.len() + usize::from(side.ports) + 1, false);
                if side.kind.is_switch() && !side.port.is_zero() {
                    self.net.set_guid(side.location, node, 0, side.port)?;
                }
                node
            }
        };
        if expected.is_some() {
            self.compare(side, self.net.fabric.node(node), self.first_lines[node.index()])?;
        }
        let port = self.net.fabric.port_id(node, side.number).filter(|_| side.number > 0);
        let port = port.ok_or_else(|| {
            side.location.fault(format!(
                "found port {:02X}, expected 01 to {:02X} as the node has Ports:{:02X}",
                side.number, side.ports, side.ports
            ))
        })?;
        self.identify(side, port)?;
        Ok(port)
    }

    fn compare(&self, side: &Side<'a>, expected: &NodeSpec, line: u32) -> Result<(), Fault> {
        let is_same = side.kind == expected.kind
            && side.ports == expected.ports
            && side.system() == expected.system_guid
            && side.vendor == expected.vendor_id
            && side.device == expected.device_id
            && side.revision == expected.revision
            && side.description == expected.description;
        if is_same {
            return Ok(());
        }
        let found = spec(side);
        let differing = [
            ("node type", found.kind.to_string(), expected.kind.to_string()),
            ("Ports", format!("{:02X}", found.ports), format!("{:02X}", expected.ports)),
            ("SystemGUID", found.system_guid.to_string(), expected.system_guid.to_string()),
            ("VenID", format!("{:06X}", found.vendor_id), format!("{:06X}", expected.vendor_id)),
            ("DevID", format!("{:04X}", found.device_id), format!("{:04X}", expected.device_id)),
            ("Rev", format!("{:08X}", found.revision), format!("{:08X}", expected.revision)),
            (
                "description",
                format!("{{{}}}", found.description),
                format!("{{{}}}", expected.description),
            ),
        ];
        let differing = differing.iter().find(|(_, found, expected)| found != expected);
        let (name, found, expected) = differing.expect("every field that can differ is compared");
        Err(side.location.fault(format!(
            "found {name} {found} for node {}, expected {expected} as on line {line}",
            side.node
        )))
    }

    /// Sets the GUID and LID of a port. If earlier lines contain them, checks that the values are the same.
    fn identify(&mut self, side: &Side<'a>, port: PortId) -> Result<(), Fault> {
        let expected = *self.net.fabric.port(port);
        if expected.guid.is_zero() && !side.port.is_zero() {
            self.net.set_guid(side.location, expected.node, expected.number, side.port)?;
        } else if expected.guid != side.port && !side.port.is_zero() {
            let (node, number) = name(&self.net.fabric, port);
            return Err(side.location.fault(format!(
                "found PortGUID {} for port {number} of \"{node}\", expected {} as on a line above",
                side.port, expected.guid
            )));
        }
        let number = if side.kind.is_switch() { 0 } else { side.number };
        let owner = self.net.fabric.port_id(expected.node, number);
        let owner = owner.expect("every node has port 0 and the listed port");
        if !std::mem::replace(&mut self.seen[owner.index()], true) {
            return self.net.set_lid(side.location, expected.node, number, (side.lid, Lmc::ZERO));
        }
        let recorded = self.net.fabric.port(owner).lid;
        if recorded == side.lid {
            return Ok(());
        }
        let shown = |lid: Option<Lid>| lid.map_or(0, Lid::get);
        let (node, number) = name(&self.net.fabric, owner);
        Err(side.location.fault(format!(
            "found LID:{:04X} for port {number} of \"{node}\", expected {:04X} as on a line above",
            shown(side.lid),
            shown(recorded)
        )))
    }
}

fn spec(side: &Side<'_>) -> NodeSpec {
    let letter = match side.kind {
        NodeKind::Switch => 'S',
        NodeKind::ChannelAdapter => 'H',
        NodeKind::Router => 'R',
    };
    NodeSpec {
        kind: side.kind,
        name: format!("{letter}-{:016x}", side.node),
        guid: side.node,
        system_guid: side.system(),
        description: side.description.to_owned(),
        ports: side.ports,
        vendor_id: side.vendor,
        device_id: side.device,
        revision: side.revision,
        enhanced_port0: false,
    }
}

/// Reads one end of a link: `{ SW Ports:24 SystemGUID:… NodeGUID:… PortGUID:… VenID:… DevID:… Rev:… {…} LID:… PN:… }`.
fn side<'a>(line: &mut Line<'a>) -> Result<Side<'a>, Fault> {
    let location = line.location();
    line.demand("{ ")?;
    let start = *line;
    let kind = match line.letters() {
        "SW" => NodeKind::Switch,
        "CA" => NodeKind::ChannelAdapter,
        "Rt" => NodeKind::Router,
        _ => return Err(start.expected("a node type: one of `SW`, `CA`, `Rt`")),
    };
    // OpenSM appends this suffix to the node type of the port on which it runs.
    line.eat("-SM");
    let ports = field(line, " Ports:", "a number of ports, 01 to FE", 254)?;
    if ports == 0 {
        return Err(location.fault("found Ports:00, expected 01 to FE"));
    }
    let guid = "a GUID of up to 16 hexadecimal digits";
    let system = Guid(field(line, " SystemGUID:", guid, u64::MAX)?);
    let node = Guid(field(line, " NodeGUID:", guid, u64::MAX)?);
    let port = Guid(field(line, " PortGUID:", guid, u64::MAX)?);
    let vendor = field(line, " VenID:", "a vendor ID of 24 bits", 0xff_ffff)?;
    line.demand(" DevID:")?;
    let device_line = *line;
    let device =
        line.hexadecimal("a device ID of 16 bits, in either half of 32", u64::from(u32::MAX))?;
    let swapped = device >> 16;
    if swapped != 0 && device & 0xffff != 0 {
        return Err(device_line.expected("a device ID of 16 bits, in either half of 32"));
    }
    let device = if swapped == 0 { device } else { swapped };
    let revision = field(line, " Rev:", "a revision of 32 bits", u64::from(u32::MAX))?;
    line.demand(" {")?;
    let description = description(line)?;
    let lid = field(line, DESCRIPTION_END, "a LID, 0000 to BFFF", u64::from(Lid::MAX_UNICAST))?;
    let number = field(line, " PN:", "a port number, 01 to FE", 254)?;
    line.demand(" }")?;
    Ok(Side {
        location,
        kind,
        ports: narrow(ports),
        system,
        node,
        port,
        vendor: narrow(vendor),
        device: narrow(device),
        revision: narrow(revision),
        description,
        lid: u32::try_from(lid).ok().and_then(|lid| Lid::unicast(lid).ok()),
        number: narrow(number),
    })
}

fn field(line: &mut Line<'_>, label: &str, expected: &str, max: u64) -> Result<u64, Fault> {
    line.demand(label)?;
    line.hexadecimal(expected, max)
}

/// Reads a description, which ends at the brace before `LID:`. The description can contain braces.
fn description<'a>(line: &mut Line<'a>) -> Result<&'a str, Fault> {
    let rest = line.rest();
    let Some(end) = rest.find(DESCRIPTION_END) else {
        line.seek(line.text().len());
        return Err(line.expected("`} LID:` after the description"));
    };
    line.seek(line.position() + end);
    Ok(&rest[..end])
}

/// The text at which a description ends.
pub(crate) const DESCRIPTION_END: &str = "} LID:";

/// Reads `PHY=4x LOG=ACT SPD=25`, which ends the line.
fn rate(line: &mut Line<'_>) -> Result<LinkRate, Fault> {
    line.demand("PHY=")?;
    let width = match word(line) {
        (_, "1x") => LinkWidth::X1,
        (_, "2x") => LinkWidth::X2,
        (_, "4x") => LinkWidth::X4,
        (_, "8x") => LinkWidth::X8,
        (_, "12x") => LinkWidth::X12,
        (_, "??") => UNNAMED_WIDTH,
        (start, _) => return Err(start.expected("a width: one of 1x, 2x, 4x, 8x, 12x, ??")),
    };
    line.demand("LOG=")?;
    if let (start, state) = word(line)
        && !matches!(state, "ACT" | "ARM" | "INI" | "DWN")
    {
        return Err(start.expected("a port state: one of ACT, ARM, INI, DWN"));
    }
    line.demand("SPD=")?;
    let speed = match word(line) {
        (_, "2.5") => LinkSpeed::Sdr,
        (_, "5") => LinkSpeed::Ddr,
        (_, "10") => LinkSpeed::Qdr,
        (_, "FDR10") => LinkSpeed::Fdr10,
        (_, "14") => LinkSpeed::Fdr,
        (_, "25") => LinkSpeed::Edr,
        (_, "50") => LinkSpeed::Hdr,
        (_, "100") => LinkSpeed::Ndr,
        (_, "200") => LinkSpeed::Xdr,
        (_, "??") => UNNAMED_SPEED,
        (start, _) => {
            return Err(
                start.expected("a speed: one of 2.5, 5, 10, FDR10, 14, 25, 50, 100, 200, ??")
            );
        }
    };
    if line.peek().is_some() {
        return Err(line.expected("the end of the line"));
    }
    Ok(LinkRate { width, speed })
}

/// Reads a word up to the next blank, and skips the blanks after it. Returns the line at the start of the word, and the
/// word.
fn word<'a>(line: &mut Line<'a>) -> (Line<'a>, &'a str) {
    let start = *line;
    let rest = line.rest();
    let end = rest.find([' ', '\t']).unwrap_or(rest.len());
    line.seek(line.position() + end);
    line.skip_blanks();
    (start, &rest[..end])
}

#[cfg(test)]
mod tests;
