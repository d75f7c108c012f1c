//! Writers of fabric files.
//!
//! | format | readers | not represented |
//! |---|---|---|
//! | [`Format::Ibnetdiscover`] | all readers of `ibnetdiscover` output | revisions, GUIDs of unlinked ports |
//! | [`Format::Ibsim`] | `ibsim` 0.10 and later, and [`crate::read::ibsim`] | revisions, port GUIDs, empty descriptions |
//! | [`Format::SubnetList`] | readers of OpenSM's `opensm-subnet.lst` | unlinked nodes, names, LMCs, enhanced port 0 |
//!
//! When the file is read back, the fabric is the same, except for the attributes in the last column above, the enabled
//! widths, and the LIDs and LMCs of unlinked ports of channel adapters and routers. ibsim replaces an empty description
//! by the node name. All readers replace a system image GUID of zero by the node GUID.
//!
//! **ibsim numbers ports itself.** In ibsim, a port of a channel adapter or router has the node GUID plus the port
//! number, and a port of a switch has the node GUID. So net files do not contain the port GUIDs of the fabric.
//!
//! # Rates in ibsim net files
//! The rate of a link is in the comments of its two port lines, such as `# lid 0 4xHDR`. It follows the LID of the
//! other end, which is 0 if the other end has no LID. If a link has ibsim's default rate, 4x SDR, and no LIDs, its port
//! lines have no comment.
//!
//! ibsim 0.10 does not support NDR, and no release supports XDR. For links of these speeds, the options `s=7 e=7`
//! precede the comment. Versions of ibsim that ignore the speed in the comment run the link at HDR. Newer versions, and
//! this crate, read the rate in the comment.
//!
//! ibsim ignores the comments in port lines of routers, so these lines also have options for the rate. There is no
//! option for FDR10, so ibsim runs a link of a router at QDR instead.
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

pub use subnet_list::speed_text;

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
        /// The attribute that cannot be written, with its value.
        found: String,
        /// The values that the format can represent.
        expected: String,
    },
}

/// Writes a fabric in the given format.
///
/// # Errors
/// Fails if writing to the output fails, or if the format cannot represent an attribute. Then part of the file may
/// already have been written.
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

/// Checks that the vendor ID of a node has at most 24 bits. Also checks that every linked port has a GUID if the node
/// is a channel adapter or router.
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

/// Checks that the name and the description of a node have no control characters except tabs.
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

/// Returns the LID of a port. For a port of a switch, returns the LID of port 0.
fn lid_of(fabric: &Fabric, port: &Port) -> Option<Lid> {
    if fabric.node(port.node).kind.is_switch() {
        return fabric.ports_of(port.node).next().and_then(|(_, port0)| port0.lid);
    }
    port.lid
}

#[cfg(test)]
mod tests;
