//! Writers of fabric files.
//!
//! | format | readers | not represented |
//! |---|---|---|
//! | [`Format::Ibnetdiscover`] | all readers of `ibnetdiscover` output | revisions, GUIDs of unlinked ports |
//! | [`Format::Ibsim`] | `ibsim` 0.10 and later, and [`crate::read::ibsim`] | revisions, port GUIDs, empty descriptions |
//! | [`Format::SubnetList`] | readers of OpenSM's `opensm-subnet.lst` | unlinked nodes, names, LMCs, enhanced port 0 |
//!
//! The file is read back as the same fabric, except for the last column and the LIDs of unlinked
//! ports of channel adapters. ibsim replaces an empty description by the node name. All readers
//! replace a system image GUID of zero by the node GUID.
//!
//! **ibsim numbers ports itself.** A port of a channel adapter or router has the node GUID plus the
//! port number, a switch port the node GUID. Port GUIDs of the fabric are not written.
//!
//! # Rates in ibsim net files
//! The rate of a link is in the comment of its port lines, `# lid 0 4xHDR`, after the LID of the
//! other end or zero. A link at ibsim's default rate, 4x SDR, without LIDs has no comment.
//!
//! ibsim 0.10 does not support NDR, and no release supports XDR. Links of these speeds have the
//! options `s=7 e=7` before the comment: an ibsim that ignores the speed in the comment runs the
//! link at HDR. Newer ones and this crate read the rate in the comment.
//!
//! ibsim ignores comments of routers, so port lines of routers also have options for the rate.
//! There is no option for FDR10: ibsim runs such a link at QDR.
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

/// Error of writing a fabric.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// Writing to the output failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The format cannot represent an attribute of a node.
    #[error("node \"{node}\" cannot be written: found {found}, expected {expected}")]
    Unrepresentable {
        /// The name of the node.
        node: String,
        /// The attribute and its value.
        found: String,
        /// The values that the format can represent.
        expected: String,
    },
}

/// Writes a fabric.
///
/// # Errors
/// Fails if the output fails, and on attributes that the format cannot represent. Part of the file
/// may have been written.
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
/// has at most 24 bits.
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

/// Checks that the name and description of a node contain no control characters other than tabs.
fn check_text(node: &Node) -> Result<(), WriteError> {
    for (attribute, text) in [("name", &node.name), ("description", &node.description)] {
        let control = |b: u8| (b < b' ' && b != b'\t') || b == 0x7f;
        if let Some(byte) = text.bytes().find(|&b| control(b)) {
            let found = format!("control character 0x{byte:02x} in its {attribute}");
            return Err(unrepresentable(node, found, "text"));
        }
    }
    Ok(())
}

/// Returns the LID of a port; for a switch port, the LID of port 0.
fn lid_of(fabric: &Fabric, port: &Port) -> Option<Lid> {
    if fabric.node(port.node).kind.is_switch() {
        return fabric.ports_of(port.node).next().and_then(|(_, port0)| port0.lid);
    }
    port.lid
}

#[cfg(test)]
mod tests;
