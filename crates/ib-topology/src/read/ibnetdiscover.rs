//! Reads the output of `ibnetdiscover`.
//!
//! ```text
//! vendid=0x2c9
//! devid=0xc738
//! sysimgguid=0x1000
//! switchguid=0x1000(1000)
//! Switch  36 "S-0000000000001000"   # "leaf" enhanced port 0 lid 1 lmc 0
//! [1]     "H-0000000000002000"[1](2001)   # "host" lid 2 4xQDR
//!
//! vendid=0x2c9
//! devid=0x1013
//! sysimgguid=0x2000
//! caguid=0x2000
//! Ca      1 "H-0000000000002000"    # "host"
//! [1](2001)   "S-0000000000001000"[1]     # lid 2 lmc 0 "leaf" lid 1 4xQDR
//! ```
//!
//! Widths and speeds are active values, so they must be equal at both ends of a link. The reader skips the additional
//! text that is printed with `-f` (numeric speeds and widths), `-g` (chassis) and `-s` (progress). With `-p`,
//! ibnetdiscover prints another format; see [`port_list`].

use std::borrow::Cow;

use ib_types::{Guid, Lid, Lmc, NodeKind};

use super::join::{LinkEnd, Net, Remote, name};
use super::{is_message, narrow, port_list, rate};
use crate::fabric::{Fabric, LinkRate, NodeId, NodeSpec, PortId};
use crate::text::{Fault, Line, Lines, Location};

/// Reads the output of `ibnetdiscover`.
pub(super) fn parse(text: &str) -> Result<Fabric, Fault> {
    let mut lines = text.lines().map(str::trim_start).filter(|line| !line.is_empty());
    if lines
        .find(|line| !line.starts_with(port_list::PROGRESS) && !is_message(line))
        .is_some_and(port_list::is_port_line)
    {
        return port_list::parse(text);
    }
    let mut parser =
        Parser { net: Net::with_text_length(text.len()), ids: Ids::default(), node: None };
    for line in Lines::new(text, 0, 1) {
        parser.line(line)?;
    }
    parser.finish()
}

/// The values of the identifier lines that precede a node.
#[derive(Default)]
struct Ids {
    /// The location of the first identifier line.
    location: Option<Location>,
    vendor: u32,
    device: u16,
    system: Guid,
    guid: Option<NodeGuid>,
}

#[derive(Clone, Copy)]
struct NodeGuid {
    location: Location,
    kind: NodeKind,
    guid: Guid,
    port_guid: Option<Guid>,
}

struct Parser<'a> {
    net: Net<'a, LinkRate>,
    ids: Ids,
    /// The node whose port lines are being read.
    node: Option<NodeId>,
}

impl<'a> Parser<'a> {
    fn line(&mut self, mut line: Line<'a>) -> Result<(), Fault> {
        match line.peek() {
            Some(b'[') => return self.port(line),
            Some(b'#') => return Ok(()),
            Some(b'D') if line.rest().starts_with(port_list::PROGRESS) => return Ok(()),
            Some(_) if is_message(line.rest()) => return Ok(()),
            None | Some(b' ' | b'\t') => {
                line.skip_blanks();
                self.node = None;
                return line.end("a line that starts in column 1");
            }
            Some(_) => {}
        }
        let start = line;
        let location = line.location();
        self.node = None;
        match line.letters() {
            "Switch" => return self.node(start, line, NodeKind::Switch),
            "Ca" | "Hca" => return self.node(start, line, NodeKind::ChannelAdapter),
            "Rt" => return self.node(start, line, NodeKind::Router),
            // `-g` prints headings of chassis.
            "Chassis" | "Hostname" => return Ok(()),
            "Non" if line.eat("-Chassis Nodes") => return line.end("the end of the line"),
            "vendid" => {
                line.demand("=")?;
                let value = line.number("a vendor ID of 24 bits", 0, 0xff_ffff)?;
                self.ids.vendor = narrow(value);
            }
            "devid" => {
                line.demand("=")?;
                let value = line.number("a device ID of 16 bits", 0, 0xffff)?;
                self.ids.device = narrow(value);
            }
            "sysimgguid" => {
                line.demand("=")?;
                self.ids.system = Guid(line.number("a GUID of 64 bits", 0, u64::MAX)?);
            }
            "switchguid" => self.guid(&mut line, NodeKind::Switch)?,
            "caguid" | "hcaguids" => self.guid(&mut line, NodeKind::ChannelAdapter)?,
            "rtguid" => self.guid(&mut line, NodeKind::Router)?,
            _ => {
                return Err(start.expected(
                    "`Switch`, `Ca`, `Rt`, a port like `[1]`, one of `vendid=`, `devid=`, `sysimgguid=`, \
                     `switchguid=`, `caguid=`, `rtguid=`, or a comment",
                ));
            }
        }
        self.ids.location.get_or_insert(location);
        line.end("the end of the line")
    }

    fn guid(&mut self, line: &mut Line<'a>, kind: NodeKind) -> Result<(), Fault> {
        line.demand("=")?;
        let location = line.location();
        let guid = Guid(line.number("a GUID of 64 bits", 0, u64::MAX)?);
        let port_guid = line.guid_in_parentheses()?;
        self.ids.guid = Some(NodeGuid { location, kind, guid, port_guid });
        Ok(())
    }

    /// Reads `Switch N "id" # "description" base port 0 lid L lmc M`.
    fn node(&mut self, start: Line<'a>, mut line: Line<'a>, kind: NodeKind) -> Result<(), Fault> {
        line.skip_blanks();
        let ports = line.decimal("a number of ports", 1, 254)?;
        line.skip_blanks();
        let name_location = line.location();
        let id = line.quoted("a node's name")?;
        line.skip_blanks();
        line.demand("#")?;
        line.skip_blanks();
        let description = line.description("a node's description")?;
        line.skip_blanks();
        let mut spec = NodeSpec::new(kind, id, Guid::ZERO, narrow(ports));
        let mut lid = (None, Lmc::ZERO);
        if kind.is_switch() {
            spec.enhanced_port0 = line.eat_word("enhanced");
            if !spec.enhanced_port0 && !line.eat_word("base") {
                return Err(line.expected("`enhanced port 0` or `base port 0`"));
            }
            line.demand("port 0")?;
            lid = lid_and_lmc(&mut line)?;
        } else if line.eat("(scp)") {
            // `-g` prints `(scp)` for HCAs of one vendor.
        }
        line.end("the end of the line")?;

        let ids = std::mem::take(&mut self.ids);
        let Some(guid) = ids.guid.filter(|guid| guid.kind == kind) else {
            let keyword = match kind {
                NodeKind::Switch => "switchguid",
                NodeKind::ChannelAdapter => "caguid",
                NodeKind::Router => "rtguid",
            };
            return Err(start.location().fault(match ids.guid {
                None => format!("found node \"{id}\" without a GUID, expected a line `{keyword}=` before it"),
                Some(other) => format!(
                    "found node \"{id}\" after the GUID of a {} (line {}), expected a line `{keyword}=` before it",
                    other.kind, other.location.line
                ),
            }));
        };
        description.clone_into(&mut spec.description);
        spec.guid = guid.guid;
        spec.system_guid = if ids.system.is_zero() { guid.guid } else { ids.system };
        spec.vendor_id = ids.vendor;
        spec.device_id = ids.device;
        let location =
            if self.net.fabric.find_name(id).is_some() { name_location } else { guid.location };
        let node = self.net.add_node(location, spec)?;
        if let Some(port_guid) = guid.port_guid.filter(|_| kind.is_switch()) {
            self.net.set_guid(guid.location, node, 0, port_guid)?;
        }
        self.net.set_lid(line.location(), node, 0, lid)?;
        self.node = Some(node);
        Ok(())
    }

    /// Reads a port line. Its form is `[n] "id"[m](guid) # "description" lid L 4xQDR` on a switch, and
    /// `[n](guid) "id"[m] # lid L lmc M "description" lid L 4xQDR` on channel adapters and routers.
    fn port(&mut self, mut line: Line<'a>) -> Result<(), Fault> {
        let location = line.location();
        let Some(node) = self.node else {
            return Err(line.expected("a node before its ports"));
        };
        let spec = self.net.fabric.node(node);
        let (is_switch, ports) = (spec.kind.is_switch(), spec.ports);
        line.demand("[")?;
        let number = line.decimal("a port of this node", 1, u64::from(ports))?;
        let number: u8 = narrow(number);
        line.demand("]")?;
        external_port(&mut line)?;
        let guid = line.guid_in_parentheses()?;
        line.skip_blanks();
        let remote_column = line.location().column;
        let remote = line.quoted("the name of the node at the other end")?;
        line.demand("[")?;
        let remote_port = line.decimal("a port number", 1, 254)?;
        line.demand("]")?;
        external_port(&mut line)?;
        line.skip_blanks();
        let remote_guid = line.guid_in_parentheses()?;
        line.skip_blanks();
        line.demand("#")?;
        line.skip_blanks();
        let lid_location = line.location();
        let lid = if is_switch { (None, Lmc::ZERO) } else { lid_and_lmc(&mut line)? };
        line.description("the description of the node at the other end")?;
        line.skip_blanks();
        line.demand("lid ")?;
        let remote_lid = line.lid()?;
        line.skip_blanks();
        let rate = rate::rate(&mut line)?;
        trailer(&mut line)?;

        if !is_switch {
            self.net.set_lid(lid_location, node, number, lid)?;
        }
        let port = self.net.fabric.port_id(node, number);
        self.net.declare(LinkEnd {
            location,
            remote_column,
            port: port.expect("the number was checked against the node's ports"),
            remote: Remote::Node(Cow::Borrowed(remote)),
            remote_port: narrow(remote_port),
            guid: guid.unwrap_or_default(),
            remote_guid: remote_guid.unwrap_or_default(),
            remote_lid: Some(remote_lid),
            rate,
        })
    }

    fn finish(mut self) -> Result<Fabric, Fault> {
        if let Some(location) = self.ids.location {
            return Err(location.fault(
                "found identifier lines at the end of the file, expected the node that they describe",
            ));
        }
        let targets = self.net.resolve()?;
        self.set_guids(&targets)?;
        self.check_lids(&targets)?;
        self.net.join(&targets, rate::agreed)
    }

    /// Sets the GUID of each port from its own line or the line of its peer. Fails if these lines have different GUIDs.
    /// If neither has one, a port of a channel adapter or router gets the node GUID plus the port number.
    fn set_guids(&mut self, targets: &[Option<PortId>]) -> Result<(), Fault> {
        for index in 0..self.net.ends.len() {
            let end = &self.net.ends[index];
            if !end.guid.is_zero() {
                self.set_guid(end.location, end.port, end.guid)?;
            }
        }
        for (index, target) in targets.iter().enumerate() {
            let end = &self.net.ends[index];
            if let Some(target) = target.filter(|_| !end.remote_guid.is_zero()) {
                self.set_guid(end.remote_location(), target, end.remote_guid)?;
            }
        }
        self.net.assume_guids()
    }

    fn set_guid(&mut self, location: Location, port: PortId, guid: Guid) -> Result<(), Fault> {
        let has = self.net.fabric.port(port).guid;
        if has.is_zero() {
            let port = self.net.fabric.port(port);
            return self.net.set_guid(location, port.node, port.number, guid);
        }
        if has == guid {
            return Ok(());
        }
        let (node, number) = name(&self.net.fabric, port);
        Err(location.fault(format!(
            "found port GUID {guid} for \"{node}\" port {number}, expected {has} as in the record of that port"
        )))
    }

    fn check_lids(&self, targets: &[Option<PortId>]) -> Result<(), Fault> {
        let fabric = &self.net.fabric;
        for (end, target) in self.net.ends.iter().zip(targets) {
            let (Some(declared), Some(target)) = (end.remote_lid, *target) else { continue };
            let port = fabric.port(target);
            let lid = if fabric.node(port.node).kind.is_switch() {
                fabric.ports_of(port.node).next().and_then(|(_, port0)| port0.lid)
            } else {
                port.lid
            };
            if lid != declared {
                let (node, number) = name(fabric, target);
                let shown = |lid: Option<Lid>| lid.map_or(0, Lid::get);
                return Err(end.remote_location().fault(format!(
                    "found LID {} for \"{node}\" port {number}, expected {} as in the record of that port",
                    shown(declared),
                    shown(lid)
                )));
            }
        }
        Ok(())
    }
}

/// Reads `lid L lmc M`, and the blanks before and after it.
fn lid_and_lmc(line: &mut Line<'_>) -> Result<(Option<Lid>, Lmc), Fault> {
    line.skip_blanks();
    line.demand("lid ")?;
    let lid = line.lid()?;
    line.skip_blanks();
    line.demand("lmc ")?;
    let lmc = line.lmc()?;
    line.skip_blanks();
    Ok((lid, lmc))
}

/// Skips `[ext N]`, which `-g` prints after a port number.
fn external_port(line: &mut Line<'_>) -> Result<(), Fault> {
    if line.eat("[ext ") {
        line.decimal("an external port number", 0, 255)?;
        line.demand("]")?;
    }
    Ok(())
}

/// Skips the text that `-f` and `-g` print after the rate, such as `s=4 w=2 v=8`, ` slot 3` and ` (scp)`.
fn trailer(line: &mut Line<'_>) -> Result<(), Fault> {
    loop {
        line.skip_blanks();
        if line.peek().is_none() {
            return Ok(());
        }
        let start = *line;
        if line.eat("(scp)") {
            continue;
        }
        if line.eat("s=") || line.eat("w=") || line.eat("v=") || line.eat("m=") || line.eat("slot ")
        {
            line.decimal("a number", 0, u64::from(u32::MAX))?;
            continue;
        }
        return Err(start.expected("the end of the line"));
    }
}

#[cfg(test)]
mod tests;
