//! Takes links up and down, and plugs and pulls cables.

use ib_topology::PortId;
use ib_wire::mad::sm::PortState;

use super::Network;
use crate::log::Entry;
use crate::loss::Loss;

impl Network {
    /// Takes the link of a port up if both ends allow it and have a common rate. Otherwise takes
    /// the link down.
    pub(crate) fn update_link(&mut self, port: PortId) {
        let Some(peer) = self.fabric.port(port).cable else { return };
        let rate = self.fabric.negotiate(port, peer);
        let link_up = self.fabric.may_link(port, peer) && rate.is_some();
        if link_up == self.fabric.port(port).is_up() {
            return;
        }
        if let Some(rate) = rate.filter(|_| link_up) {
            for end in [port, peer] {
                self.fabric.port_mut(end).set_active(rate);
            }
        }
        self.switch_ends(port, peer, link_up);
        self.trap_ends(port, peer);
    }

    /// Takes the link of a port down. Takes it up again if both ends allow it and have a common
    /// rate.
    pub(crate) fn retrain(&mut self, port: PortId) {
        let Some(peer) = self.fabric.port(port).cable else { return };
        let was_up = self.fabric.port(port).is_up();
        if was_up {
            self.switch_ends(port, peer, false);
        }
        self.update_link(port);
        // If the link has come up again, `update_link` has already sent the link state traps. If it
        // remains down, they are sent here.
        if was_up && !self.fabric.port(port).is_up() {
            self.trap_ends(port, peer);
        }
    }

    /// Adds or removes a hold, which keeps the link of a port down. A port can have several holds.
    pub(crate) fn hold_down(&mut self, port: PortId, hold: bool) {
        let held = &mut self.fabric.port_mut(port).held_down;
        *held = if hold { held.saturating_add(1) } else { held.saturating_sub(1) };
        self.update_link(port);
    }

    /// Pulls the cable of a port at both ends. Returns the port at the other end.
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
            self.trap_ends(port, peer);
        }
        Some(peer)
    }

    /// Plugs a cable into two free ports.
    pub(crate) fn plug(&mut self, one: PortId, other: PortId) {
        self.fabric.port_mut(one).cable = Some(other);
        self.fabric.port_mut(other).cable = Some(one);
        self.update_link(one);
    }

    fn switch_ends(&mut self, one: PortId, other: PortId, up: bool) {
        self.switch_end(one, up);
        self.switch_end(other, up);
    }

    /// Takes one end of a link up or down. In both cases, drops the packets in the port's output
    /// queue, and the packets in flight to the port.
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

    fn trap_ends(&mut self, one: PortId, other: PortId) {
        self.trap_end(one);
        self.trap_end(other);
    }

    /// If a switch has this port, sends the switch's link state trap.
    fn trap_end(&mut self, port: PortId) {
        let node = self.fabric.port(port).node;
        if let Some(switch) = &mut self.fabric.node_mut(node).switch {
            switch.info.port_state_change = true;
            self.trap_link_state(node);
        }
    }
}
