//! What can be said of a command before it is run: whether what it names is there, and of the right
//! kind.

use ib_topology::{NodeId, PortId};
use ib_types::NodeKind;
use ib_wire::layout::FieldInfo;
use ib_wire::mad::pm::{PortCounters, PortCountersExtended};

use super::{Command, CommandError, Fault, Ignored, Target};
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
            Command::Unlink(target) | Command::Relink(target) => {
                self.target_external_ports(target)?;
            }
            Command::Fault(target, faults) => {
                self.target_external_ports(target)?;
                check_faults(faults)?;
            }
            Command::Flap(target, _, _, times) => {
                self.target_external_port(target)?;
                if *times == 0 {
                    return Err(CommandError::Value {
                        found: "0 times".to_owned(),
                        expected: "once at least",
                    });
                }
            }
            Command::Clear(target) | Command::Guid(target, _) | Command::Error(target, ..) => {
                self.target_ports(target)?;
            }
            Command::Power(target, _) => {
                self.target_whole_node(target)?;
            }
            Command::PerformanceSet(target, field, _) => {
                self.target_port(target)?;
                counter(field)?;
            }
            Command::BaseLid(target, ..) | Command::MKey(target, ..) => {
                self.target_end_port(target)?;
            }
            Command::Misroute(target, pair) => {
                let last = self.target_switch(target)?;
                let mut ports = pair.iter().flat_map(|&(from, to)| [from, to]);
                if let Some(port) = ports.find(|port| !(1..=last).contains(port)) {
                    let node = target.node.clone();
                    return Err(CommandError::NoSuchPort { node, port, first: 1, last });
                }
                if let Some((from, to)) = pair.filter(|(from, to)| from == to) {
                    return Err(CommandError::Value {
                        found: format!("port {to} for port {from}"),
                        expected: "another port than the first one",
                    });
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

    /// Returns the node of a target that has to name one, and none of its ports.
    fn target_whole_node(&self, target: &Target) -> Result<NodeId, CommandError> {
        let node = self.target_node(target)?;
        match target.port {
            None => Ok(node),
            Some(_) => Err(CommandError::Value {
                found: format!("port {target}"),
                expected: "a node, without the number of a port",
            }),
        }
    }

    /// Returns the number of ports of a target that has to be a switch.
    fn target_switch(&self, target: &Target) -> Result<u8, CommandError> {
        let node = self.node(self.target_whole_node(target)?);
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

/// Refuses what has no effect: a time for which packets are held back, where none are.
fn check_faults(faults: &[Fault]) -> Result<(), CommandError> {
    let holds = faults.iter().any(|fault| matches!(fault, Fault::HeldBack(_)));
    let reorders = |fault: &Fault| matches!(fault, Fault::Reordering(part) if *part > 0.0);
    if holds && !faults.iter().any(reorders) {
        return Err(CommandError::Value {
            found: "held without reorder".to_owned(),
            expected: "the probability with which packets are held back as well",
        });
    }
    Ok(())
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
