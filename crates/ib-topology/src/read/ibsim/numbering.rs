//! How ibsim numbers nodes and ports.
//!
//! Every kind of node has a counter. A GUID line sets it, every node takes its value and moves it
//! on: a switch by one, other nodes by one more than they have ports, since their ports have the
//! GUIDs behind the node's.

use ib_types::{Guid, NodeKind};

use super::Parser;
use crate::fabric::NodeId;
use crate::read::join::refused;
use crate::text::{Fault, Line, Place};

/// How nodes of one kind are numbered.
#[derive(Clone, Copy)]
pub(super) struct Numbering {
    /// What the last `=` set, to which `+` adds.
    pub(super) base: u64,
    /// The GUID of the next node.
    pub(super) next: u64,
    /// Where the line stands that set it, if that node is the first one behind.
    pub(super) place: Option<Place>,
}

impl Numbering {
    pub(super) const fn from(base: u64) -> Self {
        Self { base, next: base, place: None }
    }
}

impl<'a> Parser<'a> {
    /// Reads `switchguid=base`, `switchguid+offset` and their like.
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
        numbering.place = Some(start.place());
        self.identify(line)
    }

    pub(super) fn numbering(&mut self, kind: NodeKind) -> &mut Numbering {
        match kind {
            NodeKind::ChannelAdapter => &mut self.adapters,
            NodeKind::Switch => &mut self.switches,
            NodeKind::Router => &mut self.routers,
        }
    }

    /// Gives every port of a channel adapter or router the node GUID plus its number.
    pub(super) fn number_ports(
        &mut self,
        place: Place,
        node: NodeId,
        guid: Guid,
        ports: u8,
    ) -> Result<(), Fault> {
        for number in 1..=ports {
            let port_guid = Guid(guid.0.wrapping_add(u64::from(number)));
            self.net.fabric.set_port_guid(node, number, port_guid).map_err(|error| {
                let mut fault = refused(place, &error);
                fault.message.push_str(&format!(
                    " (port {number} of a node with GUID {guid} has this one in ibsim)"
                ));
                fault
            })?;
        }
        Ok(())
    }
}
