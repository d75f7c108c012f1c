//! Nodes without power, and links that flap.

use std::time::Duration;

use ib_topology::PortId;
use ib_wire::mad::sm::PhysState;

use super::{CommandError, Target};
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
        if !on {
            self.forget_traps(node);
        }
        for &port in &external {
            self.update_link(port);
        }
        if !on {
            self.forget_settings(node);
        }
        Ok(())
    }

    /// Brings a node that lost its power to where it was before any manager had come.
    fn forget_settings(&mut self, node: ib_topology::NodeId) {
        let ports = self.node(node).ports;
        for number in 0..=ports {
            let port = self.port_id(node, number);
            self.reset_port(port);
            let phys_state = &mut self.port_mut(port).info.phys_state;
            if *phys_state == PhysState::DISABLED {
                *phys_state = PhysState::POLLING;
            }
        }
        if let Some(switch) = &mut self.node_mut(node).switch {
            switch.linear.clear();
            switch.multicast.clear();
            switch.info.linear_fdb_top = 0;
            switch.info.port_state_change = true;
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
        let state = if is_down { PhysState::POLLING } else { PhysState::DISABLED };
        self.port_mut(port).info.phys_state = state;
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
