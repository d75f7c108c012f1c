//! Active faults of a fabric, as commands that set the same faults again.

use ib_topology::PortId;

use super::{Command, Fault, Ignored, Target};
use crate::fabric::FabricState;
use crate::fault::PortFaults;
use crate::node::Node;
use crate::script::Script;

/// Returns the active faults of a node: power off, and deviations of a switch from its LFT.
pub(crate) fn at_node(node: &Node) -> Vec<Command> {
    let target = || Target { node: node.name.clone(), port: None };
    let mut commands = Vec::new();
    if !node.powered {
        commands.push(Command::Power(target(), false));
    }
    let Some(switch) = &node.switch else { return commands };
    let deviations = &switch.deviations;
    let pairs = deviations.misrouted.iter();
    commands.extend(pairs.map(|(&from, &to)| Command::Misroute(target(), Some((from, to)))));
    if deviations.ignores_all {
        commands.push(Command::IgnoreLft(target(), Ignored::All));
    } else if !deviations.ignored_blocks.is_empty() {
        let blocks = deviations.ignored_blocks.iter().copied().collect();
        commands.push(Command::IgnoreLft(target(), Ignored::Blocks(blocks)));
    }
    commands
}

/// Returns the active faults of a port and its cable.
pub(crate) fn at_port(fabric: &FabricState, script: &Script, port: PortId) -> Vec<Command> {
    let state = fabric.port(port);
    let node = &fabric.node(state.node).name;
    let target = || Target { node: node.clone(), port: Some(state.number) };
    let mut commands = Vec::new();
    if fabric.pulled(port).is_some() {
        commands.push(Command::Unlink(target()));
    }
    if let Some(faults) = &state.faults {
        let link = faults.link();
        if !link.is_empty() {
            commands.push(Command::Fault(target(), link));
        }
        if faults.unanswered > 0.0 {
            let attribute = faults.unanswered_attribute;
            commands.push(Command::Error(target(), faults.unanswered, attribute));
        }
    }
    let flaps = script.flaps_at(port).filter(|flap| flap.times() > 0);
    commands.extend(flaps.map(|flap| Command::Flap(target(), flap.down, flap.up, flap.times())));
    commands
}

impl PortFaults {
    /// Returns the active faults for the packets that the port sends.
    fn link(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        let probabilities = [
            (self.loss, Fault::Loss as fn(f64) -> Fault),
            (self.corruption, Fault::Corruption),
            (self.duplication, Fault::Duplication),
            (self.reordering, Fault::Reordering),
        ];
        let likely = probabilities.into_iter().filter(|(probability, _)| *probability > 0.0);
        faults.extend(likely.map(|(probability, fault)| fault(probability)));
        // The maximum delay applies only to reordered packets.
        if self.reordering > 0.0 && !self.held_back.is_zero() {
            faults.push(Fault::HeldBack(self.held_back));
        }
        if !self.delay.is_zero() {
            faults.push(Fault::Delay(self.delay));
        }
        faults
    }
}

#[cfg(test)]
mod tests;
