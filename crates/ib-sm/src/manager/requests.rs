//! The requests of each stage, and what their results change.

use ib_mad::{Completion, Failure, Message};
use ib_types::Instant;
use ib_wire::mad::sm::{LinearForwardingBlock, PortInfo, SmInfo, SwitchInfo};
use ib_wire::mad::smp;
use ib_wire::mad::{AttributeId, Mad, Method, TransactionId};

use super::smp::Purpose;
use super::{Stage, SubnetManager};
use crate::configuration::Work;
use crate::fault::{Fault, PortName};

impl SubnetManager {
    /// Starts as many requests as may be under way.
    pub(super) fn fill(&mut self, now: Instant) {
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
            Stage::Configuring(configuration) | Stage::Grouping(configuration) => {
                configuration.next(&context).map(|(work, mad)| (Purpose::Work(work), mad))
            }
            Stage::Looking { left, waiting } => {
                let purpose = left.pop()?;
                *waiting += 1;
                let (id, modifier, route) = match purpose {
                    Purpose::Change(node) => {
                        (AttributeId::SWITCH_INFO, 0, &*found.node(node).route)
                    }
                    Purpose::Audit { node, block } => {
                        let route = &*found.node(node).route;
                        (AttributeId::LINEAR_FORWARDING, u32::from(block), route)
                    }
                    Purpose::State(place) => {
                        (AttributeId::PORT_INFO, u32::from(place.port), found.route(place))
                    }
                    _ => unreachable!("nothing else is looked at"),
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

    /// Passes on how requests ended.
    pub(super) fn collect(&mut self, now: Instant) {
        while let Some((purpose, completion)) = self.smps.poll_completion() {
            let Completion { attempts, result, .. } = completion;
            self.pace.smp_ended();
            if let Purpose::Work(Work::Clear { node, .. } | Work::Lft { node, .. }) = purpose
                && (attempts > 1 || result.is_err())
            {
                // A copy may still be on its way and undo what is written after it.
                self.light_sweeps.doubt_table(self.subnet.found.node(node).info.node_guid);
            }
            if let Purpose::Work(Work::Switch(node)) = purpose
                && result.is_ok()
                && let known = self.subnet.found.node(node)
                && known.switch.is_some_and(|switch| switch.port_state_change)
            {
                self.light_sweeps.doubt_ports(known.info.node_guid);
            }
            self.ended(now, purpose, result);
        }
        self.advance(now);
    }

    fn ended(&mut self, now: Instant, purpose: Purpose, result: Result<Message, Failure>) {
        let mut context = self.subnet.context(&self.config);
        match (&mut self.stage, purpose) {
            (Stage::Discovering(discovery), Purpose::Probe(probe)) => {
                discovery.handle(probe, result, context.tables);
            }
            (
                Stage::Configuring(configuration) | Stage::Grouping(configuration),
                Purpose::Work(work),
            ) => configuration.handle(work, result, &mut context),
            (Stage::Looking { waiting, .. }, Purpose::Change(node)) => {
                *waiting -= 1;
                let info = result.ok().and_then(|answer| answer.mad().attribute::<SwitchInfo>());
                let known = context.found.node(node);
                let guid = known.info.node_guid;
                let top = known.switch.map(|switch| switch.linear_fdb_top);
                // A switch with another highest LID was reset or is managed by somebody else.
                match info.filter(|info| top == Some(info.linear_fdb_top)) {
                    None => {
                        let what = "does not answer as it did: it was reset, or has gone";
                        let why = format!("{} {what}", context.found.describe(&[node]));
                        self.triggers.spoil(why);
                    }
                    Some(info) if info.port_state_change => self.triggers.add_changed(guid),
                    Some(_) => {}
                }
            }
            (Stage::Looking { waiting, .. }, Purpose::Audit { node, block }) => {
                *waiting -= 1;
                let read = result.ok().and_then(|answer| answer.mad().attribute());
                let Some(LinearForwardingBlock { ports }) = read else {
                    let why = format!("{} does not answer", context.found.describe(&[node]));
                    return self.triggers.spoil(why);
                };
                let found = &*context.found;
                let table = context.tables.entry(found.node(node).info.node_guid).or_default();
                if table.block(block.into()).is_some_and(|known| *known != ports) {
                    table.set(block.into(), &ports);
                    context.read_back.insert(found.node(node).info.node_guid);
                    let at = PortName { port: None, ..found.name(node.at(0)) };
                    let why =
                        format!("the table of {} was changed", context.found.describe(&[node]));
                    self.triggers.spoil(why);
                    self.report(vec![Fault::TableChanged { at, block }]);
                }
            }
            (Stage::Looking { waiting, .. }, Purpose::State(place)) => {
                *waiting -= 1;
                let read = result.ok().and_then(|answer| answer.mad().attribute::<PortInfo>());
                let known = context.found.port(place).info.as_deref();
                let is_same = |read: &PortInfo, known: &PortInfo| {
                    (read.port_state, read.lid) == (known.port_state, known.lid)
                };
                if let (Some(read), Some(known)) = (read, known)
                    && !is_same(&read, known)
                {
                    // Its link was down for so short a time that nobody has told.
                    let why =
                        format!("a port of {} was reset", context.found.describe(&[place.node]));
                    self.triggers.spoil(why);
                }
            }
            (Stage::Standby { .. }, Purpose::Master(place)) => self.heard(now, place, result),
            (Stage::HandingOver { .. }, Purpose::HandOver(place)) => {
                self.handed(now, place, &result);
            }
            // The stage has changed since the request was sent.
            _ => {}
        }
    }
}
