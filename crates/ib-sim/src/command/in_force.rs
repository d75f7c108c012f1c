//! What a fabric was told and still holds, as the commands that would bring it about.

use ib_topology::{NodeId, PortId};

use super::{Command, Fault, Ignored, Target};
use crate::sim::Sim;

impl Sim {
    /// Returns what is wrong with a node beside its ports: that it has no power, and where a switch
    /// betrays its manager.
    #[must_use]
    pub fn in_force_at_node(&self, node: NodeId) -> Vec<Command> {
        let state = self.node(node);
        let target = || Target { node: state.name.clone(), port: None };
        let mut commands = Vec::new();
        if !state.powered {
            commands.push(Command::Power(target(), false));
        }
        let Some(switch) = &state.switch else { return commands };
        let lies = &switch.lies;
        let pairs = lies.misrouted.iter();
        commands.extend(pairs.map(|(&from, &to)| Command::Misroute(target(), Some((from, to)))));
        if lies.ignores_all {
            commands.push(Command::IgnoreLft(target(), Ignored::All));
        } else if !lies.ignored_blocks.is_empty() {
            let blocks = lies.ignored_blocks.iter().copied().collect();
            commands.push(Command::IgnoreLft(target(), Ignored::Blocks(blocks)));
        }
        commands
    }

    /// Returns what is wrong with a port and its cable: that it was pulled and can be plugged back in,
    /// faults, requests that are lost, and flaps, with how often the link still goes down.
    ///
    /// An M_Key is not among it: whether a manager or somebody else has set it is not known. It is in
    /// [`Sim::port_info`].
    #[must_use]
    pub fn in_force_at_port(&self, port: PortId) -> Vec<Command> {
        let state = self.port(port);
        let node = &self.node(state.node).name;
        let target = || Target { node: node.clone(), port: Some(state.number) };
        let mut commands = Vec::new();
        if self.unplugged.contains_key(&port) {
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
        let flaps = self.script.flaps.iter().filter(|flap| flap.port == port);
        commands.extend(flaps.filter_map(|flap| {
            // One of the times has begun when the link is down.
            let times = flap.left.saturating_add(u32::from(flap.is_down));
            (times > 0).then(|| Command::Flap(target(), flap.down, flap.up, times))
        }));
        commands
    }
}

impl crate::fault::PortFaults {
    /// Returns what is wrong with packets that the port sends.
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
        // Nothing is held back that is not reordered.
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
