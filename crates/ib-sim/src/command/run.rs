//! Runs commands.

use std::collections::BTreeSet;

use ib_topology::PortId;
use ib_types::{Guid, Instant};
use ib_wire::layout;
use ib_wire::mad::pm::PortCountersExtended;
use ib_wire::mad::{Mad, Method, MgmtClass, TransactionId};

use super::check::counter;
use super::{Command, CommandError, Fault, Ignored, Target};
use crate::fabric::FabricState;
use crate::log::Entry;
use crate::network::Network;
use crate::node::{Deviations, Switch};
use crate::port::Port;
use crate::script::Script;

/// Runs a command that [`check`](super::check()) has approved.
pub(crate) fn run(
    net: &mut Network,
    script: &mut Script,
    command: &Command,
) -> Result<(), CommandError> {
    match command {
        Command::Link(one, other) => link(net, one, other)?,
        Command::Unlink(target) => unlink(net, target)?,
        Command::Relink(target) => relink(net, target)?,
        Command::Clear(target) => clear(net, target)?,
        Command::Guid(target, guid) => set_guid(&mut net.fabric, target, *guid)?,
        Command::Error(target, rate, attribute) => {
            for port in target.find_all_ports(&net.fabric)? {
                let port = net.fabric.port_mut(port);
                let faults = port.faults.get_or_insert_default();
                faults.unanswered = *rate;
                faults.unanswered_attribute = attribute.filter(|_| *rate > 0.0);
                drop_empty_faults(port);
            }
        }
        Command::PerformanceSet(target, field, value) => {
            let port = target.find_port(&net.fabric)?;
            set_counter(&mut net.fabric, net.clock.now(), port, field, *value)?;
        }
        Command::BaseLid(target, lid, lmc) => {
            let port = target.find_end_port(&net.fabric)?;
            let info = &mut net.fabric.port_mut(port).info;
            (info.lid, info.lmc) = (*lid, *lmc);
        }
        Command::Fault(target, faults) => {
            for port in target.find_ports(&net.fabric)? {
                set_faults(net.fabric.port_mut(port), faults);
            }
        }
        Command::Flap(target, down, up, times) => {
            let port = target.find_port(&net.fabric)?;
            if net.fabric.port(port).cable.is_none() && net.fabric.pulled(port).is_none() {
                return Err(not_linked(&net.fabric, port));
            }
            script.start_flap(net, port, *down, *up, *times);
        }
        Command::Power(target, on) => set_power(net, target, *on)?,
        Command::MKey(target, key, protect) => {
            let port = target.find_end_port(&net.fabric)?;
            let info = &mut net.fabric.port_mut(port).info;
            (info.m_key, info.m_key_protect) = (*key, *protect);
        }
        Command::Misroute(target, ports) => {
            let misrouted = &mut switch_mut(&mut net.fabric, target)?.deviations.misrouted;
            match *ports {
                None => misrouted.clear(),
                Some((from, to)) => _ = misrouted.insert(from, to),
            }
        }
        Command::IgnoreLft(target, ignored) => {
            let deviations = &mut switch_mut(&mut net.fabric, target)?.deviations;
            deviations.ignores_all = *ignored == Ignored::All;
            deviations.ignored_blocks = match ignored {
                Ignored::Blocks(blocks) => blocks.iter().copied().collect(),
                Ignored::All | Ignored::None => BTreeSet::new(),
            };
        }
        Command::Swap(one, other) => swap(net, one, other)?,
    }
    Ok(())
}

fn switch_mut<'a>(
    fabric: &'a mut FabricState,
    target: &Target,
) -> Result<&'a mut Switch, CommandError> {
    let node = target.find_node(fabric)?;
    let no_switch = || CommandError::NotASwitch(target.node.clone());
    fabric.node_mut(node).switch.as_deref_mut().ok_or_else(no_switch)
}

/// Returns the name of the node of a port, and the port number.
fn name(fabric: &FabricState, port: PortId) -> (String, u8) {
    (fabric.node_of(port).name.clone(), fabric.port(port).number)
}

fn not_linked(fabric: &FabricState, port: PortId) -> CommandError {
    let (node, port) = name(fabric, port);
    CommandError::NotLinked { node, port }
}

fn link(net: &mut Network, one: &Target, other: &Target) -> Result<(), CommandError> {
    let fabric = &mut net.fabric;
    let ends = [one.find_external_port(fabric)?, other.find_external_port(fabric)?];
    if let Some(&end) = ends.iter().find(|&&end| fabric.port(end).cable.is_some()) {
        let (node, port) = name(fabric, end);
        return Err(CommandError::Linked { node, port });
    }
    if ends[0] == ends[1] {
        return Err(CommandError::Value { found: other.to_string(), expected: "a different port" });
    }
    for end in ends {
        fabric.forget_pulled(end);
    }
    net.plug(ends[0], ends[1]);
    Ok(())
}

fn unlink(net: &mut Network, target: &Target) -> Result<(), CommandError> {
    let mut pulled = false;
    for port in target.find_external_ports(&net.fabric)? {
        if let Some(peer) = net.unplug(port) {
            net.fabric.remember_pulled(port, peer);
            pulled = true;
        }
    }
    if pulled { Ok(()) } else { Err(CommandError::NothingToPull(target.to_string())) }
}

fn relink(net: &mut Network, target: &Target) -> Result<(), CommandError> {
    let mut plugged = false;
    for port in target.find_external_ports(&net.fabric)? {
        if let Some(peer) = net.fabric.forget_pulled(port) {
            net.plug(port, peer);
            plugged = true;
        }
    }
    if plugged { Ok(()) } else { Err(CommandError::NothingPulled(target.to_string())) }
}

fn clear(net: &mut Network, target: &Target) -> Result<(), CommandError> {
    for port in target.find_all_ports(&net.fabric)? {
        net.unplug(port);
        net.fabric.forget_pulled(port);
        net.fabric.port_mut(port).faults = None;
        net.fabric.reset_port(port);
    }
    if target.port.is_none() {
        let node = target.find_node(&net.fabric)?;
        net.fabric.reset_node(node);
        if let Some(switch) = &mut net.fabric.node_mut(node).switch {
            switch.deviations = Deviations::default();
        }
    }
    Ok(())
}

fn set_guid(fabric: &mut FabricState, target: &Target, guid: Guid) -> Result<(), CommandError> {
    fabric.count_guid_change();
    if target.port.is_some() {
        let port = target.find_port(fabric)?;
        fabric.port_mut(port).guid = guid;
        return Ok(());
    }
    let node = target.find_node(fabric)?;
    fabric.node_mut(node).guid = guid;
    // As in ibsim, ports of a switch get the node GUID; port n of an HCA gets the node GUID plus n.
    let is_switch = fabric.is_switch(node);
    for number in u8::from(!is_switch)..=fabric.node(node).ports {
        let port = fabric.port_id(node, number);
        let offset = if is_switch { 0 } else { u64::from(number) };
        fabric.port_mut(port).guid = Guid(guid.0.wrapping_add(offset));
    }
    Ok(())
}

fn set_counter(
    fabric: &mut FabricState,
    now: Instant,
    port: PortId,
    field: &str,
    value: u64,
) -> Result<(), CommandError> {
    let field = counter(field)?;
    // As in ibsim, the command sets the counter in both PortCounters and PortCountersExtended.
    let (mut full, mut short) = (fabric.counters(port, now), fabric.short_counters(port, now));
    for counters in [&mut full, &mut short] {
        let mut mad = Mad::new(MgmtClass::PERFORMANCE, Method::SET, TransactionId(0));
        let mut shown = PortCountersExtended::zeroed();
        counters.show_extended(&mut shown);
        shown.counter_select.0 = 0xffff;
        shown.counter_select2 = u32::MAX;
        mad.set_attribute(&shown);
        layout::set(mad.data_mut(), field.at, value);
        counters.write(&mad);
    }
    fabric.port_mut(port).store_counters(full, &short, now);
    Ok(())
}

fn set_faults(port: &mut Port, faults: &[Fault]) {
    let own = port.faults.get_or_insert_default();
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
    drop_empty_faults(port);
}

fn drop_empty_faults(port: &mut Port) {
    if port.faults.as_ref().is_some_and(|faults| faults.is_empty()) {
        port.faults = None;
    }
}

fn set_power(net: &mut Network, target: &Target, on: bool) -> Result<(), CommandError> {
    let node = target.find_node(&net.fabric)?;
    if net.fabric.node(node).powered == on {
        return Ok(());
    }
    net.log(Entry::Power { node, on });
    net.fabric.node_mut(node).powered = on;
    for port in net.fabric.external_ports(node) {
        net.update_link(port);
    }
    if !on {
        net.fabric.reset_node(node);
    }
    Ok(())
}

fn swap(net: &mut Network, one: &Target, other: &Target) -> Result<(), CommandError> {
    let fabric = &net.fabric;
    let ends = [one.find_external_port(fabric)?, other.find_external_port(fabric)?];
    let peer = |end| fabric.port(end).cable.ok_or_else(|| not_linked(fabric, end));
    let peers = [peer(ends[0])?, peer(ends[1])?];
    if peers[0] == ends[1] || ends[0] == ends[1] {
        return Err(CommandError::Value {
            found: other.to_string(),
            expected: "a port of another cable",
        });
    }
    for end in ends {
        net.unplug(end);
    }
    net.plug(ends[0], peers[1]);
    net.plug(ends[1], peers[0]);
    Ok(())
}

#[cfg(test)]
mod tests;
