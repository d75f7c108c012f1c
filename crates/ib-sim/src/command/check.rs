//! What can be said of a command before it is run: whether what it names is there, and of the right
//! kind.

use ib_topology::PortId;
use ib_types::NodeKind;
use ib_wire::layout::FieldInfo;
use ib_wire::mad::pm::{PortCounters, PortCountersExtended};

use super::{Command, CommandError, Ignored, Target};
use crate::node::LINEAR_BLOCKS;
use crate::sim::Sim;

impl Sim {
    /// Checks what a command names, and values whose range depends on the fabric. What depends on
    /// the moment, such as whether a port is free, shows when the command is run.
    ///
    /// # Errors
    /// Fails when a node or port is not there or not of the right kind, or a value out of range.
    pub fn check(&self, command: &Command) -> Result<(), CommandError> {
        match command {
            Command::Link(one, other) | Command::Swap(one, other) => {
                self.target_external_port(one)?;
                self.target_external_port(other)?;
            }
            Command::Unlink(target)
            | Command::Relink(target)
            | Command::Fault(target, _)
            | Command::Flap(target, ..) => {
                self.target_external_ports(target)?;
            }
            Command::Clear(target)
            | Command::Guid(target, _)
            | Command::Error(target, ..)
            | Command::Power(target, _) => {
                self.target_ports(target)?;
            }
            Command::PerformanceSet(target, field, _) => {
                self.target_port(target)?;
                counter(field)?;
            }
            Command::BaseLid(target, ..) | Command::MKey(target, ..) => {
                self.target_end_port(target)?;
            }
            Command::Misroute(target, ports) => {
                let last = self.target_switch(target)?;
                let mut ports = ports.iter().flat_map(|&(from, to)| [from, to]);
                if let Some(port) = ports.find(|port| !(1..=last).contains(port)) {
                    let node = target.node.clone();
                    return Err(CommandError::NoSuchPort { node, port, first: 1, last });
                }
            }
            Command::IgnoreLft(target, ignored) => {
                self.target_switch(target)?;
                if let Ignored::Blocks(blocks) = ignored
                    && let Some(block) = blocks.iter().find(|&&block| block >= LINEAR_BLOCKS)
                {
                    const _: () = assert!(LINEAR_BLOCKS == 768, "as the message says");
                    return Err(CommandError::Value {
                        found: format!("block {block}"),
                        expected: "blocks of 64 LIDs, 0 to 767",
                    });
                }
            }
        }
        Ok(())
    }

    /// Returns the number of ports of a target that has to be a switch.
    fn target_switch(&self, target: &Target) -> Result<u8, CommandError> {
        let node = self.node(self.target_node(target)?);
        match node.kind {
            NodeKind::Switch => Ok(node.ports),
            _ => Err(CommandError::NotASwitch(target.node.clone())),
        }
    }

    /// Returns the end port of a target: that of the node where only a node is named.
    pub(super) fn target_end_port(&self, target: &Target) -> Result<PortId, CommandError> {
        if target.port.is_some() {
            let port = self.target_port(target)?;
            return Ok(self.end_port_of(port));
        }
        let node = self.target_node(target)?;
        self.end_port(node).ok_or_else(|| CommandError::NeedsPort(target.node.clone()))
    }

    /// Returns the port of a target that has to name one with a link.
    pub(super) fn target_external_port(&self, target: &Target) -> Result<PortId, CommandError> {
        let port = self.target_port(target)?;
        let (node, number) = self.place(port);
        if number == 0 {
            return Err(CommandError::NoSuchPort {
                node: target.node.clone(),
                port: 0,
                first: 1,
                last: self.node(node).ports,
            });
        }
        Ok(port)
    }

    /// Returns the port of a target that has to be one with a link, or all those of the node that it
    /// names.
    pub(super) fn target_external_ports(
        &self,
        target: &Target,
    ) -> Result<Vec<PortId>, CommandError> {
        if target.port.is_some() {
            return Ok(vec![self.target_external_port(target)?]);
        }
        self.target_ports(target)
    }
}

/// The width of a counter in PortCountersExtended, which no other field of it has.
const COUNTER_BITS: usize = 64;

/// Returns the field of PortCountersExtended that a name means.
pub(super) fn counter(name: &str) -> Result<&'static FieldInfo, CommandError> {
    let wanted = plain(name);
    PortCountersExtended::FIELDS
        .iter()
        .filter(|known| known.at.width == COUNTER_BITS)
        .find(|known| plain(known.name) == wanted || spelled(known.name) == wanted)
        .ok_or_else(|| CommandError::Value {
            found: name.to_owned(),
            expected: "the name of a counter, such as SymbolErrorCounter or PortXmitData",
        })
}

/// Returns the highest value of a counter in PortCounters; `None` for one that is not there.
pub(super) fn highest(name: &str) -> Option<u64> {
    let known = counter(name).ok()?;
    let short = PortCounters::FIELDS.iter().find(|field| field.name == known.name)?;
    Some(u64::MAX >> (64 - short.at.width))
}

/// Returns a name in lower case without what does not count.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
}

/// Returns the field's name as perfquery and ibsim spell it, in the form of [`plain`].
fn spelled(field: &str) -> String {
    let known = match field {
        "symbol_errors" => "SymbolErrorCounter",
        "link_error_recoveries" => "LinkErrorRecoveryCounter",
        "link_downed" => "LinkDownedCounter",
        "local_link_integrity_errors" => "LocalLinkIntegrityErrors",
        "excessive_buffer_overrun_errors" => "ExcessiveBufferOverrunErrors",
        "vl15_dropped" => "VL15Dropped",
        "xmit_packets" => "PortXmitPkts",
        "rcv_packets" => "PortRcvPkts",
        other => return format!("port{}", plain(other)),
    };
    plain(known)
}
