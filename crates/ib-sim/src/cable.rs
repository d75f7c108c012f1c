//! Links that come up and go down, and cables that are plugged and pulled.

use ib_topology::PortId;
use ib_wire::mad::sm::{PhysState, PortState};

use crate::log::Entry;
use crate::loss::Loss;
use crate::sim::Sim;

impl Sim {
    /// Brings a link up or down, as the state of its two ends asks for.
    pub(crate) fn update_link(&mut self, port: PortId) {
        let Some(peer) = self.port(port).cable else { return };
        let wanted = [port, peer].iter().all(|&end| {
            let state = self.port(end);
            let enabled = state.info.phys_state != PhysState::DISABLED;
            self.node(state.node).powered && enabled && state.held_down == 0
        });
        let is_up = self.port(port).is_up();
        let rate = self.negotiate(port, peer);
        let wanted = wanted && rate.is_some();
        if wanted != is_up {
            if let Some(rate) = rate.filter(|_| wanted) {
                for end in [port, peer] {
                    self.port_mut(end).set_active(rate);
                }
            }
            for end in [port, peer] {
                self.switch_link(end, wanted);
            }
            for end in [port, peer] {
                self.tell_link(end);
            }
        }
    }

    /// Takes a link down, and up again if nothing keeps it down.
    pub(crate) fn retrain(&mut self, port: PortId) {
        let Some(peer) = self.port(port).cable else { return };
        let was_up = self.port(port).is_up();
        if was_up {
            for end in [port, peer] {
                self.switch_link(end, false);
            }
        }
        self.update_link(port);
        // A link that comes up again has told so.
        if was_up && !self.port(port).is_up() {
            for end in [port, peer] {
                self.tell_link(end);
            }
        }
    }

    /// Pulls the cable out of a port, at both ends.
    pub(crate) fn unplug(&mut self, port: PortId) -> Option<PortId> {
        let peer = self.port(port).cable?;
        let was_up = self.port(port).is_up();
        for end in [port, peer] {
            if was_up {
                self.switch_link(end, false);
            }
            self.port_mut(end).cable = None;
        }
        if was_up {
            for end in [port, peer] {
                self.tell_link(end);
            }
        }
        Some(peer)
    }

    /// Plugs a cable in between two free ports.
    pub(crate) fn plug(&mut self, one: PortId, other: PortId) {
        self.port_mut(one).cable = Some(other);
        self.port_mut(other).cable = Some(one);
        self.update_link(one);
    }

    /// Changes one end of a link, with all that was under way on it.
    fn switch_link(&mut self, port: PortId, up: bool) {
        self.log(Entry::Link { port, up });
        let powered = self.node(self.port(port).node).powered;
        let now = self.now();
        let state = self.port_mut(port);
        state.epoch = state.epoch.wrapping_add(1);
        state.credits = None;
        state.busy_until = now;
        state.armed = false;
        if up {
            state.info.phys_state = PhysState::LINK_UP;
        } else {
            if powered {
                state.counters.link_downed += 1;
            }
            if state.info.phys_state != PhysState::DISABLED {
                state.info.phys_state = PhysState::POLLING;
            }
        }
        let waiting = self.take_waiting(port);
        self.set_state(port, if up { PortState::INIT } else { PortState::DOWN });
        for key in waiting {
            self.discard(port, key, Loss::LinkWentDown);
        }
    }

    /// A switch tells its manager that a link has changed.
    fn tell_link(&mut self, port: PortId) {
        let node = self.port(port).node;
        if let Some(switch) = &mut self.node_mut(node).switch {
            switch.info.port_state_change = true;
            self.trap_link_state(node);
        }
    }
}
