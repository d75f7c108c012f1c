//! The small files: `guid2lid`, `opensm-ftree-ca-order.dump` and `opensm-updn-roots.dump`.

use std::io::{self, Write};

use crate::subnet::{EndPortId, Subnet, SwitchId};

/// Writes `guid2lid`: port GUID, first and last LID of every end port, with an empty line after
/// each.
///
/// # Errors
/// Fails when the output does.
pub fn write_guid2lid(out: &mut dyn Write, subnet: &Subnet<'_>) -> io::Result<()> {
    for end_port in subnet.end_ports() {
        let (first, last) = (end_port.base_lid.get(), end_port.base_lid.get() + end_port.lids - 1);
        writeln!(out, "{} {first:#06x} {last:#06x}\n", end_port.guid)?;
    }
    Ok(())
}

/// Writes `opensm-ftree-ca-order.dump`: LID and node description in routing order; dummies fill
/// up the leaves.
///
/// # Errors
/// Fails when the output does.
pub fn write_ca_order(
    out: &mut dyn Write,
    subnet: &Subnet<'_>,
    order: &[Option<EndPortId>],
) -> io::Result<()> {
    for entry in order {
        match *entry {
            Some(id) => {
                let node = subnet.end_port_node(id);
                writeln!(out, "{:#06x}\t{}", subnet.end_port(id).base_lid, node.description)?;
            }
            None => writeln!(out, "0xFFFF\tDUMMY")?,
        }
    }
    Ok(())
}

/// Writes `opensm-updn-roots.dump`: the GUIDs of the root switches, without leading zeros.
///
/// # Errors
/// Fails when the output does.
pub fn write_roots(out: &mut dyn Write, subnet: &Subnet<'_>, roots: &[SwitchId]) -> io::Result<()> {
    for &root in roots {
        writeln!(out, "{:#x}", subnet.switch(root).guid)?;
    }
    Ok(())
}
