//! Doing what a command says.

use ib_topology::PortId;
use ib_types::NodeKind;
use ib_wire::mad::pm::PortCountersExtended;
use ib_wire::mad::{Mad, Method, MgmtClass, TransactionId};

use super::check::counter;
use super::{Command, CommandError, Fault, Ignored, Target};
use crate::fault::PortFaults;
use crate::log::Entry;
use crate::node::{Lies, Switch};
use crate::sim::Sim;

impl Sim {
    /// Does what a command says, at once.
    ///
    /// # Errors
    /// Fails without doing anything when the command names what is not there, a value is out of
    /// range, or ports do not have the cables that it takes.
    pub fn run(&mut self, command: &Command) -> Result<(), CommandError> {
        self.log(Entry::Command { text: &command.to_string() });
        self.check(command)?;
        match command {
            Command::Link(one, other) => self.run_link(one, other),
            Command::Unlink(target) => self.run_unlink(target),
            Command::Relink(target) => self.run_relink(target),
            Command::Clear(target) => {
                for port in self.target_ports_with_management(target)? {
                    self.clear(port);
                }
                if target.port.is_none() {
                    let node = self.target_node(target)?;
                    self.forget_settings(node);
                    if let Some(switch) = &mut self.node_mut(node).switch {
                        switch.lies = Lies::default();
                    }
                }
                Ok(())
            }
            Command::Guid(target, guid) => self.run_guid(target, *guid),
            Command::Error(target, rate, attribute) => {
                let ports = self.target_ports_with_management(target)?;
                for port in ports {
                    let faults = self.port_mut(port).faults.get_or_insert_default();
                    faults.unanswered = *rate;
                    faults.unanswered_attribute = attribute.filter(|_| *rate > 0.0);
                    self.drop_empty_faults(port);
                }
                Ok(())
            }
            Command::PerformanceSet(target, field, value) => {
                let port = self.target_port(target)?;
                self.set_counter(port, field, *value)
            }
            Command::BaseLid(target, lid, lmc) => {
                let port = self.target_end_port(target)?;
                let info = &mut self.port_mut(port).info;
                (info.lid, info.lmc) = (*lid, *lmc);
                Ok(())
            }
            Command::Fault(target, faults) => {
                for port in self.target_ports(target)? {
                    self.set_faults(port, faults);
                }
                Ok(())
            }
            Command::Flap(target, down, up, times) => {
                let port = self.target_port(target)?;
                self.start_flap(port, (*down, *up), *times)
            }
            Command::Power(target, on) => self.run_power(target, *on),
            Command::MKey(target, key, protect) => {
                let port = self.target_end_port(target)?;
                let info = &mut self.port_mut(port).info;
                (info.m_key, info.m_key_protect) = (*key, *protect);
                Ok(())
            }
            Command::Misroute(target, ports) => self.run_misroute(target, *ports),
            Command::IgnoreLft(target, ignored) => {
                let switch = self.switch_mut(target)?;
                switch.lies.ignores_all = *ignored == Ignored::All;
                switch.lies.ignored_blocks = match ignored {
                    Ignored::Blocks(blocks) => blocks.iter().copied().collect(),
                    Ignored::All | Ignored::None => std::collections::BTreeSet::new(),
                };
                Ok(())
            }
            Command::Swap(one, other) => self.run_swap(one, other),
        }
    }

    fn switch_mut(&mut self, target: &Target) -> Result<&mut Switch, CommandError> {
        let node = self.target_node(target)?;
        let no_switch = || CommandError::NotASwitch(target.node.clone());
        self.node_mut(node).switch.as_deref_mut().ok_or_else(no_switch)
    }

    fn target_ports_with_management(&self, target: &Target) -> Result<Vec<PortId>, CommandError> {
        let mut ports = self.target_ports(target)?;
        let node = self.target_node(target)?;
        if target.port.is_none() && self.node(node).kind == NodeKind::Switch {
            ports.push(self.port_id(node, 0));
        }
        Ok(ports)
    }

    fn linked(&self, port: PortId) -> CommandError {
        let (node, number) = self.place(port);
        CommandError::Linked { node: self.node_name(node).to_owned(), port: number }
    }

    fn run_link(&mut self, one: &Target, other: &Target) -> Result<(), CommandError> {
        let ends = [self.target_external_port(one)?, self.target_external_port(other)?];
        for end in ends {
            if self.port(end).cable.is_some() {
                return Err(self.linked(end));
            }
        }
        if ends[0] == ends[1] {
            return Err(CommandError::Value {
                found: other.to_string(),
                expected: "another port than the first one",
            });
        }
        for end in ends {
            if let Some(peer) = self.unplugged.remove(&end) {
                self.unplugged.remove(&peer);
            }
        }
        self.plug(ends[0], ends[1]);
        Ok(())
    }

    fn run_unlink(&mut self, target: &Target) -> Result<(), CommandError> {
        let mut pulled = false;
        for port in self.target_external_ports(target)? {
            if let Some(peer) = self.unplug(port) {
                self.unplugged.insert(port, peer);
                self.unplugged.insert(peer, port);
                pulled = true;
            }
        }
        if pulled { Ok(()) } else { Err(CommandError::NothingToPull(target.to_string())) }
    }

    fn run_relink(&mut self, target: &Target) -> Result<(), CommandError> {
        let mut plugged = false;
        for port in self.target_external_ports(target)? {
            if let Some(peer) = self.unplugged.remove(&port) {
                self.unplugged.remove(&peer);
                self.plug(port, peer);
                plugged = true;
            }
        }
        if plugged { Ok(()) } else { Err(CommandError::NothingPulled(target.to_string())) }
    }

    fn clear(&mut self, port: PortId) {
        self.unplug(port);
        if let Some(peer) = self.unplugged.remove(&port) {
            self.unplugged.remove(&peer);
        }
        self.port_mut(port).faults = None;
        self.forget_port_settings(port);
    }

    fn run_guid(&mut self, target: &Target, guid: ib_types::Guid) -> Result<(), CommandError> {
        self.guid_changes += 1;
        if target.port.is_some() {
            let port = self.target_port(target)?;
            self.port_mut(port).guid = guid;
            return Ok(());
        }
        let node = self.target_node(target)?;
        self.node_mut(node).guid = guid;
        // As on ibsim: the ports of a switch have its GUID, others that of the node plus their number.
        let is_switch = self.node(node).kind == NodeKind::Switch;
        for number in u8::from(!is_switch)..=self.node(node).ports {
            let port = self.port_id(node, number);
            let offset = if is_switch { 0 } else { u64::from(number) };
            self.port_mut(port).guid = ib_types::Guid(guid.0.wrapping_add(offset));
        }
        Ok(())
    }

    fn set_counter(&mut self, port: PortId, field: &str, value: u64) -> Result<(), CommandError> {
        let known = counter(field)?;
        // ibsim has one counter behind both attributes, and so both show what it was set to.
        let (mut full, mut short) = (self.counters(port), self.short_counters(port));
        for counters in [&mut full, &mut short] {
            let mut mad = Mad::new(MgmtClass::PERFORMANCE, Method::SET, TransactionId(0));
            let mut shown = PortCountersExtended::zeroed();
            counters.show_extended(&mut shown);
            shown.counter_select.0 = 0xffff;
            shown.counter_select2 = u32::MAX;
            mad.set_attribute(&shown);
            ib_wire::layout::set(mad.data_mut(), known.at, value);
            counters.write(&mad);
        }
        self.store_counters(port, full, &short);
        Ok(())
    }

    fn set_faults(&mut self, port: PortId, faults: &[Fault]) {
        let own: &mut PortFaults = self.port_mut(port).faults.get_or_insert_default();
        if faults.is_empty() {
            own.mend_link();
        }
        for fault in faults {
            match *fault {
                Fault::Loss(probability) => own.loss = probability,
                Fault::Corruption(probability) => own.corruption = probability,
                Fault::Duplication(probability) => own.duplication = probability,
                Fault::Reordering(probability) => own.reordering = probability,
                Fault::HeldBack(time) => own.held_back = time,
                Fault::Delay(time) => own.delay = time,
            }
        }
        self.drop_empty_faults(port);
    }

    fn drop_empty_faults(&mut self, port: PortId) {
        let faults = &mut self.port_mut(port).faults;
        if faults.as_ref().is_some_and(|faults| faults.is_empty()) {
            *faults = None;
        }
    }

    fn run_misroute(
        &mut self,
        target: &Target,
        ports: Option<(u8, u8)>,
    ) -> Result<(), CommandError> {
        let switch = self.switch_mut(target)?;
        match ports {
            None => switch.lies.misrouted.clear(),
            Some((from, to)) => {
                switch.lies.misrouted.insert(from, to);
            }
        }
        Ok(())
    }

    fn run_swap(&mut self, one: &Target, other: &Target) -> Result<(), CommandError> {
        let ends = [self.target_external_port(one)?, self.target_external_port(other)?];
        let mut peers = [ends[0]; 2];
        for (peer, end) in peers.iter_mut().zip(ends) {
            *peer = self.port(end).cable.ok_or_else(|| {
                let (node, number) = self.place(end);
                CommandError::NotLinked { node: self.node_name(node).to_owned(), port: number }
            })?;
        }
        if peers[0] == ends[1] || ends[0] == ends[1] {
            return Err(CommandError::Value {
                found: other.to_string(),
                expected: "a port of another cable",
            });
        }
        for end in ends {
            self.unplug(end);
        }
        self.plug(ends[0], peers[1]);
        self.plug(ends[1], peers[0]);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
