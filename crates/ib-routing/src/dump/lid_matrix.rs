//! `opensm-lid-matrix.dump`: the hops to every switch LID through every port.

use std::io::{self, Write};

use crate::hops::{HopMatrix, NO_HOPS};
use crate::subnet::{EndPort, Subnet};

/// Writes the file.
///
/// Only LIDs of switches stand in it: a channel adapter is as far as its switch.
///
/// # Errors
/// Fails when the output does.
pub fn write(out: &mut dyn Write, subnet: &Subnet<'_>, hops: &HopMatrix) -> io::Result<()> {
    let mut targets: Vec<(&EndPort, _)> =
        subnet.switch_ids().map(|id| (subnet.end_port(subnet.switch(id).end_port), id)).collect();
    targets.sort_by_key(|(end_port, _)| end_port.base_lid);
    let mut block = Vec::new();
    for (from, switch) in subnet.switch_ids().zip(subnet.switches()) {
        block.clear();
        writeln!(block, "Switch: guid {}", switch.guid)?;
        for &(end_port, to) in &targets {
            if hops.least(from, to) == NO_HOPS {
                continue;
            }
            write!(block, "{:#06x}:", end_port.base_lid)?;
            for port in 0..=switch.ports {
                write!(block, " {:02x}", hops.through(subnet, from, port, to))?;
            }
            writeln!(block, " # portguid {}", end_port.guid)?;
        }
        out.write_all(&block)?;
    }
    Ok(())
}
