//! The GUIDs that ibsim assigns to nodes and ports.
//!
//! Every kind of node has a GUID counter. Lines such as `switchguid=base` set it. A node gets the value of the counter
//! as its GUID. After a switch, the counter grows by one. After another node, it grows by the node's number of ports
//! plus one, because the ports have the GUIDs after the node GUID.

use ib_types::{Guid, NodeKind};

use super::Parser;
use crate::fabric::NodeId;
use crate::read::join::refused;
use crate::text::{Fault, Line, Location};

/// The GUID counter for a kind of node.
#[derive(Clone, Copy)]
pub(super) struct Numbering {
    /// The GUID in the last line of the form `switchguid=base`. A line `switchguid+offset` sets `next` to `base`
    /// plus the offset.
    pub(super) base: u64,
    /// The GUID that the next node of this kind gets.
    pub(super) next: u64,
    /// The location of the GUID in the line that set `next`. `None` if no such line follows the last node of this kind.
    pub(super) location: Option<Location>,
}

impl Numbering {
    pub(super) const fn from(base: u64) -> Self {
        Self { base, next: base, location: None }
    }
}

impl<'a> Parser<'a> {
    /// Reads a line of the form `switchguid=base` or `switchguid+offset`, or the corresponding line for another kind of
    /// node.
    pub(super) fn guid(&mut self, mut line: Line<'a>, kind: NodeKind) -> Result<(), Fault> {
        line.skip_blanks();
        let is_offset = line.eat("+");
        if !is_offset && !line.eat("=") {
            return Err(line.expected("`=` and a GUID, or `+` and an offset"));
        }
        line.skip_blanks();
        let start = line;
        let value = line.number("a GUID of 64 bits", 0, u64::MAX)?;
        line.guid_in_parentheses()?;
        let numbering = self.numbering(kind);
        if is_offset {
            let sum = numbering.base.checked_add(value);
            numbering.next = sum.ok_or_else(|| {
                start.expected(&format!(
                    "an offset that stays within 64 bits of {:#x}",
                    numbering.base
                ))
            })?;
        } else {
            numbering.base = value;
            numbering.next = value;
        }
        numbering.location = Some(start.location());
        self.identify(line)
    }

    pub(super) fn numbering(&mut self, kind: NodeKind) -> &mut Numbering {
        match kind {
            NodeKind::ChannelAdapter => &mut self.adapters,
            NodeKind::Switch => &mut self.switches,
            NodeKind::Router => &mut self.routers,
        }
    }

    /// Sets the GUID of every port of a channel adapter or router to the node GUID plus the port number.
    pub(super) fn number_ports(
        &mut self,
        location: Location,
        node: NodeId,
        guid: Guid,
        ports: u8,
    ) -> Result<(), Fault> {
        for number in 1..=ports {
            let port_guid = Guid(guid.0.wrapping_add(u64::from(number)));
            self.net.fabric.set_port_guid(node, number, port_guid).map_err(|error| {
                let mut fault = refused(location, &error);
                fault.message.push_str(&format!(
                    " (port {number} of a node with GUID {guid} has this GUID in ibsim)"
                ));
                fault
            })?;
        }
        Ok(())
    }
}
