//! The requests of each stage, and the effects of their results.

use ib_mad::{Completion, Failure, Message};
use ib_types::Instant;
use ib_wire::mad::sm::{LinearForwardingBlock, PortInfo, SmInfo, SwitchInfo};
use ib_wire::mad::smp;
use ib_wire::mad::{AttributeId, Mad, Method, TransactionId};

use super::smp::Purpose;
use super::{Stage, SubnetManager};
use crate::configuration::Write;
use crate::fault::{Fault, PortName};

impl SubnetManager {
    /// Starts requests of the sweep's current stage, until the maximum number is in flight.
    pub(super) fn start_requests(&mut self, now: Instant) {
        while self.smps.has_room()
            && let Some((purpose, mut mad)) = self.next_request(now)
        {
            mad.set_m_key(self.config.m_key);
            self.smps.start(purpose, mad);
        }
    }

    fn next_request(&mut self, now: Instant) -> Option<(Purpose, Mad)> {
        let own = self.info();
        let context = self.subnet.context(&self.config);
        let found = &*context.found;
        match &mut self.stage {
            Stage::Discovering(discovery) => {
                discovery.next().map(|(probe, mad)| (Purpose::Probe(probe), mad))
            }
            Stage::Configuring(configuration) | Stage::WritingGroups(configuration) => {
                configuration.next(&context).map(|(work, mad)| (Purpose::Write(work), mad))
            }
            Stage::LightSweep { left, waiting } => {
                let purpose = left.pop()?;
                *waiting += 1;
                let (id, modifier, route) = match purpose {
                    Purpose::SwitchChange(node) => {
                        (AttributeId::SWITCH_INFO, 0, &*found.node(node).route)
                    }
                    Purpose::Audit { node, block } => {
                        let route = &*found.node(node).route;
                        (AttributeId::LINEAR_FORWARDING, u32::from(block), route)
                    }
                    Purpose::State(port_index) => (
                        AttributeId::PORT_INFO,
                        u32::from(port_index.port),
                        found.route(port_index),
                    ),
                    _ => unreachable!("light sweeps have no other purposes"),
                };
                let what = (id, modifier);
                let mad = smp::directed_request(Method::GET, TransactionId(0), what, route);
                Some((purpose, mad))
            }
            Stage::HandingOver { to, is_requested } if !*is_requested => {
                *is_requested = true;
                let what = (AttributeId::SM_INFO, SmInfo::HANDOVER);
                let route = found.route(*to);
                let mut mad = smp::directed_request(Method::SET, TransactionId(0), what, route);
                mad.set_attribute(&own);
                Some((Purpose::HandOver(*to), mad))
            }
            Stage::Standby { master, next, waiting, .. } if !*waiting && *next <= now => {
                *waiting = true;
                let (what, route) = ((AttributeId::SM_INFO, 0), found.route(*master));
                let mad = smp::directed_request(Method::GET, TransactionId(0), what, route);
                Some((Purpose::Master(*master), mad))
            }
            _ => None,
        }
    }

    /// Processes all requests that have completed.
    pub(super) fn handle_completions(&mut self, now: Instant) {
        while let Some((purpose, completion)) = self.smps.poll_completion() {
            let Completion { attempts, result, .. } = completion;
            self.sa_budget.smp_completed();
            if let Purpose::Write(Write::Clear { node, .. } | Write::Lft { node, .. }) = purpose
                && (attempts > 1 || result.is_err())
            {
                // The write was retransmitted or has failed. A delayed copy of it may still overwrite a later write, so
                // the next light sweep reads the LFT.
                self.light_sweeps.recheck_table(self.subnet.found.node(node).info.node_guid);
            }
            if let Purpose::Write(Write::Switch(node)) = purpose
                && result.is_ok()
                && let known = self.subnet.found.node(node)
                && known.switch.is_some_and(|switch| switch.port_state_change)
            {
                self.light_sweeps.recheck_ports(known.info.node_guid);
            }
            self.handle_completion(now, purpose, result);
        }
        self.advance(now);
    }

    fn handle_completion(
        &mut self,
        now: Instant,
        purpose: Purpose,
        result: Result<Message, Failure>,
    ) {
        let mut context = self.subnet.context(&self.config);
        match (&mut self.stage, purpose) {
            (Stage::Discovering(discovery), Purpose::Probe(probe)) => {
                discovery.handle(probe, result, context.tables);
            }
            (
                Stage::Configuring(configuration) | Stage::WritingGroups(configuration),
                Purpose::Write(work),
            ) => configuration.handle(work, result, &mut context),
            (Stage::LightSweep { waiting, .. }, Purpose::SwitchChange(node)) => {
                *waiting -= 1;
                let info = result.ok().and_then(|answer| answer.mad().attribute::<SwitchInfo>());
                let known = context.found.node(node);
                let guid = known.info.node_guid;
                let top = known.switch.map(|switch| switch.linear_fdb_top);
                // A changed `LinearFDBTop` shows that the switch was reset, or that another SM has written to the
                // switch.
                match info.filter(|info| top == Some(info.linear_fdb_top)) {
                    None => {
                        let what = "responds differently from before or not at all: it was reset or disconnected";
                        let why = format!("{} {what}", context.found.describe(&[node]));
                        self.triggers.require_full_discovery(why);
                    }
                    Some(info) if info.port_state_change => self.triggers.add_changed(guid),
                    Some(_) => {}
                }
            }
            (Stage::LightSweep { waiting, .. }, Purpose::Audit { node, block }) => {
                *waiting -= 1;
                let read = result.ok().and_then(|answer| answer.mad().attribute());
                let Some(LinearForwardingBlock { ports }) = read else {
                    let why = format!("{} does not respond", context.found.describe(&[node]));
                    return self.triggers.require_full_discovery(why);
                };
                let found = &*context.found;
                let table = context.tables.entry(found.node(node).info.node_guid).or_default();
                if table.block(block.into()).is_some_and(|known| *known != ports) {
                    table.set(block.into(), &ports);
                    context.read_back.insert(found.node(node).info.node_guid);
                    let at = PortName { port: None, ..found.name(node.at(0)) };
                    let why = format!(
                        "the table of {} was changed by another SM or a reset",
                        context.found.describe(&[node])
                    );
                    self.triggers.require_full_discovery(why);
                    self.report(vec![Fault::TableChanged { at, block }]);
                }
            }
            (Stage::LightSweep { waiting, .. }, Purpose::State(port_index)) => {
                *waiting -= 1;
                let read = result.ok().and_then(|answer| answer.mad().attribute::<PortInfo>());
                let known = context.found.port(port_index).info.as_deref();
                let is_same = |read: &PortInfo, known: &PortInfo| {
                    (read.port_state, read.lid) == (known.port_state, known.lid)
                };
                if let (Some(read), Some(known)) = (read, known)
                    && !is_same(&read, known)
                {
                    // The state or LID of the port has changed without a trap that this SM received, for example
                    // because its link went down and up.
                    let why = format!(
                        "a port of {} was reset",
                        context.found.describe(&[port_index.node])
                    );
                    self.triggers.require_full_discovery(why);
                }
            }
            (Stage::Standby { .. }, Purpose::Master(port_index)) => {
                self.handle_poll_result(now, port_index, result);
            }
            (Stage::HandingOver { .. }, Purpose::HandOver(port_index)) => {
                self.handle_handover_result(now, port_index, &result);
            }
            // The result is ignored, because the stage has changed since the request was sent.
            _ => {}
        }
    }
}
