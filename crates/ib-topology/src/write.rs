//! Writers of the files that describe a fabric.
//!
//! | format | fit for | what it cannot say |
//! |---|---|---|
//! | [`Format::Ibnetdiscover`] | everything that reads `ibnetdiscover` output | revisions, GUIDs of unlinked ports |
//! | [`Format::Ibsim`] | `ibsim` 0.10 and later, and [`crate::read::ibsim`] | revisions, port GUIDs, empty descriptions |
//! | [`Format::SubnetList`] | what reads OpenSM's `opensm-subnet.lst` | unlinked nodes, names, LMCs, enhanced port 0 |
//!
//! What is written reads back as the same fabric but for the last column and the LIDs of unlinked
//! adapter ports. ibsim takes a node's name for an empty description, and all readers take the
//! node GUID for a system image GUID of zero.
//!
//! **ibsim numbers ports itself**: a port of a channel adapter or router has the node GUID plus
//! the port number there, whatever the fabric says, and a switch has its node GUID.
//!
//! # How rates are written for ibsim
//! A link's rate stands in the comment of its port lines as ibsim reads it, `# lid 0 4xHDR`, with
//! the LID of the other end or zero; a link of 4x SDR, ibsim's own default, without LIDs has no
//! comment. ibsim 0.10 has no NDR and no release has XDR: such a link carries the options
//! `s=7 e=7` before its comment, so that an ibsim that skips the comment's speed runs it at HDR,
//! while one that knows it, and this crate, read the true one. ibsim skips comments on routers;
//! their lines have the options of the rate as well, in which FDR10 has none and is QDR for ibsim.
//!
//! ```
//! use ib_topology::{Format, read, write};
//!
//! let fabric = read("small.net", b"switchguid=0x900\nSwitch 36 \"leaf\"\n")?;
//! let mut output = Vec::new();
//! write(&fabric, Format::Ibsim, &mut output)?;
//! assert_eq!(output, b"switchguid=0x900\nSwitch\t36 \"leaf\"\n\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io;

use ib_types::Lid;

use crate::fabric::{Fabric, Node, NodeId, Port};
use crate::read::Format;

mod ibnetdiscover;
mod ibsim;
mod subnet_list;

/// An error of writing a fabric.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The output could not be written to.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The format has no way to say something that the fabric holds.
    #[error("node \"{node}\" cannot be written: found {found}, expected {expected}")]
    Unrepresentable {
        /// The node's name.
        node: String,
        /// What the fabric holds.
        found: String,
        /// What the format can say.
        expected: String,
    },
}

/// Writes a fabric.
///
/// # Errors
/// Fails when the output does, and on what the format cannot represent; part of the file may have
/// been written then.
pub fn write(
    fabric: &Fabric,
    format: Format,
    output: &mut impl io::Write,
) -> Result<(), WriteError> {
    match format {
        Format::Ibnetdiscover => ibnetdiscover::write(fabric, output),
        Format::Ibsim => ibsim::write(fabric, output),
        Format::SubnetList => subnet_list::write(fabric, output),
    }
}

fn unrepresentable(node: &Node, found: impl Into<String>, expected: &str) -> WriteError {
    WriteError::Unrepresentable {
        node: node.name.clone(),
        found: found.into(),
        expected: expected.to_owned(),
    }
}

/// Checks that every linked port of a channel adapter or router has a GUID, and that the vendor ID
/// has no more bits than NodeInfo gives it.
fn check_numbers(fabric: &Fabric, id: NodeId, node: &Node) -> Result<(), WriteError> {
    check_vendor(node)?;
    let nameless = |port: &Port| port.peer.is_some() && port.guid.is_zero();
    match fabric.ports_of(id).find(|(_, port)| nameless(port)) {
        Some((_, port)) => {
            let found = format!("its port {} linked without a GUID", port.number);
            Err(unrepresentable(node, found, "a port GUID"))
        }
        None => Ok(()),
    }
}

fn check_vendor(node: &Node) -> Result<(), WriteError> {
    if node.vendor_id > 0xff_ffff {
        let found = format!("vendor ID {:#x}", node.vendor_id);
        return Err(unrepresentable(node, found, "one of 24 bits"));
    }
    Ok(())
}

/// Checks that a node's name and description hold no control characters but tabs.
fn check_text(node: &Node) -> Result<(), WriteError> {
    for (what, text) in [("name", &node.name), ("description", &node.description)] {
        let control = |b: u8| (b < b' ' && b != b'\t') || b == 0x7f;
        if let Some(byte) = text.bytes().find(|&b| control(b)) {
            let found = format!("control character 0x{byte:02x} in its {what}");
            return Err(unrepresentable(node, found, "text"));
        }
    }
    Ok(())
}

/// Returns the LID of a port, which on a switch is that of port 0.
fn lid_of(fabric: &Fabric, port: &Port) -> Option<Lid> {
    if fabric.node(port.node).kind.is_switch() {
        return fabric.ports_of(port.node).next().and_then(|(_, port0)| port0.lid);
    }
    port.lid
}

#[cfg(test)]
mod tests;
