//! `opensm-lfts.dump`: the linear forwarding tables, one block per switch.

use std::io::{self, Write};

use super::owner_text;
use crate::lft::Lfts;
use crate::subnet::Subnet;

/// Writes the file.
///
/// # Errors
/// Fails when the output does.
pub fn write(out: &mut dyn Write, subnet: &Subnet<'_>, lfts: &Lfts) -> io::Result<()> {
    let max_lid = lfts.max_lid();
    // The same text follows a LID in every switch's block: made once, a large dump is copying.
    let owners: Vec<String> = (0..=max_lid)
        .map(|lid| {
            let owner = owner_text(subnet, lid);
            format!(" # {}\n", owner.as_deref().unwrap_or("unknown node and type"))
        })
        .collect();
    let mut block = Vec::new();
    for (id, switch) in subnet.switch_ids().zip(subnet.switches()) {
        block.clear();
        writeln!(
            block,
            "Unicast lids [0-{max_lid}] of switch Lid {} guid {} ('{}'):",
            subnet.switch_lid(id),
            switch.guid,
            subnet.switch_node(id).description
        )?;
        for ((lid, &port), owner) in lfts.table(id).iter().enumerate().zip(&owners) {
            if port <= switch.ports {
                write!(block, "{lid:#06x} {port:03}")?;
                block.extend_from_slice(owner.as_bytes());
            }
        }
        writeln!(block, "{max_lid} lids dumped")?;
        out.write_all(&block)?;
    }
    Ok(())
}
