//! Links that come up and go down, and cables that are plugged and pulled.

use ib_topology::PortId;
use ib_wire::mad::sm::PortState;

use super::Network;
use crate::log::Entry;
use crate::loss::Loss;

impl Network {
    /// Brings a link up or down, as the state of its two ends asks for.
    pub(crate) fn update_link(&mut self, port: PortId) {
        let Some(peer) = self.fabric.port(port).cable else { return };
        let rate = self.fabric.negotiate(port, peer);
        let wanted = self.fabric.may_link(port, peer) && rate.is_some();
        if wanted == self.fabric.port(port).is_up() {
            return;
        }
        if let Some(rate) = rate.filter(|_| wanted) {
            for end in [port, peer] {
                self.fabric.port_mut(end).set_active(rate);
            }
        }
        self.switch_ends(port, peer, wanted);
        self.tell_ends(port, peer);
    }

    /// Takes a link down, and up again if nothing keeps it down.
    pub(crate) fn retrain(&mut self, port: PortId) {
        let Some(peer) = self.fabric.port(port).cable else { return };
        let was_up = self.fabric.port(port).is_up();
        if was_up {
            self.switch_ends(port, peer, false);
        }
        self.update_link(port);
        // A link that comes up again has told so.
        if was_up && !self.fabric.port(port).is_up() {
            self.tell_ends(port, peer);
        }
    }

    /// Keeps the link of a port down, or no longer so; several may at the same time.
    pub(crate) fn hold_down(&mut self, port: PortId, hold: bool) {
        let held = &mut self.fabric.port_mut(port).held_down;
        *held = if hold { held.saturating_add(1) } else { held.saturating_sub(1) };
        self.update_link(port);
    }

    /// Pulls the cable out of a port, at both ends.
    pub(crate) fn unplug(&mut self, port: PortId) -> Option<PortId> {
        let peer = self.fabric.port(port).cable?;
        let was_up = self.fabric.port(port).is_up();
        for end in [port, peer] {
            if was_up {
                self.switch_end(end, false);
            }
            self.fabric.port_mut(end).cable = None;
        }
        if was_up {
            self.tell_ends(port, peer);
        }
        Some(peer)
    }

    /// Plugs a cable in between two free ports.
    pub(crate) fn plug(&mut self, one: PortId, other: PortId) {
        self.fabric.port_mut(one).cable = Some(other);
        self.fabric.port_mut(other).cable = Some(one);
        self.update_link(one);
    }

    fn switch_ends(&mut self, one: PortId, other: PortId, up: bool) {
        self.switch_end(one, up);
        self.switch_end(other, up);
    }

    /// Changes one end of a link, with all that was under way on it.
    fn switch_end(&mut self, port: PortId, up: bool) {
        self.log(Entry::Link { port, up });
        let powered = self.fabric.node_of(port).powered;
        let now = self.now();
        let state = self.fabric.port_mut(port);
        let waiting = state.restart_link(up, powered, now);
        self.set_state(port, if up { PortState::INIT } else { PortState::DOWN });
        for key in waiting {
            self.discard(port, key, Loss::LinkWentDown);
        }
    }

    fn tell_ends(&mut self, one: PortId, other: PortId) {
        self.tell_end(one);
        self.tell_end(other);
    }

    /// A switch tells its manager that a link has changed.
    fn tell_end(&mut self, port: PortId) {
        let node = self.fabric.port(port).node;
        if let Some(switch) = &mut self.fabric.node_mut(node).switch {
            switch.info.port_state_change = true;
            self.trap_link_state(node);
        }
    }
}
