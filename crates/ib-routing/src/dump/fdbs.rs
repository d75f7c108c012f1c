//! `opensm.fdbs`: the forwarding tables, with the hops of every entry and whether a shorter path exists.

use std::io::{self, Write};

use crate::engine::{EngineKind, Routing};
use crate::hops::NO_HOPS;
use crate::lft::NO_PATH;
use crate::subnet::{Attachment, Subnet, SwitchId};

/// Writes `opensm.fdbs`.
///
/// The hops to a channel adapter include the link to it.
///
/// # Errors
/// Fails if writing to the output fails.
pub fn write(out: &mut dyn Write, subnet: &Subnet<'_>, routing: &Routing) -> io::Result<()> {
    for (id, switch) in subnet.switch_ids().zip(subnet.switches()) {
        writeln!(out, "dump_ucast_routes: Switch {}", switch.guid)?;
        writeln!(out, "LID    : Port : Hops : Optimal")?;
        let mut suggestion = None;
        for lid in 1..=routing.lfts.max_lid() {
            let port = routing.lfts.port(id, lid);
            let owner = subnet.lid_owner(lid).filter(|_| port != NO_PATH);
            let Some(owner) = owner else {
                writeln!(out, "0x{lid:04X} : UNREACHABLE")?;
                continue;
            };
            let end_port = subnet.end_port(owner);
            let extra = u8::from(!end_port.is_switch());
            let hops = match end_port.attachment {
                Attachment::Direct => None,
                Attachment::Port(at, _) if at == id => Some((at, 0)),
                Attachment::Management(at) | Attachment::Port(at, _) => {
                    Some((at, routing.hops.through(subnet, id, port, at)))
                }
            };
            let Some((at, hops)) = hops.filter(|&(_, hops)| hops != NO_HOPS) else {
                writeln!(out, "0x{lid:04X} : {port:03}  : HOPS UNKNOWN")?;
                continue;
            };
            let (hops, best) =
                (hops.saturating_add(extra), routing.hops.least(id, at).saturating_add(extra));
            write!(out, "0x{lid:04X} : {port:03}  : {hops:02}   : ")?;
            if hops == best {
                writeln!(out, "yes")?;
            } else {
                let counts = suggestion.get_or_insert_with(|| counts(routing, id));
                let better = better_port(subnet, routing, (id, at), counts);
                writeln!(out, "No {best} hop path possible via port {better}!")?;
            }
        }
    }
    Ok(())
}

/// Returns the number of LIDs that a switch forwards through each port. OpenSM compares these numbers when it looks for
/// a better port for a route.
///
/// OpenSM looks for a better port only if a route is longer than the shortest path. Only tables read from a file and
/// tables of ftree have such routes. ftree does not count the LIDs per port, so OpenSM compares zeros.
fn counts(routing: &Routing, switch: SwitchId) -> [u32; 256] {
    let mut counts = [0; 256];
    if routing.engine == EngineKind::File {
        for &port in routing.lfts.table(switch).iter().filter(|&&port| port != NO_PATH) {
            counts[usize::from(port)] += 1;
        }
    }
    counts
}

/// Returns the least used port among the least-hop ports; the first one if several are used equally.
fn better_port(
    subnet: &Subnet<'_>,
    routing: &Routing,
    (from, to): (SwitchId, SwitchId),
    counts: &[u32; 256],
) -> u8 {
    let best = routing.hops.least(from, to);
    subnet
        .switch_links(from)
        .map(|(port, _, _)| port)
        .filter(|&port| routing.hops.through(subnet, from, port, to) == best)
        .min_by_key(|&port| counts[usize::from(port)])
        .unwrap_or(NO_PATH)
}
