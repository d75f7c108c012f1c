//! Reads net files of `ibsim`.
//!
//! ```text
//! # a rack of one switch and one server
//! switchguid=0x5001
//! Switch 40 "rack"                 # "rack 7 top" enhanced port 0 lid 3
//! [12] "server"[1] w=2 s=7         # to be 4x at up to QDR
//!
//! caguid=0x6001
//! Ca 2 "server"                    # "server 7-12"
//! [1] "rack"[12]                   # lid 9 lmc 1
//! ```
//!
//! The reader follows ibsim: it assigns GUIDs to nodes without a GUID line, and supports masks of enabled widths and
//! speeds, options in comments, aliases and modules. After a node with fewer port lines than ports, ibsim skips one
//! line, so the reader requires this line to be empty. The reader fails on a line that ibsim would ignore or truncate,
//! if this would change the fabric. It has two extensions: comments can contain XDR, and rates in comments also apply
//! to routers.

use std::borrow::Cow;
use std::collections::BTreeMap;

use ib_types::{Guid, Lmc, NodeKind};

use super::join::Net;
use super::rate::Enabled;
use super::{ParseError, Resolver, narrow, not_empty};
use crate::fabric::{Fabric, NodeId, NodeSpec, PortId};
use crate::text::{Fault, Line, Lines, Location};

mod header;
mod include;
mod numbering;
mod port;

pub(crate) use header::UNQUOTED_ENDS;

use numbering::Numbering;

/// Maximum length of a line in bytes. ibsim truncates longer lines.
pub(crate) const MAX_LINE: usize = 254;
/// Maximum length of a node name in bytes, including the module. In links, ibsim truncates longer names.
pub(crate) const MAX_NAME: usize = 64;
/// Maximum length of a description in bytes. ibsim truncates longer descriptions.
pub(crate) const MAX_DESCRIPTION: usize = 63;
/// Maximum length of an alias in bytes, including the module and `@`. ibsim truncates longer aliases.
const MAX_ALIAS: usize = 39;
/// Maximum length of a module name in bytes.
pub(crate) const MAX_MODULE: usize = 20;

/// Reads a net file and the files that it includes.
pub(super) fn parse(
    file_name: &str,
    text: &str,
    resolver: &mut Resolver<'_>,
) -> Result<Fabric, ParseError> {
    let files = include::load(file_name, text, resolver)?;
    let fabric = fabric(&files).map_err(|fault| {
        let file = files.name(fault.location.source).to_owned();
        fault.at(&file)
    })?;
    not_empty(file_name, fabric)
}

fn fabric(files: &include::Files<'_>) -> Result<Fabric, Fault> {
    let mut parser = Parser::new(files.length());
    for chunk in files.chunks() {
        for line in Lines::new(chunk.text, chunk.source, chunk.first_line) {
            parser.line(line)?;
        }
        if let Some(include) = chunk.include {
            parser.close_record(&include)?;
        }
        parser.record = None;
    }
    parser.finish()
}

/// The node whose port lines are being read.
struct Record {
    node: NodeId,
    kind: NodeKind,
    ports: u8,
    /// Number of port lines of the node that ibsim still expects.
    lines_left: u8,
    /// The widths and speeds that a port enables if its line has no options.
    enabled: Enabled,
}

struct Parser<'a> {
    net: Net<'a, Enabled>,
    record: Option<Record>,
    /// The port of each alias; the keys have the form `module@alias`.
    aliases: BTreeMap<String, PortId>,
    module: &'a str,
    vendor: u32,
    device: u16,
    system: Guid,
    adapters: Numbering,
    switches: Numbering,
    routers: Numbering,
    enabled: Enabled,
    /// Location of the first identifier line since the last node; `None` if there is none.
    pending: Option<Location>,
}

impl<'a> Parser<'a> {
    fn new(bytes: usize) -> Self {
        Self {
            net: Net::with_text_length(bytes),
            record: None,
            aliases: BTreeMap::new(),
            module: "",
            vendor: 0,
            device: 0,
            system: Guid::ZERO,
            adapters: Numbering::from(0x10_0000),
            switches: Numbering::from(0x20_0000),
            routers: Numbering::from(0),
            enabled: Enabled::DEFAULT,
            pending: None,
        }
    }

    fn line(&mut self, line: Line<'a>) -> Result<(), Fault> {
        if line.text().len() > MAX_LINE {
            return Err(too_long(line));
        }
        match line.peek() {
            Some(b'#') => return Ok(()),
            Some(b'[' | b'@') => return self.port(line),
            _ => {}
        }
        let mut content = line;
        content.skip_blanks();
        if matches!(content.peek(), None | Some(b'#')) {
            self.record = None;
            return Ok(());
        }
        self.close_record(&line)?;
        if content.position() > 0 {
            return Err(content.expected("a line that starts in column 1"));
        }
        self.directive(line)
    }

    /// Ends the node whose port lines are being read.
    ///
    /// `line` is not empty, and follows the port lines without an empty line between. Fails if the node has fewer port
    /// lines than ports, because ibsim would skip `line`.
    fn close_record(&mut self, line: &Line<'a>) -> Result<(), Fault> {
        let Some(record) = self.record.take().filter(|record| record.lines_left > 0) else {
            return Ok(());
        };
        let name = &self.net.fabric.node(record.node).name;
        Err(line.expected(&format!(
            "an empty line after the ports of \"{name}\": ibsim skips the line that ends them"
        )))
    }

    fn directive(&mut self, start: Line<'a>) -> Result<(), Fault> {
        let mut line = start;
        let keyword = line.letters();
        let starts = |prefix: &str| keyword.starts_with(prefix);
        match keyword {
            _ if starts("Switch") => self.node(start, line, NodeKind::Switch),
            _ if starts("Hca") || starts("Ca") => self.node(start, line, NodeKind::ChannelAdapter),
            _ if starts("Rt") => self.node(start, line, NodeKind::Router),
            _ if starts("switchguid") => self.guid(line, NodeKind::Switch),
            _ if starts("hcaguids") || starts("caguid") => {
                self.guid(line, NodeKind::ChannelAdapter)
            }
            _ if starts("rtguid") => self.guid(line, NodeKind::Router),
            _ if starts("vendid") => {
                let value = assigned(&mut line, "a vendor ID of 24 bits", 0, 0xff_ffff)?;
                self.vendor = narrow(value);
                self.identify(line)
            }
            _ if starts("devid") => {
                let value = assigned(&mut line, "a device ID of 16 bits", 0, 0xffff)?;
                self.device = narrow(value);
                self.identify(line)
            }
            _ if starts("sysimgguid") => {
                self.system = Guid(assigned(&mut line, "a GUID of 64 bits", 0, u64::MAX)?);
                self.identify(line)
            }
            _ if starts("width") => {
                self.enabled.width = mask(&mut line, "a mask of widths", 1, 31)?;
                line.end("the end of the line")
            }
            _ if starts("speed") => {
                self.enabled.speed = mask(&mut line, "a mask of speeds", 1, 7)?;
                line.end("the end of the line")
            }
            _ if starts("extspeed") => {
                self.enabled.extended = mask(&mut line, "a mask of extended speeds", 0, 15)?;
                line.end("the end of the line")
            }
            _ if starts("module") => self.module(line),
            _ if starts("pdebug") => {
                assigned(&mut line, "a debug level", 0, u64::from(u32::MAX))?;
                line.end("the end of the line")
            }
            "do" => Err(start.expected(
                "no `do` line: ibsim commands in net files are not supported",
            )),
            _ => Err(start.expected(
                "`Switch`, `Hca`, `Ca`, `Rt`, a port like `[1]`, one of `switchguid=`, `caguid=`, `hcaguids=`, \
                 `rtguid=`, `vendid=`, `devid=`, `sysimgguid=`, `width=`, `speed=`, `extspeed=`, `module=`, \
                 `include`, or a comment",
            )),
        }
    }

    /// Checks that an identifier line has no further text, and records that a node must follow.
    fn identify(&mut self, mut line: Line<'a>) -> Result<(), Fault> {
        let mut start = line;
        start.seek(0);
        self.pending.get_or_insert(start.location());
        line.end("the end of the line")
    }

    /// Reads `module="prefix"`.
    fn module(&mut self, mut line: Line<'a>) -> Result<(), Fault> {
        line.skip_blanks();
        line.demand("=")?;
        line.skip_blanks();
        let start = line;
        if line.eat("\"\"") {
            self.module = "";
            return line.end("the end of the line");
        }
        let name = line.quoted("a module's name")?;
        check_name(start, name)?;
        if name.len() > MAX_MODULE {
            return Err(start.expected(&format!("a module's name of up to {MAX_MODULE} bytes")));
        }
        self.module = name;
        line.end("the end of the line")
    }

    /// Reads the header of a node, `Switch N "id" # "description" base port 0 lid L lmc M`.
    fn node(&mut self, start: Line<'a>, mut line: Line<'a>, kind: NodeKind) -> Result<(), Fault> {
        if !matches!(line.peek(), Some(b' ' | b'\t')) {
            return Err(line.expected("a blank and a number of ports"));
        }
        line.skip_blanks();
        let ports = line.number("a number of ports", 1, 254)?;
        let ports: u8 = narrow(ports);
        line.skip_blanks();
        let name_line = line;
        let id = line.quoted("a node's name")?;
        check_name(name_line, id)?;
        let name = qualified(self.module, id);
        if name.len() > MAX_NAME {
            return Err(name_line.expected(&format!(
                "a name of up to {MAX_NAME} bytes, including the module: ibsim truncates longer ones"
            )));
        }
        let header = header::comment(&mut line, kind)?;

        let enabled = self.enabled;
        let step = if kind.is_switch() { 1 } else { u64::from(ports) + 1 };
        let numbering = self.numbering(kind);
        let guid = Guid(numbering.next);
        let guid_location = numbering.location.take().unwrap_or(start.location());
        numbering.next = numbering.next.wrapping_add(step);
        if guid.is_zero() {
            let keyword = header::guid_keyword(kind);
            return Err(guid_location.fault(format!(
                "found node \"{name}\" with GUID zero, expected a GUID from a line `{keyword}=`"
            )));
        }
        let description = header.description.map_or_else(|| name.to_string(), str::to_owned);
        let is_repeated = self.net.fabric.find_name(&name).is_some();
        let spec = NodeSpec {
            kind,
            name: name.into_owned(),
            guid,
            system_guid: if self.system.is_zero() { guid } else { self.system },
            description,
            ports,
            vendor_id: self.vendor,
            device_id: self.device,
            revision: 0,
            enhanced_port0: header.enhanced_port0,
        };
        (self.vendor, self.system, self.pending) = (0, Guid::ZERO, None);
        let location = if is_repeated { name_line.location() } else { guid_location };
        let node = self.net.add_node(location, spec)?;
        if !kind.is_switch() {
            self.number_ports(guid_location, node, guid, ports)?;
        }
        if header.lid.is_some() || header.lmc != Lmc::ZERO {
            self.net.set_lid(name_line.location(), node, 0, (header.lid, header.lmc))?;
        }
        self.record = Some(Record { node, kind, ports, lines_left: ports, enabled });
        Ok(())
    }

    fn finish(mut self) -> Result<Fabric, Fault> {
        if let Some(location) = self.pending {
            return Err(location.fault(
                "found identifier lines at the end of the file, expected the node that they describe",
            ));
        }
        let targets = self.net.resolve()?;
        self.net.forget_unlinked(&targets);
        let widths: Vec<_> = self.net.ends.iter().map(|end| (end.port, end.rate.width)).collect();
        let mut fabric = self.net.join(&targets, Enabled::common)?;
        widths.into_iter().for_each(|(port, mask)| fabric.set_enabled_widths(port, mask));
        Ok(fabric)
    }
}

/// Returns the name of a node with the module as its prefix.
fn qualified<'a>(module: &str, id: &'a str) -> Cow<'a, str> {
    if module.is_empty() { Cow::Borrowed(id) } else { Cow::Owned(format!("{module}#{id}")) }
}

/// Checks that a name has no `#` and `@`, which ibsim reserves for modules and aliases.
fn check_name(line: Line<'_>, name: &str) -> Result<(), Fault> {
    if name.contains(['#', '@']) {
        return Err(line.expected("a name without `#` and `@`, which ibsim reserves"));
    }
    Ok(())
}

/// Reads a `=` and a number.
fn assigned(line: &mut Line<'_>, expected: &str, min: u64, max: u64) -> Result<u64, Fault> {
    line.skip_blanks();
    line.demand("=")?;
    line.skip_blanks();
    line.number(expected, min, max)
}

fn mask(line: &mut Line<'_>, expected: &str, min: u64, max: u64) -> Result<u8, Fault> {
    assigned(line, expected, min, max).map(narrow)
}

fn too_long(mut line: Line<'_>) -> Fault {
    let length = line.text().len();
    let mut at = MAX_LINE;
    while !line.text().is_char_boundary(at) {
        at -= 1;
    }
    line.seek(at);
    line.location().fault(format!(
        "found a line of {length} bytes, expected at most {MAX_LINE}: ibsim truncates longer ones"
    ))
}

#[cfg(test)]
mod tests;
