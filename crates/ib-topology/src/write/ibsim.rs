//! Writes net files of `ibsim`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;

use ib_types::{Guid, Lid, LinkSpeed, LinkWidth, Lmc, NodeKind};

use super::{WriteError, check_text, check_vendor, lid_of, unrepresentable};
use crate::fabric::{Fabric, LinkRate, Node, NodeId, Port};
use crate::read::ibsim_limits::{MAX_DESCRIPTION, MAX_LINE, MAX_MODULE, MAX_NAME, UNQUOTED_ENDS};

/// Writes a fabric as a net file.
pub(super) fn write(fabric: &Fabric, output: &mut impl io::Write) -> Result<(), WriteError> {
    check_port_guids(fabric)?;
    let mut state = State { module: "", device: 0 };
    let mut text = String::new();
    for (id, node) in fabric.nodes() {
        text.clear();
        record(fabric, id, node, &mut state, &mut text)?;
        if let Some(line) = text.lines().find(|line| line.len() > MAX_LINE) {
            let found = format!("a line of {} bytes", line.len());
            let expected = format!("at most {MAX_LINE}: ibsim truncates longer lines");
            return Err(unrepresentable(node, found, &expected));
        }
        output.write_all(text.as_bytes())?;
    }
    Ok(())
}

/// The current module and device ID. A line of the net file sets each of them for all nodes that follow the line.
struct State<'a> {
    module: &'a str,
    device: u16,
}

fn record<'a>(
    fabric: &'a Fabric,
    id: NodeId,
    node: &'a Node,
    state: &mut State<'a>,
    text: &mut String,
) -> Result<(), WriteError> {
    check_text(node)?;
    let (module, name) = split(node)?;
    if module != state.module {
        let _ = writeln!(text, "module=\"{module}\"");
        state.module = module;
    }
    check_vendor(node)?;
    if node.vendor_id != 0 {
        let _ = writeln!(text, "vendid={:#x}", node.vendor_id);
    }
    if node.device_id != state.device {
        let _ = writeln!(text, "devid={:#x}", node.device_id);
        state.device = node.device_id;
    }
    if !node.system_guid.is_zero() && node.system_guid != node.guid {
        let _ = writeln!(text, "sysimgguid={:#x}", node.system_guid);
    }
    let (guid, keyword) = match node.kind {
        NodeKind::Switch => ("switchguid", "Switch"),
        NodeKind::ChannelAdapter => ("caguid", "Ca"),
        NodeKind::Router => ("rtguid", "Rt"),
    };
    let _ = write!(text, "{guid}={:#x}\n{keyword}\t{} \"{name}\"", node.guid, node.ports);
    header_comment(fabric, id, node, text)?;
    text.push('\n');
    for (_, port) in fabric.ports_of(id).skip(1) {
        port_line(fabric, node, module, port, text)?;
    }
    text.push('\n');
    Ok(())
}

/// Splits the name of a node into its module and the name within this module.
fn split(node: &Node) -> Result<(&str, &str), WriteError> {
    let (module, name) = node.name.split_once('#').unwrap_or(("", &node.name));
    let is_legal = !name.is_empty()
        && !name.contains(['#', '@', '"'])
        && !module.contains(['@', '"'])
        && module.is_empty() != node.name.contains('#')
        && module.len() <= MAX_MODULE
        && node.name.len() <= MAX_NAME;
    if is_legal {
        return Ok((module, name));
    }
    let expected = format!("up to {MAX_NAME} bytes without `\"`, `#` and `@`");
    Err(unrepresentable(node, "its name", &expected))
}

/// Writes the comment in the header line of a node, `# "description" base port 0 lid L lmc M`. Parts with default
/// values are left out.
fn header_comment(
    fabric: &Fabric,
    id: NodeId,
    node: &Node,
    text: &mut String,
) -> Result<(), WriteError> {
    let port0 =
        fabric.ports_of(id).next().map_or((None, Lmc::ZERO), |(_, port)| (port.lid, port.lmc));
    let has_port0 = node.kind.is_switch() && (node.enhanced_port0 || port0 != (None, Lmc::ZERO));
    let is_described = !node.description.is_empty() && node.description != node.name;
    if !is_described && !has_port0 {
        return Ok(());
    }
    let description = if is_described { &node.description } else { &node.name };
    if description.len() > MAX_DESCRIPTION {
        let found = format!("a description of {} bytes", description.len());
        let expected = format!("at most {MAX_DESCRIPTION}: ibsim truncates longer ones");
        return Err(unrepresentable(node, found, &expected));
    }
    let (lid, lmc) = (port0.0.map_or(0, Lid::get), port0.1);
    let kind = if node.enhanced_port0 { "enhanced" } else { "base" };
    let mut behind = String::new();
    if has_port0 {
        let _ = write!(behind, " {kind} port 0 lid {lid} lmc {lmc}");
    }
    if !description.contains('"') {
        let _ = write!(text, "\t# \"{description}\"{behind}");
        return Ok(());
    }
    // ibsim ends a description without quotes at a string of `UNQUOTED_ENDS`. If the description of a switch contains
    // ` lid ` or ` lmc `, port 0 is written even with default values: ibsim searches for ` base port ` first.
    let marked = format!(" {kind} port 0 lid {lid} lmc {lmc}");
    let behind = if node.kind.is_switch() { [behind, marked] } else { [behind.clone(), behind] };
    let is_read_whole = |behind: &String| {
        let whole = format!("{description}{behind}");
        let end = UNQUOTED_ENDS.iter().find_map(|end| whole.find(end)).unwrap_or(whole.len());
        end == description.len() && !description.starts_with(['"', ' ', '\t'])
    };
    let Some(behind) = behind.into_iter().find(is_read_whole) else {
        return Err(unrepresentable(
            node,
            format!("the description `{description}`"),
            "one that ibsim can read without quotes around it",
        ));
    };
    let _ = write!(text, "\t# {description}{behind}");
    Ok(())
}

fn port_line(
    fabric: &Fabric,
    node: &Node,
    module: &str,
    port: &Port,
    text: &mut String,
) -> Result<(), WriteError> {
    let Some(peer) = port.peer.map(|peer| fabric.port(peer)) else { return Ok(()) };
    let remote = fabric.node(peer.node);
    let remote_name = match split(remote)? {
        (other, name) if other == module => name,
        ("", name) => {
            let found = format!("a link to \"{name}\", which has no module");
            return Err(unrepresentable(node, found, "a link to a node with a module"));
        }
        _ => &remote.name,
    };
    let _ = write!(text, "[{}]\t\"{remote_name}\"[{}]", port.number, peer.number);
    let is_router = node.kind == NodeKind::Router;
    if port.rate != LinkRate::DEFAULT {
        options(port.rate, is_router, text);
    }
    let has_own_lid = !node.kind.is_switch() && (port.lid, port.lmc) != (None, Lmc::ZERO);
    let remote_lid = lid_of(fabric, peer);
    if port.rate == LinkRate::DEFAULT && !has_own_lid && remote_lid.is_none() {
        text.push('\n');
        return Ok(());
    }
    text.push_str("\t# ");
    if !node.kind.is_switch() {
        // ibsim reads the LID of the other end after the last quote, so an empty pair of quotes follows the LID of the
        // port.
        let _ = write!(text, "lid {} lmc {} \"\" ", port.lid.map_or(0, Lid::get), port.lmc);
    }
    let lid = remote_lid.map_or(0, Lid::get);
    let _ = writeln!(text, "lid {lid} {}{}", port.rate.width, port.rate.speed);
    Ok(())
}

/// Writes the rate as options of the port line, for versions of ibsim that ignore the rate in the comment.
fn options(rate: LinkRate, is_router: bool, text: &mut String) {
    if is_router {
        let width = match rate.width {
            LinkWidth::X1 => 1,
            LinkWidth::X2 => 16,
            LinkWidth::X4 => 3,
            LinkWidth::X8 => 4,
            LinkWidth::X12 => 11,
        };
        let _ = write!(text, " w={width}");
    }
    let (speed, extended) = match rate.speed {
        LinkSpeed::Sdr => (1, 0),
        LinkSpeed::Ddr => (3, 0),
        LinkSpeed::Qdr | LinkSpeed::Fdr10 => (7, 0),
        LinkSpeed::Fdr => (7, 1),
        LinkSpeed::Edr => (7, 3),
        LinkSpeed::Hdr | LinkSpeed::Ndr | LinkSpeed::Xdr => (7, 7),
    };
    if is_router || matches!(rate.speed, LinkSpeed::Ndr | LinkSpeed::Xdr) {
        let _ = write!(text, " s={speed} e={extended}");
    }
}

/// Checks that ibsim's numbering does not give two ports the same GUID.
fn check_port_guids(fabric: &Fabric) -> Result<(), WriteError> {
    let mut owners: BTreeMap<Guid, NodeId> = BTreeMap::new();
    for (id, node) in fabric.nodes() {
        let numbers = if node.kind.is_switch() { 0..=0 } else { 1..=node.ports };
        for number in numbers {
            let guid = Guid(node.guid.0.wrapping_add(u64::from(number)));
            let other = owners.insert(guid, id);
            if guid.is_zero() || other.is_some() {
                let owner = other.map_or(String::new(), |other| {
                    format!(", which a port of \"{}\" has as well", fabric.node(other).name)
                });
                let found = format!("port GUID {guid} by ibsim's numbering{owner}");
                return Err(unrepresentable(
                    node,
                    found,
                    "node GUIDs that leave room for the ports",
                ));
            }
        }
    }
    Ok(())
}
