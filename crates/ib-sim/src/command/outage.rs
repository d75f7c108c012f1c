//! Nodes without power, and links that flap.

use std::time::Duration;

use ib_topology::{NodeId, PortId};
use ib_wire::mad::sm::PhysState;

use super::{CommandError, Target};
use crate::counters::Counters;
use crate::event::{Event, Timer};
use crate::log::Entry;
use crate::script::Flap;
use crate::sim::Sim;

/// How long a link that flaps stays as it is at least, so that time goes on.
const SHORTEST_PAUSE: Duration = Duration::from_micros(1);

impl Sim {
    pub(super) fn run_power(&mut self, target: &Target, on: bool) -> Result<(), CommandError> {
        let node = self.target_node(target)?;
        if self.node(node).powered == on {
            return Ok(());
        }
        self.log(Entry::Power { node, on });
        self.node_mut(node).powered = on;
        let ports = self.node(node).ports;
        let external: Vec<PortId> = (1..=ports).map(|number| self.port_id(node, number)).collect();
        for &port in &external {
            self.update_link(port);
        }
        if !on {
            self.forget_settings(node);
        }
        Ok(())
    }

    /// Brings a node to where it was before any manager had come, with nothing counted.
    pub(super) fn forget_settings(&mut self, node: NodeId) {
        self.forget_traps(node);
        let ports = self.node(node).ports;
        for number in 0..=ports {
            self.forget_port_settings(self.port_id(node, number));
        }
        self.node_mut(node).reset();
        self.route_changes += 1;
    }

    /// Brings a port whose link is down to where it was before any manager had come, with nothing
    /// counted.
    pub(super) fn forget_port_settings(&mut self, port: PortId) {
        self.reset_port(port);
        let state = self.port_mut(port);
        state.counters = Counters::default();
        state.short_base = None;
        if state.info.phys_state == PhysState::DISABLED {
            state.info.phys_state = PhysState::POLLING;
        }
    }

    pub(super) fn start_flap(
        &mut self,
        port: PortId,
        (down, up): (Duration, Duration),
        times: u32,
    ) -> Result<(), CommandError> {
        if self.port(port).cable.is_none() && !self.unplugged.contains_key(&port) {
            let (node, number) = self.place(port);
            let node = self.node_name(node).to_owned();
            return Err(CommandError::NotLinked { node, port: number });
        }
        let flap = self.script.flaps.len() as u32;
        self.script.flaps.push(Flap { port, down, up, left: times, is_down: false });
        let now = self.now();
        self.schedule(now, Event::Timer(Timer::Flap { flap }));
        Ok(())
    }

    /// A link that flaps goes up or down.
    pub(crate) fn flap(&mut self, index: u32) {
        let flap = self.script.flaps[index as usize];
        let (port, is_down) = (flap.port, flap.is_down);
        if !is_down && flap.left == 0 {
            return;
        }
        // Another flap, and the manager, may want the link down as well.
        let held = &mut self.port_mut(port).held_down;
        *held = if is_down { held.saturating_sub(1) } else { held.saturating_add(1) };
        self.update_link(port);
        let flap = &mut self.script.flaps[index as usize];
        flap.is_down = !is_down;
        if !is_down {
            flap.left -= 1;
        }
        let pause = if is_down { flap.up } else { flap.down };
        let at = self.now() + pause.max(SHORTEST_PAUSE);
        self.schedule(at, Event::Timer(Timer::Flap { flap: index }));
    }
}
